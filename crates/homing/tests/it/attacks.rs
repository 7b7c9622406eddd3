//! Secrets that are planted and then looked for where they do not belong, and what an agent is given of its server.
//!
//! Attacks on the door itself are in `hostile` and in the server's own tests; what an agent can reach is tried by the wall's.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{CommandOutput, Homing, Http, HttpAnswer, Setup, eventually};

use crate::people::{Person, add, mode, url_of};
use crate::{EXE, setup, text};

const PASSWORD: &str = "canary of a password";
const WRONG: &str = "canary of a wrong password";
const ACCOUNT: &str = "canary-of-an-account";
const PROVIDER: &str = "canary-of-a-provider";
const PLANTED: &str = "canary-of-the-environment";

/// An agent that shows its environment, or waits to be looked at.
const AGENT: &str = "#!/bin/sh\nread -r line\ncase $line in env) env ;; *) exec sleep 600 ;; esac\n";

/// A server that says all it can in its log, with that agent, and a provider's secret in a file.
fn talkative() -> (Homing, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let (agent, secret) = (dir.path().join("agent"), dir.path().join("secret"));
    fs::write(&agent, AGENT).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(&secret, PROVIDER).unwrap();
    let config = format!(
        "trust_everyone = true\n[oidc]\nissuer = \"http://127.0.0.1:9\"\nclient_id = \"homing\"\n\
         client_secret = \"file:{}\"\n[agents.keyed]\nkind = \"command\"\nprogram = \"{}\"\n\
         command.secrets = [\"KEYED_SECRET\"]\n",
        secret.display(),
        agent.display()
    );
    let setup = setup().config(&config).variable("HOMING_LOG", "trace").variable("PLANTED", PLANTED);
    (setup.start(), dir)
}

/// Everything that somebody heard, with what they had asked.
#[derive(Default)]
struct Heard(Vec<(String, String)>);

impl Heard {
    fn spoken(&mut self, spoken: &CommandOutput, what: &str) {
        self.0.push((what.to_owned(), format!("{}\n{}", spoken.out, spoken.err)));
    }

    fn answered(&mut self, answered: &HttpAnswer, what: &str) {
        self.0.push((what.to_owned(), format!("{:?}\n{}", answered.headers, answered.text())));
    }
}

/// A secret, and the one file in which it may stand.
struct Canary {
    name: &'static str,
    secret: String,
    home: Option<PathBuf>,
}

/// A person with one of each credential, and a turn of theirs under way.
struct Scene {
    homing: Homing,
    bob: Person,
    bob_id: String,
    session: String,
    message: String,
    agent: u32,
    carol: Http,
    canaries: Vec<Canary>,
    _dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let (homing, dir) = talkative();
        let mut canaries = Vec::new();
        let mut plant = |name, secret: &str, home: Option<PathBuf>| {
            canaries.push(Canary { name, secret: secret.to_owned(), home });
        };
        let bob = Person::new(&homing, "bob");
        let link = add(&homing, &["bob"]);
        bob.type_in(&homing, &["login", "--link"], &link).expect(0);
        bob.type_in(&homing, &["user", "password"], &format!("{PASSWORD}\n")).expect(0);
        let kept: Value = serde_json::from_slice(&fs::read(bob.credentials()).unwrap()).unwrap();
        plant("a spent link", code_of(&link), None);
        plant("an open link", code_of(&add(&homing, &["dave"])), None);
        plant("a terminal's token", &find_secret(&kept), Some(bob.credentials()));
        let token = bob.run(&homing, &["token", "make", "program", "--rights", "read,prompt", "--json"]);
        plant("a program's token", &text(&token.json(0), "secret"), None);
        plant("a cookie", &cookie_of(&homing), None);
        plant("the machine's token", &homing.http().token, Some(homing.data().join("token")));
        for (name, secret) in
            [("a password", PASSWORD), ("a wrong password", WRONG), ("the environment", PLANTED)]
        {
            plant(name, secret, None);
        }
        plant("a provider's secret", PROVIDER, None);
        plant("an account", ACCOUNT, None);
        let set = ["agents", "account", "set", "keyed", "KEYED_SECRET"];
        bob.type_in(&homing, &set, &format!("{ACCOUNT}\n")).expect(0);
        let bob_id = text(&bob.run(&homing, &["whoami", "--json"]).json(0), "person");

        let own = Http { token: find_secret(&kept), ..homing.http() };
        let receipt = own.send(&json!({ "new": { "agent": "keyed" } }), "wait");
        let (session, message) = (text(&receipt, "session"), text(&receipt, "id"));
        let agent = eventually("the agent runs", || {
            let found = homing.leftovers().into_iter().find(|process| process.arguments == "sleep 600");
            found.map(|process| process.pid)
        });
        let file = variable(agent, "HOMING_TOKEN_FILE").expect("an agent can call back");
        plant("a turn's token", fs::read_to_string(&file).unwrap().trim(), Some(file.into()));

        let carol = homing.http().post("/api/v1/users", &json!({ "handle": "carol" })).expect(200);
        let code = code_of(&text(&carol["link"], "path")).to_owned();
        let nobody = Http { token: String::new(), ..homing.http() };
        let carol = nobody.post("/api/v1/sign-in", &json!({ "link": code, "for": "cli" })).expect(200);
        let carol = Http { token: text(&carol, "secret"), ..homing.http() };
        Self { homing, bob, bob_id, session, message, agent, carol, canaries, _dir: dir }
    }

    /// Everything that everybody can read, the owner and bob himself too.
    fn read_everything(&self, heard: &mut Heard) {
        let (bob, session, message) = (&self.bob_id, &self.session, &self.message);
        let own = Http { token: self.canary("a terminal's token").to_owned(), ..self.homing.http() };
        for (who, http) in [("the owner", &self.homing.http()), ("carol", &self.carol), ("bob", &own)] {
            for path in [
                "/metrics",
                "/healthz",
                "/readyz",
                "/api/v1/me",
                "/api/v1/users",
                "/api/v1/groups",
                "/api/v1/tokens",
                "/api/v1/agents",
                "/api/v1/agents/keyed/account",
                "/api/v1/agents/keyed/grants",
                "/api/v1/sessions",
                "/api/v1/approvals",
                "/api/v1/bindings",
                "/api/v1/audit",
                "/api/v1/audit/verify",
                "/api/v1/org",
                "/api/v1/orgs",
                "/api/v1/roots",
                "/api/v1/nodes",
                "/api/v1/sign-in",
                "/api/v1/wall",
                &format!("/api/v1/users/{bob}"),
                &format!("/api/v1/tokens?user={bob}"),
                &format!("/api/v1/sessions/{session}"),
                &format!("/api/v1/sessions/{session}/facts"),
                &format!("/api/v1/sessions/{session}/queue"),
                &format!("/api/v1/sessions/{session}/grants"),
                &format!("/api/v1/messages/{message}"),
            ] {
                heard.answered(&http.get(path), &format!("{who} reads {path}"));
            }
        }
        for arguments in [
            &["config"][..],
            &["config", "--json"],
            &["config", "--schema"],
            &["doctor", "--json"],
            &["doctor"],
            &["agents", "show", "keyed"],
            &["audit", "--jsonl"],
            &["token", "ls"],
            &["user", "ls"],
            &["roots"],
        ] {
            heard.spoken(&self.homing.run(arguments), &format!("{arguments:?}"));
            heard.spoken(&self.bob.run(&self.homing, arguments), &format!("bob's {arguments:?}"));
        }
    }

    /// Each secret where it does not belong: what is said about that does not say it.
    fn misplace_everything(&self, heard: &mut Heard) {
        let (owner, nobody) = (self.homing.http(), Http { token: String::new(), ..self.homing.http() });
        for canary in &self.canaries {
            let secret = canary.secret.as_str();
            let plain = secret.replace(' ', "%20");
            let mut hear = |answered: HttpAnswer, what: &str| {
                assert!(answered.status >= 400, "{} is fine {what}", canary.name);
                heard.answered(&answered, &format!("{} {what}", canary.name));
            };
            for name in ["token", "access_token", "api_key"] {
                hear(owner.get(&format!("/api/v1/me?{name}={plain}")), "in the address");
            }
            hear(
                nobody.must("GET", "/api/v1/me", &[("Authorization", &format!("Basic {secret}"))], None),
                "as Basic",
            );
            hear(
                Http { token: format!("{secret}x"), ..owner.clone() }.get("/api/v1/me"),
                "with a letter more",
            );
            hear(
                nobody.must("GET", "/api/v1/me", &[("Cookie", &format!("homing={secret}x"))], None),
                "in a cookie",
            );
            hear(nobody.get(&format!("/in/{plain}x")), "with a letter more, as a link");
            for body in [json!({ "current": [secret], "new": secret }), json!({ "new": { "x": secret } })] {
                hear(
                    owner.must("PUT", "/api/v1/me/password", &[], Some(&body)),
                    "as a password of another form",
                );
            }
            for secrets in [
                json!(secret),
                json!([secret]),
                json!({ "KEYED_SECRET": [secret] }),
                json!({ "OTHER": secret }),
            ] {
                let body = json!({ "secrets": secrets });
                let answered = owner.must("PUT", "/api/v1/agents/keyed/account", &[], Some(&body));
                hear(answered, "as an account of another form");
            }
        }
        // Few tries to sign in are let through, so that one secret stands for all of them.
        for body in [
            json!({ "login": "bob", "password": WRONG, "for": "cli" }),
            json!({ "login": "bob", "password": [WRONG], "for": "cli" }),
            json!({ "login": "bob", "password": WRONG, "for": "cli", "more": 1 }),
            json!({ "link": { "code": WRONG }, "for": "cli" }),
        ] {
            let answered = nobody.post("/api/v1/sign-in", &body);
            assert!((400..500).contains(&answered.status), "{}", answered.text());
            heard.answered(&answered, "a sign-in that is none");
        }
        let login = ["login", "--url", &url_of(&self.homing), "--user", "bob"];
        heard.spoken(&self.bob.type_in(&self.homing, &login, &format!("{WRONG}\n")), "a wrong password");
    }

    fn canary(&self, name: &str) -> &str {
        &self.canaries.iter().find(|canary| canary.name == name).expect("it is planted").secret
    }
}

#[test]
fn no_secret_is_found_where_it_does_not_belong() {
    let scene = Scene::new();
    let mut heard = Heard::default();
    scene.read_everything(&mut heard);
    scene.misplace_everything(&mut heard);
    for canary in &scene.canaries {
        for (what, said) in &heard.0 {
            assert!(!said.contains(&canary.secret), "{} is in what {what} answers:\n{said}", canary.name);
        }
    }
    processes(&scene);
    // Whatever the server or a command has written, while it runs and when everything is written.
    files(&scene, scene.homing.root());
    let Scene { mut homing, bob, canaries, .. } = scene;
    homing.run(&["backup", homing.root().join("copy").to_str().unwrap()]).expect(0);
    bob.run(&homing, &["logout"]).expect(0);
    assert!(homing.terminate().success());
    for canary in &canaries {
        no_file(homing.root(), canary);
    }
    assert!(homing.server_log().contains("DEBUG"), "the log says all it can");
}

/// In nobody's arguments; in nobody's environment but for what an agent is given for the person whose turn it is.
fn processes(scene: &Scene) {
    let server = scene.homing.pid();
    let mut all: Vec<u32> = scene.homing.leftovers().iter().map(|process| process.pid).collect();
    all.push(server);
    assert!(all.len() >= 3, "a server, a supervisor and an agent: {all:?}");
    for pid in all {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let (arguments, environment) = (read("cmdline"), read("environ"));
        for canary in &scene.canaries {
            let has = |bytes: &[u8]| holds(bytes, &canary.secret);
            assert!(!has(&arguments), "{} is in the arguments of {pid}", canary.name);
            let belongs = match canary.name {
                "an account" => pid == scene.agent,
                // It was put there by whoever started the server.
                "the environment" => pid == server,
                _ => false,
            };
            assert_eq!(has(&environment), belongs, "{} and the environment of {pid}", canary.name);
        }
    }
}

fn files(scene: &Scene, root: &Path) {
    for canary in &scene.canaries {
        no_file(root, canary);
        let home = canary.home.as_ref().map(|home| fs::read(home).unwrap());
        assert!(
            home.is_none_or(|bytes| holds(&bytes, &canary.secret)),
            "{} is looked for rightly",
            canary.name
        );
    }
}

/// In no file but its own, neither its name nor what is in it.
fn no_file(root: &Path, canary: &Canary) {
    for path in everything_in(root) {
        assert!(
            !holds(path.as_os_str().as_encoded_bytes(), &canary.secret),
            "{} names {path:?}",
            canary.name
        );
        if path.is_file() && canary.home.as_ref() != Some(&path) {
            let bytes = fs::read(&path).unwrap_or_default();
            assert!(!holds(&bytes, &canary.secret), "{} is in {}", canary.name, path.display());
        }
    }
}

fn everything_in(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        at += 1;
        // What goes meanwhile is not there.
        let inside = if path.is_symlink() { None } else { fs::read_dir(&path).ok() };
        found.extend(inside.into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    found
}

fn holds(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
}

fn code_of(link: &str) -> &str {
    link.trim().rsplit('/').next().unwrap()
}

/// The secret in what `homing login` has kept, wherever it stands there.
fn find_secret(kept: &Value) -> String {
    let kept = kept.to_string();
    let begin = kept.find("hmg_c_").unwrap_or_else(|| panic!("no token is kept"));
    kept[begin..].chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect()
}

/// Signs bob in as his browser would.
fn cookie_of(homing: &Homing) -> String {
    let nobody = Http { token: String::new(), ..homing.http() };
    let body = json!({ "login": "bob", "password": PASSWORD, "for": "browser" });
    let signed = nobody.post("/api/v1/sign-in", &body);
    signed.expect(200);
    let cookie = signed.header("set-cookie").expect("a browser gets a cookie");
    cookie.split_once('=').unwrap().1.split(';').next().unwrap().to_owned()
}

fn variable(pid: u32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let begins = format!("{name}=");
    let mut all = environment.split(|byte| *byte == 0).map(|pair| String::from_utf8_lossy(pair).into_owned());
    all.find_map(|pair| pair.strip_prefix(&begins).map(str::to_owned))
}

#[test]
fn an_agent_gets_what_it_was_given_and_nothing_of_its_server() {
    let (homing, _dir) = talkative();
    homing
        .run_with(&["agents", "account", "set", "keyed", "KEYED_SECRET"], &format!("{ACCOUNT}\n"))
        .expect(0);
    let given = [
        "HOME",
        "HOMING_ATTEMPT",
        "HOMING_EPOCH",
        "HOMING_MESSAGE",
        "HOMING_NATIVE",
        "HOMING_NEW",
        "HOMING_SCRIPTED_LOG",
        "HOMING_SESSION",
        "HOMING_TERM",
        "HOMING_TOKEN_FILE",
        "HOMING_TREE",
        "HOMING_TREE_HOME",
        "HOMING_TURN",
        "HOMING_URL",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "USER",
        "LOGNAME",
        "SHELL",
        "TMPDIR",
        "PATH",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
        "CODEX_HOME",
        "CLAUDE_CONFIG_DIR",
        // A shell adds these by itself.
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
    ];
    for (agent, words, own) in [("keyed", "env", Some("KEYED_SECRET")), ("scripted", "!run env", None)] {
        let said = homing.run(&["send", "-f", "--new", "--agent", agent, words]);
        let shown = said.expect(0);
        let names: BTreeSet<&str> = shown.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        assert!(names.contains("HOMING_TOKEN_FILE"), "it shows its environment: {shown}");
        let more: Vec<_> = names.iter().filter(|name| !given.contains(name) && own != Some(**name)).collect();
        assert!(more.is_empty(), "{agent} was not given {more:?}");
        assert_eq!(own.is_some(), shown.contains(ACCOUNT), "{shown}");
        assert!(
            !shown.contains(PLANTED) && !names.contains("PLANTED") && !names.contains("HOMING_DATA"),
            "{shown}"
        );
    }
}

#[test]
fn what_is_kept_is_for_its_owner_alone_however_careless_they_are() {
    // Whoever starts it lets everybody read and write all that they make.
    let dir = tempfile::tempdir().unwrap();
    let careless = dir.path().join("careless");
    fs::write(&careless, format!("#!/bin/sh\numask 000\nexec {EXE} \"$@\"\n")).unwrap();
    fs::set_permissions(&careless, fs::Permissions::from_mode(0o755)).unwrap();
    let mut homing = Setup::new(careless).argument("--trust-everyone").start();
    let bob = Person::new(&homing, "bob");
    bob.type_in(&homing, &["login", "--link"], &add(&homing, &["bob"])).expect(0);
    homing.http().send(&json!({ "new": {} }), "!sleep 600000");
    let turns = homing.data().join("turns");
    eventually("a turn has its token", || {
        everything_in(&turns).into_iter().find(|path| path.ends_with("token"))
    });
    let copy = homing.root().join("copy");
    homing.run(&["backup", copy.to_str().unwrap()]).expect(0);

    assert_eq!(mode(&homing.data()), 0o700);
    for name in ["homing.db", "homing.db-wal", "homing.db-shm", "token", "key", "url"] {
        assert_eq!(mode(&homing.data().join(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&bob.credentials()), 0o600);
    assert_eq!(mode(bob.credentials().parent().unwrap()), 0o700);
    for path in everything_in(&turns).into_iter().chain(everything_in(&copy)) {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&path), wanted, "{}", path.display());
    }
    // Nothing else is open either, but for what agents make behind that one door: their memory and their locks.
    let theirs = ["agents", "attempts"].map(|name| homing.data().join(name));
    let all = everything_in(&homing.data()).into_iter().filter(|path| !path.is_symlink());
    let all = all.filter(|path| theirs.iter().all(|theirs| !path.starts_with(theirs)));
    let open: Vec<_> = all.filter(|path| mode(path) & 0o077 != 0).collect();
    assert!(open.is_empty(), "{open:?}");
    assert!(homing.terminate().success());
}

#[test]
fn a_directory_that_has_become_a_link_is_not_followed() {
    let homing = setup().start();
    let (chosen, elsewhere) = (homing.place().join("chosen"), homing.root().join("elsewhere"));
    fs::create_dir(&chosen).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    let make = json!({ "new": { "directory": chosen } });
    let session = text(&homing.http().send(&make, "hello"), "session");
    let to = json!({ "session": session });
    assert_eq!(homing.http().converse(&to, "!pwd").lines().last(), chosen.to_str());
    fs::remove_dir(&chosen).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &chosen).unwrap();
    let receipt = homing.http().send(&to, "!run touch here");
    let receipt = homing.http().until_final(&text(&receipt, "id"));
    assert_eq!((text(&receipt, "state"), text(&receipt, "why")), ("failed".into(), "refused".into()));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "nothing was done there");
}
