//! The processes that are kept between turns: at most so many, each for so long, each for its own session alone.
//!
//! A kept process is looked after by a task of its own, which hears what it says, so that it never waits for us, and
//! notices when it goes. It is given back only for the same session, conversation, directory, model, mode and account,
//! and only when it has just shown that it is there; otherwise it is ended, and seen gone, first. Whoever knows that an attempt is about to
//! begin has it show that beforehand (`expect`), so that nobody waits for it. Where the policy says so, what its turns have left running
//! waits with it, can be listed, and is ended with it: whoever asked for the end is told what that was, and if nobody did, the session is.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;
use std::time::Duration;

use agent::{Account, Launch, SessionNotices, TreeName};
use kernel::{GroundPath, Native, SessionId};
use processes::{ProcessList, TreeEvent, end_tree};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::agent_protocol::{AgentProtocol, ProtocolOutput};
use crate::background::{BackgroundEnd, BackgroundNotes, BackgroundPolicy};
use crate::running_agent::{AgentProcess, ProcessEvent};

/// The longest that a kept process may take to show that it is there. Then it is ended and another one is started.
const PROOF_WAIT: Duration = Duration::from_millis(2_000);
/// The longest that a proof counts: as long as writing down that the attempt begins may take on a busy disk. What it says and that it
/// has gone is heard meanwhile; only that it hangs since then is not known.
const PROOF_AGE_MAX: Duration = Duration::from_millis(250);
/// The events of a process that are heard before it is given back without another proof.
const HEARD_BEFORE_MAX: usize = 64;
/// The longest that a kept process may take to go when its input ends, and its supervisor to end it.
const LEAVE_WAIT: Duration = Duration::from_millis(500);
const KILL_WAIT: Duration = Duration::from_millis(4_000);
/// Looks at one process that may wait. Those above wait for room.
const LOOKS_WAITING_MAX: usize = 4;

/// Calls that wait for whoever looks after a process: a hint, and one that counts.
const CALLS_MAX: usize = 2;

/// The number of processes that are kept, and the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptConfig {
    pub(crate) kept_max: usize,
    pub(crate) idle_max: Duration,
    pub(crate) background: BackgroundPolicy,
}

pub(crate) struct KeptProcesses<T: AgentProtocol> {
    config: KeptConfig,
    locks: PathBuf,
    kept: Mutex<BTreeMap<TreeName, KeptProcess<T>>>,
    numbers: AtomicU64,
    pub(crate) notes: BackgroundNotes,
    /// The background of trees in which a turn runs or is about to, as it was last listed before. A tree goes from there to here and
    /// back without being in neither, so that whoever looks in between sees it, too.
    in_turn: Mutex<BTreeMap<TreeName, ProcessList>>,
    notices: OnceLock<SessionNotices>,
}

/// The scope that a process was started for. Another turn has to want the same.
#[derive(Clone, PartialEq, Eq)]
struct LaunchKey {
    native: Option<Native>,
    directory: GroundPath,
    model: Option<String>,
    mode: Option<String>,
    account: Account,
    whose: String,
    walled: bool,
}

impl LaunchKey {
    fn of(launch: &Launch, native: Option<Native>) -> Self {
        let Launch { directory, model, mode, account, whose, walled, .. } = launch.clone();
        Self { native, directory, model, mode, account, whose, walled }
    }
}

/// A kept process, as the others see it.
struct KeptProcess<T: AgentProtocol> {
    /// Its number among all that were ever kept.
    number: u64,
    wanted: LaunchKey,
    since: Instant,
    /// It is being ended to make room for others. It stays here until it is gone, so that whoever starts something in
    /// its session waits for that.
    is_going: bool,
    /// The background when it was put here.
    background: ProcessList,
    calls: mpsc::Sender<KeptCall<T>>,
    looks: mpsc::Sender<oneshot::Sender<ProcessList>>,
}

/// A kept process, as whoever looks after it knows it.
struct KeptTree {
    name: TreeName,
    session: SessionId,
    number: u64,
}

enum KeptCall<T: AgentProtocol> {
    /// Somebody is about to want it.
    Prove,
    /// Whoever calls wants to go on with it.
    Take(oneshot::Sender<AgentProcess<T>>),
    /// It is to be ended. When it is gone, whoever calls hears what ran in its background. With a reason, the session is told.
    End(oneshot::Sender<ProcessList>, Told),
}

/// The one who hears what ran in the background of a process that was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// Whoever asked for the end.
    Caller,
    /// The session, with the reason.
    Session(BackgroundEnd),
    /// Nobody yet: the server goes, and the note stays for the next one.
    Later,
}

impl<T: AgentProtocol> KeptProcesses<T> {
    pub(crate) fn new(config: KeptConfig, locks: PathBuf) -> Arc<Self> {
        let (notes, notices) = (BackgroundNotes::new(&locks), OnceLock::new());
        let (kept, in_turn, numbers) = (Mutex::default(), Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { config, locks, kept, numbers, notes, in_turn, notices })
    }

    /// Keeps a process for the session's next turn. If there are too many, the one that waits longest goes.
    pub(crate) fn put(self: &Arc<Self>, parts: AgentProcess<T>, launch: &Launch, native: Option<Native>) {
        let (calls, called) = mpsc::channel(CALLS_MAX);
        let (looks, looked) = mpsc::channel(LOOKS_WAITING_MAX);
        let background = parts.background.clone();
        self.notes.write(&launch.tree, &background);
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let wanted = LaunchKey::of(launch, native);
        let since = Instant::now();
        let kept = KeptProcess { number, wanted, since, is_going: false, background, calls, looks };
        let name = launch.tree.clone();
        let kept_tree = KeptTree { name: name.clone(), session: launch.session, number };
        let mut all = self.kept();
        all.insert(name.clone(), kept);
        self.turn_is_over(&name);
        tokio::spawn(self.clone().look_after(kept_tree, parts, called, looked));
        let staying = || all.values().filter(|kept| !kept.is_going);
        if staying().count() > self.config.kept_max {
            // One that does nothing is missed less.
            let rank = |kept: &KeptProcess<T>| (!kept.background.is_empty(), kept.since, kept.number);
            let oldest = staying().map(rank).min();
            let oldest = all.values_mut().find(|kept| Some(rank(kept)) == oldest);
            if let Some(oldest) = oldest {
                oldest.is_going = true;
                // If it does not hear this, it is already going or being taken.
                let told = Told::Session(BackgroundEnd::Crowded);
                let _ = oldest.calls.try_send(KeptCall::End(oneshot::channel().0, told));
            }
        }
    }

    /// The session's process, if there is one, is about to be wanted: it shows now that it is there.
    pub(crate) fn expect(&self, tree: &TreeName) {
        // Whoever does not hear this shows it when it is taken. A hint never takes the place of a call that counts.
        if let Some(kept) = self.kept().get(tree).filter(|kept| kept.calls.capacity() == CALLS_MAX) {
            let _ = kept.calls.try_send(KeptCall::Prove);
        }
    }

    /// The session's process, if there is one that fits and is there. One that does not is gone afterwards.
    pub(crate) async fn take(&self, launch: &Launch) -> Option<AgentProcess<T>> {
        let kept = {
            let mut all = self.kept();
            let kept = all.remove(&launch.tree)?;
            self.turn_begins(&launch.tree, &kept.background);
            kept
        };
        // Its conversation is the one that a fork begins with, not the fork.
        if kept.wanted == LaunchKey::of(launch, launch.native.clone()) && !launch.fork {
            let (give, given) = oneshot::channel();
            if kept.calls.send(KeptCall::Take(give)).await.is_ok()
                && let Ok(parts) = given.await
            {
                self.turn_begins(&launch.tree, &parts.background);
                return Some(parts);
            }
        }
        self.end(kept, Told::Session(BackgroundEnd::OtherProcess)).await;
        self.turn_is_over(&launch.tree);
        None
    }

    /// A turn of that tree begins, with this in its background.
    fn turn_begins(&self, tree: &TreeName, background: &ProcessList) {
        match background.is_empty() {
            true => self.turn_is_over(tree),
            false => drop(self.in_turn().insert(tree.clone(), background.clone())),
        }
    }

    /// The turn of that tree is over.
    pub(crate) fn turn_is_over(&self, tree: &TreeName) {
        self.in_turn().remove(tree);
    }

    /// The background of that tree.
    pub(crate) async fn background(&self, tree: &TreeName) -> ProcessList {
        let looks = self.kept().get(tree).map(|kept| kept.looks.clone());
        let look = async {
            let (give, given) = oneshot::channel();
            let _ = looks?.send(give).await;
            given.await.ok()
        };
        let looked = tokio::time::timeout(PROOF_WAIT * 2, look).await;
        // Whoever looked after it has gone if a turn has begun meanwhile.
        let in_turn = || self.in_turn().get(tree).map(ProcessList::still_there);
        looked.ok().flatten().or_else(in_turn).unwrap_or_default()
    }

    pub(crate) fn policy(&self) -> BackgroundPolicy {
        self.config.background
    }

    pub(crate) fn tell_notices_to(&self, notices: SessionNotices) {
        let _ = self.notices.set(notices);
    }

    /// Ends the process of that tree, if one is kept; answers with what ran in its background.
    pub(crate) async fn release(&self, tree: &TreeName) -> ProcessList {
        self.release_and(tree, Told::Caller).await
    }

    /// Ends the process of that tree, if one is kept, for whoever starts anew. The session is told.
    pub(crate) async fn release_leftovers(&self, tree: &TreeName) {
        self.release_and(tree, Told::Session(BackgroundEnd::Leftovers)).await;
    }

    async fn release_and(&self, tree: &TreeName, told: Told) -> ProcessList {
        let kept = self.kept().remove(tree);
        match kept {
            Some(kept) => self.end(kept, told).await,
            None => ProcessList::default(),
        }
    }

    /// Ends all of them.
    pub(crate) async fn close(&self) {
        let all = std::mem::take(&mut *self.kept());
        let mut waiting = Vec::new();
        for kept in all.into_values() {
            let (tell, told) = oneshot::channel();
            let _ = kept.calls.send(KeptCall::End(tell, Told::Later)).await;
            waiting.push(told);
        }
        for told in waiting {
            let _ = told.await;
        }
    }

    async fn end(&self, kept: KeptProcess<T>, told: Told) -> ProcessList {
        let (tell, heard) = oneshot::channel();
        let _ = kept.calls.send(KeptCall::End(tell, told)).await;
        heard.await.unwrap_or_default()
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<TreeName, KeptProcess<T>>> {
        // Nothing panics while holding it.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_turn(&self) -> MutexGuard<'_, BTreeMap<TreeName, ProcessList>> {
        self.in_turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look_after(
        self: Arc<Self>,
        of: KeptTree,
        mut parts: AgentProcess<T>,
        mut called: mpsc::Receiver<KeptCall<T>>,
        mut looked: mpsc::Receiver<oneshot::Sender<ProcessList>>,
    ) {
        let until = Instant::now() + self.config.idle_max;
        let mut proven_at = None;
        let call = loop {
            tokio::select! {
                call = called.recv() => match call {
                    Some(KeptCall::Prove) if is_there(&mut parts).await => proven_at = Some(Instant::now()),
                    Some(KeptCall::Prove) => break Err(BackgroundEnd::OtherProcess),
                    Some(call) => break Ok(call),
                    None => break Err(BackgroundEnd::AgentGone),
                },
                Some(look) = looked.recv() => {
                    if !list_anew(&mut parts).await { break Err(BackgroundEnd::AgentGone) }
                    let _ = look.send(parts.background.clone()); // Whoever has given up does not want to know.
                }
                heard = parts.next() => if !listen(&mut parts, heard).await { break Err(BackgroundEnd::AgentGone) },
                () = tokio::time::sleep_until(until) => break Err(BackgroundEnd::Rested),
            }
        };
        let (left, tell, told) = match call {
            Ok(KeptCall::Take(give)) if is_still_there(&mut parts, proven_at).await => {
                (give.send(parts).err(), None, Told::Session(BackgroundEnd::OtherProcess))
            }
            Ok(KeptCall::Take(_) | KeptCall::Prove) => {
                (Some(parts), None, Told::Session(BackgroundEnd::OtherProcess))
            }
            Ok(KeptCall::End(tell, told)) => (Some(parts), Some(tell), told),
            Err(why) => (Some(parts), None, Told::Session(why)),
        };
        let mut ended = ProcessList::default();
        if let Some(mut parts) = left {
            // What has ended by itself meanwhile was not ended by us.
            if !parts.background.is_empty() {
                list_anew(&mut parts).await;
            }
            ended = std::mem::take(&mut parts.background);
            self.see_gone(&of.name, parts).await;
            self.tell_ended(&of, &ended, told);
        }
        // Only now may a new process be started for this session. Whoever has called meanwhile hears that nobody is
        // here any more, because what they would be answered with is dropped.
        self.forget(&of);
        let _ = tell.map(|tell| tell.send(ended));
    }

    /// Tells somebody that the background has ended.
    fn tell_ended(&self, of: &KeptTree, ended: &ProcessList, told: Told) {
        match told {
            Told::Later => return,
            Told::Caller => {}
            Told::Session(why) if !ended.is_empty() => {
                self.notices.get().inspect(|notices| notices(of.session, why.words(ended)));
            }
            Told::Session(_) => {}
        }
        self.notes.remove(&of.name);
    }

    /// Takes our own entry out. Another process of the same session may have been put there meanwhile.
    fn forget(&self, of: &KeptTree) {
        let mut all = self.kept();
        if all.get(&of.name).is_some_and(|kept| kept.number == of.number) {
            all.remove(&of.name);
        }
    }

    async fn see_gone(&self, name: &TreeName, mut parts: AgentProcess<T>) {
        if parts.protocol.leaves_on_eof() {
            parts.tree.close_input();
            if tokio::time::timeout(LEAVE_WAIT, until_over(&mut parts)).await == Ok(true) {
                return;
            }
        }
        parts.tree.kill();
        if tokio::time::timeout(KILL_WAIT, until_over(&mut parts)).await != Ok(true) {
            drop(parts);
            let ended = end_tree(self.locks.clone(), name.clone()).await;
            if let Err(why) = ended {
                tracing::warn!(tree = %name, %why, "a process that was kept may still be there");
            }
        }
    }
}

/// Hears what an idle process says, which is no part of any turn. Answers whether it is still there.
async fn listen<T: AgentProtocol>(parts: &mut AgentProcess<T>, heard: ProcessEvent) -> bool {
    let outs: Vec<_> = match heard {
        ProcessEvent::Tree(TreeEvent::Exited(_) | TreeEvent::Lost) => return false,
        ProcessEvent::Tree(TreeEvent::Output(bytes)) => {
            let lines = parts.lines.cut(&bytes);
            lines.into_iter().map(|line| parts.read(line)).collect()
        }
        ProcessEvent::Tree(TreeEvent::Errors(_) | TreeEvent::Counted(_)) => Vec::new(),
        ProcessEvent::Tree(TreeEvent::Listed(list)) => {
            parts.background = list;
            Vec::new()
        }
        ProcessEvent::Side(line) => vec![parts.read_side(&line)],
    };
    for out in outs {
        let bytes = out.into_bytes();
        if !bytes.is_empty() && parts.say(&bytes).await.is_err() {
            return false;
        }
    }
    parts.protocol.may_be_kept()
}

/// Lists what runs in its background. Answers whether it is still there.
async fn list_anew<T: AgentProtocol>(parts: &mut AgentProcess<T>) -> bool {
    parts.tree.list();
    let listed = async {
        loop {
            let heard = parts.next().await;
            let is_listed = matches!(heard, ProcessEvent::Tree(TreeEvent::Listed(_)));
            let is_there = listen(parts, heard).await;
            if is_listed || !is_there {
                return is_there;
            }
        }
    };
    tokio::time::timeout(PROOF_WAIT, listed).await == Ok(true)
}

/// True if it has shown a moment ago that it is there, and nothing else was heard of it since; or if it shows it now.
async fn is_still_there<T: AgentProtocol>(parts: &mut AgentProcess<T>, proven_at: Option<Instant>) -> bool {
    if proven_at.is_none_or(|at| at.elapsed() > PROOF_AGE_MAX) {
        return is_there(parts).await;
    }
    for _ in 0..HEARD_BEFORE_MAX {
        let Some(heard) = heard_already(parts).await else { return true };
        if !listen(parts, heard).await {
            return false;
        }
    }
    is_there(parts).await
}

/// The next event of a process, if it has happened.
async fn heard_already<T: AgentProtocol>(parts: &mut AgentProcess<T>) -> Option<ProcessEvent> {
    let mut next = std::pin::pin!(parts.next());
    std::future::poll_fn(|context| match next.as_mut().poll(context) {
        Poll::Ready(heard) => Poll::Ready(Some(heard)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// True if it answers, now. Whoever cannot be asked, or answers over a line of its own, is counted by its supervisor: that it is there can
/// be said by nobody else. A process that was just killed, or that hangs, is counted but does not answer.
async fn is_there<T: AgentProtocol>(parts: &mut AgentProcess<T>) -> bool {
    let proof = async {
        let mut out = ProtocolOutput::default();
        parts.protocol.knock(&mut out);
        let bytes = out.into_bytes();
        if !bytes.is_empty() && parts.say(&bytes).await.is_err() {
            return false;
        }
        let mut is_counted = !bytes.is_empty() && parts.side.is_none();
        if !is_counted {
            parts.tree.count();
        }
        while !(is_counted && parts.protocol.has_answered()) {
            match parts.next().await {
                ProcessEvent::Tree(TreeEvent::Counted(count)) if count.processes > 0 => is_counted = true,
                ProcessEvent::Tree(TreeEvent::Counted(_)) => return false,
                heard => {
                    if !listen(parts, heard).await {
                        return false;
                    }
                }
            }
        }
        true
    };
    tokio::time::timeout(PROOF_WAIT, proof).await == Ok(true)
}

/// Waits for the end; whether everything was seen gone.
async fn until_over<T: AgentProtocol>(parts: &mut AgentProcess<T>) -> bool {
    loop {
        match parts.next().await {
            ProcessEvent::Tree(TreeEvent::Exited(exit)) => return exit.gone,
            ProcessEvent::Tree(TreeEvent::Lost) => return false,
            ProcessEvent::Tree(_) | ProcessEvent::Side(_) => {}
        }
    }
}
