//! The rules about people, broken one at a time: every store has to notice, and by the same promises.
//!
//! A rule stands once, in `kernel::people`, so a backend that still noticed what another one does not would have a rule of its
//! own. The list below has one break per rule, as text and what is put in its place; `mutate_people` tries each of them in a
//! copy of the repository, runs the stores' conformance suites there, and compares which promises were broken.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

/// Break each rule about people in a copy, and compare which promises each store fails
///
/// Prints a line per rule: how many promises failed, and their names. A rule that no promise notices fails the chore, and so
/// does one that one store notices by other promises than the other.
#[derive(Args, Default)]
pub(crate) struct MutateArgs {
    /// Only the rules whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Leave the first so many out, to go on where another run was cut short
    #[arg(long, default_value_t = 0)]
    skip: usize,
}

/// A rule, and how it is broken: the text must be there exactly once.
struct Break {
    rule: &'static str,
    file: &'static str,
    was: &'static str,
    becomes: &'static str,
}

const MAY: &str = "crates/kernel/src/people/may.rs";
const PLAN: &str = "crates/kernel/src/people/plan.rs";
const SIGN_IN: &str = "crates/kernel/src/people/sign_in.rs";
const CHANGE: &str = "crates/kernel/src/people/change.rs";

const BREAKS: &[Break] = &[
    Break {
        rule: "an org keeps an owner",
        file: PLAN,
        was: "if counts && rows.owners <= OWNERS_MIN",
        becomes: "if counts && rows.owners < OWNERS_MIN",
    },
    Break {
        rule: "a disabled owner does not count",
        file: PLAN,
        was: "goes.role == Role::Owner && !goes.is_disabled()",
        becomes: "goes.role == Role::Owner",
    },
    Break {
        rule: "a handle is one person's",
        file: PLAN,
        was: "find(|(_, taken)| !**taken)",
        becomes: "find(|_| true)",
    },
    Break {
        rule: "an address is one person's",
        file: PLAN,
        was: "rows.email.is_some_and(|holder| holder != whose)",
        becomes: "rows.email.is_some_and(|holder| holder == whose)",
    },
    Break {
        rule: "a name is one group's and one org's",
        file: PLAN,
        was: "if taken { Err(PeopleRefusal::Taken(what)) } else { Ok(()) }",
        becomes: "if taken && what != \"name\" { Err(PeopleRefusal::Taken(what)) } else { Ok(()) }",
    },
    Break {
        rule: "a name elsewhere is one person's",
        file: PLAN,
        was: "is_kept || rows.identity.is_some_and(|holder| holder != person)",
        becomes: "is_kept",
    },
    Break {
        rule: "only who looks after somebody replaces their name elsewhere",
        file: PLAN,
        was: "[person, PersonId::ENGINE].contains(&by.person) && is_another",
        becomes: "false && is_another",
    },
    Break {
        rule: "an owner of sessions can come in",
        file: PLAN,
        was: "heir.is_disabled() || heir.role == Role::Viewer",
        becomes: "heir.role == Role::Viewer",
    },
    Break {
        rule: "an owner of sessions is no viewer",
        file: PLAN,
        was: "heir.is_disabled() || heir.role == Role::Viewer",
        becomes: "heir.is_disabled()",
    },
    Break {
        rule: "nobody is let in without a wall",
        file: PLAN,
        was: "if walled { Ok(()) } else { Err(PeopleRefusal::NotWalled) }",
        becomes: "if walled || true { Ok(()) } else { Err(PeopleRefusal::NotWalled) }",
    },
    Break {
        rule: "what is not of the org is not there",
        file: PLAN,
        was: "if is { Ok(()) } else { Err(PeopleRefusal::NotFound(what)) }",
        becomes: "if is || true { Ok(()) } else { Err(PeopleRefusal::NotFound(what)) }",
    },
    Break {
        rule: "a password is its person's to set",
        file: PLAN,
        was: "if password.is_some() && person != by.person {",
        becomes: "if false {",
    },
    Break {
        rule: "what was proved counts while nothing has changed",
        file: PLAN,
        was: "rows.person.is_none_or(|now| now.standing != standing)",
        becomes: "rows.person.is_none()",
    },
    Break {
        rule: "a rule is made in an open session",
        file: PLAN,
        was: "&& let Some(why) = session.ended",
        becomes: "&& let Some(why) = session.ended.filter(|_| false)",
    },
    Break { rule: "a rule is its maker's", file: PLAN, was: "rule.by == by.person && asks", becomes: "asks" },
    Break {
        rule: "a rule that would never count is not made",
        file: PLAN,
        was: "if rule.is_over(rule.since)",
        becomes: "if false",
    },
    Break {
        rule: "rules whose time is over make room",
        file: CHANGE,
        was: "self.until.is_some_and(|until| until <= now)",
        becomes: "self.until.is_some_and(|until| until < now)",
    },
    Break {
        rule: "a changed role touches its person",
        file: PLAN,
        was: "let touched = role.map(|_| everywhere(Grantee::Person(person)));",
        becomes: "let touched = None;",
    },
    Break {
        rule: "what is given on an agent touches everybody",
        file: PLAN,
        was: "PeoplePlan::new(Some(everywhere(Grantee::Org)), vec![close, give])",
        becomes: "PeoplePlan::new(Some(everywhere(to)), vec![close, give])",
    },
    Break {
        rule: "the first grant closes an agent",
        file: PLAN,
        was: "vec![close, give]",
        becomes: "{ drop(close); vec![give] }",
    },
    Break {
        rule: "what is given on a session is looked at there only",
        file: PLAN,
        was: "Touched { people: vec![who], within: Some(session) }",
        becomes: "Touched { people: vec![who], within: { let _ = session; None } }",
    },
    Break {
        rule: "a session is handed over by whom it was offered to",
        file: MAY,
        was: "rows.offer.filter(|offer| offer.to == by.person)",
        becomes: "rows.offer.filter(|_| true)",
    },
    Break {
        rule: "an offer lapses",
        file: CHANGE,
        was: "now < self.until && ended.is_none()",
        becomes: "{ let _ = now; ended.is_none() }",
    },
    Break {
        rule: "an offer is over with its session",
        file: CHANGE,
        was: "now < self.until && ended.is_none()",
        becomes: "{ let _ = ended; now < self.until }",
    },
    Break {
        rule: "a session is offered to one person at a time",
        file: PLAN,
        was: "if is_open { Err(PeopleRefusal::OfferedAlready) }",
        becomes: "if is_open && false { Err(PeopleRefusal::OfferedAlready) }",
    },
    Break {
        rule: "nothing is offered to whose it is",
        file: PLAN,
        was: "if session.record.owner == to {",
        becomes: "if false {",
    },
    Break {
        rule: "who is disabled loses their offers",
        file: PLAN,
        was: "chain(drop).chain([offers])",
        becomes: "chain(drop).chain([offers].into_iter().filter(|_| false))",
    },
    Break {
        rule: "what was given on a session ends with its owner",
        file: PLAN,
        was: "        PeopleWrite::DropGrantsOn(session),\n",
        becomes: "\n",
    },
    Break {
        rule: "an offer is accepted once",
        file: PLAN,
        was: "        PeopleWrite::DropOffers(OffersToDrop::One(session)),\n",
        becomes: "\n",
    },
    Break {
        rule: "the keeper is told of another owner",
        file: PLAN,
        was: "is_open.then_some(PeopleWrite::TellOwner { session, to, at })",
        becomes: "(is_open && at.0 == 1).then_some(PeopleWrite::TellOwner { session, to, at })",
    },
    Break {
        rule: "who can come in keeps their sessions until the other says yes",
        file: PLAN,
        was: "    if from.is_disabled() {\n",
        becomes: "    if from.is_disabled() || true {\n",
    },
    Break {
        rule: "what is offered already stays so",
        file: PLAN,
        was: "session.ended.is_none() && is_free(*offer)",
        becomes: "session.ended.is_none() && (is_free(*offer) || true)",
    },
    Break {
        rule: "what a group was given goes with it",
        file: PLAN,
        was: "PeopleWrite::DropGrantsTo { org, to },\n",
        becomes: "\n",
    },
    Break {
        rule: "a group's directories go with it",
        file: PLAN,
        was: "PeopleWrite::DropRootsOf { org, to },\n",
        becomes: "\n",
    },
    Break {
        rule: "who is disabled loses their credentials",
        file: PLAN,
        was: "let drop = [PeopleWrite::DropTokens(tokens), PeopleWrite::DropLinks(links)];",
        becomes: "let _ = tokens; let drop = [PeopleWrite::DropLinks(links)];",
    },
    Break {
        rule: "who is disabled loses their links",
        file: PLAN,
        was: "let drop = [PeopleWrite::DropTokens(tokens), PeopleWrite::DropLinks(links)];",
        becomes: "let _ = links; let drop = [PeopleWrite::DropTokens(tokens)];",
    },
    Break {
        rule: "another password signs browsers out",
        file: PLAN,
        was: "vec![PeopleWrite::Password { person, password }, drop]",
        becomes: "{ let _ = drop; vec![PeopleWrite::Password { person, password }] }",
    },
    Break {
        rule: "nobody changes somebody above them",
        file: MAY,
        was: "let role = there(rows)?.role;\n            may(by, OrgAct::Person { role, becomes: None })",
        becomes: "let _ = there(rows)?.role;\n            may(by, OrgAct::Person { role: Role::Viewer, becomes: None })",
    },
    Break {
        rule: "nobody makes anybody more than they are",
        file: MAY,
        was: "may(by, OrgAct::Person { role, becomes: *becomes })",
        becomes: "{ let _ = becomes; may(by, OrgAct::Person { role, becomes: None }) }",
    },
    Break {
        rule: "a session is its managers'",
        file: MAY,
        was: "let ruled = authorize(by, Act::Manage, &session.record, ());",
        becomes: "let ruled = authorize(by, Act::Read, &session.record, ());",
    },
    Break {
        rule: "a rule of an unseen session is none",
        file: MAY,
        was: "filter(|session| grant_of(by, &session.record).is_some())",
        becomes: "filter(|session| { let _ = grant_of(by, &session.record); true })",
    },
    Break {
        rule: "the org's rules are its admins'",
        file: MAY,
        was: "if rule.session.is_none() {\n        return may(by, OrgAct::Rules);",
        becomes: "if rule.session.is_none() {\n        return may(by, OrgAct::SeePeople);",
    },
    Break {
        rule: "a lesser credential lets nobody in",
        file: MAY,
        was: "may(by, OrgAct::Mint { rights: Rights::ALL })?;",
        becomes: "may(by, OrgAct::Mint { rights: Rights::NONE })?;",
    },
    Break {
        rule: "a credential for one client lets nobody in for all",
        file: MAY,
        was: "if by.client.is_none() { Ok(()) }",
        becomes: "if by.client.is_none() || true { Ok(()) }",
    },
    Break {
        rule: "a credential for one client makes none for another",
        file: MAY,
        was: "if by.client.is_some() && by.client != token.client {",
        becomes: "if false {",
    },
    Break {
        rule: "nobody sees the machine's credentials and the turns'",
        file: CHANGE,
        was: "matches!(self, Self::Browser | Self::Cli | Self::Api)",
        becomes: "true",
    },
    Break {
        rule: "somebody's credential is theirs, or whoever may change them",
        file: MAY,
        was: "holder.purpose.is_listed() && (own || may(by, office).is_ok())",
        becomes: "{ let _ = (own, office); holder.purpose.is_listed() }",
    },
    Break {
        rule: "a credential is good until it expires",
        file: CHANGE,
        was: "!idle && expires.is_none_or(|until| now < until)",
        becomes: "{ let _ = expires; !idle }",
    },
    Break {
        rule: "a credential is good while it is used",
        file: CHANGE,
        was: "!idle && expires.is_none_or(|until| now < until)",
        becomes: "{ let _ = idle; expires.is_none_or(|until| now < until) }",
    },
    Break {
        rule: "a secret that was replaced counts for a moment",
        file: SIGN_IN,
        was: "&& state.old_until.is_none_or(|until| now < until)",
        becomes: "",
    },
    Break {
        rule: "a turn's credential is good while it runs",
        file: SIGN_IN,
        was: "&& (token.bound.is_none() || state.is_under_way)",
        becomes: "",
    },
    Break {
        rule: "who is disabled does not come in",
        file: SIGN_IN,
        was: "&& !state.is_disabled",
        becomes: "",
    },
    Break {
        rule: "who was changed since they proved it does not come in",
        file: SIGN_IN,
        was: "who.standing == standing && !who.is_disabled()",
        becomes: "{ let _ = standing; !who.is_disabled() }",
    },
    Break {
        rule: "a link is good until it expires",
        file: SIGN_IN,
        was: "now < link.expires && !link.is_disabled",
        becomes: "{ let _ = now; !link.is_disabled }",
    },
    Break {
        rule: "a link works once",
        file: SIGN_IN,
        was: "[spent].into_iter().chain(token).collect()",
        becomes: "{ let _ = spent; token.into_iter().collect() }",
    },
    Break {
        rule: "a link ends with the token that it was made with",
        file: PLAN,
        was: "ends.map_or(link.expires, |ends| ends.min(link.expires))",
        becomes: "{ let _ = ends; link.expires }",
    },
    Break {
        rule: "a link is revoked with the token that it was made with",
        file: PLAN,
        was: "LinksToDrop::MadeWith(*token)",
        becomes: "LinksToDrop::MadeWith(TokenId::from_bits(token.bits() ^ 1))",
    },
    Break {
        rule: "who comes in by a link ends with the token that it was made with",
        file: SIGN_IN,
        was: "made_with(maker, token.row(link.person, now))",
        becomes: "{ let _ = maker; token.row(link.person, now) }",
    },
    Break {
        rule: "who came in by what a token made makes nothing that outlasts it",
        file: PLAN,
        was: "| Purpose::Turn => maker.parent,",
        becomes: "| Purpose::Turn => None,",
    },
    Break {
        rule: "a machine's credential replaces the one before",
        file: SIGN_IN,
        was: "drop(TokensToDrop::Purpose { person, purpose }),\n",
        becomes: "{ let _ = (person, purpose); drop(TokensToDrop::Expired(made_at)) },\n",
    },
    Break {
        rule: "a turn's credential replaces that of its session",
        file: SIGN_IN,
        was: "vec![drop(TokensToDrop::TurnsOf(session))]",
        becomes: "{ let _ = session; Vec::new() }",
    },
    Break {
        rule: "the machine's person is made once",
        file: SIGN_IN,
        was: "let Some(host) = host else {",
        becomes: "let Some(host) = host.filter(|_| false) else {",
    },
    Break {
        rule: "capital letters make no other name",
        file: CHANGE,
        was: "    name.to_lowercase()\n",
        becomes: "    name.into()\n",
    },
];

/// A store's suite: its package, and the module in which the promises are.
const STORES: [(&str, &str); 2] = [("homing-store", "memory::"), ("homing-store-sqlite", "conformance::")];

/// The number of rules that can be broken.
pub(crate) fn rules() -> usize {
    BREAKS.len()
}

/// Breaks each rule; answers the closing line.
pub(crate) fn mutate_people(args: &MutateArgs, root: &Path) -> Result<String> {
    let copy = copy_of(root)?;
    let wanted = |one: &&Break| args.only.as_ref().is_none_or(|only| one.rule.contains(only.as_str()));
    ensure!(failed_promises(&copy)?.iter().all(BTreeSet::is_empty), "the suites fail without any break");
    let (mut tried, mut wrong) = (0, Vec::new());
    for one in BREAKS.iter().skip(args.skip).filter(wanted) {
        let path = copy.join(one.file);
        let whole = std::fs::read_to_string(&path)?;
        ensure!(whole.matches(one.was).count() == 1, "{}: {:?} is not there once", one.rule, one.was);
        std::fs::write(&path, whole.replace(one.was, one.becomes))?;
        let failed = failed_promises(&copy);
        std::fs::write(&path, whole)?;
        let failed = failed.with_context(|| format!("while {} was broken", one.rule))?;
        let same = failed.windows(2).all(|both| both[0] == both[1]);
        let told = match (failed[0].is_empty(), same) {
            (true, true) => "NOBODY NOTICED",
            (_, false) => "DIFFERENT",
            (false, true) => "same",
        };
        println!("{told:14} {}: {}", one.rule, names(&failed));
        tried += 1;
        if told != "same" {
            wrong.push(one.rule);
        }
    }
    let said = format!("{tried} rules broken, {} not noticed alike", wrong.len());
    println!("{said}");
    ensure!(wrong.is_empty(), "not noticed, or not by the same promises: {}", wrong.join("; "));
    Ok(said)
}

fn names(failed: &[BTreeSet<String>]) -> String {
    let lists = failed.iter().map(|promises| promises.iter().cloned().collect::<Vec<_>>().join(" "));
    let mut lists: Vec<_> = lists.collect();
    lists.dedup();
    lists.join("  |  ")
}

/// A copy of what git knows of the repository, in a directory of its own: nothing is broken where somebody works.
fn copy_of(root: &Path) -> Result<PathBuf> {
    let copy = root.join("target/mutants/people");
    std::fs::create_dir_all(&copy)?;
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output()?;
    ensure!(listed.status.success(), "git does not say which files there are");
    for file in String::from_utf8(listed.stdout)?.split('\0').filter(|file| !file.is_empty()) {
        let (from, to) = (root.join(file), copy.join(file));
        if !from.is_file() {
            continue;
        }
        let there = std::fs::read(&to).ok();
        let whole = std::fs::read(&from)?;
        // A file that is the same keeps its time, so that nothing is compiled again for it.
        if there.as_deref() != Some(&whole[..]) {
            std::fs::create_dir_all(to.parent().context("every file is in a directory")?)?;
            std::fs::write(&to, whole)?;
        }
    }
    Ok(copy)
}

/// For each store the promises that it does not keep.
fn failed_promises(copy: &Path) -> Result<Vec<BTreeSet<String>>> {
    // Both at once: one waits for the other only where it has to.
    let mut build = cargo_test(copy);
    build.arg("--no-run").args(STORES.iter().flat_map(|(package, _)| ["--package", package]));
    build.output().context("cargo does not run")?;
    STORES.iter().map(|(package, module)| failed_of(copy, package, module)).collect()
}

fn cargo_test(copy: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.args(["test", "--locked", "--test", "it"]);
    // What a break leaves unused is no matter.
    command.current_dir(copy).env("CARGO_TARGET_DIR", copy.join("target")).env("RUSTFLAGS", "-Awarnings");
    command
}

fn failed_of(copy: &Path, package: &str, module: &str) -> Result<BTreeSet<String>> {
    let mut command = cargo_test(copy);
    command.args(["--package", package, "--", module]);
    let ran = command.output().context("cargo does not run")?;
    let told = String::from_utf8_lossy(&ran.stdout);
    ensure!(
        told.contains("test result:"),
        "{package} does not build: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let failed = told.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    Ok(failed.filter_map(|name| name.strip_prefix(module)).map(str::to_owned).collect())
}
