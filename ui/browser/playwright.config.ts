// How the app is tried in a real browser: the system's own Chromium, against the real program, with the server's own policy.
//
// `cargo xtask test --only browser` runs this; by hand it is `npm run browser` after `cargo build -p homing`. What it leaves for people
// to look at is in `target/browser`: the report, the last picture of each test that failed, and pictures of the screens.
import { defineConfig } from '@playwright/test'
import { fileURLToPath } from 'node:url'

const left = process.env.HOMING_BROWSER_LEFT ?? fileURLToPath(new URL('../../target/browser', import.meta.url))

export default defineConfig({
  testDir: '.',
  outputDir: `${left}/failed`,
  // Two processors: one test measures nothing that another one spoils, but its server and its browser are two already.
  workers: Number(process.env.HOMING_BROWSER_WORKERS ?? 1),
  // No test may hang the command.
  timeout: Number(process.env.HOMING_BROWSER_TIMEOUT_MS ?? 60_000),
  expect: { timeout: 10_000 },
  forbidOnly: true,
  // On somebody else's machine, where there is noise, a test may fail once. Here it may not.
  retries: process.env.CI && process.env.CI !== 'false' ? 1 : 0,
  reporter: [['list'], ['junit', { outputFile: `${left}/junit.xml`, includeRetries: true }]],
  use: {
    browserName: 'chromium',
    viewport: { width: 1280, height: 800 },
    locale: 'en-GB',
    timezoneId: 'UTC',
    // By hand: `npm run browser -- still --trace on`. It would be half of the work of a page otherwise.
    trace: 'on-first-retry',
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: process.env.HOMING_CHROMIUM ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
    },
  },
})
