//! The wire: what a request, an answer, a fact and a problem look like outside the process, and the client.
//!
//! Read in this order: `message` (what is said and its receipt), `session`, `fact` (the log as readers see it), `person`,
//! `grant` and `token` (who may do what), then the smaller resources; `problem` has every stable code there is. `client` speaks all of it for the command line. A type
//! here is a promise: fields are only ever added, and requests refuse fields they do not know. Nothing here knows how a
//! session works; the server converts.

mod address;
mod agent;
mod approval;
mod at;
mod audit;
mod binding;
mod bounds;
mod browser;
mod check;
pub mod client;
mod export;
mod fact;
mod grant;
mod group;
mod marks;
mod message;
mod node;
mod object;
mod org;
mod outbox;
mod page;
mod part;
mod person;
mod problem;
mod push;
mod queue;
mod route;
mod scope;
mod search;
mod secret;
mod session;
mod sign_in;
pub mod tls;
mod token;
mod turn;
mod usage;
mod waiting;
mod wall;
mod worktree;

pub use address::Address;
pub use agent::{
    Abilities, Account, Agent, FilesTaken, MemoryMove, NewAccount, SignIn, TriedVersions, VersionAge,
};
pub use approval::{
    Answer, AnsweredBefore, Approval, ApprovalAnswer, ApprovalState, ApprovalsQuery, ApprovalsState, NewRule,
    OnlyThese, QuestionForm, Remember, Rule, RuleEffect,
};
pub use at::{At, NotAMoment};
pub use audit::{AuditQuery, Broken, ChainHead, Entry, Verified};
pub use binding::{Binding, Move};
pub use bounds::*;
pub use browser::{
    BrowserBegan, BrowserFact, BrowserGone, BrowserLive, BrowserProgress, BrowserQuery, BrowserReadiness,
    BrowserSession,
};
pub use export::{
    EXPORT_FORMAT, EXPORT_TYPE, EXPORT_VERSION, ExportEnd, ExportHeader, ExportLine, ExportStory, ExportTurn,
    ExportWords, ImportQuery, LeftOut,
};
pub use fact::{
    About, Choice, EndWhy, Fact, Facts, Failure, Fence, Head, Imported, Launched, Live, Outcome, PlanStep,
    RuleFact, SaidMessage, SaidThere, Story, StoryFact, Usage, What,
};
pub use grant::{
    Grant, Granted, Grantee, GranteeQuery, NewGrant, Offer, Root, RootQuery, TakenBack, ToGroup, ToOrg,
    ToUser,
};
pub use group::{Group, Membership, NewGroup};
pub use marks::{Marks, MarksChange};
pub use message::{
    DeliverNow, Delivery, DeliveryNow, EditParts, EditText, Expect, Hold, Links, MessageChange, MessageQuery,
    NewMessage, Previous, Receipt, ReceiptState, SayParts, SayText, To, ToConversation, ToNew, ToSession,
};
pub use node::{DoctorFinding, DoctorFindings, FindingState, Node, RunningProgram};
pub use object::object;
pub use org::{MadeOrg, NewOrg, NewOwner, Org, OrgChange, OrgSettings};
pub use outbox::{OutboxQuery, Outgoing, OutgoingState};
pub use page::{FactsQuery, Page, PageQuery};
pub use part::{Attached, AttachedKind, Base64, FileContent, IMAGE_TYPES, Part};
pub use person::{
    AddedPerson, Bound, DiskUse, Done, HandOver, Link, Me, MyChange, NewPassword, NewPerson, PeopleQuery,
    Person, PersonChange, Right, Role, Who,
};
pub use problem::{Code, FilesInTheWay, Invalid, Problem, TouchedSince, UnsureChanges};
pub use push::{NewPush, Push, PushKeys, Pushes};
pub use queue::{Order, Queue, Queued};
pub use route::{Explained, RouteQuery};
pub use scope::{
    Changes, ChangesQuery, DiffQuery, EnterWorktree, FileChange, FileChangesQuery, FilePatch, NewFork,
    Origin, OwnWorktree, Readiness, Ready, ReadyPart, RedoTurn, RepositoryMove, Scope, ScopeChange,
    ScopeEnter, ScopeExit, ScopeRelink, ScopeRequest, ScopeSet, ScopeSetting, ScopeWorktree, UndoFile,
    UndoPreview, UndoTurn,
};
pub use search::{Hit, HitKind, SearchQuery};
pub use secret::Secret;
pub use session::{
    Background, BackgroundProcess, Doing, IfNew, LastTurn, Made, Need, NewSession, OwnWord, Progress,
    Session, SessionChange, SessionCounts, SessionState, SessionsQuery, StoppedBackground, TitleBy, Which,
};
pub use sign_in::{LinkSignIn, NewSignIn, PasswordSignIn, SignInFor, SignInWays, SignedIn};
pub use token::{Expiry, MadeToken, NewToken, Purpose, Token, TokensQuery};
pub use turn::{TurnSummary, Turns, TurnsQuery};
pub use usage::{UsageOfDay, UsageOfDays, UsageQuery, day_text};
pub use waiting::Waiting;
pub use wall::Wall;
pub use worktree::{
    Choices, CollectWorktrees, CollectedWorktree, CollectedWorktrees, Directories, DirectoriesQuery, Files,
    MergeWorktree, MergedWorktree, RemoveWorktreeQuery, RemovedWorktree, RestoreWorktree, Worktree,
    WorktreeChanges, WorktreeFileQuery, Worktrees, WorktreesQuery, is_worktree_name,
};
