//! The audit: what is in it, what is found in it, and the chain that no entry can be changed under.

use super::Fixture;
use super::story::*;
use crate::*;
use kernel::{Moment, OrgId, PersonId, Principal, Request, To};

const KEY: ChainKey = ChainKey([7; 32]);

fn refusal(by: Option<&Principal>, subject: Option<&str>, at: u64) -> AuditEntry {
    AuditEntry {
        by: by.map(|by| (by.org, by.person)),
        subject: subject.map(String::from),
        trail: Trail { address: Some([192, 0, 2, 7].into()), ..trail("say", at) },
        refused: "not_found",
    }
}

/// The fault in an org's chain, by the number of the first entry that does not fit.
async fn verify(store: &dyn Store, org: OrgId, key: &ChainKey) -> Result<u64, u64> {
    let mut walk = chain::ChainWalk::default();
    loop {
        let before = walk.head().number;
        let page = store.sealed(org, before, 3).await.unwrap();
        let keys = store.sealed_keys(org, before, 3).await.unwrap();
        if page.is_empty() {
            break;
        }
        assert_eq!(page.len(), keys.len());
        for (row, keys) in page.iter().zip(&keys) {
            assert_eq!(row.org, org);
            assert!(row.sealed.is_some(), "only sealed entries are in the chain");
            walk.step(key, row, Some(keys)).map_err(|_| walk.head().number + 1)?;
        }
    }
    let head = walk.head();
    if store.chain_head(org).await.unwrap() == head { Ok(head.number) } else { Err(head.number + 1) }
}

async fn seal_all(store: &dyn Store) -> usize {
    store.seal_audit(KEY, ALL).await.unwrap()
}

pub async fn an_entry_says_who_did_what_from_where<F: Fixture>() {
    let on = peopled::<F>().await;
    say(on.store(), &me(), conversation("a"), line(1)).await;
    on.store().audit(refusal(Some(&friend()), Some("an agent"), 2_000)).await.unwrap();
    on.store().audit(refusal(Some(&friend()), Some(&ses(1).to_string()), 2_001)).await.unwrap();
    let on = on.reopen().await;
    let rows = acted(on.store()).await;
    let [by_session, named, said] = &rows[..] else { panic!("{rows:?}") };
    let done = AuditRow {
        entry: said.entry,
        sealed: None,
        at: Moment(1_001),
        org: me().org,
        by: Some(me().person),
        verb: "say".into(),
        door: "test".into(),
        address: None,
        correlation: "cor-1001".into(),
        session: Some(ses(1)),
        subject: Some(msg(1).to_string()),
        refused: None,
    };
    assert_eq!(*said, done);
    let refused = AuditRow {
        entry: named.entry,
        at: Moment(2_000),
        by: Some(friend().person),
        address: Some("192.0.2.7".into()),
        correlation: "cor-2000".into(),
        session: None,
        subject: Some("an agent".into()),
        refused: Some("not_found".into()),
        ..done
    };
    assert_eq!(*named, refused);
    assert_eq!((by_session.session, &by_session.subject), (Some(ses(1)), &None));
    assert!(said.entry < named.entry && named.entry < by_session.entry);
}

pub async fn what_nobody_known_did_is_in_the_audit_of_the_machines_person<F: Fixture>() {
    let on = peopled::<F>().await;
    on.store().audit(refusal(None, Some("who@example.org"), 2_000)).await.unwrap();
    let page = on.store().audit_page(audit_of(me().org)).await.unwrap();
    assert_eq!((page[0].by, page[0].subject.as_deref()), (None, Some("who@example.org")));
    let theirs = on.store().audit_page(audit_of(stranger().org)).await.unwrap();
    assert!(theirs.is_empty());
}

pub async fn what_the_engine_does_by_itself_is_in_the_audit_under_its_own_name<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    open(store, 1).await;
    let entries = acts(store).await;
    let own_acts = vec![("interrupted", Some(msg(1))), ("deadline", None)];
    let append = with(append_to(store, ses(1)).await, vec![started(1, 1), answered(1)]);
    // What is not written did not happen.
    let old = Append { term: kernel::Term(0), own_acts: own_acts.clone(), ..append.clone() };
    assert_eq!(store.append(old).await.unwrap(), Appending::Fenced);
    assert_eq!(acts(store).await, entries);
    let at = append.facts[1].at;
    written(store, Append { own_acts, ..append }).await;
    let on = on.reopen().await;
    let rows = acted(on.store()).await;
    assert_eq!(rows.len(), entries + 2);
    for (row, (verb, subject)) in
        rows.iter().zip([("deadline", None), ("interrupted", Some(msg(1).to_string()))])
    {
        assert_eq!((row.by, row.org, row.door.as_str()), (Some(PersonId::ENGINE), me().org, "engine"));
        assert_eq!(
            (row.verb.as_str(), row.session, &row.subject, row.at),
            (verb, Some(ses(1)), &subject, at)
        );
    }
    assert!(on.store().people(me().org, None, ALL).await.unwrap().len() == 2, "it is nobody in particular");
}

pub async fn the_audit_is_found_by_time_person_verb_and_subject<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    say(store, &me(), conversation("a"), line(1)).await;
    share(store, ses(1), &friend(), Some(kernel::Grant::Prompt)).await;
    say(store, &friend(), To::Session(ses(1)), line(2)).await;
    ask(store, 1, Request::Stop { message: msg(2) }).await;
    set(store, PeopleChange::MakeGroup { group: grp(1), name: "ours".into() }).await;
    let join = PeopleChange::Join { group: grp(1), person: friend().person };
    assert_eq!(change(store, &me(), join).await, "done");
    seal_all(store).await;
    // The clock may go back; and some of it is not sealed yet.
    store.audit(refusal(Some(&friend()), Some("an agent"), 10)).await.unwrap();
    say(store, &me(), To::Session(ses(1)), line(3)).await;
    say(store, &stranger(), conversation("a"), line(4)).await;
    let ours = audit_of(me().org);
    let all = store.audit_page(ours.clone()).await.unwrap();
    assert!(all.is_sorted_by(|a, b| a.entry > b.entry), "newest first");
    let (who, subject) = (Some(friend().person), |text: String| Some(text));
    for query in [
        AuditQuery { since: Some(Moment(1_002)), ..ours.clone() },
        AuditQuery { until: Some(Moment(1_002)), ..ours.clone() },
        AuditQuery { since: Some(Moment(5)), until: Some(Moment(1_002)), ..ours.clone() },
        AuditQuery { who, ..ours.clone() },
        AuditQuery { what: Some("say".into()), ..ours.clone() },
        AuditQuery { who, what: Some("say".into()), ..ours.clone() },
        AuditQuery { what: Some("nothing".into()), ..ours.clone() },
        AuditQuery { subject: subject(ses(1).to_string()), ..ours.clone() },
        AuditQuery { subject: subject(msg(2).to_string()), ..ours.clone() },
        AuditQuery { subject: subject(friend().person.to_string()), ..ours.clone() },
        AuditQuery { subject: subject(grp(1).to_string()), ..ours.clone() },
        AuditQuery { subject: subject("agent".into()), who, ..ours.clone() },
        AuditQuery { subject: subject("age".into()), ..ours.clone() },
        AuditQuery { before: Some(all[2].entry), ..ours.clone() },
        AuditQuery {
            before: Some(all[1].entry),
            what: Some("say".into()),
            since: Some(Moment(1)),
            ..ours.clone()
        },
    ] {
        let expected: Vec<_> = all.iter().filter(|row| row.fits(&query)).cloned().collect();
        assert_eq!(store.audit_page(query.clone()).await.unwrap(), expected, "{query:?}");
        let mut paged: Vec<AuditRow> = vec![];
        loop {
            let before = paged.last().map(|row| row.entry).or(query.before);
            let page = store.audit_page(AuditQuery { before, limit: 2, ..query.clone() }).await.unwrap();
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        assert_eq!(paged, expected, "{query:?} in pages");
    }
    let nobody = AuditQuery { who: Some(stranger().person), ..ours };
    assert!(store.audit_page(nobody).await.unwrap().is_empty(), "what they do is their org's");
}

pub async fn each_org_has_a_chain_of_its_own_without_gaps<F: Fixture>() {
    let on = peopled::<F>().await;
    assert_eq!(on.store().chain_head(me().org).await.unwrap(), ChainHead::default());
    assert_eq!(verify(on.store(), me().org, &KEY).await, Ok(0));
    for n in 1..=5 {
        say(on.store(), &me(), To::New, line(n)).await;
        say(on.store(), &stranger(), To::New, line(10 + n)).await;
    }
    // Ours has two more: those that set the scene.
    assert_eq!(on.store().seal_audit(KEY, 3).await.unwrap(), 3);
    assert_eq!(on.store().seal_audit(KEY, 4).await.unwrap(), 4);
    let on = on.reopen().await;
    let store = on.store();
    assert_eq!((seal_all(store).await, seal_all(store).await), (5, 0));
    assert_eq!(verify(store, me().org, &KEY).await, Ok(7));
    assert_eq!(verify(store, stranger().org, &KEY).await, Ok(5));
    let chained: Vec<_> = store.sealed(me().org, 0, ALL).await.unwrap();
    assert!(chained.is_sorted_by(|a, b| a.entry < b.entry), "in the order in which they were written");
    let head = store.chain_head(me().org).await.unwrap();
    assert_eq!(chained.last().unwrap().sealed, Some((head.number, head.seal)));
    say(store, &me(), To::New, line(6)).await;
    assert_eq!(store.audit_page(audit_of(me().org)).await.unwrap()[0].sealed, None);
    assert_eq!(seal_all(store).await, 1);
    let newest = store.audit_page(audit_of(me().org)).await.unwrap()[0].sealed.unwrap();
    assert_eq!((newest.0, verify(store, me().org, &KEY).await), (8, Ok(8)));
    assert_eq!(store.chain_head(OrgId::from_bits(99)).await.unwrap(), ChainHead::default());
}

pub async fn each_org_counts_its_own_entries<F: Fixture>() {
    let mut on = peopled::<F>().await;
    for n in 1..=6 {
        let by = if n % 3 == 0 { stranger() } else { me() };
        say(on.store(), &by, To::New, line(n)).await;
        if n == 2 {
            seal_all(on.store()).await;
        }
        if n % 2 == 0 {
            on = on.reopen().await;
        }
    }
    for org in [me().org, stranger().org] {
        let mut rows = on.store().audit_page(audit_of(org)).await.unwrap();
        rows.reverse();
        let numbers: Vec<_> = rows.iter().map(|row| row.entry).collect();
        assert!(
            numbers.iter().copied().eq(1..=rows.len() as u64),
            "those of others are no gaps: {numbers:?}"
        );
    }
}

pub async fn an_entry_is_sealed_once_even_if_two_seal_at_once<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=8 {
        say(store, &me(), To::New, line(n)).await;
    }
    let sealed = together((0..4).map(|_| store.seal_audit(KEY, 4)).collect()).await;
    assert_eq!(sealed.into_iter().map(Result::unwrap).sum::<usize>(), 10);
    assert_eq!(verify(store, me().org, &KEY).await, Ok(10));
}

pub async fn an_entry_that_was_changed_is_found<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=6 {
        say(store, &me(), To::New, line(n)).await;
        say(store, &stranger(), To::New, line(10 + n)).await;
    }
    seal_all(store).await;
    assert_eq!(verify(store, me().org, &KEY).await, Ok(8));
    let row = store.sealed(me().org, 3, 1).await.unwrap().remove(0);
    on.tamper(row.org, row.entry).await;
    assert_ne!(store.sealed(me().org, 3, 1).await.unwrap()[0].verb, row.verb, "it was changed");
    assert_eq!(verify(store, me().org, &KEY).await, Err(4));
    assert_eq!(verify(store, stranger().org, &KEY).await, Ok(6), "the others' is untouched");
    let on = on.reopen().await;
    assert_eq!(verify(on.store(), me().org, &KEY).await, Err(4));
    // Who does not have the key cannot seal it anew.
    assert_eq!(verify(on.store(), stranger().org, &ChainKey([8; 32])).await, Err(1));
}
