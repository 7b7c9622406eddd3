//! The one resolver: every wish with everything that can be found for it.

use expect_test::expect;
use homing_kernel::{Address, EndWhy, Found, NoRoute, Part, Route, SessionId, To, route};
use std::fmt::Write;

/// The named session is 1; the address's is 1 or 2. Nothing else than what was named is ever put in its place.
#[test]
fn a_message_goes_where_it_was_sent_or_nowhere() {
    let wishes = [
        ("this session", To::Session(session(1))),
        ("this conversation", To::Conversation(address())),
        ("a new session", To::New),
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
    expect![[""]].assert_eq(&table);
}

fn session(bits: u128) -> SessionId {
    SessionId::from_bits(bits)
}

fn address() -> Address {
    let part = |text| Part::new(text).expect("a short text");
    Address::Api { client: part("ci"), key: part("7") }
}

fn in_words(routed: &Result<Route, NoRoute>) -> String {
    match routed {
        Ok(Route::Existing(session)) => format!("into {}", session.bits()),
        Ok(Route::Create { bind, previous }) => {
            let bound = bind.as_ref().map(|address| format!(", bound to {address}")).unwrap_or_default();
            let previous = previous
                .map(|(session, why)| format!(", previous {} ({why:?})", session.bits()))
                .unwrap_or_default();
            format!("into a new one{bound}{previous}")
        }
        Err(NoRoute::Unknown) => "nowhere: unknown".into(),
        Err(NoRoute::Ended(session, why)) => format!("nowhere: {} has ended ({why:?})", session.bits()),
    }
}
