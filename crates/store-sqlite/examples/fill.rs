//! Fills a data directory with dormant sessions, quickly and through the port, for the bench.
//!
//! `fill DIR SESSIONS [FACTS …]` adds SESSIONS sessions with one answered message each, and one session with that many
//! facts for each FACTS, all of them the machine's person's. The facts are the ones that the rules would have made.
//! Prints the ids of the long sessions, as JSON.

use bytes::Bytes;
use homing_store_sqlite::{Options, SqliteStore};
use kernel::{
    Command, Delivery, Fact, Fence, Given, MessageId, Moment, Native, NodeId, Number, OrgId, PersonId,
    Policy, Principal, Report, Role, Scope, Session, SessionId, Slot, To, Turn,
};
use std::path::Path;
use std::sync::Arc;
use store::{
    Append, Appending, Cause, Chosen, Entry, NewFact, NewMessage, NewOrg, NewPerson, NewSession, Trail,
};
use store::{Credentials, Log as _, Store, WayIn};

/// Sessions that are under way at once, so that the store can commit them in groups.
const TOGETHER: u64 = 256;
/// Facts in one append.
const PIECE: usize = 1_000;
/// Bytes of words in each fact.
const WORDS_BYTES: usize = 200;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, sessions, facts @ ..] = &arguments[..] else { panic!("usage: fill DIR SESSIONS [FACTS …]") };
    let sessions: u64 = sessions.parse().expect("a number of sessions");
    let filler = Filler::open(Path::new(dir)).await;
    for first in (0..sessions).step_by(TOGETHER as usize) {
        let group = first..(first + TOGETHER).min(sessions);
        let mut under_way = tokio::task::JoinSet::new();
        for number in group {
            let filler = filler.clone();
            under_way.spawn(async move { filler.session(number, 10).await });
        }
        under_way.join_all().await;
    }
    let mut long = Vec::new();
    for (place, facts) in (0..).zip(facts) {
        let facts = facts.parse().expect("a number of facts");
        long.push(format!("\"{}\"", filler.session(sessions + place, facts).await));
    }
    println!(r#"{{"long":[{}]}}"#, long.join(","));
}

#[derive(Clone)]
struct Filler {
    store: std::sync::Arc<SqliteStore>,
    owner: Principal,
    began: Moment,
}

impl Filler {
    async fn open(dir: &Path) -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        let began = Moment(since.as_millis() as u64 - 86_400_000);
        let options = Options::new(NodeId::from_bits(1), "bench", began);
        let store = SqliteStore::open(dir, &options).expect("the directory is free");
        let owner = NewPerson {
            person: PersonId::from_bits(2),
            handle: "bench".into(),
            name: None,
            email: None,
            role: Role::Owner,
        };
        let fresh = NewOrg { org: OrgId::from_bits(1), name: "bench".into(), owner, roots: vec![] };
        let owner = store.host(fresh).await.expect("an owner");
        Self { store: store.into(), owner, began }
    }

    /// One session with so many facts, about: its message, the turn, what was said, and the end of the turn.
    async fn session(&self, number: u64, facts: usize) -> SessionId {
        let at = Moment(self.began.0 + number);
        let bits = u128::from(at.0) << 80 | u128::from(number);
        let (session, message) = (SessionId::from_bits(bits), MessageId::from_bits(bits));
        let scope = Scope {
            directory: format!("/srv/work/{number}").into(),
            agent: "scripted".into(),
            model: None,
            mode: None,
            worktree: None,
        };
        self.accept(session, message, &scope, at).await;
        let inbox = self.store.inbox(session, 1).await.expect("it was accepted");
        let mut log = Log::new(self, session, at);
        log.drained = inbox.iter().map(|row| row.number).collect();
        log.tell(Command::Open { scope, origin: None, enter: None });
        let (by, delivery, under) = (self.owner.person, Delivery::Queue, None);
        log.tell(Command::Say { message, by, delivery, under });
        let fence = log.fence.expect("a free session starts a turn");
        log.tell(Command::Report { fence, report: Report::Ready { native: Some(Native::new("bench")) } });
        for said in 0..facts.saturating_sub(log.facts.len() + 1) {
            log.say(said as u64);
            if log.facts.len() >= PIECE {
                log.append().await;
            }
        }
        log.tell(Command::Report { fence, report: Report::Finished { native: None } });
        log.append().await;
        session
    }

    async fn accept(&self, session: SessionId, message: MessageId, scope: &Scope, at: Moment) {
        let title = Some(format!("What was asked on day {}", at.0 % 1_000));
        let fresh = NewSession {
            session,
            scope: scope.clone(),
            origin: None,
            enter: None,
            title,
            bind: None,
            chosen: Chosen { agent: scope.agent.clone(), directory: None },
            open_max: u32::MAX,
            org_open_max: u32::MAX,
        };
        let wish = NewMessage {
            message,
            to: To::New,
            fresh: Some(Box::new(fresh)),
            like: None,
            expected: None,
            asks_for_new: false,
            words: Bytes::from_static(br#"[{"type":"text","text":"Please have a look at this."}]"#),
            attachments: Vec::new(),
            unfit: Vec::new(),
            opening: None,
            delivery: Delivery::Queue,
            unattended: false,
            under: None,
            reply: None,
            key: None,
            trail: Trail { verb: "say", door: "bench", correlation: String::new(), address: None, at },
            pending_max: 1,
            words_bytes_max: u64::MAX,
            schemes: &[],
        };
        let accepted = self.store.accept(Arc::new(self.owner.clone()), wish).await.expect("the store works");
        assert!(matches!(accepted, store::WriteOutcome::Done(_)), "{accepted:?}");
    }
}

/// A session's facts on their way into the store.
struct Log<'a> {
    filler: &'a Filler,
    session: SessionId,
    at: Moment,
    state: Session,
    fence: Option<Fence>,
    facts: Vec<NewFact>,
    drained: Vec<u64>,
    written: Number,
}

impl<'a> Log<'a> {
    fn new(filler: &'a Filler, session: SessionId, at: Moment) -> Self {
        let (state, facts, drained) = (Session::default(), Vec::new(), Vec::new());
        Self { filler, session, at, state, fence: None, facts, drained, written: Number(0) }
    }

    fn tell(&mut self, command: Command) {
        let term = self.filler.store.node().term;
        let (policy, slot) = (Policy::default(), Slot::Free);
        let given = Given { now: self.at, term, policy, slot, can_steer: false, forgets: false };
        for fact in self.state.decide(command, &given).expect("nothing stands against it") {
            self.state.evolve(&fact);
            if let Fact::AttemptStarted { fence, .. } = &fact {
                self.fence = Some(*fence);
            }
            self.facts.push(NewFact { at: self.at, cause: Cause::Keeper, entry: Entry::Rule(fact) });
        }
    }

    fn say(&mut self, number: u64) {
        let offset = number * WORDS_BYTES as u64;
        let text = "words and ".repeat(WORDS_BYTES / 10);
        let body = format!(r#"{{"v":1,"turn":1,"type":"text","part":0,"offset":{offset},"text":"{text}"}}"#);
        let entry = Entry::Story { turn: Turn(1), kind: "text".into(), body: Bytes::from(body) };
        self.facts.push(NewFact { at: self.at, cause: Cause::Runner, entry });
    }

    async fn append(&mut self) {
        let term = self.filler.store.node().term;
        let append = Append {
            session: self.session,
            term,
            after: self.written,
            facts: std::mem::take(&mut self.facts),
            drained: std::mem::take(&mut self.drained),
            staying: Vec::new(),
            verdicts: vec![],
            claims: vec![],
            starts: None,
            replies: vec![],
            wake_at: self.state.wake_at(term),
            awake: self.state.is_awake(),
            rules: vec![],
            own_acts: vec![],
            words_bytes_max: None,
            token: None,
        };
        match self.filler.store.append(append).await.expect("the store works") {
            Appending::Done(at) => self.written = at,
            other => panic!("nobody else is here, and yet: {other:?}"),
        }
    }
}
