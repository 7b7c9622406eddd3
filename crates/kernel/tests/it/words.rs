//! The outcome of a step, in the words of `stories`.

use crate::story::{Told, World};
use homing_kernel::*;
use std::fmt::Write;

pub(crate) fn table(rows: &[[String; 3]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1)];
    let mut text = String::new();
    for [step, facts, due] in rows {
        writeln!(text, "{step:<0$}   {facts:<1$}   {due}", widths[0], widths[1]).expect("a string takes it");
    }
    text
}

pub(crate) fn told_in_words(told: &Told) -> String {
    match told {
        Told::Facts(facts) => facts.iter().map(fact_in_words).collect::<Vec<_>>().join(", "),
        Told::Refused(refusal) => {
            let why = match refusal {
                Refusal::TooLate => "too late",
                Refusal::Changed => "changed in between",
                Refusal::Ended => "the session has ended",
                Refusal::AlreadyOpen => "already open",
                Refusal::NotOpen => "not open",
                Refusal::Busy => "busy",
                Refusal::Changing => "another change waits",
                Refusal::InWorktree => "in a worktree already",
                Refusal::NotInWorktree => "in no worktree",
                Refusal::NoSuchTurn => "no such turn",
                Refusal::OtherScope => "another scope",
                Refusal::NotListening => "nobody listens",
                Refusal::Unfit => "no answer to that",
                Refusal::NotAllowed => "not allowed any more",
            };
            format!("no: {why}")
        }
    }
}

fn fact_in_words(fact: &Fact) -> String {
    let m = |message: &MessageId| format!("m{}", message.bits());
    let a = |approval: &ApprovalId| format!("a{}", approval.bits());
    match fact {
        Fact::Opened { origin, enter, .. } => {
            let fork = origin.map(|origin| format!(" as a fork {}", origin_in_words(&origin)));
            let into = enter.as_ref().map(|worktree| format!(" into {}", worktree.name));
            format!("opened{}{}", fork.unwrap_or_default(), into.unwrap_or_default())
        }
        Fact::Queued { message, epoch, .. } => format!("queued {}{}", m(message), under(*epoch)),
        Fact::Edited { message, revision } => format!("edited {} to revision {revision}", m(message)),
        Fact::Withdrawn { message, .. } => format!("withdrawn {}", m(message)),
        Fact::Held { message, why, expires } => {
            let why = match why {
                HoldWhy::Asked => "asked",
                HoldWhy::AfterFailure => "after failure",
                HoldWhy::OtherScope => "other scope",
            };
            format!("held {} ({why}, until {})", m(message), expires.0)
        }
        Fact::Released { message, epoch } => format!("released {}{}", m(message), under(*epoch)),
        Fact::Steered { message, turn } => format!("steered {} into turn {turn}", m(message)),
        Fact::Missed { message } => format!("missed {}", m(message)),
        Fact::Reordered { order } => {
            format!("reordered {}", order.iter().map(m).collect::<Vec<_>>().join(" "))
        }
        Fact::MessageRefused { message, why } => {
            let why = match why {
                RefusedWhy::SessionEnded => "session ended",
                RefusedWhy::Expired => "expired",
                RefusedWhy::NotAllowed => "not allowed",
                RefusedWhy::HandedOver => "handed over",
            };
            format!("refused {} ({why})", m(message))
        }
        Fact::Crowded { until } => format!("crowded until {}", until.0),
        Fact::TurnStarted { turn, message } => format!("turn {turn} of {}", m(message)),
        Fact::AttemptStarted { fence, .. } => format!("attempt {}", fence_in_words(fence)),
        Fact::Confirmed { native, epoch } => format!("confirmed {}{}", native.id, under(*epoch)),
        Fact::Handed { turn, attempt } => format!("handed {turn}.{attempt}"),
        Fact::AttemptFailed { turn, attempt, failure, again_at } => {
            format!("attempt {turn}.{attempt} {}, again at {}", failure_in_words(*failure), again_at.0)
        }
        Fact::Asked { approval, until, .. } => format!("asked {} until {}", a(approval), until.0),
        Fact::Answered { approval, answer, by } => {
            let by = match by {
                Answerer::Person(_) => String::new(),
                Answerer::Rule(rule) => format!(" (rule {})", rule.bits()),
                Answerer::Policy => " (policy)".into(),
                Answerer::Nobody => " (nobody answered)".into(),
            };
            format!("answered {} {}{by}", a(approval), answer_in_words(answer))
        }
        Fact::Lapsed { approval } => format!("lapsed {}", a(approval)),
        Fact::StopAsked { turn, why } => {
            let why = match why {
                StopWhy::Asked(_) => "asked",
                StopWhy::TimeLimit => "time limit",
                StopWhy::Ending => "session is ending",
                StopWhy::Revoked => "revoked",
                StopWhy::HandedOver => "handed over",
            };
            format!("stop turn {turn} ({why})")
        }
        Fact::TurnEnded { turn, outcome } => {
            let outcome = match outcome {
                Outcome::Answered => "answered",
                Outcome::Stopped => "stopped",
                Outcome::Interrupted => "interrupted",
                Outcome::Failed(failure) => failure_in_words(*failure),
                Outcome::TimedOut => "timed out",
            };
            format!("turn {turn} {outcome}")
        }
        Fact::EndAsked { .. } => "to end".into(),
        Fact::Ended { why: EndWhy::Asked } => "ended (asked)".into(),
        Fact::Ended { why: EndWhy::Gone } => "ended (gone)".into(),
        Fact::Stale { fence, kind } => {
            format!("stale {} of {}", format!("{kind:?}").to_lowercase(), fence_in_words(fence))
        }
        Fact::ChangeAsked { change, after, .. } => {
            let after = after.map(|message| format!(" after {}", m(&message))).unwrap_or_default();
            format!("to {}{after}", change_in_words(change))
        }
        Fact::ScopeKept { why } => {
            let why = match why {
                KeptWhy::Asked(_) => "asked",
                KeptWhy::Failed => "failed",
                KeptWhy::Moot => "moot",
            };
            format!("scope kept ({why})")
        }
        Fact::ScopeChanged { epoch, scope } => format!("epoch {epoch} {}", scope_in_words(scope)),
        Fact::ErrandStarted { errand, what, .. } => {
            format!("errand {} to {}", errand_in_words(errand), what_in_words(what))
        }
        Fact::ErrandFailed { errand } => format!("errand {} failed", errand_in_words(errand)),
        Fact::Undone { turn } => format!("turn {turn} undone"),
        Fact::Redone { turn } => format!("turn {turn} redone"),
        Fact::Learned { kind, epoch } => {
            format!("learned {}{}", format!("{kind:?}").to_lowercase(), under(*epoch))
        }
        Fact::StaleErrand { errand, kind } => {
            format!("stale {} of {}", format!("{kind:?}").to_lowercase(), errand_in_words(errand))
        }
    }
}

fn failure_in_words(failure: Failure) -> &'static str {
    match failure {
        Failure::Gone => "failed (gone)",
        Failure::Busy => "failed (busy)",
        Failure::Transient => "failed (transient)",
        Failure::Refused => "failed (refused)",
    }
}

fn answer_in_words(answer: &Answer) -> String {
    match answer {
        Answer::Yes => "yes".into(),
        Answer::No => "no".into(),
        Answer::Chose(option) => format!("option {option}"),
        Answer::Said(words) => format!("{words:?}"),
    }
}

fn under(epoch: Epoch) -> String {
    if epoch == Epoch(0) { String::new() } else { format!(" under {epoch}") }
}

fn change_in_words(change: &Change) -> String {
    let setting = |what: &str, setting: &Setting| match setting {
        Setting::Keep => String::new(),
        Setting::Default => format!(" {what} default"),
        Setting::To(name) => format!(" {what} {name}"),
    };
    match change {
        Change::Enter(worktree) => format!("enter {}", worktree.name),
        Change::Exit => "exit".into(),
        Change::Set { agent, model, mode } => {
            let agent = agent.as_ref().map(|agent| format!(" agent {agent}")).unwrap_or_default();
            format!("set{agent}{}{}", setting("model", model), setting("mode", mode))
        }
        Change::Relink { directory } => format!("relink {}", directory.for_readers()),
        Change::Back { message, .. } => format!("go back for m{}", message.bits()),
    }
}

fn what_in_words(what: &What) -> String {
    match what {
        What::Enter(worktree) => format!("enter {}", worktree.name),
        What::Undo { turn, .. } => format!("undo {turn}"),
        What::Redo { turn } => format!("redo {turn}"),
    }
}

fn scope_in_words(scope: &Scope) -> String {
    let maybe = |what: &str, name: &Option<String>| match name {
        Some(name) => format!(" {what} {name}"),
        None => String::new(),
    };
    let agent = if scope.agent == "scripted" { String::new() } else { format!(" agent {}", scope.agent) };
    let (model, mode) = (maybe("model", &scope.model), maybe("mode", &scope.mode));
    format!("in {}{agent}{model}{mode}", scope.directory.for_readers())
}

fn errand_in_words(errand: &Errand) -> String {
    format!("{}.{}", errand.epoch, errand.number)
}

fn origin_in_words(origin: &Origin) -> String {
    format!("of s{} after {}", origin.session.bits(), origin.turn)
}

fn fence_in_words(fence: &Fence) -> String {
    let term = if fence.term == Term(1) { String::new() } else { format!(" term {}", fence.term) };
    let epoch = if fence.epoch == Epoch(0) { String::new() } else { format!(" epoch {}", fence.epoch) };
    format!("{}.{}{term}{epoch}", fence.turn, fence.attempt)
}

pub(crate) fn due_in_words(world: &World) -> String {
    match (world.session.due(world.given.term), world.session.wake_at(world.given.term)) {
        (Due::Nothing, None) => "nothing".into(),
        (Due::Nothing, Some(at)) => format!("nothing until {}", at.0),
        (Due::Errand(away), _) => {
            format!("errand {} to {}", errand_in_words(&away.errand), what_in_words(&away.what))
        }
        (Due::EndLeftovers(fence), _) => format!("bury {}", fence_in_words(&fence)),
        (Due::Run(run), _) => {
            let step = match run.step {
                homing_kernel::Step::Start => "start",
                homing_kernel::Step::Work => "work",
                homing_kernel::Step::Stop => "stop",
            };
            let begin = match run.begin {
                Begin::New => String::new(),
                Begin::Resume(native) => format!(" as {}", native.id),
                Begin::Follow(native) => format!(" after {}", native.id),
                Begin::Retell => " told again".into(),
                Begin::Fork(origin) => format!(" forked {}", origin_in_words(&origin)),
            };
            let steered = run.steered.iter().map(|message| format!(" +m{}", message.bits()));
            let steered = steered.collect::<String>();
            let answers = run
                .answers
                .iter()
                .map(|(approval, answer)| format!(" a{}: {}", approval.bits(), answer_in_words(answer)));
            let answers = answers.collect::<String>();
            let fence = fence_in_words(&run.fence);
            format!("{step} {fence} m{}{steered}{begin}{answers}", run.message.bits())
        }
    }
}
