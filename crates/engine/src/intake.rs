//! The only way in: what a door brings becomes one change of the store, which resolves, authorizes and accepts.
//!
//! Whether a wish is well made, and whether the credential is good for such a wish at all, is asked here, before anything is
//! looked up; so is what only this machine can tell (directories, agents, trees). Who may, which session, keys and limits are
//! decided by `store::plan` in the transaction that writes, so that nothing is seen outside and compared again inside.

mod fork;
mod fresh;
mod import;
mod keys;
mod marks;
mod obstacles;
mod parts;
mod scope;
mod uncancelled;

use crate::attached::encode;
use crate::engine_ports::EnginePorts;
use crate::errors::HandleError;
use crate::inbound::{encode_parts, opening_of};
use crate::people::RightsCache;
use crate::roster::Roster;
use crate::*;
use fresh::check_title;
pub(crate) use fresh::directory_for;
use kernel::{
    Act, Address, Chore, Delivery, Epoch, MessageId, OrgId, PersonId, Principal, Record, Request, RequestId,
    Right, SessionId, To, Turn, authorize, authorize_right,
};
use parts::{Wording, check_parts};
use std::sync::Arc;
use std::time::Duration;
use store::{
    Accepted, Asked, AuditEntry, Create, KeyAnswer, NewMessage, NewRequest, Rebind, Rejection, Resolved,
    Retitle, Seer, StoreError, Trail, Verdict, WriteOutcome,
    record::{request_key_word, request_word},
};
use tokio::sync::Semaphore;

/// A session that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// The session.
    pub session: SessionId,
    /// True if this is the answer to a repetition.
    pub repeated: bool,
}

/// A refusal, and whether it stands in the audit already.
#[derive(Debug)]
pub(crate) struct Declined<E = WayInError> {
    refused: E,
    in_audit: bool,
}

impl<E: Into<WayInError>> From<E> for Declined {
    fn from(refused: E) -> Self {
        Self { refused: refused.into(), in_audit: false }
    }
}

impl<E: Into<WorktreeError>> From<E> for Declined<WorktreeError> {
    fn from(refused: E) -> Self {
        Self { refused: refused.into(), in_audit: false }
    }
}

impl Declined {
    /// The same for whoever has asked through the way in for something of their own.
    pub(crate) fn into_part<E: From<WayInError>>(self) -> Declined<E> {
        Declined { refused: self.refused.into(), in_audit: self.in_audit }
    }

    /// Refused by a plan of the store, which has written its audit entry.
    pub(crate) fn by_store(refused: impl Into<WayInError>) -> Self {
        Self { refused: refused.into(), in_audit: true }
    }
}

/// The thing that was made, or the refusal that the store has written down.
pub(crate) fn made<T>(outcome: WriteOutcome<T, Rejection>) -> Result<(T, bool), Declined> {
    match outcome {
        WriteOutcome::Done(made) => Ok((made, false)),
        WriteOutcome::Repeated(made) => Ok((made, true)),
        WriteOutcome::Conflict => Err(Declined::by_store(ConflictError::KeyReused)),
        WriteOutcome::Refused(why) => Err(Declined::by_store(WayInError::rejected(why))),
    }
}

/// The way in: whatever changes a session. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WayIn {
    pub(crate) ports: Arc<EnginePorts>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) rights_cache: Arc<RightsCache>,
    pub(crate) ground: Arc<dyn Ground>,
    /// Places for conversations that are being taken in or out.
    pub(crate) exchange: Arc<Semaphore>,
    pub(crate) policy: kernel::Policy,
}

impl WayIn {
    /// Takes a message. When this answers, a power cut cannot lose it.
    pub async fn send(&self, inbound: Inbound) -> Result<Receipt, WayInError> {
        let subject = to_text(&inbound.to);
        let (by, trace) = ((inbound.by.org, inbound.by.person), inbound.trace.clone());
        let result = self.send_now(inbound).await;
        self.ports.noted(by, "say", &trace, subject, result).await
    }

    async fn send_now(&self, inbound: Inbound) -> Result<Receipt, Declined> {
        authorize_right(&inbound.by, Act::Say).map_err(|denied| AccessError::denied(denied, "session"))?;
        check_parts(&inbound.parts, &inbound.attachments)?;
        check_trace(&inbound.trace)?;
        let mut new = self.new_message(&inbound);
        let Inbound { by, if_new, trace, delivery, .. } = inbound;
        let mut by = Arc::new(by);
        // A message into a session that is there takes one trip. One that needs a new session learns so, and comes again
        // once somebody has looked at directory and agent.
        let outcome = match self.accept(by.clone(), new.clone()).await? {
            WriteOutcome::Refused(Rejection::WouldBeNew { by: now, like }) => {
                by = now.map_or(by, |now| Arc::new(*now));
                let bind = address_of(&new.to);
                new.fresh = Some(Box::new(self.next_session(&by, &if_new, like.as_deref(), bind, &trace)?));
                new.like = like.map(|like| like.session);
                self.may_enter(&by, if_new.worktree.is_some()).await?;
                self.accept(by, new).await?
            }
            outcome => outcome,
        };
        let (accepted, repeated) = made(outcome)?;
        let deaf = match delivery {
            Delivery::Steer => self.deaf_agent(accepted.session).await,
            Delivery::Queue | Delivery::Interrupt => None,
        };
        Ok(Receipt { accepted, repeated, deaf })
    }

    /// The session's agent, if it takes no words while it works. Nobody is refused for it, so what cannot be looked up is
    /// not said.
    async fn deaf_agent(&self, session: SessionId) -> Option<String> {
        let (_, row) = self.ports.store.session(session).await.ok().flatten()?;
        let agent = self.roster.agents().get(&row.scope.agent)?;
        (!agent.abilities().steer).then_some(row.scope.agent)
    }

    fn new_message(&self, inbound: &Inbound) -> NewMessage {
        let (words, attachments) = (encode_parts(&inbound.parts), encode(&inbound.attachments));
        NewMessage {
            // Minted once, so that "did it happen?" can be asked by id.
            message: self.ports.mint_message(),
            to: inbound.to.clone(),
            fresh: None,
            like: None,
            expected: inbound.expected.clone(),
            asks_for_new: !inbound.if_new.is_empty(),
            key: self
                .ports
                .key_with("say", &inbound.trace, || keys::hash_of_message(inbound, &words, &attachments)),
            words,
            attachments,
            unfit: self.unfit_agents(&inbound.attachments),
            opening: opening_of(&inbound.parts),
            delivery: inbound.delivery,
            under: inbound.under,
            unattended: inbound.unattended,
            reply: inbound.reply.clone(),
            trail: self.ports.trail("say", &inbound.trace),
            pending_max: self.ports.limits.pending_max,
            words_bytes_max: self.ports.limits.words_bytes_per_person_max,
            schemes: inbound.trace.schemes,
        }
    }

    /// Looks if the caller may have one more worktree, if there is to be one.
    async fn may_enter(&self, by: &Principal, enters: bool) -> Result<(), WayInError> {
        match enters {
            true => self.ports.room_for_worktree(by.org, by.person).await,
            false => Ok(()),
        }
    }

    async fn accept(
        &self,
        by: Arc<Principal>,
        new: NewMessage,
    ) -> Result<WriteOutcome<Accepted, Rejection>, UnavailableError> {
        let ports = self.ports.clone();
        self.ports
            .uncancelled(async move {
                let (message, delivery) = (new.message, new.delivery);
                let outcome = match ports.store.accept(by, new).await {
                    Ok(outcome) => outcome,
                    Err(StoreError::Unknown(cause)) => {
                        WriteOutcome::Done(ports.reconcile(message, cause).await?)
                    }
                    Err(error) => return Err(error.into()),
                };
                if let WriteOutcome::Done(accepted) = &outcome {
                    match delivery {
                        Delivery::Queue => ports.keep_soon(accepted.session),
                        // Meant for the turn that is under way.
                        Delivery::Steer | Delivery::Interrupt => ports.keep(accepted.session),
                    }
                }
                ports.audited();
                Ok(outcome)
            })
            .await
    }

    /// Makes a session that nobody has said anything to yet.
    pub async fn make(
        &self,
        by: &Principal,
        if_new: IfNew,
        bind: Option<Address>,
        trace: Trace,
    ) -> Result<Made, WayInError> {
        let result = self.make_now(by, if_new, bind, &trace).await;
        self.note_refusal(by, "make", &trace, None, result).await
    }

    async fn make_now(
        &self,
        by: &Principal,
        if_new: IfNew,
        bind: Option<Address>,
        trace: &Trace,
    ) -> Result<Made, Declined> {
        check_trace(trace)?;
        let key = self.ports.key("make", trace, &(&if_new, bind.as_ref().map(Address::to_string)));
        let session = match self.new_session(by, &if_new, bind, trace) {
            Ok(session) => session,
            Err(refused) => return self.session_made_before(by, key, refused).await,
        };
        if let Err(refused) = self.may_enter(by, session.enter.is_some()).await {
            return self.session_made_before(by, key, refused).await;
        }
        let (past, subject, trail) = (None, None, self.ports.trail("make", trace));
        let words_bytes_max = self.ports.limits.words_bytes_per_person_max;
        let schemes = trace.schemes;
        self.create(by, Create { session, past, words_bytes_max, subject, key, trail, schemes }).await
    }

    /// A session that cannot be made any more may have been made before, by this very wish.
    async fn session_made_before(
        &self,
        by: &Principal,
        key: Option<store::Key>,
        refused: WayInError,
    ) -> Result<Made, Declined> {
        let may_be = matches!(
            refused,
            WayInError::Conflict(ConflictError::UnknownAgent { .. } | ConflictError::UnknownModel { .. })
                | WayInError::BadDirectory(_)
        );
        self.made_under(by, key.filter(|_| may_be), refused).await
    }

    /// The session that was made under this key, or why there is none.
    async fn made_under(
        &self,
        by: &Principal,
        key: Option<store::Key>,
        refused: WayInError,
    ) -> Result<Made, Declined> {
        let Some(key) = key else { return Err(refused.into()) };
        match self.ports.store.answer_for(by.org, by.person, key, self.ports.now()).await? {
            KeyAnswer::Never => Err(refused.into()),
            KeyAnswer::Repeated(made) => Ok(Made { session: SessionId::from_bits(made), repeated: true }),
            KeyAnswer::Conflict => Err(ConflictError::KeyReused.into()),
        }
    }

    async fn create(&self, by: &Principal, new: Create) -> Result<Made, Declined> {
        let (ports, by) = (self.ports.clone(), Arc::new(by.clone()));
        let outcome = self
            .ports
            .uncancelled(async move {
                let outcome = ports.store.create(by, new).await.map_err(|error| ports.unclear(error))?;
                if let WriteOutcome::Done(session) = outcome {
                    ports.keep(session);
                }
                ports.audited();
                Ok::<_, UnavailableError>(outcome)
            })
            .await?;
        made(outcome).map(|(session, repeated)| Made { session, repeated })
    }

    /// Asks something of a session that is not a message, and waits a little for the keeper's verdict.
    pub async fn ask(&self, by: &Principal, request: Request, trace: Trace) -> Result<Granted, WayInError> {
        self.ask_with(by, request, Wording::default(), trace).await
    }

    async fn ask_with(
        &self,
        by: &Principal,
        request: Request,
        wording: Wording<'_>,
        trace: Trace,
    ) -> Result<Granted, WayInError> {
        let (word, subject) = (request_word(&request), Some(request.subject().to_string()));
        let result = self.ask_now(by, &request, wording, &trace).await;
        self.note_refusal(by, word, &trace, subject, result).await
    }

    async fn ask_now(
        &self,
        by: &Principal,
        wanted: &Request,
        wording: Wording<'_>,
        trace: &Trace,
    ) -> Result<Granted, Declined> {
        check_trace(trace)?;
        right_for_request(by, wanted)?;
        if let Request::Edit { .. } = wanted {
            check_parts(wording.parts, wording.attachments.unwrap_or_default())?;
        }
        let request = match self.new_request(by, wanted, wording, trace).await? {
            Wanted::New(new) => match self.put(by, *new).await? {
                Asked::Waits { request, .. } => request,
                Asked::Over => return Ok(Granted::Done),
            },
            Wanted::Before(request) => request,
        };
        let verdict = self.verdict_within(request, self.ports.limits.verdict_wait).await?;
        match (granted(verdict), wanted) {
            (Err(WayInError::Conflict(ConflictError::TooLate)), Request::Answer { approval, .. }) => {
                Err(self.too_late_to_answer(by, *approval).await?.into())
            }
            (granted, _) => Ok(granted?),
        }
    }

    /// Asks for a chore, or joins the one that was asked for under the same key.
    pub(crate) async fn ask_chore(
        &self,
        by: &Principal,
        session: SessionId,
        chore: Chore,
        key: Option<store::Key>,
        trace: &Trace,
    ) -> Result<Option<RequestId>, Declined> {
        let request = Request::Chore { session, chore };
        right_for_request(by, &request)?;
        let (id, trail) = (self.ports.mint_request(), self.ports.trail(request_word(&request), trace));
        let words_bytes_max = self.ports.limits.words_bytes_per_person_max;
        let resolved = Resolved::default();
        let (words, attachments, unfit, opening) = (None, None, Vec::new(), None);
        let new = NewRequest {
            id,
            request,
            resolved,
            words,
            attachments,
            unfit,
            opening,
            words_bytes_max,
            key,
            trail,
        };
        match self.put(by, new).await? {
            Asked::Waits { request, .. } => Ok(Some(request)),
            Asked::Over => Ok(None),
        }
    }

    /// The end of a chore, if it comes within that time.
    pub(crate) async fn chore_verdict(
        &self,
        by: &Principal,
        session: SessionId,
        request: RequestId,
        wait: Duration,
    ) -> Result<ChoreVerdict, WayInError> {
        match self.verdict_within(request, wait).await? {
            Some(Verdict::Told { what }) => Ok(ChoreVerdict::Over { told: Some(what) }),
            verdict => match granted(verdict) {
                Ok(Granted::Done) => Ok(ChoreVerdict::Over { told: None }),
                Ok(Granted::Pending) => Ok(ChoreVerdict::GoesOn),
                // Whoever may not even see it any more is told what anybody is.
                Err(refused @ WayInError::Access(AccessError::Needs(_))) => {
                    may(by, Act::Manage, &self.record(by, session).await?, "session")?;
                    Err(refused)
                }
                Err(refused) => Err(refused),
            },
        }
    }

    async fn put(&self, by: &Principal, new: NewRequest) -> Result<Asked, Declined> {
        let (ports, by) = (self.ports.clone(), Arc::new(by.clone()));
        let outcome = self
            .ports
            .uncancelled(async move {
                let outcome = ports.store.ask(by, new).await.map_err(|error| ports.unclear(error))?;
                if let WriteOutcome::Done(Asked::Waits { session, .. })
                | WriteOutcome::Repeated(Asked::Waits { session, .. }) = outcome
                {
                    ports.keep(session);
                }
                ports.audited();
                Ok::<_, UnavailableError>(outcome)
            })
            .await?;
        made(outcome).map(|(asked, _)| asked)
    }

    async fn verdict_within(
        &self,
        request: RequestId,
        wait: Duration,
    ) -> Result<Option<Verdict>, WayInError> {
        let until = tokio::time::Instant::now() + wait;
        loop {
            // Listen first, then look: whatever is said in between is heard.
            let told = self.ports.cluster.await_verdict(request);
            if let Some(verdict) = self.ports.store.verdict(request).await? {
                return Ok(Some(verdict));
            }
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let is_last = left <= self.ports.limits.verdict_wait || self.ports.is_closing();
            match tokio::time::timeout(left.min(self.ports.limits.verdict_wait), told).await {
                Ok(Ok(verdict)) => return Ok(Some(verdict)),
                // Nobody told us; perhaps somebody else's keeper has said it.
                Err(_) if !is_last => {}
                Ok(Err(_)) | Err(_) => return Ok(self.ports.store.verdict(request).await?),
            }
        }
    }

    /// The request to the store. Whatever needs no look at anything outside is looked up nowhere but in its
    /// transaction.
    async fn new_request(
        &self,
        by: &Principal,
        wanted: &Request,
        wording: Wording<'_>,
        trace: &Trace,
    ) -> Result<Wanted, Declined> {
        let (request, resolved) = self.resolved(by, wanted).await?;
        let words = matches!(request, Request::Edit { .. }).then(|| encode_parts(wording.parts));
        let attachments = wording.attachments.map(encode);
        let key = self.ports.key_with(request_key_word(wanted), trace, || {
            keys::hash_of_request(wanted, words.as_deref().unwrap_or_default(), attachments.as_deref())
        });
        if let Some(refused) = self.in_the_way(by, &request, &resolved).await? {
            return self.asked_before(by, key, refused).await;
        }
        let (id, trail) = (self.ports.mint_request(), self.ports.trail(request_word(wanted), trace));
        let words_bytes_max = self.ports.limits.words_bytes_per_person_max;
        let opening = words.as_ref().and_then(|_| opening_of(wording.parts));
        let unfit = self.unfit_agents(wording.attachments.unwrap_or_default());
        let new = NewRequest {
            id,
            request,
            resolved,
            words,
            attachments,
            unfit,
            opening,
            words_bytes_max,
            key,
            trail,
        };
        Ok(Wanted::New(Box::new(new)))
    }

    /// The request with what has to be looked up for it. Nobody looks at anything for whoever may not ask.
    async fn resolved(&self, by: &Principal, wanted: &Request) -> Result<(Request, Resolved), WayInError> {
        let mut resolved = Resolved::default();
        let request = match wanted {
            Request::Release { message, there: true } => {
                let (record, scope) = self.written_for(by, *message).await?;
                may(by, Act::Manage, &record, "message")?;
                resolved.written_for = Some(scope);
                wanted.clone()
            }
            Request::Answer { approval, answer, remember } => {
                let found = self.ports.store.approval_seen(Seer::of(by), *approval).await?;
                let (record, row) = found.ok_or(AccessError::NotFound { what: "approval" })?;
                may(by, Act::Answer, &record, "approval")?;
                resolved.rule = self.check_answer(by, &record, &row, answer, *remember).await?;
                wanted.clone()
            }
            Request::ChangeScope { session, change, .. } => {
                let record = self.record(by, *session).await?;
                may(by, Act::Manage, &record, "session")?;
                self.check_change(by, change)?;
                self.check_model_of_change(&record.agent, change)?;
                self.settled(by, wanted.clone())?
            }
            Request::Undo { session, turn, under, files } => {
                let under = Some(self.epoch_to_put_back(by, *session, *turn, *under).await?);
                Request::Undo { session: *session, turn: *turn, under, files: files.clone() }
            }
            Request::Redo { session, turn, under } => {
                let under = Some(self.epoch_to_put_back(by, *session, *turn, *under).await?);
                Request::Redo { session: *session, turn: *turn, under }
            }
            Request::Edit { .. }
            | Request::Withdraw { .. }
            | Request::Hold { .. }
            | Request::Release { there: false, .. }
            | Request::Steer { .. }
            | Request::Interrupt { .. }
            | Request::Reorder { .. }
            | Request::Stop { .. }
            | Request::KeepScope { .. }
            | Request::Chore { .. }
            | Request::End { .. } => wanted.clone(),
        };
        Ok((request, resolved))
    }

    /// The epoch in which a turn can be undone or redone, for somebody who may.
    async fn epoch_to_put_back(
        &self,
        by: &Principal,
        session: SessionId,
        turn: Turn,
        under: Option<Epoch>,
    ) -> Result<Epoch, WayInError> {
        let record = self.record(by, session).await?;
        let of = self.epoch_for_undo(by, &record, turn, under).await?;
        may(by, Act::Say, &record, "session")?;
        Ok(of)
    }

    /// A thing that was done once under this key stays done, whatever is in the way by now.
    async fn asked_before(
        &self,
        by: &Principal,
        key: Option<store::Key>,
        refused: WayInError,
    ) -> Result<Wanted, Declined> {
        let Some(key) = key else { return Err(refused.into()) };
        match self.ports.store.answer_for(by.org, by.person, key, self.ports.now()).await? {
            KeyAnswer::Never => Err(refused.into()),
            KeyAnswer::Repeated(made) => Ok(Wanted::Before(RequestId::from_bits(made))),
            KeyAnswer::Conflict => Err(ConflictError::KeyReused.into()),
        }
    }

    /// Lets a conversation belong to another open session.
    pub async fn rebind(
        &self,
        by: &Principal,
        address: Address,
        to: SessionId,
        trace: Trace,
    ) -> Result<(), WayInError> {
        let result = self.rebind_now(by, address, to, &trace).await;
        self.note_refusal(by, "rebind", &trace, Some(to.to_string()), result).await
    }

    async fn rebind_now(
        &self,
        by: &Principal,
        address: Address,
        to: SessionId,
        trace: &Trace,
    ) -> Result<(), Declined> {
        check_trace(trace)?;
        authorize_right(by, Act::Manage).map_err(|denied| AccessError::denied(denied, "session"))?;
        let key = self.ports.key("rebind", trace, &(address.to_string(), to.to_string()));
        let (trail, schemes) = (self.ports.trail("rebind", trace), trace.schemes);
        let new = Rebind { address, to, key, trail, schemes };
        let outcome = self.ports.store.rebind(Arc::new(by.clone()), new).await;
        // Also if nobody knows what became of it: then it may be in the audit.
        self.ports.audited();
        made(outcome?).map(|_| ())
    }

    /// Changes what a session is called, or whether lists show it.
    pub async fn retitle(
        &self,
        by: &Principal,
        session: SessionId,
        title: Option<String>,
        archived: Option<bool>,
        trace: Trace,
    ) -> Result<(), WayInError> {
        let result = self.retitle_now(by, session, title, archived, &trace).await;
        self.note_refusal(by, "retitle", &trace, Some(session.to_string()), result).await
    }

    async fn retitle_now(
        &self,
        by: &Principal,
        session: SessionId,
        title: Option<String>,
        archived: Option<bool>,
        trace: &Trace,
    ) -> Result<(), Declined> {
        authorize_right(by, Act::Manage).map_err(|denied| AccessError::denied(denied, "session"))?;
        check_title(title.as_deref())?;
        let new = Retitle { session, title, archived, trail: self.ports.trail("retitle", trace) };
        let (ports, by) = (self.ports.clone(), Arc::new(by.clone()));
        // Whoever hangs up does not keep others from hearing of it.
        let outcome = self.ports.uncancelled(async move {
            let outcome = ports.store.retitle(by, new).await;
            // Also if nobody knows what became of it: then it may be in the audit, and in lists.
            ports.audited();
            ports.cluster.tell(Happened::Row(session));
            outcome
        });
        made(outcome.await?).map(|_| ())
    }
}

impl WayIn {
    async fn record(&self, by: &Principal, session: SessionId) -> Result<Record, WayInError> {
        let found = self.ports.record_seen(by, session).await?;
        Ok(found.ok_or(AccessError::NotFound { what: "session" })?)
    }

    /// One audit entry per command or refusal.
    pub(crate) async fn note_refusal<T>(
        &self,
        by: &Principal,
        verb: &'static str,
        trace: &Trace,
        subject: Option<String>,
        result: Result<T, Declined>,
    ) -> Result<T, WayInError> {
        self.ports.noted((by.org, by.person), verb, trace, subject, result).await
    }
}

impl EnginePorts {
    /// A commit that reports an error is unknown: look by id, then answer.
    async fn reconcile(&self, message: MessageId, cause: String) -> Result<Accepted, UnavailableError> {
        tracing::warn!(%message, cause, "looking whether a message was accepted");
        let looked = self.store.receipt(message).await;
        let Some((_, row)) = looked.map_err(|_| self.unclear(StoreError::Unknown(cause.clone())))? else {
            // It is not there now; a file that could not be settled may still bring it back with the next start.
            return Err(self.unclear(StoreError::Unknown(cause)));
        };
        Ok(Accepted {
            message,
            session: row.session,
            created: row.created,
            previous: row.previous,
            if_new_ignored: row.if_new_ignored,
            at: row.accepted_at,
        })
    }

    /// A row that may have got into an inbox is looked at, whether or not the caller asks again.
    fn unclear(&self, error: StoreError) -> UnavailableError {
        if let StoreError::Unknown(_) = error {
            self.timer.unsure();
            // With its entry, if it was written.
            self.audited();
        }
        error.into()
    }

    /// The access record of a session, if there is one, whoever may see it.
    pub(crate) async fn record(&self, session: SessionId) -> Result<Option<Record>, StoreError> {
        Ok(self.store.session(session).await?.map(|(record, _)| record))
    }

    /// The access record of a session that they may see. What is hidden from them takes as long as what never was.
    pub(crate) async fn record_seen(
        &self,
        by: &Principal,
        session: SessionId,
    ) -> Result<Option<Record>, StoreError> {
        Ok(self.store.session_seen(Seer::of(by), session).await?.map(|(record, _)| record))
    }

    /// One audit entry per command or refusal: whatever reaches the store writes its own, this is for the rest.
    pub(crate) async fn noted<T, E: HandleError>(
        &self,
        by: (OrgId, PersonId),
        verb: &'static str,
        trace: &Trace,
        subject: Option<String>,
        result: Result<T, Declined<E>>,
    ) -> Result<T, E> {
        let Declined { refused, in_audit } = match result {
            Ok(done) => return Ok(done),
            Err(declined) => declined,
        };
        if !in_audit {
            self.note(by, verb, trace, subject, &refused).await;
        }
        Err(refused)
    }

    /// Writes a refusal into the audit, unless it says nothing of what was asked for.
    pub(crate) async fn note(
        &self,
        by: (OrgId, PersonId),
        verb: &'static str,
        trace: &Trace,
        subject: Option<String>,
        refused: &impl HandleError,
    ) {
        if refused.is_unavailable() {
            return;
        }
        let trail = self.trail(verb, trace);
        let entry = AuditEntry { by: Some(by), subject, trail, refused: refused.code() };
        if let Err(error) = self.store.audit(entry).await {
            // The refusal stands all the same: nothing was changed.
            tracing::warn!(%error, %refused, "a refusal is missing in the audit");
        }
        self.audited();
    }

    pub(crate) fn trail(&self, verb: &'static str, trace: &Trace) -> Trail {
        let Trace { door, correlation, address, .. } = trace.clone();
        Trail { verb, door, correlation, address, at: self.now() }
    }
}

/// The refusal of a credential that is good for no such request at all. To tend a message takes one right if it is one's own
/// and another if not; whoever has neither is told so before it is looked up.
fn right_for_request(by: &Principal, request: &Request) -> Result<(), AccessError> {
    let act = match request {
        Request::Withdraw { .. }
        | Request::Hold { .. }
        | Request::Release { .. }
        | Request::Steer { .. }
        | Request::Interrupt { .. }
            if by.rights.has(Right::Manage) =>
        {
            Act::Manage
        }
        Request::Release { there: true, .. } => Act::Manage,
        Request::Withdraw { .. }
        | Request::Hold { .. }
        | Request::Release { .. }
        | Request::Steer { .. }
        | Request::Interrupt { .. } => Act::Say,
        Request::Edit { .. } | Request::Stop { .. } | Request::Undo { .. } | Request::Redo { .. } => Act::Say,
        Request::Answer { .. } => Act::Answer,
        Request::Reorder { .. }
        | Request::ChangeScope { .. }
        | Request::KeepScope { .. }
        | Request::Chore { .. }
        | Request::End { .. } => Act::Manage,
    };
    authorize_right(by, act).map_err(|denied| AccessError::denied(denied, "message"))
}

fn to_text(to: &To) -> Option<String> {
    match to {
        To::Session(session) => Some(session.to_string()),
        To::Conversation(address) | To::NewIn(address) => Some(address.to_string()),
        To::New => None,
    }
}

/// The request to the store, or the answer from before.
enum Wanted {
    New(Box<NewRequest>),
    Before(RequestId),
}

/// A chore within the time that somebody waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChoreVerdict {
    /// It is done, with the answer to whoever asked, if it has one.
    Over { told: Option<String> },
    /// It is safe, and goes on.
    GoesOn,
}

/// The verdict, for whoever asked.
fn granted(verdict: Option<Verdict>) -> Result<Granted, WayInError> {
    match verdict {
        Some(Verdict::Done | Verdict::Told { .. }) => Ok(Granted::Done),
        Some(Verdict::Refused(refusal)) => Err(WayInError::refusal(refusal)),
        Some(Verdict::Failed { why }) => Err(ScopeError::WorktreeTrouble { why }.into()),
        None => Ok(Granted::Pending),
    }
}

/// Judges if they may, as far as can be said before the store says it: nobody looks at anything for whoever may not.
fn may(by: &Principal, act: Act, record: &Record, what: &'static str) -> Result<(), AccessError> {
    authorize(by, act, record, ()).map(drop).map_err(|denied| AccessError::denied(denied, what))
}

fn address_of(to: &To) -> Option<Address> {
    match to {
        To::Conversation(address) | To::NewIn(address) => Some(address.clone()),
        To::Session(_) | To::New => None,
    }
}

pub(crate) fn check_trace(trace: &Trace) -> Result<(), InvalidError> {
    match &trace.key {
        Some(CallerKey::Idempotency(key) | CallerKey::Delivery(key))
            if key.is_empty() || key.len() > KEY_BYTES_MAX =>
        {
            let reason = format!("must have 1 to {KEY_BYTES_MAX} bytes");
            Err(InvalidError { field: "Idempotency-Key", reason })
        }
        Some(_) | None => Ok(()),
    }
}
