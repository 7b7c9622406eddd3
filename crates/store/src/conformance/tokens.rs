//! Proofs that let people in: credentials, passwords' logins, links, names at identity providers.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{
    Grant, Grantee, Moment, Number, OrgId, PersonId, Principal, Right, Rights, Role, To, TokenId, Turn,
};

/// Long before anything expires that does.
const EARLY: Moment = Moment(10);

/// None of the credentials.
const NONE: [u8; 0] = [];

fn token(n: u8, of: &Principal, purpose: Purpose) -> TokenRow {
    TokenRow::full(tok(n), [n; 32], of.person, purpose, Moment(1))
}

async fn whose(store: &dyn Store, n: u8, now: Moment) -> Option<Principal> {
    let by_secret = store.token([n; 32], now).await.unwrap();
    if let Some(credential) = by_secret.as_ref().and_then(|by| by.credential) {
        assert_eq!(
            store.principal(credential, now).await.unwrap(),
            by_secret,
            "whichever way it is looked up"
        );
    }
    by_secret
}

/// Those of these that let somebody in.
async fn good(store: &dyn Store, tokens: std::ops::RangeInclusive<u8>, now: Moment) -> Vec<u8> {
    let mut good = vec![];
    for n in tokens {
        good.extend(whose(store, n, now).await.map(|_| n));
    }
    good
}

pub async fn a_credential_is_its_person_with_what_it_is_good_for<F: Fixture>() {
    let on = peopled::<F>().await;
    let rights = Rights::NONE.with(Right::Read).with(Right::Approve);
    let narrow = TokenRow { rights, client: Some("ci".into()), ..token(2, &friend(), Purpose::Api) };
    on.store().add_token(token(1, &me(), Purpose::Browser)).await.unwrap();
    on.store().add_token(narrow).await.unwrap();
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(whose(store, 1, EARLY).await, Some(Principal { credential: Some(tok(1)), ..me() }));
    let (client, credential) = (Some("ci".into()), Some(tok(2)));
    assert_eq!(whose(store, 2, EARLY).await, Some(Principal { rights, client, credential, ..friend() }));
    assert_eq!(whose(store, 3, EARLY).await, None);
    assert_eq!(store.principal(tok(3), EARLY).await.unwrap(), None);
}

pub async fn a_principal_is_as_things_are_now<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    store.add_token(token(1, &friend(), Purpose::Cli)).await.unwrap();
    let to = Grantee::Group(grp(1));
    let agent = |name: &str| Resource::Agent(name.into());
    let root = |directory: &str, to| PeopleChange::AddRoot(RootRow { directory: directory.into(), to });
    for change in [
        PeopleChange::MakeGroup { group: grp(1), name: "ours".into() },
        PeopleChange::MakeGroup { group: grp(2), name: "others".into() },
        PeopleChange::Join { group: grp(1), person: friend().person },
        PeopleChange::Join { group: grp(2), person: me().person },
        PeopleChange::Give { on: agent("a"), to, grant: Grant::View },
        PeopleChange::Give { on: agent("a"), to: Grantee::Org, grant: Grant::Prompt },
        PeopleChange::Give { on: agent("b"), to: Grantee::Person(me().person), grant: Grant::Manage },
        root("/srv/ours", to),
        root("/srv/all", Grantee::Org),
        root("/srv/all", Grantee::Person(friend().person)),
        root("/srv/mine", Grantee::Group(grp(2))),
        PeopleChange::ChangePerson {
            person: friend().person,
            name: None,
            email: None,
            role: Some(Role::Admin),
        },
    ] {
        set(store, change).await;
    }
    let by = whose(store, 1, EARLY).await.unwrap();
    let expected = Principal {
        role: Role::Admin,
        groups: vec![grp(1)],
        agents: vec![("a".into(), Some(Grant::Prompt)), ("b".into(), None)],
        roots: vec!["/srv/all".into(), "/srv/ours".into()],
        credential: Some(tok(1)),
        ..now(store, &friend()).await
    };
    assert_eq!(by, expected);
    let on = on.reopen().await;
    assert_eq!(whose(on.store(), 1, EARLY).await, Some(expected));
    // The host is the same person, without a credential.
    let host = on.store().host(home()).await.unwrap();
    assert_eq!((host.groups, host.is_host, host.credential), (vec![grp(2)], true, None));
}

pub async fn a_credential_lets_in_until_it_expires<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    store.add_token(token(1, &me(), Purpose::Api)).await.unwrap();
    let short = TokenRow { expires: Some(Moment(500)), ..token(2, &me(), Purpose::Api) };
    store.add_token(short).await.unwrap();
    assert_eq!(good(store, 1..=3, Moment(499)).await, [1, 2]);
    assert_eq!(good(store, 1..=3, Moment(500)).await, [1]);
    assert_eq!(good(store, 1..=3, Moment(u64::MAX >> 1)).await, [1]);
}

pub async fn a_credential_that_was_not_used_for_too_long_lets_nobody_in<F: Fixture>() {
    let on = peopled::<F>().await;
    let idle = TokenRow { idle_ms_max: Some(100), ..token(1, &me(), Purpose::Browser) };
    on.store().add_token(idle).await.unwrap();
    let touch = async |at| on.store().touch_tokens(vec![(tok(1), Moment(at))]).await.unwrap();
    assert_eq!(good(on.store(), 1..=1, Moment(100)).await, [1], "it counts from when it was made");
    assert_eq!(good(on.store(), 1..=1, Moment(101)).await, NONE);
    touch(90).await;
    touch(50).await;
    assert_eq!(good(on.store(), 1..=1, Moment(189)).await, [1], "what comes late does not turn it back");
    assert_eq!(good(on.store(), 1..=1, Moment(190)).await, NONE);
    on.store().touch_tokens(vec![(tok(9), Moment(1)), (tok(1), Moment(150))]).await.unwrap();
    let on = on.reopen().await;
    assert_eq!(good(on.store(), 1..=1, Moment(249)).await, [1]);
    let views = on.store().tokens(me().org, me().person).await.unwrap();
    assert_eq!(views.iter().map(|view| view.last_used).collect::<Vec<_>>(), [Some(Moment(150))]);
}

pub async fn a_machines_credential_replaces_the_one_before<F: Fixture>() {
    let on = peopled::<F>().await;
    let machine = |n, made_at| TokenRow { made_at: Moment(made_at), ..token(n, &me(), Purpose::Machine) };
    let browser = |n, until| TokenRow { expires: Some(Moment(until)), ..token(n, &me(), Purpose::Browser) };
    for token in [machine(1, 1), browser(2, 500), browser(3, 501), token(5, &friend(), Purpose::Machine)] {
        on.store().add_token(token).await.unwrap();
    }
    assert_eq!(good(on.store(), 1..=5, EARLY).await, [1, 2, 3, 5]);
    on.store().add_token(machine(4, 500)).await.unwrap();
    let left = [3, 4, 5];
    assert_eq!(good(on.store(), 1..=5, EARLY).await, left, "the old one and what had expired are gone");
    on.store().add_token(machine(4, 500)).await.unwrap();
    let on = on.reopen().await;
    assert_eq!(good(on.store(), 1..=5, EARLY).await, left, "each start brings the same one again");
    // Under another id, too: a start does not know which one it had.
    on.store().add_token(TokenRow { token: tok(77), ..machine(4, 500) }).await.unwrap();
    assert_eq!(good(on.store(), 1..=5, EARLY).await, left);
}

pub async fn a_turns_credential_is_good_while_its_turn_is_under_way<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    open(store, 2).await;
    let bound = |n, session, turn| TokenRow {
        bound: Some((session, Turn(turn))),
        rights: Rights::NONE.with(Right::Read).with(Right::Prompt),
        ..token(n, &me(), Purpose::Turn)
    };
    store.add_token(bound(1, ses(1), 1)).await.unwrap();
    store.add_token(bound(2, ses(2), 1)).await.unwrap();
    assert_eq!(good(store, 1..=2, EARLY).await, NONE, "before the turn");
    write(store, ses(1), vec![started(1, 1), attempt(1)]).await;
    assert_eq!(good(store, 1..=2, EARLY).await, [1]);
    assert_eq!(whose(store, 1, EARLY).await.unwrap().bound, Some((ses(1), Turn(1))));
    // A later attempt brings another one.
    store.add_token(bound(3, ses(1), 1)).await.unwrap();
    assert_eq!(good(store, 1..=3, EARLY).await, [3]);
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(good(store, 1..=3, EARLY).await, [3]);
    say(store, &me(), To::Session(ses(1)), line(3)).await;
    write(store, ses(1), vec![answered(1), queued(3), started(2, 3), attempt(2)]).await;
    assert_eq!(good(store, 1..=3, EARLY).await, NONE, "the next turn is another one");
    assert_eq!(store.principal(tok(3), EARLY).await.unwrap(), None);
    assert!(store.tokens(me().org, me().person).await.unwrap().is_empty());
}

pub async fn a_turns_credential_is_written_with_its_attempt_or_not_at_all<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let bound = |n, turn| {
        let row = TokenRow { bound: Some((ses(1), Turn(turn))), ..token(n, &me(), Purpose::Turn) };
        Some(row)
    };
    let starts = with(append_to(store, ses(1)).await, vec![started(1, 1), attempt(1)]);
    let moved = Append { after: Number(77), token: bound(1, 1), ..starts.clone() };
    assert!(matches!(store.append(moved).await.unwrap(), Appending::Moved { .. }));
    written(store, Append { token: bound(2, 1), ..starts }).await;
    assert_eq!(good(store, 1..=2, EARLY).await, [2], "what was refused is not there");
    let by = Principal { credential: Some(tok(2)), bound: Some((ses(1), Turn(1))), ..me() };
    let says = async |n| send(store, &by, To::Session(ses(1)), line(n)).await;
    assert!(matches!(says(3).await, WriteOutcome::Done(_)), "whoever writes knows it, too");
    let again = with(append_to(store, ses(1)).await, vec![queued(3)]);
    written(store, Append { token: bound(4, 1), ..again }).await;
    assert_eq!(good(store, 1..=4, EARLY).await, [4], "a later attempt's is in its place");
    let refused = says(5).await;
    assert!(matches!(refused, WriteOutcome::Refused(Rejection::Unauthenticated)), "for whoever writes, too");
    let on = on.reopen().await;
    assert_eq!(good(on.store(), 1..=4, EARLY).await, [4]);
}

/// A credential is looked at in the transaction that takes a message, whatever was true when somebody came in with it.
pub async fn a_message_with_a_credential_that_is_no_longer_good_is_refused<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let until = |n, expires| TokenRow { expires: Some(Moment(expires)), ..token(n, &me(), Purpose::Api) };
    let bound = TokenRow { bound: Some((ses(1), Turn(1))), ..token(5, &me(), Purpose::Turn) };
    let idle = |n, most| TokenRow { idle_ms_max: Some(most), ..token(n, &me(), Purpose::Browser) };
    // A line comes at 1,000 and its number; credentials are made at 1.
    for token in [until(1, 1_010), until(2, 1_011), idle(3, 1_009), idle(4, 1_010), bound] {
        store.add_token(token).await.unwrap();
    }
    let says = async |n| {
        let by = Principal { credential: Some(tok(n)), ..me() };
        let aimed = IncomingMessage { at: 1_010, ..line(10 + u32::from(n)) };
        match send(store, &by, To::Session(ses(1)), aimed).await {
            WriteOutcome::Done(_) => "done",
            WriteOutcome::Refused(Rejection::Unauthenticated) => "unauthenticated",
            _ => "something else",
        }
    };
    assert_eq!(says(1).await, "unauthenticated", "it expires now");
    assert_eq!(says(2).await, "done", "it expires in a moment");
    assert_eq!(says(3).await, "unauthenticated", "nobody has used it for that long");
    assert_eq!(says(4).await, "done");
    assert_eq!(says(5).await, "unauthenticated", "its turn has not begun");
    write(store, ses(1), vec![started(1, 1), attempt(1)]).await;
    assert_eq!(says(5).await, "done");
    assert_eq!(says(6).await, "unauthenticated", "there is none");
}

pub async fn a_rotated_secret_counts_for_a_moment_longer<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let row = TokenRow {
        idle_ms_max: Some(10_000),
        expires: Some(Moment(9_000)),
        ..token(1, &me(), Purpose::Browser)
    };
    store.add_token(row).await.unwrap();
    let rotate = async |n, hash, now, until| {
        store.rotate_token(tok(n), [hash; 32], Moment(now), Moment(until)).await.unwrap()
    };
    assert!(rotate(1, 2, 1_000, 1_060).await);
    assert_eq!(good(store, 1..=2, Moment(1_059)).await, [1, 2]);
    assert_eq!(good(store, 1..=2, Moment(1_060)).await, [2]);
    assert_eq!(whose(store, 2, Moment(1_060)).await.unwrap().credential, Some(tok(1)), "the same credential");
    // One that was replaced before is gone with the next.
    assert!(rotate(1, 3, 1_010, 1_070).await);
    assert_eq!(good(store, 1..=3, Moment(1_020)).await, [2, 3]);
    assert!(!rotate(7, 4, 1_000, 1_060).await, "there is no such credential");
    assert!(!rotate(1, 4, 9_000, 9_060).await, "it has expired");
    assert_eq!(good(store, 1..=4, Moment(1_030)).await, [2, 3]);
    let on = on.reopen().await;
    assert_eq!(
        good(on.store(), 1..=4, Moment(8_999)).await,
        [3],
        "that it was rotated does not make it last longer"
    );
    assert_eq!(good(on.store(), 1..=4, Moment(9_000)).await, NONE);
}

pub async fn a_revoked_credential_is_gone_at_once<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=2 {
        store.add_token(token(n, &me(), Purpose::Api)).await.unwrap();
    }
    let by = whose(store, 1, EARLY).await.unwrap();
    let late = aim(&by, To::New, line(1));
    let revoke = |n| PeopleChange::RevokeToken { token: tok(n) };
    assert_eq!(change(store, &me(), revoke(1)).await, "done");
    assert_eq!(good(store, 1..=2, EARLY).await, [2]);
    assert_eq!(store.principal(tok(1), EARLY).await.unwrap(), None);
    let gone = no(Rejection::Unauthenticated);
    assert_eq!(accept(store, late).await, gone, "what it had begun does not count");
    assert_eq!(change(store, &me(), revoke(1)).await, "not_found");
    // To somebody who may not change its person it is none, and neither is it in another org.
    for other in [friend(), stranger()] {
        assert_eq!(change(store, &other, revoke(2)).await, "not_found");
    }
    for (n, purpose) in [(3, Purpose::Machine), (4, Purpose::Turn)] {
        store.add_token(token(n, &me(), purpose)).await.unwrap();
        assert_eq!(change(store, &me(), revoke(n)).await, "not_found", "nobody sees those");
    }
    let on = on.reopen().await;
    assert_eq!(good(on.store(), 1..=2, EARLY).await, [2]);
}

/// A token is no way to outlast the one that it was made with. What somebody makes who has signed in, or has the machine's
/// own credential, stands for itself.
pub async fn what_was_made_with_a_token_ends_with_it_at_the_latest_and_is_revoked_with_it<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let until = |n, purpose, expires: Option<u64>| TokenRow {
        expires: expires.map(Moment),
        ..token(n, &me(), purpose)
    };
    store.add_token(until(1, Purpose::Api, Some(9_000))).await.unwrap();
    store.add_token(until(2, Purpose::Browser, Some(9_000))).await.unwrap();
    store.add_token(until(3, Purpose::Machine, None)).await.unwrap();
    let make = async |with, n, expires| {
        let by = whose(store, with, EARLY).await.unwrap();
        let new = PeopleChange::MakeToken(until(n, Purpose::Api, expires).into());
        assert_eq!(change(store, &by, new).await, "done");
    };
    make(1, 11, None).await;
    make(1, 12, Some(9_001)).await;
    make(1, 13, Some(8_000)).await;
    make(11, 14, None).await;
    make(2, 21, None).await;
    make(3, 31, Some(9_999)).await;
    let made = async |store: &dyn Store| {
        let mut views = store.tokens(me().org, me().person).await.unwrap();
        views.retain(|view| (11..=31).any(|n| view.token == tok(n)));
        views.sort_by_key(|view| view.token);
        views.into_iter().map(|view| (view.token, view.expires, view.parent)).collect::<Vec<_>>()
    };
    let own = [(tok(21), None, None), (tok(31), Some(Moment(9_999)), None)];
    let with_tokens = [
        (tok(11), Some(Moment(9_000)), Some(tok(1))),
        (tok(12), Some(Moment(9_000)), Some(tok(1))),
        (tok(13), Some(Moment(8_000)), Some(tok(1))),
        (tok(14), Some(Moment(9_000)), Some(tok(11))),
    ];
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!(made(store).await, [&with_tokens[..], &own[..]].concat());
    // Each goes with what it was made with, and leaves those beside it.
    let revoke = async |n| change(store, &me(), PeopleChange::RevokeToken { token: tok(n) }).await;
    assert_eq!(revoke(11).await, "done");
    assert_eq!(good(store, 1..=31, EARLY).await, [1, 2, 3, 12, 13, 21, 31]);
    assert_eq!(revoke(1).await, "done");
    assert_eq!(good(store, 1..=31, EARLY).await, [2, 3, 21, 31]);
    assert_eq!(revoke(2).await, "done");
    assert_eq!(good(store, 1..=31, EARLY).await, [3, 21, 31]);
    let mut subjects: Vec<_> = store
        .audit_page(audit_of(me().org))
        .await
        .unwrap()
        .into_iter()
        .filter_map(|row| row.subject)
        .collect();
    // Those that were made say with which rights.
    subjects.retain(|subject| subject.split(' ').all(|word| word.starts_with("tok_")));
    subjects.reverse();
    let (one, eleven) = (tok(1), tok(11));
    let expected = [
        eleven.to_string(),
        format!("{} {eleven}", tok(14)),
        one.to_string(),
        format!("{} {one}", tok(12)),
        format!("{} {one}", tok(13)),
        tok(2).to_string(),
    ];
    assert_eq!(subjects, expected, "each that was revoked has its entry");
    let on = on.reopen().await;
    assert_eq!(made(on.store()).await, own);
}

pub async fn credentials_are_listed_without_the_machines_and_the_turns<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let at = |n, purpose, made_at| TokenRow { made_at: Moment(made_at), ..token(n, &me(), purpose) };
    let bound = TokenRow { bound: Some((ses(1), Turn(1))), ..at(4, Purpose::Turn, 4) };
    for row in [at(1, Purpose::Machine, 1), at(2, Purpose::Browser, 2), at(3, Purpose::Cli, 9), bound] {
        store.add_token(row).await.unwrap();
    }
    let (name, rights) = (Some("ci".to_owned()), Rights::NONE.with(Right::Read));
    let made = TokenRow { name, rights, expires: Some(Moment(99)), ..at(5, Purpose::Api, 5) };
    assert_eq!(change(store, &me(), PeopleChange::MakeToken(made.clone().into())).await, "done");
    store.add_token(token(6, &friend(), Purpose::Api)).await.unwrap();
    let views = store.tokens(me().org, me().person).await.unwrap();
    assert_eq!(views.iter().map(|view| view.token).collect::<Vec<_>>(), [tok(5), tok(3), tok(2)]);
    assert_eq!(views[0], TokenView::of(&TokenRow { made_at: Moment(4_000), ..made }, None));
    assert_eq!(whose(store, 5, EARLY).await.unwrap().rights, rights);
    assert!(store.tokens(stranger().org, me().person).await.unwrap().is_empty(), "from another org");
}

async fn found(store: &dyn Store, typed: &str) -> Option<kernel::PersonId> {
    store.login(typed.into()).await.unwrap().map(|login| login.person)
}

pub async fn somebody_is_found_by_what_they_type_unless_others_could_be_meant<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let person = Some(friend().person);
    for typed in
        ["friend", "Friend", "friend@example.org", "Friend@Example.ORG", "home/friend", "Home/Friend"]
    {
        assert_eq!(found(store, typed).await, person, "{typed}");
    }
    for typed in
        ["", "friends", "away/friend", "friend@example", "/friend", "home/", "home/friend/", "%", "fr%"]
    {
        assert_eq!(found(store, typed).await, None, "{typed}");
    }
    let twin = NewPerson { person: per(9), ..newcomer(&friend()) };
    let add = |person| add_person(person, link(9));
    assert_eq!(change(store, &stranger(), add(twin)).await, "done", "names are an org's own");
    for typed in ["friend", "friend@example.org"] {
        assert_eq!(found(store, typed).await, None, "{typed} could be either");
    }
    assert_eq!(found(store, "home/friend").await, person);
    assert_eq!(found(store, "away/friend").await, Some(per(9)));
    let row = store.login("home/friend".into()).await.unwrap().unwrap();
    assert_eq!((row.org, row.handle.as_str(), row.standing), (me().org, "friend", FIRST_STANDING));
    assert_eq!((row.password, row.is_disabled), (None, false));
    set_by(store, &friend(), password(&friend(), "hashed", None)).await;
    set(store, PeopleChange::Disable { person: friend().person }).await;
    let row = store.login("home/friend".into()).await.unwrap().unwrap();
    assert_eq!((row.password.as_deref(), row.is_disabled), (Some("hashed"), true));
}

fn password(of: &Principal, hashed: &str, keep: Option<TokenId>) -> PeopleChange {
    PeopleChange::SetPassword { person: of.person, password: Some(hashed.into()), keep, proved: None }
}

fn signed_in(n: u8, of: &Principal) -> SignedIn {
    let token = token(n, of, Purpose::Browser);
    SignedIn { standing: of.standing, token, org: of.org, trail: trail("sign_in", 20) }
}

pub async fn somebody_who_has_proved_who_they_are_is_let_in_as_they_were_seen<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    assert!(store.sign_in(signed_in(1, &friend())).await.unwrap());
    assert_eq!(good(store, 1..=1, EARLY).await, [1]);
    let entry = &acted(store).await[0];
    assert_eq!((entry.verb.as_str(), entry.by, entry.org), ("sign_in", Some(friend().person), me().org));
    // A password that was changed while the old one was being compared is not the one that counts.
    let seen = now(store, &friend()).await;
    set_by(store, &friend(), password(&friend(), "another", None)).await;
    let before = (picture(&on).await, town(store).await);
    assert!(!store.sign_in(signed_in(2, &seen)).await.unwrap());
    let elsewhere = SignedIn { org: stranger().org, ..signed_in(2, &now(store, &friend()).await) };
    assert!(!store.sign_in(elsewhere).await.unwrap(), "of another org");
    set(store, PeopleChange::Disable { person: friend().person }).await;
    let disabled = now(store, &friend()).await;
    assert!(!store.sign_in(signed_in(2, &disabled)).await.unwrap(), "who is disabled");
    set(store, PeopleChange::Enable { person: friend().person, walled: true }).await;
    assert_eq!(good(store, 1..=2, EARLY).await, NONE);
    assert_eq!(picture(&on).await, before.0);
    assert!(store.sign_in(signed_in(2, &now(store, &friend()).await)).await.unwrap());
}

pub async fn another_password_signs_out_everything_but_the_one_that_is_kept<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for (n, purpose) in [(1, Purpose::Browser), (2, Purpose::Browser), (3, Purpose::Cli), (4, Purpose::Api)] {
        store.add_token(token(n, &friend(), purpose)).await.unwrap();
    }
    store.add_token(token(5, &me(), Purpose::Browser)).await.unwrap();
    set_by(store, &friend(), password(&friend(), "one", Some(tok(2)))).await;
    assert_eq!(good(store, 1..=5, EARLY).await, [2, 4, 5]);
    let row = store.person(me().org, friend().person).await.unwrap().unwrap();
    assert!(row.has_password);
    let person = friend().person;
    set(store, PeopleChange::SetPassword { person, password: None, keep: None, proved: None }).await;
    let on = on.reopen().await;
    assert_eq!(good(on.store(), 1..=5, EARLY).await, [4, 5]);
    let row = on.store().person(me().org, friend().person).await.unwrap().unwrap();
    assert!(!row.has_password);
}

fn through(n: u8) -> Option<NewToken> {
    let (token, hash, name) = (tok(n), [n; 32], Some("a browser".into()));
    let (expires, idle_ms_max) = (Some(Moment(50_000)), None);
    let (rights, client) = (Rights::ALL, None);
    Some(NewToken { token, hash, purpose: Purpose::Browser, name, rights, client, expires, idle_ms_max })
}

async fn spend(store: &dyn Store, n: u8, token: Option<NewToken>, at: u64) -> Option<kernel::PersonId> {
    let login = store.spend_link([n; 32], token, trail("sign_in", at)).await.unwrap();
    login.map(|login| login.person)
}

fn make_link(n: u8, of: &Principal, expires: u64) -> PeopleChange {
    let link = NewLink { expires: Moment(expires), ..link(n) };
    PeopleChange::MakeLink { person: of.person, link }
}

/// A link is no way to outlast the token that it was made with, and neither is what comes of it, in whosever name.
pub async fn a_link_that_was_made_with_a_token_goes_with_it_and_so_does_who_came_in_by_it<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let with = |n, purpose, expires| TokenRow { expires: Some(Moment(expires)), ..token(n, &me(), purpose) };
    store.add_token(with(1, Purpose::Api, 9_000)).await.unwrap();
    store.add_token(with(2, Purpose::Browser, 9_000)).await.unwrap();
    let make = async |with, wanted: PeopleChange| {
        let by = whose(store, with, EARLY).await.unwrap();
        assert_eq!(change(store, &by, wanted).await, "done");
    };
    let look = async |store: &dyn Store, n: u8, at| store.link([n; 32], Moment(at)).await.unwrap().is_some();
    for (n, with, of) in [(41, 1, me()), (42, 1, friend()), (43, 2, me()), (44, 1, me())] {
        make(with, make_link(n, &of, 50_000)).await;
    }
    assert_eq!(
        (look(store, 41, 8_999).await, look(store, 41, 9_000).await),
        (true, false),
        "it ends with it"
    );
    assert!(look(store, 43, 9_000).await, "who has signed in stands for themselves");
    for (n, of) in [(41, me()), (42, friend()), (43, me())] {
        assert_eq!(spend(store, n, through(n), 30).await, Some(of.person));
    }
    let on = on.reopen().await;
    let store = on.store();
    let ends = async |of: &Principal, n| {
        let views = store.tokens(of.org, of.person).await.unwrap();
        let view = views.into_iter().find(|view| view.token == tok(n)).unwrap();
        (view.expires, view.parent)
    };
    assert_eq!(ends(&me(), 41).await, (Some(Moment(9_000)), Some(tok(1))));
    assert_eq!(ends(&friend(), 42).await, (Some(Moment(9_000)), Some(tok(1))));
    assert_eq!(ends(&me(), 43).await, (Some(Moment(50_000)), None));
    // Nor does somebody who came in so make anything that outlasts it.
    let by = whose(store, 41, EARLY).await.unwrap();
    let new = PeopleChange::MakeToken(token(45, &me(), Purpose::Api).into());
    assert_eq!(change(store, &by, new).await, "done");
    assert_eq!(ends(&me(), 45).await, (Some(Moment(9_000)), Some(tok(1))));
    assert_eq!(good(store, 41..=45, EARLY).await, [41, 42, 43, 45]);
    assert_eq!(change(store, &me(), PeopleChange::RevokeToken { token: tok(1) }).await, "done");
    assert_eq!(good(store, 41..=45, EARLY).await, [43]);
    assert!(!look(store, 44, 30).await);
    assert_eq!(spend(store, 44, through(44), 30).await, None);
    // The same of whoever is disabled.
    let role = Some(Role::Admin);
    set(store, PeopleChange::ChangePerson { person: friend().person, name: None, email: None, role }).await;
    store.add_token(TokenRow { person: friend().person, ..with(3, Purpose::Api, 9_000) }).await.unwrap();
    let theirs = NewPerson {
        person: PersonId::from_bits(78),
        handle: "new".into(),
        email: None,
        ..newcomer(&friend())
    };
    let theirs = NewPerson { role: Role::Member, ..theirs };
    let by = whose(store, 3, EARLY).await.unwrap();
    assert_eq!(change(store, &by, add_person(theirs, link(46))).await, "done");
    assert_eq!(spend(store, 46, through(46), 30).await, Some(PersonId::from_bits(78)));
    let again = PeopleChange::MakeLink { person: PersonId::from_bits(78), link: link(47) };
    assert_eq!(change(store, &by, again).await, "done");
    assert_eq!(good(store, 41..=47, EARLY).await, [43, 46]);
    assert_eq!(change(store, &me(), PeopleChange::Disable { person: friend().person }).await, "done");
    assert_eq!(good(store, 41..=47, EARLY).await, [43]);
    assert!(!look(store, 47, 30).await);
}

pub async fn a_link_works_once<F: Fixture>() {
    let on = peopled::<F>().await;
    set(on.store(), make_link(1, &friend(), 500)).await;
    set(on.store(), make_link(2, &friend(), 500)).await;
    let on = on.reopen().await;
    let store = on.store();
    let look = async |n: u8, at| store.link([n; 32], Moment(at)).await.unwrap().map(|login| login.person);
    assert_eq!(look(1, 20).await, Some(friend().person));
    assert_eq!(look(1, 20).await, Some(friend().person), "looking does not spend it");
    assert_eq!(spend(store, 1, through(1), 20).await, Some(friend().person));
    assert_eq!(look(1, 20).await, None);
    let before = (picture(&on).await, town(store).await);
    assert_eq!(spend(store, 1, through(2), 21).await, None);
    assert_eq!(spend(store, 9, through(2), 21).await, None, "there never was such a link");
    assert_eq!((picture(&on).await, town(store).await), before);
    let by = whose(store, 1, Moment(30)).await.unwrap();
    assert_eq!((by.person, by.rights), (friend().person, Rights::ALL));
    assert_eq!(good(store, 1..=2, Moment(50_000)).await, NONE, "it expires as it was to");
    let entry = &acted(store).await[0];
    assert_eq!((entry.verb.as_str(), entry.by, entry.at), ("sign_in", Some(friend().person), Moment(20)));
    // The other one is another one, and may let nobody in yet.
    assert_eq!(spend(store, 2, None, 22).await, Some(friend().person));
    assert_eq!(acts(store).await, 2);
    let on = on.reopen().await;
    assert_eq!(spend(on.store(), 1, through(2), 23).await, None);
    assert_eq!(spend(on.store(), 2, through(2), 23).await, None);
}

pub async fn a_link_works_once_even_if_all_come_at_once<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    set(store, make_link(1, &friend(), 500)).await;
    let all = (1..=8).map(|n| spend(store, 1, through(n), 20)).collect();
    let won = together(all).await.into_iter().flatten().count();
    assert_eq!((won, good(store, 1..=8, Moment(30)).await.len(), acts(store).await), (1, 1, 1));
}

pub async fn a_link_that_has_expired_works_no_more<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    set(store, make_link(1, &friend(), 500)).await;
    assert!(store.link([1; 32], Moment(499)).await.unwrap().is_some());
    assert!(store.link([1; 32], Moment(500)).await.unwrap().is_none());
    assert_eq!(spend(store, 1, through(1), 500).await, None);
    assert_eq!(good(store, 1..=1, Moment(30)).await, NONE);
}

pub async fn those_who_are_invited_come_in_by_their_link<F: Fixture>() {
    let on = peopled::<F>().await;
    assert_eq!(spend(on.store(), 0xf2, through(1), 20).await, Some(friend().person));
    assert_eq!(spend(on.store(), 0xf3, through(2), 20).await, Some(stranger().person));
    let by = whose(on.store(), 2, Moment(30)).await.unwrap();
    assert_eq!(by, Principal { credential: Some(tok(2)), ..stranger() }, "who owns the org that was made");
}

pub async fn what_let_a_disabled_person_in_is_gone_for_good<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    store.add_token(token(1, &friend(), Purpose::Api)).await.unwrap();
    store.add_token(token(2, &me(), Purpose::Api)).await.unwrap();
    set(store, make_link(1, &friend(), 500)).await;
    set(store, make_link(2, &me(), 500)).await;
    let person = friend().person;
    assert_eq!(change(store, &me(), PeopleChange::Disable { person }).await, "done");
    let gone = async |store: &dyn Store| {
        assert_eq!(good(store, 1..=2, EARLY).await, [2]);
        assert_eq!(spend(store, 1, through(3), 20).await, None);
        assert!(store.link([1; 32], Moment(20)).await.unwrap().is_none());
    };
    gone(store).await;
    let row = store.person(me().org, person).await.unwrap().unwrap();
    assert_eq!(row.disabled_at, Some(Moment(4_000)));
    assert_eq!(store.org(me().org).await.unwrap().unwrap().people, 1, "who can come in");
    // Not even a credential that somebody still makes for them lets them in.
    store.add_token(token(4, &friend(), Purpose::Api)).await.unwrap();
    assert_eq!(good(store, 4..=4, EARLY).await, NONE);
    set(store, PeopleChange::RevokeToken { token: tok(4) }).await;
    set(store, PeopleChange::Enable { person, walled: true }).await;
    let on = on.reopen().await;
    gone(on.store()).await;
    let row = on.store().person(me().org, person).await.unwrap().unwrap();
    assert_eq!((row.disabled_at, on.store().org(me().org).await.unwrap().unwrap().people), (None, 2));
    assert_eq!(spend(on.store(), 2, through(5), 20).await, Some(me().person));
}

pub async fn a_name_at_an_identity_provider_is_one_persons<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let known = async |issuer: &str, subject: &str| {
        store.identity(issuer.into(), subject.into()).await.unwrap().map(|login| login.person)
    };
    let tie = |of: &Principal, issuer: &str, subject: &str| PeopleChange::SetIdentity {
        person: of.person,
        issuer: issuer.into(),
        subject: subject.into(),
    };
    assert_eq!(known("https://id", "f").await, None);
    assert_eq!(change(store, &me(), tie(&friend(), "https://id", "f")).await, "done");
    assert_eq!(change(store, &me(), tie(&me(), "https://other", "f")).await, "done");
    assert_eq!(known("https://id", "f").await, Some(friend().person));
    assert_eq!(known("https://other", "f").await, Some(me().person));
    assert_eq!(known("https://id", "F").await, None);
    let taken = change(store, &me(), tie(&me(), "https://id", "f")).await;
    assert_eq!(taken, "taken identity");
    assert_eq!(change(store, &me(), tie(&friend(), "https://id", "g")).await, "done");
    assert_eq!(
        (known("https://id", "f").await, known("https://id", "g").await),
        (None, Some(friend().person))
    );
}

pub async fn homing_itself_lets_people_in_and_ties_each_to_one_name<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let house = Principal { role: Role::Owner, ..Principal::member(me().org, PersonId::ENGINE, "homing") };
    let by_house = async |wanted: PeopleChange| change(store, &house, wanted).await;
    let tie = |person: PersonId, subject: &str| PeopleChange::SetIdentity {
        person,
        issuer: "https://id".into(),
        subject: subject.into(),
    };
    let known = async |subject: &str| {
        store.identity("https://id".into(), subject.into()).await.unwrap().map(|login| login.person)
    };
    let (person, handle, role) = (PersonId::from_bits(77), "vouched".to_owned(), Role::Member);
    let link = NewLink { hash: [77; 32], expires: Moment(0) };
    let new = NewPerson { person, handle, name: None, email: Some("v@example.org".into()), role };
    assert_eq!(by_house(add_person(new, link)).await, "done");
    assert_eq!(by_house(tie(person, "v")).await, "done");
    assert_eq!(known("v").await, Some(person));
    // Whoever gets their address later is somebody else.
    assert_eq!(by_house(tie(person, "w")).await, "taken identity");
    assert_eq!(change(store, &me(), tie(me().person, "m")).await, "done");
    assert_eq!(change(store, &me(), tie(me().person, "n")).await, "taken identity");
    assert_eq!((known("w").await, known("m").await, known("n").await), (None, Some(me().person), None));
    // Who looks after them may put another one there.
    assert_eq!(change(store, &me(), tie(person, "w")).await, "done");
    assert_eq!((known("v").await, known("w").await), (None, Some(person)));
    // An org that is none has no people, whoever asks.
    let nowhere = Principal { org: OrgId::from_bits(99), ..house };
    assert_eq!(change(store, &nowhere, tie(person, "x")).await, "unauthenticated");
    let (since, until, what, subject, before) = (None, None, None, None, None);
    let who = Some(PersonId::ENGINE);
    let wanted = AuditQuery { org: me().org, since, until, who, what, subject, before, limit: 10 };
    let by_itself = store.audit_page(wanted).await.unwrap();
    let by_itself: Vec<_> = by_itself.into_iter().filter(|row| row.refused.is_none()).collect();
    assert_eq!(by_itself.len(), 2, "{by_itself:?}");
}
