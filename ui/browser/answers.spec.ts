// One question, answered by everybody at once: the first answer counts, once, and the others see who gave it, what it was and when.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Approval } from '../src/api/types'
import { count, counted } from './counts'
import { expect, rows, test } from './house'

const QUESTIONS = count('HOMING_BROWSER_QUESTIONS', 3)

/** Presses a button in a while; nothing comes of it if it is not to be pressed any more. */
function press(button: Element, ms: number): void {
  setTimeout(() => (button as HTMLButtonElement).click(), ms)
}

test('two browsers and the command line answer one question at once', async ({ homing, people }) => {
  test.setTimeout(30_000 + QUESTIONS * 5_000)
  const { id } = await homing.newSession()
  const me = await homing.ask<{ handle: string }>('GET', '/me')
  const pages = await Promise.all([1, 2].map(async () => (await people.signedIn()).newPage()))
  for (const page of pages) await page.goto(`/s/${id}`)
  const began = performance.now()
  await homing.run('approve')
  const startMs = performance.now() - began
  const firsts: Record<string, number> = { browsers: 0, 'the command line': 0 }
  for (let round = 0; round < QUESTIONS; round++) {
    const { id: message } = await homing.say({ session: id }, '!ask Shell')
    const questions = pages.map((page) => page.getByRole('region', { name: 'Question' }).last())
    for (const question of questions) await expect(question.getByRole('button', { name: 'Yes' })).toBeVisible()
    const open = (await homing.ask<{ items: Approval[] }>('GET', '/approvals')).items
    expect(open).toHaveLength(1)
    const approval = open[0]!.id
    // A command has to be started first: pressed a little later, so that each of them is first now and then.
    const delay = Math.random() * startMs
    const command = sleep(Math.random() * startMs).then(() => homing.run('approve', round % 2 ? 'yes' : 'no', approval))
    await Promise.all(questions.map((question, at) => question.getByRole('button', { name: at ? 'No' : 'Yes', exact: true }).evaluate(press, delay)))
    const ran = await command
    const receipt = await homing.settled(message)
    const settled = await homing.ask<Approval>('GET', `/approvals/${approval}`)
    expect(settled).toMatchObject({ state: 'answered', by_handle: me.handle })
    // One effect: one fact, and the agent was told that answer.
    const answers = (await homing.facts(id)).filter((fact) => fact.type === 'answered' && fact.approval === approval)
    expect(answers).toHaveLength(1)
    expect(answers[0]).toMatchObject({ answer: settled.answer })
    expect(receipt.answer, 'the agent was told what counted').toContain(settled.answer === 'yes' ? 'Shell: allowed' : 'Shell: denied')
    firsts[ran.code === 0 ? 'the command line' : 'browsers']! += 1
    if (ran.code !== 0) expect(ran.err, 'whoever comes later is told who was first').toMatch(/answered/i)
    for (const question of questions) {
      await expect(question).toContainText(settled.answer === 'yes' ? 'Yes' : 'No')
      await expect(question).toContainText(me.handle)
      await expect(question.locator('.settled time')).toHaveAttribute('datetime', settled.settled_at!)
    }
    for (const page of pages) await expect(rows(page, 'question')).toHaveCount(round + 1)
  }
  counted(`${QUESTIONS} questions answered by three doors at once: one effect each; first were ${JSON.stringify(firsts)}`)
})
