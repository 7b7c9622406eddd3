// What waits while a turn is under way: heard at once instead of it, and what one may not do is not offered.
import { expect, field, rows, send, test } from './house'

test('a waiting message is run instead of the turn under way, by a button', async ({ homing, page }) => {
  const { id } = await homing.newSession()
  await page.goto(`/s/${id}`)
  await send(page, '!sleep 60000')
  await expect(page.getByRole('button', { name: 'Stop' })).toBeVisible()
  await send(page, 'this first')
  const waiting = page.getByRole('region', { name: 'What waits' })
  await expect(waiting).toContainText('this first')
  await waiting.getByRole('button', { name: 'Interrupt' }).click()
  await expect(rows(page, 'words').last()).toContainText('#2 this first')
  const ends = (await homing.facts(id)).filter((fact) => fact.type === 'turn_ended')
  expect(ends[0]).toMatchObject({ outcome: 'stopped' })
})

test('a fork is offered to whom the server makes one for', async ({ homing, people }) => {
  homing.repository()
  const { id } = await homing.newSession({ directory: homing.place, title: 'shared' })
  await homing.settled((await homing.say({ session: id }, 'hello')).id)
  const { user: bob } = await homing.ask<{ user: { id: string } }>('POST', '/users', { handle: 'bob', name: 'Bob', role: 'member' })
  await homing.ask('PUT', `/sessions/${id}/grants`, { to: { user: bob.id }, grant: 'prompt' })
  const theirs = await (await people.signedIn({}, bob.id)).newPage()
  await theirs.goto(`/s/${id}`)
  await expect(field(theirs)).toBeVisible()
  await expect(rows(theirs, 'end')).toBeVisible()
  await expect(theirs.getByRole('button', { name: 'Fork here' })).toHaveCount(0)

  await homing.ask('PUT', '/roots', { directory: homing.place, to: { user: bob.id } })
  await theirs.reload()
  // Whether it is made besides is for the wall of this machine to say: the one whose session it is may always.
  await expect(theirs.getByRole('button', { name: 'Fork here' })).toBeVisible()
  const mine = await (await people.signedIn()).newPage()
  await mine.goto(`/s/${id}`)
  await mine.getByRole('button', { name: 'Fork here' }).click()
  await expect(mine).not.toHaveURL(new RegExp(id))
  await expect(field(mine)).toBeVisible()
})
