//! The table: every operation of the interface, what it takes, what it is asked about, and how it is asked.

use super::rule::{Agent, Spot, Stands, Takes, Target, Which, Whom};
use kernel::{Grant, Right, Rights, Role, SessionId};
use serde_json::{Value, json};

/// Names and ids that a request is made of.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    pub(super) session: String,
    pub(super) message: String,
    pub(super) approval: String,
    /// A conversation.
    pub(super) address: String,
    pub(super) directory: String,
    pub(super) person: String,
    pub(super) group: String,
    pub(super) rule: String,
    pub(super) token: String,
    pub(super) agent: String,
    /// Somebody else of the caller's org, to whom something may be given.
    pub(super) heir: String,
    /// A name that nobody has used.
    pub(super) fresh: String,
    /// A worktree that there is not.
    pub(super) worktree: String,
    /// The number of a reply that there is not.
    pub(super) reply: String,
    /// The number of an attachment that there is.
    pub(super) number: String,
}

/// One way of asking an operation.
pub(super) struct Row {
    pub(super) operation: &'static str,
    /// The way, if there are several.
    pub(super) way: &'static str,
    pub(super) takes: Takes,
    pub(super) targets: Vec<Target>,
    /// The status of what may be done.
    pub(super) fine: u16,
    /// The code of what may be done, where the session itself says no.
    pub(super) keeper: Option<&'static str>,
    /// True if it changes something: then what it is about is made for it alone.
    pub(super) changes: bool,
    /// True if it changes the caller or their credential: then somebody like them asks instead.
    pub(super) changes_caller: bool,
    /// The names in the path's braces, in their order.
    pub(super) path: fn(&Names) -> Vec<&String>,
    pub(super) query: fn(&Names) -> String,
    pub(super) body: fn(&Names) -> Option<Value>,
    pub(super) accept: Option<&'static str>,
    /// The kind of the body, if it is a text and not JSON.
    pub(super) kind: Option<&'static str>,
    /// The code of a 403 that the rule leaves to the row.
    pub(super) not_theirs: &'static str,
}

fn row(operation: &'static str, takes: Takes, targets: Vec<Target>) -> Row {
    Row {
        operation,
        way: "",
        takes,
        targets,
        fine: 200,
        keeper: None,
        changes: false,
        changes_caller: false,
        path: |_| vec![],
        query: |_| String::new(),
        body: |_| None,
        accept: None,
        kind: None,
        not_theirs: "",
    }
}

impl Row {
    fn way(self, way: &'static str) -> Self {
        Self { way, ..self }
    }
    fn fine(self, fine: u16) -> Self {
        Self { fine, ..self }
    }
    fn keeper(self, code: &'static str) -> Self {
        Self { fine: 409, keeper: Some(code), ..self }
    }
    fn changes(self) -> Self {
        Self { changes: true, ..self }
    }
    fn changes_caller(self) -> Self {
        Self { changes: true, changes_caller: true, ..self }
    }
    /// The thing that is asked about is not there, and only whoever may ask is told so.
    fn finds_nothing(self) -> Self {
        Self { fine: 404, keeper: Some("not_found"), ..self }
    }
    fn path(self, path: fn(&Names) -> Vec<&String>) -> Self {
        Self { path, ..self }
    }
    fn query(self, query: fn(&Names) -> String) -> Self {
        Self { query, ..self }
    }
    fn body(self, body: fn(&Names) -> Option<Value>) -> Self {
        Self { body, ..self }
    }
    fn accept(self, accept: &'static str) -> Self {
        Self { accept: Some(accept), ..self }
    }
    fn kind(self, kind: &'static str) -> Self {
        Self { kind: Some(kind), ..self }
    }
    fn not_theirs(self, not_theirs: &'static str) -> Self {
        Self { not_theirs, ..self }
    }
}

/// Every way of asking every operation.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = open_and_lists();
    rows.extend(sessions());
    rows.extend(scopes());
    rows.extend(worktrees());
    rows.extend(messages());
    rows.extend(new_sessions());
    rows.extend(agents());
    rows.extend(myself());
    rows.extend(people());
    rows.extend(groups_and_roots());
    rows.extend(house());
    rows
}

fn open_and_lists() -> Vec<Row> {
    let reads = |operation| row(operation, Takes::Read, vec![Target::Nothing]);
    let sign_in = Takes::Open(401, Some("wrong_sign_in"));
    vec![
        row("healthz", Takes::Open(200, None), vec![Target::Nothing]),
        row("sign_in_ways", Takes::Open(200, None), vec![Target::Nothing]),
        row("sign_in", sign_in, vec![Target::Nothing])
            .body(|_| Some(json!({"link": "nobody-ever-made-this-one", "for": "cli"}))),
        row("readyz", Takes::Credential, vec![Target::Nothing]),
        row("metrics", Takes::Figures, vec![Target::Nothing]),
        row("program", Takes::Figures, vec![Target::Nothing]),
        row("doctor", Takes::Figures, vec![Target::Nothing]),
        reads("me"),
        reads("sessions"),
        reads("sessions").way("ended").query(|_| "which=ended".into()),
        reads("sessions").way("narrowed").query(|_| "agent=scripted&doing=dormant&directory=/&text=a".into()),
        reads("sessions").way("needing").query(|_| "needs=unread&owner=me&archived=false".into()),
        reads("session_counts"),
        reads("usage"),
        reads("search").query(|_| "q=hello".into()),
        reads("sessions").way("named").query(|_| "name=nobody-is-called-this".into()),
        reads("heads"),
        reads("heads").way("stream").accept("text/event-stream"),
        reads("browser_stream").accept("text/event-stream"),
        row("browser_stream", Takes::Watch, open_spots())
            .way("watching")
            .query(|names| format!("watch={}:0", names.session))
            .accept("text/event-stream"),
        reads("bindings"),
        reads("approvals"),
        reads("approvals").way("all").query(|_| "state=all".into()),
        reads("agents"),
        reads("nodes"),
        reads("explain").way("new").query(|_| "new=true".into()),
    ]
}

/// Every way to stand to a session.
pub(super) const STANDS: [Stands; 15] = [
    Stands::Own,
    Stands::Person(Grant::View),
    Stands::Person(Grant::Prompt),
    Stands::Person(Grant::Manage),
    Stands::Group(Grant::View),
    Stands::Group(Grant::Prompt),
    Stands::Group(Grant::Manage),
    Stands::Org(Grant::View),
    Stands::Org(Grant::Prompt),
    Stands::Org(Grant::Manage),
    Stands::WasOwn,
    Stands::WasOwnViews,
    Stands::OwnOfClosedAgent,
    Stands::Foreign,
    Stands::OtherOrg,
];

/// Open and ended sessions of every kind, and one that never was.
fn spots() -> Vec<Target> {
    let unknown = Spot { stands: Stands::Unknown, ended: false, mine: false };
    let all = STANDS
        .into_iter()
        .flat_map(|stands| [false, true].map(|ended| Target::Session(Spot { stands, ended, mine: false })));
    all.chain([Target::Session(unknown)]).collect()
}

fn open_spots() -> Vec<Target> {
    let is_open = |target: &Target| matches!(target, Target::Session(Spot { ended: false, .. }));
    spots().into_iter().filter(is_open).collect()
}

/// The same, with messages of others and of the caller's own, where they may have said any.
fn spots_of_each() -> Vec<Target> {
    let said = |target: &Target| {
        let Target::Session(spot) = target else { return false };
        matches!(
            spot.stands,
            Stands::Own
                | Stands::Person(Grant::Prompt | Grant::Manage)
                | Stands::Group(Grant::Prompt)
                | Stands::Org(Grant::Manage)
        )
    };
    let mut all = spots();
    let mine: Vec<_> = all.iter().copied().filter(said).collect();
    all.extend(mine.into_iter().map(|target| match target {
        Target::Session(spot) => Target::Session(Spot { mine: true, ..spot }),
        other => other,
    }));
    all
}

fn on_session(operation: &'static str, right: Right, grant: Grant, open: bool) -> Row {
    row(operation, Takes::Session { right, grant, open, uses_agent: false }, spots())
        .path(|names| vec![&names.session])
}

fn sessions() -> Vec<Row> {
    let reads = |operation| on_session(operation, Right::Read, Grant::View, false);
    let rules = |operation, open| on_session(operation, Right::Manage, Grant::Manage, open);
    vec![
        reads("session"),
        row(
            "approvals",
            Takes::Session { right: Right::Read, grant: Grant::View, open: false, uses_agent: false },
            spots(),
        )
        .way("of a session")
        .query(|names| format!("state=all&session={}", names.session)),
        reads("facts"),
        reads("facts").way("stream").accept("text/event-stream"),
        reads("facts").way("backwards").query(|_| "before=9&words=true".into()),
        reads("turns"),
        reads("queue"),
        reads("export"),
        row("explain", Takes::Explain, spots())
            .way("session")
            .query(|names| format!("session={}", names.session)),
        reads("change_session").way("nothing").body(|_| Some(json!({}))),
        rules("change_session", false).changes().body(|_| Some(json!({"title": "another"}))),
        reads("search")
            .way("of a session")
            .path(|_| vec![])
            .query(|names| format!("q=hello&session={}", names.session)),
        reads("mark").body(|_| Some(json!({"seen": 1, "pinned": true}))),
        rules("end", false).changes(),
        rules("stop_background", true).keeper("busy"),
        rules("reorder", true).changes().body(|names| Some(json!({"order": [names.message]}))),
        rules("grants", false),
        rules("give", false).changes().body(|_| Some(json!({"to": {"org": true}, "grant": "view"}))),
        rules("take_back", false).changes().query(|_| "org=true".into()),
        rules("hand_over", true).changes().body(|names| Some(json!({"to": names.heir}))),
        Row { targets: open_spots(), ..rules("take_offer_back", false) }.changes(),
        row("accept_offer", Takes::Offered, spots()).changes().path(|names| vec![&names.session]),
        row("decline_offer", Takes::Offered, spots()).changes().path(|names| vec![&names.session]),
        rules("move_binding", true)
            .changes()
            .path(|_| vec![])
            .body(|names| Some(json!({"address": names.address, "session": names.session}))),
    ]
}

/// A turn is under way in each open session, so a change waits and an undo is refused.
fn scopes() -> Vec<Row> {
    let reads = |operation| on_session(operation, Right::Read, Grant::View, false);
    let rules = |operation| on_session(operation, Right::Manage, Grant::Manage, true);
    let changes = |takes| {
        row("change_scope", takes, spots())
            .changes()
            .path(|names| vec![&names.session])
            .not_theirs("directory_not_yours")
    };
    let undoes = Takes::Session { right: Right::Prompt, grant: Grant::Prompt, open: true, uses_agent: true };
    vec![
        rules("change_scope").way("enter").changes().body(|_| Some(json!({"enter": {"name": "blue"}}))),
        rules("change_scope").way("model").changes().body(|_| Some(json!({"set": {"model": "small"}}))),
        rules("change_scope")
            .way("now")
            .keeper("busy")
            .body(|_| Some(json!({"set": {"model": "small"}, "now": true}))),
        changes(Takes::Rescope(Target::Agent(Agent::Closed)))
            .way("agent")
            .body(|_| Some(json!({"set": {"agent": "closed"}}))),
        changes(Takes::Rescope(Target::Theirs(true)))
            .way("directory")
            .body(|names| Some(json!({"relink": names.directory}))),
        changes(Takes::Rescope(Target::Theirs(false)))
            .way("directory of others")
            .body(|_| Some(json!({"relink": "/elsewhere"}))),
        rules("keep_scope").keeper("too_late"),
        row("undo", undoes, spots())
            .keeper("busy")
            .path(|names| vec![&names.session])
            .body(|_| Some(json!({"turn": 1}))),
        row("redo", undoes, spots())
            .keeper("busy")
            .path(|names| vec![&names.session])
            .body(|_| Some(json!({"turn": 1}))),
        row("fork", Takes::Fork, spots())
            .fine(201)
            .changes()
            .path(|names| vec![&names.session])
            .body(|_| Some(json!({"at": 1}))),
        reads("changes").query(|_| "turn=1".into()),
        reads("file_changes").query(|_| "turn=1&path=a.txt".into()),
        reads("preview_undo").query(|_| "turn=1".into()),
        reads("readiness"),
        reads("commands"),
        reads("models"),
        reads("files"),
    ]
}

/// Nobody has a worktree here, so whoever may remove one is told that there is none.
fn worktrees() -> Vec<Row> {
    let manages = |operation| {
        on_session(operation, Right::Manage, Grant::Manage, false)
            .finds_nothing()
            .path(|names| vec![&names.session, &names.worktree])
    };
    let reads = |operation| {
        on_session(operation, Right::Read, Grant::View, false)
            .finds_nothing()
            .path(|names| vec![&names.session, &names.worktree])
    };
    let rules = Takes::Org { right: Right::Manage, role: Role::Viewer };
    vec![
        row("worktrees", Takes::Read, vec![Target::Nothing]),
        on_session("worktrees", Right::Read, Grant::View, false)
            .way("of a session")
            .path(|_| vec![])
            .query(|names| format!("session={}", names.session)),
        reads("worktree_changes"),
        reads("worktree_file_changes").query(|_| "path=a.txt".into()),
        manages("remove_worktree"),
        manages("restore_worktree").body(|_| Some(json!({}))),
        manages("merge_worktree").body(|_| Some(json!({}))),
        manages("apply_worktree").body(|_| Some(json!({}))),
        row("collect_worktrees", rules, vec![Target::Nothing])
            .way("dry")
            .body(|_| Some(json!({"dry_run": true}))),
    ]
}

fn messages() -> Vec<Row> {
    let stops = Takes::Session { right: Right::Prompt, grant: Grant::Prompt, open: false, uses_agent: true };
    let answers =
        Takes::Session { right: Right::Approve, grant: Grant::Prompt, open: true, uses_agent: false };
    let reads = Takes::Session { right: Right::Read, grant: Grant::View, open: false, uses_agent: false };
    let rules = Takes::Session { right: Right::Manage, grant: Grant::Manage, open: true, uses_agent: false };
    let on_message =
        |operation, takes, targets| row(operation, takes, targets).path(|names| vec![&names.message]);
    vec![
        on_message("receipt", reads, spots()).query(|_| "words=true".into()),
        row("attachment", reads, spots()).path(|names| vec![&names.message, &names.number]),
        row("say", Takes::Say, spots())
            .way("session")
            .fine(202)
            .changes()
            .body(|names| Some(json!({"to": {"session": names.session}, "text": "hello"}))),
        row("say", Takes::Say, spots()).way("interrupt").fine(202).changes().body(|names| {
            Some(json!({"to": {"session": names.session}, "text": "now", "delivery": "interrupt"}))
        }),
        on_message("stop", stops, spots()).changes(),
        on_message("withdraw", Takes::Tend, spots_of_each()).changes(),
        on_message("change_message", Takes::Tend, spots_of_each())
            .way("hold")
            .changes()
            .body(|_| Some(json!({"held": true}))),
        on_message("change_message", Takes::Tend, spots_of_each())
            .way("release")
            .changes()
            .body(|_| Some(json!({"held": false, "there": false}))),
        on_message("change_message", Takes::Tend, spots_of_each())
            .way("steer")
            .changes()
            .body(|_| Some(json!({"delivery": "steer"}))),
        on_message("change_message", Takes::Tend, spots_of_each())
            .way("interrupt")
            .changes()
            .body(|_| Some(json!({"delivery": "interrupt"}))),
        // The session goes back with it, so it takes what a change of scope takes, whoever said it.
        on_message("change_message", rules, spots_of_each())
            .way("release there")
            .changes()
            .body(|_| Some(json!({"held": false, "there": true}))),
        on_message("change_message", Takes::Reword, spots_of_each())
            .way("words")
            .changes()
            .body(|_| Some(json!({"text": "other words", "revision": 0}))),
        row("answer", answers, spots())
            .changes()
            .path(|names| vec![&names.approval])
            .body(|_| Some(json!({"answer": "no"}))),
        row("answer", Takes::AnswerForGood, spots())
            .way("for the session")
            .changes()
            .path(|names| vec![&names.approval])
            .body(|_| Some(json!({"answer": "no", "remember": "session"}))),
        row("approval", reads, spots()).path(|names| vec![&names.approval]),
        row("add_rule", rules, spots())
            .way("session")
            .fine(201)
            .changes()
            .body(|names| Some(json!({"effect": "deny", "session": names.session}))),
    ]
}

const AGENTS: [Agent; 5] = [Agent::Open, Agent::Closed, Agent::Looked, Agent::Lent, Agent::Unknown];

fn new_sessions() -> Vec<Row> {
    let makes = |targets| row("make_session", Takes::Make, targets).fine(201).changes();
    let agents = || AGENTS.map(Target::Agent).to_vec();
    let theirs = || vec![Target::Theirs(true), Target::Theirs(false)];
    let says = |targets| row("say", Takes::Make, targets).fine(202).changes();
    let imports = |targets| {
        let row = row("import", Takes::Make, targets).fine(201).changes().kind(api::EXPORT_TYPE);
        row.body(|names| Some(Value::String(empty_export(&names.fresh))))
    };
    vec![
        makes(agents()).way("agent").body(|names| Some(json!({"agent": names.agent}))),
        makes(theirs())
            .way("conversation")
            .not_theirs("address_not_yours")
            .body(|names| Some(json!({"conversation": names.address}))),
        makes(theirs())
            .way("directory")
            .not_theirs("directory_not_yours")
            .body(|names| Some(json!({"directory": names.directory}))),
        makes(theirs())
            .way("worktree")
            .not_theirs("directory_not_yours")
            .body(|names| Some(json!({"directory": names.directory, "worktree": {"name": "blue"}}))),
        row("directories", Takes::Make, theirs())
            .way("in one")
            .not_theirs("directory_not_yours")
            .query(|names| format!("directory={}", names.directory)),
        row("directories", Takes::Make, vec![Target::Nothing]).way("to begin with"),
        imports(agents()).way("agent").query(|names| format!("agent={}", names.agent)),
        imports(theirs())
            .way("directory")
            .not_theirs("directory_not_yours")
            .query(|names| format!("directory={}", names.directory)),
        says(agents())
            .way("agent")
            .body(|names| Some(json!({"to": {"new": {"agent": names.agent}}, "text": "hello"}))),
        says(theirs())
            .way("directory")
            .not_theirs("directory_not_yours")
            .body(|names| Some(json!({"to": {"new": {"directory": names.directory}}, "text": "hello"}))),
    ]
}

/// The file of a session of its own in which nothing was said.
fn empty_export(name: &str) -> String {
    let bits = name.bytes().fold(7, |bits: u128, byte| bits.wrapping_mul(131).wrapping_add(byte.into()));
    let header = json!({
        "type": "header", "format": "homing-session", "version": 1, "org": "far", "by": "eve",
        "session": SessionId::from_bits(bits).to_string(), "at": "2026-01-01T00:00:00.000Z",
        "left_out": {"turns": 0, "messages": 0, "questions": 0, "changes": 0},
    });
    format!("{header}\n{}\n", json!({"type": "end", "turns": 0}))
}

fn agents() -> Vec<Row> {
    let on = |operation, takes| {
        row(operation, takes, AGENTS.map(Target::Agent).to_vec()).path(|names| vec![&names.agent])
    };
    let known = |there| Takes::OnAgent { there };
    let keyed = vec![Target::Nothing];
    let myself = Takes::Org { right: Right::Admin, role: Role::Viewer };
    vec![
        on("account", Takes::Account { right: Right::Read }),
        row("set_account", myself, keyed)
            .changes()
            .path(|names| vec![&names.agent])
            .body(|_| Some(json!({"secrets": {"KEYED_TOKEN": "hush"}}))),
        row("remove_account", myself, vec![Target::Nothing]).changes().path(|names| vec![&names.agent]),
        on("agent_grants", known(true)),
        // What is given on the agents of this table decides other cells, so a spare one is given.
        row("give_agent", known(true), vec![Target::Agent(Agent::Lent), Target::Agent(Agent::Unknown)])
            .changes()
            .path(|names| vec![&names.agent])
            .body(|names| Some(json!({"to": {"user": names.heir}, "grant": "prompt"}))),
        row("take_back_agent", known(false), vec![Target::Agent(Agent::Lent), Target::Agent(Agent::Unknown)])
            .changes()
            .path(|names| vec![&names.agent])
            .query(|names| format!("user={}", names.heir)),
    ]
}

fn myself() -> Vec<Row> {
    let mine = Takes::Org { right: Right::Admin, role: Role::Viewer };
    let nothing = || vec![Target::Nothing];
    vec![
        row("change_me", mine, nothing()).changes().body(|_| Some(json!({"name": "Somebody"}))),
        row("set_password", Takes::OwnPassword, nothing())
            .changes_caller()
            .body(|_| Some(json!({"new": "a long enough password"}))),
        row("pushes", mine, nothing()),
        row("set_push", mine, nothing()).changes().body(|names| {
            // The base point of the curve: anybody's key would do.
            let p256dh =
                "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU";
            let keys = json!({"p256dh": p256dh, "auth": "AAAAAAAAAAAAAAAAAAAAAA"});
            Some(json!({"endpoint": format!("https://push.example/{}", names.fresh), "keys": keys}))
        }),
        row("remove_push", mine, EVERYBODY.map(Target::Token).to_vec())
            .changes()
            .path(|names| vec![&names.token]),
        row("sign_out", Takes::Credential, nothing()).changes_caller(),
        row("make_token", Takes::Mint(Rights::NONE.with(Right::Read)), nothing())
            .way("to read")
            .changes()
            .body(|_| Some(json!({"name": "one", "rights": ["read"]}))),
        row("make_token", Takes::Mint(Rights::ALL), nothing()).way("for all").changes().body(|_| {
            Some(json!({"name": "one", "rights": ["read", "prompt", "approve", "manage", "admin"]}))
        }),
        row("revoke_token", Takes::RevokeToken, EVERYBODY.map(Target::Token).to_vec())
            .changes()
            .path(|names| vec![&names.token]),
    ]
}

const EVERYBODY: [Whom; 7] = [
    Whom::Me,
    Whom::Of(Role::Viewer),
    Whom::Of(Role::Member),
    Whom::Of(Role::Admin),
    Whom::Of(Role::Owner),
    Whom::OtherOrg,
    Whom::Unknown,
];

fn people() -> Vec<Row> {
    let sees = Takes::Org { right: Right::Read, role: Role::Viewer };
    let on = |operation, myself, becomes| {
        let all = EVERYBODY.map(Target::Person).to_vec();
        row(operation, Takes::Person { myself, becomes }, all).path(|names| vec![&names.person])
    };
    // Whoever is let in is made what they become; they were nothing above that.
    let adds = |becomes| row("add_person", Takes::Person { myself: false, becomes: Some(becomes) }, vec![]);
    let newcomer = || vec![Target::Person(Whom::Of(Role::Viewer))];
    vec![
        row("people", sees, vec![Target::Nothing]),
        row("people", sees, vec![Target::Nothing]).way("named").query(|_| "named=ann".into()),
        row("person", Takes::SeePerson, EVERYBODY.map(Target::Person).to_vec())
            .path(|names| vec![&names.person]),
        Row { targets: newcomer(), ..adds(Role::Member) }
            .way("member")
            .changes()
            .body(|names| Some(json!({"handle": names.fresh}))),
        Row { targets: newcomer(), ..adds(Role::Owner) }
            .way("owner")
            .changes()
            .body(|names| Some(json!({"handle": names.fresh, "role": "owner"}))),
        on("change_person", true, None).way("name").changes().body(|_| Some(json!({"name": "Other"}))),
        on("change_person", false, Some(Role::Viewer))
            .way("viewer")
            .changes_caller()
            .body(|_| Some(json!({"role": "viewer"}))),
        on("change_person", false, Some(Role::Owner))
            .way("owner")
            .changes_caller()
            .body(|_| Some(json!({"role": "owner"}))),
        Row { takes: Takes::TheirEmail, ..on("change_person", false, None) }
            .way("email")
            .changes()
            .body(|names| Some(json!({"email": format!("{}@example.org", names.fresh)}))),
        on("disable", false, None).changes_caller(),
        on("enable", false, None).changes_caller(),
        Row { takes: Takes::LetIn, ..on("make_link", true, None) }.changes(),
        on("remove_password", true, None).changes_caller(),
        on("hand_over_all", true, None).changes_caller().body(|names| Some(json!({"to": names.heir}))),
        on("tokens", true, None).way("of").path(|_| vec![]).query(|names| format!("user={}", names.person)),
        row("tokens", Takes::Org { right: Right::Admin, role: Role::Viewer }, vec![Target::Nothing])
            .way("mine"),
    ]
}

fn groups_and_roots() -> Vec<Row> {
    let rules = Takes::Org { right: Right::Admin, role: Role::Admin };
    let sees = Takes::Org { right: Right::Read, role: Role::Viewer };
    let member = |operation| {
        let ours = EVERYBODY.map(|whom| Target::Membership(Which::Ours, whom));
        let none =
            [Which::OtherOrg, Which::Unknown].map(|which| Target::Membership(which, Whom::Of(Role::Member)));
        let all = ours.into_iter().chain(none).collect();
        let takes = Takes::Person { myself: false, becomes: None };
        row(operation, takes, all).changes_caller().path(|names| vec![&names.group, &names.person])
    };
    const EACH: [Which; 3] = [Which::Ours, Which::OtherOrg, Which::Unknown];
    vec![
        row("groups", sees, vec![Target::Nothing]),
        row("offers", sees, vec![Target::Nothing]),
        row("make_group", rules, vec![Target::Nothing])
            .changes()
            .body(|names| Some(json!({"name": names.fresh}))),
        row("remove_group", rules, EACH.map(Target::Group).to_vec())
            .changes()
            .path(|names| vec![&names.group]),
        member("join"),
        member("leave"),
        row("rules", sees, vec![Target::Nothing]),
        row("add_rule", rules, EACH.map(Target::To).to_vec()).way("org").fine(201).changes().body(|names| {
            Some(json!({"effect": "ask", "who": {"user": names.person}, "tool": "none of these"}))
        }),
        row("remove_rule", Takes::RemoveRule, EACH.map(Target::Rule).to_vec())
            .changes()
            .path(|names| vec![&names.rule]),
        row("roots", rules, vec![Target::Nothing]),
        row("add_root", rules, EACH.map(Target::To).to_vec())
            .changes()
            .body(|names| Some(json!({"directory": "/srv/more", "to": {"user": names.person}}))),
        row("remove_root", rules, EACH.map(Target::To).to_vec())
            .changes()
            .query(|names| format!("directory=/srv/more&user={}", names.person)),
    ]
}

fn house() -> Vec<Row> {
    let rules = Takes::Org { right: Right::Admin, role: Role::Admin };
    let sees = Takes::Org { right: Right::Read, role: Role::Viewer };
    let nothing = || vec![Target::Nothing];
    vec![
        row("orgs", Takes::Host, nothing()),
        row("make_org", Takes::Host, nothing())
            .changes()
            .body(|names| Some(json!({"name": names.fresh, "owner": {"handle": "eve"}}))),
        row("org", sees, nothing()),
        row("change_org", rules, nothing()).changes().body(|_| Some(json!({"share_new": null}))),
        row("audit", rules, nothing()).query(|_| "limit=1".into()),
        row("audit", rules, nothing())
            .way("export")
            .query(|_| "since=2100-01-01T00:00:00.000Z".into())
            .accept("application/jsonl"),
        row("verify_audit", rules, nothing()),
        row("wall", rules, nothing()),
        row("outbox", rules, nothing()),
        row("retry_reply", rules, nothing()).changes().finds_nothing().path(|names| vec![&names.reply]),
        row("drop_reply", rules, nothing()).changes().finds_nothing().path(|names| vec![&names.reply]),
    ]
}
