//! The rules of Homing and nothing else.
//!
//! Read in this order: `id` and `fence` (the names of things), `address` and `route` (which session a message belongs
//! to), `access`, `rules`, `approval` and `people` (who may, and who may change that), `session`, `scope` and `request`
//! (what a session is, where, and what is asked of it; `ground_path` for where), then `decide`, `evolve` and
//! `due` (what happens to it) and `readiness` (whether it can go on).
//! There is no clock, no randomness, no I/O and no serialization here; `no_std` lets the compiler check that.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod address;
mod approval;
mod decide;
mod due;
mod evolve;
mod failure;
mod fence;
mod ground_path;
mod id;
pub mod people;
mod readiness;
mod request;
mod route;
mod rules;
mod scope;
mod session;
mod tree_name;
mod worktree;

pub use access::{
    Act, Authorized, Denied, DoorAddress, Fresh, Grant, Grantee, OrgAct, Principal, Record, Right, Rights,
    Role, address_space, agent_grant_of, authorize, authorize_address, authorize_new, authorize_org,
    authorize_right, grant_as, grant_of, is_under,
};
pub use address::{ADDRESS_PARTS_MAX, Address, NotAnAddress, PART_BYTES_MAX, Part, SCHEME_BYTES_MAX, Scheme};
pub use approval::{Answer, Answerer, ApprovalForm, ApprovalTerms, TurnApproval};
pub use due::{Begin, Claim, Due, Run, Step};
pub use failure::{Failure, Native};
pub use fence::{Attempt, Epoch, Fence, Moment, Number, Term, Turn};
pub use ground_path::GroundPath;
pub use id::{
    ApprovalId, GroupId, MessageId, NodeId, NotAnId, OrgId, PersonId, RequestId, RuleId, SessionId, TokenId,
};
pub use readiness::{
    Look, PartName, PartState, PartWhy, Readiness, ReadinessPart, Remedy, Seen, Trouble, readiness,
    readiness_parts,
};
pub use request::{Remember, Request, Subject};
pub use route::{Ambiguous, EndWhy, Found, Named, NoRoute, Previous, Route, To, meant, route};
pub use rules::{ApprovalSubject, Effect, Judgement, Rule, judge, may_answer};
pub use scope::{
    Away, Change, Errand, ErrandKind, Origin, Pending, Return, Scope, Setting, UndoFiles, What, Worktree,
};
pub use session::{
    AfterFailure, Command, Delivery, Fact, Given, HoldWhy, KeptWhy, Known, Life, Outcome, Policy, Refusal,
    RefusedWhy, Report, ReportKind, Running, Session, Slot, Stage, StopWhy, Unattended, Waiting, Work,
};
pub use tree_name::TreeName;
pub use worktree::{BadWorktree, Chore, MergeHow, NewWorktree, WORKTREE_NAME_BYTES_MAX, is_worktree_name};
