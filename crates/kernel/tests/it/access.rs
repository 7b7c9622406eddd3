//! The rule of who may: every credential, role, grant, agent and act, from both sides of the org's wall, on own and on
//! others' words.
//!
//! What grants mean is a table written by hand. Everything that can stand in the way besides (rights, roles, agents, bound
//! credentials, directories) is a list of obstacles in the order in which they must be named, and every combination is
//! tried. That nobody outside can make an `Authorized` is shown beside it, by an example that does not compile.

use homing_kernel::*;
use proptest::prelude::*;

const ORG: OrgId = OrgId::from_bits(1);
const OTHER_ORG: OrgId = OrgId::from_bits(2);
const OWNER: PersonId = PersonId::from_bits(10);
const ASKER: PersonId = PersonId::from_bits(11);
const SOMEBODY: PersonId = PersonId::from_bits(12);
const GROUP: GroupId = GroupId::from_bits(20);
const OTHER_GROUP: GroupId = GroupId::from_bits(21);
const SESSION: SessionId = SessionId::from_bits(1);
const OTHER_SESSION: SessionId = SessionId::from_bits(2);

const GRANTS: [Grant; 3] = [Grant::View, Grant::Prompt, Grant::Manage];
const ROLES: [Role; 4] = [Role::Viewer, Role::Member, Role::Admin, Role::Owner];

/// The grants of the one who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Has {
    Nothing,
    Given(Grant, Grantee),
    Owns,
}

/// Nothing, each grant in each way in which it can be given, and all of it.
fn everything_to_have() -> Vec<Has> {
    let ways = [Grantee::Person(ASKER), Grantee::Group(GROUP), Grantee::Org];
    let given = GRANTS.into_iter().flat_map(|grant| ways.map(|way| Has::Given(grant, way)));
    [Has::Nothing, Has::Owns].into_iter().chain(given).collect()
}

impl Has {
    fn column(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Given(Grant::View, _) => 1,
            Self::Given(Grant::Prompt, _) => 2,
            Self::Given(Grant::Manage, _) => 3,
            Self::Owns => 4,
        }
    }
}

#[rustfmt::skip]
const TABLE: &[(&str, Right, [&str; 5])] = &[
    //                                           nothing   view             prompt            manage            owner
    ("read",              Right::Read,          ["unseen", "yes",           "yes",            "yes",            "yes"]),
    ("say",               Right::Prompt,        ["unseen", "needs prompt",  "yes",            "yes",            "yes"]),
    ("answer",            Right::Approve,       ["unseen", "needs prompt",  "yes",            "yes",            "yes"]),
    ("reword own",        Right::Prompt,        ["unseen", "needs prompt",  "yes",            "yes",            "yes"]),
    ("reword somebody's", Right::Prompt,        ["unseen", "needs prompt",  "not your words", "not your words", "not your words"]),
    ("tend own",          Right::Prompt,        ["unseen", "needs prompt",  "yes",            "yes",            "yes"]),
    ("tend somebody's",   Right::Manage,        ["unseen", "needs manage",  "needs manage",   "yes",            "yes"]),
    ("rule",              Right::Manage,        ["unseen", "needs manage",  "needs manage",   "yes",            "yes"]),
];

#[test]
fn the_whole_matrix_of_grants_and_acts() {
    for (act, _, expected) in TABLE {
        for has in everything_to_have() {
            for org in [ORG, OTHER_ORG] {
                let by = asker(has, org);
                // What belongs to another org does not exist, whatever was granted.
                let expected = if org == ORG { expected[has.column()] } else { "unseen" };
                let answer = authorize(&by, in_kernels_words(act, by.person), &record(has), "wish");
                assert_eq!(in_words(&answer), expected, "{act} with {has:?} from {org}");
            }
        }
    }
}

/// Rights, roles, agents, bound credentials and grants, each in every combination with all of the others.
#[test]
fn every_obstacle_is_named_in_its_order() {
    let agents =
        [None, Some(None), Some(Some(Grant::View)), Some(Some(Grant::Prompt)), Some(Some(Grant::Manage))];
    let mut cells = 0;
    for (act, right, expected) in TABLE {
        for has in everything_to_have() {
            for (rights, role) in all_rights().flat_map(|rights| ROLES.map(|role| (rights, role))) {
                for (agent, bound) in agents.iter().flat_map(|agent| BOUND.map(|bound| (*agent, bound))) {
                    let given: Option<Option<Grant>> = agent;
                    let agents = given.map(|given| ("scripted".into(), given)).into_iter().collect();
                    let by = Principal { rights, role, agents, bound, ..asker(has, ORG) };
                    // A viewer reads at most, whatever was granted.
                    let column = if role == Role::Viewer { has.column().min(1) } else { has.column() };
                    let elsewhere = bound.is_some_and(|(session, _)| session != SESSION);
                    let uses = role >= Role::Admin || given.is_none_or(|given| given >= Some(Grant::Prompt));
                    let expected = match expected[column] {
                        _ if !rights.has(*right) => needs_right(*right),
                        _ if elsewhere => "unseen",
                        "yes" if *act == "say" && !uses => "agent not yours",
                        other => other,
                    };
                    let answer = authorize(&by, in_kernels_words(act, by.person), &record(has), "wish");
                    assert_eq!(in_words(&answer), expected, "{act} with {has:?} as {by:?}");
                    cells += 1;
                }
            }
        }
    }
    assert_eq!(cells, 8 * 11 * 32 * 4 * 5 * 3);
}

const BOUND: [Option<(SessionId, Turn)>; 3] =
    [None, Some((SESSION, Turn(1))), Some((OTHER_SESSION, Turn(1)))];

fn all_rights() -> impl Iterator<Item = Rights> {
    (0..32).map(|bits| Rights::from_bits(bits).expect("five rights are five bits"))
}

#[test]
fn a_right_is_asked_without_looking_anything_up() {
    for rights in all_rights() {
        let by = Principal { rights, ..asker(Has::Nothing, ORG) };
        for (act, right, _) in TABLE {
            let expected = if rights.has(*right) { Ok(()) } else { Err(Denied::NeedsRight(*right)) };
            assert_eq!(
                authorize_right(&by, in_kernels_words(act, by.person)),
                expected,
                "{act} with {rights:?}"
            );
        }
    }
}

#[test]
fn an_authorized_wish_says_who_wishes_what() {
    let has = Has::Given(Grant::Prompt, Grantee::Org);
    let (by, record) = (Principal { standing: 5, ..asker(has, ORG) }, record(has));
    let allowed = authorize(&by, Act::Say, &record, "wish").unwrap();
    assert_eq!(*allowed.wish(), "wish");
    assert_eq!(*allowed.by(), by);
}

#[test]
fn grants_of_others_do_not_count_and_the_strongest_own_one_does() {
    let by = asker(Has::Nothing, ORG);
    let granted = |grants: Vec<(Grantee, Grant)>| grant_of(&by, &Record { grants, ..record(Has::Nothing) });
    let (mine, theirs) = (Grantee::Person(ASKER), Grantee::Person(SOMEBODY));
    let (ours, others) = (Grantee::Group(GROUP), Grantee::Group(OTHER_GROUP));
    assert_eq!(granted(vec![(theirs, Grant::Manage), (others, Grant::Manage)]), None);
    assert_eq!(granted(vec![(ours, Grant::Manage), (mine, Grant::View)]), Some(Grant::Manage));
    assert_eq!(granted(vec![(mine, Grant::View), (Grantee::Org, Grant::Prompt)]), Some(Grant::Prompt));
    assert_eq!(granted(vec![(theirs, Grant::Manage), (mine, Grant::View)]), Some(Grant::View));
}

#[test]
fn an_owner_of_the_same_name_in_another_org_is_a_stranger() {
    assert_eq!(grant_of(&asker(Has::Owns, OTHER_ORG), &record(Has::Owns)), None);
}

#[test]
fn an_admin_reads_nobodys_sessions_by_that() {
    for role in ROLES {
        let by = Principal { role, is_host: true, ..asker(Has::Nothing, ORG) };
        assert_eq!(grant_of(&by, &record(Has::Nothing)), None, "{role:?}");
    }
}

#[test]
fn an_agent_is_open_to_everybody_until_it_is_given_to_somebody() {
    use Grant::*;
    #[rustfmt::skip]
    let table = [
        //               nothing is given          given to others  view         prompt         manage
        (Role::Viewer, [Some(View),               None,            Some(View),  Some(View),    Some(View)]),
        (Role::Member, [Some(Prompt),             None,            Some(View),  Some(Prompt),  Some(Manage)]),
        (Role::Admin,  [Some(Manage),             Some(Manage),    Some(Manage), Some(Manage), Some(Manage)]),
        (Role::Owner,  [Some(Manage),             Some(Manage),    Some(Manage), Some(Manage), Some(Manage)]),
    ];
    let given = [None, Some(None), Some(Some(View)), Some(Some(Prompt)), Some(Some(Manage))];
    for (role, expected) in table {
        for (given, expected) in given.into_iter().zip(expected) {
            let agents = given.map(|given| ("scripted".into(), given)).into_iter().collect();
            let by = Principal { role, agents, ..asker(Has::Nothing, ORG) };
            assert_eq!(agent_grant_of(&by, "scripted"), expected, "{role:?} with {given:?}");
            let other = if role == Role::Viewer { Some(View) } else { by_role(role) };
            assert_eq!(agent_grant_of(&by, "another"), other, "of another nothing was given");
        }
    }
}

fn by_role(role: Role) -> Option<Grant> {
    Some(if role >= Role::Admin { Grant::Manage } else { Grant::Prompt })
}

/// A door of these stories: every way in which an address can name somebody.
fn through_door(address: &Address) -> DoorAddress<'_> {
    const SCHEMES: &[Scheme] = &[
        Scheme {
            name: "web",
            form: "web:USER/CHAT",
            parts: &[2],
            person: Some(0),
            client: None,
            each_person: false,
        },
        Scheme {
            name: "cli",
            form: "cli:HOST/USER/DIR",
            parts: &[3],
            person: Some(1),
            client: None,
            each_person: false,
        },
        Scheme {
            name: "api",
            form: "api:CLIENT/KEY",
            parts: &[2],
            person: None,
            client: Some(0),
            each_person: true,
        },
        Scheme {
            name: "acp",
            form: "acp:CLIENT/ID",
            parts: &[2],
            person: None,
            client: Some(0),
            each_person: true,
        },
        Scheme {
            name: "mcp",
            form: "mcp:CLIENT/ID",
            parts: &[2],
            person: None,
            client: Some(0),
            each_person: true,
        },
        Scheme {
            name: "room",
            form: "room:TEAM/ID",
            parts: &[2],
            person: None,
            client: None,
            each_person: false,
        },
    ];
    DoorAddress { address, schemes: SCHEMES }
}

/// Through a door that owns nothing, no address can be used, whoever it names.
#[test]
fn without_a_scheme_of_its_own_a_door_leads_to_no_conversation() {
    let by = Principal::member(ORG, ASKER, "ada");
    for text in ["web:ada/1", "api:ci/1", "room:T/1"] {
        let address: Address = text.parse().unwrap();
        let brought = DoorAddress { address: &address, schemes: &[] };
        assert_eq!(authorize_address(&by, brought), Err(Denied::AddressNotYours));
    }
}

#[test]
fn a_session_may_be_made_only_under_an_address_of_ones_own() {
    let ada = |client: Option<&str>| Principal {
        client: client.map(String::from),
        standing: 3,
        ..Principal::member(ORG, ASKER, "ada")
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
        ("room:T/1", true, true),
        // The door owns no such scheme, or its addresses have other parts.
        ("slack:T/C/1", false, false),
        ("schedule:ada", false, false),
        ("web:ada", false, false),
        ("web:ada/1/2", false, false),
        ("we:ada/1", false, false),
    ] {
        let parsed: Address = address.parse().unwrap();
        for (by, may) in [(ada(None), without_client), (ada(Some("ci")), client_ci)] {
            let expected = if may { Ok(()) } else { Err(Denied::AddressNotYours) };
            assert_eq!(
                authorize_address(&by, through_door(&parsed)),
                expected,
                "{address} as {:?}",
                by.client
            );
            let fresh = Fresh { address: Some(through_door(&parsed)), agent: "scripted", directory: None };
            let made = authorize_new(&by, fresh, "wish").map(|allowed| allowed.by().clone());
            assert_eq!(made, expected.map(|()| by.clone()), "{address} as {:?}", by.client);
        }
    }
    let unbound = Fresh { address: None, agent: "scripted", directory: None };
    assert!(authorize_new(&ada(Some("ci")), unbound, "wish").is_ok());
}

/// Each obstacle in the order in which it must be named, in every combination.
#[test]
fn a_session_is_made_by_whoever_may_where_they_may() {
    let (mine, theirs): (Address, Address) = ("web:ada/1".parse().unwrap(), "web:bob/1".parse().unwrap());
    let directories = ["/srv/ada", "/srv/ada/x", "/srv/adam"].map(GroundPath::from);
    let [own, below, other] = directories.each_ref().map(Some);
    let directories = [(None, true), (own, true), (below, true), (other, false)];
    let mut cells = 0;
    for (rights, role) in all_rights().flat_map(|rights| ROLES.map(|role| (rights, role))) {
        for (bound, agent) in
            BOUND.into_iter().flat_map(|bound| [None, Some(None)].map(|agent| (bound, agent)))
        {
            for (address, address_fits) in [(None, true), (Some(&mine), true), (Some(&theirs), false)] {
                for (directory, directory_fits) in directories {
                    let agents = agent.map(|given| ("scripted".into(), given)).into_iter().collect();
                    let roots = vec!["/opt".into(), "/srv/ada".into()];
                    let by = Principal { rights, role, bound, agents, roots, ..asker(Has::Nothing, ORG) };
                    let obstacles = [
                        (!rights.has(Right::Prompt), Denied::NeedsRight(Right::Prompt)),
                        (role < Role::Member, Denied::NeedsRole(Role::Member)),
                        (bound.is_some(), Denied::BoundElsewhere),
                        (!address_fits, Denied::AddressNotYours),
                        (agent.is_some() && role < Role::Admin, Denied::AgentNotYours),
                        (!directory_fits, Denied::DirectoryNotYours),
                    ];
                    let expected = obstacles.into_iter().find(|(is, _)| *is).map(|(_, denied)| denied);
                    let brought = address.map(through_door);
                    let fresh = Fresh { address: brought, agent: "scripted", directory };
                    let answer = authorize_new(&by, fresh, "wish");
                    assert_eq!(answer.err(), expected, "{address:?} {directory:?} as {by:?}");
                    cells += 1;
                }
            }
        }
    }
    assert_eq!(cells, 32 * 4 * 3 * 2 * 3 * 4);
}

#[test]
fn a_directory_is_under_a_root_by_whole_names() {
    for (directory, root, is) in [
        ("/a", "/a", true),
        ("/a/b", "/a", true),
        ("/ab", "/a", false),
        ("/a", "/ab", false),
        ("/a", "/a/b", false),
        ("/a", "/a/", true),
        ("/a/", "/a", true),
        ("/a/b", "/a/", true),
        ("/ab", "/a/", false),
        ("/", "/", true),
        ("/a", "/", true),
        ("/a/b", "/", true),
        ("/", "/a", false),
        ("", "/", false),
        ("a", "/", false),
        ("/a", "", false),
        ("/a", "a", false),
        ("/a/../b", "/a", false),
        ("/a/..", "/a", false),
        ("/a/..b", "/a", true),
        ("/a", "/b/..", false),
        ("/A", "/a", false),
    ] {
        assert_eq!(is_under(directory, root), is, "{directory} under {root}");
    }
}

#[test]
fn nobody_has_a_directory_who_was_given_none() {
    for role in ROLES {
        let by = Principal { role, is_host: true, ..asker(Has::Nothing, ORG) };
        let root = GroundPath::from("/");
        let fresh = Fresh { address: None, agent: "scripted", directory: Some(&root) };
        assert!(authorize_new(&by, fresh, "wish").is_err(), "{role:?}");
    }
}

/// Every act on the org by every role with every credential.
#[test]
fn the_whole_matrix_of_offices() {
    let roles = || ROLES.into_iter();
    let persons = roles().flat_map(|role| {
        let becomes = [None].into_iter().chain(roles().map(Some));
        becomes.map(move |becomes| OrgAct::Person { role, becomes })
    });
    let mints = all_rights().map(|rights| OrgAct::Mint { rights });
    let others = [OrgAct::SeePeople, OrgAct::Myself, OrgAct::Rules, OrgAct::Audit, OrgAct::MakeOrg];
    for act in others.into_iter().chain(persons).chain(mints) {
        for (rights, role) in all_rights().flat_map(|rights| ROLES.map(|role| (rights, role))) {
            for (is_host, bound) in
                [true, false].into_iter().flat_map(|host| BOUND.map(|bound| (host, bound)))
            {
                let by = Principal { rights, role, is_host, bound, standing: 4, ..asker(Has::Nothing, ORG) };
                let right = if act == OrgAct::SeePeople { Right::Read } else { Right::Admin };
                let role_needed = match act {
                    OrgAct::SeePeople | OrgAct::Myself | OrgAct::GiveUp { .. } | OrgAct::Mint { .. } => {
                        Role::Viewer
                    }
                    OrgAct::Rules | OrgAct::Audit => Role::Admin,
                    OrgAct::Person { role, becomes } => role.max(becomes.unwrap_or(role)).max(Role::Admin),
                    OrgAct::MakeOrg => {
                        if is_host {
                            Role::Viewer
                        } else {
                            Role::Owner
                        }
                    }
                };
                let more = match act {
                    OrgAct::Mint { rights: wanted } => wanted.iter().find(|right| !rights.has(*right)),
                    _ => None,
                };
                let low = role < role_needed || (act == OrgAct::MakeOrg && !is_host);
                let answer = authorize_org(&by, act, "wish");
                match answer {
                    Err(Denied::BoundElsewhere) => assert!(bound.is_some(), "{act:?} as {by:?}"),
                    _ if bound.is_some() => panic!("{act:?} as {by:?}"),
                    Err(Denied::NeedsRight(named)) if !rights.has(right) => assert_eq!(named, right),
                    _ if !rights.has(right) => panic!("{act:?} as {by:?}"),
                    Err(Denied::NeedsRole(named)) => {
                        assert!(
                            low && named > role.min(Role::Admin) && named <= role_needed,
                            "{act:?} as {by:?}"
                        );
                    }
                    _ if low => panic!("{act:?} as {by:?}"),
                    Err(Denied::NeedsRight(named)) => assert_eq!(Some(named), more, "{act:?} as {by:?}"),
                    Err(other) => panic!("{other:?} for {act:?} as {by:?}"),
                    Ok(allowed) => {
                        assert_eq!(more, None, "{act:?} as {by:?}");
                        assert_eq!(*allowed.by(), by);
                    }
                }
            }
        }
    }
}

#[test]
fn whoever_holds_a_credential_may_end_it_and_none_of_their_others_by_that() {
    let (held, other) = (TokenId::from_bits(1), TokenId::from_bits(2));
    for (rights, role) in all_rights().flat_map(|rights| ROLES.map(|role| (rights, role))) {
        for bound in BOUND {
            let by = Principal { rights, role, bound, credential: Some(held), ..asker(Has::Nothing, ORG) };
            let may = |credential| authorize_org(&by, OrgAct::GiveUp { credential }, ());
            assert!(may(held).is_ok(), "{by:?}");
            let whole = bound.is_none() && rights.has(Right::Admin);
            assert_eq!(may(other).is_ok(), whole, "{by:?}");
            let part = Principal { credential: None, ..by.clone() };
            assert_eq!(authorize_org(&part, OrgAct::GiveUp { credential: held }, ()).is_ok(), whole);
        }
    }
}

#[test]
fn nobody_touches_or_makes_anybody_above_them() {
    let may = |by: Role, role, becomes| {
        let by = Principal { role: by, ..asker(Has::Nothing, ORG) };
        authorize_org(&by, OrgAct::Person { role, becomes }, ()).is_ok()
    };
    assert!(may(Role::Admin, Role::Member, Some(Role::Admin)));
    assert!(may(Role::Admin, Role::Admin, Some(Role::Viewer)));
    assert!(!may(Role::Admin, Role::Member, Some(Role::Owner)));
    assert!(!may(Role::Admin, Role::Owner, Some(Role::Member)));
    assert!(!may(Role::Admin, Role::Owner, None));
    assert!(may(Role::Owner, Role::Owner, Some(Role::Member)));
    assert!(!may(Role::Member, Role::Viewer, None));
}

proptest! {
    /// Taking anything away never lets anybody do more.
    #[test]
    fn less_is_never_more(
        grants in prop::collection::vec((grantees(), prop::sample::select(GRANTS.to_vec())), 0..6),
        bits in 0_u8..32,
        role in 0_usize..4,
        groups in prop::collection::vec(prop::sample::select(vec![GROUP, OTHER_GROUP]), 0..3),
        less in any::<[u8; 3]>(),
    ) {
        let rights = Rights::from_bits(bits).unwrap();
        let by = Principal { rights, role: ROLES[role], groups, ..asker(Has::Nothing, ORG) };
        let record = Record { grants, ..record(Has::Nothing) };
        let mut fewer = record.clone();
        if !fewer.grants.is_empty() {
            fewer.grants.remove(usize::from(less[0]) % record.grants.len());
        }
        let weaker = Principal { rights: Rights::from_bits(bits & less[1]).unwrap(), ..by.clone() };
        let lower = Principal { role: ROLES[usize::from(less[2]) % (role + 1)], ..by.clone() };
        let alone = Principal { groups: vec![], ..by.clone() };
        for (act, ..) in TABLE {
            let may = |by: &Principal, record: &Record| {
                authorize(by, in_kernels_words(act, by.person), record, ()).is_ok()
            };
            let all = may(&by, &record);
            for (what, less) in [
                ("a grant", may(&by, &fewer)),
                ("a right", may(&weaker, &record)),
                ("a role", may(&lower, &record)),
                ("groups", may(&alone, &record)),
            ] {
                prop_assert!(all || !less, "{} without {} as {:?} with {:?}", act, what, by, record);
            }
        }
    }

    #[test]
    fn rights_are_a_set(one in 0_u8..32) {
        let one = Rights::from_bits(one).unwrap();
        prop_assert_eq!(one.iter().collect::<Rights>(), one);
        prop_assert_eq!(Rights::from_bits(one.bits()), Some(one));
    }

    #[test]
    fn bits_that_mean_nothing_are_no_rights(bits in 32_u8..=255) {
        prop_assert_eq!(Rights::from_bits(bits), None);
    }
}

fn grantees() -> impl Strategy<Value = Grantee> {
    prop::sample::select(vec![
        Grantee::Person(ASKER),
        Grantee::Person(SOMEBODY),
        Grantee::Group(GROUP),
        Grantee::Group(OTHER_GROUP),
        Grantee::Org,
    ])
}

fn asker(has: Has, org: OrgId) -> Principal {
    let person = if has == Has::Owns { OWNER } else { ASKER };
    Principal { groups: vec![GROUP], ..Principal::member(org, person, "ada") }
}

fn record(has: Has) -> Record {
    let given = match has {
        Has::Nothing | Has::Owns => None,
        Has::Given(grant, to) => Some((to, grant)),
    };
    // Somebody else has everything, so that it matters whose grant it is.
    let theirs = [(Grantee::Person(SOMEBODY), Grant::Manage), (Grantee::Group(OTHER_GROUP), Grant::Manage)];
    let grants = given.into_iter().chain(theirs).collect();
    Record { session: SESSION, org: ORG, owner: OWNER, agent: "scripted".into(), grants, revision: 7 }
}

fn in_kernels_words(act: &str, asker: PersonId) -> Act {
    match act {
        "read" => Act::Read,
        "say" => Act::Say,
        "answer" => Act::Answer,
        "reword own" => Act::Reword { sender: asker },
        "reword somebody's" => Act::Reword { sender: SOMEBODY },
        "tend own" => Act::Tend { sender: asker },
        "tend somebody's" => Act::Tend { sender: SOMEBODY },
        "rule" => Act::Manage,
        other => panic!("{other} is no act"),
    }
}

fn needs_right(right: Right) -> &'static str {
    in_words(&Err(Denied::NeedsRight(right)))
}

fn in_words(answer: &Result<Authorized<&str>, Denied>) -> &'static str {
    match answer {
        Ok(_) => "yes",
        Err(Denied::Unseen) => "unseen",
        Err(Denied::Needs(Grant::View)) => "needs view",
        Err(Denied::Needs(Grant::Prompt)) => "needs prompt",
        Err(Denied::Needs(Grant::Manage)) => "needs manage",
        Err(Denied::NeedsRight(Right::Read)) => "needs the right to read",
        Err(Denied::NeedsRight(Right::Prompt)) => "needs the right to prompt",
        Err(Denied::NeedsRight(Right::Approve)) => "needs the right to approve",
        Err(Denied::NeedsRight(Right::Manage)) => "needs the right to manage",
        Err(Denied::NeedsRight(Right::Admin)) => "needs the right to admin",
        Err(Denied::NeedsRole(_)) => "needs a role",
        Err(Denied::NotYourWords) => "not your words",
        Err(Denied::AddressNotYours) => "address not yours",
        Err(Denied::DirectoryNotYours) => "directory not yours",
        Err(Denied::AgentNotYours) => "agent not yours",
        Err(Denied::BoundElsewhere) => "bound elsewhere",
    }
}

#[test]
fn homing_itself_manages_the_sessions_of_its_org_and_no_credential_stands_for_it() {
    let record = record(Has::Nothing);
    let may = |by: &Principal| authorize(by, Act::Manage, &record, ()).map(drop);
    assert_eq!(may(&Principal::house(ORG)), Ok(()));
    assert_eq!(may(&Principal::house(OTHER_ORG)), Err(Denied::Unseen));
    let with_credential = Principal { credential: Some(TokenId::from_bits(1)), ..Principal::house(ORG) };
    assert_eq!(may(&with_credential), Err(Denied::Unseen));
    let somebody = Principal { person: ASKER, ..Principal::house(ORG) };
    assert_eq!(may(&somebody), Err(Denied::Unseen));
}

#[test]
fn homing_itself_looks_after_the_owners_of_its_org_too() {
    let owner = OrgAct::Person { role: Role::Owner, becomes: None };
    assert_eq!(authorize_org(&Principal::house(ORG), owner, ()).map(drop), Ok(()));
}

#[test]
fn a_right_that_is_given_twice_is_there() {
    for right in Right::ALL {
        let once = Rights::NONE.with(right);
        assert_eq!((once.with(right), Rights::ALL.with(right)), (once, Rights::ALL));
    }
}
