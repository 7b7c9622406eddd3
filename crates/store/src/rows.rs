//! Rows that are read back from a store: for lists, receipts, facts.

use crate::last::LastTurn;
use crate::marks::Marks;
use crate::project::HANDED_OVER;
use crate::search::SessionFilter;
use bytes::Bytes;
use kernel::{
    Address, Answer, Answerer, ApprovalId, ApprovalTerms, Delivery, EndWhy, Epoch, Fact, Grant, GroundPath,
    GroupId, MessageId, Moment, NodeId, Number, OrgId, Origin, PersonId, Principal, Record, Role, Scope,
    SessionId, Term, Turn, Worktree, grant_of,
};

/// Where a message stands. The last five are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum ReceiptState {
    Waiting,
    Held,
    Running,
    Answered,
    Failed,
    Stopped,
    Withdrawn,
    Refused,
}

impl ReceiptState {
    /// True if it can never change again.
    pub fn is_final(self) -> bool {
        match self {
            Self::Waiting | Self::Held | Self::Running => false,
            Self::Answered | Self::Failed | Self::Stopped | Self::Withdrawn | Self::Refused => true,
        }
    }
}

/// A message with what a list of messages shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedRow {
    pub receipt: ReceiptRow,
    /// The handle of its sender.
    pub sender: Option<String>,
    /// Its words as they were encoded; none if there are more of them than was asked for, or none any more.
    pub words: Option<Bytes>,
    /// The words about each of its attachments, in their order.
    pub attachments: Vec<Bytes>,
}

/// A turn, with the message that it began with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRow {
    /// Its numbers are those of the turn's first and last fact. What goes along with the message is not in it.
    pub message: QueuedRow,
    /// When the turn began.
    pub began_at: Moment,
}

/// The receipt of a message, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptRow {
    pub message: MessageId,
    pub session: SessionId,
    pub by: PersonId,
    pub state: ReceiptState,
    /// A stable word for why it is held, failed or refused: `after_failure`, `gone`, `interrupted` …
    pub why: Option<&'static str>,
    pub revision: u32,
    /// The delivery that its sender wanted.
    pub delivery: Delivery,
    /// The epoch of the scope that it was written for; none until the keeper has seen it.
    pub epoch: Option<Epoch>,
    pub turn: Option<Turn>,
    /// The number of the fact that started its turn.
    pub first: Option<Number>,
    /// The number of the fact that ended it.
    pub last: Option<Number>,
    pub reply: Option<Address>,
    pub created: bool,
    pub previous: Option<kernel::Previous>,
    pub if_new_ignored: bool,
    /// Nobody sits in front of it: its sender said so.
    pub unattended: bool,
    /// The door by which it came in; none if it came along with its session from elsewhere.
    pub door: Option<String>,
    pub accepted_at: Moment,
    /// When the last change of its state happened.
    pub changed_at: Moment,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub session: SessionId,
    pub org: OrgId,
    pub owner: PersonId,
    pub title: Option<String>,
    /// The one who gave it its title, if it has one.
    pub title_by: Option<TitleBy>,
    /// Where and how it acts now.
    pub scope: Scope,
    pub epoch: Epoch,
    /// Of which session it is a fork.
    pub origin: Option<Origin>,
    /// Its origin elsewhere, if it was brought here.
    pub import: Option<Import>,
    pub ended: Option<EndWhy>,
    pub archived: bool,
    /// True if a turn is under way.
    pub awake: bool,
    /// Messages that are not final.
    pub pending: u32,
    /// Those of them that are held.
    pub held: u32,
    /// Questions of the agent that are open.
    pub questions: u32,
    /// The last turn that is over.
    pub last: Option<LastTurn>,
    /// The number of the last fact.
    pub at: Number,
    pub made_at: Moment,
    /// When something was last said in it, by a person or (at the end of a turn) by the agent.
    pub touched_at: Moment,
    /// The strongest grant of whoever asked for this row; none where nobody in particular did.
    pub may: Option<Grant>,
    /// Their own marks on it.
    pub marks: Marks,
}

/// The one who gave a session its title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TitleBy {
    /// A person. It is theirs to change, and nobody else does.
    Person,
    /// Its agent.
    Agent,
    /// Nobody: these are the first words that were said in it.
    Words,
}

/// The origin of a session elsewhere, as the file says that it was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The id that it had there.
    pub id: SessionId,
    /// The org that it was in.
    pub org: String,
}

/// An open session that acts in a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeRow {
    pub org: OrgId,
    pub session: SessionId,
    /// The name of the worktree.
    pub name: String,
    /// Where the session acts in it.
    pub directory: GroundPath,
    /// Where it goes back to.
    pub home: GroundPath,
}

impl WorktreeRow {
    /// The row of a session that acts so, if it is in a worktree.
    pub fn of(org: OrgId, session: SessionId, scope: &Scope) -> Option<Self> {
        let Worktree { name, home, .. } = scope.worktree.clone()?;
        Some(Self { org, session, name, directory: scope.directory.clone(), home })
    }
}

/// The choice of the sessions that a list shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionsQuery {
    pub by: Seer,
    pub which: Which,
    pub filter: SessionFilter,
    /// Continue after this row of the page before.
    pub after: Option<(Moment, SessionId)>,
    pub limit: usize,
}

/// The choice of the sessions that a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Open and not archived, unless the archived ones are asked for.
    Open,
    /// Ended and not archived, unless the archived ones are asked for.
    Ended,
    /// Everything, the archived ones too.
    All,
}

/// A fact as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFact {
    pub number: Number,
    pub at: Moment,
    pub cause: crate::Cause,
    pub entry: StoredEntry,
}

/// The two sorts of facts, and what became of forgotten words.
// A page of them is short-lived; one more allocation per fact would cost more than the room.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredEntry {
    Rule(Fact),
    /// `body` is none when the words were forgotten.
    Story {
        turn: Turn,
        kind: String,
        body: Option<Bytes>,
    },
}

/// A conversation and the open session that it is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingRow {
    pub address: Address,
    pub session: SessionId,
    pub since: Moment,
    /// The session that it was bound to before, if whoever asks may see that.
    pub before: Option<kernel::Previous>,
}

/// A question of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    pub approval: ApprovalId,
    pub session: SessionId,
    pub turn: Turn,
    pub state: ApprovalState,
    pub asked_at: Moment,
    pub until: Moment,
    /// The terms by which its answers are judged.
    pub terms: ApprovalTerms,
    /// Its words, encoded once; none if its words were forgotten, or it was asked before they were kept.
    pub words: Option<Bytes>,
    /// When it was answered, or lapsed; none while it is open, and of what was settled before this was kept.
    pub settled_at: Option<Moment>,
}

/// A choice of questions, and a page of them: the open ones the oldest first, others the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalsQuery {
    pub by: Seer,
    pub which: WhichApprovals,
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// Continue after this one of the page before.
    pub after: Option<(Moment, ApprovalId)>,
    pub limit: usize,
}

/// The questions that a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhichApprovals {
    /// Those that wait for somebody.
    Open,
    /// Those that were answered or have lapsed.
    Settled,
    /// Both.
    All,
}

impl ApprovalsQuery {
    /// The first page of the open ones in all sessions.
    pub fn open(by: Seer, limit: usize) -> Self {
        Self { by, which: WhichApprovals::Open, session: None, after: None, limit }
    }

    /// True if the list has this one, on whatever page.
    pub fn shows(&self, row: &ApprovalRow) -> bool {
        let is_open = row.state == ApprovalState::Open;
        let is_wanted = match self.which {
            WhichApprovals::Open => is_open,
            WhichApprovals::Settled => !is_open,
            WhichApprovals::All => true,
        };
        is_wanted && self.session.is_none_or(|session| session == row.session)
    }

    /// True if the oldest come first.
    pub fn is_oldest_first(&self) -> bool {
        self.which == WhichApprovals::Open
    }

    /// The page of these rows, all of which the list has: in its order, after what was on the page before, and each once.
    pub fn page(&self, mut rows: Vec<ApprovalRow>) -> Vec<ApprovalRow> {
        let place = |row: &ApprovalRow| (row.asked_at, row.approval);
        rows.retain(|row| {
            self.after.is_none_or(|after| {
                if self.is_oldest_first() { place(row) > after } else { place(row) < after }
            })
        });
        rows.sort_unstable_by_key(place);
        if !self.is_oldest_first() {
            rows.reverse();
        }
        rows.dedup_by_key(|row| row.approval);
        rows.truncate(self.limit);
        rows
    }
}

/// Where a question stands. All but the first are final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    Open,
    Answered { answer: Answer, by: Answerer },
    Lapsed,
}

/// The newest number of a session, and where that change stands among all changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub place: u64,
    pub session: SessionId,
    pub number: Number,
}

/// A session whose row in lists is another one than before, and where that change stands among all changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowChange {
    pub place: u64,
    pub session: SessionId,
    pub row: ChangedRow,
}

/// The row that a change has left, for whoever asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedRow {
    /// Its session has this as its newest number.
    At(Number),
    /// They may see it, and no fact says what is new about it.
    Other,
    /// There is none any more: they could see the session, and may not now.
    Gone,
}

impl From<Head> for RowChange {
    fn from(Head { place, session, number }: Head) -> Self {
        Self { place, session, row: ChangedRow::At(number) }
    }
}

/// For whom a list is made: the same as what `kernel::grant_of` looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seer {
    pub org: OrgId,
    pub person: PersonId,
    /// The ceiling of whatever they were given.
    pub role: Role,
    pub groups: Vec<GroupId>,
    /// The only session there is for them, if their credential is for one only.
    pub bound: Option<SessionId>,
}

impl Seer {
    /// The part of a principal that lists depend on.
    pub fn of(by: &Principal) -> Self {
        let bound = by.bound.map(|(session, _)| session);
        Self { org: by.org, person: by.person, role: by.role, groups: by.groups.clone(), bound }
    }

    /// The rule itself: a list shows what a read would. Grants to others make no difference.
    pub fn sees(&self, record: &Record) -> bool {
        self.grant_on(record).is_some()
    }

    /// The same with the strongest grant that they have.
    pub fn grant_on(&self, record: &Record) -> Option<Grant> {
        let bound = self.bound.map(|session| (session, Turn(0)));
        let (role, groups) = (self.role, self.groups.clone());
        let by = Principal { bound, role, groups, ..Principal::member(self.org, self.person, "") };
        grant_of(&by, record)
    }

    /// True if they said this, and it ended because its session became somebody else's: they are told so, although they see
    /// nothing else of it.
    pub fn lost(&self, record: &Record, sender: PersonId, why: Option<&str>) -> bool {
        let own = (self.org, self.person) == (record.org, sender) && self.bound.is_none();
        own && why == Some(HANDED_OVER)
    }
}

/// Something that is asked for by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    Session(SessionId),
    Message(MessageId),
    Approval(ApprovalId),
}

impl Thing {
    /// The thing of this id, if things of its kind can be read.
    pub fn parse(id: &str) -> Option<Self> {
        let session = || id.parse().map(Self::Session).ok();
        let message = || id.parse().map(Self::Message).ok();
        let approval = || id.parse().map(Self::Approval).ok();
        session().or_else(message).or_else(approval)
    }
}

/// Where something is, for the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whereabouts {
    /// The session that it is, or is in.
    pub session: SessionId,
    /// True if whoever asks may see it.
    pub is_seen: bool,
}

/// Something that was refused, for the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// None if nobody knows who it was: a sign-in that failed.
    pub by: Option<(OrgId, PersonId)>,
    /// The subject, as an id or a name.
    pub subject: Option<String>,
    pub trail: crate::Trail,
    /// The stable code of the refusal.
    pub refused: &'static str,
}

/// Somebody's own sign-in for an agent, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRow {
    /// The variables that are in it.
    pub names: Vec<String>,
    /// Their content, sealed.
    pub sealed: Bytes,
    /// When it was given.
    pub since: Moment,
}

/// A running copy of Homing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    pub node: NodeId,
    pub term: Term,
    pub host: String,
    pub pid: u32,
    pub since: Moment,
    pub url: Option<String>,
}

/// Figures about the store's own work since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Commits that reached the disk.
    pub commits: u64,
    /// Changes in them; more than one per commit is what group commit is for.
    pub changes: u64,
    /// Appends refused because of an old term.
    pub fenced: u64,
    /// Appends refused because of an old number.
    pub moved: u64,
}

/// The session that was found for a `To`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// As `kernel::route` wants it.
    pub found: kernel::Found,
    /// The record by which it is judged who may touch it.
    pub record: Option<kernel::Record>,
    /// The session that the conversation had before, if it is one and they may see that.
    pub before: Option<kernel::Previous>,
}
