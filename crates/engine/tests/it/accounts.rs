//! Stories of people's own sign-ins: whose turn gets which, and who may see what of them.

use crate::puppet::Puppet;
use crate::vocabulary::{of_type, said, speaking, stories, turn, world_of};
use crate::world::{World, trace};
use agent::{Account, AgentEvent};
use engine::{AccessError, AccountView, InvalidError, PeopleError, ReceiptState, SECRET_BYTES_MAX};
use kernel::{Grant, Role, To};
use std::collections::BTreeMap;
use std::time::Duration;

fn puppet() -> Puppet {
    speaking(vec![AgentEvent::Finished { native: None, reason: String::new() }])
}

fn secrets(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

async fn give(world: &World, value: &str) -> Result<AccountView, PeopleError> {
    world
        .engine
        .people()
        .set_account(&world.me, "puppet", secrets(&[("PUPPET_KEY", value)]), trace(None))
        .await
}

fn accounts(puppet: &Puppet) -> Vec<Account> {
    puppet.notes.launches.lock().unwrap().iter().map(|launch| launch.account.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_persons_own_sign_in_is_used_in_their_turns_and_in_nobody_elses() {
    let puppet = puppet();
    let world = world_of(&puppet).await;
    let session = turn(&world, To::New).await;
    give(&world, "hush").await.unwrap();
    turn(&world, To::Session(session)).await;

    let bob = world.let_in("bob", Role::Member).await;
    world.store.grant(session, bob.person, Some(Grant::Prompt));
    let mut inbound = said(&world, To::Session(session));
    inbound.by = bob;
    let receipt = world.engine.way_in().send(inbound).await.unwrap().accepted;
    world.settled(receipt.message).await;

    let mine = vec![("PUPPET_KEY".to_owned(), "hush".to_owned())];
    let mine = Account::Person { person: world.me.person, secrets: mine };
    assert_eq!(accounts(&puppet), [Account::House, mine, Account::House]);
    let stories = stories(&world, session).await;
    let whose: Vec<_> = of_type(&stories, "launch")
        .iter()
        .map(|story| story["account"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(whose, ["house", &world.me.person.to_string(), "house"], "the fact says whose");
    assert!(stories.iter().all(|story| !story.to_string().contains("hush")));
}

#[tokio::test(start_paused = true)]
async fn a_sign_in_that_cannot_be_opened_refuses_the_turn_and_is_never_silently_the_houses() {
    let puppet = puppet();
    let mut world = world_of(&puppet).await;
    give(&world, "hush").await.unwrap();
    world.seal.change();
    world.restart().await;
    let receipt = world.engine.way_in().send(said(&world, To::New)).await.unwrap().accepted;
    let view = world.settled(receipt.message).await;
    assert_eq!((view.row.state, view.row.why), (ReceiptState::Failed, Some("refused")));
    let notice = view.notice.unwrap();
    assert!(notice.contains("homing agents account set puppet"), "{notice}");
    assert!(accounts(&puppet).is_empty(), "nothing was started");

    world.engine.people().remove_account(&world.me, "puppet", trace(None)).await.unwrap();
    turn(&world, To::New).await;
    assert_eq!(accounts(&puppet), [Account::House]);
}

#[tokio::test(start_paused = true)]
async fn one_persons_sealed_row_is_of_no_use_to_another() {
    let puppet = puppet();
    let world = world_of(&puppet).await;
    give(&world, "hush").await.unwrap();
    let bob = world.let_in("bob", Role::Member).await;
    let row = store::Credentials::account(&world.store, world.me.org, world.me.person, "puppet".to_owned());
    let row = row.await.unwrap().unwrap();
    assert!(!String::from_utf8_lossy(&row.sealed).contains("hush"));
    let (verb, door, correlation, address) = ("x", "test", String::new(), None);
    let trail = store::Trail { verb, door, correlation, address, at: world.engine.now() };
    let stolen =
        store::NewAccount { agent: "puppet".to_owned(), names: row.names, sealed: row.sealed, trail };
    store::Credentials::set_account(&world.store, bob.clone(), stolen).await.unwrap();
    let mut inbound = said(&world, To::New);
    inbound.if_new.directory = None;
    inbound.by = bob.clone();
    let receipt = world.engine.way_in().send(inbound).await.unwrap().accepted;
    let view =
        world.engine.views().receipt_within(&bob, receipt.message, Duration::from_secs(60)).await.unwrap();
    assert_eq!((view.row.state, view.row.why), (ReceiptState::Failed, Some("refused")));
    assert!(accounts(&puppet).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_sign_in_can_be_seen_by_its_names_only_and_only_by_whoever_gave_it() {
    let world = world_of(&puppet()).await;
    assert_eq!(world.engine.people().account(&world.me, "puppet").await, Ok(None));
    let given = give(&world, "hush").await.unwrap();
    assert_eq!(given.names, ["PUPPET_KEY"]);
    assert_eq!(world.engine.people().account(&world.me, "puppet").await, Ok(Some(given)));
    let bob = world.let_in("bob", Role::Member).await;
    assert_eq!(world.engine.people().account(&bob, "puppet").await, Ok(None));
    let nobody: PeopleError = AccessError::NotFound { what: "agent" }.into();
    assert_eq!(world.engine.people().account(&world.me, "nobody").await, Err(nobody.clone()));
    let set =
        world.engine.people().set_account(&world.me, "nobody", secrets(&[("A", "b")]), trace(None)).await;
    assert_eq!(set, Err(nobody));
}

#[tokio::test(start_paused = true)]
async fn only_what_an_agent_takes_can_be_given_and_every_refusal_is_in_the_audit() {
    let world = world_of(&puppet()).await;
    let long = "x".repeat(SECRET_BYTES_MAX + 1);
    let bad = [
        ("puppet", secrets(&[])),
        ("puppet", secrets(&[("PATH", "/tmp")])),
        ("puppet", secrets(&[("PUPPET_KEY", "")])),
        ("puppet", secrets(&[("PUPPET_KEY", "a\0b")])),
        ("puppet", secrets(&[("PUPPET_KEY", &long)])),
        ("scripted", secrets(&[("PUPPET_KEY", "hush")])),
    ];
    for (agent, secrets) in bad.clone() {
        let refused =
            world.engine.people().set_account(&world.me, agent, secrets, trace(None)).await.unwrap_err();
        assert!(
            matches!(refused, PeopleError::Invalid(InvalidError { field: "secrets", .. })),
            "{refused:?}"
        );
        assert!(!refused.to_string().contains("hush"));
    }
    let audit = world.store.snapshot().audit;
    let refused: Vec<_> = audit.iter().filter(|row| row.refused.is_some()).collect();
    assert_eq!(refused.len(), bad.len());
    let fits = |row: &store::AuditRow| row.verb == "set_account" && row.refused.as_deref() == Some("invalid");
    assert!(refused.into_iter().all(fits));
}
