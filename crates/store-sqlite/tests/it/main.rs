//! The SQLite store on trial: the suite every store must pass, then what only a store on a disk can get wrong.

mod conformance;
mod world;
