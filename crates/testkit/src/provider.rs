//! A real identity provider for OpenID Connect, on loopback: npm's `oidc-provider`, run by Node for one test.
//!
//! It has the pages that people see (sign in, consent), which a test goes through with a `Browser`. What a provider never
//! does by itself (forge a token, change its keys in the middle) a test asks for.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Browser;
use crate::agent_fixture::in_cache;

/// The program that is run. It stands beside a link to the packages, because that is where Node looks for them.
const SCRIPT: &str = include_str!("provider/provider.mjs");
/// Where the packages are: a `node_modules`.
const VARIABLE: &str = "HOMING_TEST_OIDC_PROVIDER";

/// The provider of one test. Gone when it is dropped.
#[derive(Debug)]
pub struct Provider {
    /// Its own name.
    pub issuer: String,
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    _place: TempDir,
}

impl Provider {
    /// The id under which it knows us.
    pub const CLIENT: &str = "homing";
    /// The secret that proves it.
    pub const SECRET: &str = "a secret of two";

    /// Starts one that knows nobody. A machine without its packages fails the test: what was not run was not tested.
    #[track_caller]
    pub fn start() -> Self {
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        fs::write(place.path().join("provider.mjs"), SCRIPT).expect("a file can be written there");
        std::os::unix::fs::symlink(packages(), place.path().join("node_modules"))
            .expect("a link can be made");
        let mut child = Command::new("node")
            .arg(place.path().join("provider.mjs"))
            .env_remove("NODE_OPTIONS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Node is on the PATH");
        let (to, from) = (child.stdin.take(), child.stdout.take().expect("it is piped"));
        let mut provider =
            Self { issuer: String::new(), child, to, from: BufReader::new(from), _place: place };
        let said = provider.read();
        provider.issuer = said["issuer"].as_str().expect("it says where it is").to_owned();
        provider
    }

    /// Lets it know where a browser may be sent back to, exactly.
    pub fn allow(&mut self, redirect: &str) {
        self.tell(&json!({ "redirects": [redirect] }));
    }

    /// Lets it know somebody by this name, with these claims.
    pub fn know(&mut self, people: &Value) {
        self.tell(&json!({ "people": people }));
    }

    /// Puts what it knows of e-mail addresses into the ID token, as many providers do against the book.
    pub fn say_all_in_the_token(&mut self) {
        self.tell(&json!({ "inToken": true }));
    }

    /// Signs with other keys from now on, and knows the old ones no more.
    pub fn rotate(&mut self) {
        self.tell(&json!({ "rotate": true }));
    }

    /// Signs by another algorithm from now on.
    pub fn sign_by(&mut self, algorithm: &str) {
        self.tell(&json!({ "algorithm": algorithm }));
    }

    /// Forges tokens from now on, in this way; none stops it.
    pub fn tamper(&mut self, how: Option<&str>) {
        self.tell(&json!({ "tamper": how.unwrap_or_default() }));
    }

    /// Goes through its pages as `name` until it sends the browser away, and answers to where.
    #[track_caller]
    pub fn sign_in(&self, browser: &mut Browser, url: &str, name: &str) -> String {
        let mut page = browser.follow_within(&self.issuer, url);
        // The sign-in and the consent, each one form.
        for _ in 0..2 {
            if let Some(away) = &page.away {
                return away.clone();
            }
            let text = page.answered.text();
            let action =
                between(&text, "action=\"", "\"").unwrap_or_else(|| panic!("a page without a form: {text}"));
            let prompt =
                between(&text, "name=\"prompt\" value=\"", "\"").expect("a form that says what it is for");
            let typed = [("prompt", prompt), ("login", name), ("password", "any will do")];
            page = browser.send_within(&self.issuer, action, &typed);
        }
        page.away.unwrap_or_else(|| panic!("it did not let us go: {}", page.answered.text()))
    }

    fn tell(&mut self, words: &Value) {
        let to = self.to.as_mut().expect("it is told to go only in the end");
        writeln!(to, "{words}").and_then(|()| to.flush()).expect("it listens");
        self.read();
    }

    #[track_caller]
    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("it can be read");
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("the provider said {line:?}: {why}"))
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.to.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn packages() -> PathBuf {
    let said = std::env::var_os(VARIABLE).map(PathBuf::from).or_else(|| in_cache("provider.env", VARIABLE));
    let remedy = "run `cargo xtask tools`";
    let packages = said.unwrap_or_else(|| panic!("the identity provider is missing ({VARIABLE}); {remedy}"));
    assert!(packages.is_dir(), "{VARIABLE} says {}, which is no directory; {remedy}", packages.display());
    packages
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}
