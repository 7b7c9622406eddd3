// The way in: the style, then the app.
import './style/tokens.css'
import './style/base.css'
import { mount } from 'svelte'
import App from './App.svelte'

mount(App, { target: document.body })
