//! Any agent that speaks the Agent Client Protocol (version 1, lines on standard input and output): the program is named
//! by configuration, and what is particular to it is data.
//!
//! Read in this order: this file (the driver), `quirks` (what differs between agents), `protocol` (what is said in which
//! order), `story` (updates as events), `choices` (modes and models), `wire` (JSON-RPC), `sign_in` (the look for one). The process is kept between turns.

mod choices;
mod protocol;
mod quirks;
mod sign_in;
mod story;
mod wire;

use std::sync::Arc;

use agent::{
    Abilities, Agent, AgentEvent, Background, EndedLeftovers, Launch, Presence, Reply, Running,
    SessionNotices, Setup, SignIn, TreeName, TriedVersions, Trouble,
};
use kernel::{Attempt, Epoch, Fence, MessageId, SessionId, Term, Turn};

pub use quirks::{
    Ability, BaseAgent, Confirm, ErrorPhase, ErrorRule, Ids, Meaning, Memory, Quirks, Resume, UnknownAgent,
    UsageFigures, WordRule,
};

use crate::background::BackgroundPolicy;
use crate::program::{AgentProgram, ProgramConfig};
use protocol::{AcpProtocol, ProcessSetting};
use quirks::Behaviour;

/// The settings of an agent that speaks ACP.
#[derive(Debug, Clone)]
pub struct AcpConfig {
    /// Its program, home and limits. Arguments that make it speak ACP come from the quirks.
    pub program: ProgramConfig,
    /// The quirks of it. The default is what the protocol says.
    pub quirks: Quirks,
}

/// An agent that speaks ACP.
pub struct Acp {
    program: AgentProgram<AcpProtocol>,
    behaviour: Arc<Behaviour>,
}

impl Acp {
    /// The agent, set up so.
    pub fn new(config: AcpConfig) -> Self {
        let behaviour = config.quirks.behaviour();
        let mut program = config.program;
        // Whoever names them, too, means them once.
        if program.args.ends_with(&behaviour.args) {
            program.args.truncate(program.args.len() - behaviour.args.len());
        }
        Self {
            program: AgentProgram::new(program).with_secrets(&behaviour.secrets),
            behaviour: Arc::new(behaviour),
        }
    }

    async fn begin(&self, launch: Launch) -> Result<Box<dyn Running>, Trouble> {
        self.check_home(&launch)?;
        let wanted = ProcessSetting {
            launch: Some(launch.clone()),
            place: self.program.place(&launch),
            bypasses: self.program.config.bypasses,
        };
        self.talk(launch, wanted).await
    }

    async fn talk(&self, launch: Launch, wanted: ProcessSetting) -> Result<Box<dyn Running>, Trouble> {
        let (args, behaviour) = (self.behaviour.args.clone(), self.behaviour.clone());
        self.program.start(launch, args, self.env(), || (AcpProtocol::new(behaviour, wanted), None)).await
    }

    /// Where ids are unique in one home only, the same id in another home is somebody else's conversation.
    fn check_home(&self, launch: &Launch) -> Result<(), Trouble> {
        let Some(native) = launch.native.as_ref().filter(|native| !native.place.is_empty()) else {
            return Ok(());
        };
        let home = format!("{}:{}:", self.program.config.name, self.program.home(launch));
        if self.behaviour.ids == Ids::Everywhere || native.place.starts_with(&home) {
            return Ok(());
        }
        Err(Trouble::refused(format!(
            "this conversation was made at {}, and in this home its id may mean another one; put the home back as it was, \
             or start a new session",
            native.place
        )))
    }

    /// The agent's variables, but for those that the configuration sets itself.
    fn env(&self) -> Vec<(String, String)> {
        let is_set = |name: &String| self.program.config.env.iter().any(|(it, _)| it == name);
        let own = self.behaviour.env.iter().filter(|(name, _)| !is_set(name));
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    async fn see(&self) -> Presence {
        let found = if self.behaviour.version_args.is_empty() {
            self.ask_version().await
        } else {
            let args: Vec<&str> = self.behaviour.version_args.iter().map(String::as_str).collect();
            self.program.look(&args).await
        };
        match found {
            Presence::Missing { what } if self.program.path().is_none() => {
                Presence::Missing { what: format!("{what}; to get it: {}", self.behaviour.install) }
            }
            found => found,
        }
    }

    /// Starts it, hears what it says of itself, and ends it.
    async fn ask_version(&self) -> Presence {
        let missing = |trouble: Trouble| Presence::Missing { what: trouble.detail };
        let launch = looking();
        let wanted = ProcessSetting { launch: None, place: String::new(), bypasses: false };
        let mut running = match self.talk(launch, wanted).await {
            Ok(running) => running,
            Err(trouble) => return missing(trouble),
        };
        let mut version = String::new();
        let found = loop {
            match running.next().await {
                AgentEvent::About(about) => version = about.version,
                AgentEvent::Ready { .. } => break Presence::Here { version },
                AgentEvent::Failed(trouble) => break missing(trouble),
                AgentEvent::Died { detail, .. } => break Presence::Missing { what: detail },
                _ => {}
            }
        };
        running.stop(0).await;
        found
    }

    /// The versions that were tried of an agent that we know.
    fn tried(&self) -> Option<TriedVersions> {
        let [oldest, newest] = self.behaviour.tried.as_ref()?;
        Some(TriedVersions::new(oldest, newest, &self.behaviour.install))
    }
}

impl Agent for Acp {
    fn name(&self) -> &str {
        &self.program.config.name
    }

    fn abilities(&self) -> Abilities {
        self.behaviour.abilities()
    }

    fn look(&self) -> Reply<'_, Presence> {
        Box::pin(self.see())
    }

    fn setup(&self) -> Setup {
        let ProgramConfig { program, home, bypasses, kept_max, background, .. } = &self.program.config;
        Setup {
            kind: "acp",
            program: program.clone(),
            home: home.clone(),
            bypasses: *bypasses,
            is_kept: *kept_max > 0,
            keeps_background: *background == BackgroundPolicy::Kept,
            secrets: self.behaviour.secrets.clone(),
            tried: self.tried(),
        }
    }

    fn sign_in(&self) -> SignIn {
        let ProgramConfig { env, home, .. } = &self.program.config;
        sign_in::look(&self.behaviour, env, home)
    }

    fn start(&self, launch: Launch) -> Reply<'_, Result<Box<dyn Running>, Trouble>> {
        Box::pin(self.begin(launch))
    }

    fn end_leftovers(&self, tree: TreeName) -> Reply<'_, Result<EndedLeftovers, Trouble>> {
        Box::pin(self.program.end_leftovers(tree))
    }

    fn expect(&self, session: SessionId) {
        self.program.expect(session);
    }

    fn release(&self, session: SessionId) -> Reply<'_, Background> {
        Box::pin(self.program.release(TreeName::of(session)))
    }

    fn background(&self, session: SessionId) -> Reply<'_, Background> {
        Box::pin(self.program.background(TreeName::of(session)))
    }

    fn tell_notices_to(&self, notices: SessionNotices) {
        self.program.tell_notices_to(notices);
    }

    fn close(&self) -> Reply<'_, ()> {
        Box::pin(self.program.close())
    }
}

/// A launch for no session at all: a tree of its own, in a directory that is always there.
fn looking() -> Launch {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // Two who look at the same time need two trees; nothing else depends on it.
    let half = || u128::from(RandomState::new().build_hasher().finish());
    let bits = (half() << 64 | half()) >> 1;
    let fence = Fence { term: Term(0), epoch: Epoch(0), turn: Turn(0), attempt: Attempt(0) };
    let launch = Launch::new(SessionId::from_bits(bits), fence, MessageId::from_bits(0), "/");
    Launch { looks: true, ..launch }
}
