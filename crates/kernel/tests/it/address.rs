//! Addresses: every conversation has one name, and every name one conversation.
//!
//! Parts are as hostile as text can be: slashes, colons, percents, dots, control characters, other scripts.

use homing_kernel::{
    ADDRESS_PARTS_MAX, Address, NotAnAddress, PART_BYTES_MAX, Part, SCHEME_BYTES_MAX, Scheme,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        rng_seed: RngSeed::Fixed(4747),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_printed_is_parsed_back(address in any_address()) {
        prop_assert_eq!(address.to_string().parse::<Address>(), Ok(address));
    }

    #[test]
    fn different_addresses_never_print_alike(one in any_address(), other in any_address()) {
        prop_assert_eq!(one.to_string() == other.to_string(), one == other);
    }

    #[test]
    fn what_is_accepted_is_printed_as_the_very_same_text(text in nearly_an_address()) {
        if let Ok(address) = text.parse::<Address>() {
            prop_assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn another_spelling_is_refused_and_the_right_one_is_named(address in any_address(), seed in any::<u64>()) {
        let canonical = address.to_string();
        let other = respell(&canonical, seed);
        if other != canonical {
            prop_assert_eq!(other.parse::<Address>(), Err(NotAnAddress::NotCanonical { canonical }));
        }
    }

    #[test]
    fn what_is_named_as_the_right_spelling_is_accepted(text in nearly_an_address()) {
        if let Err(NotAnAddress::NotCanonical { canonical }) = text.parse::<Address>() {
            prop_assert_eq!(canonical.parse::<Address>().map(|address| address.to_string()), Ok(canonical));
        }
    }

    #[test]
    fn no_text_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        let refused = text.parse::<Address>().err();
        refused.map(|why| why.to_string());
        for scheme in SCHEMES {
            let _ = format!("{scheme}:{text}").parse::<Address>();
        }
    }

    #[test]
    fn a_printed_address_has_nothing_in_it_that_needs_care(address in any_address()) {
        let harmless = |c: char| c.is_ascii_alphanumeric() || "._~-%/:".contains(c);
        let text = address.to_string();
        prop_assert!(text.chars().all(harmless), "{}", text);
        prop_assert_eq!(text.matches(':').count(), 1);
    }
}

/// All short parts over the characters that mean something, in all forms: no two print alike.
#[test]
fn no_two_short_addresses_print_alike() {
    let letters = ["/", ":", "%", "a", "%2F", "2F", ".", "é"];
    let mut parts: Vec<Part> = letters.map(part).into();
    for one in letters {
        parts.extend(letters.map(|other| part(&format!("{one}{other}"))));
    }
    parts.sort();
    parts.dedup();
    let mut seen: BTreeMap<String, Address> = BTreeMap::new();
    for one in &parts {
        for other in &parts {
            let (a, b) = (one.clone(), other.clone());
            for address in [
                Address::new("schedule", [a.clone()]),
                Address::new("schedule", [a.clone(), b.clone()]),
                Address::new("api", [a.clone(), b.clone()]),
                Address::new("web", [a, b]),
            ] {
                let address = address.unwrap();
                if let Some(twin) = seen.insert(address.to_string(), address.clone()) {
                    assert_eq!(twin, address);
                }
            }
        }
    }
}

#[test]
fn a_part_is_neither_empty_nor_longer_than_the_bound() {
    assert_eq!(Part::new(""), Err(NotAnAddress::EmptyPart));
    assert!(Part::new("x".repeat(PART_BYTES_MAX)).is_ok());
    assert_eq!(Part::new("x".repeat(PART_BYTES_MAX + 1)), Err(NotAnAddress::PartTooLong));
    // The bound is on the bytes of the text, however long it gets when it is printed.
    let longest = Address::new("schedule", [part(&"/".repeat(PART_BYTES_MAX))]).unwrap();
    assert_eq!(longest.to_string().parse(), Ok(longest));
    assert_eq!(Part::new("é".repeat(PART_BYTES_MAX / 2 + 1)), Err(NotAnAddress::PartTooLong));
    for text in ["x".repeat(PART_BYTES_MAX + 1), "%2F".repeat(PART_BYTES_MAX + 1), "x".repeat(1 << 20)] {
        assert_eq!(format!("schedule:{text}").parse::<Address>(), Err(NotAnAddress::PartTooLong));
    }
}

#[test]
fn a_wrong_text_is_refused_with_what_to_write_instead() {
    let canonical = |text: &str| NotAnAddress::NotCanonical { canonical: text.into() };
    for (text, why) in [
        ("", NotAnAddress::NoScheme),
        ("no scheme", NotAnAddress::NoScheme),
        (":", NotAnAddress::EmptyPart),
        (":a", NotAnAddress::BadScheme),
        ("API:a/b", NotAnAddress::BadScheme),
        ("aPi:a/b", NotAnAddress::BadScheme),
        (" api:a/b", NotAnAddress::BadScheme),
        ("7api:a/b", NotAnAddress::BadScheme),
        ("-api:a/b", NotAnAddress::BadScheme),
        ("a_p:a/b", NotAnAddress::BadScheme),
        ("caf\u{e9}:a/b", NotAnAddress::BadScheme),
        ("a%70i:a/b", NotAnAddress::BadScheme),
        ("api:", NotAnAddress::EmptyPart),
        ("api:a/", NotAnAddress::EmptyPart),
        ("api:/b", NotAnAddress::EmptyPart),
        ("api:a/%", NotAnAddress::BadEscape),
        ("api:a/%2", NotAnAddress::BadEscape),
        ("api:a/%2g", NotAnAddress::BadEscape),
        ("api:a/%FF", NotAnAddress::BadEscape),
        ("api:a/%C3", NotAnAddress::BadEscape),
        ("api:a/%2f", canonical("api:a/%2F")),
        ("api:a/%61", canonical("api:a/a")),
        ("api:a/b c", canonical("api:a/b%20c")),
        ("api:a/é", canonical("api:a/%C3%A9")),
        ("web:ada:x/1", canonical("web:ada%3Ax/1")),
        ("api:a/b\n", canonical("api:a/b%0A")),
    ] {
        assert_eq!(text.parse::<Address>(), Err(why), "{text:?}");
    }
}

#[test]
fn the_forms_in_the_documents_are_addresses() {
    for text in [
        "slack:T024BE7LD/C061EG9SL/1482960137.003543",
        "web:ada/0198c1",
        "cli:laptop/ada/%2Fhome%2Fada%2Fshop",
        "schedule:nightly",
        "schedule:nightly/2026-01-01T00%3A00%3A00Z",
        "api:ci/build-7",
        "acp:zed/1",
        "mcp:desk/1",
    ] {
        assert_eq!(text.parse::<Address>().map(|address| address.to_string()).as_deref(), Ok(text));
    }
}

#[test]
fn a_scheme_is_a_short_word_and_there_are_few_parts() {
    let longest = "x".repeat(SCHEME_BYTES_MAX);
    assert!(format!("{longest}:a").parse::<Address>().is_ok());
    assert_eq!(format!("{longest}x:a").parse::<Address>(), Err(NotAnAddress::BadScheme));
    let parts = |count| vec!["a"; count].join("/");
    let most = format!("api:{}", parts(ADDRESS_PARTS_MAX)).parse::<Address>().unwrap();
    assert_eq!(most.parts().len(), ADDRESS_PARTS_MAX);
    for count in [ADDRESS_PARTS_MAX + 1, 100_000] {
        let refused = format!("api:{}", parts(count)).parse::<Address>();
        assert_eq!(refused, Err(NotAnAddress::TooManyParts));
    }
    assert_eq!(Address::new("api", []), Err(NotAnAddress::EmptyPart));
}

#[test]
fn a_door_says_how_many_parts_there_are_and_whom_they_name() {
    let host_first = Scheme {
        name: "cli",
        form: "cli:HOST/USER",
        parts: &[2, 3],
        person: Some(1),
        client: None,
        each_person: false,
    };
    let address: Address = "cli:laptop/a%2Fda".parse().unwrap();
    assert_eq!(host_first.check(&address), Ok(()));
    assert_eq!((host_first.person_of(&address), host_first.client_of(&address)), (Some("a/da"), None));
    let client_first = Scheme { person: None, client: Some(0), ..host_first };
    assert_eq!((client_first.person_of(&address), client_first.client_of(&address)), (None, Some("laptop")));
    for (text, owned) in [("cli:a", false), ("cli:a/b/c", true), ("cli:a/b/c/d", false), ("cl:a/b", false)] {
        let address: Address = text.parse().unwrap();
        let refused = NotAnAddress::WrongParts { form: "cli:HOST/USER" };
        assert_eq!(host_first.check(&address), if owned { Ok(()) } else { Err(refused) }, "{text}");
    }
}

const SCHEMES: [&str; 7] = ["slack", "web", "cli", "schedule", "api", "acp", "x-y2"];

fn part(text: &str) -> Part {
    Part::new(text).expect("a short text")
}

fn any_part() -> impl Strategy<Value = Part> {
    let text = prop_oneof![
        4 => prop::collection::vec(hostile(), 1..12).prop_map(|pieces| pieces.concat()),
        2 => any::<String>().prop_filter("a part is some text", |text| !text.is_empty()),
        1 => (1..=PART_BYTES_MAX).prop_map(|bytes| "/".repeat(bytes)),
    ];
    text.prop_map(|text| part(&text))
}

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "/", ":", "%", "%2F", "%2f", "%25", "%", "..", ".", "~", "+", "?", "#", "&", "=", " ", "\0",
            "\n", "\u{7f}", "\u{202e}", "\u{feff}", "é", "e\u{301}", "中", "🦀", "a", "Z", "0", "-", "_",
            "slack", "api",
        ])
        .prop_map(String::from),
        any::<char>().prop_map(String::from),
    ]
}

fn any_address() -> impl Strategy<Value = Address> {
    (any_scheme(), prop::collection::vec(any_part(), 1..=ADDRESS_PARTS_MAX))
        .prop_map(|(scheme, parts)| Address::new(scheme, parts).expect("a word and some parts"))
}

fn any_scheme() -> impl Strategy<Value = String> {
    prop_oneof![prop::sample::select(SCHEMES.to_vec()).prop_map(String::from), "[a-z][a-z0-9-]{0,31}"]
}

/// A text that many a parser would take for an address.
fn nearly_an_address() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z0-9._~-]{1,8}",
        2 => "(%[0-9A-F]{2}){1,3}",
        1 => "(%[0-9a-f]{2}){1,3}",
        1 => Just(String::new()),
        1 => hostile(),
    ];
    let scheme = prop::sample::select(SCHEMES.to_vec());
    (scheme, prop::collection::vec(piece, 1..4))
        .prop_map(|(scheme, parts)| format!("{scheme}:{}", parts.join("/")))
}

/// The same address in other letters: some bytes escaped that need not be, some hex digits in lower case.
fn respell(canonical: &str, seed: u64) -> String {
    let (scheme, parts) = canonical.split_once(':').expect("every address has a scheme");
    let mut coins = seed;
    let mut text = format!("{scheme}:");
    let mut bytes = parts.bytes();
    while let Some(byte) = bytes.next() {
        coins = coins.rotate_left(1).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let changed = coins >> 62 == 0;
        match byte {
            b'/' => text.push('/'),
            b'%' => {
                let digits = [bytes.next(), bytes.next()].map(|digit| char::from(digit.expect("two digits")));
                let digits = String::from_iter(digits);
                text.push('%');
                text.push_str(&if changed { digits.to_lowercase() } else { digits });
            }
            _ if changed => text.push_str(&format!("%{byte:02X}")),
            _ => text.push(char::from(byte)),
        }
    }
    text
}
