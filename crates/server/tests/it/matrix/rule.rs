//! The answer that is due, said a second time and by itself: who the caller is, how they stand to a thing, and what an
//! operation takes. Nothing here asks the product.

use kernel::{Grant, Right, Rights, Role};

/// The caller, as far as the rule is concerned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Is {
    /// True if the credential is good for anything at all.
    pub(super) alive: bool,
    pub(super) role: Role,
    pub(super) host: bool,
    pub(super) rights: Rights,
    pub(super) bound: Bound,
    /// True if they have signed in, or have the machine's own credential; else it is a token for a program.
    pub(super) signed_in: bool,
    /// True if they are of the first org, in which the agents' doors are.
    pub(super) first_org: bool,
}

/// The turn that a credential is bound to, if it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    No,
    /// For a turn of the very session that it is used on.
    Here,
    /// For a turn of another one.
    Elsewhere,
}

/// The caller's standing to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Stands {
    Own,
    Person(Grant),
    Group(Grant),
    Org(Grant),
    /// Theirs once; handed over since.
    WasOwn,
    /// Theirs once; handed over since, and given back to look at.
    WasOwnViews,
    /// Theirs, and its agent is one that they may not use.
    OwnOfClosedAgent,
    Foreign,
    OtherOrg,
    Unknown,
}

/// A session and whose message of it is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) stands: Stands,
    pub(super) ended: bool,
    /// True if the caller said the message.
    pub(super) mine: bool,
}

/// Somebody whom an operation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Whom {
    Me,
    Of(Role),
    OtherOrg,
    Unknown,
}

/// Something of an org that has a name or an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Which {
    Ours,
    OtherOrg,
    Unknown,
}

/// An agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Agent {
    /// Nothing was ever given on it.
    Open,
    /// Given to somebody else only.
    Closed,
    /// Everybody may look at it.
    Looked,
    /// Everybody may use it.
    Lent,
    Unknown,
}

/// The target that is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Target {
    Nothing,
    Session(Spot),
    Person(Whom),
    Token(Whom),
    Group(Which),
    /// A group and somebody.
    Membership(Which, Whom),
    /// Something is given to them.
    To(Which),
    /// A rule of the org.
    Rule(Which),
    Agent(Agent),
    /// The conversation or the directory is theirs.
    Theirs(bool),
}

/// The right that an operation takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Takes {
    /// Nothing: it is open, and this is the answer.
    Open(u16, Option<&'static str>),
    /// Any good credential.
    Credential,
    /// The right to read. What it says is looked at elsewhere.
    Read,
    /// The right to read, of whoever's machine it is.
    Figures,
    /// A stream that watches a session: whoever may read gets one, and what it says of a session that they do not see is that it is
    /// gone.
    Watch,
    /// Where a message would go.
    Explain,
    /// A session: which right, which grant, and whether it has to be open.
    Session {
        right: Right,
        grant: Grant,
        open: bool,
        uses_agent: bool,
    },
    /// A session that is offered to them: they are no viewer, and somebody else's open session is.
    Offered,
    /// To say something. Whoever sees the session is told first that it has ended.
    Say,
    /// To withdraw, hold, release or hear at once: their own message as whoever prompts, another's as whoever manages.
    Tend,
    /// Other words: nobody's but the sender's.
    Reword,
    /// Another agent or directory for a session: to rule it, and what a new one of that kind takes.
    Rescope(Target),
    /// A session of their own from what another one has said: to say something there, and to make a session. Where it acts is
    /// theirs if they own the other one; a directory of that one's own is nobody else's to choose.
    Fork,
    /// A new session with some agent, in some conversation or directory.
    Make,
    /// To answer so that it holds from now on in the session: what answering takes, and managing it besides.
    AnswerForGood,
    /// The right it takes, one of two, depends on the rule, so that is looked up with either; these are the org's.
    RemoveRule,
    /// Something about the org.
    Org {
        right: Right,
        role: Role,
    },
    /// Whoever's machine it is.
    Host,
    /// Somebody; whether one may do it to oneself, and what they become.
    Person {
        myself: bool,
        becomes: Option<Role>,
    },
    /// To see somebody.
    SeePerson,
    /// To make a credential with these rights.
    Mint(Rights),
    /// A password of one's own: it is good for everything and for good, so it takes all rights, and no token.
    OwnPassword,
    /// Another e-mail address of somebody, by which they may be vouched for: no token changes it.
    TheirEmail,
    /// To make what lets somebody in: it is good for everything, so whoever makes it has to be.
    LetIn,
    RevokeToken,
    /// One's own sign-in for an agent: to see it, or to set it.
    Account {
        right: Right,
    },
    /// A grant on an agent; whether it has to be there.
    OnAgent {
        there: bool,
    },
}

/// A status, and the code of a problem.
pub(super) type Answer = (u16, Option<&'static str>);

const GONE: Answer = (404, Some("not_found"));
const RIGHT: Answer = (403, Some("right_missing"));
const ROLE: Answer = (403, Some("role_too_low"));
const BOUND: Answer = (403, Some("bound_elsewhere"));

/// The answer that is due; `fine` is the answer to what may be done.
pub(super) fn expected(takes: Takes, is: &Is, target: Target, fine: u16) -> Answer {
    if let Takes::Open(status, code) = takes {
        return (status, code);
    }
    if !is.alive {
        return (401, Some("unauthenticated"));
    }
    let answer = match (takes, target) {
        (Takes::Credential, _) => Ok(()),
        (Takes::Read, _) => right(is, Right::Read),
        (Takes::Figures, _) => right(is, Right::Read).and_then(|()| unbound(is)).and_then(|()| host(is)),
        (Takes::Watch, Target::Session(spot)) => {
            let watched = match session(is, spot, Right::Read, Grant::View) {
                Err(GONE) => (fine, Some("gone")),
                _ => (fine, None),
            };
            return right(is, Right::Read).map_or_else(|no| no, |()| watched);
        }
        (Takes::Explain, Target::Session(spot)) => return explain(is, spot),
        (Takes::Session { right, grant, open, uses_agent }, Target::Session(spot)) => {
            session(is, spot, right, grant)
                .and_then(|()| agent_of(is, spot, uses_agent))
                .and_then(|()| is_open(spot, open))
        }
        (Takes::Offered, Target::Session(spot)) => {
            unbound(is).and_then(|()| right(is, Right::Manage)).and_then(|()| offered(is, spot))
        }
        (Takes::Say, Target::Session(spot)) => session(is, spot, Right::Prompt, Grant::View)
            .and_then(|()| is_open(spot, true))
            .and_then(|()| session(is, spot, Right::Prompt, Grant::Prompt))
            .and_then(|()| agent_of(is, spot, true)),
        (Takes::Tend, Target::Session(spot)) => tend(is, spot).and_then(|()| is_open(spot, true)),
        (Takes::Reword, Target::Session(spot)) => {
            let mine = if spot.mine { Ok(()) } else { Err((403, Some("not_your_words"))) };
            session(is, spot, Right::Prompt, Grant::Prompt).and(mine).and_then(|()| is_open(spot, true))
        }
        (Takes::Rescope(to), Target::Session(spot)) => session(is, spot, Right::Manage, Grant::Manage)
            .and_then(|()| make(is, to))
            .and_then(|()| is_open(spot, true)),
        (Takes::Fork, Target::Session(spot)) => fork(is, spot),
        (Takes::AnswerForGood, Target::Session(spot)) => session(is, spot, Right::Approve, Grant::Prompt)
            .and_then(|()| session(is, spot, Right::Manage, Grant::Manage))
            .and_then(|()| is_open(spot, true)),
        (Takes::RemoveRule, target) => {
            let either = is.rights.has(Right::Admin) || is.rights.has(Right::Manage);
            let found = if target == Target::Rule(Which::Ours) { Ok(()) } else { Err(GONE) };
            unbound(is)
                .and(if either { Ok(()) } else { Err(RIGHT) })
                .and(found)
                .and_then(|()| right(is, Right::Admin))
                .and_then(|()| role(is, Role::Admin))
        }
        (Takes::Make, target) => make(is, target),
        (Takes::Org { right: needs, role: least }, target) => unbound(is)
            .and_then(|()| right(is, needs))
            .and_then(|()| role(is, least))
            .and_then(|()| there(target)),
        (Takes::Host, _) => unbound(is).and_then(|()| right(is, Right::Admin)).and_then(|()| host(is)),
        (Takes::Person { myself, becomes }, target) => person(is, target, myself, becomes),
        (Takes::SeePerson, target) => {
            unbound(is).and_then(|()| right(is, Right::Read)).and_then(|()| there(target))
        }
        (Takes::Mint(rights), _) => {
            let more = if rights.iter().all(|right| is.rights.has(right)) { Ok(()) } else { Err(RIGHT) };
            unbound(is).and_then(|()| right(is, Right::Admin)).and(more)
        }
        (Takes::OwnPassword, _) => {
            let whole = if is.rights == Rights::ALL { Ok(()) } else { Err(RIGHT) };
            unbound(is).and(whole).and_then(|()| signed_in(is))
        }
        (Takes::TheirEmail, target) => person(is, target, false, None).and_then(|()| signed_in(is)),
        (Takes::LetIn, target) => {
            let whole = if is.rights == Rights::ALL { Ok(()) } else { Err(RIGHT) };
            unbound(is).and(whole).and_then(|()| person(is, target, true, None))
        }
        (Takes::RevokeToken, Target::Token(whom)) => {
            let held = match whom {
                Whom::Me => true,
                Whom::Of(theirs) => is.role >= Role::Admin && is.role >= theirs,
                Whom::OtherOrg | Whom::Unknown => false,
            };
            let found = if held { Ok(()) } else { Err(GONE) };
            unbound(is).and_then(|()| right(is, Right::Admin)).and(found)
        }
        (Takes::Account { right: Right::Read }, Target::Agent(agent)) => {
            right(is, Right::Read).and_then(|()| unbound(is)).and_then(|()| sees(is, agent))
        }
        (Takes::Account { right: needs }, Target::Agent(agent)) => {
            unbound(is).and_then(|()| right(is, needs)).and_then(|()| sees(is, agent))
        }
        (Takes::OnAgent { there }, Target::Agent(agent)) => {
            let known =
                if there && agent == Agent::Unknown { Err((409, Some("unknown_agent"))) } else { Ok(()) };
            unbound(is).and_then(|()| right(is, Right::Admin)).and_then(|()| role(is, Role::Admin)).and(known)
        }
        (takes, target) => panic!("{takes:?} of {target:?} means nothing"),
    };
    answer.map_or_else(|no| no, |()| (fine, None))
}

type Step = Result<(), Answer>;

fn right(is: &Is, right: Right) -> Step {
    if is.rights.has(right) { Ok(()) } else { Err(RIGHT) }
}

fn role(is: &Is, least: Role) -> Step {
    if is.role >= least { Ok(()) } else { Err(ROLE) }
}

fn host(is: &Is) -> Step {
    if is.host { Ok(()) } else { Err(ROLE) }
}

fn unbound(is: &Is) -> Step {
    if is.bound == Bound::No { Ok(()) } else { Err(BOUND) }
}

fn signed_in(is: &Is) -> Step {
    if is.signed_in { Ok(()) } else { Err((403, Some("needs_sign_in"))) }
}

fn there(target: Target) -> Step {
    match target {
        Target::Nothing | Target::Group(Which::Ours) | Target::To(Which::Ours) => Ok(()),
        Target::Person(Whom::Me | Whom::Of(_)) => Ok(()),
        // To be told nothing by a credential takes no credential: whoever's it is, and if there is none, one is not told by it.
        Target::Token(_) => Ok(()),
        _ => Err(GONE),
    }
}

/// Somebody's grant on a session; none if it is not there for them.
fn grant(is: &Is, stands: Stands) -> Option<Grant> {
    let given = match stands {
        Stands::Own | Stands::OwnOfClosedAgent => Grant::Manage,
        Stands::Person(grant) | Stands::Group(grant) | Stands::Org(grant) => grant,
        Stands::WasOwnViews => Grant::View,
        Stands::WasOwn | Stands::Foreign | Stands::OtherOrg | Stands::Unknown => return None,
    };
    let reaches = is.bound != Bound::Elsewhere;
    let ceiling = if is.role == Role::Viewer { Grant::View } else { Grant::Manage };
    reaches.then(|| given.min(ceiling))
}

fn session(is: &Is, spot: Spot, needs: Right, least: Grant) -> Step {
    right(is, needs)?;
    match grant(is, spot.stands) {
        None => Err(GONE),
        Some(has) if has < least => Err((403, Some("not_allowed"))),
        Some(_) => Ok(()),
    }
}

/// Nothing is offered to a viewer, nor to whose it is, nor to somebody of another org.
fn offered(is: &Is, spot: Spot) -> Step {
    let others =
        matches!(spot.stands, Stands::Person(_) | Stands::Group(_) | Stands::Org(_) | Stands::Foreign);
    if others && !spot.ended && is.role > Role::Viewer { Ok(()) } else { Err(GONE) }
}

fn agent_of(is: &Is, spot: Spot, uses_agent: bool) -> Step {
    let closed = spot.stands == Stands::OwnOfClosedAgent && is.role < Role::Admin;
    if uses_agent && closed { Err((403, Some("agent_not_yours"))) } else { Ok(()) }
}

fn is_open(spot: Spot, open: bool) -> Step {
    if open && spot.ended { Err((409, Some("session_ended"))) } else { Ok(()) }
}

fn tend(is: &Is, spot: Spot) -> Step {
    if !is.rights.has(Right::Prompt) && !is.rights.has(Right::Manage) {
        return Err(RIGHT);
    }
    if grant(is, spot.stands).is_none() {
        return Err(GONE);
    }
    match spot.mine {
        true => session(is, spot, Right::Prompt, Grant::Prompt),
        false => session(is, spot, Right::Manage, Grant::Manage),
    }
}

fn explain(is: &Is, spot: Spot) -> Answer {
    match (right(is, Right::Read), grant(is, spot.stands)) {
        (Err(no), _) => no,
        (Ok(()), None) => (200, Some("not_found")),
        (Ok(()), Some(_)) if spot.ended => (200, Some("session_ended")),
        (Ok(()), Some(_)) => (200, None),
    }
}

fn make(is: &Is, target: Target) -> Step {
    right(is, Right::Prompt)?;
    role(is, Role::Member)?;
    unbound(is)?;
    match target {
        Target::Nothing | Target::Agent(Agent::Open | Agent::Lent) => Ok(()),
        // The doors were shut in the first org only.
        Target::Agent(Agent::Closed | Agent::Looked) if is.role >= Role::Admin || !is.first_org => Ok(()),
        Target::Agent(Agent::Looked) => Err((403, Some("agent_not_yours"))),
        Target::Agent(Agent::Closed | Agent::Unknown) => Err((409, Some("unknown_agent"))),
        Target::Theirs(true) => Ok(()),
        // A conversation says so by its address, a directory is under none of theirs.
        Target::Theirs(false) => Err((403, None)),
        target => panic!("no session is made for {target:?}"),
    }
}

fn fork(is: &Is, spot: Spot) -> Step {
    session(is, spot, Right::Prompt, Grant::Prompt)?;
    agent_of(is, spot, true)?;
    role(is, Role::Member)?;
    unbound(is)?;
    // The turn of an open one is under way, and there is nothing to begin from.
    if !spot.ended {
        return Err(GONE);
    }
    let owns = matches!(spot.stands, Stands::Own | Stands::OwnOfClosedAgent);
    if owns { Ok(()) } else { Err((403, Some("directory_not_yours"))) }
}

fn sees(is: &Is, agent: Agent) -> Step {
    match agent {
        Agent::Open | Agent::Looked | Agent::Lent => Ok(()),
        Agent::Closed if is.role >= Role::Admin || !is.first_org => Ok(()),
        Agent::Closed | Agent::Unknown => Err(GONE),
    }
}

fn person(is: &Is, target: Target, myself: bool, becomes: Option<Role>) -> Step {
    let (whom, which) = match target {
        Target::Person(whom) => (whom, Which::Ours),
        Target::Membership(which, whom) => (whom, which),
        target => panic!("{target:?} is nobody"),
    };
    unbound(is)?;
    right(is, Right::Admin)?;
    if whom == Whom::Me && myself {
        return Ok(());
    }
    role(is, Role::Admin)?;
    let theirs = match whom {
        Whom::Me => is.role,
        Whom::Of(role) => role,
        Whom::OtherOrg | Whom::Unknown => return Err(GONE),
    };
    role(is, theirs.max(becomes.unwrap_or(theirs)))?;
    if which == Which::Ours { Ok(()) } else { Err(GONE) }
}
