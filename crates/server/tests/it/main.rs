//! The door from outside: a real server on a free port, over the real engine, the memory store and the scripted agent.

extern crate homing_server as server;

mod accounts;
mod bad;
mod contract;
mod gate;
mod paces;
mod rounds;
mod streams;
mod tls;
mod world;
