// For svelte-check and editors; the build reads the same from vite.config.ts.
import { vitePreprocess } from '@sveltejs/vite-plugin-svelte'

export default { preprocess: vitePreprocess({ style: false }) }
