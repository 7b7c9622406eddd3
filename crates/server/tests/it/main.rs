//! The door from outside: a real server on a free port, over the real engine, the memory store and the scripted agent.

extern crate homing_server as server;

mod accounts;
mod app;
mod approvals;
mod attachments;
mod bad;
mod browser;
mod contract;
mod deputy;
mod forked;
mod glance;
#[path = "../../../engine/tests/it/grove.rs"]
mod grove;
mod imported;
mod matrix;
mod middleware;
mod outbox;
mod paces;
mod people;
mod pushes;
mod readiness;
mod refused_reads;
mod revoked;
mod rounds;
mod scope;
mod sign_in;
mod streams;
mod timeline;
mod tls;
mod town;
mod twins;
mod vouched;
mod world;
