//! A request: something asked of a session that is not a message. The keeper says yes or no to it.

use super::say::taken_by;
use super::{AskerRow, AuditWrite, KeyRow, Plan, RequestWrite, SessionSeen, Write, asker, planned};
use crate::{Asked, AuditSubject, NewRequest, Rejection, Resolved, attached_bytes, words_bytes, words_fit};
use kernel::{
    Act, ApprovalTerms, Change, Chore, Denied, Fresh, OrgAct, PersonId, Principal, Request, RequestId,
    Subject, authorize, authorize_new, authorize_org, grant_of, may_answer,
};

/// The rows that a request is planned with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskSeen {
    /// The asker.
    pub asker: AskerRow,
    /// The row of the key.
    pub key: Option<KeyRow>,
    /// The session of what it is about, from the stored record.
    pub session: Option<SessionSeen>,
    /// The sender of the message that it is about.
    pub sender: Option<PersonId>,
    /// The terms of the approval that it answers.
    pub terms: Option<ApprovalTerms>,
}

/// Promises that the keeper will see a request.
pub fn ask(seen: &AskSeen, by: &Principal, new: NewRequest) -> Plan<Asked> {
    let (key, at) = (new.key.clone(), new.trail.at);
    let refused = (AuditSubject::named(new.request.subject()), new.trail.clone());
    planned(
        key.as_ref(),
        seen.key.as_ref(),
        at,
        |made| {
            let session = seen.session.as_ref()?.record.session;
            Some(Asked::Waits { request: RequestId::from_bits(made), session })
        },
        || asked(seen, by, new),
        |code| AuditWrite::refused(by, refused.0, refused.1, code),
    )
}

fn asked(seen: &AskSeen, by: &Principal, new: NewRequest) -> Result<Plan<Asked>, Rejection> {
    let NewRequest { id, request, resolved, words, attachments, unfit, opening, words_bytes_max, key, trail } =
        new;
    let what = match request.subject() {
        Subject::Message(_) => "message",
        Subject::Approval(_) => "approval",
        Subject::Session(_) => "session",
    };
    let denied = |denied| Rejection::denied(denied, what);
    let now = asker(&seen.asker, by, trail.at)?;
    // Whose message it is decides which right it takes: that is told only of what the caller may see.
    let there = seen.session.as_ref().filter(|there| grant_of(now, &there.record).is_some());
    let there = there.ok_or(Rejection::NotFound { what })?;
    let act = act_of(&request, seen.sender.unwrap_or(PersonId::ENGINE));
    let allowed = authorize(now, act, &there.record, ()).map_err(denied)?;
    also(now, there, &request, &resolved).map_err(denied)?;
    answerable(now, there, &request, seen.terms)?;
    let session = there.record.session;
    match there.ended {
        // Ending what has ended, or stopping in it, is what the person wanted.
        Some(_) if matches!(request, Request::End { .. } | Request::Stop { .. }) => {
            return Ok(Plan::done(&allowed, Vec::new(), Asked::Over));
        }
        // Its worktrees are still there.
        Some(_) if matches!(&request, Request::Chore { chore, .. } if *chore != Chore::EndBackground) => {}
        Some(why) => return Err(Rejection::Ended { session, why }),
        None => {}
    }
    if let Some(words) = &words {
        taken_by(&there.record.agent, &unfit)?;
        let more = words_bytes(words) + attachments.as_deref().map_or(0, attached_bytes);
        words_fit(there.words_bytes, more, words_bytes_max)?;
    }
    let about = AuditSubject::request(session, &request);
    let (at, by) = (trail.at, now.person);
    let row = RequestWrite { id, session, at, by, request, resolved, words, attachments, opening };
    let mut writes = Vec::with_capacity(3);
    writes.push(Write::Request(Box::new(row)));
    writes.extend(Write::key(now, key, id.bits(), at));
    writes.push(Write::Audit(AuditWrite::done(now, about, trail)));
    Ok(Plan::done(&allowed, writes, Asked::Waits { request: id, session }))
}

/// The right that a request takes; who said the message that it is about has a say in some.
fn act_of(request: &Request, sender: PersonId) -> Act {
    match request {
        Request::Edit { .. } => Act::Reword { sender },
        Request::Withdraw { .. }
        | Request::Hold { .. }
        | Request::Release { there: false, .. }
        | Request::Steer { .. }
        | Request::Interrupt { .. } => Act::Tend { sender },
        // The session goes back with it, so it takes what any change of scope takes.
        Request::Release { there: true, .. }
        | Request::Reorder { .. }
        | Request::ChangeScope { .. }
        | Request::KeepScope { .. }
        | Request::Chore { .. }
        | Request::End { .. } => Act::Manage,
        Request::Stop { .. } | Request::Undo { .. } | Request::Redo { .. } => Act::Say,
        Request::Answer { .. } => Act::Answer,
    }
}

/// The further needs of some requests: the same questions as for a new session, and as for a rule.
fn also(now: &Principal, there: &SessionSeen, request: &Request, resolved: &Resolved) -> Result<(), Denied> {
    let fresh = |agent, directory| Fresh { address: None, agent, directory };
    match request {
        Request::ChangeScope { change: Change::Set { agent: Some(agent), .. }, .. } => {
            authorize_new(now, fresh(agent, None), ()).map(drop)?;
        }
        // The agent is the session's own and was asked about when it was chosen.
        Request::ChangeScope { change: Change::Relink { directory }, .. } => {
            authorize_new(now, fresh("", Some(directory)), ()).map(drop)?;
        }
        _ => {}
    }
    match &resolved.rule {
        Some(rule) if rule.session.is_some() => authorize(now, Act::Manage, &there.record, ()).map(drop),
        Some(_) => authorize_org(now, OrgAct::Rules, ()).map(drop),
        None => Ok(()),
    }
}

/// The people of a rule alone answer what it left to them.
fn answerable(
    now: &Principal,
    there: &SessionSeen,
    request: &Request,
    terms: Option<ApprovalTerms>,
) -> Result<(), Rejection> {
    let Request::Answer { answer, .. } = request else { return Ok(()) };
    let Some((rule, whom)) = terms.and_then(|terms| terms.only) else { return Ok(()) };
    match grant_of(now, &there.record) {
        Some(grant) if may_answer(now, grant, Some(whom), answer) => Ok(()),
        _ => Err(Rejection::NotYoursToAnswer { rule, whom }),
    }
}
