//! The contents of the memory store, and the small changes that several methods share.

use super::people::People;
use super::search::KeptPassage;
use crate::*;
use bytes::Bytes;
use kernel::{
    Claim, Fact, Grantee, MessageId, Moment, Number, OrgId, PersonId, Principal, Record, RequestId, Scope,
    SessionId, Term, Turn,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Everything a checker may want to look at, taken in one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Every session.
    pub sessions: BTreeMap<SessionId, SessionRow>,
    /// The whole log of each.
    pub facts: BTreeMap<SessionId, Vec<StoredFact>>,
    /// Items that wait for their keeper.
    pub inbox: BTreeMap<SessionId, Vec<InboxRow>>,
    /// Every message.
    pub receipts: BTreeMap<MessageId, ReceiptRow>,
    /// The open bindings, by org and address.
    pub bindings: Vec<(OrgId, BindingRow)>,
    /// The holders of each claim.
    pub claims: BTreeMap<Claim, BTreeSet<SessionId>>,
    /// The wake of each session.
    pub wakes: BTreeMap<SessionId, Moment>,
    /// The verdicts of the keepers on wishes.
    pub verdicts: BTreeMap<RequestId, Verdict>,
    /// Every reply.
    pub outbox: Vec<Outgoing>,
    /// Every audit entry, in order.
    pub audit: Vec<AuditRow>,
}

/// Org, address, and whose own it is; none is everybody's.
pub(super) type Place = (OrgId, String, Option<PersonId>);

pub(super) struct Contents {
    pub(super) node: NodeRow,
    pub(super) sessions: BTreeMap<SessionId, Kept>,
    pub(super) messages: BTreeMap<MessageId, MessageRow>,
    /// The open bindings; the address as its text, so that pages have the same order everywhere.
    pub(super) bound: BTreeMap<Place, BindingRow>,
    /// The sessions that were bound to this address before, the last one at the end.
    pub(super) bound_before: BTreeMap<Place, Vec<SessionId>>,
    pub(super) keys: BTreeMap<(OrgId, PersonId, &'static str, String), Remembered>,
    /// Words of edits that the keeper has not judged yet.
    pub(super) edits: BTreeMap<RequestId, Edit>,
    pub(super) verdicts: BTreeMap<RequestId, Verdict>,
    pub(super) claims: BTreeMap<Claim, BTreeSet<SessionId>>,
    pub(super) outbox: BTreeMap<u64, Outgoing>,
    pub(super) people: People,
    /// Turns that are over, each with the number of the fact that says so, until what was said in them can be found.
    pub(super) turns_over: VecDeque<(SessionId, Turn, Number)>,
    /// The passages that can be found; number N is at N - 1.
    pub(super) passages: Vec<KeptPassage>,
    /// The marks of each person.
    pub(super) marks: BTreeMap<(OrgId, PersonId, SessionId), Marks>,
    /// By org, person and agent.
    pub(super) accounts: BTreeMap<(OrgId, PersonId, String), AccountRow>,
    /// Entry number N is at N - 1.
    pub(super) audit: Vec<AuditRow>,
    /// Where each org's chain ends.
    pub(super) chains: BTreeMap<OrgId, ChainHead>,
    /// The number of each org's last audit entry.
    pub(super) entries: BTreeMap<OrgId, u64>,
    pub(super) gauges: Gauges,
    last_inbox_number: u64,
    pub(super) last_outgoing: u64,
    last_place: u64,
    /// The last place at which a row changed for somebody without any fact.
    pub(super) row_changes: BTreeMap<(PersonId, SessionId), u64>,
}

/// A session.
pub(super) struct Kept {
    /// Its grants are the ones in `given`.
    pub(super) record: Record,
    pub(super) given: BTreeMap<Grantee, GrantRow>,
    pub(super) title: Option<Titled>,
    pub(super) scope: Scope,
    pub(super) origin: Option<kernel::Origin>,
    /// Its origin elsewhere, and the person who brought it here.
    pub(super) import: Option<(Import, PersonId)>,
    pub(super) enter: Option<kernel::NewWorktree>,
    pub(super) archived: bool,
    pub(super) made_at: Moment,
    pub(super) touched_at: Moment,
    pub(super) term: Term,
    /// Fact number N is at N - 1.
    pub(super) facts: Vec<StoredFact>,
    pub(super) projection: Projection,
    pub(super) checkpoint: Option<(Number, Vec<Fact>)>,
    pub(super) awake: bool,
    pub(super) wake_at: Option<Moment>,
    /// Its last change's place among all changes; 0 before the first.
    pub(super) place: u64,
    pub(super) inbox: BTreeMap<u64, InboxRow>,
    /// Its messages, in order of acceptance.
    pub(super) messages: Vec<MessageId>,
    /// The room that its words take.
    pub(super) words_bytes: u64,
}

/// The title of a session.
pub(super) struct Titled {
    pub(super) title: String,
    pub(super) by: TitleBy,
    /// The message whose words it is, if it is nobody's.
    pub(super) of: Option<MessageId>,
}

/// The words of an edit, and the title that they are.
pub(super) struct Edit {
    pub(super) message: MessageId,
    pub(super) words: Bytes,
    /// None if those that are there stay.
    pub(super) attachments: Option<Vec<NewAttachment>>,
    pub(super) opening: Option<String>,
}

/// A message: what never changes about it, and its words.
pub(super) struct MessageRow {
    pub(super) by: PersonId,
    pub(super) delivery: kernel::Delivery,
    pub(super) unattended: bool,
    pub(super) door: Option<&'static str>,
    pub(super) reply: Option<kernel::Address>,
    pub(super) accepted: Accepted,
    pub(super) words: Bytes,
    pub(super) attachments: Vec<NewAttachment>,
}

/// The thing that a key stands for.
pub(super) struct Remembered {
    pub(super) hash: [u8; 32],
    pub(super) expires: Option<Moment>,
    /// The id of what came of it.
    pub(super) made: u128,
}

impl Kept {
    pub(super) fn at(&self) -> Number {
        Number(self.facts.len() as u64)
    }

    pub(super) fn is_open(&self) -> bool {
        self.projection.ended.is_none()
    }

    pub(super) fn standing(&self, message: MessageId, accepted_at: Moment) -> Standing {
        self.projection.receipts.get(&message).copied().unwrap_or(Standing::accepted(accepted_at))
    }
}

impl Contents {
    pub(super) fn new(node: NodeRow) -> Self {
        Self {
            node,
            sessions: BTreeMap::new(),
            messages: BTreeMap::new(),
            bound: BTreeMap::new(),
            bound_before: BTreeMap::new(),
            keys: BTreeMap::new(),
            edits: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            claims: BTreeMap::new(),
            outbox: BTreeMap::new(),
            people: People::default(),
            turns_over: VecDeque::new(),
            passages: Vec::new(),
            marks: BTreeMap::new(),
            accounts: BTreeMap::new(),
            audit: Vec::new(),
            chains: BTreeMap::new(),
            entries: BTreeMap::new(),
            gauges: Gauges::default(),
            last_inbox_number: 0,
            last_outgoing: 0,
            last_place: 0,
            row_changes: BTreeMap::new(),
        }
    }

    /// Another start of the node, as if the one before had been killed.
    pub(super) fn reopen(&mut self) -> NodeRow {
        self.node.term = Term(self.node.term.0 + crate::TERMS_PER_START);
        self.node.url = None;
        self.gauges = Gauges::default();
        self.outbox_orphan();
        self.node.clone()
    }

    pub(super) fn drop_checkpoints(&mut self) {
        self.sessions.values_mut().for_each(|kept| kept.checkpoint = None);
    }

    /// Every change ends here: it is one commit of its own.
    pub(super) fn committed(&mut self) {
        self.gauges.commits += 1;
        self.gauges.changes += 1;
    }

    pub(super) fn next_place(&mut self) -> u64 {
        self.last_place += 1;
        self.last_place
    }

    pub(super) fn last_place(&self) -> u64 {
        self.last_place
    }

    /// The room that the words in somebody's sessions take.
    pub(super) fn disk_use(&self, org: OrgId, person: PersonId) -> DiskUse {
        let theirs =
            self.sessions.values().filter(|kept| kept.record.org == org && kept.record.owner == person);
        DiskUse { words_bytes: theirs.map(|kept| kept.words_bytes).sum() }
    }

    /// The same of everybody.
    pub(super) fn disk_totals(&self) -> DiskTotals {
        let mut each: BTreeMap<_, u64> = BTreeMap::new();
        for kept in self.sessions.values() {
            *each.entry((kept.record.org, kept.record.owner)).or_default() += kept.words_bytes;
        }
        let words_bytes_top = each.values().copied().max().unwrap_or_default();
        DiskTotals { words_bytes: each.values().sum(), words_bytes_top }
    }

    pub(super) fn put_into_inbox(&mut self, session: SessionId, at: Moment, item: InboxItem) {
        self.last_inbox_number += 1;
        let number = self.last_inbox_number;
        if let Some(kept) = self.sessions.get_mut(&session) {
            kept.inbox.insert(number, InboxRow { number, at, item });
        }
    }

    pub(super) fn set_account(&mut self, by: &Principal, account: NewAccount) {
        let NewAccount { agent, names, sealed, trail } = account;
        let row = AccountRow { names, sealed, since: trail.at };
        self.done(by, AuditSubject::named(&agent), &trail);
        self.accounts.insert((by.org, by.person, agent), row);
    }

    pub(super) fn remove_account(&mut self, by: &Principal, agent: String, trail: &Trail) -> bool {
        self.done(by, AuditSubject::named(&agent), trail);
        self.accounts.remove(&(by.org, by.person, agent)).is_some()
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let each = || self.sessions.iter();
        Snapshot {
            sessions: each().map(|(id, kept)| (*id, self.row(kept))).collect(),
            facts: each().map(|(id, kept)| (*id, kept.facts.clone())).collect(),
            inbox: each().map(|(id, kept)| (*id, kept.inbox.values().cloned().collect())).collect(),
            receipts: self.messages.keys().filter_map(|id| Some((*id, self.receipt(*id)?))).collect(),
            bindings: self.bound.iter().map(|((org, ..), row)| (*org, row.clone())).collect(),
            claims: self.claims.clone(),
            wakes: each().filter_map(|(id, kept)| Some((*id, kept.wake_at?))).collect(),
            verdicts: self.verdicts.clone(),
            outbox: self.outbox.values().cloned().collect(),
            audit: self.audit.clone(),
        }
    }
}
