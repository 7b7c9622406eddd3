//! Where agents really ran, what they really got, and how the ground is in the end, against the logs.

use super::{Findings, Scene};
use crate::notes::{Brought, Launched, code_of, short};
use kernel::{MessageId, Native, SessionId, Turn};
use std::collections::BTreeMap;

/// The line between a conversation that is told again and the words of now.
const NOW: &str = "\nThat was the conversation so far. This is what is said to you now:\n\n";

pub(super) fn check(scene: &Scene<'_>, findings: &mut Findings) {
    for launched in &scene.seen.launches {
        ran_in_its_scope(scene, launched, findings);
    }
    given_once(scene, findings);
    written_for_what_was_seen(scene, findings);
    rows_are_the_logs(scene, findings);
    ground_is_the_logs(scene, findings);
    undone_is_undone(scene, findings);
    forks_know_their_origin(scene, findings);
    for (session, errand, kind) in &scene.seen.stale_looks {
        let told = scene.told.get(session);
        let recorded = told.is_some_and(|told| told.stale_errands.contains(&(*errand, *kind)));
        let how = || format!("{} {errand:?} {kind:?}", short(session));
        findings.must(recorded, "what is called stale is recorded", how);
    }
}

/// Every attempt ran in the directory, with the agent and the model of its epoch.
fn ran_in_its_scope(scene: &Scene<'_>, launched: &Launched, findings: &mut Findings) {
    let scopes = scene.told.get(&launched.session).map(|told| told.scopes.as_slice()).unwrap_or_default();
    let scope = scopes.get(launched.fence.epoch.0 as usize);
    let fits = scope.is_some_and(|scope| {
        scope.directory == *launched.directory.as_str()
            && scope.agent == launched.agent
            && (&scope.model, &scope.mode) == (&launched.model, &launched.mode)
    });
    findings.must(fits, "a turn runs in the scope of its epoch", || format!("{launched:?} in {scope:?}"));
}

/// No agent gets the words of a message twice, and what it got into a turn has none of its own.
fn given_once(scene: &Scene<'_>, findings: &mut Findings) {
    let mut given: BTreeMap<MessageId, _> = BTreeMap::new();
    for (session, message, fence, into_turn) in &scene.seen.given {
        let before = given.insert(*message, (fence, into_turn));
        let how = || format!("{} {} {fence} after {before:?}", short(session), short(message));
        findings.must(before.is_none(), "an agent gets the words of a message once", how);
        let turns = scene.told.get(session).map(|told| told.turns.as_slice()).unwrap_or_default();
        let turn = turns.iter().find(|told| told.turn == fence.turn);
        let known = turn.is_some_and(|told| match into_turn {
            true => told.steered.contains(message),
            false => told.message == *message,
        });
        let how = || format!("{} {} {fence}", short(session), short(message));
        findings.must(known, "what an agent got is in the log of that turn", how);
    }
}

/// A message that somebody wrote for a scope was queued for that one.
fn written_for_what_was_seen(scene: &Scene<'_>, findings: &mut Findings) {
    let queued = scene.told.values().flat_map(|told| &told.written_for);
    for (message, epoch) in queued {
        let under = scene.said(*message).and_then(|said| said.under);
        let fits = under.is_none_or(|under| under == *epoch);
        let how = || format!("{} for {epoch:?}, but {under:?} was seen", short(message));
        findings.must(fits, "a message waits for the scope that its sender saw", how);
    }
}

fn rows_are_the_logs(scene: &Scene<'_>, findings: &mut Findings) {
    for (session, told) in &scene.told {
        let (Some(row), Some(last)) = (scene.store.sessions.get(session), told.scopes.last()) else {
            continue;
        };
        let fits = row.scope == *last && row.epoch.0 as usize + 1 == told.scopes.len();
        let how = || format!("{} {:?} {:?}, but {last:?}", short(session), row.epoch, row.scope);
        findings.must(fits, "lists say where a session acts", how);
        let settled = told.pending.is_none() || !scene.is_quiet;
        let how = || format!("{} {:?}", short(session), told.pending);
        findings.must(settled, "a change of scope happens, or is given up", how);
    }
    let held: usize = scene.told.values().map(|told| told.held_for_scope).sum();
    let own = scene.store.audit.iter().filter(|row| row.verb == "hold_for_other_scope").count();
    findings
        .must(held == own, "what the engine does by itself is in the audit", || format!("{own} for {held}"));
}

/// Whatever a log says was entered is there, under the one name that it has.
fn ground_is_the_logs(scene: &Scene<'_>, findings: &mut Findings) {
    let grown = scene.town.grove.grown();
    for (session, told) in &scene.told {
        for scope in &told.scopes {
            let Some(worktree) = &scope.worktree else { continue };
            let made = grown.worktrees.get(&(*session, worktree.name.clone()));
            let how = || format!("{} {scope:?}, but {made:?}", short(session));
            findings.must(
                made.is_some_and(|made| scope.directory == *made.as_str()),
                "the ground is as the log says",
                how,
            );
        }
    }
}

/// An undone change is gone from its tree, and what nobody wanted undone is there.
fn undone_is_undone(scene: &Scene<'_>, findings: &mut Findings) {
    let is_shared = scene.town.limits.shared_directories;
    let grown = scene.town.grove.grown();
    for (session, told) in &scene.told {
        for turn in told.turns.iter().filter(|turn| turn.handed.is_some()) {
            let directory = told.scopes.get(turn.epoch.0 as usize).map(|scope| &scope.directory);
            let Some(tree) = directory.and_then(|directory| grown.trees.get(directory.for_readers())) else {
                continue;
            };
            let there = tree.contains(&(*session, turn.turn));
            let fits = match told.undone.get(&turn.turn) {
                // A daemon that was replaced looked at the tree before the turn when it was already under way.
                Some(true) => !there || grown.late.contains(&(*session, turn.turn)),
                Some(false) => true,
                // Where directories are shared, a turn has changed whatever others did meanwhile.
                None => there || is_shared || !scene.has_acted(*session, turn.message),
            };
            let how = || {
                format!("{} {:?}: {:?} and {there}", short(session), turn.turn, told.undone.get(&turn.turn))
            };
            findings.must(fits, "what was undone is gone, and nothing else", how);
        }
    }
}

/// A fork knows what its origin was told up to the turn where it begins, and nothing that came after.
fn forks_know_their_origin(scene: &Scene<'_>, findings: &mut Findings) {
    let forks = scene.seen.launches.iter().filter(|launched| launched.is_fork);
    for launched in forks {
        let told = scene.told.get(&launched.session);
        let origin = told.and_then(|told| told.origin);
        let home = origin.and_then(|origin| scene.told.get(&origin.session));
        let known = home.is_some_and(|home| {
            launched.native.as_ref().is_some_and(|native| home.confirmed.contains(native))
        });
        let how = || format!("{launched:?} of {origin:?}");
        findings.must(known, "a fork goes on with its origin's conversation", how);
    }
    let grown = scene.town.grove.grown();
    for (session, marks) in &grown.forked {
        let Some(origin) = scene.told.get(session).and_then(|told| told.origin) else { continue };
        let later = marks.iter().find(|(of, turn)| *of == origin.session && *turn > origin.turn);
        let fits = later.is_none() || scene.seen.takeovers > 0;
        let how = || format!("{} of {origin:?} has {later:?}", short(session));
        findings.must(fits, "a fork's tree is its origin's after that turn", how);
    }
}

/// The words of now, without what was told again before them.
pub(super) fn own_words(text: &str) -> &str {
    text.rsplit_once(NOW).map_or(text, |(_, own)| own)
}

/// Every code word in what an agent remembers or says, quoted or not.
pub(super) fn codes_in(text: &str) -> impl Iterator<Item = usize> {
    text.split('\n').filter_map(|line| code_of(line.trim_start_matches(['>', ' '])))
}

impl Scene<'_> {
    fn has_acted(&self, session: SessionId, message: MessageId) -> bool {
        self.noted.iter().any(|noted| {
            noted.did == agent::Did::Acted && noted.session == session && noted.message == message
        })
    }

    /// True if words with this code may be known in a session: they were said there, or in its origin up to that turn.
    pub(super) fn is_at_home(&self, code: usize, session: SessionId) -> bool {
        let Some((message, home)) = self.message_of(code) else { return false };
        let (mut at, mut until) = (session, Turn(u32::MAX));
        loop {
            if at == home {
                return self.turn_of(home, message).is_none_or(|turn| turn <= until);
            }
            let came_from = |brought: &Brought| {
                let last = brought.export.turns.last().map_or(0, |past| past.turn);
                brought.answers.contains(&Ok(at)).then_some((brought.export.session, Turn(last)))
            };
            let origin = self.told.get(&at).and_then(|told| told.origin);
            let origin = origin.map(|origin| (origin.session, origin.turn));
            match origin.or_else(|| self.seen.imports.iter().find_map(came_from)) {
                Some(origin) => (at, until) = origin,
                None => return false,
            }
        }
    }

    fn turn_of(&self, session: SessionId, message: MessageId) -> Option<Turn> {
        let turns = &self.told.get(&session)?.turns;
        let ran = turns.iter().find(|told| told.message == message || told.steered.contains(&message));
        ran.map(|told| told.turn)
    }

    /// True if a conversation was made as another's fork, and never was another session's own.
    pub(super) fn is_borrowed(&self, native: &Native, session: SessionId) -> bool {
        let mut launches = self.seen.launches.iter();
        launches.any(|l| l.is_fork && l.session == session && l.native.as_ref() == Some(native))
    }
}
