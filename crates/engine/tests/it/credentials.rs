//! Stories of coming in: passwords, links, tokens, and what an agent may use to call back.

use crate::world::{World, trace};
use engine::{
    AccessError, Expiry, InvalidError, MakeToken, PeopleError, Purpose, SignInFor, Signed, Vouched, Which,
    hash_of,
};
use kernel::{Grant, Grantee, Moment, Principal, Request, Right, Rights, Role, To};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn at(purpose: Purpose) -> SignInFor {
    SignInFor { purpose, name: Some("here".to_owned()) }
}

async fn types(world: &World, typed: &str, password: &str) -> Result<Signed, PeopleError> {
    world.engine.people().sign_in_by_password(typed, password.to_owned(), at(Purpose::Cli), trace(None)).await
}

async fn who(world: &World, secret: &str) -> Option<Principal> {
    world.engine.people().principal(hash_of(secret)).await.unwrap()
}

async fn set_password(
    world: &World,
    by: &Principal,
    current: Option<&str>,
    new: Option<&str>,
) -> Result<(), PeopleError> {
    let (current, new) = (current.map(str::to_owned), new.map(str::to_owned));
    world.engine.people().set_password(by, by.person, current, new, trace(None)).await
}

#[tokio::test(start_paused = true)]
async fn a_password_lets_its_person_in_and_changing_it_takes_the_one_before() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    set_password(&world, &bob, None, Some("correct horse")).await.unwrap();
    let bob = world.engine.people().refreshed(&bob).await.unwrap();
    let signed = types(&world, "bob", "correct horse").await.unwrap();
    assert_eq!((signed.person, signed.handle.as_str()), (bob.person, "bob"));
    assert!(signed.secret.reveal().starts_with("hmg_c_"));
    assert_eq!(types(&world, "home/bob", "correct horse").await.unwrap().person, bob.person);

    let wrong = set_password(&world, &bob, Some("battery"), Some("another horse")).await;
    assert_eq!(wrong, Err(PeopleError::WrongSignIn));
    assert_eq!(set_password(&world, &bob, None, Some("another horse")).await, Err(PeopleError::WrongSignIn));
    let short = set_password(&world, &bob, Some("correct horse"), Some("short")).await;
    assert!(matches!(short, Err(PeopleError::Invalid(InvalidError { field: "password", .. }))), "{short:?}");
    set_password(&world, &bob, Some("correct horse"), Some("another horse")).await.unwrap();
    assert_eq!(types(&world, "bob", "correct horse").await, Err(PeopleError::WrongSignIn));
    assert!(types(&world, "bob", "another horse").await.is_ok());
    assert_eq!(who(&world, signed.secret.reveal()).await, None, "whoever else came in by the old one is out");
    assert!(world.engine.people().refreshed(&bob).await.is_ok(), "whoever changed it stays");
}

#[tokio::test(start_paused = true)]
async fn an_admin_removes_a_password_and_sets_none() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    set_password(&world, &bob, None, Some("correct horse")).await.unwrap();
    let new = Some("chosen for him".to_owned());
    let set = world.engine.people().set_password(&world.me, bob.person, None, new, trace(None)).await;
    assert!(matches!(set, Err(PeopleError::Invalid(InvalidError { field: "password", .. }))), "{set:?}");
    world.engine.people().set_password(&world.me, bob.person, None, None, trace(None)).await.unwrap();
    assert_eq!(types(&world, "bob", "correct horse").await, Err(PeopleError::WrongSignIn));
    let hers = world.engine.people().set_password(&bob, world.me.person, None, None, trace(None)).await;
    assert!(
        matches!(
            hers,
            Err(PeopleError::Access(AccessError::NeedsRole(Role::Admin) | AccessError::Unauthenticated))
        ),
        "{hers:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_is_not_let_in_hears_the_same_after_the_same_work() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    set_password(&world, &bob, None, Some("correct horse")).await.unwrap();
    let carol = world.let_in("carol", Role::Member).await;
    set_password(&world, &carol, None, Some("correct horse")).await.unwrap();
    world.engine.people().disable(&world.me, carol.person, trace(None)).await.unwrap();
    world.let_in("dora", Role::Member).await;
    let long = "x".repeat(2_000);
    let tries = [
        ("bob", "wrong horse"),
        ("bob", long.as_str()),
        ("carol", "correct horse"), // disabled
        ("dora", "correct horse"),  // has none
        ("nobody", "correct horse"),
        ("nobody@example.org", "correct horse"),
        (long.as_str(), "correct horse"),
    ];
    for (typed, password) in tries {
        let before = world.engine.people().passwords_compared();
        let refused = types(&world, typed, password).await.unwrap_err();
        assert_eq!(refused, PeopleError::WrongSignIn);
        assert_eq!(world.engine.people().passwords_compared() - before, 1, "{typed}");
    }
    let audit = world.store.snapshot().audit;
    let refused: Vec<_> =
        audit.iter().filter(|row| row.refused.as_deref() == Some("wrong_sign_in")).collect();
    assert_eq!(refused.len(), tries.len());
    assert!(refused.iter().all(|row| row.subject.is_none()), "what was typed may be a password");
}

#[tokio::test(start_paused = true)]
async fn a_link_lets_in_once_and_not_for_ever() {
    let world = World::new().await;
    let own = world.engine.people().make_link(&world.me, world.me.person, trace(None)).await.unwrap();
    let seen = world.engine.people().look_at_link(own.reveal()).await.unwrap().unwrap();
    assert_eq!(seen.person, world.me.person);
    let come = async |code: &str| {
        world.engine.people().sign_in_by_link(code, at(Purpose::Browser), trace(None)).await
    };
    let signed = come(own.reveal()).await.unwrap();
    assert_eq!(who(&world, signed.secret.reveal()).await.unwrap().person, world.me.person);
    assert_eq!(come(own.reveal()).await, Err(PeopleError::WrongSignIn), "it works once");
    assert_eq!(world.engine.people().look_at_link(own.reveal()).await, Ok(None));
    let old = world.engine.people().make_link(&world.me, world.me.person, trace(None)).await.unwrap();
    tokio::time::advance(Duration::from_secs(601)).await;
    assert_eq!(come(old.reveal()).await, Err(PeopleError::WrongSignIn), "one's own lasts ten minutes");
    let bob = world.let_in("bob", Role::Member).await;
    let invite = world.engine.people().make_link(&world.me, bob.person, trace(None)).await.unwrap();
    tokio::time::advance(DAY * 6).await;
    assert_eq!(come(invite.reveal()).await.unwrap().person, bob.person);
    let forged = world.engine.people().make_link(&bob, world.me.person, trace(None)).await;
    assert_eq!(forged.unwrap_err(), AccessError::NeedsRole(Role::Admin).into());
}

#[tokio::test(start_paused = true)]
async fn whoever_a_provider_vouches_for_is_known_by_its_name_for_them_from_then_on() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let to = engine::PersonChange { email: Some("bob@example.org".to_owned()), ..Default::default() };
    world.engine.people().change_person(&world.me, bob.person, to, trace(None)).await.unwrap();
    let come = async |subject: &str, email: Option<&str>| {
        let at = at(Purpose::Browser);
        let vouched = Vouched {
            issuer: "https://id.test".to_owned(),
            subject: subject.to_owned(),
            email: email.map(str::to_lowercase),
            name: None,
            nickname: None,
            org: None,
            create: None,
        };
        world.engine.people().sign_in_by_identity(&vouched, at, trace(None)).await.map(|signed| signed.person)
    };
    assert_eq!(come("b-1", None).await, Err(PeopleError::WrongSignIn));
    assert_eq!(come("b-1", Some("Bob@Example.org")).await, Ok(bob.person));
    assert_eq!(come("b-1", None).await, Ok(bob.person));
    assert_eq!(come("b-2", Some("nobody@example.org")).await, Err(PeopleError::WrongSignIn));
    assert_eq!(come("b-2", Some("bob")).await, Err(PeopleError::WrongSignIn), "a handle is no address");
}

#[tokio::test(start_paused = true)]
async fn a_token_has_what_it_was_given_and_nothing_once_it_is_revoked() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let make = |rights, expires| MakeToken { name: "ci".to_owned(), rights, expires, client: None };
    let reads = Rights::NONE.with(Right::Read);
    let (view, secret) =
        world.engine.people().make_token(&bob, make(reads, Expiry::Usual), trace(None)).await.unwrap();
    assert!(secret.reveal().starts_with("hmg_a_"));
    let by = who(&world, secret.reveal()).await.unwrap();
    assert_eq!((by.person, by.rights), (bob.person, reads));
    let said = world.say_as(&by, To::New, "one").await;
    assert_eq!(said, Err(AccessError::NeedsRight(Right::Prompt).into()));
    let more = world.engine.people().make_token(&by, make(reads, Expiry::Usual), trace(None)).await;
    assert_eq!(more.unwrap_err(), AccessError::NeedsRight(Right::Admin).into());
    let past = make(reads, Expiry::At(Moment(1)));
    assert!(world.engine.people().make_token(&bob, past, trace(None)).await.is_err());

    let listed = world.engine.people().tokens(&bob, None).await.unwrap();
    assert!(listed.iter().any(|row| row.token == view.token && row.name.as_deref() == Some("ci")));
    let carol = world.let_in("carol", Role::Member).await;
    let not_hers = world.engine.people().revoke_token(&carol, view.token, trace(None)).await;
    assert_eq!(not_hers, Err(AccessError::NotFound { what: "token" }.into()));
    world.engine.people().revoke_token(&bob, view.token, trace(None)).await.unwrap();
    assert_eq!(who(&world, secret.reveal()).await, None);
    assert_eq!(world.engine.people().refreshed(&by).await, Err(AccessError::Unauthenticated.into()));

    let soon = Expiry::At(world.engine.now().after_ms(1_000));
    let (_, brief) = world.engine.people().make_token(&bob, make(reads, soon), trace(None)).await.unwrap();
    assert!(who(&world, brief.reveal()).await.is_some());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(who(&world, brief.reveal()).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_more_out_of_a_token_than_it_was_given() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let carla = world.let_in("carla", Role::Admin).await;
    let weak = |rights: Rights, client: Option<&str>| MakeToken {
        name: "weak".to_owned(),
        rights,
        expires: Expiry::Usual,
        client: client.map(str::to_owned),
    };
    let administers = Rights::NONE.with(Right::Admin).with(Right::Read);
    for person in [&bob, &carla] {
        let (_, secret) =
            world.engine.people().make_token(person, weak(administers, None), trace(None)).await.unwrap();
        let by = who(&world, secret.reveal()).await.unwrap();
        // By a link or a password one comes in with every right there is.
        let link = world.engine.people().make_link(&by, person.person, trace(None)).await;
        assert_eq!(link, Err(AccessError::NeedsRight(Right::Prompt).into()));
        let link = world.engine.people().make_link(&by, bob.person, trace(None)).await;
        assert_eq!(link, Err(AccessError::NeedsRight(Right::Prompt).into()));
        let set = set_password(&world, &by, None, Some("a long enough password")).await;
        assert_eq!(set, Err(AccessError::NeedsRight(Right::Prompt).into()));
        let (_, secret) = world
            .engine
            .people()
            .make_token(person, weak(Rights::ALL, Some("ci")), trace(None))
            .await
            .unwrap();
        let by = who(&world, secret.reveal()).await.unwrap();
        let link = world.engine.people().make_link(&by, person.person, trace(None)).await;
        assert!(matches!(link, Err(PeopleError::Invalid(InvalidError { field: "client", .. }))), "{link:?}");
    }
    assert!(world.engine.people().make_link(&carla, bob.person, trace(None)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_token_outlasts_neither_the_one_it_was_made_with_nor_its_revocation() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let make = async |by: &kernel::Principal, expires| {
        let make = MakeToken { name: "ci".to_owned(), rights: Rights::ALL, expires, client: None };
        let (view, secret) = world.engine.people().make_token(by, make, trace(None)).await.unwrap();
        (view, who(&world, secret.reveal()).await.unwrap())
    };
    let end = world.engine.now().after_ms(60_000);
    let (first, with_first) = make(&bob, Expiry::At(end)).await;
    assert_eq!((first.expires, first.parent), (Some(end), None));
    for asked in [Expiry::Never, Expiry::Usual, Expiry::At(end.after_ms(1))] {
        let (view, _) = make(&with_first, asked).await;
        assert_eq!(
            (view.expires, view.parent),
            (Some(end), Some(first.token)),
            "the answer says its true end"
        );
    }
    let (second, with_second) = make(&with_first, Expiry::Never).await;
    let (_, with_third) = make(&with_second, Expiry::Never).await;
    let (_, own) = make(&bob, Expiry::Never).await;
    world.engine.people().revoke_token(&bob, second.token, trace(None)).await.unwrap();
    for gone in [&with_second, &with_third] {
        let refreshed = world.engine.people().refreshed(gone).await;
        assert_eq!(refreshed, Err(AccessError::Unauthenticated.into()));
    }
    // Whoever holds one may end it, and ends what was made with it.
    let (_, with_fourth) = make(&with_first, Expiry::Never).await;
    world.engine.people().sign_out(&with_first, trace(None)).await.unwrap();
    let refreshed = world.engine.people().refreshed(&with_fourth).await;
    assert_eq!(refreshed, Err(AccessError::Unauthenticated.into()));
    assert!(world.engine.people().refreshed(&own).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_link_made_with_a_token_lets_nobody_stay_after_it() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let end = world.engine.now().after_ms(60_000);
    let make =
        MakeToken { name: "ci".to_owned(), rights: Rights::ALL, expires: Expiry::At(end), client: None };
    let (token, secret) = world.engine.people().make_token(&bob, make, trace(None)).await.unwrap();
    let with_token = who(&world, secret.reveal()).await.unwrap();
    let link = async |by: &kernel::Principal| {
        world.engine.people().make_link(by, bob.person, trace(None)).await.unwrap()
    };
    let cli = || SignInFor { purpose: Purpose::Cli, name: None };
    let come_in = async |code: &str| world.engine.people().sign_in_by_link(code, cli(), trace(None)).await;
    let (made, kept, own) = (link(&with_token).await, link(&with_token).await, link(&bob).await);
    assert_eq!(made.expires, end, "the answer says its true end");
    assert!(own.expires > end);
    let signed = come_in(made.reveal()).await.unwrap();
    assert_eq!(signed.expires, Some(end));
    let by = who(&world, signed.secret.reveal()).await.unwrap();
    let longer = link(&by).await;
    assert_eq!(longer.expires, end, "what they make is cut, too");
    let stays = come_in(own.reveal()).await.unwrap();
    world.engine.people().revoke_token(&bob, token.token, trace(None)).await.unwrap();
    assert_eq!(world.engine.people().refreshed(&by).await, Err(AccessError::Unauthenticated.into()));
    for gone in [&kept, &longer] {
        assert_eq!(come_in(gone.reveal()).await.map(|_| ()), Err(PeopleError::WrongSignIn));
    }
    assert!(who(&world, stays.secret.reveal()).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn whoever_signs_out_is_out() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Member).await;
    let mut rights = world.engine.people().rights();
    rights.mark_unchanged();
    world.engine.people().sign_out(&bob, trace(None)).await.unwrap();
    assert!(rights.has_changed().unwrap(), "whoever remembers him asks again");
    assert_eq!(world.engine.people().refreshed(&bob).await, Err(AccessError::Unauthenticated.into()));
}

#[tokio::test(start_paused = true)]
async fn whoever_holds_a_credential_may_end_it_whatever_it_is_good_for() {
    let world = World::new().await;
    let bob = world.let_in("bob", Role::Viewer).await;
    let reads = || MakeToken {
        name: "ci".to_owned(),
        rights: Rights::NONE.with(Right::Read),
        expires: Expiry::Usual,
        client: None,
    };
    let (_, first) = world.engine.people().make_token(&bob, reads(), trace(None)).await.unwrap();
    let (other, second) = world.engine.people().make_token(&bob, reads(), trace(None)).await.unwrap();
    let by = who(&world, first.reveal()).await.unwrap();
    let not_its_own = world.engine.people().revoke_token(&by, other.token, trace(None)).await;
    assert_eq!(not_its_own, Err(AccessError::NeedsRight(Right::Admin).into()));
    world.engine.people().sign_out(&by, trace(None)).await.unwrap();
    assert_eq!(who(&world, first.reveal()).await, None);
    // By its id it is the same credential.
    let by = who(&world, second.reveal()).await.unwrap();
    world.engine.people().revoke_token(&by, other.token, trace(None)).await.unwrap();
    assert_eq!(who(&world, second.reveal()).await, None);
    assert!(world.engine.people().refreshed(&bob).await.is_ok(), "he has others");
}

#[tokio::test(start_paused = true)]
async fn a_browsers_secret_is_replaced_after_a_day_and_the_old_one_is_good_for_a_minute() {
    let world = World::new().await;
    let link = world.engine.people().make_link(&world.me, world.me.person, trace(None)).await.unwrap();
    let signed = world
        .engine
        .people()
        .sign_in_by_link(link.reveal(), at(Purpose::Browser), trace(None))
        .await
        .unwrap();
    let old = signed.secret.reveal();
    let by = who(&world, old).await.unwrap();
    assert_eq!(world.engine.people().rotate(&by).await, Ok(None));
    tokio::time::advance(DAY).await;
    let fresh = world.engine.people().rotate(&by).await.unwrap().unwrap();
    assert_eq!(world.engine.people().rotate(&by).await, Ok(None), "once");
    assert!(who(&world, old).await.is_some() && who(&world, fresh.reveal()).await.is_some());
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(who(&world, old).await.is_none() && who(&world, fresh.reveal()).await.is_some());
    tokio::time::advance(DAY * 8).await;
    assert!(who(&world, fresh.reveal()).await.is_none(), "a week unused");
    assert_eq!(world.engine.people().rotate(&world.me).await, Ok(None), "the machine's own stays");
}

#[tokio::test(start_paused = true)]
async fn a_turns_credential_is_good_for_its_session_while_its_turn_lasts_and_for_nothing_else() {
    let mut world = World::new().await;
    let other = world.talk(To::New, "other").await.row.session;
    let said = world.say(To::New, "!hang").await.unwrap().accepted;
    world.house_has_handed(said.message).await;
    let secret = world.letterbox.0.lock().unwrap()[&said.session].clone();
    assert!(secret.reveal().starts_with("hmg_t_"));
    let by = who(&world, secret.reveal()).await.unwrap();
    assert_eq!(by.bound.map(|(session, _)| session), Some(said.session));

    let seen = world.engine.views().sessions(&by, Which::All, Default::default(), None, 10).await.unwrap();
    assert_eq!(seen.iter().map(|row| row.session).collect::<Vec<_>>(), [said.session]);
    assert_eq!(
        world.engine.views().session(&by, other).await,
        Err(AccessError::NotFound { what: "session" }.into())
    );
    world.say_as(&by, To::Session(said.session), "next").await.unwrap();
    assert_eq!(world.say_as(&by, To::New, "x").await, Err(AccessError::BoundElsewhere.into()));
    let session = said.session;
    let end = world.engine.way_in().ask(&by, Request::End { session }, trace(None)).await;
    assert_eq!(end, Err(AccessError::NeedsRight(Right::Manage).into()));
    assert_eq!(world.engine.people().people(&by, None, 1).await, Err(AccessError::BoundElsewhere.into()));
    let on = engine::Resource::Session(session);
    let given = world.engine.people().give(&by, on, Grantee::Org, Grant::View, trace(None)).await;
    assert_eq!(given, Err(AccessError::NeedsRight(Right::Manage).into()));

    let not_its_own =
        world.engine.people().revoke_token(&by, world.me.credential.unwrap(), trace(None)).await;
    assert_eq!(not_its_own, Err(AccessError::BoundElsewhere.into()));

    world.ask(Request::Stop { message: said.message }).await.unwrap();
    world.settled(said.message).await;
    assert_eq!(who(&world, secret.reveal()).await, None, "the turn is over");
    assert_eq!(world.engine.people().refreshed(&by).await, Err(AccessError::Unauthenticated.into()));

    let again = world.say(To::Session(other), "!hang").await.unwrap().accepted;
    world.house_has_handed(again.message).await;
    let secret = world.letterbox.0.lock().unwrap()[&other].clone();
    assert!(who(&world, secret.reveal()).await.is_some());
    world.crash().await;
    world.settled(again.message).await;
    assert_eq!(who(&world, secret.reveal()).await, None, "after a crash, too");
    assert!(!world.letterbox.0.lock().unwrap().contains_key(&other), "and it lies nowhere");
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_shown_once_also_to_whoever_asks_again_with_the_same_key() {
    let world = World::new().await;
    let rights = Rights::NONE.with(Right::Read);
    let make = || MakeToken { name: "ci".to_owned(), rights, expires: Expiry::Usual, client: None };
    world.engine.people().make_token(&world.me, make(), trace(Some("k"))).await.unwrap();
    let again = world.engine.people().make_token(&world.me, make(), trace(Some("k"))).await;
    assert_eq!(again.unwrap_err(), PeopleError::ShownOnce);
    assert_eq!(world.engine.people().tokens(&world.me, None).await.unwrap().len(), 1);
}
