//! A larger world for one test: a real server over the SQLite store, with orgs, people of every role, and credentials.

use crate::world::{Fence, Somebody, TestClock, trace, wiring};
use agent::{
    Abilities, Agent, EndedLeftovers, House, HouseConfig, InProcess, Launch, Presence, Reply, Running, Setup,
    TreeName, Trouble,
};
use engine::{
    AddPerson, AttachedFile, AttachedKind, Engine, Expiry, IfNew, Inbound, Limits, MakeOrg, MakeToken,
    MessagePart, NewOrg, NewPerson, Purpose, Resource, SessionUpdate, SignInFor, StoredEntry, TokenRow,
    hash_of,
};
use kernel::{
    ApprovalId, Fact, Grant, Grantee, MessageId, Moment, NodeId, Number, OrgId, PersonId, Principal, Request,
    Rights, Role, SessionId, To, TokenId,
};
use serde_json::Value;
use server::{PushConfig, Server, ServerConfig};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store_sqlite::{Options, SqliteStore};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Whatever is waited for comes within this time, or something is wrong.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Town {
    pub(crate) url: String,
    pub(crate) engine: Engine,
    pub(crate) http: reqwest::Client,
    pub(crate) dir: tempfile::TempDir,
    /// Whose machine it is; an owner of the first org. With the machine's own credential.
    pub(crate) host: Somebody,
    pub(crate) clock: Arc<TestClock>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

/// The scripted agent, under another name.
struct Alias(&'static str, InProcess);

impl Agent for Alias {
    fn name(&self) -> &str {
        self.0
    }
    fn abilities(&self) -> Abilities {
        self.1.abilities()
    }
    fn look(&self) -> Reply<'_, Presence> {
        self.1.look()
    }
    fn setup(&self) -> Setup {
        self.1.setup()
    }
    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        self.1.start(launch)
    }
    fn end_leftovers(&self, tree: TreeName) -> Reply<'_, Result<EndedLeftovers, Trouble>> {
        self.1.end_leftovers(tree)
    }
}

/// A session with a turn that waits for an answer, and something that waits behind it.
#[derive(Debug, Clone)]
pub(crate) struct Busy {
    pub(crate) session: SessionId,
    pub(crate) runs: MessageId,
    pub(crate) asks: ApprovalId,
}

impl Town {
    /// With agents of these names besides the usual ones.
    pub(crate) async fn new(aliases: &[&'static str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options::new(NodeId::from_bits(1), "testhost", Moment(1_000_000_000_000));
        let store = SqliteStore::open(dir.path(), &options).unwrap();
        let clock = Arc::new(TestClock::new());
        // As many turns as a test likes may be under way.
        let limits = Limits { awake_max: 100_000, org_awake_max: 100_000, ..Limits::default() };
        let mut wiring = wiring(Arc::new(store), limits, Arc::new(Fence::default()), clock.clone());
        for (seed, name) in (100..).zip(aliases) {
            let inside =
                InProcess::new(House::new(HouseConfig { seed, linger_ms: 50, ..HouseConfig::default() }));
            wiring.agents.push(Arc::new(Alias(name, inside)));
        }
        let engine = Engine::start(wiring).await.unwrap();
        let host = first_start(&engine).await;
        // Which version an agent has is told once somebody has looked; then it does not matter who was first.
        engine.views().agents(&host.by).await.unwrap();
        let mut config = ServerConfig::new("127.0.0.1:0", host.by.clone());
        config.grace = Duration::from_secs(1);
        // How fast somebody may ask is looked at elsewhere.
        config.requests_per_second = 0;
        config.strangers_per_second = 0;
        config.sign_ins_per_minute = 0;
        let private_hosts = vec!["127.0.0.1".to_owned()];
        config.push = Some(PushConfig { seed: [3; 32], contact: None, private_hosts });
        let bound = Server { engine: engine.clone(), config }.bind().await.unwrap();
        let url = bound.url();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(bound.serve(async {
            let _ = stopped.await;
        }));
        let tls = api::tls::client_config(&api::tls::Trust::Nobodys).unwrap();
        let http = reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build().unwrap();
        Self { url, engine, http, dir, host, clock, stop: Some(stop), served }
    }

    /// Closes the door, and leaves running turns as a power cut would.
    pub(crate) async fn close(mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        self.served.await.unwrap();
        self.engine.crash();
    }

    /// Their rights now.
    pub(crate) async fn now(&self, who: &Somebody) -> Principal {
        self.engine.people().principal(hash_of(&who.token)).await.unwrap().expect("the credential is good")
    }

    /// Somebody new in the org of `by`, who has come in.
    pub(crate) async fn person(&self, by: &Somebody, handle: &str, role: Role) -> Somebody {
        let add = AddPerson { handle: handle.into(), name: None, email: None, role };
        let (_, link) = self.engine.people().add_person(&self.now(by).await, add, trace()).await.unwrap();
        self.come_in(link.reveal()).await
    }

    /// Another org, with its owner, who has come in.
    pub(crate) async fn org(&self, name: &str, handle: &str) -> Somebody {
        let make = MakeOrg { name: name.into(), handle: handle.into(), owner_name: None, email: None };
        let host = self.now(&self.host).await;
        let (_, _, link) = self.engine.people().make_org(&host, make, trace()).await.unwrap();
        self.come_in(link.reveal()).await
    }

    async fn come_in(&self, code: &str) -> Somebody {
        let at = SignInFor { purpose: Purpose::Cli, name: None };
        let signed = self.engine.people().sign_in_by_link(code, at, trace()).await.unwrap();
        let token = signed.secret.reveal().to_owned();
        let by = self.engine.people().principal(hash_of(&token)).await.unwrap().unwrap();
        Somebody { token, by }
    }

    /// Another credential of theirs, good for this.
    pub(crate) async fn token(&self, who: &Somebody, rights: Rights) -> Somebody {
        let make = MakeToken { name: "test".into(), rights, expires: Expiry::Never, client: None };
        let (_, secret) = self.engine.people().make_token(&self.now(who).await, make, trace()).await.unwrap();
        let token = secret.reveal().to_owned();
        let by = self.engine.people().principal(secret.hash()).await.unwrap().unwrap();
        Somebody { token, by }
    }

    /// A credential of theirs that nobody asked for: a turn's, or one that will not do.
    pub(crate) async fn credential(
        &self,
        who: &Somebody,
        purpose: Purpose,
        change: impl FnOnce(&mut TokenRow),
    ) -> Somebody {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let token = format!("made-in-a-test-{number}");
        let id = TokenId::from_bits(u128::MAX - u128::from(number));
        let mut row = TokenRow::full(id, hash_of(&token), who.by.person, purpose, self.engine.now());
        change(&mut row);
        self.engine.people().add_token(row).await.unwrap();
        Somebody { token, by: who.by.clone() }
    }

    pub(crate) async fn say(&self, who: &Somebody, to: To, text: &str) -> (SessionId, MessageId) {
        self.say_with(who, to, text, None).await
    }

    pub(crate) async fn say_with(
        &self,
        who: &Somebody,
        to: To,
        text: &str,
        agent: Option<&str>,
    ) -> (SessionId, MessageId) {
        self.say_along(who, to, text, agent, Vec::new()).await
    }

    /// The same with what goes along.
    pub(crate) async fn say_along(
        &self,
        who: &Somebody,
        to: To,
        text: &str,
        agent: Option<&str>,
        attachments: Vec<AttachedFile>,
    ) -> (SessionId, MessageId) {
        let parts = vec![MessagePart::Text { text: text.into() }];
        let if_new = IfNew { agent: agent.map(str::to_owned), ..IfNew::default() };
        let by = self.now(who).await;
        let inbound = Inbound {
            by,
            to,
            if_new,
            expected: None,
            parts,
            reply: None,
            delivery: kernel::Delivery::Queue,
            attachments,
            unattended: false,
            under: None,
            trace: trace(),
        };
        let accepted = self.engine.way_in().send(inbound).await.unwrap().accepted;
        (accepted.session, accepted.message)
    }

    /// A session of theirs in which a turn waits for an answer.
    pub(crate) async fn busy(&self, who: &Somebody, agent: Option<&str>) -> Busy {
        self.busy_in(who, To::New, agent).await
    }

    /// The same in a session that may be there.
    pub(crate) async fn busy_in(&self, who: &Somebody, to: To, agent: Option<&str>) -> Busy {
        let (session, runs) = self.say_along(who, to, "!ask tool", agent, vec![small_image()]).await;
        let asked = self.fact(who, session, |fact| matches!(fact, Fact::Asked { .. })).await;
        let Fact::Asked { approval, .. } = asked else { panic!("{asked:?}") };
        Busy { session, runs, asks: approval }
    }

    /// Waits for a fact of a session.
    pub(crate) async fn fact(&self, who: &Somebody, session: SessionId, is: impl Fn(&Fact) -> bool) -> Fact {
        let mut follow = self.engine.views().follow(&self.now(who).await, session, Number(0)).await.unwrap();
        let wait = async {
            loop {
                let told = follow.next().await.expect("the log goes on");
                let SessionUpdate::Fact(shared) = told else { continue };
                if let StoredEntry::Rule(fact) = &shared.fact.entry
                    && is(fact)
                {
                    return fact.clone();
                }
            }
        };
        tokio::time::timeout(SOON, wait).await.expect("it happens")
    }

    pub(crate) async fn end(&self, who: &Somebody, session: SessionId) {
        self.engine.way_in().ask(&self.now(who).await, Request::End { session }, trace()).await.unwrap();
        self.fact(who, session, |fact| matches!(fact, Fact::Ended { .. })).await;
    }

    pub(crate) async fn give(&self, who: &Somebody, session: SessionId, to: Grantee, grant: Grant) {
        let on = Resource::Session(session);
        self.engine.people().give(&self.now(who).await, on, to, grant, trace()).await.unwrap();
    }

    pub(crate) async fn offer(&self, who: &Somebody, session: SessionId, to: PersonId) {
        self.engine.people().hand_over(&self.now(who).await, session, to, trace()).await.unwrap();
    }

    /// The offer, and the other's yes.
    pub(crate) async fn hand_over(&self, who: &Somebody, session: SessionId, to: &Somebody) {
        self.offer(who, session, to.by.person).await;
        self.engine.people().accept_offer(&self.now(to).await, session, trace()).await.unwrap();
    }

    pub(crate) fn ask(&self, token: Option<&str>, method: &str, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method.parse().unwrap(), format!("{}{path}", self.url));
        match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Status, code of the problem if it is one, and the body.
    pub(crate) async fn answer(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> (u16, Option<String>, Value) {
        let ask = self.ask(token, method, path);
        let ask = match body {
            Some(body) => ask.json(body),
            None => ask,
        };
        read(ask.send().await.unwrap()).await
    }

    /// Every row of every table, but for the audit and what only notes that somebody was here.
    pub(crate) fn dump(&self) -> BTreeMap<String, Vec<String>> {
        // Written beside what is asked for, and by nobody who asks.
        const NOT: [&str; 12] = [
            "audit",
            "audit_chain",
            "audit_about",
            "audit_heads",
            "audit_before",
            "sqlite_sequence",
            "passages",
            "keywords",
            "keywords_data",
            "keywords_idx",
            "keywords_docsize",
            "keywords_config",
        ];
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let db = rusqlite::Connection::open_with_flags(self.dir.path().join("homing.db"), flags).unwrap();
        let mut names = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").unwrap();
        let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let tables = names.into_iter().filter(|name| !NOT.contains(&name.as_str()));
        tables.map(|name| (name.clone(), rows_of(&db, &name))).collect()
    }
}

fn rows_of(db: &rusqlite::Connection, table: &str) -> Vec<String> {
    let mut query = db.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let columns: Vec<String> = query.column_names().map(str::to_owned).collect();
    let mut rows = query.query([]).unwrap();
    let mut lines = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let cells = columns.iter().enumerate().filter(|(_, name)| {
            // When somebody was last here, how far the audit is sealed, and how far what was said can be found.
            !matches!((table, name.as_str()), ("tokens", "last_used") | ("counters", "sealed" | "indexed"))
        });
        let cells = cells.map(|(at, name)| format!("{name}={:?}", row.get_ref(at).unwrap()));
        lines.push(cells.collect::<Vec<_>>().join(" "));
    }
    lines.sort();
    lines
}

/// Status, code of the problem if it is one, and the body as far as it is JSON.
pub(crate) async fn read(response: reqwest::Response) -> (u16, Option<String>, Value) {
    let status = response.status().as_u16();
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/event-stream") {
        return (status, None, Value::Null);
    }
    let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default();
    (status, body["code"].as_str().map(str::to_owned), body)
}

async fn first_start(engine: &Engine) -> Somebody {
    // Far from what is minted.
    let bits = 1 << 100;
    let person = PersonId::from_bits(bits);
    let owner = NewPerson { person, handle: "ann".into(), name: None, email: None, role: Role::Owner };
    let roots = vec!["/home/ann".into()];
    engine
        .people()
        .host(NewOrg { org: OrgId::from_bits(bits), name: "home".into(), owner, roots })
        .await
        .unwrap();
    let token = "secret-of-ann".to_owned();
    let id = TokenId::from_bits(bits);
    let row = TokenRow::full(id, hash_of(&token), person, Purpose::Machine, engine.now());
    engine.people().add_token(row).await.unwrap();
    let by = engine.people().principal(hash_of(&token)).await.unwrap().unwrap();
    Somebody { token, by }
}

/// The smallest thing that is an image.
pub(crate) const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\nsmall";

pub(crate) fn small_image() -> AttachedFile {
    let (name, media_type) = ("small.png".to_owned(), "image/png".to_owned());
    AttachedFile { kind: AttachedKind::Image, name, media_type, content: IMAGE.into() }
}
