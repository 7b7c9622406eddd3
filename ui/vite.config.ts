// How the app is built and tried.
//
// Names: nothing in dist has a hash in its name. `app.js`, `app.css` and one chunk for each lazily loaded page are called after
// their modules, so that a rebuild of one page changes one file. The server serves dist below `/ui/HASH/`, where HASH is of the
// whole build, as immutable.
//
// Addresses: index.html is served at `/` and at the address of every page. It names its files as `/ui/@/app.js`; the server puts
// the build's hash in place of the `@`. Files name each other relatively (`./settings.js`), which holds below any path.
//
// Trying it: `HOMING_URL=http://127.0.0.1:PORT npm run dev` passes /api on to a running server. That server checks Host and
// Origin, so both are told to it as its own.
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vitest/config'
import { createHash } from 'node:crypto'

const server = process.env.HOMING_URL ?? 'http://127.0.0.1:4747'

export default defineConfig(({ command }) => ({
  plugins: [
    svelte({
      compilerOptions: command === 'build' ? {
        // Svelte's own class names hash the file's path; the name of the file and its words make the same bytes in any checkout.
        cssHash: ({ css }) => `h${createHash('sha256').update(css).digest('hex').slice(0, 7)}`,
      } : {},
    }),
  ],
  base: command === 'build' ? '/ui/@/' : '/',
  experimental: {
    renderBuiltUrl: (filename, { hostType }) => (hostType === 'html' ? `/ui/@/${filename}` : { relative: true }),
  },
  build: {
    target: 'es2022',
    outDir: 'dist',
    // One style sheet: a page's styles are small, and none of them arrives after its page.
    cssCodeSplit: false,
    // index.html names what app.js imports at once, so that both come together; pages need nothing but themselves.
    modulePreload: { polyfill: false, resolveDependencies: (_, dependencies, { hostType }) => (hostType === 'html' ? dependencies : []) },
    // Nothing becomes a data: address; the policy allows them for images alone.
    assetsInlineLimit: 0,
    reportCompressedSize: true,
    rolldownOptions: {
      // The service worker is a program of its own: the server serves it at the top, because it answers for every page.
      input: { app: 'index.html', service_worker: 'src/push/service_worker.ts' },
      output: {
        entryFileNames: ({ name }) => (name === 'service_worker' ? 'service_worker.js' : 'app.js'),
        chunkFileNames: '[name].js',
        assetFileNames: ({ names }) => (names.some((name) => name.endsWith('.css')) ? 'app.css' : '[name][extname]'),
      },
    },
  },
  worker: {
    format: 'es',
    rolldownOptions: { output: { entryFileNames: '[name].js', chunkFileNames: '[name].js' } },
  },
  server: {
    host: '127.0.0.1',
    proxy: {
      '/api': {
        target: server,
        changeOrigin: true,
        configure: (proxy) => proxy.on('proxyReq', (asked) => asked.getHeader('origin') && asked.setHeader('origin', new URL(server).origin)),
      },
    },
  },
  resolve: process.env.VITEST ? { conditions: ['browser'] } : {},
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
}))
