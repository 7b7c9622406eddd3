// Makes the icons for home screens of icon.svg: `node scripts/icons.mjs`, after icon.svg has changed. What it writes is committed.
//
// Those with their own edge are as they stand in a tab. The others fill their square, so that a system may cut it into its own shape:
// what they show stays within the middle four fifths.
import { chromium } from '@playwright/test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const place = join(dirname(fileURLToPath(import.meta.url)), '..', 'public')
const plain = readFileSync(join(place, 'icon.svg'), 'utf8')
const full = plain.replace(/ rx="\d+"/, '').replace('<path ', '<path transform="translate(16 16) scale(0.78) translate(-16 -16)" ')
if (full === plain) throw new Error('icon.svg is drawn in another way: say here what fills its square')

const icons = [
  ['icon-192.png', plain, 192],
  ['icon-512.png', plain, 512],
  ['icon-180.png', full, 180],
  ['icon-maskable-512.png', full, 512],
]
const browser = await chromium.launch({ executablePath: process.env.HOMING_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
try {
  for (const [name, svg, size] of icons) {
    const page = await browser.newPage({ viewport: { width: size, height: size } })
    await page.setContent(`<style>body{margin:0}svg{display:block;width:${size}px;height:${size}px}</style>${svg}`)
    await page.screenshot({ path: join(place, name), omitBackground: true })
    await page.close()
  }
} finally {
  await browser.close()
}
