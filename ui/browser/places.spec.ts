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
