//! Who may: every grant with every act, from both sides of the org's wall, on own and on others' words.
//!
//! The expected answers are a table written by hand. That nobody outside can make an `Authorized` is shown beside it, by
//! an example that does not compile.

use homing_kernel::*;

const ORG: OrgId = OrgId::from_bits(1);
const OTHER_ORG: OrgId = OrgId::from_bits(2);
const OWNER: PersonId = PersonId::from_bits(10);
const ASKER: PersonId = PersonId::from_bits(11);
const SOMEBODY: PersonId = PersonId::from_bits(12);

/// What the one who asks has been given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Has {
    Nothing,
    View,
    Prompt,
    Manage,
    Owns,
}

const HAS: [Has; 5] = [Has::Nothing, Has::View, Has::Prompt, Has::Manage, Has::Owns];

#[rustfmt::skip]
const TABLE: &[(&str, [&str; 5])] = &[
    //                            nothing   view             prompt           manage    owner
    ("read",                     ["unseen", "yes",           "yes",           "yes",    "yes"]),
    ("say",                      ["unseen", "needs prompt",  "yes",           "yes",    "yes"]),
    ("reword own",               ["unseen", "needs prompt",  "yes",           "yes",    "yes"]),
    ("reword somebody's",        ["unseen", "needs prompt",  "not your words", "not your words", "not your words"]),
    ("tend own",                 ["unseen", "needs prompt",  "yes",           "yes",    "yes"]),
    ("tend somebody's",          ["unseen", "needs manage",  "needs manage",  "yes",    "yes"]),
    ("rule",                     ["unseen", "needs manage",  "needs manage",  "yes",    "yes"]),
];

#[test]
fn the_whole_matrix_of_grants_and_acts() {
    for (act, expected) in TABLE {
        for (has, expected) in HAS.into_iter().zip(expected) {
            for org in [ORG, OTHER_ORG] {
                let by = asker(has, org);
                // What belongs to another org does not exist, whatever was granted.
                let expected = if org == ORG { *expected } else { "unseen" };
                let answer = authorize(&by, in_kernels_words(act, by.person), &record(has), "wish");
                assert_eq!(in_words(&answer), expected, "{act} with {has:?} from {org}");
            }
        }
    }
}

#[test]
fn an_authorized_wish_says_who_and_what_was_seen() {
    let (by, record) = (asker(Has::Prompt, ORG), record(Has::Prompt));
    let allowed = authorize(&by, Act::Say, &record, "wish").unwrap();
    assert_eq!(*allowed.wish(), "wish");
    assert_eq!(*allowed.by(), by);
    assert_eq!(allowed.witness(), Witness { session: Some(record.session), revision: 7 });
}

#[test]
fn grants_of_others_do_not_count_and_the_strongest_own_one_does() {
    let by = asker(Has::Nothing, ORG);
    let granted = |grants: Vec<(PersonId, Grant)>| grant_of(&by, &Record { grants, ..record(Has::Nothing) });
    assert_eq!(granted(vec![(SOMEBODY, Grant::Manage)]), None);
    assert_eq!(granted(vec![(ASKER, Grant::Manage), (ASKER, Grant::View)]), Some(Grant::Manage));
    assert_eq!(granted(vec![(SOMEBODY, Grant::Manage), (ASKER, Grant::View)]), Some(Grant::View));
}

#[test]
fn an_owner_of_the_same_name_in_another_org_is_a_stranger() {
    assert_eq!(grant_of(&asker(Has::Owns, OTHER_ORG), &record(Has::Owns)), None);
}

#[test]
fn a_session_may_be_made_only_under_an_address_of_ones_own() {
    let ada = |client: Option<&str>| Principal {
        org: ORG,
        person: ASKER,
        handle: "ada".into(),
        client: client.map(String::from),
    };
    for (address, without_client, client_ci) in [
        ("web:ada/1", true, true),
        ("web:bob/1", false, false),
        ("web:Ada/1", false, false),
        ("web:ada%20/1", false, false),
        ("cli:laptop/ada/%2F", true, true),
        ("cli:ada/bob/%2F", false, false),
        ("api:ci/1", true, true),
        ("api:cd/1", true, false),
        ("acp:ci/1", true, true),
        ("acp:zed/1", true, false),
        ("mcp:ci/1", true, true),
        ("mcp:desk/1", true, false),
        ("slack:T/C/1", true, true),
        ("schedule:bob", true, true),
        ("schedule:bob/1", true, true),
    ] {
        let parsed: Address = address.parse().unwrap();
        for (by, may) in [(ada(None), without_client), (ada(Some("ci")), client_ci)] {
            let expected = if may { Ok(()) } else { Err(Denied::AddressNotYours) };
            assert_eq!(authorize_address(&by, &parsed), expected, "{address} as {:?}", by.client);
            let made = authorize_new(&by, Some(&parsed), "wish").map(|allowed| allowed.witness());
            let unseen = Witness { session: None, revision: 0 };
            assert_eq!(made, expected.map(|()| unseen), "{address} as {:?}", by.client);
        }
    }
    assert!(authorize_new(&ada(Some("ci")), None, "wish").is_ok());
}

fn asker(has: Has, org: OrgId) -> Principal {
    let person = if has == Has::Owns { OWNER } else { ASKER };
    Principal { org, person, handle: "ada".into(), client: None }
}

fn record(has: Has) -> Record {
    let grants = match has {
        Has::Nothing | Has::Owns => vec![],
        Has::View => vec![(ASKER, Grant::View)],
        Has::Prompt => vec![(ASKER, Grant::Prompt)],
        Has::Manage => vec![(ASKER, Grant::Manage)],
    };
    Record { session: SessionId::from_bits(1), org: ORG, owner: OWNER, grants, revision: 7 }
}

fn in_kernels_words(act: &str, asker: PersonId) -> Act {
    match act {
        "read" => Act::Read,
        "say" => Act::Say,
        "reword own" => Act::Reword { sender: asker },
        "reword somebody's" => Act::Reword { sender: SOMEBODY },
        "tend own" => Act::Tend { sender: asker },
        "tend somebody's" => Act::Tend { sender: SOMEBODY },
        "rule" => Act::Rule,
        other => panic!("{other} is no act"),
    }
}

fn in_words(answer: &Result<Authorized<&str>, Denied>) -> &'static str {
    match answer {
        Ok(_) => "yes",
        Err(Denied::Unseen) => "unseen",
        Err(Denied::Needs(Grant::View)) => "needs view",
        Err(Denied::Needs(Grant::Prompt)) => "needs prompt",
        Err(Denied::Needs(Grant::Manage)) => "needs manage",
        Err(Denied::NotYourWords) => "not your words",
        Err(Denied::AddressNotYours) => "address not yours",
    }
}
