//! Doors that replies leave by: the port, and how the engine empties the outbox through them.
//!
//! A door owns address schemes, and nobody else's credentials can use them. `drain` takes what is due for it: *sending* is
//! durable before the door is asked, in order per address, several addresses at a time. What nobody can tell whether it
//! arrived is read back where the service can be asked, and waits for a person where it cannot (`by_hand`). What was sent
//! long ago is forgotten. `conformance` is the suite that every door must pass.

mod by_hand;
pub mod conformance;
mod drain;

pub(crate) use drain::{Bell, start};

use crate::ApprovalWords;
use kernel::{Address, ApprovalId, MessageId, Scheme, SessionId};
use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;
use store::ReceiptState;

/// An answer of a door.
pub type DoorReply<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A way in and out with address schemes of its own.
pub trait Door: Debug + Send + Sync + 'static {
    /// Its name, in the audit and in logs.
    fn name(&self) -> &'static str;

    /// The schemes that it owns. What it hears comes in with these, and with no others; replies to them leave through it.
    fn schemes(&self) -> &'static [Scheme];

    /// Sends a reply. It may be dropped at any moment, and it may be called again for the same reply, if the one before was
    /// certainly not sent.
    fn deliver(&self, reply: OutgoingReply) -> DoorReply<'_, Delivered>;

    /// The way to ask the service whether it has something; none if it cannot be asked. Then nobody can say what became
    /// of a reply whose answer was lost, and a person has to.
    fn read_back(&self) -> Option<&dyn ReadBack>;
}

/// A service that can be asked what it has.
pub trait ReadBack: Send + Sync {
    /// Asks if this reply has arrived. *No* means that it never will, from any earlier try: the next one sends it
    /// again.
    fn arrived(&self, reply: OutgoingReply) -> DoorReply<'_, Arrived>;
}

/// A reply to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingReply {
    /// The same for each try: what the door recognises it by when it reads back.
    pub outgoing: u64,
    /// Where it goes.
    pub to: Address,
    /// The session.
    pub session: SessionId,
    /// The message that it replies to.
    pub message: MessageId,
    /// Its words.
    pub words: ReplyWords,
}

/// The words of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyWords {
    /// The message has reached this final state, and this was answered.
    Final { state: ReceiptState, answer: String },
    /// The agent asks; the words are none if they were forgotten.
    Question { approval: ApprovalId, words: Option<ApprovalWords> },
    /// There is no such message or question any more.
    Gone,
}

/// The door's report of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// The service has it, and calls it so.
    Sent { service_id: Option<String> },
    /// It may have been sent: the answer was lost.
    Unknown { reason: String },
    /// It was certainly not sent, and trying again would not help.
    Parked { reason: String },
    /// It was certainly not sent. Later, and not before so long if the service said so.
    Later { reason: String, after: Option<Duration> },
}

/// The service's answer when it is asked for a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrived {
    /// It has it, and calls it so.
    Yes { service_id: Option<String> },
    /// It has not got it, and will not.
    No,
    /// It does not say just now.
    NotNow { reason: String },
}
