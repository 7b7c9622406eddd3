//! The one resolver: every wish with everything that can be found for it.

use expect_test::expect;
use homing_kernel::{
    Address, Ambiguous, EndWhy, Found, Grant, Grantee, Named, NoRoute, OrgId, Part, PersonId, Previous,
    Principal, Record, Route, SessionId, To, Turn, meant, route,
};
use std::fmt::Write;

/// The named session is 1; the address's is 1 or 2. Nothing else than what was named is ever put in its place.
#[test]
fn a_message_goes_where_it_was_sent_or_nowhere() {
    let wishes = [
        ("this session", To::Session(session(1))),
        ("this conversation", To::Conversation(address())),
        ("a new session", To::New),
        ("a new one, here", To::NewIn(address())),
    ];
    let finds = [
        ("nothing", Found::Nothing),
        ("1, open", Found::Open(session(1))),
        ("2, open", Found::Open(session(2))),
        ("1, ended", Found::Ended(session(1), EndWhy::Asked)),
        ("2, ended", Found::Ended(session(2), EndWhy::Asked)),
        ("1, gone", Found::Ended(session(1), EndWhy::Gone)),
        ("2, gone", Found::Ended(session(2), EndWhy::Gone)),
    ];
    let mut table = String::new();
    for (wish, to) in &wishes {
        for (find, found) in &finds {
            writeln!(table, "{wish:<18} {find:<9} {}", in_words(&route(to, *found))).unwrap();
        }
    }
    expect![[r#"
        this session       nothing   nowhere: unknown
        this session       1, open   into 1
        this session       2, open   nowhere: unknown
        this session       1, ended  nowhere: 1 has ended (Asked)
        this session       2, ended  nowhere: unknown
        this session       1, gone   nowhere: 1 has ended (Gone)
        this session       2, gone   nowhere: unknown
        this conversation  nothing   into a new one, bound to api:ci/7
        this conversation  1, open   into 1
        this conversation  2, open   into 2
        this conversation  1, ended  into a new one, bound to api:ci/7, previous 1 (Asked)
        this conversation  2, ended  into a new one, bound to api:ci/7, previous 2 (Asked)
        this conversation  1, gone   into a new one, bound to api:ci/7, previous 1 (Gone)
        this conversation  2, gone   into a new one, bound to api:ci/7, previous 2 (Gone)
        a new session      nothing   into a new one
        a new session      1, open   into a new one
        a new session      2, open   into a new one
        a new session      1, ended  into a new one
        a new session      2, ended  into a new one
        a new session      1, gone   into a new one
        a new session      2, gone   into a new one
        a new one, here    nothing   into a new one, bound to api:ci/7
        a new one, here    1, open   into a new one, bound to api:ci/7, previous 1 (open)
        a new one, here    2, open   into a new one, bound to api:ci/7, previous 2 (open)
        a new one, here    1, ended  into a new one, bound to api:ci/7, previous 1 (Asked)
        a new one, here    2, ended  into a new one, bound to api:ci/7, previous 2 (Asked)
        a new one, here    1, gone   into a new one, bound to api:ci/7, previous 1 (Gone)
        a new one, here    2, gone   into a new one, bound to api:ci/7, previous 2 (Gone)
    "#]]
    .assert_eq(&table);
}

fn session(bits: u128) -> SessionId {
    SessionId::from_bits(bits)
}

fn address() -> Address {
    let part = |text| Part::new(text).expect("a short text");
    Address::new("api", [part("ci"), part("7")]).unwrap()
}

fn in_words(routed: &Result<Route, NoRoute>) -> String {
    match routed {
        Ok(Route::Existing(session)) => format!("into {}", session.bits()),
        Ok(Route::Create { bind, previous }) => {
            let bound = bind.as_ref().map(|address| format!(", bound to {address}")).unwrap_or_default();
            let previous = previous
                .map(|Previous { session, ended }| match ended {
                    Some(why) => format!(", previous {} ({why:?})", session.bits()),
                    None => format!(", previous {} (open)", session.bits()),
                })
                .unwrap_or_default();
            format!("into a new one{bound}{previous}")
        }
        Err(NoRoute::Unknown) => "nowhere: unknown".into(),
        Err(NoRoute::Ended(session, why)) => format!("nowhere: {} has ended ({why:?})", session.bits()),
    }
}

#[test]
fn an_id_means_what_the_caller_can_see_and_goes_on_to_mean_it() {
    let (id, me, friend, other) =
        (session(9), PersonId::from_bits(1), PersonId::from_bits(2), OrgId::from_bits(2));
    let by = Principal::member(OrgId::from_bits(1), me, "me");
    let owned = |bits, owner| Record {
        session: session(bits),
        org: by.org,
        owner,
        agent: "scripted".into(),
        grants: vec![],
        revision: 1,
    };
    let shared = |bits| Record { grants: vec![(Grantee::Org, Grant::View)], ..owned(bits, friend) };
    let own = |record| Named { record, imported_by: None };
    let from = |record, who| Named { record, imported_by: Some(who) };
    let means = |named: &[Named]| meant(&by, id, named);
    assert_eq!(means(&[]), Ok(id), "what nothing answers to is itself");
    assert_eq!(means(&[own(owned(9, friend))]), Ok(id));
    let mine = from(owned(1, me), me);
    assert_eq!(means(std::slice::from_ref(&mine)), Ok(session(1)));
    // Whatever others have or share later, it stays what it was.
    for more in
        [own(owned(9, friend)), own(shared(9)), from(owned(2, friend), friend), from(shared(2), friend)]
    {
        assert_eq!(means(&[more.clone(), mine.clone()]), Ok(session(1)), "{more:?}");
    }
    assert_eq!(means(&[own(shared(9)), from(shared(2), friend)]), Ok(id));
    assert_eq!(means(&[own(owned(9, friend)), from(shared(2), friend)]), Ok(session(2)));
    // What cannot be told apart is not guessed.
    assert_eq!(means(&[from(shared(2), friend), from(shared(3), friend)]), Err(Ambiguous));
    assert_eq!(means(&[from(owned(1, me), me), from(owned(2, me), me), own(shared(9))]), Err(Ambiguous));
    // Of another org nothing is ever meant.
    let elsewhere = Record { org: other, ..shared(2) };
    assert_eq!(means(&[from(elsewhere.clone(), me)]), Ok(id));
    assert_eq!(means(&[from(elsewhere, friend), from(owned(1, me), me)]), Ok(session(1)));
    let bound = Principal { bound: Some((session(1), Turn(1))), ..by.clone() };
    assert_eq!(meant(&bound, id, &[from(owned(1, me), me)]), Ok(session(1)));
    assert_eq!(meant(&bound, id, &[from(owned(2, me), me)]), Ok(id));
}
