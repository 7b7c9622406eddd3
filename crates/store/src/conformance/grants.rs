//! Promises of `change`: each change of who may do what, what refuses it, whom it touches, and that lists, reads and
//! the kernel's rule never disagree about who sees what.

use super::Fixture;
use super::rules::{rul, rule};
use super::story::*;
use crate::*;
use kernel::{
    Fact, Grant, Grantee, Moment, Number, PersonId, Principal, Right, Rights, Role, SessionId, To, Turn,
    grant_of,
};
use std::collections::{BTreeMap, BTreeSet};

/// Another owner of my org, so that I am not the last one.
fn partner() -> Principal {
    let person = PersonId::from_bits(4);
    Principal { person, handle: "partner".into(), is_host: false, roots: vec![], ..me() }
}

fn add(person: NewPerson) -> PeopleChange {
    let hash = 0xa0 + person.handle.len() as u8;
    add_person(person, link(hash))
}

fn role(of: &Principal, becomes: Role) -> PeopleChange {
    let (person, role) = (of.person, Some(becomes));
    PeopleChange::ChangePerson { person, name: None, email: None, role }
}

fn root(directory: &str, to: Grantee) -> RootRow {
    RootRow { directory: directory.into(), to }
}

/// A small town in which every change can be made: a partner, a group with my friend in it, a session of mine that was
/// given to them, an agent and a directory, a credential.
async fn furnished<F: Fixture>() -> F {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    open(store, 2).await;
    let (to, on_agent) = (Grantee::Group(grp(1)), Resource::Agent("scripted".into()));
    for change in [
        PeopleChange::HandOver { session: ses(2), to: friend().person },
        add(newcomer(&partner())),
        PeopleChange::MakeGroup { group: grp(1), name: "ours".into() },
        PeopleChange::Join { group: grp(1), person: friend().person },
        PeopleChange::Give { on: Resource::Session(ses(1)), to, grant: Grant::View },
        PeopleChange::Give { on: on_agent, to, grant: Grant::Prompt },
        PeopleChange::AddRoot(root("/srv/ours", to)),
        PeopleChange::AddRule(rule(1, RuleEffect::Ask(to))),
    ] {
        set(store, change).await;
    }
    let theirs = TokenRow::full(tok(1), [1; 32], friend().person, Purpose::Api, Moment(1));
    store.add_token(theirs).await.unwrap();
    on
}

/// Everything that is there, but for the number of entries in the audit.
async fn scene<F: Fixture>(on: &F) -> String {
    let picture = picture(on).await;
    let (_, rest) = picture.split_once('\n').expect("it begins with the audit");
    format!("{rest}\n{}", town(on.store()).await)
}

/// Nothing comes of it but an entry in the audit, which says why.
async fn refuses<F: Fixture>(on: &F, by: &Principal, wanted: PeopleChange, told: &str) {
    let (before, entries) = (scene(on).await, acts(on.store()).await);
    assert_eq!(change(on.store(), by, wanted.clone()).await, told, "{wanted:?}");
    assert_eq!(scene(on).await, before, "{wanted:?}");
    let mut acted = acted(on.store()).await;
    assert_eq!(acted.len(), entries + 1, "{wanted:?}");
    acted.retain(|row| row.org == by.org);
    let code = told.split(' ').next();
    assert_eq!((acted[0].refused.as_deref(), acted[0].by), (code, Some(by.person)), "{wanted:?}");
}

/// One of each change that can be made there, with whose standings grow.
fn one_of_each() -> Vec<(PeopleChange, Vec<Principal>)> {
    let person = friend().person;
    let everybody = || vec![me(), friend(), partner()];
    let (group, to) = (grp(1), Grantee::Group(grp(1)));
    let session = || Resource::Session(ses(1));
    let agent = || Resource::Agent("scripted".into());
    let third = NewPerson { person: per(8), handle: "third".into(), email: None, ..newcomer(&friend()) };
    let owner = NewPerson { person: per(9), ..newcomer(&friend()) };
    let another =
        NewOrg { org: kernel::OrgId::from_bits(9), name: "another".into(), owner, roots: vec!["/x".into()] };
    let settings = OrgSettings { share_new: Some(Grant::View), open_max: Some(9), awake_max: Some(3) };
    let named = PeopleChange::ChangePerson {
        person,
        name: Some("A Friend".into()),
        email: Some("f@example.org".into()),
        role: None,
    };
    let (issuer, subject) = ("https://id".to_owned(), "f".to_owned());
    vec![
        (PeopleChange::MakeOrg { org: another, link: link(9), walled: true }, vec![]),
        (PeopleChange::Settings(settings), vec![]),
        (add(third), vec![]),
        (named, vec![]),
        (role(&friend(), Role::Viewer), vec![friend()]),
        (PeopleChange::SetPassword { person, password: None, keep: None, proved: None }, vec![friend()]),
        (PeopleChange::Disable { person }, vec![friend()]),
        (PeopleChange::Enable { person, walled: true }, vec![friend()]),
        (PeopleChange::SetIdentity { person, issuer, subject }, vec![friend()]),
        (PeopleChange::MakeLink { person, link: link(8) }, vec![]),
        (PeopleChange::MakeGroup { group: grp(2), name: "another".into() }, vec![]),
        (PeopleChange::RemoveGroup { group }, vec![friend()]),
        (PeopleChange::Join { group, person: partner().person }, vec![partner()]),
        (PeopleChange::Leave { group, person }, vec![friend()]),
        (PeopleChange::Give { on: session(), to: Grantee::Org, grant: Grant::Manage }, vec![]),
        (PeopleChange::Give { on: agent(), to: Grantee::Person(person), grant: Grant::View }, everybody()),
        (PeopleChange::TakeBack { on: session(), to }, vec![]),
        (PeopleChange::TakeBack { on: agent(), to }, everybody()),
        (PeopleChange::HandOver { session: ses(1), to: person }, vec![]),
        (PeopleChange::HandOverAll { from: me().person, to: person }, vec![]),
        (PeopleChange::TakeOfferBack { session: ses(2) }, vec![]),
        (PeopleChange::AddRoot(root("/srv/more", Grantee::Person(person))), vec![friend()]),
        (PeopleChange::AddRoot(root("/srv/more", Grantee::Org)), everybody()),
        (PeopleChange::RemoveRoot(root("/srv/ours", to)), vec![friend()]),
        (own_token(2), vec![]),
        (PeopleChange::RevokeToken { token: tok(1) }, vec![friend()]),
        (PeopleChange::AddRule(rule(2, RuleEffect::Allow)), vec![]),
        (PeopleChange::RemoveRule(rul(1)), vec![]),
    ]
}

fn keyed(change: PeopleChange, body: u8) -> NewChange {
    NewChange { key: Some(key("change", "k", body)), ..change_of(change) }
}

pub async fn every_change_is_made_once_under_its_key_with_one_audit_entry<F: Fixture>() {
    for (change, _) in one_of_each() {
        let on = furnished::<F>().await;
        let store = on.store();
        let (late, other) = (|| keyed(change.clone(), 7), || keyed(change.clone(), 8));
        let entries = acts(store).await;
        assert_eq!(change_with(store, &me(), late()).await, "done", "{change:?}");
        let acted = acted(store).await;
        assert_eq!(acted.len(), entries + 1, "{change:?}");
        let AuditSubject { session, subject } = about_change(&change);
        assert_eq!((acted[0].session, &acted[0].subject), (session, &subject));
        assert_eq!((acted[0].by, acted[0].org, acted[0].at), (Some(me().person), me().org, Moment(4_000)));
        let before = (picture(&on).await, town(store).await);
        // Whatever has moved since, it is the same wish.
        assert_eq!(change_with(store, &me(), late()).await, "repeated", "{change:?}");
        assert_eq!((picture(&on).await, town(store).await), before, "{change:?}");
        let before = scene(&on).await;
        // What is not there for them any more is not there under any key.
        let gone = ["remove_rule", "revoke_token"].contains(&change.verb());
        let told = if gone { "not_found" } else { "conflict" };
        assert_eq!(change_with(store, &me(), other()).await, told, "{change:?}");
        let on = on.reopen().await;
        assert_eq!(change_with(on.store(), &me(), late()).await, "repeated", "{change:?}");
        assert_eq!(scene(&on).await, before, "{change:?} outlives a restart");
    }
}

pub async fn only_the_standings_of_those_whom_a_change_touches_grow<F: Fixture>() {
    for (change, touched) in one_of_each() {
        let on = furnished::<F>().await;
        let store = on.store();
        let all = [me(), friend(), partner(), stranger()];
        let mut before = vec![];
        for one in &all {
            before.push(now(store, one).await.standing);
        }
        set(store, change.clone()).await;
        for (one, before) in all.iter().zip(before) {
            let grown = now(store, one).await.standing > before;
            assert_eq!(grown, touched.contains(one), "{} by {change:?}", one.handle);
        }
    }
}

/// The asker is looked at in the transaction of the change, and not before.
pub async fn a_change_by_somebody_who_may_no_longer_make_it_is_refused<F: Fixture>() {
    for (change, _) in one_of_each() {
        for demoted in [role(&me(), Role::Member), PeopleChange::Disable { person: me().person }] {
            let on = furnished::<F>().await;
            let told = match (&demoted, change.verb()) {
                (PeopleChange::Disable { .. }, _) => "unauthenticated",
                // What is one's own, and one's own session, stays so; and the machine's person makes orgs.
                (_, "make_token" | "hand_over_all" | "hand_over" | "take_offer_back" | "make_org") => "done",
                (_, "give" | "take_back") if about_change(&change).session.is_some() => "done",
                (_, "revoke_token") => "not_found",
                _ => "role_too_low",
            };
            set(on.store(), demoted).await;
            match told {
                "done" => {
                    assert_eq!(self::change(on.store(), &me(), change.clone()).await, told, "{change:?}")
                }
                told => refuses(&on, &me(), change.clone(), told).await,
            }
        }
    }
}

/// A thing that somebody may not see does not exist for them, whatever their key was used for.
pub async fn a_key_that_was_used_for_something_else_is_told_only_to_whoever_may<F: Fixture>() {
    let on = furnished::<F>().await;
    let store = on.store();
    share(store, ses(1), &friend(), Some(Grant::Manage)).await;
    let (to, grant) = (Grantee::Person(partner().person), Grant::View);
    let give = |n| PeopleChange::Give { on: Resource::Session(ses(n)), to, grant };
    assert_eq!(change_with(store, &friend(), keyed(give(1), 7)).await, "done");
    assert_eq!(change_with(store, &friend(), keyed(give(2), 8)).await, "not_found");
    assert_eq!(change_with(store, &friend(), keyed(give(1), 8)).await, "conflict");
    share(store, ses(1), &friend(), None).await;
    assert_eq!(change_with(store, &friend(), keyed(give(1), 7)).await, "repeated", "it was done then");
    assert_eq!(change_with(store, &friend(), keyed(give(1), 8)).await, "not_allowed", "their group sees it");
}

/// A credential is looked at in the transaction of the change, too.
pub async fn a_change_with_a_credential_that_is_gone_is_refused<F: Fixture>() {
    let on = furnished::<F>().await;
    let store = on.store();
    store.add_token(TokenRow::full(tok(6), [6; 32], me().person, Purpose::Api, Moment(1))).await.unwrap();
    let short = TokenRow::full(tok(7), [7; 32], me().person, Purpose::Api, Moment(1));
    store.add_token(TokenRow { expires: Some(Moment(4_000)), ..short }).await.unwrap();
    let with = |n| Principal { credential: Some(tok(n)), ..me() };
    let group = |n| PeopleChange::MakeGroup { group: grp(n), name: format!("group {n}") };
    assert_eq!(change(store, &with(6), group(6)).await, "done");
    refuses(&on, &with(7), group(7), "unauthenticated").await;
    refuses(&on, &with(8), group(8), "unauthenticated").await;
    let stolen = Principal { credential: Some(tok(6)), ..friend() };
    refuses(&on, &stolen, group(9), "unauthenticated").await;
    set(store, PeopleChange::RevokeToken { token: tok(6) }).await;
    refuses(&on, &with(6), group(10), "unauthenticated").await;
}

/// The rights of a credential are those that are stored, whatever the caller says.
pub async fn a_change_needs_the_rights_of_the_stored_credential<F: Fixture>() {
    let on = furnished::<F>().await;
    let store = on.store();
    let full = TokenRow::full(tok(6), [6; 32], me().person, Purpose::Api, Moment(1));
    let rights = Rights::NONE.with(Right::Read).with(Right::Admin);
    store.add_token(TokenRow { rights, ..full.clone() }).await.unwrap();
    let robot = TokenRow { token: tok(7), hash: [7; 32], client: Some("robot".into()), ..full };
    store.add_token(robot).await.unwrap();
    let with = |n| Principal { credential: Some(tok(n)), ..me() };
    let session = Resource::Session(ses(1));
    let give = PeopleChange::Give { on: session, to: Grantee::Org, grant: Grant::View };
    let link = |person| PeopleChange::MakeLink { person, link: link(8) };
    let person = me().person;
    let password = Some("hashed".to_owned());
    let password = PeopleChange::SetPassword { person, password, keep: None, proved: None };
    refuses(&on, &with(6), give, "right_missing").await;
    refuses(&on, &with(6), own_token(8), "right_missing").await;
    for change in [link(person), link(friend().person), password] {
        refuses(&on, &with(6), change.clone(), "right_missing").await;
        refuses(&on, &with(7), change, "invalid").await;
    }
    refuses(&on, &with(7), own_token(8), "invalid").await;
    assert_eq!(change(store, &with(6), PeopleChange::Settings(OrgSettings::default())).await, "done");
}

/// A session is its managers': what was given on it counts as it is in the transaction of the change.
pub async fn a_change_of_a_session_is_judged_by_its_record_as_it_is<F: Fixture>() {
    let on = furnished::<F>().await;
    let store = on.store();
    let (to, session) = (Grantee::Person(partner().person), ses(1));
    let on_it = || Resource::Session(session);
    let row = RuleRow { by: friend().person, session: Some(session), ..rule(7, RuleEffect::Deny) };
    let changes = || {
        [
            PeopleChange::AddRule(row.clone()),
            PeopleChange::Give { on: on_it(), to, grant: Grant::Manage },
            PeopleChange::TakeBack { on: on_it(), to },
            PeopleChange::HandOver { session, to: partner().person },
        ]
    };
    for change in changes() {
        refuses(&on, &friend(), change.clone(), "not_allowed").await;
        // An office is no key to a session.
        let by_partner = match change {
            PeopleChange::AddRule(row) => PeopleChange::AddRule(RuleRow { by: partner().person, ..row }),
            change => change,
        };
        refuses(&on, &partner(), by_partner, "not_found").await;
    }
    for missing in [
        PeopleChange::Give { on: Resource::Session(ses(9)), to, grant: Grant::View },
        PeopleChange::HandOver { session: ses(9), to: partner().person },
    ] {
        refuses(&on, &me(), missing, "not_found").await;
    }
    share(store, session, &friend(), Some(Grant::Manage)).await;
    for wanted in changes() {
        assert_eq!(change(store, &friend(), wanted.clone()).await, "done", "{wanted:?}");
    }
    assert_eq!(change(store, &partner(), accept_offer(session)).await, "done");
    // Whoever had it before has nothing left of it.
    refuses(&on, &me(), changes()[1].clone(), "not_found").await;
}

/// The role of somebody comes from the stored row.
pub async fn nobody_changes_somebody_above_them<F: Fixture>() {
    let person = friend().person;
    let (issuer, subject) = ("https://id".to_owned(), "f".to_owned());
    let group = grp(1);
    let named = Some("A Name".to_owned());
    for change in [
        PeopleChange::ChangePerson { person, name: named, email: None, role: None },
        role(&friend(), Role::Viewer),
        PeopleChange::SetPassword { person, password: None, keep: None, proved: None },
        PeopleChange::Disable { person },
        PeopleChange::Enable { person, walled: true },
        PeopleChange::SetIdentity { person, issuer, subject },
        PeopleChange::MakeLink { person, link: link(1) },
        PeopleChange::HandOverAll { from: person, to: me().person },
        PeopleChange::Join { group, person },
        PeopleChange::Leave { group, person },
        PeopleChange::RevokeToken { token: tok(1) },
    ] {
        let on = furnished::<F>().await;
        let store = on.store();
        set(store, role(&partner(), Role::Admin)).await;
        set(store, role(&friend(), Role::Owner)).await;
        let told = if change.verb() == "revoke_token" { "not_found" } else { "role_too_low" };
        refuses(&on, &partner(), change.clone(), told).await;
        set(store, role(&friend(), Role::Admin)).await;
        assert_eq!(self::change(store, &partner(), change.clone()).await, "done", "{change:?}");
    }
    let on = furnished::<F>().await;
    set(on.store(), role(&partner(), Role::Admin)).await;
    refuses(&on, &partner(), role(&friend(), Role::Owner), "role_too_low").await;
    let owner = NewPerson { person: per(8), handle: "o".into(), email: None, ..newcomer(&me()) };
    refuses(&on, &partner(), add(owner), "role_too_low").await;
}

/// Somebody who may rule a session may not, by that, change the org.
pub async fn what_is_allowed_with_a_session_is_not_allowed_with_the_org<F: Fixture>() {
    let on = furnished::<F>().await;
    share(on.store(), ses(1), &friend(), Some(Grant::Manage)).await;
    for (change, _) in one_of_each() {
        let own = ["make_token", "set_password", "set_identity", "make_link", "revoke_token"];
        let to_session = about_change(&change).session.is_some();
        // The one that changes an address is an admin's.
        if !to_session && !own.contains(&change.verb()) {
            refuses(&on, &friend(), change, "role_too_low").await;
        }
    }
}

/// A member may change their own name, and how they come in; nothing else about themselves.
pub async fn one_may_do_to_oneself_what_takes_nothing_from_others<F: Fixture>() {
    let on = furnished::<F>().await;
    let store = on.store();
    let person = friend().person;
    for wrong in [
        PeopleChange::ChangePerson { person, name: None, email: Some("x@y".into()), role: None },
        role(&friend(), Role::Admin),
        PeopleChange::Disable { person },
    ] {
        refuses(&on, &friend(), wrong, "role_too_low").await;
    }
    let (issuer, subject) = ("https://id".to_owned(), "f".to_owned());
    for own in [
        PeopleChange::ChangePerson { person, name: Some("Me".into()), email: None, role: None },
        PeopleChange::SetIdentity { person, issuer, subject },
        PeopleChange::MakeLink { person, link: link(8) },
        PeopleChange::HandOverAll { from: person, to: me().person },
        PeopleChange::RevokeToken { token: tok(1) },
        own_token(9),
        PeopleChange::SetPassword { person, password: Some("hashed".into()), keep: None, proved: None },
    ] {
        assert_eq!(change(store, &friend(), own.clone()).await, "done", "{own:?}");
    }
    assert_eq!(store.tokens(me().org, person).await.unwrap()[0].token, tok(9), "whoever makes it has it");
}

/// A password counts as proved only as long as nothing about its person has changed.
pub async fn a_password_is_set_by_whoever_proved_the_old_one<F: Fixture>() {
    let on = furnished::<F>().await;
    let store = on.store();
    let (person, seen) = (me().person, now(store, &me()).await.standing);
    let set_to = |person, proved| PeopleChange::SetPassword {
        person,
        password: Some("another".into()),
        keep: None,
        proved,
    };
    refuses(&on, &me(), set_to(friend().person, None), "invalid").await;
    assert_eq!(change(store, &me(), set_to(person, Some(seen))).await, "done");
    refuses(&on, &me(), set_to(person, Some(seen)), "changed").await;
}

pub async fn nobody_is_let_in_while_agents_are_not_walled_off<F: Fixture>() {
    let on = furnished::<F>().await;
    let org = kernel::OrgId::from_bits(9);
    let owner = NewPerson { person: per(9), ..newcomer(&friend()) };
    let org = NewOrg { org, name: "another".into(), owner, roots: vec![] };
    let third = NewPerson { person: per(8), handle: "third".into(), email: None, ..newcomer(&friend()) };
    for change in [
        PeopleChange::MakeOrg { org, link: link(9), walled: false },
        PeopleChange::AddPerson { person: third, or_handles: vec![], link: link(8), walled: false },
        PeopleChange::Enable { person: friend().person, walled: false },
    ] {
        refuses(&on, &me(), change, "wall_not_proved").await;
    }
}

/// Only the machine's person makes orgs.
pub async fn an_org_is_made_by_the_machines_person<F: Fixture>() {
    let on = furnished::<F>().await;
    let (change, _) = one_of_each().swap_remove(0);
    for other in [partner(), friend(), stranger()] {
        refuses(&on, &other, change.clone(), "role_too_low").await;
    }
    assert_eq!(self::change(on.store(), &me(), change).await, "done");
}

/// From one org, another one's people, groups and credentials do not exist.
pub async fn what_belongs_to_another_org_is_not_found<F: Fixture>() {
    let on = furnished::<F>().await;
    let store = on.store();
    say(store, &stranger(), To::New, line(7)).await;
    for theirs in [
        PeopleChange::MakeGroup { group: grp(7), name: "theirs".into() },
        PeopleChange::Join { group: grp(7), person: stranger().person },
        own_token(7),
    ] {
        assert_eq!(change(store, &stranger(), theirs).await, "done");
    }
    let before = scene(&on).await;
    let session = || Resource::Session(ses(1));
    let agent = || Resource::Agent("scripted".into());
    for id in [stranger().person, per(99)] {
        let unknown = Principal { person: id, ..friend() };
        let (to, person) = (Grantee::Person(id), id);
        let (issuer, subject) = ("https://id".to_owned(), "f".to_owned());
        for theirs in [
            role(&unknown, Role::Viewer),
            PeopleChange::SetPassword { person, password: None, keep: None, proved: None },
            PeopleChange::Disable { person },
            PeopleChange::Enable { person, walled: true },
            PeopleChange::SetIdentity { person, issuer, subject },
            PeopleChange::MakeLink { person, link: link(1) },
            PeopleChange::Join { group: grp(1), person },
            PeopleChange::Leave { group: grp(1), person },
            PeopleChange::Give { on: session(), to, grant: Grant::View },
            PeopleChange::Give { on: agent(), to, grant: Grant::View },
            PeopleChange::HandOver { session: ses(1), to: person },
            PeopleChange::HandOverAll { from: person, to: me().person },
            PeopleChange::HandOverAll { from: me().person, to: person },
            PeopleChange::AddRoot(root("/srv/theirs", to)),
            PeopleChange::RemoveRoot(root("/srv/theirs", to)),
            PeopleChange::RevokeToken { token: tok(99) },
            PeopleChange::RevokeToken { token: tok(7) },
        ] {
            assert_eq!(change(store, &me(), theirs.clone()).await, "not_found", "{theirs:?}");
        }
    }
    for group in [grp(7), grp(99)] {
        let (to, person) = (Grantee::Group(group), friend().person);
        for theirs in [
            PeopleChange::RemoveGroup { group },
            PeopleChange::Join { group, person },
            PeopleChange::Leave { group, person },
            PeopleChange::Give { on: session(), to, grant: Grant::View },
            PeopleChange::Give { on: agent(), to, grant: Grant::View },
            PeopleChange::AddRoot(root("/srv/theirs", to)),
        ] {
            assert_eq!(change(store, &me(), theirs.clone()).await, "not_found", "{theirs:?}");
        }
    }
    assert_eq!(scene(&on).await, before);
    // Nor can it be read.
    assert!(store.person(me().org, stranger().person).await.unwrap().is_none());
    assert!(store.person_named(me().org, "stranger".into()).await.unwrap().is_none());
    assert!(store.grants(stranger().org, session()).await.unwrap().is_empty());
    assert!(store.grants(stranger().org, agent()).await.unwrap().is_empty());
    assert_eq!(store.groups(stranger().org).await.unwrap().len(), 1);
    assert!(store.roots(stranger().org).await.unwrap().is_empty());
    assert!(store.org(kernel::OrgId::from_bits(99)).await.unwrap().is_none());
}

pub async fn what_is_called_so_already_is_taken<F: Fixture>() {
    let on = furnished::<F>().await;
    let store = on.store();
    let new = || NewPerson { person: per(8), handle: "third".into(), email: None, ..newcomer(&friend()) };
    let email = Some("friend@example.org".to_owned());
    let owner = NewPerson { person: per(9), ..new() };
    let org = NewOrg { org: kernel::OrgId::from_bits(9), name: "away".into(), owner, roots: vec![] };
    let before = scene(&on).await;
    for (taken, what) in [
        (add(NewPerson { handle: "friend".into(), ..new() }), "handle"),
        (add(NewPerson { handle: "FRIEND".into(), ..new() }), "handle"),
        (add(NewPerson { email: email.clone(), ..new() }), "email"),
        (PeopleChange::ChangePerson { person: me().person, name: None, email, role: None }, "email"),
        (PeopleChange::MakeGroup { group: grp(2), name: "ours".into() }, "name"),
        (PeopleChange::MakeOrg { org: org.clone(), link: link(9), walled: true }, "name"),
    ] {
        assert_eq!(change(store, &me(), taken.clone()).await, format!("taken {what}"), "{taken:?}");
    }
    assert_eq!(scene(&on).await, before);
    // Elsewhere, somebody else may be called so; and whoever has an address keeps it.
    let elsewhere = NewPerson { role: Role::Member, ..newcomer(&friend()) };
    let elsewhere = NewPerson { person: per(10), ..elsewhere };
    assert_eq!(change(store, &stranger(), add(elsewhere)).await, "done");
    let group = PeopleChange::MakeGroup { group: grp(3), name: "ours".into() };
    assert_eq!(change(store, &stranger(), group).await, "done");
    let same = PeopleChange::ChangePerson {
        person: friend().person,
        name: None,
        email: Some("friend@example.org".into()),
        role: None,
    };
    assert_eq!(change(store, &me(), same).await, "done");
}

pub async fn an_org_keeps_an_owner_who_can_come_in<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let disable = |of: &Principal| PeopleChange::Disable { person: of.person };
    let before = scene(&on).await;
    for (last, by) in [(me(), me()), (stranger(), stranger())] {
        assert_eq!(change(store, &by, disable(&last)).await, "last_owner");
        for lower in [Role::Admin, Role::Member, Role::Viewer] {
            assert_eq!(change(store, &by, role(&last, lower)).await, "last_owner");
        }
    }
    assert_eq!(scene(&on).await, before);
    assert_eq!(change(store, &me(), role(&me(), Role::Owner)).await, "done", "who stays one");
    // With two of them one may go; a disabled one does not count, and may be made anything.
    set(store, add(newcomer(&partner()))).await;
    assert_eq!(change(store, &me(), disable(&partner())).await, "done");
    assert_eq!(change(store, &me(), disable(&me())).await, "last_owner");
    assert_eq!(change(store, &me(), role(&partner(), Role::Member)).await, "done");
    let demoted = Principal { role: Role::Member, ..partner() };
    let enable = PeopleChange::Enable { person: demoted.person, walled: true };
    assert_eq!(change(store, &me(), enable).await, "done");
    assert_eq!(change(store, &me(), role(&demoted, Role::Owner)).await, "done");
    assert_eq!(change(store, &me(), role(&me(), Role::Member)).await, "done");
    assert_eq!(change(store, &partner(), disable(&partner())).await, "last_owner");
}

/// Both owners wish at once that the other one goes.
pub async fn an_org_keeps_an_owner_even_if_all_go_at_once<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    set(store, add(newcomer(&partner()))).await;
    let disable = |of: Principal| change_of(PeopleChange::Disable { person: of.person });
    let both = vec![store.change(me(), disable(partner())), store.change(partner(), disable(me()))];
    let answers = together(both).await;
    let done = answers.iter().filter(|answer| matches!(answer, Ok(WriteOutcome::Done(())))).count();
    assert_eq!((done, store.org(me().org).await.unwrap().unwrap().people), (1, 2), "{answers:?}");
}

pub async fn who_there_is_can_be_read<F: Fixture>() {
    let on = furnished::<F>().await;
    let handles = async |store: &dyn Store, after: Option<&str>, limit| {
        let rows = store.people(me().org, after.map(String::from), limit).await.unwrap();
        rows.into_iter().map(|row| row.handle).collect::<Vec<_>>()
    };
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(handles(store, None, ALL).await, ["friend", "me", "partner"]);
    assert_eq!(handles(store, None, 2).await, ["friend", "me"]);
    assert_eq!(handles(store, Some("me"), 2).await, ["partner"]);
    let row = store.person(me().org, friend().person).await.unwrap().unwrap();
    let expected = PersonRow {
        person: friend().person,
        org: me().org,
        handle: "friend".into(),
        name: None,
        email: Some("friend@example.org".into()),
        role: Role::Member,
        is_host: false,
        has_password: false,
        disabled_at: None,
        made_at: Moment(1),
    };
    assert_eq!(row, expected);
    for name in ["friend", "Friend", "friend@example.org", "FRIEND@example.org"] {
        let named = store.person_named(me().org, name.into()).await.unwrap();
        assert_eq!(named.as_ref(), Some(&row), "{name}");
    }
    assert!(store.person(me().org, me().person).await.unwrap().unwrap().is_host);
    let orgs = store.orgs().await.unwrap();
    let names: BTreeSet<_> = orgs.iter().map(|org| (org.name.as_str(), org.people)).collect();
    assert_eq!(names, [("away", 1), ("home", 3)].into());
    let ours = GroupRow { group: grp(1), name: "ours".into(), people: vec![friend().person] };
    assert_eq!(store.groups(me().org).await.unwrap(), [ours]);
    let (to, by, since) = (Grantee::Group(grp(1)), me().person, Moment(1));
    let on_session = store.grants(me().org, Resource::Session(ses(1))).await.unwrap();
    assert_eq!(on_session, [GrantRow { to, grant: Grant::View, by, since }]);
    let on_agent = store.grants(me().org, Resource::Agent("scripted".into())).await.unwrap();
    assert_eq!(on_agent, [GrantRow { to, grant: Grant::Prompt, by, since }]);
    let roots = store.roots(me().org).await.unwrap();
    let roots: BTreeSet<_> = roots.into_iter().map(|root| (root.directory, root.to)).collect();
    let mine = Grantee::Person(me().person);
    assert_eq!(roots, [("/srv".to_owned(), mine), ("/srv/ours".to_owned(), to)].into());
}

pub async fn what_was_given_is_replaced_and_taken_back<F: Fixture>() {
    let on = furnished::<F>().await;
    let store = on.store();
    let to = Grantee::Person(friend().person);
    for resource in [Resource::Session(ses(2)), Resource::Agent("another".into())] {
        let given = async || {
            let rows = store.grants(me().org, resource.clone()).await.unwrap();
            rows.into_iter().map(|row| (row.to, row.grant)).collect::<BTreeSet<_>>()
        };
        for grant in [Grant::Manage, Grant::View, Grant::Prompt] {
            set(store, PeopleChange::Give { on: resource.clone(), to, grant }).await;
            assert_eq!(given().await, [(to, grant)].into());
        }
        set(store, PeopleChange::Give { on: resource.clone(), to: Grantee::Org, grant: Grant::View }).await;
        assert_eq!(given().await, [(to, Grant::Prompt), (Grantee::Org, Grant::View)].into());
        for to in [to, Grantee::Org, Grantee::Org] {
            set(store, PeopleChange::TakeBack { on: resource.clone(), to }).await;
        }
        assert_eq!(given().await, BTreeSet::new());
    }
}

/// But an agent that was given to a group only is not opened to everybody by the group's end.
pub async fn what_a_group_was_given_goes_with_it<F: Fixture>() {
    let on = furnished::<F>().await;
    let store = on.store();
    store.add_token(TokenRow::full(tok(5), [5; 32], friend().person, Purpose::Api, Moment(1))).await.unwrap();
    let friends = async || store.token([5; 32], Moment(5)).await.unwrap().unwrap();
    let revision = async || store.session(ses(1)).await.unwrap().unwrap().0.revision;
    let before = (friends().await, revision().await);
    assert_eq!(before.0.agents, [("scripted".to_owned(), Some(Grant::Prompt))]);
    assert_eq!(before.0.roots, ["/srv/ours"]);
    set(store, PeopleChange::RemoveGroup { group: grp(1) }).await;
    let after = friends().await;
    assert!(store.groups(me().org).await.unwrap().is_empty());
    assert!(store.grants(me().org, Resource::Session(ses(1))).await.unwrap().is_empty());
    assert_eq!(store.roots(me().org).await.unwrap(), [root("/srv", Grantee::Person(me().person))]);
    assert!(revision().await > before.1);
    assert_eq!((after.groups, after.roots), (vec![], vec![]));
    assert_eq!(after.agents, [("scripted".to_owned(), None)], "it stays closed");
    assert!(store.grants(me().org, Resource::Agent("scripted".into())).await.unwrap().is_empty());
}

pub async fn an_agent_on_which_nothing_is_left_stays_closed_until_it_is_given_to_the_org<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    store.add_token(TokenRow::full(tok(5), [5; 32], friend().person, Purpose::Api, Moment(1))).await.unwrap();
    let agent = || Resource::Agent("scripted".into());
    let to = Grantee::Person(me().person);
    let friends = async |store: &dyn Store| store.token([5; 32], Moment(5)).await.unwrap().unwrap().agents;
    set(store, PeopleChange::TakeBack { on: agent(), to }).await;
    assert_eq!(friends(store).await, [], "where nothing was given nothing is closed");
    set(store, PeopleChange::Give { on: agent(), to, grant: Grant::Prompt }).await;
    set(store, PeopleChange::TakeBack { on: agent(), to }).await;
    let closed = [("scripted".to_owned(), None)];
    assert_eq!(friends(store).await, closed);
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(friends(store).await, closed, "after a restart, too");
    set(store, PeopleChange::Give { on: agent(), to: Grantee::Org, grant: Grant::Prompt }).await;
    assert_eq!(friends(store).await, [("scripted".to_owned(), Some(Grant::Prompt))]);
}

pub async fn a_new_session_is_shared_as_the_org_says<F: Fixture>() {
    let on = peopled::<F>().await;
    let grants = async |store: &dyn Store, session| store.session(session).await.unwrap().unwrap().0.grants;
    open(on.store(), 1).await;
    let share =
        |share_new| PeopleChange::Settings(OrgSettings { share_new, open_max: Some(7), awake_max: None });
    set(on.store(), share(Some(Grant::Prompt))).await;
    let on = on.reopen().await;
    let store = on.store();
    let settings = store.org(me().org).await.unwrap().unwrap().settings;
    assert_eq!(
        (settings.share_new, settings.open_max, settings.awake_max),
        (Some(Grant::Prompt), Some(7), None)
    );
    open(store, 2).await;
    let created = create_of("create", fresh_session(3, None));
    assert_eq!(create(store, &me(), created).await, WriteOutcome::Done(ses(3)));
    say(store, &stranger(), To::New, line(4)).await;
    set(store, share(None)).await;
    open(store, 5).await;
    let shared = vec![(Grantee::Org, Grant::Prompt)];
    for (n, expected) in [(1, vec![]), (2, shared.clone()), (3, shared), (4, vec![]), (5, vec![])] {
        assert_eq!(grants(store, ses(n)).await, expected, "session {n}");
    }
    let seen: BTreeSet<_> = list(store, &friend(), Which::All).await.iter().map(|row| row.session).collect();
    assert_eq!(seen, [ses(2), ses(3)].into());
    say(store, &friend(), To::Session(ses(2)), line(6)).await;
    let row = store.grants(me().org, Resource::Session(ses(2))).await.unwrap();
    assert_eq!((row[0].to, row[0].grant, row[0].by), (Grantee::Org, Grant::Prompt, me().person));
}

fn asked(n: u32) -> Fact {
    Fact::Asked {
        approval: apr(n),
        turn: Turn(1),
        until: Moment(60_000),
        terms: kernel::ApprovalTerms::default(),
    }
}

/// The numbers of sessions, bindings, questions and heads that somebody is shown.
async fn shown(store: &dyn Store, by: &Principal) -> [usize; 4] {
    let seer = || Seer::of(by);
    [
        list(store, by, Which::All).await.len(),
        store.bindings(seer(), None, ALL).await.unwrap().len(),
        store.approvals(ApprovalsQuery::open(seer(), ALL)).await.unwrap().len(),
        store.heads(seer(), 0, ALL).await.unwrap().len(),
    ]
}

pub async fn a_session_that_is_handed_over_is_the_others_in_every_list_and_count<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1)).await;
    write(store, ses(1), vec![opened(), queued(1), started(1, 1), attempt(1), asked(1)]).await;
    open(store, 2).await;
    hand_over(store, ses(1), &me(), &friend()).await;
    let on = on.reopen().await;
    let store = on.store();
    let (record, row) = store.session(ses(1)).await.unwrap().unwrap();
    assert_eq!((record.owner, row.owner), (friend().person, friend().person));
    assert!(record.grants.is_empty(), "it is theirs alone");
    assert_eq!(shown(store, &friend()).await, [1, 1, 1, 1]);
    assert_eq!(shown(store, &me()).await, [1, 0, 0, 1]);
    let one = |n| IncomingMessage { open_max: 1, ..line(n) };
    assert_eq!(send(store, &friend(), To::New, one(3)).await, too_many_open(1));
    assert_eq!(send(store, &me(), To::New, one(3)).await, too_many_open(1));
    write(store, ses(1), vec![answered(1), ended()]).await;
    say(store, &friend(), To::New, one(3)).await;
    assert_eq!(send(store, &me(), To::New, one(4)).await, too_many_open(1));
}

pub async fn everything_of_somebody_who_leaves_can_be_handed_over<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=3 {
        say(store, &friend(), To::New, line(n)).await;
    }
    write(store, ses(1), vec![opened(), refused(1), ended()]).await;
    open(store, 4).await;
    say(store, &stranger(), To::New, line(5)).await;
    let revision = async |n| store.session(ses(n)).await.unwrap().unwrap().0.revision;
    let before = (revision(1).await, revision(4).await);
    set(store, PeopleChange::Disable { person: friend().person }).await;
    let all = PeopleChange::HandOverAll { from: friend().person, to: me().person };
    assert_eq!(change(store, &me(), all).await, "done");
    assert_eq!((shown(store, &friend()).await[0], shown(store, &me()).await[0]), (0, 4));
    assert_eq!(shown(store, &stranger()).await[0], 1);
    assert!(revision(1).await > before.0 && revision(4).await == before.1);
    let few = |n| IncomingMessage { open_max: 3, ..line(n) };
    assert_eq!(send(store, &me(), To::New, few(6)).await, too_many_open(3), "two of theirs and one of mine");
    set(store, PeopleChange::Enable { person: friend().person, walled: true }).await;
    say(store, &friend(), To::New, IncomingMessage { open_max: 1, ..line(6) }).await;
}

pub async fn nothing_is_handed_over_to_whoever_could_do_nothing_with_it<F: Fixture>() {
    for unfit in [PeopleChange::Disable { person: friend().person }, role(&friend(), Role::Viewer)] {
        let on = furnished::<F>().await;
        set(on.store(), unfit).await;
        for over in [
            PeopleChange::HandOver { session: ses(1), to: friend().person },
            PeopleChange::HandOverAll { from: me().person, to: friend().person },
        ] {
            refuses(&on, &me(), over, "cannot_own").await;
        }
    }
}

pub async fn a_bound_credential_sees_one_session<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for (n, at) in [(1, "a"), (2, "b")] {
        say(store, &me(), conversation(at), line(n)).await;
        write(store, ses(n), vec![opened(), queued(n), started(1, n), attempt(1), asked(n)]).await;
    }
    let bound = |session| Principal { bound: Some((session, Turn(1))), ..me() };
    assert_eq!(shown(store, &me()).await, [2, 2, 2, 2]);
    for session in [ses(1), ses(2)] {
        assert_eq!(shown(store, &bound(session)).await, [1, 1, 1, 1]);
        assert_eq!(list(store, &bound(session), Which::All).await[0].session, session);
    }
    assert_eq!(shown(store, &bound(ses(9))).await, [0, 0, 0, 0]);
    let others = Principal { bound: Some((ses(1), Turn(1))), ..friend() };
    assert_eq!(shown(store, &others).await, [0, 0, 0, 0], "it is not theirs for being bound to it");
}

/// Small numbers in no order that anybody would expect.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// A town of two orgs in which things are given, taken back and handed over at random. After each step everybody's lists
/// are compared with what the kernel's rule says of the stored records, and these with what was done.
pub async fn lists_show_what_the_rule_allows<F: Fixture>() {
    for seed in 1..=3 {
        let on = furnished::<F>().await;
        let store = on.store();
        set(store, PeopleChange::MakeGroup { group: grp(2), name: "others".into() }).await;
        let mut given: BTreeMap<SessionId, BTreeMap<Grantee, Grant>> = BTreeMap::new();
        for n in 3..=6 {
            let by = [me(), friend(), stranger()][n as usize % 3].clone();
            let by = now(store, &Principal { agents: vec![], ..by }).await;
            say(store, &by, conversation(&format!("c{n}")), line(n)).await;
            let facts = vec![opened(), queued_by(n, by.person), started(1, n), asked(n)];
            write(store, ses(n), facts).await;
        }
        given.insert(ses(1), [(Grantee::Group(grp(1)), Grant::View)].into());
        let mut dice = Dice(seed);
        for _ in 0..40 {
            step(store, &mut dice, &mut given).await;
            for by in [me(), friend(), partner(), stranger()] {
                compare(store, &by, &given).await;
            }
        }
    }
}

async fn step(store: &dyn Store, dice: &mut Dice, given: &mut BTreeMap<SessionId, BTreeMap<Grantee, Grant>>) {
    let session = ses(1 + dice.roll(6) as u32);
    let people = [me(), friend(), partner()];
    let person = people[dice.roll(3) as usize].person;
    let group = grp(1 + dice.roll(2) as u32);
    let to = [Grantee::Person(person), Grantee::Group(group), Grantee::Org][dice.roll(3) as usize];
    let grant = [Grant::View, Grant::Prompt, Grant::Manage][dice.roll(3) as usize];
    let (record, _) = store.session(session).await.unwrap().unwrap();
    let on = Resource::Session(session);
    let next = match dice.roll(8) {
        0..=2 => PeopleChange::Give { on, to, grant },
        3 => PeopleChange::TakeBack { on, to },
        4 => return step_over(store, session, record.owner, person, given).await,
        5 | 6 => PeopleChange::Join { group, person },
        _ => PeopleChange::Leave { group, person },
    };
    // A session is given away by its owner; the stranger's stays theirs.
    let by = if about_change(&next).session.is_some() { record.owner } else { me().person };
    let Some(by) = people.iter().find(|one| one.person == by) else { return };
    match &next {
        PeopleChange::Give { .. } => drop(given.entry(session).or_default().insert(to, grant)),
        PeopleChange::TakeBack { .. } => drop(given.entry(session).or_default().remove(&to)),
        _ => {}
    }
    assert_eq!(change(store, by, next).await, "done");
}

async fn step_over(
    store: &dyn Store,
    session: SessionId,
    owner: PersonId,
    to: PersonId,
    given: &mut BTreeMap<SessionId, BTreeMap<Grantee, Grant>>,
) {
    let people = [me(), friend(), partner()];
    let find = |person| people.iter().find(|one| one.person == person);
    let (Some(by), Some(to)) = (find(owner), find(to).filter(|to| to.person != owner)) else { return };
    // The town has an offer from the beginning.
    change(store, by, PeopleChange::TakeOfferBack { session }).await;
    hand_over(store, session, by, to).await;
    given.remove(&session);
}

async fn compare(store: &dyn Store, by: &Principal, given: &BTreeMap<SessionId, BTreeMap<Grantee, Grant>>) {
    let groups = store.groups(by.org).await.unwrap();
    let groups =
        groups.into_iter().filter(|group| group.people.contains(&by.person)).map(|group| group.group);
    let by = Principal { groups: groups.collect(), ..by.clone() };
    let (mut sessions, mut bindings, mut approvals, mut heads) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for n in 1..=6 {
        let (record, _) = store.session(ses(n)).await.unwrap().unwrap();
        let stored: BTreeMap<_, _> = record.grants.iter().copied().collect();
        assert_eq!(&stored, given.get(&ses(n)).unwrap_or(&BTreeMap::new()));
        assert_eq!(stored.len(), record.grants.len(), "each of them once");
        if grant_of(&by, &record).is_some() {
            sessions.insert(ses(n));
            heads.insert((ses(n), store.load(ses(n)).await.unwrap().unwrap().at));
            if n > 2 {
                bindings.insert((format!("api:test/c{n}"), ses(n)));
                approvals.insert((apr(n), ses(n)));
            }
        }
    }
    let seer = || Seer::of(&by);
    let listed: BTreeSet<_> = list(store, &by, Which::All).await.iter().map(|row| row.session).collect();
    assert_eq!(listed, sessions, "{}", by.handle);
    let rows = store.bindings(seer(), None, ALL).await.unwrap();
    let listed: BTreeSet<_> = rows.iter().map(|row| (row.address.to_string(), row.session)).collect();
    assert_eq!((rows.len(), listed), (bindings.len(), bindings), "{}", by.handle);
    let rows = store.approvals(ApprovalsQuery::open(seer(), ALL)).await.unwrap();
    let listed: BTreeSet<_> = rows.iter().map(|row| (row.approval, row.session)).collect();
    assert_eq!((rows.len(), listed), (approvals.len(), approvals), "{}", by.handle);
    let rows = store.heads(seer(), 0, ALL).await.unwrap();
    let listed: BTreeSet<(SessionId, Number)> = rows.iter().map(|head| (head.session, head.number)).collect();
    assert_eq!((rows.len(), listed), (heads.len(), heads), "{}", by.handle);
}
