//! Carries messages in and facts out.
//!
//! Read in this order: `inbound` (what doors bring), `intake` (resolve → authorize → accept), `keeper` (drain, decide,
//! append, make the outside match), `turn` (one attempt of one agent), `fanout` and `view` (facts out). `lease` says
//! under which term a keeper works, `timer` turns due moments into inbox rows. The engine knows only ports: it names no
//! database, no agent and no HTTP.

mod accounts;
mod engine;
mod fanout;
mod inbound;
mod intake;
mod keeper;
mod lease;
mod ports;
mod roster;
mod story;
mod timer;
mod turn;
mod view;

pub use accounts::{AccountView, SECRET_BYTES_MAX};
pub use engine::{Engine, Limits, Wiring};
pub use fanout::{Live, Shared, Told};
pub use inbound::{
    CallerKey, Granted, IfNew, Inbound, KEY_BYTES_MAX, MODEL_BYTES_MAX, PARTS_MAX, Part, Receipt, Refused,
    TEXT_BYTES_MAX, TITLE_BYTES_MAX, Trace, Verb,
};
pub use intake::Made;
pub use ports::{Clock, Ground, Mint, Seal};
pub use roster::Lists;
pub use view::{AgentView, Explained, Follow, QueuedView, ReceiptView, WAIT_MAX};

// What views are made of, so that doors need not know the store.
pub use store::{
    Accepted, ApprovalRow, ApprovalState, BindingRow, Cause, Gauges, Head, NodeRow, ReceiptRow, ReceiptState,
    SessionRow, StoredEntry, StoredFact, TokenRow, Which,
};
// And what an `AgentView` says, so that they need not know the agents' port.
pub use agent::{Abilities, Choice, Found, MemoryMove, Setup, SignIn};
