//! The plan of a change: what refuses it although somebody may ask for it, whom it touches, and what is written.

use super::may::{may_change, there};
use super::{
    ChangeRows, HeirLimits, HeirRoom, LinksToDrop, NewLink, NewPerson, OfferRow, OffersToDrop, OwnCredential,
    PeopleChange, PeoplePlan, PeopleRefusal, PeopleWrite, PersonState, Purpose, Resource, RootRow, RuleRow,
    SessionState, TokenRow, TokensToDrop, Touched, may_ask, name_key,
};
use crate::{
    Fresh, Grantee, GroupId, Moment, OrgId, PersonId, Principal, Rights, Role, TokenId, authorize_new,
};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Owners of an org who can come in: there are never fewer, once there were so many.
pub const OWNERS_MIN: u32 = 1;
/// Rules for what agents ask that an org may have: all of them are read for each question.
pub const RULES_MAX: u32 = 1_000;
/// The time that somebody has to accept a session that is offered to them: a week, as with a link that has to reach them.
pub const OFFER_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1_000;

type Planned = Result<PeoplePlan, PeopleRefusal>;

/// The plan of a change, on the rows that `reads_of` names.
pub fn plan_change(by: &Principal, change: &PeopleChange, rows: &ChangeRows, at: Moment) -> Planned {
    may_ask(by, change)?;
    may_change(by, change, rows)?;
    ends_with_its_maker(change, rows)?;
    let org = by.org;
    match change.clone() {
        PeopleChange::MakeOrg { org, link, walled } => {
            is_walled(walled)?;
            is_free("name", rows.org_name)?;
            let mut writes = org_writes(org.org, org.name, org.owner.clone(), org.roots, false, at);
            writes.push(link_made_with(rows.own_credential, org.owner.person, link));
            Ok(quiet(writes))
        }
        PeopleChange::Settings(settings) => Ok(quiet(vec![PeopleWrite::Settings { org, settings }])),
        PeopleChange::AddPerson { person, or_handles, link, walled } => {
            is_walled(walled)?;
            let handle = free_handle(&person, or_handles, rows)?;
            email_is_free(rows, person.person)?;
            let id = person.person;
            let person = kept_form(NewPerson { handle, ..person });
            let person = PeopleWrite::Person { org, person, is_host: false, at };
            Ok(quiet(vec![person, link_made_with(rows.own_credential, id, link)]))
        }
        PeopleChange::ChangePerson { person, name, email, role } => {
            let now = there(rows)?;
            let role = role.filter(|role| *role != now.role);
            if role.is_some() {
                org_keeps_owners(rows, now)?;
            }
            email_is_free(rows, person)?;
            let email = email.map(|email| name_key(&email));
            let touched = role.map(|_| everywhere(Grantee::Person(person)));
            Ok(PeoplePlan::new(touched, vec![PeopleWrite::PersonFields { person, name, email, role }]))
        }
        PeopleChange::SetPassword { person, password, keep, proved } => {
            if password.is_some() && person != by.person {
                return Err(PeopleRefusal::NotTheirPassword);
            }
            if proved.is_some_and(|standing| rows.person.is_none_or(|now| now.standing != standing)) {
                return Err(PeopleRefusal::Changed);
            }
            let drop = PeopleWrite::DropTokens(TokensToDrop::SignInsOf { person, keep });
            Ok(about(person, vec![PeopleWrite::Password { person, password }, drop]))
        }
        PeopleChange::Disable { person } => {
            let now = there(rows)?;
            org_keeps_owners(rows, now)?;
            let disabled = PeopleWrite::DisabledAt { person, at: now.disabled_at.or(Some(at)) };
            let (tokens, links) = (TokensToDrop::Of(person), LinksToDrop::Of(person));
            let drop = [PeopleWrite::DropTokens(tokens), PeopleWrite::DropLinks(links)];
            let offers = PeopleWrite::DropOffers(OffersToDrop::Of(person));
            // What others got by their tokens goes with them.
            let along = along(&rows.tokens, &rows.made_with);
            let writes = [disabled].into_iter().chain(drop).chain([offers]).chain(along).collect();
            Ok(about(person, writes).taking_along(rows.made_with.clone()))
        }
        PeopleChange::Enable { person, walled } => {
            is_walled(walled)?;
            Ok(about(person, vec![PeopleWrite::DisabledAt { person, at: None }]))
        }
        PeopleChange::SetIdentity { person, issuer, subject } => {
            identity_is_free(by, rows, person, &subject)?;
            // Somebody has one name at each provider.
            let drop = PeopleWrite::DropIdentity { person, issuer: issuer.clone() };
            Ok(about(person, vec![drop, PeopleWrite::Identity { person, issuer, subject }]))
        }
        PeopleChange::MakeLink { person, link } => {
            Ok(quiet(vec![link_made_with(rows.own_credential, person, link)]))
        }
        PeopleChange::MakeGroup { group, name } => {
            is_free("name", rows.group_name)?;
            Ok(quiet(vec![PeopleWrite::Group { org, group, name }]))
        }
        PeopleChange::RemoveGroup { group } => {
            is_there(rows.group, "group")?;
            Ok(remove_group(org, group))
        }
        PeopleChange::Join { group, person } => {
            is_there(rows.group, "group or person")?;
            Ok(about(person, vec![PeopleWrite::Member { group, person }]))
        }
        PeopleChange::Leave { group, person } => {
            is_there(rows.group, "group or person")?;
            Ok(about(person, vec![PeopleWrite::DropMember { group, person }]))
        }
        PeopleChange::Give { on, to, grant } => {
            is_there(rows.grantee, "person or group")?;
            let by = by.person;
            Ok(match on {
                Resource::Session(session) => {
                    within(session, to, PeopleWrite::SessionGrant { session, to, grant, by, at })
                }
                // What is given to one closes it to all others.
                Resource::Agent(agent) => {
                    let close = PeopleWrite::CloseAgent { org, agent: agent.clone() };
                    let give = PeopleWrite::AgentGrant { org, agent, to, grant, by, at };
                    PeoplePlan::new(Some(everywhere(Grantee::Org)), vec![close, give])
                }
            })
        }
        // What is given to a group that is gone can still be taken back. An agent on which nothing is left stays closed.
        PeopleChange::TakeBack { on, to } => Ok(match on {
            Resource::Session(session) => within(session, to, PeopleWrite::DropSessionGrant { session, to }),
            Resource::Agent(agent) => {
                let take = PeopleWrite::DropAgentGrant { org, agent, to };
                PeoplePlan::new(Some(everywhere(Grantee::Org)), vec![take])
            }
        }),
        PeopleChange::HandOver { to, .. } => {
            can_own(rows)?;
            let session = can_be_offered(rows, to, at)?;
            let lapsed = PeopleWrite::DropOffers(OffersToDrop::Lapsed(at));
            Ok(quiet(vec![lapsed, offer(session, to, at)]))
        }
        PeopleChange::HandOverAll { from, to } => {
            can_own(rows)?;
            if from == to {
                return Err(PeopleRefusal::OwnsAlready);
            }
            Ok(quiet(hand_over_all(rows, there(rows)?, to, at)))
        }
        PeopleChange::AcceptOffer { within, .. } => {
            if by.role == Role::Viewer {
                return Err(PeopleRefusal::CannotOwn);
            }
            let session = offered(rows, at)?;
            can_take_over(by, session, rows.heir_room, &within)?;
            Ok(quiet(hand_over(session, by.person, at)))
        }
        PeopleChange::DeclineOffer { session } | PeopleChange::TakeOfferBack { session } => {
            offered(rows, at)?;
            Ok(quiet(vec![PeopleWrite::DropOffers(OffersToDrop::One(session))]))
        }
        PeopleChange::AddRoot(root) => {
            is_there(rows.grantee, "person or group")?;
            let touched = everywhere(root.to);
            Ok(PeoplePlan::new(Some(touched), vec![PeopleWrite::Root { org, root }]))
        }
        PeopleChange::RemoveRoot(root) => {
            is_there(rows.grantee, "person or group")?;
            let touched = everywhere(root.to);
            Ok(PeoplePlan::new(Some(touched), vec![PeopleWrite::DropRoot { org, root }]))
        }
        PeopleChange::MakeToken(token) => {
            let row = made_with(rows.own_credential, token.row(by.person, at));
            Ok(quiet(vec![PeopleWrite::Token(row)]))
        }
        PeopleChange::RevokeToken { token } => {
            let holder = rows.token.ok_or(PeopleRefusal::NotFound("token"))?.person.person;
            let one = [PeopleWrite::DropTokens(TokensToDrop::One(token))];
            let drops = one.into_iter().chain(along(&[token], &rows.made_with)).collect();
            Ok(about(holder, drops).taking_along(rows.made_with.clone()))
        }
        PeopleChange::AddRule(rule) => {
            can_be_ruled(by, &rule, rows)?;
            Ok(quiet(rule_writes(org, rule, at)))
        }
        PeopleChange::RemoveRule(rule) => Ok(quiet(vec![PeopleWrite::DropRule(rule)])),
    }
}

// What refuses.

/// A password, and the name or address by which an identity provider vouches for somebody, let them in for good: what a token made
/// could not go with it. So it takes a sign-in that is none of a token's making, or the machine's own credential.
fn ends_with_its_maker(change: &PeopleChange, rows: &ChangeRows) -> Result<(), PeopleRefusal> {
    let lets_in = match change {
        PeopleChange::SetPassword { password, .. } => password.is_some(),
        PeopleChange::ChangePerson { email, .. } => email.is_some(),
        PeopleChange::SetIdentity { .. } => true,
        _ => false,
    };
    let is_of_token = rows.own_credential.and_then(parent_of).is_some();
    if lets_in && is_of_token { Err(PeopleRefusal::NeedsSignIn) } else { Ok(()) }
}

/// Nobody else is let in while agents can read what is not theirs.
fn is_walled(walled: bool) -> Result<(), PeopleRefusal> {
    if walled { Ok(()) } else { Err(PeopleRefusal::NotWalled) }
}

fn is_there(is: bool, what: &'static str) -> Result<(), PeopleRefusal> {
    if is { Ok(()) } else { Err(PeopleRefusal::NotFound(what)) }
}

fn is_free(what: &'static str, taken: bool) -> Result<(), PeopleRefusal> {
    if taken { Err(PeopleRefusal::Taken(what)) } else { Ok(()) }
}

/// The first of somebody's handles that nobody has.
fn free_handle(
    person: &NewPerson,
    or_handles: Vec<String>,
    rows: &ChangeRows,
) -> Result<String, PeopleRefusal> {
    let wanted = [person.handle.clone()].into_iter().chain(or_handles);
    let free = wanted.zip(&rows.handles).find(|(_, taken)| !**taken);
    free.map(|(handle, _)| handle).ok_or(PeopleRefusal::Taken("handle"))
}

fn email_is_free(rows: &ChangeRows, whose: PersonId) -> Result<(), PeopleRefusal> {
    is_free("email", rows.email.is_some_and(|holder| holder != whose))
}

/// Only somebody who looks after them may put another name in the place of theirs.
fn identity_is_free(
    by: &Principal,
    rows: &ChangeRows,
    person: PersonId,
    subject: &str,
) -> Result<(), PeopleRefusal> {
    let is_another = rows.subject.as_ref().is_some_and(|theirs| theirs != subject);
    let is_kept = [person, PersonId::ENGINE].contains(&by.person) && is_another;
    is_free("identity", is_kept || rows.identity.is_some_and(|holder| holder != person))
}

/// An owner who can come in goes only if enough others stay.
fn org_keeps_owners(rows: &ChangeRows, goes: PersonState) -> Result<(), PeopleRefusal> {
    let counts = goes.role == Role::Owner && !goes.is_disabled();
    if counts && rows.owners <= OWNERS_MIN { Err(PeopleRefusal::LastOwner) } else { Ok(()) }
}

/// Somebody who is disabled or only looks could do nothing with a session, and nobody else could for them.
fn can_own(rows: &ChangeRows) -> Result<(), PeopleRefusal> {
    let heir = rows.heir.ok_or(PeopleRefusal::NotFound("person"))?;
    if heir.is_disabled() || heir.role == Role::Viewer { Err(PeopleRefusal::CannotOwn) } else { Ok(()) }
}

/// An open session that is somebody else's, and that nobody thinks about already.
fn can_be_offered(rows: &ChangeRows, to: PersonId, at: Moment) -> Result<&SessionState, PeopleRefusal> {
    let session = rows.session.as_ref().ok_or(PeopleRefusal::NotFound("session"))?;
    if let Some(why) = session.ended {
        return Err(PeopleRefusal::Ended(session.record.session, why));
    }
    if session.record.owner == to {
        return Err(PeopleRefusal::OwnsAlready);
    }
    let is_open = rows.offer.is_some_and(|offer| offer.stands(session.ended, at));
    if is_open { Err(PeopleRefusal::OfferedAlready) } else { Ok(session) }
}

/// The session of an offer that stands.
fn offered(rows: &ChangeRows, at: Moment) -> Result<&SessionState, PeopleRefusal> {
    let none = PeopleRefusal::NotFound("offer");
    let (session, offer) = rows.session.as_ref().zip(rows.offer).ok_or(none)?;
    if offer.stands(session.ended, at) { Ok(session) } else { Err(none) }
}

/// Whoever takes a session over could have made it: its agent and its directory are theirs to choose, and there is room.
fn can_take_over(
    by: &Principal,
    session: &SessionState,
    has: HeirRoom,
    within: &HeirLimits,
) -> Result<(), PeopleRefusal> {
    let directory = (session.directory != within.own_directory).then_some(&session.directory);
    // The yes itself takes another right of the credential; this asks what the person may use.
    let person = Principal { rights: Rights::ALL, bound: None, client: None, ..by.clone() };
    let fresh = Fresh { address: None, agent: &session.record.agent, directory };
    authorize_new(&person, fresh, ()).map_err(PeopleRefusal::Denied)?;
    if has.open >= within.open_max {
        return Err(PeopleRefusal::TooManyOpen { limit: within.open_max });
    }
    if has.words_bytes.saturating_add(session.words_bytes) > within.words_bytes_max {
        let (used, limit) = (has.words_bytes, within.words_bytes_max);
        return Err(PeopleRefusal::TooManyWords { used, limit });
    }
    Ok(())
}

fn can_be_ruled(by: &Principal, rule: &RuleRow, rows: &ChangeRows) -> Result<(), PeopleRefusal> {
    if let Some(session) = &rows.session
        && let Some(why) = session.ended
    {
        return Err(PeopleRefusal::Ended(session.record.session, why));
    }
    let asks = !matches!(rule.effect, super::RuleEffect::Ask(_)) || rows.grantee;
    is_there(rule.by == by.person && asks, "rule")?;
    if rows.rules >= RULES_MAX {
        return Err(PeopleRefusal::TooManyRules);
    }
    // It would never count, and whoever makes it would believe that it does.
    if rule.is_over(rule.since) { Err(PeopleRefusal::Over) } else { Ok(()) }
}

// Whom it touches, and what is written.

/// A plan after which everybody may do what they could before.
fn quiet(writes: Vec<PeopleWrite>) -> PeoplePlan {
    PeoplePlan::new(None, writes)
}

fn about(person: PersonId, writes: Vec<PeopleWrite>) -> PeoplePlan {
    PeoplePlan::new(Some(everywhere(Grantee::Person(person))), writes)
}

fn everywhere(who: Grantee) -> Touched {
    Touched { people: vec![who], within: None }
}

/// The token that something goes with: what was made with a token is no way to outlast it, it ends with it at the latest, and is
/// revoked with it. What somebody makes who has signed in, or has the machine's own credential, stands for itself, unless they
/// came in by what a token made.
fn parent_of(maker: OwnCredential) -> Option<TokenId> {
    match maker.purpose {
        Purpose::Api => Some(maker.token),
        Purpose::Machine | Purpose::Browser | Purpose::Cli | Purpose::Turn => maker.parent,
    }
}

pub(super) fn made_with(maker: Option<OwnCredential>, row: TokenRow) -> TokenRow {
    let Some((maker, parent)) = maker.and_then(|maker| Some((maker, parent_of(maker)?))) else { return row };
    let expires = [row.expires, maker.expires].into_iter().flatten().min();
    TokenRow { parent: Some(parent), expires, ..row }
}

fn link_made_with(maker: Option<OwnCredential>, person: PersonId, link: NewLink) -> PeopleWrite {
    let parent = maker.and_then(parent_of);
    let ends = maker.filter(|_| parent.is_some()).and_then(|maker| maker.expires);
    let expires = ends.map_or(link.expires, |ends| ends.min(link.expires));
    PeopleWrite::Link { person, link: NewLink { expires, ..link }, parent }
}

/// The credentials that were made with those that go, and the links of all of them.
fn along(tokens: &[TokenId], made_with: &[TokenId]) -> Vec<PeopleWrite> {
    let made = made_with.iter().map(|token| PeopleWrite::DropTokens(TokensToDrop::One(*token)));
    let all = tokens.iter().chain(made_with);
    made.chain(all.map(|token| PeopleWrite::DropLinks(LinksToDrop::MadeWith(*token)))).collect()
}

fn within(session: crate::SessionId, who: Grantee, write: PeopleWrite) -> PeoplePlan {
    let touched = Touched { people: vec![who], within: Some(session) };
    PeoplePlan::new(Some(touched), vec![write])
}

fn offer(session: &SessionState, to: PersonId, at: Moment) -> PeopleWrite {
    let (session, from) = (session.record.session, session.record.owner);
    PeopleWrite::Offer(OfferRow { session, from, to, at, until: at.after_ms(OFFER_MS_MAX) })
}

/// Another owner, to whom alone it belongs. Its keeper ends what waits and what runs: that was said to somebody else's agent.
fn hand_over(session: &SessionState, to: PersonId, at: Moment) -> Vec<PeopleWrite> {
    let is_open = session.ended.is_none();
    let session = session.record.session;
    let mut writes = vec![
        PeopleWrite::Owner { session, to },
        PeopleWrite::DropGrantsOn(session),
        PeopleWrite::DropOffers(OffersToDrop::One(session)),
    ];
    // Nothing goes on in one that has ended.
    writes.extend(is_open.then_some(PeopleWrite::TellOwner { session, to, at }));
    writes
}

/// Whoever can still come in keeps their sessions until the other says yes.
fn hand_over_all(rows: &ChangeRows, from: PersonState, to: PersonId, at: Moment) -> Vec<PeopleWrite> {
    let all = rows.owned.iter();
    if from.is_disabled() {
        return all.flat_map(|(session, _)| hand_over(session, to, at)).collect();
    }
    let is_free = |offer: Option<OfferRow>| offer.is_none_or(|offer| !offer.stands(None, at));
    let free = all.filter(|(session, offer)| session.ended.is_none() && is_free(*offer));
    free.map(|(session, _)| offer(session, to, at)).collect()
}

fn remove_group(org: OrgId, group: GroupId) -> PeoplePlan {
    let to = Grantee::Group(group);
    let writes = vec![
        PeopleWrite::DropGrantsTo { org, to },
        PeopleWrite::DropRootsOf { org, to },
        PeopleWrite::DropGroup { org, group },
    ];
    PeoplePlan::new(Some(everywhere(to)), writes)
}

/// A rule for what agents ask; those of the org whose time is over make room for it.
pub fn rule_writes(org: OrgId, rule: RuleRow, at: Moment) -> Vec<PeopleWrite> {
    vec![PeopleWrite::DropRulesOver { org, at }, PeopleWrite::Rule { org, rule }]
}

/// Somebody as they are kept.
fn kept_form(person: NewPerson) -> NewPerson {
    NewPerson { email: person.email.map(|email| name_key(&email)), ..person }
}

pub(super) fn org_writes(
    org: OrgId,
    name: String,
    owner: NewPerson,
    roots: Vec<String>,
    is_host: bool,
    at: Moment,
) -> Vec<PeopleWrite> {
    let to = Grantee::Person(owner.person);
    let made = PeopleWrite::Org { org, name, at };
    let owner = PeopleWrite::Person { org, person: kept_form(owner), is_host, at };
    let roots = roots.into_iter().map(|directory| {
        let root = RootRow { directory, to };
        PeopleWrite::Root { org, root }
    });
    [made, owner].into_iter().chain(roots).collect()
}
