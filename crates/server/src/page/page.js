// The page at /: lists sessions, says something to a conversation, shows facts and live words. Everything it knows it
// asks the server; what is shown goes in as text, never as HTML.
'use strict'

const api = '/api/v1'
const $ = (id) => document.getElementById(id)
let me = null // who is signed in
let shown = null // { session, conversation, stream, parts } of the conversation on the page
let running = null // the message whose turn runs
let paged = false // whether more than the first page of sessions is shown
const LIST_MS = 3000

start()

async function start() {
  const answer = await fetch(`${api}/me`)
  if (answer.status === 401) return signedOut()
  me = await answer.json()
  $('who').textContent = `signed in as ${me.handle}`
  $('signed-in').hidden = false
  $('sign-out').hidden = false
  $('sign-out').addEventListener('click', signOut)
  $('begin').addEventListener('click', begin)
  $('say').addEventListener('submit', say)
  $('stop').addEventListener('click', stop)
  $('more').addEventListener('click', () => { paged = true; list($('more').dataset.cursor) })
  begin()
  await list()
  // The list is not a stream: a look every few seconds is enough, while somebody looks and has not paged on.
  setInterval(() => { if (!document.hidden && !paged) list() }, LIST_MS)
}

async function signedOut() {
  $('who').textContent = 'signed out'
  $('signed-out').hidden = false
  $('sign-in').addEventListener('submit', signIn)
  $('login').focus()
  const answer = await fetch(`${api}/sign-in`)
  const { provider } = answer.ok ? await answer.json() : {}
  if (!provider) return
  $('provider').textContent = `Sign in with ${provider}`
  $('elsewhere').hidden = false
}

async function signIn(submitted) {
  submitted.preventDefault()
  const button = $('sign-in').querySelector('button')
  button.disabled = true
  $('sign-in-state').textContent = ''
  const body = JSON.stringify({ login: $('login').value, password: $('password').value, for: 'browser' })
  const headers = { 'Content-Type': 'application/json' }
  const answer = await fetch(`${api}/sign-in`, { method: 'POST', headers, body }).catch(() => null)
  if (answer?.ok) return location.reload()
  button.disabled = false
  $('password').value = ''
  $('password').focus()
  $('sign-in-state').textContent = await why(answer)
}

async function why(answer) {
  if (!answer) return 'The server cannot be reached.'
  const problem = await answer.json().catch(() => null)
  const wait = answer.headers.get('Retry-After')
  if (answer.status === 429) return `Too many tries. Wait ${wait || 'some'} seconds, then try again.`
  if (problem?.code === 'wrong_sign_in') return 'This name and this password do not go together.'
  return problem ? `${problem.detail} (${problem.hint})` : 'Something went wrong; try again.'
}

async function signOut() {
  await ask(`${api}/sign-out`, { method: 'POST' })
  location.reload()
}

async function list(cursor) {
  const page = await ask(`${api}/sessions?limit=30${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`)
  if (!page) return
  if (!cursor) $('sessions').replaceChildren()
  for (const session of page.items) {
    const button = document.createElement('button')
    button.type = 'button'
    button.textContent = session.title || session.id.slice(-6)
    button.setAttribute('aria-current', String(shown?.session === session.id))
    const small = document.createElement('small')
    const when = new Date(session.touched_at).toLocaleString()
    small.textContent = `${session.agent}, ${session.awake ? 'working' : when}${session.pending ? `, ${session.pending} pending` : ''}`
    button.append(small)
    button.addEventListener('click', () => open(session))
    const item = document.createElement('li')
    item.append(button)
    $('sessions').append(item)
  }
  $('more').hidden = !page.next
  $('more').dataset.cursor = page.next || ''
}

// A conversation of this browser that nobody has said anything in yet.
function begin() {
  const chat = crypto.getRandomValues(new Uint32Array(2)).join('')
  show({ session: null, conversation: `web:${escapePart(me.handle)}/${chat}` }, 'New conversation')
}

function open(session) {
  show({ session: session.id, conversation: null }, session.title || session.id)
  follow()
}

function show(what, title) {
  shown?.stream?.close()
  shown = { ...what, stream: null, parts: new Map() }
  setRunning(null)
  $('title').textContent = title
  $('state').textContent = ''
  $('log').replaceChildren()
}

async function say(submitted) {
  submitted.preventDefault()
  const here = shown
  const to = here.session ? { session: here.session } : { conversation: here.conversation }
  const receipt = await ask(`${api}/messages`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': newKey() },
    body: JSON.stringify({ to, text: $('words').value }),
  })
  if (!receipt) return
  $('words').value = ''
  if (here.session || here !== shown) return
  here.session = receipt.session
  $('title').textContent = receipt.session
  follow()
}

async function stop() {
  if (running) await ask(`${api}/messages/${running}/stop`, { method: 'POST', headers: { 'Idempotency-Key': newKey() } })
}

// The browser reconnects by itself and sends the last number it has, so nothing is missed or shown twice.
function follow() {
  const here = shown
  here.stream = new EventSource(`${api}/sessions/${here.session}/facts?after=0`)
  here.stream.addEventListener('message', (event) => fact(here, JSON.parse(event.data)))
  here.stream.addEventListener('live', (event) => words(here, JSON.parse(event.data)))
  here.stream.addEventListener('error', () => { $('state').textContent = 'reconnecting …' })
  here.stream.addEventListener('open', () => { $('state').textContent = '' })
}

async function fact(here, fact) {
  switch (fact.type) {
    case 'queued': return person(here, fact.message)
    case 'text': return words(here, { ...fact, kind: 'text' })
    case 'turn_started': return setRunning(fact.message)
    case 'tool_call': return line('note', `uses ${fact.tool}: ${fact.input}`)
    case 'question': return line('note', `asks for ${fact.tool}: ${fact.detail} (homing approve ${fact.approval})`)
    case 'notice': return line('note', fact.text)
    case 'held': return line('note', `a message is held: ${fact.why}`)
    case 'turn_ended':
      setRunning(null)
      return fact.outcome === 'answered' ? undefined : line('note', `the turn ended: ${fact.outcome} ${fact.failure || ''}`)
    case 'ended': return line('note', 'this session has ended; begin a new conversation')
    default: // Everything else is for other readers; the place is kept all the same.
  }
}

async function person(here, message) {
  const item = line('person', '…')
  const receipt = await ask(`${api}/messages/${message}?words=true`)
  if (receipt && here === shown) item.textContent = receipt.text
}

// Words come live first and as facts later, with the same turn, part and offset (in bytes): what is there already is
// not added again.
function words(here, said) {
  if (said.kind !== 'text') return
  const key = `${said.turn}/${said.part}`
  let part = here.parts.get(key)
  if (!part) here.parts.set(key, (part = { item: line('agent', ''), length: 0 }))
  const bytes = new TextEncoder().encode(said.text)
  const known = part.length - said.offset
  if (known < 0 || known >= bytes.length) return
  part.item.textContent += new TextDecoder().decode(bytes.slice(known))
  part.length = said.offset + bytes.length
}

function line(kind, text) {
  const item = document.createElement('li')
  item.className = kind
  item.textContent = text
  $('log').append(item)
  return item
}

function setRunning(message) {
  running = message
  $('stop').hidden = !message
}

// The answer, or nothing, and what to do is on the page.
async function ask(path, init) {
  const answer = await fetch(path, init).catch(() => null)
  if (!answer) {
    $('state').textContent = 'the server cannot be reached'
    return null
  }
  const body = await answer.json()
  if (answer.ok) return body
  $('state').textContent = `${body.detail} (${body.hint})`
  return null
}

function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

// As addresses are spelt: everything but letters, digits and . _ ~ - as % and two upper-case hex digits.
function escapePart(text) {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}
