// What is said right after a change of directory is said where it leads: a command to the agent that is there, plain words, too.
import type { Receipt } from '../src/api/types'
import { expect, openScope, rows, send, test } from './house'
import type { Homing } from './homing'

/** The receipts of a session's messages, once all of them are over, in the order in which they were accepted. */
async function allSettled(homing: Homing, session: string, count: number): Promise<Receipt[]> {
  const queued = await homing.until(`${count} messages are there`, async () => {
    const all = (await homing.facts(session)).flatMap((fact) => (fact.type === 'queued' ? [fact.message] : []))
    return all.length >= count && all
  })
  return Promise.all(queued.map((message) => homing.settled(message)))
}

test('a command and plain words right after a change of directory are heard there', async ({ homing, page }) => {
  homing.repository()
  const { id } = await homing.newSession({ directory: homing.place })
  await page.goto(`/s/${id}`)
  await send(page, '!pwd')
  await expect(rows(page, 'words').last()).toContainText(homing.place)
  const scope = await openScope(page)

  await scope.getByLabel('Name of a worktree').fill('aside')
  await scope.getByLabel('Name of a worktree').press('Enter')
  await send(page, '/shout there\n!pwd')
  await send(page, 'plain\n!pwd')
  const there = (await allSettled(homing, id, 3)).slice(1)
  const row = await homing.ask<{ directory: string }>('GET', `/sessions/${id}`)
  expect(row.directory).not.toBe(homing.place)
  expect(there.map((one) => one.answer)).toEqual([`command shout: there\n${row.directory}`, `#3 plain\n${row.directory}`])

  await scope.getByRole('button', { name: 'Leave aside' }).click()
  await send(page, '/whisper back\n!pwd')
  await send(page, 'plain\n!pwd')
  const back = (await allSettled(homing, id, 5)).slice(3)
  expect(back.map((one) => one.answer)).toEqual([`command whisper: back\n${homing.place}`, `#5 plain\n${homing.place}`])
  await expect(rows(page, 'words').last()).toContainText(homing.place)
})

test.describe('an agent that never lists its commands', () => {
  test.use({ setup: { config: '[limits]\ncommands_wait = "3s"\n', variables: () => ({ HOMING_SCRIPTED_COMMANDS_MS: '86400000' }) } })

  test('delays a command until the deadline, and the page says so', async ({ homing, page }) => {
    const { id } = await homing.newSession()
    await page.goto(`/s/${id}`)
    // It has to work until then, so that what is said of the deadline can be read.
    await send(page, '/shout hello\n!sleep 2000')
    await expect(page.getByText(/The list of commands has not come yet. Until .*\d\d:\d\d/)).toBeVisible()
    await expect(page.getByText('The list of commands did not come in time.')).toBeVisible()
    await expect(rows(page, 'words').last()).toContainText('#1 /shout hello')
    await expect(page.getByText('The list of commands did not come in time.')).toBeHidden()
    const facts = await homing.facts(id)
    const at = (type: string) => Date.parse(facts.find((fact) => fact.type === type)!.at)
    expect(at('handed') - at('queued'), 'delayed until the deadline, and not longer').toBeGreaterThanOrEqual(2_900)
  })
})
