//! Callers: people of every role with credentials of every kind, and some that nobody should let in.

use super::rule::{Bound, Is};
use crate::town::Town;
use crate::world::{Somebody, trace};
use engine::Purpose;
use kernel::{GroupId, Moment, Right, Rights, Role, Turn};

/// Somebody who asks.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) name: String,
    pub(super) is: Is,
    /// The person, with a credential that is good for everything.
    pub(super) person: Somebody,
    /// The credential they ask with.
    pub(super) token: Option<String>,
    /// In which org.
    pub(super) place: usize,
    pub(super) tries: Tries,
}

/// The ways to stand to a session that are tried with somebody: all, some of each sort, or only what decides about
/// credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tries {
    Few,
    Some,
    All,
}

/// An org, and who helps in it.
#[derive(Debug)]
pub(super) struct Place {
    /// Can do everything in it.
    pub(super) owner: Somebody,
    /// Has sessions that are given to others.
    pub(super) giver: Somebody,
    /// Has none, and may be handed one.
    pub(super) heir: Somebody,
    /// Everybody who asks is in it.
    pub(super) group: GroupId,
}

pub(super) async fn places(town: &Town) -> Vec<Place> {
    let second = town.org("second", "olga").await;
    let mut places = Vec::new();
    for owner in [town.host.clone(), second] {
        let giver = town.person(&owner, "giver", Role::Member).await;
        let heir = town.person(&owner, "heir", Role::Member).await;
        let by = town.now(&owner).await;
        let group = town.engine.people().make_group(&by, "crew".into(), trace()).await.unwrap().group;
        town.engine.people().join(&by, group, owner.by.person, trace()).await.unwrap();
        places.push(Place { owner, giver, heir, group });
    }
    places
}

/// Everybody who asks.
pub(super) async fn callers(town: &Town, places: &[Place]) -> Vec<Caller> {
    let mut callers = Vec::new();
    for role in [Role::Viewer, Role::Member, Role::Admin, Role::Owner] {
        let handle = format!("{role:?}").to_lowercase();
        let person = join(town, &places[0], &handle, role).await;
        for (name, rights) in credentials() {
            let with = town.token(&person, rights).await;
            let tries = match (role, rights == Rights::ALL) {
                (_, true) => Tries::All,
                (Role::Member, false) => Tries::Some,
                (_, false) => Tries::Few,
            };
            let is = Is { rights, ..plain(role) };
            let name = format!("{handle} with {name}");
            let token = Some(with.token);
            callers.push(Caller { name, is, person: person.clone(), token, place: 0, tries });
        }
        let token = Some(town.credential(&person, Purpose::Cli, |_| {}).await.token);
        let is = Is { signed_in: true, ..plain(role) };
        callers.push(Caller {
            name: format!("{handle}, signed in"),
            is,
            person,
            token,
            place: 0,
            tries: Tries::Few,
        });
    }
    callers.extend(odd_ones(town, places, &callers).await);
    callers
}

async fn join(town: &Town, place: &Place, handle: &str, role: Role) -> Somebody {
    let person = town.person(&place.owner, handle, role).await;
    let by = town.now(&place.owner).await;
    town.engine.people().join(&by, place.group, person.by.person, trace()).await.unwrap();
    person
}

fn plain(role: Role) -> Is {
    let (rights, bound) = (Rights::ALL, Bound::No);
    Is { alive: true, role, host: false, rights, bound, signed_in: false, first_org: true }
}

fn only(right: Right) -> Rights {
    Rights::NONE.with(right)
}

/// Good for everything, for one thing, for everything but one.
fn credentials() -> Vec<(String, Rights)> {
    let mut all = vec![("every right".to_owned(), Rights::ALL)];
    for right in Right::ALL {
        let word = engine::right_word(right);
        all.push((format!("{word} only"), only(right)));
        let others = Right::ALL.into_iter().filter(|other| *other != right).collect();
        all.push((format!("all but {word}"), others));
    }
    all
}

async fn odd_ones(town: &Town, places: &[Place], usual: &[Caller]) -> Vec<Caller> {
    let member = usual.iter().find(|caller| caller.name == "member with every right").unwrap();
    let named = |name: &str, is: Is, person: &Somebody, token: Option<String>| Caller {
        name: name.to_owned(),
        is,
        person: person.clone(),
        token,
        place: 0,
        tries: Tries::All,
    };
    let owner = Is { host: true, ..plain(Role::Owner) };
    let machine = Is { signed_in: true, ..owner };
    let host = town.token(&town.host, Rights::ALL).await;
    let turn = Rights::NONE.with(Right::Read).with(Right::Prompt);
    let bound = |bound| Is { rights: turn, bound, ..plain(Role::Member) };
    let other = &places[1].owner;
    let second = Is { first_org: false, signed_in: true, ..plain(Role::Owner) };
    let mut odd = vec![
        named("the host", owner, &town.host, Some(host.token)),
        Caller {
            tries: Tries::Few,
            ..named("the machine", machine, &town.host, Some(town.host.token.clone()))
        },
        Caller { place: 1, ..named("another org's owner", second, other, Some(other.token.clone())) },
        named("a turn, here", bound(Bound::Here), &member.person, None),
        named(
            "a turn, elsewhere",
            bound(Bound::Elsewhere),
            &member.person,
            Some(elsewhere(town, member).await),
        ),
    ];
    let dead = Is { alive: false, ..plain(Role::Member) };
    for (name, token) in dead_ones(town, places, member).await {
        odd.push(Caller { tries: Tries::Few, ..named(name, dead, &member.person, token) });
    }
    odd
}

/// The credential of a turn that is under way in some other session.
async fn elsewhere(town: &Town, member: &Caller) -> String {
    let busy = town.busy(&member.person, None).await;
    let made = town.credential(&member.person, Purpose::Turn, |row| {
        row.bound = Some((busy.session, Turn(1)));
        row.rights = Rights::NONE.with(Right::Read).with(Right::Prompt);
    });
    made.await.token
}

async fn dead_ones(town: &Town, places: &[Place], member: &Caller) -> Vec<(&'static str, Option<String>)> {
    let by = town.now(&places[0].owner).await;
    let expired = town.credential(&member.person, Purpose::Api, |row| row.expires = Some(Moment(1)));
    let expired = expired.await.token;
    let revoked = town.token(&member.person, Rights::ALL).await;
    town.engine.people().revoke_token(&by, revoked.by.credential.unwrap(), trace()).await.unwrap();
    let disabled = join(town, &places[0], "gone", Role::Member).await;
    town.engine.people().disable(&by, disabled.by.person, trace()).await.unwrap();
    let over = town.busy(&member.person, None).await;
    let turn =
        town.credential(&member.person, Purpose::Turn, |row| row.bound = Some((over.session, Turn(1))));
    let turn = turn.await.token;
    town.end(&member.person, over.session).await;
    vec![
        ("nobody", None),
        ("somebody unknown", Some("hmg_a_never-minted".to_owned())),
        ("an expired credential", Some(expired)),
        ("a revoked credential", Some(revoked.token)),
        ("a disabled person", Some(disabled.token)),
        ("a turn that is over", Some(turn)),
    ]
}

/// Somebody like the caller, whom nobody needs any more.
pub(super) async fn like(town: &Town, places: &[Place], caller: &Caller, handle: &str) -> Caller {
    let person = join(town, &places[caller.place], handle, caller.is.role).await;
    let another = Caller { person, ..caller.clone() };
    let token = match caller.is.bound {
        Bound::No if caller.is.signed_in => {
            town.credential(&another.person, Purpose::Cli, |_| {}).await.token
        }
        Bound::No => town.token(&another.person, caller.is.rights).await.token,
        Bound::Here | Bound::Elsewhere => elsewhere(town, &another).await,
    };
    Caller { token: Some(token), ..another }
}
