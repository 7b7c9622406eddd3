//! Promises over a whole life: receipts from waiting to final, ends, and projections that the log can make again.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{
    Answer, ApprovalId, Change as ScopeChange, Command, Delivery, EndWhy, Epoch, Errand, ErrandKind, Fact,
    Failure, Fence, Given, Grant, Grantee, HoldWhy, MessageId, Moment, Native, NewWorktree, Number, Outcome,
    Policy, Record, RefusedWhy, Report, Request, Return, Role, Scope, Session, SessionId, Setting, Slot,
    Stage, To, Turn, UndoFiles, What,
};
use std::collections::BTreeMap;

pub async fn a_receipt_tells_a_messages_whole_life<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1)).await;
    let life = async || {
        let row = receipt(store, 1).await;
        (row.state, row.turn, row.first, row.last, row.changed_at)
    };
    use ReceiptState::*;
    assert_eq!(life().await, (Waiting, None, None, None, Moment(1_001)));
    write(store, ses(1), vec![opened(), queued(1)]).await;
    assert_eq!(life().await, (Waiting, None, None, None, Moment(5_010)));
    let expires = Moment(80_000);
    write(store, ses(1), vec![Fact::Held { message: msg(1), why: HoldWhy::AfterFailure, expires }]).await;
    assert_eq!(life().await, (Held, None, None, None, Moment(5_020)));
    assert_eq!(receipt(store, 1).await.why, Some("after_failure"));
    write(store, ses(1), vec![released(1)]).await;
    assert_eq!((life().await.0, receipt(store, 1).await.why), (Waiting, None));
    write(store, ses(1), vec![started(1, 1), attempt(1)]).await;
    assert_eq!(life().await, (Running, Some(Turn(1)), Some(Number(5)), None, Moment(5_040)));
    write(store, ses(1), vec![answered(1)]).await;
    let over = (Answered, Some(Turn(1)), Some(Number(5)), Some(Number(7)), Moment(5_060));
    assert_eq!(life().await, over);
    assert_eq!(receipt(store, 1).await.accepted_at, Moment(1_001));
    assert_eq!(receipt(store, 1).await.door.as_deref(), Some("test"), "the door by which it came in");
    let row = row(store, ses(1)).await;
    assert_eq!((row.pending, row.at, row.touched_at), (0, Number(7), Moment(5_060)));
    let on = on.reopen().await;
    assert_eq!(receipt(on.store(), 1).await.state, Answered);
}

pub async fn every_outcome_has_its_words<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let outcomes = [
        (Outcome::Answered, ReceiptState::Answered, None),
        (Outcome::Stopped, ReceiptState::Stopped, None),
        (Outcome::Interrupted, ReceiptState::Failed, Some("interrupted")),
        (Outcome::TimedOut, ReceiptState::Failed, Some("time_limit")),
        (Outcome::Failed(Failure::Gone), ReceiptState::Failed, Some("gone")),
        (Outcome::Failed(Failure::Busy), ReceiptState::Failed, Some("busy")),
        (Outcome::Failed(Failure::Transient), ReceiptState::Failed, Some("transient")),
        (Outcome::Failed(Failure::Refused), ReceiptState::Failed, Some("refused")),
    ];
    for (n, (outcome, state, why)) in (2..).zip(outcomes) {
        say(store, &me(), To::Session(ses(1)), line(n)).await;
        let over = Fact::TurnEnded { turn: Turn(n), outcome };
        write(store, ses(1), vec![queued(n), started(n, n), attempt(n), over]).await;
        let row = receipt(store, n).await;
        assert_eq!((row.state, row.why), (state, why));
    }
    for (n, why, word) in [
        (20, RefusedWhy::SessionEnded, "session_ended"),
        (21, RefusedWhy::Expired, "expired"),
        (22, RefusedWhy::NotAllowed, "not_allowed"),
        (23, RefusedWhy::HandedOver, "handed_over"),
    ] {
        say(store, &me(), To::Session(ses(1)), line(n)).await;
        write(store, ses(1), vec![Fact::MessageRefused { message: msg(n), why }]).await;
        let row = receipt(store, n).await;
        assert_eq!((row.state, row.why, row.turn), (ReceiptState::Refused, Some(word), None));
    }
}

pub async fn an_ended_session_is_unbound_and_stays_readable<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    write(on.store(), ses(1), vec![opened(), queued(1)]).await;
    write(on.store(), ses(1), vec![refused(1), Fact::Ended { why: EndWhy::Gone }]).await;
    let on = on.reopen().await;
    let store = on.store();
    let row = row(store, ses(1)).await;
    assert_eq!((row.ended, row.awake, row.pending), (Some(EndWhy::Gone), false, 0));
    assert_eq!(store.bindings(Seer::of(&me()), None, ALL).await.unwrap(), []);
    assert_eq!(log(store, ses(1)).await.len(), 4);
    assert_eq!(store.words(msg(1)).await.unwrap(), Some(line(1).words()));
    assert_eq!(store.unfinished(None, ALL).await.unwrap(), []);
    // A late report is still written down.
    let fence =
        Fence { term: kernel::Term(1), epoch: kernel::Epoch(0), turn: Turn(1), attempt: kernel::Attempt(1) };
    let late = Fact::Stale { fence, kind: kernel::ReportKind::Lost };
    assert_eq!(write(store, ses(1), vec![late]).await, Number(5));
}

pub async fn other_sessions_are_not_touched_by_an_append<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for (n, name) in [(1, "a"), (2, "b")] {
        say(store, &me(), conversation(name), line(n)).await;
        write(store, ses(n), vec![opened(), queued(n), started(1, n), attempt(1)]).await;
    }
    let other = async || (row(store, ses(2)).await, receipt(store, 2).await, log(store, ses(2)).await);
    let before = other().await;
    write(store, ses(1), vec![answered(1), ended()]).await;
    assert_eq!(other().await, before, "turn 1 of one session is not turn 1 of another");
    assert_eq!(store.bindings(Seer::of(&me()), None, ALL).await.unwrap().len(), 1);
}

/// Lives that the kernel decides, at random but always the same; then everything is made again from the log.
pub async fn the_projections_can_be_made_again_from_the_log<F: Fixture>() {
    let mut happened = Happened::default();
    for seed in 1..=12 {
        let mut on = peopled::<F>().await;
        let mut lives = Lives {
            dice: Dice(seed),
            now: 10_000,
            next: 1,
            sessions: vec![],
            approvals: vec![],
            given: BTreeMap::new(),
        };
        for step in 0..200 {
            lives.step(on.store()).await;
            if step % 60 == 59 {
                on = on.reopen().await;
            }
        }
        lives.compare(on.store(), &mut happened).await;
    }
    happened.is_all_of_it();
}

/// The events that a story must have in it to show anything.
#[derive(Debug, Default)]
struct Happened {
    asked: usize,
    used: usize,
    revoked: usize,
    steered: usize,
    /// The same, of what had waited.
    steered_later: usize,
    missed: usize,
    interrupted: usize,
    moved: usize,
    other_agent: usize,
    worktrees: usize,
    kept: usize,
    undone: usize,
    failed: usize,
    stale: usize,
    elsewhere: usize,
    back: usize,
    told: usize,
    held: usize,
}

impl Happened {
    fn count(&mut self, log: &[StoredFact]) {
        for stored in log {
            let StoredEntry::Rule(fact) = &stored.entry else { continue };
            match fact {
                Fact::Steered { .. } => {
                    self.steered += 1;
                    self.steered_later += usize::from(matches!(stored.cause, Cause::Request(_)));
                }
                Fact::Missed { .. } => self.missed += 1,
                Fact::Queued { delivery: Delivery::Interrupt, .. } => self.interrupted += 1,
                Fact::ScopeChanged { scope, .. } => {
                    self.moved += 1;
                    self.worktrees += usize::from(scope.worktree.is_some());
                }
                Fact::ScopeKept { .. } => self.kept += 1,
                Fact::Undone { .. } => self.undone += 1,
                Fact::ErrandFailed { .. } => self.failed += 1,
                Fact::StaleErrand { .. } => self.stale += 1,
                Fact::Held { why: HoldWhy::OtherScope, .. } => self.elsewhere += 1,
                Fact::ChangeAsked { change: ScopeChange::Back { .. }, .. } => self.back += 1,
                _ => {}
            }
        }
    }

    fn is_all_of_it(&self) {
        let Self { asked, revoked, steered, missed, interrupted, moved, other_agent, worktrees, .. } = self;
        let Self { kept, undone, failed, stale, elsewhere, back, told, held, steered_later, used, .. } = self;
        let said = [asked, revoked, steered, steered_later, missed, interrupted, elsewhere, told, held];
        let done = [moved, other_agent, worktrees, kept, undone, failed, stale, back, used];
        assert!(said.into_iter().chain(done).all(|count| *count > 0), "the story lacks something: {self:?}");
    }
}

/// splitmix64: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

struct Lives {
    dice: Dice,
    now: u64,
    next: u32,
    /// Each session, and the messages that were said to it.
    sessions: Vec<(SessionId, Vec<MessageId>)>,
    approvals: Vec<ApprovalId>,
    /// The number of grants on each session.
    given: BTreeMap<SessionId, u64>,
}

impl Lives {
    async fn step(&mut self, store: &dyn Store) {
        self.now += self.dice.roll(4_000);
        let n = self.next;
        self.next += 1;
        if self.sessions.len() < 3 || self.dice.roll(30) == 0 {
            let to = if self.dice.roll(2) == 0 { To::New } else { conversation(&format!("c{n}")) };
            let accepted = say(store, &me(), to, IncomingMessage { at: self.now, ..line(n) }).await;
            self.sessions.push((accepted.session, vec![accepted.message]));
            return self.keep(store, accepted.session, false).await;
        }
        let at = self.dice.roll(self.sessions.len() as u64) as usize;
        let (session, messages) = self.sessions[at].clone();
        let row = row(store, session).await;
        let open = row.ended.is_none();
        match self.dice.roll(24) {
            0..=4 if open => {
                let line = self.line(n, row.epoch);
                say(store, &me(), To::Session(session), line).await;
                self.sessions[at].1.push(msg(n));
                self.keep(store, session, false).await;
            }
            5..=9 if open => {
                let request = self.request(session, &messages, &row);
                let (resolved, words) = beside(&request);
                ask_with(store, n, request, resolved, words).await;
                self.keep(store, session, false).await;
            }
            10 if open => {
                // The keeper below takes every such word for a lost right.
                let (on, to) = (Resource::Session(session), Grantee::Org);
                set(store, crate::PeopleChange::Give { on, to, grant: Grant::View }).await;
                *self.given.entry(session).or_default() += 1;
                self.keep(store, session, false).await;
            }
            11 | 12 => {
                for session in store.wake(Moment(self.now), ALL).await.unwrap() {
                    self.keep(store, session, false).await;
                }
            }
            _ => self.keep(store, session, true).await,
        }
    }

    fn line(&mut self, n: u32, epoch: Epoch) -> IncomingMessage {
        let delivery = match self.dice.roll(5) {
            0 | 1 => Delivery::Queue,
            2 => Delivery::Interrupt,
            _ => Delivery::Steer,
        };
        let under = match self.dice.roll(6) {
            0 => Some(epoch),
            1 => Some(Epoch(0)),
            _ => None,
        };
        IncomingMessage { at: self.now, delivery, under, ..line(n) }
    }

    fn request(&mut self, session: SessionId, messages: &[MessageId], row: &SessionRow) -> Request {
        let message = messages[self.dice.roll(messages.len() as u64) as usize];
        if let Some(approval) = self.approvals.last().copied().filter(|_| self.dice.roll(4) == 0) {
            let answer = match self.dice.roll(4) {
                0 => Answer::Yes,
                1 => Answer::No,
                2 => Answer::Chose(3),
                _ => Answer::Said("perhaps".into()),
            };
            return Request::Answer { approval, answer, remember: None };
        }
        match self.dice.roll(40) {
            0 | 1 => Request::Edit { message, revision: self.dice.roll(2) as u32 },
            3 => Request::Withdraw { message },
            4..=6 => Request::Hold { message },
            7 => Request::Release { message, there: false },
            // Those that were said last wait, if any do.
            2 | 8 | 12 => Request::Steer { message: messages.last().copied().unwrap_or(message) },
            9 => Request::Release { message, there: true },
            10 | 11 => Request::Reorder { session, order: messages.iter().rev().copied().collect() },
            13 => Request::Stop { message },
            14 => Request::Interrupt { message: messages.last().copied().unwrap_or(message) },
            15..=28 => {
                Request::ChangeScope { session, change: self.change(message), now: self.dice.roll(4) == 0 }
            }
            29..=32 => Request::KeepScope { session },
            kind @ 33..=38 => {
                let (turn, under) = (Turn(self.dice.roll(3) as u32), Some(row.epoch));
                match kind {
                    38 => Request::Redo { session, turn, under },
                    _ => Request::Undo { session, turn, under, files: UndoFiles::All },
                }
            }
            _ => Request::End { session },
        }
    }

    fn change(&mut self, message: MessageId) -> ScopeChange {
        let set = |agent: Option<&str>, model: Setting| ScopeChange::Set {
            agent: agent.map(str::to_owned),
            model,
            mode: Setting::Keep,
        };
        match self.dice.roll(9) {
            0..=2 => {
                let name = format!("tree-{}", self.dice.roll(3));
                ScopeChange::Enter(NewWorktree { name, base: None, branch: None })
            }
            3 => ScopeChange::Exit,
            4 => set(None, Setting::To(format!("model-{}", self.dice.roll(3)))),
            5 => set(Some("another"), Setting::Keep),
            6 => set(Some("scripted"), Setting::Default),
            7 => ScopeChange::Relink { directory: format!("/srv/moved/{}", self.dice.roll(3)).into() },
            _ => ScopeChange::Back { scope: scope(), message },
        }
    }

    /// The next report from outside: the errand's return if one is under way, else what a runner may report.
    fn outside(&mut self, state: &Session, n: u32) -> Option<Command> {
        if let Some(away) = state.away() {
            let kind = match away.what {
                What::Enter(_) => ErrandKind::Enter,
                What::Undo { .. } => ErrandKind::Undo,
                What::Redo { .. } => ErrandKind::Redo,
            };
            let done = match (kind, self.dice.roll(4)) {
                (kind, 0) => Return::Failed(kind),
                (ErrandKind::Undo, _) => Return::Undone,
                (ErrandKind::Redo, _) => Return::Redone,
                (_, _) => {
                    let (directory, home) = (format!("/srv/trees/{n}").into(), "/srv/work".into());
                    Return::Entered { directory, home, branch: Some(format!("tree-{n}")) }
                }
            };
            // Now and then it is one that nobody waits for any more.
            let number = away.errand.number - u32::from(self.dice.roll(4) == 0);
            return Some(Command::Return { errand: Errand { number, ..away.errand }, came: done });
        }
        if self.dice.roll(8) == 0 {
            let errand = Errand { epoch: state.epoch(), number: 0 };
            return Some(Command::Return { errand, came: Return::Seen(ErrandKind::Models) });
        }
        let running = state.running()?;
        let (fence, steered) = (running.stage.fence()?, running.steered.first());
        // Mostly what is likely, so that lives go on; now and then anything.
        let report = match (steered, running.stage) {
            (Some(steered), _) if self.dice.roll(3) == 0 => Report::Missed { message: steered.message },
            (_, Stage::Starting { .. }) if self.dice.roll(4) > 0 => Report::Ready { native: None },
            (_, Stage::Stopping { .. }) if self.dice.roll(4) > 0 => Report::Stopped,
            _ => self.report(n),
        };
        Some(Command::Report { fence, report })
    }

    fn report(&mut self, n: u32) -> Report {
        match self.dice.roll(13) {
            0..=4 => Report::Ready {
                native: Some(Native::new(format!("native-{}", n % 3)).at(format!("place-{}", n % 2))),
            },
            5 => {
                self.approvals.push(apr(n));
                Report::Asked { approval: apr(n), terms: kernel::ApprovalTerms::default() }
            }
            6..=8 => Report::Finished { native: None },
            9 => Report::Failed(Failure::ALL[self.dice.roll(4) as usize]),
            10 => Report::Stopped,
            11 => Report::Withdrawn { approval: self.approvals.last().copied().unwrap_or(apr(n)) },
            _ => Report::Lost,
        }
    }

    /// One round of a keeper: what is in the inbox, what comes from the outside, one append.
    async fn keep(&mut self, store: &dyn Store, session: SessionId, and_outside: bool) {
        let loaded = store.load(session).await.unwrap().unwrap();
        let mut state = Session::default();
        loaded.facts.iter().for_each(|fact| state.evolve(fact));
        let mut append = append_to(store, session).await;
        let policy =
            Policy { ask_ms_max: 8_000, hold_ms_max: 20_000, turn_ms_max: 30_000, ..Policy::default() };
        let given = Given {
            now: Moment(self.now),
            term: append.term,
            policy,
            slot: Slot::Free,
            can_steer: true,
            forgets: false,
        };
        if !state.is_opened() {
            tell(
                &mut append,
                &mut state,
                Command::Open { scope: loaded.scope, origin: loaded.origin, enter: loaded.enter },
                Cause::Keeper,
                &given,
            );
        }
        for row in store.inbox(session, ALL).await.unwrap() {
            append.drained.push(row.number);
            take(&mut append, &mut state, row.item, &given);
        }
        let n = self.next;
        if let Some(command) = and_outside.then(|| self.outside(&state, n)).flatten() {
            tell(&mut append, &mut state, command, Cause::Runner, &given);
        }
        // An append either starts one message or none, as the keeper's do.
        append.awake = state.is_awake();
        append.wake_at = state.wake_at(given.term);
        append.claims = state.claims().into_iter().map(|claim| (claim, 1_000)).collect();
        let body = format!(r#"{{"at":{}}}"#, self.now);
        let append = if append.awake { told(append, 1, "words", body.as_bytes()) } else { append };
        let fence = state.running().and_then(|running| running.stage.fence());
        let append = match fence {
            Some(fence) => {
                let append = told(append, fence.turn.0, "text", self.text(n).as_bytes());
                self.used(append, fence.turn.0, n)
            }
            None => append,
        };
        written(store, append).await;
    }

    /// A report of its turn's usage, now and then, a day's length after the other.
    fn used(&self, append: Append, turn: u32, n: u32) -> Append {
        if n.is_multiple_of(3) {
            return append;
        }
        let cost = if n.is_multiple_of(2) { format!(r#","cost_micros":{n}"#) } else { String::new() };
        let body = format!(r#"{{"input_tokens":{n},"output_tokens":1{cost}}}"#);
        let mut append = told(append, turn, "usage", body.as_bytes());
        append.facts.iter_mut().rev().take(1).for_each(|new| new.at = Day(n / 40).begins());
        append
    }

    /// Words of the agent: every other piece goes on where another one, which may have been said elsewhere, has ended.
    fn text(&self, n: u32) -> String {
        let (part, offset) = if n.is_multiple_of(2) { (n, 0) } else { (n - 1, 9) };
        format!(r#"{{"part":{part},"offset":{offset},"text":"said {n:04}"}}"#)
    }

    async fn compare(&self, store: &dyn Store, happened: &mut Happened) {
        let (mut wakes, mut worktrees) = (vec![], vec![]);
        for (session, messages) in &self.sessions {
            let log = log(store, *session).await;
            happened.count(&log);
            let projection = rebuild(&log);
            let (record, row) = store.session(*session).await.unwrap().unwrap();
            let loaded = store.load(*session).await.unwrap().unwrap();
            let mut state = Session::default();
            loaded.facts.iter().for_each(|fact| state.evolve(fact));
            wakes.extend(state.wake_at(loaded.term));
            assert_eq!((row.ended, row.awake), (projection.ended, state.is_awake()));
            assert_eq!((row.ended, row.at), (state.ended(), Number(log.len() as u64)));
            compare_receipts(store, &row, messages, &projection).await;
            let is_held = |standing: &&Standing| standing.state == ReceiptState::Held;
            let held = projection.receipts.values().filter(is_held).count() as u32;
            assert_eq!((row.held, row.questions), (held, projection.questions()));
            assert_eq!(row.last, projection.last);
            happened.told += usize::from(row.last.as_ref().is_some_and(|last| last.words.is_some()));
            happened.held += row.held as usize;
            self.compare_approvals(store, *session, &projection).await;
            happened.used += compare_usage(store, &record, &projection).await;
            compare_deliveries(store, &log).await;
            compare_turns(store, *session, &projection).await;
            let other_agents = compare_scope(&row, &projection, &state, &log);
            happened.other_agent += other_agents;
            let given = self.given.get(session).copied().unwrap_or_default();
            assert_eq!(record.revision, 1 + given + other_agents as u64);
            assert_eq!(record.agent, row.scope.agent);
            worktrees.extend(WorktreeRow::of(row.org, *session, &row.scope).filter(|_| row.ended.is_none()));
            for claim in state.claims() {
                assert!(store.holder(claim).await.unwrap().is_some(), "{session} holds it, for one");
            }
        }
        worktrees.sort_by_key(|row| row.session);
        assert_eq!(store.worktrees_in_use().await.unwrap(), worktrees);
        assert_eq!(store.next_wake().await.unwrap(), wakes.into_iter().min());
        happened.asked += self.approvals.len();
        happened.revoked += self.revoked(store).await;
    }

    async fn revoked(&self, store: &dyn Store) -> usize {
        let mut revoked = 0;
        for message in self.sessions.iter().flat_map(|(_, messages)| messages) {
            let (_, row) = store.receipt(*message).await.unwrap().unwrap();
            revoked += usize::from(row.why == Some("revoked"));
        }
        revoked
    }

    async fn compare_approvals(&self, store: &dyn Store, session: SessionId, projection: &Projection) {
        let mut stored = BTreeMap::new();
        for approval in &self.approvals {
            let Some((_, row)) = store.approval(*approval).await.unwrap() else { continue };
            let ApprovalRow { turn, state, asked_at, until, terms, words, settled_at, .. } = row;
            if row.session == session {
                let standing = ApprovalStanding { turn, state, asked_at, until, terms, words, settled_at };
                stored.insert(*approval, standing);
            }
        }
        assert_eq!(stored, projection.approvals);
    }
}

/// Answers how many days there are on which something was used.
async fn compare_usage(store: &dyn Store, record: &Record, projection: &Projection) -> usize {
    let mut made: BTreeMap<_, UsageSum> = BTreeMap::new();
    for (key, sum) in &projection.usage {
        let by = match key.message {
            Some(message) => store.receipt(message).await.unwrap().map(|(_, row)| row.by),
            None => None,
        };
        let made = made.entry((key.day, key.agent.clone(), by)).or_default();
        *made = made.and(*sum);
    }
    let by = Seer {
        org: record.org,
        person: record.owner,
        role: Role::Owner,
        groups: vec![],
        bound: Some(record.session),
    };
    let stored = store.usage(UsageQuery { by, from: Day(0), to: Day(u32::MAX) }).await.unwrap();
    let stored: BTreeMap<_, _> =
        stored.into_iter().map(|row| ((row.day, row.agent, row.by), row.sum)).collect();
    assert_eq!(stored, made);
    made.len()
}

async fn compare_deliveries(store: &dyn Store, log: &[StoredFact]) {
    for stored in log {
        if let StoredEntry::Rule(Fact::Queued { message, delivery, .. }) = &stored.entry {
            assert_eq!(store.receipt(*message).await.unwrap().unwrap().1.delivery, *delivery);
        }
    }
}

async fn compare_turns(store: &dyn Store, session: SessionId, projection: &Projection) {
    let mut began = BTreeMap::new();
    for (message, standing) in &projection.receipts {
        let (Some(turn), Some(first)) = (standing.turn, standing.first) else { continue };
        let known = began.entry(turn).or_insert((first, *message, standing.last));
        *known = (*known).min((first, *message, standing.last));
    }
    for (turn, (_, message, _)) in &began {
        let row = store.turn(session, *turn).await.unwrap();
        assert_eq!(row.map(|row| row.message), Some(*message));
    }
    let last = began.values().rfind(|(_, _, last)| last.is_some()).map(|(_, message, _)| *message);
    assert_eq!(store.last_turn(session).await.unwrap().map(|row| row.message), last);
    for (epoch, scope) in &projection.scopes {
        assert_eq!(store.scope(session, *epoch).await.unwrap().as_ref(), Some(scope));
    }
    let next = projection.scopes.keys().next_back().map(|epoch| epoch.next()).unwrap_or_default();
    assert_eq!(store.scope(session, next).await.unwrap(), None);
}

/// Answers how often another agent came.
fn compare_scope(row: &SessionRow, projection: &Projection, state: &Session, log: &[StoredFact]) -> usize {
    assert_eq!(projection.scopes.last_key_value(), Some((&row.epoch, &row.scope)));
    assert_eq!(row.epoch, state.epoch());
    assert!(state.scope().is_none_or(|scope| *scope == row.scope));
    let agents = log.iter().filter_map(|stored| match &stored.entry {
        StoredEntry::Rule(Fact::Opened { scope: Scope { agent, .. }, .. })
        | StoredEntry::Rule(Fact::ScopeChanged { scope: Scope { agent, .. }, .. }) => Some(agent),
        StoredEntry::Rule(_) | StoredEntry::Story { .. } => None,
    });
    let agents: Vec<_> = agents.collect();
    agents.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

async fn compare_receipts(
    store: &dyn Store,
    session: &SessionRow,
    messages: &[MessageId],
    projection: &Projection,
) {
    let (mut touched_at, mut pending) = (session.made_at.max(projection.turn_over_at.unwrap_or_default()), 0);
    let mut running = vec![];
    for message in messages {
        let (_, row) = store.receipt(*message).await.unwrap().unwrap();
        touched_at = touched_at.max(row.accepted_at);
        pending += u32::from(!row.state.is_final());
        running.extend(Some((row.first, *message)).filter(|_| row.state == ReceiptState::Running));
        let ReceiptRow { state, why, revision, epoch, turn, first, last, changed_at, .. } = row;
        let stored = Standing { state, why, revision, epoch, turn, first, last, changed_at };
        assert_eq!(Some(&stored), projection.receipts.get(message));
    }
    assert_eq!((session.touched_at, session.pending), (touched_at, pending));
    let queue = store.queue(session.session).await.unwrap();
    running.sort_unstable();
    let running = running.into_iter().map(|(_, message)| message);
    let order: Vec<_> = running.chain(projection.queue.clone()).collect();
    assert_eq!(queue.iter().map(|row| row.message).collect::<Vec<_>>(), order);
}

/// The things beside a request: the scope to go back to, the words of an edit.
fn beside(request: &Request) -> (Resolved, Option<bytes::Bytes>) {
    match request {
        Request::Release { there: true, .. } => (Resolved { written_for: Some(scope()), rule: None }, None),
        Request::Edit { .. } => (Resolved::default(), Some("edited".into())),
        _ => (Resolved::default(), None),
    }
}

fn take(append: &mut Append, state: &mut Session, item: InboxItem, given: &Given) {
    match item {
        InboxItem::Say { message, by, delivery, under } => {
            tell(
                append,
                state,
                Command::Say { message, by, delivery, under },
                Cause::Message(message),
                given,
            );
        }
        InboxItem::Wake => drop(tell(append, state, Command::Wake, Cause::Timer, given)),
        InboxItem::Recheck { person } => {
            let waiting = state.queue().iter().filter(|waiting| waiting.by == person).map(|w| w.message);
            let running = state.running().filter(|running| running.by == person).map(|r| r.message);
            let steered = state.running().into_iter().flat_map(|running| &running.steered);
            let steered = steered.filter(|steered| steered.by == person).map(|steered| steered.message);
            for message in waiting.chain(running).chain(steered).collect::<Vec<_>>() {
                tell(append, state, Command::Revoke { message }, Cause::Keeper, given);
            }
        }
        InboxItem::HandOver { to } => {
            drop(tell(append, state, Command::HandOver { to }, Cause::Keeper, given));
        }
        InboxItem::Request { id, by, request, resolved } => {
            let request = match request {
                Request::Reorder { session, order } => {
                    Request::Reorder { session, order: still_waiting(state, order) }
                }
                other => other,
            };
            let command = Command::Request { request, by, written_for: resolved.written_for };
            let verdict = tell(append, state, command, Cause::Request(id), given);
            append.verdicts.push((id, verdict));
        }
    }
}

/// A request names all messages of the session; only an order of those that wait can be granted.
fn still_waiting(state: &Session, order: Vec<MessageId>) -> Vec<MessageId> {
    let waits = |message: &MessageId| state.queue().iter().any(|waiting| waiting.message == *message);
    order.into_iter().filter(waits).collect()
}

fn tell(append: &mut Append, state: &mut Session, command: Command, cause: Cause, given: &Given) -> Verdict {
    match state.decide(command, given) {
        Err(refusal) => Verdict::Refused(refusal),
        Ok(facts) => {
            for fact in facts {
                state.evolve(&fact);
                append.facts.push(NewFact { at: given.now, cause, entry: Entry::Rule(fact) });
            }
            Verdict::Done
        }
    }
}
