//! Promises about titles and names: whose a title is, what becomes of it with its words, and who goes by a name.

use super::Fixture;
use super::story::*;
use crate::*;
use bytes::Bytes;
use kernel::{Grant, Principal, Request, Scope, SessionId, To};
use std::collections::BTreeSet;

/// A session of mine without a title, made by message `n`.
async fn untitled(store: &dyn Store, n: u32) {
    let new = Create {
        session: NewSession { title: None, ..fresh_session(n, None) },
        past: None,
        words_bytes_max: u64::MAX,
        subject: None,
        key: None,
        trail: trail("make", u64::from(n)),
        schemes: SCHEMES,
    };
    store.create(arc(&me()), new).await.unwrap();
}

async fn title(store: &dyn Store, n: u32) -> Option<(String, TitleBy)> {
    let row = row(store, ses(n)).await;
    row.title.zip(row.title_by)
}

async fn rename(store: &dyn Store, n: u32, title: &str) {
    let new =
        Retitle { session: ses(n), title: Some(title.into()), archived: None, trail: trail("retitle", 1) };
    assert_eq!(store.retitle(arc(&me()), new).await.unwrap(), WriteOutcome::Done(()));
}

pub async fn the_first_words_are_a_title_until_somebody_gives_one<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    untitled(store, 1).await;
    assert_eq!(title(store, 1).await, None);
    say(store, &me(), To::Session(ses(1)), line(2)).await;
    assert_eq!(title(store, 1).await, Some(("line 2".into(), TitleBy::Words)));
    say(store, &me(), To::Session(ses(1)), line(3)).await;
    assert_eq!(title(store, 1).await, Some(("line 2".into(), TitleBy::Words)), "the first words, no others");
    rename(store, 1, "mine").await;
    assert_eq!(title(store, 1).await, Some(("mine".into(), TitleBy::Person)));
    rename(store, 1, "").await;
    assert_eq!(title(store, 1).await, None, "an empty one takes it away");
    say(store, &me(), To::Session(ses(1)), line(4)).await;
    let on = on.reopen().await;
    assert_eq!(title(on.store(), 1).await, Some(("line 4".into(), TitleBy::Words)));
    open(on.store(), 5).await;
    assert_eq!(title(on.store(), 5).await, Some(("session 5".into(), TitleBy::Person)), "it came with one");
}

pub async fn a_title_goes_with_the_words_that_it_is_of<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    untitled(store, 1).await;
    say(store, &me(), To::Session(ses(1)), line(2)).await;
    write(store, ses(1), vec![opened(), queued(2)]).await;
    let edit = async |n: u32, opening: Option<&str>, verdict: Verdict| {
        let request = Request::Edit { message: msg(2), revision: 0 };
        let words = Some(Bytes::from_static(b"other words"));
        let new = NewRequest { words, opening: opening.map(String::from), ..want(n, request) };
        store.ask(arc(&me()), new).await.unwrap();
        let judged = Append { verdicts: vec![(req(n), verdict)], ..drain(store, ses(1)).await };
        written(store, judged).await;
    };
    edit(1, Some("no"), Verdict::Refused(kernel::Refusal::TooLate)).await;
    assert_eq!(title(store, 1).await, Some(("line 2".into(), TitleBy::Words)), "refused, so nothing changes");
    edit(2, Some("better"), Verdict::Done).await;
    assert_eq!(title(store, 1).await, Some(("better".into(), TitleBy::Words)));
    edit(3, None, Verdict::Done).await;
    assert_eq!(title(store, 1).await, None, "the words are gone, and nothing tells of them");
    rename(store, 1, "mine").await;
    edit(4, Some("again"), Verdict::Done).await;
    assert_eq!(title(store, 1).await, Some(("mine".into(), TitleBy::Person)), "a person's stays");
}

pub async fn an_agents_title_takes_the_place_of_any_but_a_persons<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    untitled(store, 1).await;
    say(store, &me(), To::Session(ses(1)), line(2)).await;
    write(store, ses(1), vec![opened(), queued(2), started(1, 2), attempt(1)]).await;
    let names = async |body: &[u8]| {
        let append = told(append_to(store, ses(1)).await, 1, "title", body);
        written(store, append).await;
    };
    names(br#"{"v":1,"turn":1,"type":"title","title":"The login page"}"#).await;
    assert_eq!(title(store, 1).await, Some(("The login page".into(), TitleBy::Agent)));
    names(b"no title").await;
    names(br#"{"title":""}"#).await;
    assert_eq!(title(store, 1).await, Some(("The login page".into(), TitleBy::Agent)));
    rename(store, 1, "mine").await;
    names(br#"{"title":"another"}"#).await;
    assert_eq!(title(store, 1).await, Some(("mine".into(), TitleBy::Person)));
}

async fn named(store: &dyn Store, by: &Principal, name: &str) -> BTreeSet<SessionId> {
    let typed = TypedName::new(SessionId::PREFIX, name);
    let rows = store.sessions_named(Seer::of(by), typed, ALL).await.unwrap();
    rows.into_iter().map(|row| row.session).collect()
}

pub async fn a_session_is_found_by_a_piece_of_its_id_or_its_given_title<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    for n in 1..=3 {
        open(store, n).await;
    }
    untitled(store, 4).await;
    say(store, &me(), To::Session(ses(4)), line(5)).await;
    write(store, ses(2), vec![refused(2), ended()]).await;
    let whole = ses(3).to_string();
    let bare = whole.strip_prefix("ses_").unwrap();
    let end = &bare[bare.len() - 20..];
    for name in [whole.as_str(), bare, end, &format!("ses_{end}"), &end.to_uppercase()] {
        assert_eq!(named(store, &me(), name).await, [ses(3)].into(), "{name}");
    }
    assert_eq!(named(store, &me(), &bare[..10]).await.len(), 4, "they begin alike");
    assert_eq!(named(store, &me(), &end[17..]).await, [].into(), "three digits are too few");
    assert_eq!(named(store, &me(), "session 2").await, [ses(2)].into(), "an ended one, too");
    assert_eq!(named(store, &me(), "line 5").await, [].into(), "nobody gave it that title");
    let one = TypedName::new(SessionId::PREFIX, &bare[..10]);
    assert_eq!(store.sessions_named(Seer::of(&me()), one, 2).await.unwrap().len(), 2);
    // Whatever they may not see does not go by any name.
    for name in ["session 3", whole.as_str(), end] {
        assert_eq!(named(store, &friend(), name).await, [].into(), "{name}");
        assert_eq!(named(store, &stranger(), name).await, [].into(), "{name}");
    }
    share(store, ses(3), &friend(), Some(Grant::View)).await;
    assert_eq!(named(store, &friend(), "session 3").await, [ses(3)].into());
    assert_eq!(named(store, &friend(), end).await, [ses(3)].into());
    assert_eq!(
        named(store, &friend(), &bare[..10]).await,
        [ses(3)].into(),
        "one that is hidden makes no difference"
    );
}

pub async fn a_list_is_narrowed_to_agent_directory_state_and_title<F: Fixture>() {
    let on = peopled::<F>().await;
    let store = on.store();
    let make = async |n: u32, agent: &str, directory: &str| {
        let scope = Scope { agent: agent.into(), directory: directory.into(), ..scope() };
        let session = NewSession { scope, ..fresh_session(n, None) };
        let new = Create {
            session,
            past: None,
            words_bytes_max: u64::MAX,
            subject: None,
            key: None,
            trail: trail("make", u64::from(n)),
            schemes: SCHEMES,
        };
        store.create(arc(&me()), new).await.unwrap();
    };
    make(1, "claude", "/srv/shop").await;
    make(2, "codex", "/srv/shop/api").await;
    make(3, "claude", "/srv/shopping").await;
    say(store, &me(), To::Session(ses(3)), line(4)).await;
    let shown = async |filter: SessionFilter| {
        let query = SessionsQuery { by: Seer::of(&me()), which: Which::Open, filter, after: None, limit: 2 };
        let rows = store.sessions(query).await.unwrap();
        rows.into_iter().map(|row| row.session).collect::<BTreeSet<_>>()
    };
    let some = |text: &str| Some(text.to_owned());
    let none = SessionFilter::default;
    assert_eq!(shown(SessionFilter { agent: some("claude"), ..none() }).await, [ses(1), ses(3)].into());
    assert_eq!(
        shown(SessionFilter { directory: some("/srv/shop"), ..none() }).await,
        [ses(1), ses(2)].into()
    );
    assert_eq!(shown(SessionFilter { doing: Some(Doing::Waiting), ..none() }).await, [ses(3)].into());
    assert_eq!(shown(SessionFilter { doing: Some(Doing::Running), ..none() }).await, [].into());
    assert_eq!(shown(SessionFilter { text: some("SESSION 2"), ..none() }).await, [ses(2)].into());
    let both = SessionFilter { agent: some("claude"), directory: some("/srv/shop"), ..none() };
    assert_eq!(shown(both).await, [ses(1)].into());
}
