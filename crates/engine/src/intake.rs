//! The only way in: resolve → authorize → accept.
//!
//! Each step takes what the step before made. Whether the credential is good for such a wish at all is asked before
//! anything is looked up. What was seen is compared again in the transaction of the write; if it has changed, who asks
//! and what they ask about are looked up again, at most `RESOLVE_MAX` times.

mod fork;
mod fresh;
mod import;
mod in_the_way;
mod scope;

use crate::inbound::{body_hash, encode_parts};
use crate::*;
use fresh::{check_title, chosen_directory};
use kernel::{
    Act, Address, Authorized, Fresh, MessageId, NoRoute, Principal, Record, Request, Right, Route, SessionId,
    To, authorize, authorize_address, authorize_new, authorize_right, grant_of, route,
};
use serde::Serialize;
use store::{
    Acceptance, Asking, AuditEntry, Create, Creation, Into, Key, NewMessage, NewRequest, Rebind, Rebinding,
    Resolved, Retitle, Retitling, StoreError, Trail, Verdict,
    record::{request_key_word, request_word},
};

/// How often a wish is resolved before we give up: each further time means that somebody else was faster.
pub(crate) const RESOLVE_MAX: usize = 3;
/// How long an idempotency key is remembered.
const KEY_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1_000;

/// A session that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// The session.
    pub session: SessionId,
    /// Whether this is the answer to a repetition.
    pub repeated: bool,
}

/// An inbound message whose session has been decided.
struct Routed {
    inbound: Inbound,
    route: Route,
    record: Option<Record>,
    /// It can only be a repetition; if it is not, this is the answer.
    unless_repeated: Option<NoRoute>,
}

/// A request that somebody may ask for.
struct Asked {
    session: SessionId,
    allowed: Authorized<NewRequest>,
    /// It can only be a repetition; if it is not, this is the answer.
    unless_repeated: Option<Refused>,
}

impl Engine {
    /// Takes a message. When this answers, a power cut cannot lose it.
    pub async fn send(&self, inbound: Inbound) -> Result<Receipt, Refused> {
        let (by, trace) = (inbound.by.clone(), inbound.trace.clone());
        let subject = to_text(&inbound.to);
        let result = self.send_now(inbound).await;
        self.note_refusal(&by, "say", &trace, subject, result).await
    }

    async fn send_now(&self, mut inbound: Inbound) -> Result<Receipt, Refused> {
        authorize_right(&inbound.by, Act::Say).map_err(|denied| Refused::denied(denied, "session"))?;
        check_parts(&inbound.parts)?;
        check_trace(&inbound.trace)?;
        // Minted once, so that "did it happen?" can be asked by id.
        let message = self.mint_message();
        for _ in 0..RESOLVE_MAX {
            let routed = self.resolve(inbound.clone()).await?;
            let unless_repeated = routed.unless_repeated;
            let (allowed, unless_made) = self.authorize_message(routed, message).await?;
            let engine = self.clone();
            match self.surely(async move { engine.accept(allowed).await }).await? {
                Acceptance::Done(accepted) => return Ok(Receipt { accepted, repeated: false }),
                Acceptance::Before(accepted) => return Ok(Receipt { accepted, repeated: true }),
                Acceptance::Conflict => return Err(Refused::KeyReused),
                Acceptance::Moved => {
                    if let Some(no_route) = unless_repeated {
                        return Err(Refused::no_route(no_route));
                    }
                    inbound.by = self.again(&inbound.by).await?;
                }
                Acceptance::QueueFull => {
                    return Err(Refused::QueueFull { limit: self.limits().pending_max });
                }
                Acceptance::TooManyOpen => {
                    let limit = self.limits().open_max;
                    return Err(unless_made.unwrap_or(Refused::TooManyOpen { limit }));
                }
                Acceptance::OrgTooManyOpen => {
                    let limit = self.org_open_max(&inbound.by).await?;
                    return Err(unless_made.unwrap_or(Refused::OrgTooManyOpen { limit }));
                }
            }
        }
        Err(Refused::Unavailable("the conversation keeps changing; try again".to_owned()))
    }

    /// Which session? Asked here, once per try, and nowhere else.
    async fn resolve(&self, inbound: Inbound) -> Result<Routed, Refused> {
        if let To::Conversation(address) = &inbound.to {
            authorize_address(&inbound.by, address).map_err(|denied| Refused::denied(denied, "session"))?;
        }
        let finding = self.store().find(inbound.by.org, inbound.to.clone()).await?;
        match route(&inbound.to, finding.found) {
            Ok(route) => Ok(Routed { inbound, route, record: finding.record, unless_repeated: None }),
            Err(no_route) => {
                // An ended session that the caller may not see does not exist, either. A repeated wish whose session
                // has ended since gets its receipt: the store looks the key up before anything else.
                self.seen_or_unknown(&inbound.by, finding.record.as_ref())?;
                self.repeated(&inbound, no_route).await?.ok_or(Refused::no_route(no_route))
            }
        }
    }

    fn seen_or_unknown(&self, by: &Principal, record: Option<&Record>) -> Result<(), Refused> {
        match record {
            Some(record) if grant_of(by, record).is_none() => Err(Refused::NotFound { what: "session" }),
            Some(_) | None => Ok(()),
        }
    }

    /// Lets the store say whether this very wish was accepted before its session ended.
    async fn repeated(&self, inbound: &Inbound, no_route: NoRoute) -> Result<Option<Routed>, Refused> {
        let To::Session(session) = inbound.to else { return Ok(None) };
        if inbound.trace.key.is_none() {
            return Ok(None);
        }
        let Some((record, _)) = self.store().session(session).await? else { return Ok(None) };
        Ok(Some(Routed {
            inbound: inbound.clone(),
            route: Route::Existing(session),
            record: Some(record),
            unless_repeated: Some(no_route),
        }))
    }

    async fn authorize_message(
        &self,
        routed: Routed,
        message: MessageId,
    ) -> Result<(Authorized<NewMessage>, Option<Refused>), Refused> {
        let Routed { inbound, route, record, unless_repeated: _ } = routed;
        let denied = |denied| Refused::denied(denied, "session");
        let wish = |into, if_new_ignored| NewMessage {
            message,
            into,
            words: encode_parts(&inbound.parts),
            delivery: inbound.delivery,
            under: inbound.under,
            unattended: inbound.unattended,
            reply: inbound.reply.clone(),
            if_new_ignored,
            key: self.key("say", &inbound.trace, &inbound_body(&inbound)),
            trail: self.trail("say", &inbound.trace),
            pending_max: self.limits().pending_max,
        };
        match (route, record) {
            (Route::Existing(session), Some(record)) => {
                self.check_under(&inbound, Some(&record)).await?;
                let into = Into::Existing { session, through: through(&inbound.to) };
                let wish = wish(into, !inbound.if_new.is_empty());
                Ok((authorize(&inbound.by, Act::Say, &record, wish).map_err(denied)?, None))
            }
            (Route::Existing(_), None) => Err(Refused::NotFound { what: "session" }),
            (Route::Create { bind, previous }, before) => {
                self.check_under(&inbound, None).await?;
                // A past that the sender may not see is none.
                let seen = self.seen_or_unknown(&inbound.by, before.as_ref()).is_ok();
                let previous = previous.filter(|_| seen);
                let (session, unless_made) = self
                    .new_or_made_before(&inbound.by, &inbound.if_new, bind.clone(), previous, &inbound.trace)
                    .await?;
                let chosen = chosen_directory(&inbound.if_new, &session);
                let agent = session.scope.agent.clone();
                let fresh = Fresh { address: bind.as_ref(), agent: &agent, directory: chosen.as_deref() };
                let wish = wish(Into::Create(session), false);
                Ok((authorize_new(&inbound.by, fresh, wish).map_err(denied)?, unless_made))
            }
        }
    }

    async fn accept(&self, allowed: Authorized<NewMessage>) -> Result<Acceptance, Refused> {
        let message = allowed.wish().message;
        let acceptance = match self.store().accept(allowed).await {
            Ok(acceptance) => acceptance,
            Err(StoreError::Unknown(cause)) => self.reconcile(message, cause).await?,
            Err(error) => return Err(error.into()),
        };
        if let Acceptance::Done(accepted) = &acceptance {
            self.keep_soon(accepted.session);
            self.audited();
        }
        Ok(acceptance)
    }

    /// Whatever puts something into an inbox goes on to its end even if the caller hangs up: what is stored must not
    /// wait for somebody else to come by.
    pub(crate) async fn surely<T: Send + 'static>(
        &self,
        step: impl Future<Output = Result<T, Refused>> + Send + 'static,
    ) -> Result<T, Refused> {
        let (tell, told) = tokio::sync::oneshot::channel();
        self.spawn(async move {
            let _ = tell.send(step.await); // Whoever hung up does not want to know.
        });
        // The node goes down: the next start looks into every inbox.
        told.await.unwrap_or(Err(Refused::Unclear))
    }

    /// A commit that reports an error is unknown: look by id, then answer.
    async fn reconcile(&self, message: MessageId, cause: String) -> Result<Acceptance, Refused> {
        tracing::warn!(%message, cause, "looking whether a message was accepted");
        let looked = self.store().receipt(message).await;
        let Some((_, row)) = looked.map_err(|_| self.unclear(StoreError::Unknown(cause.clone())))? else {
            // It is not there now; a file that could not be settled may still bring it back with the next start.
            return Err(self.unclear(StoreError::Unknown(cause)));
        };
        Ok(Acceptance::Done(Accepted {
            message,
            session: row.session,
            created: row.created,
            previous: row.previous,
            if_new_ignored: row.if_new_ignored,
            at: row.accepted_at,
        }))
    }

    /// What may have got into an inbox is looked at, whether or not the caller asks again.
    fn unclear(&self, error: StoreError) -> Refused {
        if let StoreError::Unknown(_) = error {
            self.timer().unsure();
        }
        error.into()
    }

    /// Makes a session that nobody has said anything to yet.
    pub async fn make(
        &self,
        by: &Principal,
        if_new: IfNew,
        bind: Option<Address>,
        trace: Trace,
    ) -> Result<Made, Refused> {
        let result = self.make_now(by, if_new, bind, &trace).await;
        self.note_refusal(by, "make", &trace, None, result).await
    }

    async fn make_now(
        &self,
        by: &Principal,
        if_new: IfNew,
        bind: Option<Address>,
        trace: &Trace,
    ) -> Result<Made, Refused> {
        check_trace(trace)?;
        let key = self.key("make", trace, &(&if_new, bind.as_ref().map(Address::to_string)));
        let mut by = by.clone();
        for _ in 0..RESOLVE_MAX {
            let (session, unless_made) =
                self.new_or_made_before(&by, &if_new, bind.clone(), None, trace).await?;
            let chosen = chosen_directory(&if_new, &session);
            let agent = session.scope.agent.clone();
            let fresh = Fresh { address: bind.as_ref(), agent: &agent, directory: chosen.as_deref() };
            let wish = Create { session, past: None, key: key.clone(), trail: self.trail("make", trace) };
            let allowed = authorize_new(&by, fresh, wish).map_err(|d| Refused::denied(d, "session"))?;
            match self.create_surely(&by, allowed).await {
                Ok(Some(made)) => return Ok(made),
                // Who asks may have changed; a conversation that was bound in between stays so.
                Ok(None) => by = self.again(&by).await?,
                Err(refused @ (Refused::TooManyOpen { .. } | Refused::OrgTooManyOpen { .. })) => {
                    return Err(unless_made.unwrap_or(refused));
                }
                Err(refused) => return Err(refused),
            }
        }
        Err(Refused::Changed)
    }

    /// The session that was made; none if what was seen has changed, so that it has to be asked again.
    async fn create_surely(
        &self,
        by: &Principal,
        allowed: Authorized<Create>,
    ) -> Result<Option<Made>, Refused> {
        let engine = self.clone();
        match self.surely(async move { engine.create(allowed).await }).await? {
            Creation::Done(session) => Ok(Some(Made { session, repeated: false })),
            Creation::Before(session) => Ok(Some(Made { session, repeated: true })),
            Creation::Already(session) => Err(Refused::AlreadyImported { session }),
            Creation::Conflict => Err(Refused::KeyReused),
            Creation::Moved => Ok(None),
            Creation::TooManyOpen => Err(Refused::TooManyOpen { limit: self.limits().open_max }),
            Creation::OrgTooManyOpen => Err(Refused::OrgTooManyOpen { limit: self.org_open_max(by).await? }),
        }
    }

    async fn create(&self, allowed: Authorized<Create>) -> Result<Creation, Refused> {
        let creation = self.store().create(allowed).await.map_err(|error| self.unclear(error))?;
        if let Creation::Done(session) = creation {
            self.keep(session);
            self.audited();
        }
        Ok(creation)
    }

    /// Asks something of a session that is not a message, and waits a little for the keeper's verdict.
    pub async fn ask(&self, by: &Principal, request: Request, trace: Trace) -> Result<Granted, Refused> {
        self.ask_with(by, request, &[], trace).await
    }

    /// Asks for other words in a waiting message; `revision` is the one the editor saw.
    pub async fn edit(
        &self,
        by: &Principal,
        message: MessageId,
        revision: u32,
        parts: &[Part],
        trace: Trace,
    ) -> Result<Granted, Refused> {
        self.ask_with(by, Request::Edit { message, revision }, parts, trace).await
    }

    async fn ask_with(
        &self,
        by: &Principal,
        request: Request,
        parts: &[Part],
        trace: Trace,
    ) -> Result<Granted, Refused> {
        let (word, subject) = (request_word(&request), Some(request.subject().to_string()));
        let result = self.ask_now(by, &request, parts, &trace).await;
        self.note_refusal(by, word, &trace, subject, result).await
    }

    async fn ask_now(
        &self,
        by: &Principal,
        wanted: &Request,
        parts: &[Part],
        trace: &Trace,
    ) -> Result<Granted, Refused> {
        check_trace(trace)?;
        right_for_request(by, wanted)?;
        if let Request::Edit { .. } = wanted {
            check_parts(parts)?;
        }
        let mut by = by.clone();
        for _ in 0..RESOLVE_MAX {
            let id = self.mint_request();
            let Asked { session, allowed, unless_repeated } =
                self.authorize_request(&by, wanted, parts, id, trace).await?;
            let engine = self.clone();
            let asked = match self.surely(async move { engine.put(session, allowed).await }).await? {
                Asking::Done(asked) | Asking::Before(asked) => asked,
                Asking::Conflict => return Err(Refused::KeyReused),
                Asking::Moved => {
                    if let Some(refused) = unless_repeated {
                        return Err(refused);
                    }
                    by = self.again(&by).await?;
                    continue;
                }
                // Ending what has ended, or stopping in it, is what the person wanted.
                Asking::Ended(_) if matches!(wanted, Request::End { .. } | Request::Stop { .. }) => {
                    return Ok(Granted::Done);
                }
                Asking::Ended(why) => return Err(Refused::SessionEnded { session, why }),
            };
            return match (self.verdict_within(asked).await, wanted) {
                (Err(Refused::TooLate), Request::Answer { approval, .. }) => {
                    Err(self.too_late_to_answer(&by, *approval).await?)
                }
                (verdict, _) => verdict,
            };
        }
        Err(Refused::Changed)
    }

    async fn put(&self, session: SessionId, allowed: Authorized<NewRequest>) -> Result<Asking, Refused> {
        let asking = self.store().ask(allowed).await.map_err(|error| self.unclear(error))?;
        if let Asking::Done(_) | Asking::Before(_) = asking {
            self.keep(session);
            self.audited();
        }
        Ok(asking)
    }

    async fn verdict_within(&self, request: kernel::RequestId) -> Result<Granted, Refused> {
        // Listen first, then look: whatever is said in between is heard.
        let told = self.cluster().await_verdict(request);
        let verdict = match self.store().verdict(request).await? {
            Some(verdict) => Some(verdict),
            None => match tokio::time::timeout(self.limits().verdict_wait, told).await {
                Ok(Ok(verdict)) => Some(verdict),
                // Nobody told us in time; perhaps somebody else's keeper has said it.
                Ok(Err(_)) | Err(_) => self.store().verdict(request).await?,
            },
        };
        match verdict {
            Some(Verdict::Done) => Ok(Granted::Done),
            Some(Verdict::Refused(refusal)) => Err(Refused::refusal(refusal)),
            None => Ok(Granted::Pending),
        }
    }

    /// A request's session and its rights come from the stored record, never from the request.
    async fn authorize_request(
        &self,
        by: &Principal,
        wanted: &Request,
        parts: &[Part],
        id: kernel::RequestId,
        trace: &Trace,
    ) -> Result<Asked, Refused> {
        let mut request = wanted.clone();
        let mut resolved = Resolved::default();
        let (record, act, what) = match wanted {
            Request::Edit { message, .. } => {
                let (record, sender) = self.sender(*message).await?;
                (record, Act::Reword { sender }, "message")
            }
            Request::Withdraw { message }
            | Request::Hold { message }
            | Request::Release { message, there: false } => {
                let (record, sender) = self.sender(*message).await?;
                (record, Act::Tend { sender }, "message")
            }
            // The session goes back with it, so it takes what any change of scope takes.
            Request::Release { message, there: true } => {
                let (record, scope) = self.written_for(by, *message).await?;
                resolved.written_for = Some(scope);
                (record, Act::Rule, "message")
            }
            Request::Stop { message } => (self.sender(*message).await?.0, Act::Say, "message"),
            Request::Answer { approval, answer, remember } => {
                let found = self.store().approval(*approval).await?;
                let (record, row) = found.ok_or(Refused::NotFound { what: "approval" })?;
                authorize(by, Act::Answer, &record, ())
                    .map_err(|denied| Refused::denied(denied, "approval"))?;
                resolved.rule = self.check_answer(by, &record, &row, answer, *remember).await?;
                (record, Act::Answer, "approval")
            }
            Request::Reorder { session, .. }
            | Request::ChangeScope { session, .. }
            | Request::KeepScope { session }
            | Request::End { session } => (self.record(*session).await?, Act::Rule, "session"),
            Request::Undo { session, turn, under } => {
                let record = self.record(*session).await?;
                let of = self.epoch_for_undo(by, &record, *turn, *under).await?;
                request = Request::Undo { session: *session, turn: *turn, under: Some(of) };
                (record, Act::Say, "session")
            }
        };
        // Whose message it is decides which right it takes: that is told only of what the caller may see.
        if grant_of(by, &record).is_none() {
            return Err(Refused::NotFound { what });
        }
        if let Request::ChangeScope { change, .. } = wanted {
            authorize(by, act, &record, ()).map_err(|denied| Refused::denied(denied, what))?;
            self.check_change(by, change)?;
        }
        let request = self.settled(by, request)?;
        let key = self.key(request_key_word(wanted), trace, &request_body(wanted, parts));
        let trail = self.trail(request_word(wanted), trace);
        authorize(by, act, &record, ()).map_err(|denied| Refused::denied(denied, what))?;
        let session = record.session;
        let (into, unless_repeated) = match self.in_the_way(session, &request, &resolved).await? {
            None => (session, None),
            Some(refused) if key.is_none() => return Err(refused),
            // What was done once under this key stays done: the store looks the key up first. There is no such session.
            Some(refused) => (self.mint_session(), Some(refused)),
        };
        let words = matches!(request, Request::Edit { .. }).then(|| encode_parts(parts));
        let asked = NewRequest { id, session: into, request, resolved, words, key, trail };
        let allowed = authorize(by, act, &record, asked).map_err(|denied| Refused::denied(denied, what))?;
        Ok(Asked { session, allowed, unless_repeated })
    }

    async fn sender(&self, message: MessageId) -> Result<(Record, kernel::PersonId), Refused> {
        let found = self.store().receipt(message).await?;
        let (record, row) = found.ok_or(Refused::NotFound { what: "message" })?;
        Ok((record, row.by))
    }

    pub(crate) async fn record(&self, session: SessionId) -> Result<Record, Refused> {
        let found = self.store().session(session).await?;
        found.map(|(record, _)| record).ok_or(Refused::NotFound { what: "session" })
    }

    /// Lets a conversation belong to another open session.
    pub async fn rebind(
        &self,
        by: &Principal,
        address: Address,
        to: SessionId,
        trace: Trace,
    ) -> Result<(), Refused> {
        let result = self.rebind_now(by, address, to, &trace).await;
        self.note_refusal(by, "rebind", &trace, Some(to.to_string()), result).await
    }

    async fn rebind_now(
        &self,
        by: &Principal,
        address: Address,
        to: SessionId,
        trace: &Trace,
    ) -> Result<(), Refused> {
        let denied = |denied| Refused::denied(denied, "session");
        check_trace(trace)?;
        authorize_right(by, Act::Rule).map_err(denied)?;
        let mut by = by.clone();
        for _ in 0..RESOLVE_MAX {
            authorize_address(&by, &address).map_err(denied)?;
            let finding = self.store().find(by.org, To::Conversation(address.clone())).await?;
            let from = match finding.found {
                kernel::Found::Open(session) => Some(session),
                kernel::Found::Ended(..) | kernel::Found::Nothing => None,
            };
            // Taking a conversation away from a session needs the right to rule that session, too.
            if let (Some(_), Some(record)) = (from, &finding.record) {
                authorize(&by, Act::Rule, record, ()).map_err(denied)?;
            }
            let record = self.record(to).await?;
            let key = self.key("rebind", trace, &(address.to_string(), to.to_string()));
            let trail = self.trail("rebind", trace);
            let wish = Rebind { address: address.clone(), from, to, key, trail };
            match self.store().rebind(authorize(&by, Act::Rule, &record, wish).map_err(denied)?).await? {
                Rebinding::Done | Rebinding::Before => {
                    self.audited();
                    return Ok(());
                }
                Rebinding::Conflict => return Err(Refused::KeyReused),
                Rebinding::Moved => by = self.again(&by).await?,
                Rebinding::Ended(why) => return Err(Refused::SessionEnded { session: to, why }),
            }
        }
        Err(Refused::Changed)
    }

    /// Changes what a session is called, or whether lists show it.
    pub async fn retitle(
        &self,
        by: &Principal,
        session: SessionId,
        title: Option<String>,
        archived: Option<bool>,
        trace: Trace,
    ) -> Result<(), Refused> {
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
    ) -> Result<(), Refused> {
        let denied = |denied| Refused::denied(denied, "session");
        authorize_right(by, Act::Rule).map_err(denied)?;
        check_title(title.as_deref())?;
        let mut by = by.clone();
        for _ in 0..RESOLVE_MAX {
            let record = self.record(session).await?;
            let trail = self.trail("retitle", trace);
            let wish = Retitle { session, title: title.clone(), archived, trail };
            let allowed = authorize(&by, Act::Rule, &record, wish).map_err(denied)?;
            match self.store().retitle(allowed).await? {
                Retitling::Done => {
                    self.audited();
                    return Ok(());
                }
                Retitling::Moved => by = self.again(&by).await?,
            }
        }
        Err(Refused::Changed)
    }

    /// One audit entry per command or refusal: commands write theirs in their own transaction.
    pub(crate) async fn note_refusal<T>(
        &self,
        by: &Principal,
        verb: &'static str,
        trace: &Trace,
        subject: Option<String>,
        result: Result<T, Refused>,
    ) -> Result<T, Refused> {
        let refused = match &result {
            Ok(_) | Err(Refused::DiskFull | Refused::Unavailable(_) | Refused::Unclear) => return result,
            Err(refused) => refused.code(),
        };
        let trail = self.trail(verb, trace);
        let entry = AuditEntry { by: Some((by.org, by.person)), subject, trail, refused };
        if let Err(error) = self.store().audit(entry).await {
            // The refusal stands all the same: nothing was changed.
            tracing::warn!(%error, refused, "a refusal is missing in the audit");
        }
        self.audited();
        result
    }

    pub(crate) fn key(&self, verb: &'static str, trace: &Trace, body: &impl Serialize) -> Option<Key> {
        let (key, expires) = match trace.key.as_ref()? {
            CallerKey::Idempotency(key) => (key.clone(), Some(self.now().after_ms(KEY_MS_MAX))),
            CallerKey::Delivery(id) => (id.clone(), None),
        };
        Some(Key { verb, key, hash: body_hash(body), expires })
    }

    pub(crate) fn trail(&self, verb: &'static str, trace: &Trace) -> Trail {
        let Trace { door, correlation, address, .. } = trace.clone();
        Trail { verb, door, correlation, address, at: self.now() }
    }
}

/// The refusal of a credential that is good for no such request at all. To tend a message takes one right if it is one's own
/// and another if not; whoever has neither is told so before it is looked up.
fn right_for_request(by: &Principal, request: &Request) -> Result<(), Refused> {
    let act = match request {
        Request::Withdraw { .. } | Request::Hold { .. } | Request::Release { .. }
            if by.rights.has(Right::Manage) =>
        {
            Act::Rule
        }
        Request::Release { there: true, .. } => Act::Rule,
        Request::Withdraw { .. } | Request::Hold { .. } | Request::Release { .. } => Act::Say,
        Request::Edit { .. } | Request::Stop { .. } | Request::Undo { .. } => Act::Say,
        Request::Answer { .. } => Act::Answer,
        Request::Reorder { .. }
        | Request::ChangeScope { .. }
        | Request::KeepScope { .. }
        | Request::End { .. } => Act::Rule,
    };
    authorize_right(by, act).map_err(|denied| Refused::denied(denied, "message"))
}

fn to_text(to: &To) -> Option<String> {
    match to {
        To::Session(session) => Some(session.to_string()),
        To::Conversation(address) => Some(address.to_string()),
        To::New => None,
    }
}

fn through(to: &To) -> Option<Address> {
    match to {
        To::Conversation(address) => Some(address.clone()),
        To::Session(_) | To::New => None,
    }
}

fn inbound_body(inbound: &Inbound) -> impl Serialize {
    let to = match &inbound.to {
        To::Session(session) => format!("session {session}"),
        To::Conversation(address) => format!("conversation {address}"),
        To::New => "new".to_owned(),
    };
    // What is said as ever is hashed as ever, so that a key outlives an update of ours.
    let to = match (inbound.delivery, inbound.under) {
        (kernel::Delivery::Queue, None) => to,
        (delivery, under) => format!("{to} {delivery:?} {under:?}"),
    };
    let to = if inbound.unattended { format!("{to} unattended") } else { to };
    (to, inbound.if_new.clone(), inbound.parts.clone(), inbound.reply.as_ref().map(Address::to_string))
}

/// What of a request makes two of them the same.
fn request_body(request: &Request, parts: &[Part]) -> String {
    match request {
        Request::Edit { message, revision } => {
            format!("{message} {revision} {}", String::from_utf8_lossy(&encode_parts(parts)))
        }
        Request::Withdraw { message } | Request::Hold { message } | Request::Stop { message } => {
            message.to_string()
        }
        Request::Release { message, there } => format!("{message} {there}"),
        Request::ChangeScope { session, change, now } => format!("{session} {change:?} {now}"),
        Request::Undo { session, turn, under } => format!("{session} {turn} {under:?}"),
        Request::KeepScope { session } => session.to_string(),
        Request::Reorder { session, order } => format!("{session} {order:?}"),
        Request::Answer { approval, answer, remember: None } => format!("{approval} {answer:?}"),
        Request::Answer { approval, answer, remember: Some(remember) } => {
            format!("{approval} {answer:?} {remember:?}")
        }
        Request::End { session } => session.to_string(),
    }
}

fn check_parts(parts: &[Part]) -> Result<(), Refused> {
    let invalid = |reason: String| Err(Refused::Invalid { field: "parts", reason });
    if parts.len() > PARTS_MAX {
        return invalid(format!("more than {PARTS_MAX} parts"));
    }
    let bytes: usize = parts.iter().map(|Part::Text { text }| text.len()).sum();
    // The agent reads them as one text, with a line's end between two.
    if bytes + parts.len().saturating_sub(1) > TEXT_BYTES_MAX {
        return invalid(format!("more than {TEXT_BYTES_MAX} bytes of text"));
    }
    if parts.iter().all(|Part::Text { text }| text.trim().is_empty()) {
        return invalid("there are no words in it".to_owned());
    }
    Ok(())
}

pub(crate) fn check_trace(trace: &Trace) -> Result<(), Refused> {
    match &trace.key {
        Some(CallerKey::Idempotency(key) | CallerKey::Delivery(key))
            if key.is_empty() || key.len() > KEY_BYTES_MAX =>
        {
            let reason = format!("must have 1 to {KEY_BYTES_MAX} bytes");
            Err(Refused::Invalid { field: "Idempotency-Key", reason })
        }
        Some(_) | None => Ok(()),
    }
}
