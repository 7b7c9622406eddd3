//! The background of a session, which an agent's turns have left running: looked at, ended on request, and told when it has ended.
//!
//! It is the driver's to keep and to end; here it is asked for and written down. A look is taken by the node that has the process.
//! To end it is a chore, so its verdict is durable and says what was verified. What has ended without anybody asking is a notice
//! in the session's log, written by its keeper.

use crate::cluster::Ring;
use crate::intake::{ChoreVerdict, Declined, check_trace};
use crate::{ChoreOutcome, Engine, ScopeError, Trace, UnavailableError, ViewError, Views, WayIn, WayInError};
use agent::{Agent, Background, BackgroundProcess, TreeName};
use kernel::{Chore, Principal, SessionId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The verb in the audit, and beside idempotency keys.
const VERB: &str = "stop_background";

impl Views {
    /// The processes in the background of a session now.
    pub async fn background(&self, by: &Principal, session: SessionId) -> Result<Background, ViewError> {
        let (_, row) = self.seen(by, session).await?;
        Ok(self.ports.cluster.node_of(session).background(session, row.scope.agent).await)
    }
}

impl WayIn {
    /// Ends what runs in the background of a session in which no turn runs, and answers with what that was when it is gone.
    pub async fn stop_background(
        &self,
        by: &Principal,
        session: SessionId,
        trace: Trace,
    ) -> Result<ChoreOutcome<Background>, WayInError> {
        let result = self.stop_background_now(by, session, &trace).await;
        self.ports.noted((by.org, by.person), VERB, &trace, Some(session.to_string()), result).await
    }

    async fn stop_background_now(
        &self,
        by: &Principal,
        session: SessionId,
        trace: &Trace,
    ) -> Result<ChoreOutcome<Background>, Declined> {
        check_trace(trace).map_err(WayInError::from)?;
        let key = self.ports.key(VERB, trace, &session.to_string());
        let request = self.ask_chore(by, session, Chore::EndBackground, key, trace).await?;
        let Some(request) = request else { return Ok(ChoreOutcome::Over(Background::default())) };
        match self.chore_verdict(by, session, request, self.ports.limits.verdict_wait).await {
            Ok(ChoreVerdict::GoesOn) => Ok(ChoreOutcome::GoesOn),
            Ok(ChoreVerdict::Over { told }) => {
                Ok(ChoreOutcome::Over(told.as_deref().and_then(parse).unwrap_or_default()))
            }
            // What cannot be ended is no fault of any worktree.
            Err(WayInError::Scope(ScopeError::WorktreeTrouble { why })) => {
                Err(WayInError::from(UnavailableError::Unavailable(why)).into())
            }
            Err(refused) => Err(refused.into()),
        }
    }
}

impl Engine {
    /// Has every agent tell what has ended without anybody asking for it.
    pub(crate) fn listen_to_agents(&self) {
        for agent in self.agents_by_name().values() {
            let engine = self.downgrade();
            agent.tell_notices_to(Arc::new(move |session, text| {
                if let Some(engine) = engine.upgrade() {
                    engine.tell_notice(session, text);
                }
            }));
        }
    }

    /// Has the session's keeper write a notice.
    pub(crate) fn tell_notice(&self, session: SessionId, text: String) {
        self.keepers().add_notice(session, text);
        self.cluster().ring(session, Ring::Now);
    }
}

/// Ends what runs in the background, and sees that nothing of it is left. Nothing is ended if nothing does.
pub(crate) async fn end(agent: &dyn Agent, session: SessionId) -> Result<Background, String> {
    if agent.background(session).await.is_empty() {
        return Ok(Background::default());
    }
    let ended = agent.release(session).await;
    agent.end_leftovers(TreeName::of(session)).await.map_err(|trouble| trouble.detail)?;
    Ok(ended)
}

/// The words about it.
pub(crate) fn ended_words(ended: &Background, when: &str) -> String {
    format!("what ran in the background was ended {when}: {}", ended.words())
}

/// The answer to whoever asked for the end.
#[derive(Serialize, Deserialize)]
struct BackgroundRecord {
    processes: u32,
    commands: Vec<String>,
}

pub(crate) fn text(ended: &Background) -> String {
    let commands = ended.oldest.iter().map(|it| it.command.clone()).collect();
    let record = BackgroundRecord { processes: ended.processes, commands };
    serde_json::to_string(&record).expect("plain structures can be written")
}

/// The other way round; none of what another version has written in another way. For how long they had run is not told.
fn parse(text: &str) -> Option<Background> {
    let BackgroundRecord { processes, commands } = serde_json::from_str(text).ok()?;
    let process = |command| BackgroundProcess { age_ms: 0, command };
    Some(Background { processes, oldest: commands.into_iter().map(process).collect() })
}
