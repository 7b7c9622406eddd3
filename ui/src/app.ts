// The way in: the style, then the app.
import './style/tokens.css'
import './style/base.css'
import { mount } from 'svelte'
import App from './App.svelte'
import { person } from './state/person.svelte'
import { router } from './state/router.svelte'
import { sessionState } from './state/session.svelte'

// Both at once: who is there, and what they are about to read.
void person.look()
if (router.place.page === 'session' && router.place.id) sessionState(router.place.id, null).prefetch()

mount(App, { target: document.body })
