//! Scopes, what is wanted of them, and errands, on the wire.

use kernel::{
    Change, Delivery, Errand, ErrandKind, Fact, KeptWhy, NewWorktree, Origin, Scope, Setting, What, Worktree,
};

/// A fact about the scope.
pub(super) fn fact_form(fact: &Fact) -> api::RuleFact {
    use api::RuleFact as Wire;
    match fact {
        Fact::ChangeAsked { change, after, by } => Wire::ChangeAsked {
            change: change_form(change),
            after: after.map(|message| message.to_string()),
            by: by.to_string(),
        },
        Fact::ScopeKept { why } => {
            let (why, by) = match why {
                KeptWhy::Asked(by) => ("asked", Some(by.to_string())),
                KeptWhy::Failed => ("failed", None),
                KeptWhy::Moot => ("moot", None),
            };
            Wire::ScopeKept { why: why.to_owned(), by }
        }
        Fact::ScopeChanged { epoch, scope } => {
            Wire::ScopeChanged { epoch: epoch.0, scope: scope_form(scope) }
        }
        Fact::ErrandStarted { errand, what, by } => errand_form(*errand, what, by.to_string()),
        Fact::ErrandFailed { errand } => Wire::ErrandFailed { errand: errand.number, epoch: errand.epoch.0 },
        Fact::Undone { turn } => Wire::Undone { turn: turn.0 },
        Fact::Redone { turn } => Wire::Redone { turn: turn.0 },
        Fact::Learned { kind, epoch } => {
            Wire::Learned { kind: errand_word(*kind).to_owned(), epoch: epoch.0 }
        }
        Fact::StaleErrand { errand, kind } => Wire::StaleErrand {
            errand: errand.number,
            epoch: errand.epoch.0,
            kind: errand_word(*kind).to_owned(),
        },
        _ => unreachable!("only facts about the scope come here"),
    }
}

fn errand_form(errand: Errand, what: &What, by: String) -> api::RuleFact {
    let (what, subject) = match what {
        What::Enter(worktree) => ("enter", worktree.name.clone()),
        What::Undo { turn, .. } => ("undo", turn.to_string()),
        What::Redo { turn } => ("redo", turn.to_string()),
    };
    let (what, epoch) = (what.to_owned(), errand.epoch.0);
    api::RuleFact::ErrandStarted { errand: errand.number, epoch, what, subject, by }
}

pub(crate) fn scope_form(scope: &Scope) -> api::Scope {
    let Scope { directory, agent, model, mode, worktree } = scope.clone();
    let worktree = worktree
        .map(|Worktree { name, home, .. }| api::ScopeWorktree { name, home: home.for_readers().to_owned() });
    api::Scope { directory: directory.for_readers().to_owned(), agent, model, mode, worktree }
}

pub(crate) fn origin_form(origin: Origin) -> api::Origin {
    api::Origin { session: origin.session.to_string(), turn: origin.turn.0 }
}

fn change_form(change: &Change) -> api::ScopeChange {
    use api::ScopeChange as Wire;
    match change {
        Change::Enter(wanted) => {
            let (name, base, branch) = (wanted.name.clone(), wanted.base.clone(), wanted.branch.clone());
            Wire::Enter(api::EnterWorktree { name, base, branch })
        }
        Change::Exit => Wire::Exit(true),
        Change::Set { agent, model, mode } => {
            let (agent, model, mode) = (agent.clone(), setting_form(model), setting_form(mode));
            Wire::Set(api::ScopeSet { agent, model, mode })
        }
        Change::Relink { directory } => Wire::Relink(directory.for_readers().to_owned()),
        Change::Back { scope, .. } => Wire::Back(scope_form(scope)),
    }
}

/// The wish for another scope, as the kernel has it, and whether it may not wait.
pub(crate) fn change_of(request: api::ScopeRequest) -> (Change, bool) {
    use api::ScopeRequest as Wire;
    match request {
        Wire::Enter(request) => {
            let api::EnterWorktree { name, base, branch } = request.enter;
            (Change::Enter(NewWorktree { name, base, branch }), request.now)
        }
        Wire::Exit(request) => (Change::Exit, request.now),
        Wire::Set(request) => {
            let api::ScopeSet { agent, model, mode } = request.set;
            (Change::Set { agent, model: setting_of(model), mode: setting_of(mode) }, request.now)
        }
        Wire::Relink(request) => (Change::Relink { directory: request.relink.into() }, request.now),
    }
}

fn setting_of(named: Option<String>) -> Setting {
    match named {
        None => Setting::Keep,
        Some(name) if name.is_empty() => Setting::Default,
        Some(name) => Setting::To(name),
    }
}

fn setting_form(setting: &Setting) -> Option<String> {
    match setting {
        Setting::Keep => None,
        Setting::Default => Some(String::new()),
        Setting::To(name) => Some(name.clone()),
    }
}

/// The delivery of a message, on the wire.
pub(crate) fn delivery_form(delivery: Delivery) -> api::Delivery {
    match delivery {
        Delivery::Queue => api::Delivery::Queue,
        Delivery::Interrupt => api::Delivery::Interrupt,
        Delivery::Steer => api::Delivery::Steer,
    }
}

/// The other way round.
pub(crate) fn delivery_of(delivery: api::Delivery) -> Delivery {
    match delivery {
        api::Delivery::Queue => Delivery::Queue,
        api::Delivery::Interrupt => Delivery::Interrupt,
        api::Delivery::Steer => Delivery::Steer,
    }
}

pub(super) fn delivery_word(delivery: Delivery) -> &'static str {
    match delivery {
        Delivery::Queue => "queue",
        Delivery::Interrupt => "interrupt",
        Delivery::Steer => "steer",
    }
}

fn errand_word(kind: ErrandKind) -> &'static str {
    match kind {
        ErrandKind::Enter => "enter",
        ErrandKind::Undo => "undo",
        ErrandKind::Redo => "redo",
        ErrandKind::Commands => "commands",
        ErrandKind::Models => "models",
        ErrandKind::Files => "files",
        ErrandKind::Diff => "diff",
    }
}
