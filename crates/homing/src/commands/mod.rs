//! One file per command: its arguments, whose doc comments are the help, and what it does.

pub(crate) mod agents;
pub(crate) mod approve;
pub(crate) mod backup;
pub(crate) mod bindings;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod end;
pub(crate) mod log;
pub(crate) mod ls;
pub(crate) mod nodes;
pub(crate) mod queue;
pub(crate) mod restore;
pub(crate) mod route;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod stop;
pub(crate) mod up;
