//! The store room's own tests: the stored form of things, and the suite on the memory store.

extern crate homing_store as store;

mod memory;
mod record;
