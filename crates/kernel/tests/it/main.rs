//! The kernel's promises, told as stories.
//!
//! Read `stories` first, then `scope_stories`: each test is one promise. `story` is the language they are told in, `words`
//! what comes of each step, `ledger` the promises that hold after every step of every story, wherever it comes from.
//! `exhaustive` tells every short story, `random` long ones, and compares them with `model`, which was written from the
//! laws. The other files are tables: who may (`access`, `rules`, `people`), which session (`route`), which text (`address`), whether it
//! can go on (`readiness`).

mod access;
mod address;
mod exhaustive;
mod ledger;
mod model;
mod people;
mod random;
mod readiness;
mod route;
mod rules;
mod scope_stories;
mod stories;
mod story;
mod words;
