// A real identity provider (npm's oidc-provider) on loopback, for tests. Every line on standard input is JSON that changes
// its settings, and is answered by a line; when standard input ends, so does this. The one thing that is not the
// provider's own is `tamper`: it forges the ID token of the next answers, as somebody would who stands in between.
import http from 'node:http'
import { createInterface } from 'node:readline'
import { createPublicKey } from 'node:crypto'
import * as oidc from 'oidc-provider'
import { SignJWT, UnsecuredJWT, decodeJwt, exportJWK, generateKeyPair, importJWK } from 'jose'

const Provider = oidc.Provider ?? oidc.default
const CLIENT = 'homing'
const settings = { algorithm: 'RS256', secret: 'a secret of two', redirects: [], people: {}, tamper: '', inToken: false, names: true }
let keys = 0
let key = null
let answer = null

const server = http.createServer((request, response) => {
  if (settings.tamper && request.method === 'POST' && request.url === '/token') tamper(response)
  answer(request, response)
})

server.listen(0, '127.0.0.1', async () => {
  await rotate()
  build()
  console.log(JSON.stringify({ issuer: issuer() }))
  for await (const line of createInterface({ input: process.stdin })) {
    const { rotate: wanted, ...changed } = JSON.parse(line)
    Object.assign(settings, changed)
    if (wanted || 'algorithm' in changed) await rotate()
    if (!('tamper' in changed)) build()
    console.log('{}')
  }
  process.exit(0)
})

// Another name than 127.0.0.1, so that it is another site to a browser.
function issuer() {
  return `http://localhost:${server.address().port}`
}

async function rotate() {
  const { privateKey } = await generateKeyPair(settings.algorithm, { extractable: true })
  key = { ...(await exportJWK(privateKey)), kid: `key-${++keys}`, alg: settings.algorithm, use: 'sig' }
}

function build() {
  const provider = new Provider(issuer(), {
    clients: [{
      client_id: CLIENT,
      client_secret: settings.secret,
      redirect_uris: settings.redirects,
      response_types: ['code'],
      grant_types: ['authorization_code'],
      id_token_signed_response_alg: settings.algorithm,
    }],
    jwks: { keys: [key] },
    cookies: { keys: ['for tests only'] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'preferred_username'] },
    conformIdTokenClaims: !settings.inToken,
    findAccount: (_, id) => settings.people[id] && { accountId: id, claims: () => ({ sub: id, ...settings.people[id] }) },
    ttl: { Session: 600, Interaction: 600, Grant: 600, AccessToken: 600, AuthorizationCode: 60, IdToken: 600 },
  })
  answer = provider.callback()
}

// The body of the answer is held back until its token is forged.
function tamper(response) {
  const end = response.end.bind(response)
  response.end = (body) => {
    forged(JSON.parse(body)).then((text) => {
      response.setHeader('content-length', Buffer.byteLength(text))
      end(text)
    })
    return response
  }
}

async function forged(said) {
  if (said.id_token) said.id_token = await forge(said.id_token)
  return JSON.stringify(said)
}

async function forge(token) {
  const claims = decodeJwt(token)
  const signed = async (changed, how = {}) => {
    const header = { alg: settings.algorithm, kid: key.kid, ...how.header }
    return new SignJWT({ ...claims, ...changed }).setProtectedHeader(header).sign(how.key ?? (await importJWK(key, settings.algorithm)))
  }
  const stranger = async () => (await generateKeyPair(settings.algorithm)).privateKey
  const now = Math.floor(Date.now() / 1000)
  switch (settings.tamper) {
    case 'nothing': return signed({})
    case 'nonce': return signed({ nonce: 'another' })
    case 'no nonce': return signed({ nonce: undefined })
    case 'audience': return signed({ aud: 'another' })
    case 'two audiences': return signed({ aud: [CLIENT, 'another'], azp: CLIENT })
    case 'party': return signed({ azp: 'another' })
    case 'issuer': return signed({ iss: 'https://id.example' })
    case 'expired': return signed({ iat: now - 7200, exp: now - 3600 })
    case 'another key': return signed({}, { key: await stranger() })
    case 'unknown key': return signed({}, { key: await stranger(), header: { kid: 'of nobody' } })
    case 'none': return new UnsecuredJWT(claims).encode()
    case 'hmac by secret': return signed({}, { header: { alg: 'HS256' }, key: new TextEncoder().encode(settings.secret) })
    case 'hmac by public key': {
      const pem = createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
      return signed({}, { header: { alg: 'HS256' }, key: new TextEncoder().encode(pem) })
    }
    case 'another subject': {
      const [header, , signature] = token.split('.')
      return [header, Buffer.from(JSON.stringify({ ...claims, sub: 'ann' })).toString('base64url'), signature].join('.')
    }
    case 'no token': return undefined
    default: throw new Error(`nobody knows how to tamper with ${settings.tamper}`)
  }
}
