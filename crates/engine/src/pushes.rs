//! Telling people on their devices what happens while they look elsewhere: questions of agents, and turns that are over.
//!
//! A push names the session, its agent and the tool that a question is about, and nothing that anybody said. Who wants to be told
//! where are rows (`store::PushRow`), each of a person and the credential that they asked with. `send` is the task that listens to
//! what keepers append and sends; no keeper waits for it, and what it has not sent when the node ends is lost: it is news, and the
//! page has all of it. `PushPort` is whoever can encrypt and post.

mod send;

use crate::intake::check_trace;
use crate::people::may;
use crate::{AccessError, Engine, People, PeopleError, Trace};
use kernel::{OrgAct, Principal, SessionId, TokenId};
use sha2::{Digest, Sha256};
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use store::{NewPush, PushPlace, PushRow};

/// Bytes of a session's name at a push service.
const TOPIC_BYTES: usize = 24;

/// An answer of the port that takes a while.
pub type PushReply<'a> = Pin<Box<dyn Future<Output = Pushed> + Send + 'a>>;

/// Whoever encrypts what is told and posts it to push services.
pub trait PushPort: Debug + Send + Sync + 'static {
    /// Posts it, within bounds of its own.
    fn send(&self, push: OutgoingPush) -> PushReply<'_>;
}

/// Something to tell at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingPush {
    /// Where.
    pub place: PushPlace,
    /// The words, for that browser alone.
    pub words: Vec<u8>,
    /// The time for which it is worth telling.
    pub good_for: Duration,
    /// True if somebody is waited for.
    pub is_urgent: bool,
    /// Stands for the session at the push service: what is still to be delivered under it is replaced. Does not say which session.
    pub topic: [u8; TOPIC_BYTES],
}

/// The outcome of a post, by what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// The push service has it.
    Sent,
    /// There is no such place any more: forget it.
    Gone,
    /// Not now; perhaps the service has said when.
    Later { after: Option<Duration>, reason: String },
    /// Never so.
    Refused { reason: String },
}

/// The topic of a session.
fn topic_of(session: SessionId) -> [u8; TOPIC_BYTES] {
    let whole: [u8; 32] = Sha256::digest(format!("push topic\n{session}")).into();
    let mut topic = [0; TOPIC_BYTES];
    topic.copy_from_slice(&whole[..TOPIC_BYTES]);
    topic
}

impl Engine {
    /// Tells people on their devices from now on. Once: whoever comes second is not heard.
    pub fn start_pushes(&self, port: Arc<dyn PushPort>) {
        if let Some(news) = self.cluster().news() {
            let sender = send::PushSender::new(self.ports().clone(), self.views().clone(), port);
            self.spawn(sender.run(news));
        }
    }
}

impl People {
    /// The places where the caller is told.
    pub async fn pushes(&self, by: &Principal) -> Result<Vec<PushRow>, PeopleError> {
        may(by, OrgAct::Myself)?;
        Ok(self.ports.store.pushes(by.org, Some(by.person)).await?)
    }

    /// Tells the caller there from now on, as long as the credential is good that they came with.
    pub async fn set_push(
        &self,
        by: &Principal,
        place: PushPlace,
        trace: Trace,
    ) -> Result<PushRow, PeopleError> {
        let result = self.set_push_now(by, place, &trace).await;
        self.note_refusal(by, "set_push", &trace, None, result).await
    }

    async fn set_push_now(
        &self,
        by: &Principal,
        place: PushPlace,
        trace: &Trace,
    ) -> Result<PushRow, PeopleError> {
        may(by, OrgAct::Myself)?;
        check_trace(trace)?;
        let token = by.credential.ok_or(AccessError::NotFound { what: "token" })?;
        let trail = self.ports.trail("set_push", trace);
        let row = PushRow { token, person: by.person, place: place.clone(), since: trail.at };
        let is_set = self.ports.store.set_push(by.clone(), NewPush { place, trail }).await?;
        self.ports.audited();
        if !is_set {
            // It was revoked since they came in with it.
            return Err(AccessError::Unauthenticated.into());
        }
        Ok(row)
    }

    /// Tells the caller nothing there any more. Fine if they were not told there.
    pub async fn remove_push(&self, by: &Principal, token: TokenId, trace: Trace) -> Result<(), PeopleError> {
        let may = may(by, OrgAct::Myself).map_err(PeopleError::from);
        let checked = may.and_then(|()| Ok(check_trace(&trace)?));
        self.note_refusal(by, "remove_push", &trace, Some(token.to_string()), checked).await?;
        let trail = self.ports.trail("remove_push", &trace);
        self.ports.store.remove_push(by.clone(), token, trail).await?;
        self.ports.audited();
        Ok(())
    }
}
