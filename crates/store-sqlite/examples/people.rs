//! The cost of asking who may do what before a message is accepted.
//!
//! `people DIR COUNT` makes a database in DIR with an org of 20 people in 5 groups, and a session that its owner shares with
//! ten of them and a group. Then one of the group says COUNT things to it, in three ways that take turns:
//!
//! - `asked`: the session is found with all that was given on it, the rule is asked, the message is accepted, as the engine
//!   does it;
//! - `found`: a session is found on which nothing was given, and the message is accepted; the rule was asked before the clock
//!   ran. That is what a server would do that asks nobody;
//! - `alone`: the message is accepted, and nothing else.
//!
//! What is compared in the transaction is the same each time: two numbers of rows that it needs anyway. Prints the medians, as
//! JSON, with what the rule alone takes, and finding out whose a credential is, which a server does at most twice a second for
//! each.

use bytes::Bytes;
use homing_store_sqlite::{Options, SqliteStore};
use kernel::{
    Act, Delivery, Found, Grant, Grantee, GroupId, MessageId, Moment, NodeId, OrgId, PersonId, Principal,
    Record, Role, Scope, SessionId, To, TokenId, authorize,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use store::{
    Chosen, Credentials, Finding, Key, NewChange, NewLink, NewMessage, NewOrg, NewPerson, NewSession, People,
    PeopleChange, Purpose, Resource, Seer, TokenRow, Trail, Views, WayIn, WriteOutcome,
};

const PEOPLE: u128 = 20;
const GROUPS: u128 = 5;
const ORG: OrgId = OrgId::from_bits(1);
const SHARED: SessionId = SessionId::from_bits(7);
const PRIVATE: SessionId = SessionId::from_bits(8);
/// The hash of the secret of whoever asks.
const HASH: [u8; 32] = [9; 32];
const NOW: Moment = Moment(1_000_000);
const WORDS_BYTES: usize = 240;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [dir, count] = &arguments[..] else { panic!("usage: people DIR COUNT") };
    let count: usize = count.parse().expect("a number of messages");
    let mut house = House::open(Path::new(dir)).await;
    // As a request is: a task on one of the runtime's threads.
    let took = tokio::spawn(async move { house.measure(count).await }).await.expect("it ends");
    println!("{took}");
}

struct House {
    store: SqliteStore,
    owner: Principal,
    number: u128,
}

impl House {
    async fn open(dir: &Path) -> Self {
        let store =
            SqliteStore::open(dir, &Options::new(NodeId::from_bits(1), "bench", NOW)).expect("a store");
        let owner = somebody(2, Role::Owner);
        let roots = vec!["/srv".into()];
        let owner =
            store.host(NewOrg { org: ORG, name: "bench".into(), owner, roots }).await.expect("an owner");
        let mut house = Self { store, owner, number: 0 };
        house.settle().await;
        house
    }

    /// People, groups, a session, and who may do what with it.
    async fn settle(&mut self) {
        let group = |number: u128| GroupId::from_bits(100 + number % GROUPS);
        for number in 0..GROUPS {
            self.change(PeopleChange::MakeGroup { group: group(number), name: format!("group {number}") })
                .await;
        }
        for number in 0..PEOPLE {
            let person = somebody(1_000 + number, Role::Member);
            let id = person.person;
            let link = NewLink { hash: [number as u8; 32], expires: NOW };
            self.change(PeopleChange::AddPerson { person, or_handles: vec![], link, walled: true }).await;
            self.change(PeopleChange::Join { group: group(number), person: id }).await;
            self.change(PeopleChange::Join { group: group(number + 1), person: id }).await;
        }
        self.make_session(SHARED).await;
        self.make_session(PRIVATE).await;
        let people = (1..10).map(|number| Grantee::Person(PersonId::from_bits(1_000 + number)));
        for to in people.chain([Grantee::Group(group(0))]) {
            let on = Resource::Session(SHARED);
            self.change(PeopleChange::Give { on, to, grant: Grant::Prompt }).await;
        }
        let token = TokenId::from_bits(1);
        let token = TokenRow::full(token, HASH, PersonId::from_bits(1_000), Purpose::Api, NOW);
        self.store.add_token(token).await.expect("the store works");
    }

    async fn change(&mut self, change: PeopleChange) {
        let new = NewChange { change, key: None, trail: trail("change") };
        let outcome = self.store.change(self.owner.clone(), new).await.expect("the store works");
        assert_eq!(outcome, WriteOutcome::Done(()));
    }

    async fn make_session(&mut self, session: SessionId) {
        let scope = Scope {
            directory: "/srv/a".into(),
            agent: "scripted".into(),
            model: None,
            mode: None,
            worktree: None,
        };
        let chosen = Chosen { agent: "scripted".into(), directory: Some("/srv/a".into()) };
        let (origin, enter, title, bind, open_max, org_open_max) = (None, None, None, None, 2, 2);
        let fresh = NewSession { session, scope, origin, enter, title, bind, chosen, open_max, org_open_max };
        let new = NewMessage { fresh: Some(Box::new(fresh)), ..self.message(To::New) };
        let owner = self.owner.clone();
        self.accept(&owner, new).await;
    }

    /// In turns, each beginning one time in three: whatever else the machine does meets all of them.
    async fn measure(&mut self, count: usize) -> String {
        let mut took = Took::default();
        for round in 0..count {
            let began = Instant::now();
            let by = self.store.token(HASH, NOW).await.expect("the store works").expect("their credential");
            took.credential.push(us(began));
            let record = self.find(SHARED).await.record.expect("a session");
            for turn in 0..3 {
                match (round + turn) % 3 {
                    0 => self.ask_and_accept(&by, &record, &mut took).await,
                    1 => self.find_and_accept(&by, &mut took).await,
                    _ => self.accept_alone(&mut took).await,
                }
            }
        }
        took.print()
    }

    async fn ask_and_accept(&mut self, by: &Principal, record: &Record, took: &mut Took) {
        let asking = Instant::now();
        authorize(by, Act::Say, record, ()).expect("it was shared with their group");
        took.rule.push(us(asking));
        let new = self.message(To::Session(SHARED));
        let began = Instant::now();
        self.accept(by, new).await;
        took.asked.push(us(began));
    }

    async fn find_and_accept(&mut self, by: &Principal, took: &mut Took) {
        let new = self.message(To::Session(SHARED));
        let began = Instant::now();
        assert_eq!(self.find(PRIVATE).await.found, Found::Open(PRIVATE));
        self.accept(by, new).await;
        took.found.push(us(began));
    }

    /// By whoever owns the session: nothing has to be given to them.
    async fn accept_alone(&mut self, took: &mut Took) {
        let (owner, new) = (self.owner.clone(), self.message(To::Session(PRIVATE)));
        let began = Instant::now();
        self.accept(&owner, new).await;
        took.alone.push(us(began));
    }

    async fn find(&self, session: SessionId) -> Finding {
        let by = Seer::of(&self.owner);
        self.store.find(by, None, To::Session(session)).await.expect("the store works")
    }

    async fn accept(&self, by: &Principal, new: NewMessage) {
        let accepted = self.store.accept(Arc::new(by.clone()), new).await.expect("the store works");
        assert!(matches!(accepted, WriteOutcome::Done(_)), "{accepted:?}");
    }

    fn message(&mut self, to: To) -> NewMessage {
        self.number += 1;
        let (number, expires) = (self.number, Some(Moment(u64::MAX >> 1)));
        let text = "x".repeat(WORDS_BYTES);
        NewMessage {
            message: MessageId::from_bits(number),
            to,
            fresh: None,
            like: None,
            expected: None,
            asks_for_new: false,
            words: Bytes::from(format!(r#"[{{"type":"text","text":"{text}"}}]"#)),
            attachments: Vec::new(),
            unfit: Vec::new(),
            opening: None,
            delivery: Delivery::Queue,
            unattended: false,
            under: None,
            reply: None,
            key: Some(Key { verb: "say", key: format!("key {number}"), hash: [7; 32], expires }),
            trail: trail("say"),
            pending_max: u32::MAX,
            words_bytes_max: u64::MAX,
            schemes: &[],
        }
    }
}

/// Microseconds, by what they were spent on.
#[derive(Default)]
struct Took {
    asked: Vec<f64>,
    found: Vec<f64>,
    alone: Vec<f64>,
    rule: Vec<f64>,
    credential: Vec<f64>,
}

impl Took {
    fn print(mut self) -> String {
        let all = [&mut self.asked, &mut self.found, &mut self.alone, &mut self.rule, &mut self.credential];
        let [asked, found, alone, rule, credential] = all.map(|values| median(values));
        format!(
            r#"{{"asked_us":{asked:.2},"found_us":{found:.2},"alone_us":{alone:.2},"added_us":{:.2},"rule_us":{rule:.2},"credential_us":{credential:.2}}}"#,
            asked - found
        )
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn us(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

fn somebody(number: u128, role: Role) -> NewPerson {
    let handle = format!("person{number}");
    NewPerson { person: PersonId::from_bits(number), handle, name: None, email: None, role }
}

fn trail(verb: &'static str) -> Trail {
    let address = Some(std::net::Ipv4Addr::LOCALHOST.into());
    Trail { verb, door: "http", correlation: "0".repeat(32), address, at: NOW }
}
