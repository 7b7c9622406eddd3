//! Facts and receipts in words, for people.

use api::{
    EndWhy, Fact, Failure, Grant, Outcome, Previous, Purpose, Receipt, ReceiptState, Right, Role, RuleFact,
    Session, SessionState, Story, StoryFact, Waiting, What,
};

use crate::exit::without_os_error;
use crate::screen::tame_name;
use crate::time;

/// A fact on one line. What belongs on several, such as an agent's words, may have line ends in it.
pub(crate) fn fact(fact: &Fact) -> String {
    match &fact.what {
        What::Rule(rule) => rule_fact(rule),
        What::Story(StoryFact { turn: 0, story, .. }) => self::story(story),
        What::Story(StoryFact { turn, story, .. }) => {
            let (named, told) = (format!("turn {turn}"), self::story(story));
            // Some words say themselves which turn they are about.
            if told.starts_with(&format!("{named} ")) { told } else { format!("{named}: {told}") }
        }
        What::Other(other) => {
            let kind = other.get("type").and_then(|kind| kind.as_str()).unwrap_or("something");
            format!("{kind} (newer than this program)")
        }
    }
}

fn rule_fact(rule: &RuleFact) -> String {
    match rule {
        RuleFact::Opened { scope, origin } => {
            let fork = origin
                .as_ref()
                .map(|origin| format!(", a fork of {} after turn {}", origin.session, origin.turn));
            format!("opened: {} in {}{}", scope.agent, scope.directory, fork.unwrap_or_default())
        }
        RuleFact::Queued { message, by, .. } => format!("{message} of {by} waits"),
        RuleFact::Edited { message, revision } => format!("{message} was reworded (revision {revision})"),
        RuleFact::Withdrawn { message, .. } => format!("{message} was withdrawn"),
        RuleFact::Held { message, why, .. } => format!("{message} is held ({})", plain(why)),
        RuleFact::Released { message, .. } => format!("{message} was released"),
        RuleFact::Steered { message, turn } => format!("{message} goes into turn {turn}"),
        RuleFact::Missed { message } => format!("{message} came too late for the turn; it is next"),
        RuleFact::Reordered { order } => format!("the queue is now {}", order.join(" ")),
        RuleFact::MessageRefused { message, why } => format!("{message} was refused ({})", plain(why)),
        RuleFact::Crowded { .. } => "has to wait for other sessions".to_owned(),
        RuleFact::TurnStarted { turn, message } => format!("turn {turn} started for {message}"),
        RuleFact::AttemptStarted { fence, .. } => format!("turn {}: attempt {}", fence.turn, fence.attempt),
        RuleFact::Confirmed { native, .. } => format!("the agent calls this conversation {native}"),
        RuleFact::Handed { turn, .. } => format!("turn {turn}: handed to the agent"),
        RuleFact::AttemptFailed { turn, attempt, failure, .. } => {
            format!("turn {turn}: attempt {attempt} failed ({}); trying again", self::failure(*failure))
        }
        RuleFact::Asked { approval, turn, .. } => format!("turn {turn}: the agent asks ({approval})"),
        RuleFact::Answered { approval, answer, by } => {
            format!("{approval}: {}{}", self::answer(answer), answerer(by.as_deref()))
        }
        RuleFact::Lapsed { approval } => format!("{approval} lapsed: nobody can answer it any more"),
        RuleFact::StopAsked { turn, why, .. } => format!("turn {turn} is to stop ({})", plain(why)),
        RuleFact::TurnEnded { turn, outcome: o, failure: f } => {
            let failure = f.map(|f| format!(" ({})", self::failure(f))).unwrap_or_default();
            format!("turn {turn} {}{failure}", outcome(*o))
        }
        RuleFact::EndAsked { .. } => "the session is to end".to_owned(),
        RuleFact::Ended { why } => format!("the session has ended: {}", ended(*why)),
        RuleFact::Stale { fence, kind } => {
            format!(
                "turn {}: a late report ({kind}) of attempt {} was not applied",
                fence.turn, fence.attempt
            )
        }
        RuleFact::ChangeAsked { change, .. } => format!("to change: {}", scope_change(change)),
        RuleFact::ScopeKept { why, .. } => format!("the scope stays as it is ({})", plain(why)),
        RuleFact::ScopeChanged { epoch, scope } => format!("epoch {epoch}: {}", self::scope(scope)),
        RuleFact::ErrandStarted { what, subject, .. } => format!("{what} {subject} …"),
        RuleFact::ErrandFailed { .. } => "it could not be done; nothing was changed".to_owned(),
        RuleFact::Undone { turn } => format!("turn {turn} was undone"),
        RuleFact::Redone { turn } => format!("the undo of turn {turn} was taken back"),
        RuleFact::Learned { kind, .. } => format!("the agent's {kind} are known"),
        RuleFact::StaleErrand { kind, epoch, .. } => {
            format!("a late result ({kind}) of epoch {epoch} was not applied")
        }
    }
}

/// Where and how a session acts, on one line.
pub(crate) fn scope(scope: &api::Scope) -> String {
    let said = |word: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!(", {word} {value}")).unwrap_or_default()
    };
    let worktree = scope.worktree.as_ref().map(|worktree| format!(", worktree {}", worktree.name));
    let (model, mode) = (said("model", &scope.model), said("mode", &scope.mode));
    format!("{} in {}{}{model}{mode}", scope.agent, scope.directory, worktree.unwrap_or_default())
}

fn scope_change(change: &api::ScopeChange) -> String {
    match change {
        api::ScopeChange::Enter(worktree) => format!("enter worktree {}", worktree.name),
        api::ScopeChange::Exit(_) => "leave the worktree".to_owned(),
        api::ScopeChange::Set(set) => {
            let named = [("agent", &set.agent), ("model", &set.model), ("mode", &set.mode)];
            let named = named.into_iter().filter_map(|(word, name)| Some((word, name.as_ref()?)));
            let own = |name: &String| if name.is_empty() { "its own".to_owned() } else { name.clone() };
            named.map(|(word, name)| format!("{word} {}", own(name))).collect::<Vec<_>>().join(", ")
        }
        api::ScopeChange::Relink(directory) => format!("directory {directory}"),
        api::ScopeChange::Back(there) => format!("back to {}", scope(there)),
    }
}

/// An answer; options are counted from 0, as `homing approve` shows them.
pub(crate) fn answer(answer: &api::Answer) -> String {
    match answer {
        api::Answer::Yes => "yes".to_owned(),
        api::Answer::No => "no".to_owned(),
        api::Answer::Chose(option) => format!("option {option}"),
        api::Answer::Said(words) => words.clone(),
    }
}

/// A story fact in a line or so.
pub(crate) fn story(story: &Story) -> String {
    match story {
        Story::Launch(launch) => launched(launch),
        Story::About(about) => says_of_itself(about),
        Story::Text { text, .. } if text.trim().is_empty() => "(an empty line)".to_owned(),
        Story::Text { text, .. } => text.clone(),
        Story::Reasoning { text, .. } => format!("(thinking) {text}"),
        Story::Said { length: 1, .. } => "1 byte said".to_owned(),
        Story::Said { length, .. } => format!("{length} bytes said"),
        Story::ToolCall { tool, input, .. } => format!("{tool}: {input}"),
        Story::ToolProgress { output, .. } => format!("(running) {output}"),
        Story::Plan { steps } => planned(steps),
        Story::FileChanged { path, change } => format!("{change} {}", tame_name(path)),
        Story::ToolResult { output, failed: false, .. } if output.trim().is_empty() => {
            "(it printed nothing)".to_owned()
        }
        Story::ToolResult { output, failed, .. } => {
            format!("{}{output}", if *failed { "failed: " } else { "" })
        }
        Story::Changes { files, moves, .. } => {
            let moved = moves.iter().map(|moved| format!("; {}", plain(&moved.words)));
            std::iter::once(changed(files)).chain(moved).collect()
        }
        Story::Memory { text, .. } => text.clone(),
        Story::Script { stage, output, .. } => format!("({stage}) {}", output.trim_end()),
        Story::Worktree { name, change, reference } => worktree(name, change, reference),
        Story::Question { approval, tool, detail, .. } => format!("asks for {tool}: {detail} ({approval})"),
        Story::Usage(usage) => used(usage),
        Story::Finished { reason } => format!("finished: {reason}"),
        Story::Notice { text } => text.clone(),
        Story::Title { title } => format!("the agent calls this session {title:?}"),
        Story::Imported(there) => there.text.clone(),
        Story::Stopped { killed, gone } => verified(*killed, *gone),
        Story::Other { raw } => raw.clone(),
        Story::Forgotten { kind } => format!("({kind}, forgotten)"),
    }
}

fn worktree(name: &str, change: &str, reference: &str) -> String {
    match change {
        "removed" => format!("worktree {name} was removed; everything in it is kept as {reference}"),
        "merged" | "applied" if reference.is_empty() => {
            format!("worktree {name}: everything of it was there")
        }
        "merged" => format!("worktree {name} was merged; how it was there before is kept as {reference}"),
        "applied" => {
            format!("what is in worktree {name} was applied; how it was there before is kept as {reference}")
        }
        "restored" if reference.is_empty() => format!("worktree {name} had been deleted, and was made again"),
        _ => format!("worktree {name} was {change}, from {reference}"),
    }
}

fn changed(files: &[api::FileChange]) -> String {
    let sum = |of: fn(&api::FileChange) -> Option<u64>| files.iter().filter_map(of).sum::<u64>();
    let (plus, minus) = (sum(|file| file.plus), sum(|file| file.minus));
    match files {
        [] => "no file was changed".to_owned(),
        [file] => format!("{} {} (+{plus} -{minus})", file.kind, tame_name(&file.path)),
        files => format!("{} files changed (+{plus} -{minus})", files.len()),
    }
}

fn launched(launch: &api::Launched) -> String {
    let said = |word: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!(", {word} {value}")).unwrap_or_default()
    };
    let whose = if launch.account == "house" { "" } else { ", with the sender's own sign-in" };
    let asks = if launch.bypasses { ", without asking before it acts" } else { "" };
    let (version, model) = (said("version", &launch.version), said("model", &launch.model));
    let mode = said("mode", &launch.mode);
    format!("started {}{version} in {}{model}{mode}{asks}{whose}", launch.agent, launch.directory)
}

fn says_of_itself(about: &api::About) -> String {
    let named = [("version", &about.version), ("model", &about.model), ("mode", &about.mode)];
    let named = named.into_iter().filter(|(_, value)| !value.is_empty());
    let mut parts: Vec<String> = named.map(|(word, value)| format!("{word} {value}")).collect();
    let listed = [("models", &about.models), ("modes", &about.modes), ("slash commands", &about.commands)];
    let listed = listed.into_iter().filter(|(_, list)| !list.is_empty());
    parts.extend(listed.map(|(word, list)| format!("{} {word}", list.len())));
    format!("the agent says of itself: {}", parts.join(", "))
}

fn planned(steps: &[api::PlanStep]) -> String {
    let done = steps.iter().filter(|step| step.progress == "done").count();
    let now = steps.iter().find(|step| step.progress == "active");
    let now = now.map(|step| format!(", now: {}", step.text)).unwrap_or_default();
    format!("plan: {done} of {} done{now}", steps.len())
}

/// The cost of a turn, or of all of them.
pub(crate) fn used(usage: &api::Usage) -> String {
    let cached = match usage.cached_tokens {
        0 => String::new(),
        cached => format!(" ({cached} cached)"),
    };
    let cost = usage.cost_micros.map(|micros| format!(", ${:.4}", micros as f64 / 1e6)).unwrap_or_default();
    let window = usage.window_used.zip(usage.window_size);
    let window = window.map(|(used, size)| format!(", window {used} of {size}")).unwrap_or_default();
    let tokens = if usage.input_tokens == 1 { "token" } else { "tokens" };
    format!("{} {tokens} in{cached}, {} out{cost}{window}", usage.input_tokens, usage.output_tokens)
}

/// The background, a line for each process that is named.
pub(crate) fn background(background: &api::Background, now: kernel::Moment) -> Vec<String> {
    let line = |it: &api::BackgroundProcess| {
        format!("{} (started {})", tame_name(&it.command), time::ago(it.since, now))
    };
    let mut lines: Vec<String> = background.oldest.iter().map(line).collect();
    match (background.processes as usize).saturating_sub(lines.len()) {
        0 => {}
        1 => lines.push("and 1 process more".to_owned()),
        more => lines.push(format!("and {more} processes more")),
    }
    lines
}

/// The view of a turn's end when it was stopped.
pub(crate) fn verified(killed: u32, gone: bool) -> String {
    let processes = match killed {
        0 => "the agent went by itself".to_owned(),
        1 => "1 process ended".to_owned(),
        _ => format!("{killed} processes ended"),
    };
    let left = if gone { "nothing is left" } else { "something is still running" };
    format!("{processes}, {left}")
}

/// An answer to a question in the place of a person's.
pub(crate) enum AutomaticAnswerer<'a> {
    /// Nothing: nobody did in time.
    Nobody,
    /// The policy for what nobody attends.
    Policy,
    /// This rule.
    Rule(&'a str),
}

impl<'a> AutomaticAnswerer<'a> {
    /// None if it was a person.
    pub(crate) fn of(by: Option<&'a str>) -> Option<Self> {
        match by {
            None => Some(Self::Nobody),
            Some("policy") => Some(Self::Policy),
            Some(rule) if rule.starts_with("rul_") => Some(Self::Rule(rule)),
            Some(_) => None,
        }
    }
}

/// The answerer, where it was nobody that a reader could think of.
fn answerer(by: Option<&str>) -> String {
    match AutomaticAnswerer::of(by) {
        Some(AutomaticAnswerer::Nobody) => ", because nobody answered in time".to_owned(),
        Some(AutomaticAnswerer::Policy) => ", by the policy for what nobody attends".to_owned(),
        Some(AutomaticAnswerer::Rule(rule)) => format!(", as rule {rule} says"),
        None => String::new(),
    }
}

/// The outcome of a turn.
pub(crate) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Answered => "answered",
        Outcome::Stopped => "was stopped",
        Outcome::Interrupted => "was interrupted; it may have acted, and is not run again by itself",
        Outcome::Failed => "failed",
        Outcome::TimeLimit => "took longer than a turn may",
    }
}

fn failure(failure: Failure) -> &'static str {
    match failure {
        Failure::Gone => "the agent says that this conversation is gone",
        Failure::Busy => "somebody else holds this conversation",
        Failure::Transient => "it may work the next time",
        Failure::Refused => "the agent refused",
    }
}

/// The words for a server that went away while somebody follows.
pub(crate) fn away(reason: &str) -> String {
    let reason = without_os_error(reason);
    format!("the server went away ({reason}); what it accepted is safe. Looking for it; Ctrl-C leaves")
}

/// The words for a server that is there again.
pub(crate) const BACK: &str = "the server is back; going on from where it was";

/// Why a session ended.
pub(crate) fn ended(why: EndWhy) -> &'static str {
    match why {
        EndWhy::Asked => "somebody ended it",
        EndWhy::Gone => "the agent says that it is gone",
    }
}

/// The session that a conversation had before, and what became of it.
pub(crate) fn previous(previous: &Previous) -> String {
    format!("{} ({})", previous.session, previous.why.map_or("it goes on", ended))
}

/// A stable word of the API, as people say it.
pub(crate) fn plain(word: &str) -> String {
    match word {
        "asked" => "on request".to_owned(),
        "after_failure" => "what came before it failed".to_owned(),
        "other_scope" => "written for another scope".to_owned(),
        "held_asked" => "held on request".to_owned(),
        "held_after_failure" => "held, because what came before it failed".to_owned(),
        "held_other_scope" => "held, written for another scope".to_owned(),
        "changing" => "the scope is about to change".to_owned(),
        "errand" => "a worktree is being made, or a turn undone".to_owned(),
        "crowded" => "others are first".to_owned(),
        "elsewhere" => "leads elsewhere by now".to_owned(),
        "interrupted" => "interrupted while the agent worked".to_owned(),
        "time_limit" => "it took longer than a turn may".to_owned(),
        "transient" => "for now: it may work the next time".to_owned(),
        "busy" => "something else uses the agent's conversation".to_owned(),
        "gone" => "the agent's own conversation is gone".to_owned(),
        "session_ended" => "the session ended while it waited".to_owned(),
        "expired" => "it was held for too long".to_owned(),
        // One befalls what waits, the other what runs.
        "handed_over" => "the session was handed over".to_owned(),
        "not_allowed" | "revoked" => "its sender may no longer prompt here".to_owned(),
        other => other.replace('_', " "),
    }
}

/// Where a message stands, in one word.
pub(crate) fn state(state: ReceiptState) -> &'static str {
    match state {
        ReceiptState::Waiting => "waiting",
        ReceiptState::Held => "held",
        ReceiptState::Running => "running",
        ReceiptState::Answered => "answered",
        ReceiptState::Failed => "failed",
        ReceiptState::Stopped => "stopped",
        ReceiptState::Withdrawn => "withdrawn",
        ReceiptState::Refused => "refused",
    }
}

/// Where a message stands, and why.
pub(crate) fn standing(receipt: &Receipt) -> String {
    stands(receipt.state, receipt.why.as_deref(), receipt.waiting.as_ref())
}

/// Where a message of a queue stands, and why.
pub(crate) fn queued(item: &api::Queued) -> String {
    stands(item.state, item.why.as_deref(), item.waiting.as_ref())
}

fn stands(now: ReceiptState, why: Option<&str>, waits: Option<&Waiting>) -> String {
    let why = why.map(|why| format!(" ({})", plain(why))).unwrap_or_default();
    let waits = waits.map(|waits| format!(": {}", waiting(waits))).unwrap_or_default();
    format!("{}{why}{waits}", state(now))
}

/// The line that says why something waits.
pub(crate) fn waits(waiting: &Waiting) -> String {
    format!("waits: {}", self::waiting(waiting))
}

/// Why something waits, and for whom: the same words wherever it is said.
pub(crate) fn waiting(waiting: &Waiting) -> String {
    let or = |name: &Option<String>, other: &str| name.clone().unwrap_or_else(|| other.to_owned());
    let at = |what: &str| waiting.until.map(|at| format!(", {what} {}", time::clock(at))).unwrap_or_default();
    let agent = or(&waiting.agent, "the agent");
    let max = waiting.max.map(|max| format!(" ({max})")).unwrap_or_default();
    let among = waiting.session.as_ref().map(|it| format!(", among them {it}")).unwrap_or_default();
    match waiting.why.as_str() {
        "message" => format!("behind {}", or(&waiting.message, "another message")),
        "directory" => {
            let (who, directory) =
                (or(&waiting.session, "another session"), or(&waiting.directory, "its directory"));
            format!("{who} works in {directory}; goes on when that turn is over")
        }
        "slot" => {
            format!(
                "its sender has as many turns under way as may be at once{max}{among}; goes on when one is over"
            )
        }
        "org_slot" => {
            format!(
                "the org has as many turns under way as may be at once{max}{among}; goes on when one is over"
            )
        }
        "starting" => format!("{agent} is being started"),
        "again" => format!("{agent} could not be started{}", at("tried again at")),
        "asked" => {
            format!("the agent asks something: answer with `homing approve`{}", at("or it is a no at"))
        }
        "stopping" => "the turn is being stopped".to_owned(),
        "scope" => "the scope is about to change".to_owned(),
        "errand" => "a worktree is being made, or a turn undone".to_owned(),
        other => other.replace('_', " "),
    }
}

/// Advice on going on with a message. The server's advice is for programs; where the command line has something better,
/// it says that.
pub(crate) fn hint(receipt: &Receipt) -> Option<String> {
    let id = &receipt.id;
    match (receipt.state, receipt.why.as_deref()) {
        (ReceiptState::Held, Some("other_scope")) => Some(format!(
            "`homing queue release --here {id}` runs it where the session is now, `--there` where it was written for; \
             `homing queue withdraw {id}` takes it back"
        )),
        (ReceiptState::Held, _) => Some(format!(
            "`homing queue release --here {id}` lets it run where the session is now, `homing queue withdraw {id}` takes it back"
        )),
        (ReceiptState::Failed, Some("interrupted")) => Some(
            "it may have acted, and is not run again by itself: `homing diff` shows what changed, `homing log` what it said; then say how to go on"
                .to_owned(),
        ),
        _ => receipt.hint.clone(),
    }
}

/// The state of a session, in one word.
pub(crate) fn doing(session: &Session) -> String {
    let more = session.pending.saturating_sub(1);
    let more = if more > 0 { format!(" +{more}") } else { String::new() };
    match (session.state, session.waiting.as_ref().map(|waiting| waiting.why.as_str())) {
        (SessionState::Ended, _) => "ended".to_owned(),
        (SessionState::Open, Some("asked")) => format!("asks{more}"),
        (SessionState::Open, Some("starting" | "again")) => format!("starting{more}"),
        (SessionState::Open, Some("stopping")) => format!("stopping{more}"),
        (SessionState::Open, Some(_)) => format!("waiting {}", session.pending),
        (SessionState::Open, None) => match (session.awake, session.pending) {
            (true, _) => format!("running{more}"),
            (false, 0) => "dormant".to_owned(),
            (false, pending) if session.held >= pending => format!("held {pending}"),
            (false, pending) => format!("waiting {pending}"),
        },
    }
}

/// The line that says that messages of a session wait until somebody releases them, if nothing else goes on in it.
pub(crate) fn held(session: &Session) -> Option<String> {
    let is_at_rest = session.state == SessionState::Open && !session.awake && session.held > 0;
    is_at_rest.then(|| {
        let messages = if session.held == 1 {
            "1 message is".to_owned()
        } else {
            format!("{} messages are", session.held)
        };
        format!("{messages} held: `homing queue {}` says why", session.id)
    })
}

/// The role of somebody in their org, as it is typed.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum RoleArg {
    /// Reads what was shared with them
    Viewer,
    /// Makes sessions, and shares them
    Member,
    /// Looks after people, groups, agents, directories and the audit
    Admin,
    /// An admin whom admins cannot touch
    Owner,
}

impl From<RoleArg> for Role {
    fn from(word: RoleArg) -> Self {
        match word {
            RoleArg::Viewer => Self::Viewer,
            RoleArg::Member => Self::Member,
            RoleArg::Admin => Self::Admin,
            RoleArg::Owner => Self::Owner,
        }
    }
}

/// The role of somebody in their org.
pub(crate) fn role(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Member => "member",
        Role::Admin => "admin",
        Role::Owner => "owner",
    }
}

/// A right of a token, as it is typed.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum RightArg {
    /// Read
    Read,
    /// Make sessions, say things, take them back, stop them
    Prompt,
    /// Answer agents' questions
    Approve,
    /// Change sessions: end, order, title, share, hand over
    Manage,
    /// Change the org, its people and their tokens
    Admin,
}

impl From<RightArg> for Right {
    fn from(word: RightArg) -> Self {
        match word {
            RightArg::Read => Self::Read,
            RightArg::Prompt => Self::Prompt,
            RightArg::Approve => Self::Approve,
            RightArg::Manage => Self::Manage,
            RightArg::Admin => Self::Admin,
        }
    }
}

/// The rights of a token.
pub(crate) fn rights(rights: &[Right]) -> String {
    let words = rights.iter().map(|right| match right {
        Right::Read => "read",
        Right::Prompt => "prompt",
        Right::Approve => "approve",
        Right::Manage => "manage",
        Right::Admin => "admin",
    });
    words.collect::<Vec<_>>().join(",")
}

/// A grant on something, as it is typed.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum GrantArg {
    /// Read it
    View,
    /// Say something to it: a shell as the agent's user
    Prompt,
    /// End it, reorder it, share it, hand it on
    Manage,
}

impl From<GrantArg> for Grant {
    fn from(word: GrantArg) -> Self {
        match word {
            GrantArg::View => Self::View,
            GrantArg::Prompt => Self::Prompt,
            GrantArg::Manage => Self::Manage,
        }
    }
}

/// The grant on something.
pub(crate) fn grant(grant: Grant) -> &'static str {
    match grant {
        Grant::View => "view",
        Grant::Prompt => "prompt",
        Grant::Manage => "manage",
    }
}

/// The purpose of a token.
pub(crate) fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Machine => "this machine",
        Purpose::Browser => "a browser",
        Purpose::Cli => "a command line",
        Purpose::Api => "a program",
        Purpose::Turn => "an agent",
    }
}

/// The readiness of a session: `yes`, or a line for each part that is in the way.
pub(crate) fn readiness(ready: &api::Readiness) -> Vec<String> {
    let counts = |part: &&api::ReadyPart| part.state == "waiting" || part.state == "blocked";
    let line = |part: &api::ReadyPart| {
        let why = part.why.as_deref().map(|why| format!(" ({})", plain(why))).unwrap_or_default();
        let who = part.session.as_deref().map(|who| format!(", {who} works there")).unwrap_or_default();
        let remedy = part.remedy.as_deref().map(|remedy| format!(": {remedy}")).unwrap_or_default();
        format!("{} {}{why}{who}{remedy}", part.name, part.state)
    };
    match ready.state {
        api::Ready::Ready => vec!["yes".to_owned()],
        api::Ready::Waiting | api::Ready::Blocked => ready.parts.iter().filter(counts).map(line).collect(),
    }
}

/// Words, and a line for each image or file that goes along.
pub(crate) fn with_attached(words: &str, attached: &[api::Attached]) -> String {
    let named = attached.iter().map(|attached| format!("[{attached}]"));
    let lines = [words.to_owned()].into_iter().filter(|words| !words.is_empty()).chain(named);
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(story: Story) -> String {
        let what = What::Story(StoryFact { v: 1, turn: 2, story });
        fact(&Fact { number: 1, at: api::At(0), cause: "runner".to_owned(), what })
    }

    #[test]
    fn what_waits_reads_alike_in_send_show_queue_and_ls() {
        let table = [
            (json!({"why": "message", "message": "msg_1"}), "behind msg_1"),
            (
                json!({"why": "directory", "session": "ses_1", "directory": "/srv"}),
                "ses_1 works in /srv; goes on when that turn is over",
            ),
            (
                json!({"why": "slot", "max": 3, "session": "ses_1"}),
                "its sender has as many turns under way as may be at once (3), among them ses_1; goes on when one is over",
            ),
            (
                json!({"why": "org_slot"}),
                "the org has as many turns under way as may be at once; goes on when one is over",
            ),
            (json!({"why": "starting", "agent": "opencode"}), "opencode is being started"),
            (json!({"why": "again", "agent": "opencode"}), "opencode could not be started"),
            (json!({"why": "scope"}), "the scope is about to change"),
            (json!({"why": "errand"}), "a worktree is being made, or a turn undone"),
            (json!({"why": "stopping"}), "the turn is being stopped"),
            (json!({"why": "asked"}), "the agent asks something: answer with `homing approve`"),
            (json!({"why": "something_new"}), "something new"),
        ];
        for (waiting, words) in table {
            let receipt = json!({
                "id": "msg_2", "session": "ses_2", "state": "waiting", "waiting": waiting, "new": false, "revision": 0,
                "delivery": "queue", "accepted_at": "2026-11-18T12:00:00Z", "changed_at": "2026-11-18T12:00:00Z",
                "links": {"self": "", "session": "", "facts": ""},
            });
            let queued = json!({
                "id": "msg_2", "state": "waiting", "waiting": waiting, "by": "usr_1", "revision": 0, "delivery": "queue",
                "text": "", "accepted_at": "2026-11-18T12:00:00Z",
            });
            let waiting: Waiting = serde_json::from_value(waiting).unwrap();
            // Follow, and the list of sessions.
            assert_eq!(waits(&waiting), format!("waits: {words}"));
            // Show, of a session and of a message; the queue.
            assert_eq!(self::waiting(&waiting), words);
            assert_eq!(standing(&serde_json::from_value(receipt).unwrap()), format!("waiting: {words}"));
            assert_eq!(self::queued(&serde_json::from_value(queued).unwrap()), format!("waiting: {words}"));
        }
    }

    #[test]
    fn what_a_session_has_used_is_told_with_what_it_cost() {
        let usage = |cost: Option<u64>| api::Usage {
            input_tokens: 1,
            output_tokens: 20,
            cached_tokens: 300,
            cost_micros: cost,
            window_used: Some(4_000),
            window_size: Some(200_000),
        };
        assert_eq!(
            used(&usage(Some(12_345))),
            "1 token in (300 cached), 20 out, $0.0123, window 4000 of 200000"
        );
        assert_eq!(
            used(&usage(Some(2_500_000))),
            "1 token in (300 cached), 20 out, $2.5000, window 4000 of 200000"
        );
        assert_eq!(used(&usage(Some(0))), "1 token in (300 cached), 20 out, $0.0000, window 4000 of 200000");
        let plain = api::Usage { cached_tokens: 0, window_used: None, input_tokens: 2, ..usage(None) };
        assert_eq!(used(&plain), "2 tokens in, 20 out", "what is not known is not said");
    }

    #[test]
    fn a_line_of_the_log_says_something_and_says_it_once() {
        let text = |text: &str| text.to_owned();
        let notice = |words: &str| told(Story::Notice { text: text(words) });
        assert_eq!(notice("turn 2 undone: 1 file is as before"), "turn 2 undone: 1 file is as before");
        assert_eq!(notice("turn 21 is far"), "turn 2: turn 21 is far");
        assert_eq!(told(Story::Text { part: 1, offset: 0, text: text("\n") }), "turn 2: (an empty line)");
        let silent = Story::ToolResult { call: text("a"), output: text(""), failed: false };
        assert_eq!(told(silent), "turn 2: (it printed nothing)");
    }
}
