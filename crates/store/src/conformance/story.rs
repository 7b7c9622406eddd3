//! The language the promises are told in: people, lines that they say, and what a keeper writes.
//!
//! Everything has a small number: `msg(3)` makes `ses(3)` if it has nowhere else to go. `aim` is a line that is not said yet,
//! for those who come too late.

use super::Fixture;
use crate::*;
use bytes::Bytes;
use kernel::{
    Address, ApprovalId, Attempt, Claim, Delivery, EndWhy, Epoch, Fact, Fence, Grant, Grantee, GroupId,
    MessageId, Moment, Number, OrgId, PersonId, Previous, Principal, Request, RequestId, Role, Scheme, Scope,
    SessionId, To, TokenId, Turn,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

/// A page that holds everything a promise can make.
pub(super) const ALL: usize = 10_000;

/// The machine's person, who owns the first org.
pub(super) fn me() -> Principal {
    Principal { role: Role::Owner, is_host: true, roots: vec!["/srv".into()], ..person(1, 1, "me") }
}

/// Somebody else of my org.
pub(super) fn friend() -> Principal {
    person(1, 2, "friend")
}

/// Somebody of another org, which they own.
pub(super) fn stranger() -> Principal {
    Principal { role: Role::Owner, ..person(2, 3, "stranger") }
}

fn person(org: u128, person: u128, handle: &str) -> Principal {
    let (org, person) = (OrgId::from_bits(org), PersonId::from_bits(person));
    Principal { standing: FIRST_STANDING, ..Principal::member(org, person, handle) }
}

/// Everything that the three of us are, to be let in.
pub(super) fn newcomer(by: &Principal) -> NewPerson {
    let (handle, email) = (by.handle.clone(), Some(format!("{}@example.org", by.handle)));
    NewPerson { person: by.person, handle, name: None, email, role: by.role }
}

/// My org and I.
pub(super) fn home() -> NewOrg {
    NewOrg { org: me().org, name: "home".into(), owner: newcomer(&me()), roots: me().roots }
}

pub(super) fn link(n: u8) -> NewLink {
    NewLink { hash: [n; 32], expires: Moment(100_000) }
}

/// Lets them in by this link; agents are walled off.
pub(super) fn add_person(person: NewPerson, link: NewLink) -> PeopleChange {
    PeopleChange::AddPerson { person, or_handles: vec![], link, walled: true }
}

/// A store in which the three of us are: me, a friend of my org, and a stranger who owns another one.
pub(super) async fn peopled<F: Fixture>() -> F {
    let on = F::fresh().await;
    let store = on.store();
    assert_eq!(store.host(home()).await.unwrap(), me());
    set(store, add_person(newcomer(&friend()), link(0xf2))).await;
    let away =
        NewOrg { org: stranger().org, name: "away".into(), owner: newcomer(&stranger()), roots: vec![] };
    set(store, PeopleChange::MakeOrg { org: away, link: link(0xf3), walled: true }).await;
    on
}

/// The same person with the standing that they have now.
pub(super) async fn now(store: &dyn Store, by: &Principal) -> Principal {
    let typed = store.person(by.org, by.person).await.unwrap().expect("somebody is there").handle;
    let org = store.org(by.org).await.unwrap().expect("the org is there").name;
    let login = store.login(format!("{org}/{typed}")).await.unwrap().expect("an org has everybody once");
    Principal { standing: login.standing, ..by.clone() }
}

pub(super) fn change_of(change: PeopleChange) -> NewChange {
    NewChange { change, key: None, trail: trail("change", 4_000) }
}

/// The outcome of a change: *done*, *repeated*, *conflict*, or the code of the refusal, with what is taken.
pub(super) async fn change(store: &dyn Store, by: &Principal, change: PeopleChange) -> String {
    change_with(store, by, change_of(change)).await
}

/// The same of a change that brings more.
pub(super) async fn change_with(store: &dyn Store, by: &Principal, new: NewChange) -> String {
    match store.change(by.clone(), new).await.unwrap() {
        crate::WriteOutcome::Done(()) => "done".into(),
        crate::WriteOutcome::Repeated(()) => "repeated".into(),
        crate::WriteOutcome::Conflict => "conflict".into(),
        crate::WriteOutcome::Refused(PeopleRefusal::Taken(what)) => format!("taken {what}"),
        crate::WriteOutcome::Refused(why) => why.code().into(),
    }
}

/// Makes it so, as I may, without it being counted among the acts of the story.
pub(super) async fn set(store: &dyn Store, change: PeopleChange) {
    set_by(store, &me(), change).await;
}

/// Lets a session of somebody's be another's: the offer, and their yes.
pub(super) async fn hand_over(store: &dyn Store, session: SessionId, by: &Principal, to: &Principal) {
    set_by(store, by, PeopleChange::HandOver { session, to: to.person }).await;
    set_by(store, to, accept_offer(session)).await;
}

/// The same by somebody else.
pub(super) async fn set_by(store: &dyn Store, by: &Principal, change: PeopleChange) {
    let trail = Trail { door: "setting", ..trail("set", 1) };
    let new = NewChange { trail, ..change_of(change) };
    assert_eq!(change_with(store, by, new).await, "done");
}

/// A credential of somebody's own, as they would make it.
pub(super) fn own_token(n: u8) -> PeopleChange {
    PeopleChange::MakeToken(TokenRow::full(tok(n), [n; 32], me().person, Purpose::Api, Moment(1)).into())
}

/// Gives somebody a grant on a session of mine, or takes it away.
pub(super) async fn share(store: &dyn Store, session: SessionId, with: &Principal, grant: Option<Grant>) {
    let (on, to) = (Resource::Session(session), Grantee::Person(with.person));
    set(
        store,
        match grant {
            Some(grant) => PeopleChange::Give { on, to, grant },
            None => PeopleChange::TakeBack { on, to },
        },
    )
    .await;
}

/// The audit of both orgs, newest first, without what set the scene.
pub(super) async fn acted(store: &dyn Store) -> Vec<AuditRow> {
    let mut rows = vec![];
    for org in [me().org, stranger().org] {
        rows.extend(store.audit_page(audit_of(org)).await.unwrap());
    }
    rows.retain(|row| row.door != "setting");
    rows
}

/// The number of entries that the audit has of this story.
pub(super) async fn acts(store: &dyn Store) -> usize {
    acted(store).await.len()
}

pub(super) fn audit_of(org: OrgId) -> AuditQuery {
    let (since, until, who, what, subject, before) = (None, None, None, None, None, None);
    AuditQuery { org, since, until, who, what, subject, before, limit: ALL }
}

/// The schemes that the doors of these stories own.
pub(super) const SCHEMES: &[Scheme] = &[
    Scheme {
        name: "api",
        form: "api:CLIENT/KEY",
        parts: &[2],
        person: None,
        client: Some(0),
        each_person: false,
    },
    Scheme { name: "own", form: "own:KEY", parts: &[1], person: None, client: None, each_person: true },
    Scheme {
        name: "web",
        form: "web:USER/CHAT",
        parts: &[2],
        person: Some(0),
        client: None,
        each_person: false,
    },
    Scheme {
        name: "cli",
        form: "cli:HOST/USER/DIR",
        parts: &[3],
        person: Some(1),
        client: None,
        each_person: false,
    },
    Scheme {
        name: "slack",
        form: "slack:TEAM/CHANNEL/THREAD",
        parts: &[3],
        person: None,
        client: None,
        each_person: false,
    },
    Scheme {
        name: "schedule",
        form: "schedule:NAME",
        parts: &[1],
        person: None,
        client: None,
        each_person: false,
    },
];

pub(super) fn msg(n: u32) -> MessageId {
    MessageId::from_bits(u128::from(n) << 64 | 0xabc)
}

pub(super) fn ses(n: u32) -> SessionId {
    SessionId::from_bits(u128::from(n) << 64 | 0xdef)
}

pub(super) fn req(n: u32) -> RequestId {
    RequestId::from_bits(n.into())
}

pub(super) fn apr(n: u32) -> ApprovalId {
    ApprovalId::from_bits(n.into())
}

pub(super) fn per(n: u32) -> PersonId {
    PersonId::from_bits(n.into())
}

pub(super) fn grp(n: u32) -> GroupId {
    GroupId::from_bits(n.into())
}

pub(super) fn tok(n: u8) -> TokenId {
    TokenId::from_bits(n.into())
}

pub(super) fn address(key: &str) -> Address {
    format!("api:test/{key}").parse().expect("tests use plain keys")
}

pub(super) fn conversation(key: &str) -> To {
    To::Conversation(address(key))
}

pub(super) fn scope() -> Scope {
    Scope {
        directory: "/srv/work".into(),
        agent: "scripted".into(),
        model: None,
        mode: Some("plan".into()),
        worktree: None,
    }
}

pub(super) fn trail(verb: &'static str, at: u64) -> Trail {
    Trail { verb, door: "test", correlation: format!("cor-{at}"), address: None, at: Moment(at) }
}

pub(super) fn key(verb: &'static str, key: &str, body: u8) -> Key {
    Key { verb, key: key.into(), hash: [body; 32], expires: None }
}

/// A message on its way, before anybody knows where it goes.
#[derive(Clone)]
pub(super) struct IncomingMessage {
    pub(super) n: u32,
    pub(super) at: u64,
    pub(super) key: Option<Key>,
    pub(super) delivery: Delivery,
    pub(super) unattended: bool,
    pub(super) under: Option<Epoch>,
    pub(super) reply: Option<Address>,
    pub(super) expected: Option<Expected>,
    pub(super) asks_for_new: bool,
    pub(super) pending_max: u32,
    pub(super) words_bytes_max: u64,
    pub(super) open_max: u32,
    pub(super) org_open_max: u32,
    pub(super) attachments: Vec<NewAttachment>,
    pub(super) unfit: Vec<UnfitAgent>,
}

pub(super) fn line(n: u32) -> IncomingMessage {
    let at = 1_000 + u64::from(n);
    IncomingMessage {
        n,
        at,
        key: None,
        delivery: Delivery::Queue,
        unattended: false,
        under: None,
        reply: None,
        expected: None,
        asks_for_new: false,
        pending_max: 1_000,
        words_bytes_max: u64::MAX,
        open_max: 1_000,
        org_open_max: 10_000,
        attachments: Vec::new(),
        unfit: Vec::new(),
    }
}

/// Something that goes along with a message.
pub(super) fn attached(name: &str) -> NewAttachment {
    NewAttachment {
        about: Bytes::from(format!("about {name}")),
        content: Bytes::from(format!("bytes of {name}")),
    }
}

impl IncomingMessage {
    pub(super) fn keyed(self, text: &str, body: u8) -> Self {
        Self { key: Some(key("say", text, body)), ..self }
    }

    pub(super) fn words(&self) -> Bytes {
        Bytes::from(format!(r#"[{{"text":"line {}"}}]"#, self.n))
    }

    fn message(&self, to: To) -> NewMessage {
        let fresh = NewSession {
            open_max: self.open_max,
            org_open_max: self.org_open_max,
            ..fresh_session(self.n, None)
        };
        NewMessage {
            message: msg(self.n),
            to,
            fresh: Some(Box::new(fresh)),
            like: None,
            expected: self.expected.clone(),
            asks_for_new: self.asks_for_new,
            words: self.words(),
            attachments: self.attachments.clone(),
            unfit: self.unfit.clone(),
            opening: Some(format!("line {}", self.n)),
            delivery: self.delivery,
            unattended: self.unattended,
            under: self.under,
            reply: self.reply.clone(),
            key: self.key.clone(),
            trail: trail("say", self.at),
            pending_max: self.pending_max,
            words_bytes_max: self.words_bytes_max,
            schemes: SCHEMES,
        }
    }
}

pub(super) fn fresh_session(n: u32, bind: Option<Address>) -> NewSession {
    let title = Some(format!("session {n}"));
    NewSession {
        session: ses(n),
        scope: scope(),
        origin: None,
        enter: None,
        title,
        bind,
        chosen: Chosen { agent: scope().agent, directory: None },
        open_max: 1_000,
        org_open_max: 10_000,
    }
}

pub(super) fn create_of(verb: &'static str, session: NewSession) -> Create {
    let (past, subject, key, words_bytes_max) = (None, None, None, u64::MAX);
    Create { session, past, words_bytes_max, subject, key, trail: trail(verb, 1_000), schemes: SCHEMES }
}

pub(super) fn arc(by: &Principal) -> Arc<Principal> {
    Arc::new(by.clone())
}

pub(super) async fn create(
    store: &dyn Store,
    by: &Principal,
    new: Create,
) -> WriteOutcome<SessionId, Rejection> {
    store.create(arc(by), new).await.unwrap()
}

/// A line on its way, and who says it.
pub(super) type Aimed = (Arc<Principal>, NewMessage);

/// A line that is not said yet.
pub(super) fn aim(by: &Principal, to: To, line: IncomingMessage) -> Aimed {
    (arc(by), line.message(to))
}

pub(super) async fn accept(store: &dyn Store, (by, new): Aimed) -> WriteOutcome<Accepted, Rejection> {
    store.accept(by, new).await.unwrap()
}

pub(super) async fn send(
    store: &dyn Store,
    by: &Principal,
    to: To,
    line: IncomingMessage,
) -> WriteOutcome<Accepted, Rejection> {
    accept(store, aim(by, to, line)).await
}

/// The answer of a refused change.
pub(super) fn no<T>(why: Rejection) -> WriteOutcome<T, Rejection> {
    WriteOutcome::Refused(why)
}

pub(super) fn not_found<T>(what: &'static str) -> WriteOutcome<T, Rejection> {
    no(Rejection::NotFound { what })
}

/// The session that a conversation had before, until it ended.
pub(super) fn previous(session: SessionId, why: EndWhy) -> Option<Previous> {
    Some(Previous { session, ended: Some(why) })
}

/// The session that a conversation had before, and which goes on.
pub(super) fn still_open(n: u32) -> Previous {
    Previous { session: ses(n), ended: None }
}

pub(super) fn is_ended<T>(session: SessionId, why: EndWhy) -> WriteOutcome<T, Rejection> {
    no(Rejection::Ended { session, why })
}

pub(super) fn queue_full<T>(limit: u32) -> WriteOutcome<T, Rejection> {
    no(Rejection::QueueFull { limit })
}

pub(super) fn too_many_open<T>(limit: u32) -> WriteOutcome<T, Rejection> {
    no(Rejection::TooManyOpen { limit })
}

pub(super) fn org_too_many_open<T>(limit: u32) -> WriteOutcome<T, Rejection> {
    no(Rejection::OrgTooManyOpen { limit })
}

/// The session that a conversation is bound to, of those that somebody sees.
pub(super) async fn bound(store: &dyn Store, by: &Principal, key: &str) -> Option<SessionId> {
    let bindings = store.bindings(Seer::of(by), None, ALL).await.unwrap();
    bindings.into_iter().find(|row| row.address == address(key)).map(|row| row.session)
}

/// Sends a line that must be accepted.
pub(super) async fn say(store: &dyn Store, by: &Principal, to: To, line: IncomingMessage) -> Accepted {
    match send(store, by, to, line).await {
        WriteOutcome::Done(accepted) => accepted,
        other => panic!("not accepted: {other:?}"),
    }
}

/// A session of mine, made by message `n`, in which the keeper has queued that message.
pub(super) async fn open(store: &dyn Store, n: u32) -> SessionId {
    let session = say(store, &me(), To::New, line(n)).await.session;
    write(store, session, vec![opened(), queued(n)]).await;
    session
}

/// A request, ready to be asked.
pub(super) fn want(n: u32, request: Request) -> NewRequest {
    let (id, resolved, trail) = (req(n), Resolved::default(), trail("ask", 2_000 + u64::from(n)));
    NewRequest {
        id,
        request,
        resolved,
        words: None,
        attachments: None,
        unfit: Vec::new(),
        opening: None,
        words_bytes_max: u64::MAX,
        key: None,
        trail,
    }
}

pub(super) async fn ask_as(
    store: &dyn Store,
    by: &Principal,
    new: NewRequest,
) -> WriteOutcome<Asked, Rejection> {
    store.ask(arc(by), new).await.unwrap()
}

pub(super) async fn ask(store: &dyn Store, n: u32, request: Request) -> WriteOutcome<Asked, Rejection> {
    ask_as(store, &me(), want(n, request)).await
}

/// The same, with what comes beside it.
pub(super) async fn ask_with(
    store: &dyn Store,
    n: u32,
    request: Request,
    resolved: Resolved,
    words: Option<Bytes>,
) -> WriteOutcome<Asked, Rejection> {
    ask_as(store, &me(), NewRequest { resolved, words, ..want(n, request) }).await
}

/// That request `n` waits in this session.
pub(super) fn waits(n: u32, session: SessionId) -> Asked {
    Asked::Waits { request: req(n), session }
}

/// An append that goes on where the log is, under this node's term, and changes nothing yet.
pub(super) async fn append_to(store: &dyn Store, session: SessionId) -> Append {
    let loaded = store.load(session).await.unwrap().expect("the session exists");
    Append {
        session,
        term: store.node().term.max(loaded.term),
        after: loaded.at,
        facts: vec![],
        drained: vec![],
        staying: vec![],
        verdicts: vec![],
        claims: vec![],
        starts: None,
        replies: vec![],
        wake_at: None,
        awake: false,
        rules: vec![],
        own_acts: vec![],
        words_bytes_max: None,
        token: None,
    }
}

/// The same, and the inbox is emptied by it.
pub(super) async fn drain(store: &dyn Store, session: SessionId) -> Append {
    let drained = inbox_numbers(store, session).await;
    Append { drained, ..append_to(store, session).await }
}

pub(super) async fn inbox_numbers(store: &dyn Store, session: SessionId) -> Vec<u64> {
    store.inbox(session, ALL).await.unwrap().into_iter().map(|row| row.number).collect()
}

pub(super) fn with(append: Append, facts: Vec<Fact>) -> Append {
    let first = append.after.0;
    let new = |(index, fact)| NewFact {
        at: Moment(5_000 + 10 * (first + index as u64)),
        cause: Cause::Keeper,
        entry: Entry::Rule(fact),
    };
    let facts = append.facts.into_iter().chain(facts.into_iter().enumerate().map(new)).collect();
    Append { facts, ..append }
}

pub(super) fn told(append: Append, turn: u32, kind: &str, body: &[u8]) -> Append {
    let mut append = append;
    append.facts.push(NewFact {
        at: Moment(7_000),
        cause: Cause::Runner,
        entry: Entry::Story { turn: Turn(turn), kind: kind.into(), body: Bytes::copy_from_slice(body) },
    });
    append
}

/// Empties the inbox and writes these facts.
pub(super) async fn write(store: &dyn Store, session: SessionId, facts: Vec<Fact>) -> Number {
    let append = with(drain(store, session).await, facts);
    written(store, append).await
}

pub(super) async fn written(store: &dyn Store, append: Append) -> Number {
    match store.append(append).await.unwrap() {
        Appending::Done(number) => number,
        other => panic!("not written: {other:?}"),
    }
}

pub(super) fn opened() -> Fact {
    Fact::Opened { scope: scope(), origin: None, enter: None }
}

pub(super) fn queued(n: u32) -> Fact {
    queued_by(n, me().person)
}

pub(super) fn queued_by(n: u32, by: PersonId) -> Fact {
    Fact::Queued { message: msg(n), by, delivery: Delivery::Queue, epoch: Epoch(0) }
}

pub(super) fn say_item(message: MessageId, by: PersonId) -> InboxItem {
    InboxItem::Say { message, by, delivery: Delivery::Queue, under: None }
}

pub(super) fn released(n: u32) -> Fact {
    Fact::Released { message: msg(n), epoch: Epoch(0) }
}

pub(super) fn started(turn: u32, n: u32) -> Fact {
    Fact::TurnStarted { turn: Turn(turn), message: msg(n) }
}

pub(super) fn attempt(turn: u32) -> Fact {
    let fence = Fence { term: kernel::Term(1), epoch: Epoch(0), turn: Turn(turn), attempt: Attempt(1) };
    Fact::AttemptStarted { fence, until: Moment(90_000) }
}

pub(super) fn answered(turn: u32) -> Fact {
    Fact::TurnEnded { turn: Turn(turn), outcome: kernel::Outcome::Answered }
}

pub(super) fn ended() -> Fact {
    Fact::Ended { why: EndWhy::Asked }
}

pub(super) fn refused(n: u32) -> Fact {
    Fact::MessageRefused { message: msg(n), why: kernel::RefusedWhy::SessionEnded }
}

pub(super) fn slot(name: &str) -> Claim {
    Claim(format!("slot:{name}"))
}

pub(super) async fn receipt(store: &dyn Store, n: u32) -> ReceiptRow {
    store.receipt(msg(n)).await.unwrap().expect("the message was accepted").1
}

pub(super) async fn row(store: &dyn Store, session: SessionId) -> SessionRow {
    store.session(session).await.unwrap().expect("the session exists").1
}

pub(super) async fn log(store: &dyn Store, session: SessionId) -> Vec<StoredFact> {
    store.facts(session, Number(0), ALL, usize::MAX).await.unwrap()
}

pub(super) async fn list(store: &dyn Store, by: &Principal, which: Which) -> Vec<SessionRow> {
    let query =
        SessionsQuery { by: Seer::of(by), which, filter: SessionFilter::default(), after: None, limit: ALL };
    store.sessions(query).await.unwrap()
}

/// Everything that the port shows of everybody's sessions, to see that nothing has changed.
pub(super) async fn picture<F: Fixture>(on: &F) -> String {
    let store = on.store();
    let done = acted(store).await.into_iter().filter(|row| row.refused.is_none()).count();
    let mut lines = vec![format!("done {done}")];
    for by in [me(), friend(), stranger()] {
        for row in list(store, &by, Which::All).await {
            let session = row.session;
            lines.push(format!("{row:?}"));
            lines.push(format!("{:?}", store.load(session).await.unwrap()));
            lines.push(format!("{:?}", store.inbox(session, ALL).await.unwrap()));
            lines.push(format!("{:?}", store.queue(session).await.unwrap()));
            lines.push(format!("{:?}", log(store, session).await));
        }
        lines.push(format!("{:?}", store.bindings(Seer::of(&by), None, ALL).await.unwrap()));
        lines.push(format!("{:?}", store.heads(Seer::of(&by), 0, ALL).await.unwrap()));
        lines.push(format!("{:?}", store.approvals(ApprovalsQuery::open(Seer::of(&by), ALL)).await.unwrap()));
        lines.push(format!("{:?}", store.disk_use(by.org, by.person).await.unwrap()));
    }
    lines.push(format!("wake {:?}", store.next_wake().await.unwrap()));
    lines.push(format!("unfinished {:?}", store.unfinished(None, ALL).await.unwrap()));
    for state in [OutgoingState::Waiting, OutgoingState::Sending, OutgoingState::Unknown] {
        lines.push(format!("{:?}", store.outbox_list(me().org, Some(state), 0, ALL).await.unwrap()));
    }
    lines.join("\n")
}

/// Everything that the port shows of who there is and what they may do, to see that nothing has changed.
pub(super) async fn town(store: &dyn Store) -> String {
    let mut lines = vec![];
    for org in store.orgs().await.unwrap() {
        let id = org.org;
        for person in store.people(id, None, ALL).await.unwrap() {
            lines
                .push(format!("{:?}", store.login(format!("{}/{}", org.name, person.handle)).await.unwrap()));
            lines.push(format!("{:?}", store.tokens(id, person.person).await.unwrap()));
            lines.push(format!("{:?}", store.offers(id, person.person).await.unwrap()));
            lines.push(format!("{person:?}"));
        }
        lines.push(format!("{org:?}"));
        lines.push(format!("{:?}", store.groups(id).await.unwrap()));
        lines.push(format!("{:?}", store.roots(id).await.unwrap()));
        lines.push(format!("{:?}", store.rules(id).await.unwrap()));
        lines.push(format!("{:?}", store.grants(id, Resource::Agent("scripted".into())).await.unwrap()));
        for n in 1..=4 {
            lines.push(format!("{:?}", store.grants(id, Resource::Session(ses(n))).await.unwrap()));
        }
    }
    lines.join("\n")
}

/// Waits for all of them at once, so that a store that can do several things has to.
pub(super) async fn together<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<Pin<Box<_>>> = futures.into_iter().map(Box::pin).collect();
    let mut answers: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    std::future::poll_fn(move |context| {
        for (future, answer) in waiting.iter_mut().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                *answer = Some(value);
            }
        }
        if answers.iter().all(Option::is_some) {
            return Poll::Ready(answers.drain(..).flatten().collect());
        }
        Poll::Pending
    })
    .await
}

/// The yes of somebody who has room for everything.
pub(super) fn accept_offer(session: SessionId) -> PeopleChange {
    let (own_directory, open_max, words_bytes_max) = (scope().directory, 1_000, u64::MAX);
    PeopleChange::AcceptOffer { session, within: HeirLimits { own_directory, open_max, words_bytes_max } }
}
