//! Carries messages in and facts out.
//!
//! `engine` starts a node and gives its handles: `WayIn`, `Views`, `People`, `Worktrees`; `errors` is what each of them refuses.
//!
//! Read in this order: `inbound` (what doors bring), `intake` (resolve → authorize → accept), `keeper` (drain, decide,
//! append, make the outside match), `turn` (one attempt of one agent), `errand` (what is done outside between turns), `background` (what turns leave running),
//! `fanout`, `view` and `follow` (facts out), `export` (a whole conversation out), `look` (what is only looked up outside), `ground_rights` (for whom), `worktrees` (what
//! becomes of them when nobody is in them), `doors` (replies out through doors that do not read the log), `pushes` (what people are told on their devices). `cluster` is the
//! port for whatever crosses sessions or nodes, `node` what this node does for it. `approvals` is what agents ask. `people` is
//! who may do what, and how it changes. `lease` says under which term a keeper works, `timer` turns due moments into inbox
//! rows, `slash_command` knows the commands of agents, `sealer` chains the audit, `refused_reads` writes into it who tried to read what is not theirs. The engine knows only
//! ports: it names no database, no agent and no HTTP.

mod accounts;
mod approvals;
mod attached;
mod background;
mod changes;
mod cluster;
pub mod doors;
mod engine;
mod engine_ports;
mod errand;
mod errors;
mod export;
mod fanout;
mod follow;
mod follow_all;
mod follow_heads;
mod follow_rows;
mod ground_rights;
mod inbound;
mod indexer;
mod intake;
mod keeper;
mod lease;
mod look;
mod merged_tree;
mod node;
mod old_snapshots;
mod own_word;
mod people;
mod ports;
mod progress;
mod pushes;
mod ready;
mod refused_reads;
mod roster;
mod runner_ports;
mod script_room;
mod sealer;
mod shared_looks;
mod slash_command;
mod snapshot_room;
mod story;
mod tasks;
mod timeline;
mod timer;
mod transcript;
mod tree_room;
mod turn;
mod view;
mod wait;
mod worktrees;

pub use accounts::{AccountView, SECRET_BYTES_MAX};
pub use approvals::{ApprovalOption, ApprovalView, ApprovalWords, Settled};
pub use attached::{
    ATTACHED_BYTES_MAX, ATTACHMENT_NAME_BYTES_MAX, AttachedFile, AttachedKind, AttachmentView,
    MEDIA_TYPE_BYTES_MAX,
};
pub use cluster::{Cluster, ClusterReply, Happened, LocalCluster, Node, Ring};
pub use doors::{Arrived, Delivered, Door, DoorReply, OutgoingReply, ReadBack, ReplyWords};
pub use engine::{Collecting, Engine, Limits, Wiring};
pub use errors::{
    AccessError, BadDirectory, ConflictError, InvalidError, PeopleError, ScopeError, Taken, UnavailableError,
    ViewError, WayInError, WorktreeError, right_word,
};
pub use export::{
    Export, LeftOut, PAST_BYTES_MAX, PAST_KINDS, PAST_SAID_MAX, PAST_STORIES_MAX, PAST_TURNS_MAX, PastStory,
    PastTurn, PastWords,
};
pub use fanout::{LiveWords, SessionUpdate, SharedFact};
pub use follow::{Follow, FollowUpdate, ReadyFollow};
pub use follow_all::{BrowserUpdate, FollowAll, WATCHES_MAX};
pub use follow_heads::FollowHeads;
pub use inbound::{
    CallerKey, Granted, IfNew, Inbound, KEY_BYTES_MAX, MESSAGE_TEXT_BYTES_MAX, MODEL_BYTES_MAX, MessagePart,
    PARTS_MAX, Receipt, TITLE_BYTES_MAX, Trace,
};
pub use intake::{Made, WayIn};
pub use look::{FILES_MAX, Look, LookResult};
pub use own_word::{OwnWord, SessionCost};
pub use people::{
    AddPerson, AuditWish, Broken, ChainCheck, DiskView, Expiry, LinkSecret, MakeOrg, MakeToken, MeView,
    NAME_BYTES_MAX, NewRule, PASSWORD_LENGTH, People, PersonChange, Secret, SignInFor, Signed, Vouched,
    hash_of,
};
pub use ports::{
    CallBack, CallBackError, Clock, EnteredTree, Ground, GroundError, MergeObstacle, MergedTree, Mint,
    NoGround, NoTrees, OwnedSession, PatchPlace, Proof, RemovedTree, Scripts, Seal, SealError, SeenTrees,
    SnapshotShare, SnapshotStoreSeen, TreeChange, TreeChanges, TreeFiles, TreeMove, TreePatch, TreeReply,
    TreeSeen, TreeSinceBase, Trees, TreesError, UndoPreview, UndoStep, UndoneTurn, WallProver,
};
pub use progress::{ProgressUpdate, SessionProgress, WorkPhase, WorkProgress};
pub use pushes::{OutgoingPush, PushPort, PushReply, Pushed};
pub use ready::{Neighbour, ReadyView, remedy_words};
pub use roster::Lists;
pub use timeline::{SaidView, TurnView};
pub use view::{
    AgentView, Explained, FoundWords, QueuedView, ReceiptView, RouteChoice, Views, WAIT_MAX, who_changed,
};
pub use wait::{Wait, WaitWhy};
pub use worktrees::{ChoreOutcome, CollectReason, CollectedTree, WORKTREES_MAX, Worktrees, WorktreesView};

// What views are made of, so that doors need not know the store.
pub use store::{
    Accepted, ApprovalRow, ApprovalState, AuditRow, BindingRow, Cause, ChainHead, ChainKey, Day, DiskTotals,
    Doing, Expected, Gauges, GrantRow, GroupRow, Hand, Head, LastTurn, LoginRow, Marks, Need, NewOrg,
    NewPerson, NodeRow, OfferRow, OrgRow, OrgSettings, Outgoing, OutgoingKind, OutgoingState, PassageKind,
    PersonRow, Purpose, PushPlace, PushRow, ReceiptRow, ReceiptState, Resource, RootRow, RuleEffect, RuleRow,
    SessionCounts, SessionFilter, SessionRow, StoredEntry, StoredFact, Thing, TitleBy, TokenRow, TokenView,
    UsageRow, UsageSum, Wanted, Which, WhichApprovals,
};
// And what an `AgentView` says, so that they need not know the agents' port.
pub use agent::{
    Abilities, Background, BackgroundProcess, Choice, FilesTaken, MemoryMove, Presence, Setup, SignIn,
    TriedVersions, VersionAge,
};
