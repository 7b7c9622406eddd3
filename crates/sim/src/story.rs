//! One story, from its seed to its verdict.
//!
//! The director lets the forecast happen to the daemons while people live their lives. Then the sky clears, everything
//! that was begun is given the time to come to its end, and the checks are made.

use crate::bug::Bug;
use crate::check;
use crate::doors::SCHEMES;
use crate::forecast::{Forecast, Happening};
use crate::notes::BrokenLaw;
use crate::panics;
use crate::people::{Gossip, Person};
use crate::town::{Daemon, Town};
use engine::{Resource, Trace};
use kernel::{Grant, Grantee, PersonId, SessionId};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{Timers, Views};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The weather is never bad for longer: whoever still asks then gets an answer.
const STORM_MAX: Duration = Duration::from_secs(60);
/// Everything that was begun is over after that long under a clear sky: turns, questions, holds, jumps of the clock.
const SETTLE_MAX: Duration = Duration::from_secs(2 * 60 * 60);
/// The last entries of the audit are sealed after that long.
const SEAL_MAX: Duration = Duration::from_secs(1);
/// Every story is over after that long: if not, somebody waits for what never comes.
const STORY_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The wait of the first look, and the longest.
const SETTLE_LOOK: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// Options of telling a story.
#[derive(Debug, Clone, Copy, Default)]
pub struct Telling {
    /// The bug that is planted.
    pub bug: Option<Bug>,
    /// True if it is told line by line.
    pub aloud: bool,
}

/// The end of a story.
#[derive(Debug)]
pub struct SeedVerdict {
    /// Its seed.
    pub seed: u64,
    /// The laws that did not hold.
    pub broken: Vec<BrokenLaw>,
    /// A hash of everything that happened: the same for the same seed.
    pub hash: u64,
    /// The amount of what happened.
    pub figures: Figures,
    /// Line by line, if it was told aloud.
    pub story: Vec<String>,
}

/// Counts of what happened in a story, or in several.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// Messages that were accepted.
    pub messages: u64,
    /// Sessions that were made.
    pub sessions: u64,
    /// Facts that were written.
    pub facts: u64,
    /// Attempts of agents.
    pub attempts: u64,
    /// Starts of the daemon.
    pub starts: u64,
    /// Daemons that were replaced while they still ran.
    pub takeovers: u64,
    /// Changes of scope.
    pub moves: u64,
    /// Worktrees that were to be made and turns that were to be undone.
    pub errands: u64,
    /// Sessions that are forks of others.
    pub forks: u64,
    /// Messages that were said into a running turn.
    pub steered: u64,
    /// Messages that were held because they were written for another scope.
    pub held: u64,
    /// Errands that came back for another scope.
    pub stale: u64,
    /// Questions of agents.
    pub questions: u64,
    /// Those that a rule answered.
    pub ruled: u64,
    /// Those that the policy for what nobody attends answered.
    pub unattended: u64,
    /// Conversations that came from another org.
    pub imports: u64,
    /// Replies that arrived where they were sent to.
    pub delivered: u64,
    /// Replies of which nobody could say whether they did.
    pub unsure: u64,
}

/// Runs the story of a seed.
pub fn run(seed: u64, telling: Telling) -> SeedVerdict {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without I/O needs nothing that could be missing");
    let panics = panics::watch();
    let mut verdict = runtime.block_on(tell(seed, telling));
    drop(runtime);
    verdict.broken.extend(panics.seen());
    verdict
}

async fn tell(seed: u64, telling: Telling) -> SeedVerdict {
    let mut forecast = Forecast::of(seed);
    let town = Town::build(seed, &mut forecast, telling.bug, telling.aloud);
    town.notes.tell(|| format!("{:?} {:?} {:?}", forecast.odds, forecast.policy, forecast.limits));
    town.notes.tell(|| format!("{:?}", forecast.scopes));
    let gossip = Arc::<Gossip>::default();
    let watches = Arc::<Mutex<JoinSet<()>>>::default();
    let mut people = JoinSet::new();
    for me in &town.people {
        let dice = forecast.dice.fork();
        let person = Person::new(town.clone(), gossip.clone(), me.clone(), dice, watches.clone());
        people.spawn(person.live());
    }
    if let Some(scopes) = &mut forecast.scopes {
        for me in &town.people {
            let (dice, moves_max) = (scopes.dice.fork(), scopes.moves_max);
            let person = Person::new(town.clone(), gossip.clone(), me.clone(), dice, watches.clone());
            people.spawn(person.move_about(moves_max));
        }
    }
    if let Some(dice) = &mut forecast.tidies {
        let dice = dice.fork();
        let person = Person::new(town.clone(), gossip.clone(), town.people[0].clone(), dice, watches.clone());
        people.spawn(person.tidy_up());
    }
    if let Some(questions) = &mut forecast.questions {
        for me in &town.people {
            let (dice, doings_max) = (questions.dice.fork(), questions.doings_max);
            let person = Person::new(town.clone(), gossip.clone(), me.clone(), dice, watches.clone());
            people.spawn(person.mind_questions(doings_max));
        }
    }
    if let Some(trades) = &mut forecast.trades {
        let next_door = Arc::<Gossip>::default();
        for me in &town.neighbours {
            let (dice, trades_max) = (trades.dice.fork(), trades.trades_max);
            let person = Person::new(town.clone(), next_door.clone(), me.clone(), dice, watches.clone());
            people.spawn(person.trade(gossip.clone(), trades_max));
        }
    }
    if let Some(doors) = &mut forecast.doors {
        for me in &town.people {
            let (dice, intrusions) = (doors.dice.fork(), doors.intrusions);
            let person = Person::new(town.clone(), gossip.clone(), me.clone(), dice, watches.clone());
            people.spawn(person.intrude(intrusions));
        }
    }
    let to_its_end = async {
        let mut director = Director { daemon: town.start().await, town: town.clone(), gossip };
        director.storm(&mut forecast, people).await;
        let is_quiet = director.settle(forecast.ends_with_restart).await;
        watches.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
        check::all(seed, &town, &director.daemon.engine, is_quiet).await
    };
    let verdict = tokio::time::timeout(STORY_MAX, to_its_end).await;
    verdict.unwrap_or_else(|_| unended(seed, &town))
}

/// The verdict on a story that did not end.
fn unended(seed: u64, town: &Town) -> SeedVerdict {
    town.notes.broken("whatever began comes to an end", "the story did not, in a day");
    let seen = std::mem::take(&mut *town.notes.seen());
    SeedVerdict { seed, broken: seen.broken, hash: 0, figures: Figures::default(), story: seen.story }
}

struct Director {
    town: Arc<Town>,
    gossip: Arc<Gossip>,
    daemon: Arc<Daemon>,
}

impl Director {
    /// Lets everything happen until people have had their say.
    async fn storm(&mut self, forecast: &mut Forecast, mut people: JoinSet<()>) {
        let began = Instant::now();
        let mut coming = std::mem::take(&mut forecast.happenings).into_iter().peekable();
        loop {
            let next = coming.peek().map(|(at_ms, _)| began + Duration::from_millis(*at_ms));
            let next = next.unwrap_or(began + STORM_MAX);
            let weather = self.daemon.weather.clone();
            tokio::select! {
                biased;
                () = weather.death() => self.crash(forecast.dice.below(500)).await,
                () = tokio::time::sleep_until(next), if !self.town.sky.is_clear() => match coming.next() {
                    Some((_, happening)) => self.happen(happening, forecast).await,
                    None => self.town.sky.clear_up(),
                },
                gone = people.join_next() => if gone.is_none() { return },
            }
        }
    }

    async fn happen(&mut self, happening: Happening, forecast: &mut Forecast) {
        self.town.notes.tell(|| format!("{happening:?}"));
        match happening {
            Happening::Crash { down_ms } => self.crash(down_ms).await,
            Happening::Restart => self.restart().await,
            Happening::Takeover { cut_off_ms, ended_after_ms } => {
                self.daemon.weather.cut_off(cut_off_ms);
                self.town.notes.seen().takeovers += 1;
                let (town, old) = (self.town.clone(), self.daemon.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(ended_after_ms)).await;
                    town.crash(&old);
                });
                self.daemon = self.town.start().await;
            }
            Happening::Jump { ms } => self.town.clock.jump(ms),
            Happening::Full { ms } => self.town.sky.fill_disk(ms),
            Happening::Share => self.share(forecast),
        }
    }

    async fn crash(&mut self, down_ms: u64) {
        self.town.crash(&self.daemon);
        tokio::time::sleep(Duration::from_millis(down_ms)).await;
        self.daemon = self.town.start().await;
    }

    async fn restart(&mut self) {
        let (weather, engine) = (self.daemon.weather.clone(), self.daemon.engine.clone());
        tokio::select! {
            biased;
            () = weather.death() => {}
            () = engine.shutdown() => {}
        }
        self.crash(0).await;
    }

    /// Gives somebody a grant on a session, or takes it away: at times from whoever waits for something there.
    fn share(&self, forecast: &mut Forecast) {
        let (dice, store) = (&mut forecast.dice, self.town.store());
        let snapshot = store.snapshot();
        let guests: Vec<_> = snapshot
            .receipts
            .values()
            .filter(|row| !row.state.is_final() && snapshot.sessions[&row.session].owner != row.by)
            .map(|row| (row.session, row.by))
            .collect();
        let shut_out = dice.chance(500);
        if let (true, Some((session, guest))) = (shut_out, dice.pick(&guests)) {
            return self.let_do(*session, *guest, None);
        }
        let sessions = self.gossip.heard().sessions.clone();
        let grant = dice.weigh(&[(3, Some(Grant::Prompt)), (2, Some(Grant::Manage)), (1, None)]);
        if let (Some(session), Some(with)) = (dice.pick(&sessions), dice.pick(&self.town.people)) {
            self.let_do(*session, with.person, grant);
        }
    }

    /// The session's owner asks for it, once. It may get lost like anything else.
    fn let_do(&self, session: SessionId, with: PersonId, grant: Option<Grant>) {
        let owner = self.town.store().snapshot().sessions.get(&session).map(|row| row.owner);
        let owner = self.town.people.iter().find(|person| Some(person.person) == owner).cloned();
        let Some(owner) = owner.filter(|owner| owner.person != with) else { return };
        let (daemon, engine) = (self.daemon.clone(), self.daemon.engine.clone());
        tokio::spawn(async move {
            let (correlation, address, key) = ("sim".to_owned(), None, None);
            let trace = Trace { door: "sim", correlation, address, key, schemes: SCHEMES };
            let (on, to) = (Resource::Session(session), Grantee::Person(with));
            let asks = async move {
                match grant {
                    Some(grant) => engine.people().give(&owner, on, to, grant, trace).await,
                    None => engine.people().take_back(&owner, on, to, trace).await,
                }
            };
            let _ = daemon.call(asks).await;
        });
    }

    /// Lets everything come to its end under a clear sky. Whether it did.
    async fn settle(&mut self, restart: bool) -> bool {
        self.town.sky.clear_up();
        let old: Vec<_> =
            self.town.up().iter().filter(|up| !Arc::ptr_eq(up, &self.daemon)).cloned().collect();
        old.iter().for_each(|daemon| self.town.crash(daemon));
        // What a replaced daemon has taken in or begun is found by the next start, as after any crash.
        if restart || self.daemon.weather.is_dead() || self.town.notes.seen().takeovers > 0 {
            self.crash(0).await;
        }
        self.town.notes.tell(|| "the sky is clear".to_owned());
        let (mut wait, longest) = SETTLE_LOOK;
        let began = Instant::now();
        while began.elapsed() < SETTLE_MAX {
            let weather = self.daemon.weather.clone();
            tokio::select! {
                biased;
                // The last blow of the storm: it was under way when the sky cleared.
                () = weather.death() => self.crash(0).await,
                () = tokio::time::sleep(wait) => {}
            }
            if self.is_quiet().await {
                tokio::time::sleep(SEAL_MAX).await;
                return true;
            }
            wait = (wait * 3 / 2).min(longest);
        }
        false
    }

    async fn is_quiet(&self) -> bool {
        let store = self.town.store();
        let unfinished = store.unfinished(None, 1).await.is_ok_and(|some| some.is_empty());
        unfinished
            && store.next_wake().await.is_ok_and(|wake| wake.is_none())
            && self.town.house.alive().is_empty()
            && self.daemon.engine.kept() == 0
            && self.town.is_delivered()
            && self.watchers_know_all().await
    }

    async fn watchers_know_all(&self) -> bool {
        let store = self.town.store();
        let known: Vec<_> = {
            let seen = self.town.notes.seen();
            let last = |w: &crate::notes::Watched| w.facts.last().map_or(w.from, |fact| fact.number);
            seen.watched.iter().map(|watched| (watched.session, last(watched))).collect()
        };
        for (session, at) in known {
            match store.session(session).await {
                Ok(Some((_, row))) if row.at > at => return false,
                _ => {}
            }
        }
        true
    }
}
