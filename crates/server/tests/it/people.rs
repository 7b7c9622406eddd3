//! People over HTTP: each endpoint as it should go, and how it refuses.

use crate::town::SOON;
use crate::world::{ANN, Somebody, TOKEN, World};
use api::client::{Client, ClientError};
use api::*;
use kernel::Role as Is;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn code(error: ClientError) -> Code {
    error.problem().unwrap_or_else(|| panic!("{error}")).code
}

async fn team(world: &World) -> (Client, Somebody, Client) {
    let bob = world.let_in("bob", Is::Member).await;
    let client = world.client_of(&bob.token);
    (world.client(), bob, client)
}

fn by_password(login: &str, password: &str) -> NewSignIn {
    let (login, password) = (login.to_owned(), Secret::from(password.to_owned()));
    NewSignIn::Password(PasswordSignIn {
        login,
        password,
        purpose: SignInFor::Cli,
        name: Some("laptop".into()),
    })
}

fn by_link(path: &Secret) -> NewSignIn {
    let link = Secret::from(path.reveal().strip_prefix("/in/").unwrap().to_owned());
    NewSignIn::Link(LinkSignIn { link, purpose: SignInFor::Cli, name: None })
}

fn password(current: Option<&str>, new: &str) -> NewPassword {
    let secret = |text: &str| Secret::from(text.to_owned());
    NewPassword { current: current.map(secret), new: secret(new) }
}

#[tokio::test]
async fn somebody_is_added_comes_in_by_the_link_and_again_by_a_password() {
    let world = World::new().await;
    let ann = world.client();
    let new = NewPerson {
        handle: "bob".into(),
        name: Some("Bob".into()),
        email: Some("Bob@example.org".into()),
        role: None,
    };
    let added = ann.add_person(&new).await.unwrap();
    assert_eq!((added.user.handle.as_str(), added.user.role), ("bob", Role::Member));
    assert_eq!(added.user.email.as_deref(), Some("bob@example.org"));
    assert_eq!(code(ann.add_person(&new).await.unwrap_err()), Code::Taken);

    let nobody = world.client_of("");
    let signed = nobody.sign_in(&by_link(&added.link.path)).await.unwrap();
    assert_eq!((signed.person.as_str(), signed.handle.as_str()), (added.user.id.as_str(), "bob"));
    assert_eq!(code(nobody.sign_in(&by_link(&added.link.path)).await.unwrap_err()), Code::WrongSignIn);
    let bob = world.client_of(signed.secret.unwrap().reveal());
    let me = bob.me().await.unwrap();
    assert_eq!((me.role, me.host, me.has_password), (Role::Member, false, false));

    for bad in ["bob@example.org", "short"] {
        let refused = bob.set_password(&password(None, bad)).await.unwrap_err();
        assert_eq!(code(refused), Code::Invalid, "{bad}");
    }
    bob.set_password(&password(None, "correct horse")).await.unwrap();
    let refused = bob.set_password(&password(Some("wrong horse"), "another horse")).await.unwrap_err();
    assert_eq!(code(refused), Code::WrongSignIn);
    let refused = bob.set_password(&password(None, "another horse")).await.unwrap_err();
    assert_eq!(code(refused), Code::WrongSignIn);

    for login in ["bob", "ann/bob", "bob@example.org"] {
        let signed = nobody.sign_in(&by_password(login, "correct horse")).await.unwrap();
        assert!(signed.secret.unwrap().reveal().starts_with("hmg_c_"), "{login}");
    }
    for (login, typed) in [("bob", "wrong horse"), ("nobody", "correct horse"), ("ann", "correct horse")] {
        let refused = nobody.sign_in(&by_password(login, typed)).await.unwrap_err();
        assert_eq!(code(refused), Code::WrongSignIn, "{login}");
    }
    ann.remove_password(&added.user.id).await.unwrap();
    let refused = nobody.sign_in(&by_password("bob", "correct horse")).await.unwrap_err();
    assert_eq!(code(refused), Code::WrongSignIn);
}

#[tokio::test]
async fn a_browser_gets_a_cookie_and_no_secret_and_signs_out() {
    let world = World::new().await;
    let link = world.client().make_link(&ANN.to_string()).await.unwrap();
    let link = link.path.reveal().strip_prefix("/in/").unwrap().to_owned();
    let body = serde_json::json!({ "link": link, "for": "browser" });
    let answer = world.http.post(format!("{}/api/v1/sign-in", world.url)).json(&body).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    assert!(!answer.text().await.unwrap().contains("secret"));
    let ask = |method, path: &str| {
        let ask = world.http.request(method, format!("{}/api/v1/{path}", world.url));
        ask.header("cookie", &cookie).header("sec-fetch-site", "same-origin")
    };
    assert_eq!(ask(reqwest::Method::GET, "me").send().await.unwrap().status(), 200);
    let out = ask(reqwest::Method::POST, "sign-out").send().await.unwrap();
    assert_eq!(out.status(), 200);
    assert!(out.headers()["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    assert_eq!(ask(reqwest::Method::GET, "me").send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn nobody_is_let_in_while_the_wall_has_a_hole() {
    let world = World::new().await;
    let ann = world.client();
    assert!(ann.wall().await.unwrap().proved);
    world.fence.0.store(true, Ordering::Relaxed);
    let wall = ann.wall().await.unwrap();
    assert_eq!((wall.proved, wall.trusts_everyone), (false, false));
    assert_eq!(wall.findings, ["there is a hole"]);
    let new = NewPerson { handle: "bob".into(), name: None, email: None, role: None };
    let refused = ann.add_person(&new).await.unwrap_err();
    assert!(refused.problem().unwrap().detail.contains("there is a hole"));
    assert_eq!(code(refused), Code::WallNotProved);
}

#[tokio::test]
async fn people_see_each_others_names_and_admins_see_the_rest() {
    let world = World::new().await;
    let (ann, bob, as_bob) = team(&world).await;
    let id = bob.by.person.to_string();
    let change = PersonChange { email: Some("bob@example.org".into()), ..PersonChange::default() };
    assert_eq!(ann.change_person(&id, &change).await.unwrap().email.as_deref(), Some("bob@example.org"));
    assert_eq!(code(as_bob.change_person(&id, &change).await.unwrap_err()), Code::RoleTooLow);
    let named = MyChange { name: Some("Bob B.".into()) };
    assert_eq!(as_bob.change_me(&named).await.unwrap().name.as_deref(), Some("Bob B."));
    // Who asks for nothing changes nothing, and learns how it is.
    assert_eq!(as_bob.change_me(&MyChange::default()).await.unwrap().name.as_deref(), Some("Bob B."));
    let same = ann.change_person(&id, &PersonChange::default()).await.unwrap();
    assert_eq!((same.name.as_deref(), same.email.as_deref()), (Some("Bob B."), Some("bob@example.org")));

    let seen = as_bob.person(&ANN.to_string()).await.unwrap();
    assert_eq!((seen.email, seen.has_password, seen.host), (None, None, None));
    let own = as_bob.person(&id).await.unwrap();
    assert_eq!((own.email.as_deref(), own.has_password), (Some("bob@example.org"), Some(false)));

    let first = PeopleQuery { limit: Some(1), ..PeopleQuery::default() };
    let page = as_bob.people(&first).await.unwrap();
    assert_eq!(page.items[0].handle, "ann");
    let page = as_bob.people(&PeopleQuery { cursor: page.next, ..first }).await.unwrap();
    assert_eq!((page.items[0].handle.as_str(), page.next), ("bob", None));
    let named = |name: &str| PeopleQuery { named: Some(name.into()), ..PeopleQuery::default() };
    assert_eq!(ann.people(&named("bob@example.org")).await.unwrap().items[0].id, id);
    assert_eq!(as_bob.people(&named("ann")).await.unwrap().items[0].id, ANN.to_string());
    assert!(as_bob.people(&named("carol")).await.unwrap().items.is_empty());
    let nobody = kernel::PersonId::from_bits(77).to_string();
    assert_eq!(code(ann.person(&nobody).await.unwrap_err()), Code::NotFound);
}

#[tokio::test]
async fn lengths_are_counted_in_characters() {
    let world = World::new().await;
    let ann = world.client();
    let name = |length: usize| MyChange { name: Some("\u{1f37b}".repeat(length)) };
    ann.change_me(&name(200)).await.unwrap();
    assert_eq!(code(ann.change_me(&name(201)).await.unwrap_err()), Code::Invalid);
    let named = |length: usize| PeopleQuery { named: Some("é".repeat(length)), ..PeopleQuery::default() };
    assert!(ann.people(&named(254)).await.unwrap().items.is_empty());
    assert_eq!(code(ann.people(&named(255)).await.unwrap_err()), Code::Invalid);
    let email = format!("{}@example.org", "é".repeat(242));
    let mail = |email: String| PersonChange { email: Some(email), ..PersonChange::default() };
    let me = ANN.to_string();
    assert_eq!(ann.change_person(&me, &mail(email.clone())).await.unwrap().email, Some(email.clone()));
    assert_eq!(code(ann.change_person(&me, &mail(email + "g")).await.unwrap_err()), Code::Invalid);
    let titled = |length: usize| NewSession { title: Some("é".repeat(length)), ..NewSession::default() };
    ann.make_session(&titled(200)).await.unwrap();
    assert_eq!(code(ann.make_session(&titled(201)).await.unwrap_err()), Code::Invalid);
    let placed = |length: usize| NewSession {
        directory: Some(format!("/{}", "é".repeat(length - 1))),
        ..NewSession::default()
    };
    ann.make_session(&placed(4_095)).await.unwrap();
    assert_eq!(code(ann.make_session(&placed(4_096)).await.unwrap_err()), Code::Invalid);
    // Eight bytes are no eight characters.
    assert_eq!(code(ann.set_password(&password(None, &"é".repeat(4))).await.unwrap_err()), Code::Invalid);
    let long = "é".repeat(1_024);
    ann.set_password(&password(None, &long)).await.unwrap();
    world.client_of("").sign_in(&by_password("ann", &long)).await.unwrap();
}

#[tokio::test]
async fn an_orgs_limits_are_whole_numbers_that_schemas_know() {
    let world = World::new().await;
    let change = async |body: &'static str| {
        let ask = world.ask("PATCH", "/api/v1/org").header("content-type", "application/json");
        ask.body(body).send().await.unwrap().status().as_u16()
    };
    assert_eq!(change(r#"{"open_max":7.0,"awake_max":2147483647}"#).await, 200);
    let settings = world.client().org().await.unwrap().settings;
    assert_eq!((settings.open_max, settings.awake_max), (Some(7), Some(2_147_483_647)));
    for body in [r#"{"open_max":0}"#, r#"{"open_max":7.5}"#, r#"{"awake_max":2147483648}"#] {
        assert_eq!(change(body).await, 422, "{body}");
    }
    assert_eq!(world.client().org().await.unwrap().settings, settings);
}

#[tokio::test]
async fn roles_bound_what_somebody_may_do_with_others() {
    let world = World::new().await;
    let (ann, bob, as_bob) = team(&world).await;
    let (id, carol) = (bob.by.person.to_string(), world.let_in("carol", Is::Admin).await);
    let as_carol = world.client_of(&carol.token);
    let me = ANN.to_string();
    let role = |role| PersonChange { role: Some(role), ..PersonChange::default() };
    assert_eq!(code(as_bob.disable(&me).await.unwrap_err()), Code::RoleTooLow);
    assert_eq!(code(as_carol.disable(&me).await.unwrap_err()), Code::RoleTooLow);
    assert_eq!(code(as_carol.change_person(&id, &role(Role::Owner)).await.unwrap_err()), Code::RoleTooLow);
    assert_eq!(code(ann.change_person(&me, &role(Role::Member)).await.unwrap_err()), Code::LastOwner);
    assert_eq!(code(ann.disable(&me).await.unwrap_err()), Code::LastOwner);
    assert_eq!(as_carol.change_person(&id, &role(Role::Viewer)).await.unwrap().role, Role::Viewer);
    let refused = as_bob.say(&NewMessage::text(To::new_session(IfNew::default()), "hi")).await.unwrap_err();
    assert_eq!(code(refused), Code::RoleTooLow);

    ann.disable(&id).await.unwrap();
    ann.disable(&id).await.unwrap();
    assert_eq!(code(as_bob.me().await.unwrap_err()), Code::Unauthenticated);
    ann.enable(&id).await.unwrap();
    assert_eq!(code(as_bob.me().await.unwrap_err()), Code::Unauthenticated, "their tokens are gone");
    let link = as_carol.make_link(&id).await.unwrap();
    world.client_of("").sign_in(&by_link(&link.path)).await.unwrap();
}

#[tokio::test]
async fn a_session_is_shared_with_a_group_and_taken_back() {
    let world = World::new().await;
    let (ann, bob, as_bob) = team(&world).await;
    let session = ann.make_session(&NewSession::default()).await.unwrap().id;
    let on = format!("sessions/{session}");
    assert_eq!(code(as_bob.session(&session).await.unwrap_err()), Code::NotFound);
    assert_eq!(
        code(as_bob.make_group(&NewGroup { name: "team".into() }).await.unwrap_err()),
        Code::RoleTooLow
    );
    let group = ann.make_group(&NewGroup { name: "team".into() }).await.unwrap();
    assert_eq!(code(ann.make_group(&NewGroup { name: "team".into() }).await.unwrap_err()), Code::Taken);
    ann.join(&group.id, &bob.by.person.to_string()).await.unwrap();
    assert_eq!(ann.groups().await.unwrap().items[0].people[0].handle.as_deref(), Some("bob"));
    assert_eq!(as_bob.me().await.unwrap().groups, std::slice::from_ref(&group.id));

    let give = |grant| NewGrant { to: Grantee::group(&group.id), grant };
    assert_eq!(code(as_bob.give(&on, &give(Grant::View)).await.unwrap_err()), Code::NotFound);
    ann.give(&on, &give(Grant::View)).await.unwrap();
    let seen = as_bob.session(&session).await.unwrap();
    assert_eq!(seen.owned_by.unwrap().handle.as_deref(), Some("ann"));
    let say = NewMessage::text(To::session(&session), "hello");
    assert_eq!(code(as_bob.say(&say).await.unwrap_err()), Code::NotAllowed);
    assert_eq!(code(as_bob.grants(&on).await.unwrap_err()), Code::NotAllowed);
    ann.give(&on, &give(Grant::Prompt)).await.unwrap();
    let receipt = as_bob.say(&say).await.unwrap();
    let asked = MessageQuery { wait: Some(20), words: None };
    let seen = ann.receipt(&receipt.id, &asked).await.unwrap();
    assert_eq!(seen.by, receipt.by);
    assert_eq!(seen.by.unwrap().handle.as_deref(), Some("bob"), "it is the sender's");
    let granted = ann.grants(&on).await.unwrap().items;
    assert_eq!((granted.len(), granted[0].grant), (1, Grant::Prompt));
    assert_eq!(granted[0].by.handle.as_deref(), Some("ann"));

    ann.leave(&group.id, &bob.by.person.to_string()).await.unwrap();
    assert_eq!(code(as_bob.session(&session).await.unwrap_err()), Code::NotFound);
    ann.give(&on, &NewGrant { to: Grantee::org(), grant: Grant::View }).await.unwrap();
    as_bob.session(&session).await.unwrap();
    ann.take_back(&on, Grantee::org()).await.unwrap();
    ann.take_back(&on, Grantee::org()).await.unwrap();
    assert_eq!(code(as_bob.session(&session).await.unwrap_err()), Code::NotFound);
    ann.remove_group(&group.id).await.unwrap();
    assert_eq!(code(ann.remove_group(&group.id).await.unwrap_err()), Code::NotFound);

    let to_bob = HandOver { to: bob.by.person.to_string() };
    ann.give(&on, &NewGrant { to: Grantee::org(), grant: Grant::Prompt }).await.unwrap();
    ann.hand_over(&session, &to_bob).await.unwrap();
    assert_eq!(ann.session(&session).await.unwrap().owner, ANN.to_string(), "nothing has changed");
    assert_eq!(code(ann.hand_over(&session, &to_bob).await.unwrap_err()), Code::OfferedAlready);
    let to_ann = HandOver { to: ANN.to_string() };
    assert_eq!(code(ann.hand_over(&session, &to_ann).await.unwrap_err()), Code::OwnsAlready);
    for client in [&ann, &as_bob] {
        let [offer] = &client.offers().await.unwrap().items[..] else { panic!("one offer") };
        let names = [&offer.from, &offer.to].map(|who| who.handle.clone().unwrap());
        assert_eq!((offer.session.as_str(), names), (session.as_str(), ["ann".to_owned(), "bob".to_owned()]));
    }
    as_bob.decline_offer(&session).await.unwrap();
    assert_eq!(code(as_bob.accept_offer(&session).await.unwrap_err()), Code::NotFound);
    ann.hand_over(&session, &to_bob).await.unwrap();
    ann.take_offer_back(&session).await.unwrap();
    assert_eq!(code(as_bob.accept_offer(&session).await.unwrap_err()), Code::NotFound);
    assert!(as_bob.offers().await.unwrap().items.is_empty());
    ann.hand_over(&session, &to_bob).await.unwrap();
    as_bob.accept_offer(&session).await.unwrap();
    assert_eq!(code(ann.session(&session).await.unwrap_err()), Code::NotFound);
    assert_eq!(as_bob.session(&session).await.unwrap().owner, bob.by.person.to_string());
    let his = bob.by.person.to_string();
    ann.hand_over_all(&his, &to_ann).await.unwrap();
    assert_eq!(as_bob.session(&session).await.unwrap().owner, his, "it is offered to her");
    ann.disable(&his).await.unwrap();
    ann.hand_over_all(&his, &to_ann).await.unwrap();
    assert_eq!(ann.session(&session).await.unwrap().owner, ANN.to_string(), "he has left");
}

/// The time until then is the engine's promise, kept by a clock that no machine can slow down:
/// `a_stream_ends_within_a_second_of_…` there.
#[tokio::test]
async fn a_stream_ends_when_the_grant_is_lost() {
    let world = World::new().await;
    let (ann, bob, as_bob) = team(&world).await;
    let session = ann.make_session(&NewSession::default()).await.unwrap().id;
    let (on, to) = (format!("sessions/{session}"), Grantee::user(bob.by.person.to_string()));
    ann.give(&on, &NewGrant { to: to.clone(), grant: Grant::View }).await.unwrap();
    let path = format!("{}/api/v1/sessions/{session}/facts", world.url);
    let ask = |path: &str| world.http.get(path).bearer_auth(&bob.token).header("accept", "text/event-stream");
    let mut facts = ask(&path).send().await.unwrap();
    let mut heads = ask(&format!("{}/api/v1/facts", world.url)).send().await.unwrap();
    assert_eq!((facts.status(), heads.status()), (reqwest::StatusCode::OK, reqwest::StatusCode::OK));
    ann.take_back(&on, to).await.unwrap();
    let end = async { while facts.chunk().await.unwrap().is_some() {} };
    tokio::time::timeout(SOON, end).await.expect("the stream ends");
    assert_eq!(code(as_bob.session(&session).await.unwrap_err()), Code::NotFound);

    ann.disable(&bob.by.person.to_string()).await.unwrap();
    let end = async { while heads.chunk().await.unwrap().is_some() {} };
    tokio::time::timeout(SOON, end).await.expect("and so does the other");
}

#[tokio::test]
async fn an_agent_is_open_to_every_member_until_something_is_given_on_it() {
    let world = World::new().await;
    let (ann, bob, as_bob) = team(&world).await;
    let on = "agents/scripted";
    let to = Grantee::user(ANN.to_string());
    let new = NewMessage::text(To::new_session(IfNew::default()), "hi");
    as_bob.say(&new).await.unwrap();
    let give = NewGrant { to: to.clone(), grant: Grant::Prompt };
    assert_eq!(code(as_bob.give(on, &give).await.unwrap_err()), Code::RoleTooLow);
    assert_eq!(code(ann.give("agents/nobody", &give).await.unwrap_err()), Code::UnknownAgent);
    ann.give(on, &give).await.unwrap();
    assert_eq!(ann.grants(on).await.unwrap().items.len(), 1);
    assert!(as_bob.agents().await.unwrap().items.iter().all(|agent| agent.name != "scripted"));
    let refused = code(as_bob.say(&new).await.unwrap_err());
    assert!(matches!(refused, Code::UnknownAgent | Code::AgentNotYours), "{refused}");
    ann.give(on, &NewGrant { to: Grantee::user(bob.by.person.to_string()), grant: Grant::Prompt })
        .await
        .unwrap();
    as_bob.say(&new).await.unwrap();
    ann.take_back(on, to).await.unwrap();
}

#[tokio::test]
async fn a_directory_is_chosen_only_below_a_root() {
    let world = World::new().await;
    let (ann, bob, as_bob) = team(&world).await;
    let to = Grantee::user(bob.by.person.to_string());
    let root = |directory: &str| Root { directory: directory.into(), to: to.clone() };
    let make = |directory: &str| NewSession { directory: Some(directory.into()), ..NewSession::default() };
    as_bob.make_session(&NewSession::default()).await.unwrap();
    assert_eq!(code(as_bob.make_session(&make("/meadow/a")).await.unwrap_err()), Code::DirectoryNotYours);
    assert_eq!(code(as_bob.add_root(&root("/meadow")).await.unwrap_err()), Code::RoleTooLow);
    assert_eq!(code(as_bob.roots().await.unwrap_err()), Code::RoleTooLow);
    assert_eq!(code(ann.add_root(&root("/gone")).await.unwrap_err()), Code::BadDirectory);
    assert_eq!(code(ann.add_root(&root("meadow")).await.unwrap_err()), Code::Invalid);
    assert_eq!(ann.add_root(&root("/meadow")).await.unwrap(), root("/meadow"));
    assert_eq!(as_bob.me().await.unwrap().roots, ["/meadow"]);
    as_bob.make_session(&make("/meadow/a")).await.unwrap();
    assert_eq!(code(as_bob.make_session(&make("/meadows")).await.unwrap_err()), Code::DirectoryNotYours);
    assert_eq!(ann.roots().await.unwrap().items.len(), 2);
    ann.remove_root(root("/meadow")).await.unwrap();
    assert_eq!(code(as_bob.make_session(&make("/meadow/b")).await.unwrap_err()), Code::DirectoryNotYours);
}

#[tokio::test]
async fn a_token_does_what_its_rights_say_until_it_is_revoked() {
    let world = World::new().await;
    let (ann, bob, as_bob) = team(&world).await;
    let new = |rights: &[Right]| NewToken {
        name: "reader".into(),
        rights: rights.to_vec(),
        expires: None,
        client: None,
    };
    let made = as_bob.make_token(&new(&[Right::Read])).await.unwrap();
    assert!(made.secret.reveal().starts_with("hmg_a_"));
    let reader = world.client_of(made.secret.reveal());
    assert_eq!(reader.me().await.unwrap().rights, [Right::Read]);
    reader.sessions(&SessionsQuery::default()).await.unwrap();
    let say = NewMessage::text(To::new_session(IfNew::default()), "hi");
    assert_eq!(code(reader.say(&say).await.unwrap_err()), Code::RightMissing);
    assert_eq!(code(reader.make_token(&new(&[Right::Read])).await.unwrap_err()), Code::RightMissing);
    assert_eq!(code(as_bob.make_token(&new(&[])).await.unwrap_err()), Code::Invalid);
    let past = NewToken { expires: Some(Expiry::At(At(1))), ..new(&[Right::Read]) };
    assert_eq!(code(as_bob.make_token(&past).await.unwrap_err()), Code::Invalid);
    let body = r#"{"name":"x","rights":["read"],"expires":"9998-11-15T12:34:56+01:00"}"#;
    let ask = world.ask("POST", "/api/v1/tokens").header("content-type", "application/json").body(body);
    let made_by_ann: MadeToken = ask.send().await.unwrap().json().await.unwrap();
    assert_eq!(made_by_ann.token.expires.unwrap().to_string(), "9998-11-15T11:34:56.000Z");

    // Give or take the time that it took to make it.
    let usual_ms = made.token.expires.unwrap().0 - made.token.made_at.0;
    let off_ms = usual_ms.abs_diff(90 * 24 * 60 * 60 * 1_000);
    assert!(off_ms < 60_000, "if nothing is said it is good for 90 days, not {usual_ms} ms");
    let endless = NewToken { expires: Some(Expiry::Never), ..new(&[Right::Read]) };
    assert_eq!(
        as_bob.make_token(&endless).await.unwrap().token.expires,
        None,
        "that it has no end has to be said"
    );

    // What a token makes ends with it, and goes with it.
    let parent = as_bob.make_token(&new(&[Right::Read, Right::Admin])).await.unwrap();
    let with_parent = world.client_of(parent.secret.reveal());
    let child = with_parent
        .make_token(&NewToken { expires: Some(Expiry::Never), ..new(&[Right::Read]) })
        .await
        .unwrap();
    assert_eq!(child.token.made_with, Some(parent.token.id.clone()));
    assert_eq!(child.token.expires, parent.token.expires);
    let with_child = world.client_of(child.secret.reveal());
    with_child.me().await.unwrap();
    as_bob.revoke_token(&parent.token.id).await.unwrap();
    assert_eq!(code(with_child.me().await.unwrap_err()), Code::Unauthenticated);

    let mine = as_bob.tokens(&TokensQuery::default()).await.unwrap().items;
    assert!(mine.iter().any(|token| token.id == made.token.id && token.purpose == Purpose::Api));
    let of_ann = TokensQuery { user: Some(ANN.to_string()) };
    assert_eq!(code(as_bob.tokens(&of_ann).await.unwrap_err()), Code::RoleTooLow);
    let of_bob = TokensQuery { user: Some(bob.by.person.to_string()) };
    assert_eq!(ann.tokens(&of_bob).await.unwrap().items, mine);
    ann.revoke_token(&made.token.id).await.unwrap();
    assert_eq!(code(reader.me().await.unwrap_err()), Code::Unauthenticated);
    as_bob.sign_out().await.unwrap();
    assert_eq!(code(as_bob.me().await.unwrap_err()), Code::Unauthenticated);
}

#[tokio::test]
async fn a_repeated_request_makes_one_token_and_shows_its_secret_once() {
    let world = World::new().await;
    let body = serde_json::json!({ "name": "x", "rights": ["read"] });
    let make = || world.ask("POST", "/api/v1/tokens").header("idempotency-key", "k1").json(&body).send();
    assert_eq!(make().await.unwrap().status(), 200);
    let again = make().await.unwrap();
    assert_eq!(again.status(), 409);
    assert!(again.text().await.unwrap().contains("idempotency_conflict"));
    let tokens = world.client().tokens(&TokensQuery::default()).await.unwrap().items;
    assert_eq!(tokens.iter().filter(|token| token.name.as_deref() == Some("x")).count(), 1);
}

#[tokio::test]
async fn orgs_are_made_by_the_machines_person_and_see_nothing_of_each_other() {
    let world = World::new().await;
    let (ann, _, as_bob) = team(&world).await;
    let owner = NewOwner { handle: "olga".into(), name: None, email: None };
    let new = NewOrg { name: "other".into(), owner };
    assert_eq!(code(as_bob.make_org(&new).await.unwrap_err()), Code::RoleTooLow);
    assert_eq!(code(as_bob.orgs().await.unwrap_err()), Code::RoleTooLow);
    let made = ann.make_org(&new).await.unwrap();
    assert_eq!(code(ann.make_org(&new).await.unwrap_err()), Code::Taken);
    assert_eq!(ann.orgs().await.unwrap().items.len(), 2);
    let signed = world.client_of("").sign_in(&by_link(&made.link.path)).await.unwrap();
    assert_eq!(signed.person, made.link.user);
    let olga = world.client_of(signed.secret.unwrap().reveal());
    assert_eq!(olga.people(&PeopleQuery::default()).await.unwrap().items.len(), 1);
    assert_eq!(code(olga.person(&ANN.to_string()).await.unwrap_err()), Code::NotFound);
    assert_eq!(code(olga.orgs().await.unwrap_err()), Code::RoleTooLow);

    let change = OrgChange { share_new: Some(Some(Grant::View)), open_max: Some(Some(2)), awake_max: None };
    assert_eq!(code(as_bob.change_org(&change).await.unwrap_err()), Code::RoleTooLow);
    let org = ann.change_org(&change).await.unwrap();
    assert_eq!((org.settings.share_new, org.settings.open_max), (Some(Grant::View), Some(2)));
    assert_eq!(as_bob.org().await.unwrap(), org);
    let session = ann.make_session(&NewSession::default()).await.unwrap().id;
    as_bob.session(&session).await.unwrap();
    as_bob.make_session(&NewSession::default()).await.unwrap();
    assert_eq!(code(ann.make_session(&NewSession::default()).await.unwrap_err()), Code::TooManyOrgSessions);
    let change = OrgChange { share_new: Some(None), open_max: Some(None), ..OrgChange::default() };
    assert_eq!(ann.change_org(&change).await.unwrap().settings, OrgSettings::default());
    ann.make_session(&NewSession::default()).await.unwrap();
}

#[tokio::test]
async fn the_audit_says_who_did_what_from_where_and_its_chain_holds() {
    let world = World::new().await;
    let (ann, bob, as_bob) = team(&world).await;
    assert_eq!(code(as_bob.audit(&AuditQuery::default()).await.unwrap_err()), Code::RoleTooLow);
    assert_eq!(code(as_bob.verify_audit().await.unwrap_err()), Code::RoleTooLow);
    as_bob.disable(&ANN.to_string()).await.unwrap_err();
    ann.make_group(&NewGroup { name: "team".into() }).await.unwrap();

    let who = Some(bob.by.person.to_string());
    let refused = ann.audit(&AuditQuery { who, ..AuditQuery::default() }).await.unwrap().items;
    let refused = refused.iter().find(|entry| entry.what == "disable").unwrap();
    assert_eq!(refused.refused.as_deref(), Some("role_too_low"));
    assert_eq!(refused.by.as_ref().unwrap().handle.as_deref(), Some("bob"));
    assert_eq!((refused.address.as_deref(), refused.door.as_str()), (Some("127.0.0.1"), "cli"));
    let made = AuditQuery { what: Some("make_group".into()), ..AuditQuery::default() };
    assert_eq!(ann.audit(&made).await.unwrap().items.len(), 1);

    let all = ann.audit(&AuditQuery::default()).await.unwrap().items;
    let one = AuditQuery { limit: Some(1), ..AuditQuery::default() };
    let first = ann.audit(&one).await.unwrap();
    let second = ann.audit(&AuditQuery { cursor: first.next, ..one }).await.unwrap();
    assert_eq!(second.items[0].entry, all[1].entry);
    let mut export = ann.export_audit(&AuditQuery::default()).await.unwrap();
    let mut exported = Vec::new();
    while let Some(entry) = export.next().await.unwrap() {
        exported.push(entry.entry);
    }
    assert_eq!(exported, all.iter().map(|entry| entry.entry).collect::<Vec<_>>());
    let secret = TOKEN;
    assert!(!serde_json::to_string(&all).unwrap().contains(secret));

    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let verified = loop {
        let verified = ann.verify_audit().await.unwrap();
        assert!(verified.ok, "{verified:?}");
        if verified.entries >= all.len() as u64 {
            break verified;
        }
        assert!(tokio::time::Instant::now() < deadline, "{verified:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(verified.head.number, verified.entries);
    let bad = AuditQuery { cursor: Some("x".into()), ..AuditQuery::default() };
    assert_eq!(code(ann.audit(&bad).await.unwrap_err()), Code::BadCursor);
}
