//! The door from outside: a real server on a free port, over the real engine, the memory store and the scripted agent.

extern crate homing_server as server;

mod accounts;
//TMP mod bad;
//TMP mod contract;
//TMP mod gate;
//TMP mod rounds;
mod sign_in;
//TMP mod streams;
mod vouched;
mod world;
