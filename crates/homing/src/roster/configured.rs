//! One agent with what the configuration adds to its driver: its name, the model and mode of sessions that name none,
//! how to get it where it is missing, and whether it looks signed in.
//!
//! What a program said about its version is remembered for as long as its file stays the same.

use std::fmt;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use agent::{
    Abilities, Agent, Background, Choice, EndedLeftovers, Launch, Presence, Reply, Running, SessionNotices,
    Setup, SignIn, TreeName, Trouble,
};
use drivers::ProgramConfig;
use kernel::SessionId;

use super::dated::{self, DatedAttempt};
use super::sign_in;
use crate::config::agents::{AgentTable, Home, Kind};

/// One agent.
pub(crate) struct ConfiguredAgent {
    name: String,
    table: AgentTable,
    program: String,
    home: String,
    env: Vec<(String, String)>,
    driver: Arc<dyn Agent>,
    scripts: engine::Scripts,
    looked: Mutex<Option<(ProgramStamp, Presence)>>,
}

/// The file that a program is. Another number means that somebody has installed another one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProgramStamp {
    path: PathBuf,
    file: (u64, u64),
    changed: (i64, i64),
}

impl fmt::Debug for ConfiguredAgent {
    /// Never the environment: it has keys in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfiguredAgent").field("name", &self.name).field("program", &self.program).finish()
    }
}

impl ConfiguredAgent {
    pub(crate) fn new(
        name: &str,
        table: &AgentTable,
        program: &ProgramConfig,
        driver: Arc<dyn Agent>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            table: table.clone(),
            program: program.program.clone(),
            home: program.home.clone(),
            env: program.env.clone(),
            driver,
            scripts: engine::Scripts::default(),
            looked: Mutex::new(None),
        }
    }

    /// With what is run in its worktrees.
    pub(crate) fn with_scripts(self, scripts: engine::Scripts) -> Self {
        Self { scripts, ..self }
    }

    pub(crate) fn scripts(&self) -> &engine::Scripts {
        &self.scripts
    }

    pub(crate) fn table(&self) -> &AgentTable {
        &self.table
    }

    /// True if it is somebody's program; the scripted agent is ours.
    pub(crate) fn is_real(&self) -> bool {
        self.table.kind != Some(Kind::Scripted)
    }

    /// True if its program is there. Nothing is started for that.
    pub(crate) fn has_program(&self) -> bool {
        !self.is_real() || self.stamp().is_some()
    }

    /// The home of one of its sessions, or of all of them.
    pub(crate) fn home(&self) -> &str {
        &self.home
    }

    /// The missing program, and the way to get it.
    fn missing(&self) -> String {
        let what = match self.program.contains('/') {
            true => format!("there is no program {}", self.program),
            false => format!("there is no `{}` on PATH", self.program),
        };
        match self.table.install.as_str() {
            "" => format!("{what}; install it, or set `program` in [agents.{}]", self.name),
            install => format!("{what}; get it with: {install}"),
        }
    }

    fn stamp(&self) -> Option<ProgramStamp> {
        stamp_in(&self.program, &self.env)
    }

    async fn look_or_recall(&self) -> Presence {
        if !self.is_real() {
            return self.driver.look().await;
        }
        let Some(stamp) = self.stamp() else { return Presence::Missing { what: self.missing() } };
        let looked = || self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, found)) = looked().clone()
            && known == stamp
        {
            return found;
        }
        let found = self.driver.look().await;
        // What went wrong may go better the next time.
        if matches!(found, Presence::Here { .. }) {
            *looked() = Some((stamp, found.clone()));
        }
        found
    }

    fn with_defaults(&self, launch: Launch) -> Launch {
        let usual = |named: &str| Some(named.to_owned()).filter(|named| !named.is_empty());
        let AgentTable { model, mode, .. } = &self.table;
        Launch {
            model: launch.model.or_else(|| usual(model)),
            mode: launch.mode.or_else(|| usual(mode)),
            ..launch
        }
    }
}

/// True if the program of an agent with that name and environment is there.
pub(crate) fn has_program(name: &str, table: &AgentTable, env: &[(String, String)]) -> bool {
    let program = if table.program.is_empty() { name } else { &table.program };
    stamp_in(program, env).is_some()
}

fn stamp_in(program: &str, env: &[(String, String)]) -> Option<ProgramStamp> {
    if program.contains('/') {
        return stamp(Path::new(program));
    }
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
    std::env::split_paths(path.unwrap_or_default()).find_map(|dir| stamp(&dir.join(program)))
}

fn stamp(path: &Path) -> Option<ProgramStamp> {
    let found = fs::metadata(path).ok().filter(|found| found.is_file())?;
    let is_program = found.permissions().mode() & 0o111 != 0;
    is_program.then(|| ProgramStamp {
        path: path.to_path_buf(),
        file: (found.dev(), found.ino()),
        changed: (found.mtime(), found.mtime_nsec()),
    })
}

impl Agent for ConfiguredAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn abilities(&self) -> Abilities {
        self.driver.abilities()
    }

    fn takes_model(&self, model: &str, listed: &[Choice]) -> bool {
        self.driver.takes_model(model, listed)
    }

    fn look(&self) -> Reply<'_, Presence> {
        Box::pin(self.look_or_recall())
    }

    fn setup(&self) -> Setup {
        self.driver.setup()
    }

    fn sign_in(&self) -> SignIn {
        let home = (self.table.home != Home::Session).then(|| Path::new(&self.home));
        match sign_in::look(&self.table.sign_in, home, &self.env) {
            SignIn::Unknown => self.driver.sign_in(),
            known => known,
        }
    }

    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        if !self.has_program() {
            let missing = Trouble::refused(format!("{} is not here: {}", self.name, self.missing()));
            return Box::pin(async { Err(missing) });
        }
        let launch = self.with_defaults(launch);
        Box::pin(async move {
            match self.driver.start(launch).await {
                Ok(running) => {
                    Ok(Box::new(DatedAttempt::new(running, self.driver.clone())) as Box<dyn Running>)
                }
                Err(trouble) => Err(dated::explained(trouble, self.driver.as_ref()).await),
            }
        })
    }

    fn end_leftovers(&self, tree: TreeName) -> Reply<'_, Result<EndedLeftovers, Trouble>> {
        self.driver.end_leftovers(tree)
    }

    fn expect(&self, session: SessionId) {
        self.driver.expect(session);
    }

    fn release(&self, session: SessionId) -> Reply<'_, Background> {
        self.driver.release(session)
    }

    fn background(&self, session: SessionId) -> Reply<'_, Background> {
        self.driver.background(session)
    }

    fn tell_notices_to(&self, notices: SessionNotices) {
        self.driver.tell_notices_to(notices);
    }

    fn close(&self) -> Reply<'_, ()> {
        self.driver.close()
    }
}
