//! Twin servers: on one of them somebody else lives, on the other they never existed. Whoever must not see them gets the same
//! answers from both, to the letter: lists, counts, pages, streams, explanations and errors, with their heads.
//!
//! Before they are compared, ids are numbered as they appear, and moments and cursors are left out. People of one org see
//! each other's names: `GET /users` and the number in `GET /org` are the exception that is documented.

use crate::town::{Busy, SOON, Town};
use crate::world::{Somebody, trace};
use engine::{Expiry, IfNew, MakeToken, Resource};
use futures_util::StreamExt;
use kernel::{
    ApprovalId, Fact, Grant, Grantee, GroupId, MessageId, PersonId, Request, Rights, Role, SessionId, To,
    TokenId,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;

/// Ids that the one who asks might guess: the other's, or nobody's.
struct Guessed {
    session: SessionId,
    ended: SessionId,
    message: MessageId,
    approval: ApprovalId,
    person: PersonId,
    group: GroupId,
    token: TokenId,
    conversation: String,
}

impl Guessed {
    /// Where the other never existed.
    fn nobodys() -> Self {
        // Ids that are counted begin with a row of zeros, and this one does not end with it.
        let bits = (5 << 110) + 0x5_5555;
        Self {
            session: SessionId::from_bits(bits),
            ended: SessionId::from_bits(bits + 1),
            message: MessageId::from_bits(bits),
            approval: ApprovalId::from_bits(bits),
            person: PersonId::from_bits(bits),
            group: GroupId::from_bits(bits),
            token: TokenId::from_bits(bits),
            conversation: "web:yves/1".to_owned(),
        }
    }
}

/// A title that only the other has given.
const THEIR_TITLE: &str = "theirs alone";
/// A title that both have given.
const TITLE_OF_BOTH: &str = "plans";

/// The other's org: the same, or another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Near {
    SameOrg,
    OtherOrg,
}

/// The one who asks, whoever runs their org, and whoever shares something with them.
struct Asker {
    x: Somebody,
    boss: Somebody,
}

async fn asker(town: &Town, near: Near) -> Asker {
    match near {
        Near::SameOrg => {
            let x = town.person(&town.host, "xena", Role::Member).await;
            Asker { x, boss: town.host.clone() }
        }
        Near::OtherOrg => {
            let x = town.org("xorg", "xena").await;
            Asker { boss: town.person(&x, "xavier", Role::Owner).await, x }
        }
    }
}

/// The other lives a full life: sessions open, ended and bound, something that waits, a question, a credential, a group.
async fn other_life(town: &Town, near: Near) -> (Somebody, Guessed) {
    let y = match near {
        Near::SameOrg => town.person(&town.host, "yves", Role::Member).await,
        Near::OtherOrg => town.org("yorg", "yves").await,
    };
    let Busy { session, runs, asks } = town.busy(&y, None).await;
    town.say(&y, To::Session(session), "later").await;
    name(town, &y, session, THEIR_TITLE).await;
    if near == Near::SameOrg {
        town.offer(&y, session, town.host.by.person).await;
    }
    let (ended, _) = town.say(&y, To::New, "over soon").await;
    name(town, &y, ended, TITLE_OF_BOTH).await;
    town.end(&y, ended).await;
    let (by, conversation) = (town.now(&y).await, "web:yves/1".to_owned());
    let bind = Some(conversation.parse().unwrap());
    town.engine.way_in().make(&by, IfNew::default(), bind, trace()).await.unwrap();
    let file = town.ask(Some(&y.token), "POST", "/api/v1/sessions/import").body(one_turn(brought_by_both()));
    assert_eq!(file.header("content-type", api::EXPORT_TYPE).send().await.unwrap().status(), 201);
    let token = town.token(&y, Rights::ALL).await.by.credential.unwrap();
    // People of one org see its groups, so the one of the same org has none.
    let group = match near {
        Near::SameOrg => GroupId::from_bits(5 << 110),
        Near::OtherOrg => town.engine.people().make_group(&by, "theirs".into(), trace()).await.unwrap().group,
    };
    let person = y.by.person;
    (y, Guessed { session, ended, message: runs, approval: asks, person, group, token, conversation })
}

/// Gives a session a title, by which it goes from then on.
async fn name(town: &Town, who: &Somebody, session: SessionId, title: &str) {
    let path = format!("/api/v1/sessions/{session}");
    let ask = town.ask(Some(&who.token), "PATCH", &path).header("x-correlation-id", "test");
    let answered = ask.json(&json!({ "title": title })).send().await.unwrap();
    assert_eq!(answered.status(), 200);
}

/// The other goes on while the one who asks does.
async fn other_goes_on(town: &Town, y: &Somebody, guessed: &Guessed) {
    town.say(y, To::Session(guessed.session), "and more").await;
    let (session, message) = town.say(y, To::New, "something new").await;
    let by = town.now(y).await;
    town.engine.views().receipt_within(&by, message, SOON).await.unwrap();
    town.engine.way_in().ask(&by, Request::End { session }, trace()).await.unwrap();
}

/// The belongings of the one who asks: a talk, a session with a question and a queue, one that has ended, one that was
/// shared.
struct Things {
    talk: SessionId,
    said: MessageId,
    busy: Busy,
    ended: SessionId,
    shared: SessionId,
}

async fn own_life(town: &Town, asker: &Asker) -> Things {
    let Asker { x, boss } = asker;
    let settled = async |who: &Somebody, message| {
        let by = town.now(who).await;
        town.engine.views().receipt_within(&by, message, SOON).await.unwrap();
    };
    let conversation = |name: &str| To::Conversation(format!("web:xena/{name}").parse().unwrap());
    let (talk, said) = town.say(x, conversation("one"), "hello").await;
    settled(x, said).await;
    name(town, x, talk, TITLE_OF_BOTH).await;
    let busy = town.busy(x, None).await;
    let (_, waits) = town.say(x, To::Session(busy.session), "later").await;
    let queued = |fact: &Fact| matches!(fact, Fact::Queued { message, .. } if *message == waits);
    town.fact(x, busy.session, queued).await;
    let (ended, last) = town.say(x, conversation("two"), "over soon").await;
    settled(x, last).await;
    town.end(x, ended).await;
    let (shared, theirs) = town.say(boss, To::New, "look at this").await;
    settled(boss, theirs).await;
    town.give(boss, shared, Grantee::Person(x.by.person), Grant::View).await;
    let make = MakeToken { name: "mine".into(), rights: Rights::ALL, expires: Expiry::Never, client: None };
    town.engine.people().make_token(&town.now(x).await, make, trace()).await.unwrap();
    let by = town.now(boss).await;
    let group = town.engine.people().make_group(&by, "ours".into(), trace()).await.unwrap().group;
    town.engine.people().join(&by, group, x.by.person, trace()).await.unwrap();
    town.engine
        .people()
        .give(&by, Resource::Agent("keyed".into()), Grantee::Org, Grant::View, trace())
        .await
        .unwrap();
    Things { talk, said, busy, ended, shared }
}

/// Everything that was answered, ready to be compared.
struct Transcript {
    text: String,
    ids: HashMap<String, String>,
}

impl Transcript {
    /// Numbers ids in the order in which they appear, and leaves moments out.
    fn plain(&mut self, text: &str) -> String {
        let mut plain = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let skipped = if let Some(id) = id_at(rest) {
                let number = self.ids.len();
                let label =
                    self.ids.entry(id.to_owned()).or_insert_with(|| format!("<{}{number}>", &id[..4]));
                plain.push_str(label);
                id.len()
            } else if moment_at(rest) {
                plain.push_str("<moment>");
                MOMENT.len()
            } else {
                plain.push(first);
                first.len_utf8()
            };
            rest = &rest[skipped..];
        }
        plain
    }

    fn add(&mut self, line: &str) {
        let line = self.plain(line);
        self.text.push_str(&line);
        self.text.push('\n');
    }
}

const MOMENT: &str = "2001-09-09T01:46:40.000Z";

fn moment_at(text: &str) -> bool {
    let fits = |(is, like): (u8, u8)| if like.is_ascii_digit() { is.is_ascii_digit() } else { is == like };
    text.len() >= MOMENT.len() && text.bytes().zip(MOMENT.bytes()).all(fits)
}

fn id_at(text: &str) -> Option<&str> {
    const KINDS: [&str; 9] = ["ses_", "msg_", "apr_", "usr_", "org_", "grp_", "tok_", "nod_", "req_"];
    let id = text.get(..30).filter(|id| KINDS.iter().any(|kind| id.starts_with(kind)))?;
    id[4..].bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(id)
}

/// Cursors mean nothing to anybody but their list; leases, entries of the audit and agents' own conversations have ids that
/// are numbers of the whole machine's; seals are made of ids.
fn without_cursors(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), &value) {
                    ("next" | "cursor", Value::String(_)) | ("entry" | "seal" | "term" | "native", _) => {
                        *value = json!("<left out>");
                    }
                    _ => without_cursors(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(without_cursors),
        _ => {}
    }
}

struct Script<'a> {
    town: &'a Town,
    token: &'a str,
    me: PersonId,
    told: Transcript,
}

impl Script<'_> {
    /// Asks, and writes down all of the answer. Says where the next page begins.
    async fn get(&mut self, path: &str) -> Option<String> {
        self.ask("GET", path, None).await
    }

    /// The same, where the path has a piece of an id: what is written down is what it is a piece of.
    async fn get_piece(&mut self, path: &str, piece: &str, told_as: &str) {
        let ask = self.town.ask(Some(self.token), "GET", &format!("{path}{piece}"));
        self.tell("GET", &format!("{path}{told_as}"), ask.header("x-correlation-id", "twin")).await;
    }

    async fn ask(&mut self, method: &str, path: &str, body: Option<Value>) -> Option<String> {
        let ask = self.town.ask(Some(self.token), method, path).header("x-correlation-id", "twin");
        let ask = match &body {
            Some(body) => ask.json(body),
            None => ask,
        };
        self.tell(method, path, ask).await
    }

    /// Brings a conversation that had this id elsewhere.
    async fn import(&mut self, id: SessionId) {
        let path = "/api/v1/sessions/import";
        let ask = self.town.ask(Some(self.token), "POST", path).header("x-correlation-id", "twin");
        let ask = ask.header("content-type", api::EXPORT_TYPE).body(one_turn(id));
        self.tell("POST", path, ask).await;
    }

    async fn tell(&mut self, method: &str, path: &str, ask: reqwest::RequestBuilder) -> Option<String> {
        let response = ask.send().await.unwrap();
        let mut told =
            format!("{method} {} → {}\n", path.split("cursor=").next().unwrap(), response.status());
        heads_of(&response, &mut told);
        let text = response.text().await.unwrap();
        let mut next = None;
        match serde_json::from_str::<Value>(&text) {
            Ok(mut value) => {
                next = value["next"].as_str().map(str::to_owned);
                without_cursors(&mut value);
                told.push_str(&serde_json::to_string_pretty(&value).unwrap());
            }
            Err(_) => told.push_str(&text),
        }
        self.told.add(&told);
        next
    }

    /// Every page of a list, one item each.
    async fn pages(&mut self, list: &str) {
        let mut next = self.get(&format!("{list}limit=1")).await;
        for _ in 0..20 {
            let Some(cursor) = next else { return };
            next = self.get(&format!("{list}limit=1&cursor={cursor}")).await;
        }
    }

    /// A stream, until this was told.
    async fn stream(&mut self, path: &str, until: &str) {
        let ask = self.town.ask(Some(self.token), "GET", path).header("accept", "text/event-stream");
        let response = ask.header("x-correlation-id", "twin").send().await.unwrap();
        let mut told = format!("STREAM {path} → {}\n", response.status());
        heads_of(&response, &mut told);
        let mut frames = response.bytes_stream();
        let mut text = String::new();
        let reading = async {
            while !text.contains(until) {
                let frame = frames.next().await.expect("it goes on").unwrap();
                text.push_str(std::str::from_utf8(&frame).unwrap());
            }
        };
        tokio::time::timeout(SOON, reading).await.unwrap_or_else(|_| panic!("{path} tells {until}"));
        for line in text.lines() {
            let line = match line.strip_prefix("data: ").map(serde_json::from_str::<Value>) {
                Some(Ok(mut value)) => {
                    without_cursors(&mut value);
                    format!("data: {value}")
                }
                _ if line.starts_with("id: h") => "id: <cursor>".to_owned(),
                _ => line.to_owned(),
            };
            told.push_str(&line);
            told.push('\n');
        }
        self.told.add(&told);
    }
}

fn heads_of(response: &reqwest::Response, told: &mut String) {
    let mut heads: Vec<_> = response.headers().iter().collect();
    heads.sort_by_key(|(name, _)| name.as_str());
    for (name, value) in heads {
        // The length depends on cursors, and the date on the day.
        if !matches!(name.as_str(), "date" | "content-length") {
            writeln!(told, "{name}: {}", value.to_str().unwrap()).unwrap();
        }
    }
}

/// Everything that can be asked, asked by the one who must not see the other.
async fn everything(town: &Town, near: Near, x: &Somebody, things: &Things, guessed: &Guessed) -> String {
    let told = Transcript { text: String::new(), ids: HashMap::new() };
    let mut script = Script { town, token: &x.token, me: x.by.person, told };
    let Things { talk, said, busy, ended, shared } = things;
    for path in ["/healthz", "/readyz", "/metrics", "/api/v1/me", "/api/v1/nodes", "/api/v1/agents"] {
        script.get(path).await;
    }
    for list in ["approvals", "bindings", "groups", "offers", "orgs", "roots", "tokens", "wall", "sign-in"] {
        script.get(&format!("/api/v1/{list}")).await;
    }
    if near == Near::OtherOrg {
        script.get("/api/v1/users").await;
        script.pages("/api/v1/users?").await;
        script.get("/api/v1/org").await;
    }
    for path in ["/api/v1/approvals?state=settled", "/api/v1/approvals?state=all", "/api/v1/usage"] {
        script.get(path).await;
    }
    for which in ["open", "ended", "all"] {
        script.get(&format!("/api/v1/sessions?which={which}")).await;
        script.pages(&format!("/api/v1/sessions?which={which}&")).await;
    }
    names(&mut script, things, guessed).await;
    searches(&mut script, things, guessed).await;
    script.get("/api/v1/facts").await;
    script.pages("/api/v1/bindings?").await;
    for session in [talk, &busy.session, ended, shared, &guessed.session, &guessed.ended] {
        for part in [
            "",
            "/facts",
            "/facts?limit=2",
            "/facts?before=5&limit=2&words=true",
            "/turns",
            "/turns?before=2&limit=1",
            "/queue",
            "/grants",
            "/changes?turn=1",
            "/changes?turn=9",
            "/changes/file?turn=1&path=a.txt",
            "/changes/file?turn=9&path=a.txt&from=9",
            "/worktrees/blue/changes",
            "/worktrees/blue/changes/file?path=a.txt",
            "/readiness",
            "/undo?turn=1",
            "/undo?turn=9",
            "/files",
        ] {
            script.get(&format!("/api/v1/sessions/{session}{part}")).await;
        }
        script.get(&format!("/api/v1/route?session={session}")).await;
        script.get(&format!("/api/v1/worktrees?session={session}")).await;
        for state in ["open", "settled", "all"] {
            script.get(&format!("/api/v1/approvals?state={state}&session={session}")).await;
        }
    }
    for message in [said, &busy.runs, &guessed.message] {
        script.get(&format!("/api/v1/messages/{message}?words=true")).await;
    }
    for address in ["web:xena/one", "web:xena/two", "web:xena/never", &guessed.conversation] {
        script.get(&format!("/api/v1/route?conversation={address}")).await;
    }
    script.get("/api/v1/route?new=true").await;
    for agent in ["scripted", "keyed", "nobody"] {
        script.get(&format!("/api/v1/agents/{agent}/account")).await;
        script.get(&format!("/api/v1/agents/{agent}/grants")).await;
    }
    if near == Near::OtherOrg {
        // One org's people see each other by name, so that these are the same only for somebody of another.
        script.get(&format!("/api/v1/users/{}", guessed.person)).await;
        script.get("/api/v1/users?named=yves").await;
    }
    script.get(&format!("/api/v1/tokens?user={}", guessed.person)).await;
    noted(town, near, x).await;
    refusals(&mut script, guessed).await;
    imports(&mut script, guessed).await;
    script.stream(&format!("/api/v1/sessions/{talk}/facts"), "\"turn_ended\"").await;
    script.stream("/api/v1/facts", &shared.to_string()).await;
    // Rows come in the order of their last changes; what cannot be watched is told before them.
    script
        .stream(&format!("/api/v1/stream?cursor=w0&watch={}:0", guessed.session), &shared.to_string())
        .await;
    sealed(town, near, x).await;
    script.get("/api/v1/audit?limit=200").await;
    script.pages("/api/v1/audit?what=say&").await;
    script.get(&format!("/api/v1/audit?who={}", guessed.person)).await;
    script.get(&format!("/api/v1/audit?subject={}", guessed.session)).await;
    script.get("/api/v1/audit/verify").await;
    script.told.text
}

/// Names: pieces of ids and titles, of one's own sessions, of the other's, and of nobody's.
async fn names(script: &mut Script<'_>, things: &Things, guessed: &Guessed) {
    let Things { talk, busy, ended, shared, .. } = things;
    let list = "/api/v1/sessions?name=";
    let own = [talk, &busy.session, ended, shared].map(ToString::to_string);
    let others = [&guessed.session, &guessed.ended].map(ToString::to_string);
    for id in own.iter().chain(&others) {
        let mut pieces = vec![
            (id.clone(), "all of it"),
            (id[22..].to_owned(), "its end"),
            (format!("ses_{}", &id[22..]), "its end with the prefix"),
            (id[22..].to_uppercase(), "its end, in capitals"),
            (id[14..26].to_owned(), "its middle"),
            (format!("{}zzzz", &id[..26]), "almost"),
        ];
        // Ids are numbers here: the other's begin like one's own, and nobody's do not.
        if own.contains(id) {
            pieces.push((id[..20].to_owned(), "its beginning"));
            pieces.push((id[4..20].to_owned(), "its beginning without the prefix"));
        }
        for (piece, told_as) in pieces {
            script.get_piece(list, &piece, told_as).await;
            script.get_piece("/api/v1/sessions?limit=1&name=", &piece, told_as).await;
        }
    }
    for id in &others {
        let (_, _, found) =
            script.town.answer(Some(script.token), "GET", &format!("{list}{}", &id[..20]), None).await;
        let found = found["items"].as_array().unwrap();
        assert!(found.iter().all(|found| own.iter().any(|own| found["id"] == **own)), "{found:?}");
    }
    // All of their own begin so, and all of the other's.
    script.get_piece(list, &talk.to_string()[..8], "how the ids of these days begin").await;
    for title in [THEIR_TITLE, TITLE_OF_BOTH, "Plans", "plan", "nobody's"] {
        script.get(&format!("{list}{title}")).await;
        for which in ["open", "ended", "all"] {
            script.get(&format!("/api/v1/sessions?which={which}&text={title}")).await;
        }
    }
    for narrowed in
        ["agent=scripted", "agent=nobody", "doing=running", "doing=waiting", "doing=dormant", "text=soon"]
    {
        script.get(&format!("/api/v1/sessions?{narrowed}")).await;
        script.pages(&format!("/api/v1/sessions?{narrowed}&")).await;
    }
    let (of, forks) = (format!("owner={}", guessed.person), format!("origin={}", guessed.session));
    for narrowed in [
        "needs=questions",
        "needs=held",
        "needs=failed",
        "needs=unread",
        "owner=me",
        "archived=true",
        of.as_str(),
        forks.as_str(),
    ] {
        script.get(&format!("/api/v1/sessions?which=all&{narrowed}")).await;
        script.pages(&format!("/api/v1/sessions?{narrowed}&")).await;
    }
    script.get("/api/v1/sessions/counts").await;
    for wrong in ["name=", "name=zzz", "name=plans&text=plans", "name=plans&cursor=x", "text="] {
        script.get(&format!("/api/v1/sessions?{wrong}")).await;
    }
}

/// Searches, once their own words can be found: by words that only they have said, that only the other has, and that both have.
async fn searches(script: &mut Script<'_>, things: &Things, guessed: &Guessed) {
    let findable = async {
        loop {
            let (_, _, page) =
                script.town.answer(Some(script.token), "GET", "/api/v1/search?q=look", None).await;
            // A message and its answer, in what was shared with them last.
            if page["items"].as_array().is_some_and(|hits| hits.len() == 2) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, findable).await.expect("it can be found in the end");
    for typed in
        ["hello", "over%20soon", "something%20new", "more", "look%20at", "ov", "-", "nobody%20said%20this"]
    {
        script.get(&format!("/api/v1/search?q={typed}")).await;
        script.pages(&format!("/api/v1/search?q={typed}&")).await;
        for session in [&things.talk, &things.shared, &guessed.session, &guessed.ended] {
            script.get(&format!("/api/v1/search?q={typed}&session={session}")).await;
        }
    }
    for wrong in ["q=", "q=a&cursor=x", "q=a&limit=0", ""] {
        script.get(&format!("/api/v1/search?{wrong}")).await;
    }
}

/// Wishes about what was guessed.
async fn refusals(script: &mut Script<'_>, guessed: &Guessed) {
    let Guessed { session, ended, message, approval, person, group, token, conversation } = guessed;
    let say = |to: Value| Some(json!({"to": to, "text": "hello"}));
    for session in [session, ended] {
        script.ask("POST", "/api/v1/messages", say(json!({"session": session.to_string()}))).await;
        script.ask("POST", &format!("/api/v1/sessions/{session}/end"), None).await;
        script.ask("PATCH", &format!("/api/v1/sessions/{session}"), Some(json!({"title": "x"}))).await;
        let scope = format!("/api/v1/sessions/{session}/scope");
        for change in [json!({"enter": {"name": "blue"}}), json!({"exit": true}), json!({"relink": "/srv"})] {
            script.ask("POST", &scope, Some(change)).await;
        }
        script.ask("DELETE", &scope, None).await;
        for turn in [1, 9] {
            script
                .ask("POST", &format!("/api/v1/sessions/{session}/undo"), Some(json!({"turn": turn})))
                .await;
            script
                .ask("POST", &format!("/api/v1/sessions/{session}/redo"), Some(json!({"turn": turn})))
                .await;
            script.ask("POST", &format!("/api/v1/sessions/{session}/fork"), Some(json!({"at": turn}))).await;
        }
        for (delivery, under) in [("interrupt", 0), ("steer", 9)] {
            let to = json!({"session": session.to_string()});
            let said = json!({"to": to, "text": "x", "delivery": delivery, "under": under});
            script.ask("POST", "/api/v1/messages", Some(said)).await;
        }
        let over = format!("/api/v1/sessions/{session}/hand-over");
        script.ask("POST", &over, Some(json!({"to": script.me.to_string()}))).await;
        script.ask("DELETE", &over, None).await;
        for answer in ["accept", "decline"] {
            script.ask("POST", &format!("{over}/{answer}"), None).await;
        }
        let marks = format!("/api/v1/sessions/{session}/marks");
        for change in [json!({"seen": 9}), json!({"pinned": true}), json!({})] {
            script.ask("PUT", &marks, Some(change)).await;
        }
        let order = Some(json!({"order": [message.to_string()]}));
        script.ask("PUT", &format!("/api/v1/sessions/{session}/queue"), order).await;
        script.ask("POST", &format!("/api/v1/sessions/{session}/stop-background"), None).await;
        let tree = format!("/api/v1/sessions/{session}/worktrees/blue");
        script.ask("DELETE", &tree, None).await;
        for verb in ["restore", "merge", "apply"] {
            script.ask("POST", &format!("{tree}/{verb}"), Some(json!({}))).await;
        }
    }
    script.get(&format!("/api/v1/messages/{message}/attachments/1")).await;
    script.ask("POST", "/api/v1/messages", say(json!({"conversation": conversation}))).await;
    script.ask("POST", &format!("/api/v1/messages/{message}/stop"), None).await;
    for there in [false, true] {
        let release = json!({"held": false, "there": there});
        script.ask("PATCH", &format!("/api/v1/messages/{message}"), Some(release)).await;
    }
    for delivery in ["steer", "interrupt"] {
        let change = json!({"delivery": delivery});
        script.ask("PATCH", &format!("/api/v1/messages/{message}"), Some(change)).await;
    }
    script.ask("DELETE", &format!("/api/v1/messages/{message}"), None).await;
    script.ask("POST", &format!("/api/v1/approvals/{approval}"), Some(json!({"answer": "yes"}))).await;
    script.ask("POST", &format!("/api/v1/users/{person}/disable"), None).await;
    script.ask("DELETE", &format!("/api/v1/groups/{group}"), None).await;
    script.ask("DELETE", &format!("/api/v1/tokens/{token}"), None).await;
}

/// The session that both have brought under one name, and what the other's own session is called.
async fn imports(script: &mut Script<'_>, guessed: &Guessed) {
    for id in [brought_by_both(), guessed.session] {
        script.get(&format!("/api/v1/sessions/{id}")).await;
        script.import(id).await;
        script.import(id).await;
        for part in ["", "/facts", "/queue", "/grants", "/export"] {
            script.get(&format!("/api/v1/sessions/{id}{part}")).await;
        }
        script.get(&format!("/api/v1/route?session={id}")).await;
        script.ask("POST", &format!("/api/v1/sessions/{id}/end"), None).await;
    }
}

fn brought_by_both() -> SessionId {
    SessionId::from_bits(6 << 110)
}

/// The file of a conversation of one turn.
fn one_turn(id: SessionId) -> String {
    let at = "2001-09-09T01:46:40.000Z";
    let left_out = json!({"turns": 0, "messages": 0, "questions": 0, "changes": 0});
    let said = json!([{"by": "zoe", "at": at, "parts": [{"type": "text", "text": "hello"}]}]);
    let lines = [
        json!({"type": "header", "format": "homing-session", "version": 1, "session": id.to_string(), "org": "far",
            "by": "zoe", "at": at, "left_out": left_out}),
        json!({"type": "turn", "turn": 1, "began_at": at, "ended_at": at, "said": said, "story": [], "outcome": "answered"}),
        json!({"type": "end", "turns": 1}),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

/// Waits until the read that was refused is in the audit: it is written after its answer, so that what comes now could be
/// there before it.
async fn noted(town: &Town, near: Near, x: &Somebody) {
    if near == Near::SameOrg {
        return;
    }
    let written = async {
        loop {
            let (_, _, page) =
                town.answer(Some(&x.token), "GET", "/api/v1/audit?what=read&limit=1", None).await;
            if page["items"][0].is_object() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, written).await.expect("it is written down");
}

/// Waits until every entry of the org is in the chain, which takes about a second.
async fn sealed(town: &Town, near: Near, x: &Somebody) {
    if near == Near::SameOrg {
        return;
    }
    let all = async {
        loop {
            let (_, _, page) = town.answer(Some(&x.token), "GET", "/api/v1/audit?limit=1", None).await;
            if page["items"][0]["number"].is_u64() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, all).await.expect("it is sealed");
}

/// The answers to the one who asks on a server, with the other or without.
async fn answers(near: Near, with_other: bool) -> String {
    let town = Town::new(&[]).await;
    let asker = asker(&town, near).await;
    let other = if with_other { Some(other_life(&town, near).await) } else { None };
    let things = own_life(&town, &asker).await;
    if let Some((y, guessed)) = &other {
        other_goes_on(&town, y, guessed).await;
    }
    let guessed = other.map_or_else(Guessed::nobodys, |(_, guessed)| guessed);
    let text = everything(&town, near, &asker.x, &things, &guessed).await;
    town.close().await;
    text
}

async fn compare(near: Near) {
    let (with, without) = (answers(near, true).await, answers(near, false).await);
    let lines = with.lines().zip(without.lines());
    let differ = lines.enumerate().find(|(_, (with, without))| with != without);
    if let Some((at, (with_line, without_line))) = differ {
        let near: Vec<_> = with.lines().skip(at.saturating_sub(40)).take(60).collect();
        panic!("line {at}: {with_line:?} with the other, {without_line:?} without:\n{}", near.join("\n"));
    }
    assert_eq!(with.lines().count(), without.lines().count());
    assert!(with.lines().count() > 1_000, "much was asked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_whom_nothing_was_given_it_is_as_if_the_other_of_the_same_org_had_nothing() {
    compare(Near::SameOrg).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn to_another_org_it_is_as_if_the_other_did_not_exist() {
    compare(Near::OtherOrg).await;
}
