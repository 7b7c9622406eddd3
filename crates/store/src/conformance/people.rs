//! Promises of the store about the machine's person, credentials, sign-ins for agents, and nodes.

use super::Fixture;
use super::story::*;
use crate::*;
use bytes::Bytes;
use kernel::Moment;

pub async fn the_machines_person_is_made_once<F: Fixture>() {
    let on = F::fresh().await;
    let other = || NewOrg { org: stranger().org, owner: newcomer(&stranger()), ..home() };
    assert_eq!(on.store().host(home()).await.unwrap(), me());
    assert_eq!(on.store().host(other()).await.unwrap(), me());
    let on = on.reopen().await;
    assert_eq!(on.store().host(other()).await.unwrap(), me());
    assert_eq!(on.store().orgs().await.unwrap().len(), 1);
}

fn account(agent: &str, secret: &'static str) -> NewAccount {
    NewAccount {
        agent: agent.into(),
        names: vec!["A_KEY".into(), "B_KEY".into()],
        sealed: Bytes::from_static(secret.as_bytes()),
        trail: Trail {
            verb: "set_account",
            door: "test",
            correlation: "c".into(),
            address: None,
            at: Moment(7),
        },
    }
}

pub async fn a_sign_in_is_one_persons_for_one_agent_and_outlives_a_restart<F: Fixture>() {
    let on = peopled::<F>().await;
    let read = async |on: &F, by: kernel::Principal, agent: &str| {
        let row = on.store().account(by.org, by.person, agent.to_owned()).await.unwrap();
        row.map(|row| (row.names, row.sealed, row.since))
    };
    assert_eq!(read(&on, me(), "claude").await, None);
    on.store().set_account(me(), account("claude", "sealed \0 one")).await.unwrap();
    on.store().set_account(friend(), account("claude", "two")).await.unwrap();
    let on = on.reopen().await;
    let names = vec!["A_KEY".to_owned(), "B_KEY".to_owned()];
    let kept = |secret: &'static str| Some((names.clone(), Bytes::from_static(secret.as_bytes()), Moment(7)));
    assert_eq!(read(&on, me(), "claude").await, kept("sealed \0 one"));
    assert_eq!(read(&on, friend(), "claude").await, kept("two"));
    assert_eq!(read(&on, me(), "codex").await, None);
    let elsewhere = kernel::Principal { org: stranger().org, ..me() };
    assert_eq!(read(&on, elsewhere, "claude").await, None, "the same person in another org has their own");
}

pub async fn a_sign_in_is_replaced_and_forgotten_with_an_audit_entry_each<F: Fixture>() {
    let on = peopled::<F>().await;
    let trail = || account("claude", "").trail;
    on.store().set_account(me(), account("claude", "one")).await.unwrap();
    on.store().set_account(me(), account("claude", "two")).await.unwrap();
    assert_eq!(acts(on.store()).await, 2);
    let row = on.store().account(me().org, me().person, "claude".into()).await.unwrap();
    assert_eq!(row.unwrap().sealed, "two");
    assert!(!on.store().remove_account(friend(), "claude".into(), trail()).await.unwrap());
    assert!(on.store().remove_account(me(), "claude".into(), trail()).await.unwrap());
    assert!(!on.store().remove_account(me(), "claude".into(), trail()).await.unwrap());
    assert_eq!(acts(on.store()).await, 5);
    let on = on.reopen().await;
    assert_eq!(on.store().account(me().org, me().person, "claude".into()).await.unwrap(), None);
}

pub async fn each_start_has_a_higher_term<F: Fixture>() {
    let mut on = F::fresh().await;
    for _ in 0..3 {
        let term = on.store().node().term;
        on.store().announce("http://127.0.0.1:4747".into()).await.unwrap();
        let nodes = on.store().nodes().await.unwrap();
        let this = nodes.iter().find(|node| node.node == on.store().node().node).unwrap();
        assert_eq!((this.term, this.url.as_deref()), (term, Some("http://127.0.0.1:4747")));
        on = on.reopen().await;
        // A start gives its keepers terms of their own, so the next start must lie beyond all of them.
        assert!(on.store().node().term.0 >= term.0 + TERMS_PER_START);
    }
}
