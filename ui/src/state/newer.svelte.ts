// Whether the server has another build of this page by now: looked up after every new connection, because a server that was
// replaced has cut the old one. It is said; and the page is loaded anew once nothing is being written and nobody looks, or at once
// if somebody says so.
import { outgoing } from './outgoing.svelte'
import { isWriting } from './writing'

const BUILD = /\/ui\/([^/"']+)\/app\.js/

class Build {
  isNewer = $state(false)
  readonly #mine = BUILD.exec(import.meta.url)?.[1] ?? null

  async look(): Promise<void> {
    if (!this.#mine || this.isNewer) return
    const page = await fetch('/', { cache: 'no-store' }).then((answer) => (answer.ok ? answer.text() : ''), () => '')
    const theirs = BUILD.exec(page)?.[1]
    if (theirs === undefined || theirs === this.#mine) return
    this.isNewer = true
    document.addEventListener('visibilitychange', () => this.#reloadUnseen())
    this.#reloadUnseen()
  }

  #reloadUnseen(): void {
    if (document.hidden && !outgoing.all.some((one) => one.state !== 'taken') && !isWriting()) location.reload()
  }
}

export const build = new Build()
