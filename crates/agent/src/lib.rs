//! The port of agents: what we need from one without naming it.
//!
//! Read in this order: `port` (the two traits a driver implements and the engine calls), `attachment` (what goes along with a message),
//! `event` (what an agent says), `background` (what its turns leave running), `versions` (those of its program that were tried),
//! `scripted` (an agent without a model, for tests
//! and demonstrations), `in_process` (the same agent without a process, for the simulation) and `conformance` (the
//! stories every driver must survive). Nothing here starts a process, and nothing here knows what a session's log is.

mod attachment;
mod background;
pub mod conformance;
mod event;
mod in_process;
mod port;
pub mod scripted;
mod versions;

pub use attachment::{ATTACHED_BYTES_MAX, Attachment, AttachmentKind, FilesTaken};
pub use background::{Background, BackgroundProcess, SessionNotices};
pub use event::{
    About, AgentEvent, CHOICES_MAX, Choice, DETAIL_BYTES_MAX, FileChangeKind, Form, NATIVE_BYTES_MAX,
    PlanStep, Progress, TEXT_BYTES_MAX, Trouble, Usage, bounded, pieces,
};
pub use in_process::{Did, House, HouseConfig, InProcess, Noted};
pub use port::{
    Abilities, Account, Agent, EndedLeftovers, Launch, MESSAGE_BYTES_MAX, MemoryMove, Message, Presence,
    QuestionAnswer, Reply, Running, Setup, SignIn, Steered, TreeEnd,
};
pub use versions::{TriedVersions, VersionAge};
// A part of the port's signatures.
pub use kernel::TreeName;
