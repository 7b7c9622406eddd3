//! The SQLite store on trial: the suite every store must pass, then what only a store on a disk can get wrong.

mod audit;
mod backups;
mod changes;
mod conformance;
mod full;
mod groups;
mod keys;
mod kill;
mod opening;
mod outbox;
mod power;
mod shim;
mod upgrade;
mod upgrade_scope;
mod world;
