//! The rules about people: who may change whom, what refuses it, and what a plan consists of.
//!
//! Each promise changes one row at a time, so that what refuses is the row that was changed.

use homing_kernel::people::*;
use homing_kernel::*;

const ORG: OrgId = OrgId::from_bits(1);
const ME: PersonId = PersonId::from_bits(10);
const THEY: PersonId = PersonId::from_bits(11);
const OTHER: PersonId = PersonId::from_bits(12);
const GROUP: GroupId = GroupId::from_bits(20);
const SESSION: SessionId = SessionId::from_bits(30);
const TOKEN: TokenId = TokenId::from_bits(40);
const RULE: RuleId = RuleId::from_bits(50);
const AT: Moment = Moment(1_000);
const ROLES: [Role; 4] = [Role::Viewer, Role::Member, Role::Admin, Role::Owner];

fn me(role: Role) -> Principal {
    Principal { role, credential: Some(TokenId::from_bits(41)), ..Principal::member(ORG, ME, "me") }
}

fn state(person: PersonId, role: Role) -> PersonState {
    PersonState { person, role, disabled_at: None, standing: 7 }
}

/// Everything is there, nothing is taken, and there are owners enough.
fn rows(role: Role) -> ChangeRows {
    let grants = vec![];
    let agent = "scripted".to_owned();
    let record = Record { session: SESSION, org: ORG, owner: ME, agent, grants, revision: 3 };
    ChangeRows {
        person: Some(state(THEY, role)),
        heir: Some(state(OTHER, Role::Member)),
        grantee: true,
        group: true,
        session: Some(SessionState {
            record,
            ended: None,
            directory: "/srv/work/own".into(),
            words_bytes: 100,
        }),
        rule: Some(RuleState { session: None }),
        token: Some(TokenHolder { person: state(THEY, role), purpose: Purpose::Api }),
        owners: 2,
        handles: vec![false; 3],
        ..ChangeRows::default()
    }
}

fn new_person(role: Role) -> NewPerson {
    NewPerson { person: OTHER, handle: "New".into(), name: None, email: Some("New@x".into()), role }
}

fn link() -> NewLink {
    NewLink { hash: [9; 32], expires: Moment(2_000) }
}

fn rule(session: Option<SessionId>, effect: RuleEffect) -> RuleRow {
    let (agent, tool, directory, until) = (None, None, None, None);
    RuleRow { rule: RULE, by: ME, since: AT, agent, tool, directory, session, effect, until }
}

fn token(rights: Rights, client: Option<&str>) -> NewToken {
    let (name, expires, idle_ms_max) = (None, None, None);
    let client = client.map(str::to_owned);
    NewToken {
        token: TOKEN,
        hash: [8; 32],
        purpose: Purpose::Api,
        name,
        rights,
        client,
        expires,
        idle_ms_max,
    }
}

/// My session, which is offered to somebody.
fn offer(to: PersonId) -> OfferRow {
    OfferRow { session: SESSION, from: ME, to, at: Moment(500), until: Moment(1_001) }
}

/// Every change of somebody else.
fn of_them() -> Vec<PeopleChange> {
    let person = THEY;
    let (issuer, subject) = ("https://id".to_owned(), "t".to_owned());
    vec![
        PeopleChange::ChangePerson { person, name: None, email: None, role: None },
        PeopleChange::SetPassword { person, password: None, keep: None, proved: None },
        PeopleChange::Disable { person },
        PeopleChange::Enable { person, walled: true },
        PeopleChange::SetIdentity { person, issuer, subject },
        PeopleChange::MakeLink { person, link: link() },
        PeopleChange::Join { group: GROUP, person },
        PeopleChange::Leave { group: GROUP, person },
        PeopleChange::HandOverAll { from: person, to: OTHER },
    ]
}

/// Every change of the org's own.
fn of_the_org() -> Vec<PeopleChange> {
    let (to, agent) = (Grantee::Group(GROUP), || Resource::Agent("scripted".into()));
    let root = || RootRow { directory: "/srv".into(), to };
    vec![
        PeopleChange::Settings(OrgSettings::default()),
        PeopleChange::MakeGroup { group: GROUP, name: "ours".into() },
        PeopleChange::RemoveGroup { group: GROUP },
        PeopleChange::Give { on: agent(), to, grant: Grant::Prompt },
        PeopleChange::TakeBack { on: agent(), to },
        PeopleChange::AddRoot(root()),
        PeopleChange::RemoveRoot(root()),
        PeopleChange::AddRule(rule(None, RuleEffect::Deny)),
        PeopleChange::RemoveRule(RULE),
    ]
}

/// Every change that whoever manages a session makes.
fn of_the_session() -> Vec<PeopleChange> {
    let (to, on) = (Grantee::Group(GROUP), || Resource::Session(SESSION));
    vec![
        PeopleChange::Give { on: on(), to, grant: Grant::Prompt },
        PeopleChange::TakeBack { on: on(), to },
        PeopleChange::HandOver { session: SESSION, to: OTHER },
        PeopleChange::AddRule(rule(Some(SESSION), RuleEffect::Deny)),
    ]
}

fn planned(by: &Principal, change: &PeopleChange, rows: &ChangeRows) -> Result<PeoplePlan, PeopleRefusal> {
    plan_change(by, change, rows, AT)
}

fn refused(by: &Principal, change: &PeopleChange, rows: &ChangeRows) -> PeopleRefusal {
    planned(by, change, rows).expect_err("nobody may")
}

fn denied(denied: Denied) -> PeopleRefusal {
    PeopleRefusal::Denied(denied)
}

#[test]
fn nobody_changes_somebody_above_them() {
    for change in of_them() {
        for mine in ROLES {
            for theirs in ROLES {
                let answer = planned(&me(mine), &change, &rows(theirs));
                let needed = theirs.max(Role::Admin);
                if mine >= needed {
                    assert!(answer.is_ok(), "{mine:?} {change:?} of {theirs:?}: {answer:?}");
                } else {
                    let needed = if mine < Role::Admin { Role::Admin } else { needed };
                    assert_eq!(
                        answer,
                        Err(denied(Denied::NeedsRole(needed))),
                        "{mine:?} {change:?} {theirs:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn nobody_makes_anybody_more_than_they_are() {
    for mine in [Role::Admin, Role::Owner] {
        for becomes in ROLES {
            let change =
                PeopleChange::ChangePerson { person: THEY, name: None, email: None, role: Some(becomes) };
            assert_eq!(planned(&me(mine), &change, &rows(Role::Viewer)).is_ok(), mine >= becomes);
            let add = PeopleChange::AddPerson {
                person: new_person(becomes),
                or_handles: vec![],
                link: link(),
                walled: true,
            };
            assert_eq!(planned(&me(mine), &add, &rows(Role::Viewer)).is_ok(), mine >= becomes);
        }
    }
}

#[test]
fn the_org_is_its_admins_and_a_session_its_managers() {
    let held = |owner| {
        let mut rows = rows(Role::Member);
        rows.session.as_mut().unwrap().record.owner = owner;
        rows
    };
    for change in of_the_org() {
        assert_eq!(refused(&me(Role::Member), &change, &held(OTHER)), denied(Denied::NeedsRole(Role::Admin)));
        assert!(planned(&me(Role::Admin), &change, &held(OTHER)).is_ok(), "{change:?}");
    }
    for change in of_the_session() {
        // An office is no key to a session.
        assert_eq!(refused(&me(Role::Owner), &change, &held(OTHER)), PeopleRefusal::NotFound("session"));
        assert!(planned(&me(Role::Member), &change, &held(ME)).is_ok(), "{change:?}");
        let mut seen = held(OTHER);
        seen.session.as_mut().unwrap().record.grants = vec![(Grantee::Org, Grant::Prompt)];
        assert_eq!(refused(&me(Role::Owner), &change, &seen), denied(Denied::Needs(Grant::Manage)));
        let none = ChangeRows { session: None, ..held(ME) };
        assert_eq!(refused(&me(Role::Owner), &change, &none), PeopleRefusal::NotFound("session"));
    }
}

#[test]
fn what_a_credential_is_not_good_for_is_told_before_anything_is_looked_up() {
    let nothing = ChangeRows::default();
    let weak = Principal { rights: Rights::NONE.with(Right::Read), ..me(Role::Owner) };
    let bound = Principal { bound: Some((SESSION, Turn(1))), ..me(Role::Owner) };
    let by_right = |right, changes: Vec<PeopleChange>| {
        for change in changes {
            assert_eq!(refused(&weak, &change, &nothing), denied(Denied::NeedsRight(right)), "{change:?}");
        }
    };
    by_right(Right::Admin, of_them());
    let of_org =
        || of_the_org().into_iter().filter(|change| change.verb() != "remove_rule").collect::<Vec<_>>();
    by_right(Right::Admin, of_org());
    by_right(Right::Manage, of_the_session());
    by_right(Right::Manage, vec![PeopleChange::RemoveRule(RULE)]);
    for change in of_them().into_iter().chain(of_the_org()) {
        assert_eq!(refused(&bound, &change, &nothing), denied(Denied::BoundElsewhere), "{change:?}");
    }
}

#[test]
fn a_rule_is_removed_by_whoever_could_make_it_and_is_none_for_who_does_not_see_its_session() {
    let change = PeopleChange::RemoveRule(RULE);
    let mut rows = rows(Role::Member);
    rows.rule = Some(RuleState { session: Some(SESSION) });
    assert!(planned(&me(Role::Member), &change, &rows).is_ok());
    rows.session.as_mut().unwrap().record.owner = OTHER;
    assert_eq!(refused(&me(Role::Owner), &change, &rows), PeopleRefusal::NotFound("rule"));
    rows.rule = None;
    assert_eq!(refused(&me(Role::Owner), &change, &rows), PeopleRefusal::NotFound("rule"));
}

#[test]
fn one_may_do_to_oneself_what_takes_nothing_from_others() {
    let person = ME;
    let mine = ChangeRows { person: Some(state(ME, Role::Viewer)), ..rows(Role::Member) };
    let (issuer, subject) = ("https://id".to_owned(), "t".to_owned());
    for change in [
        PeopleChange::ChangePerson { person, name: Some("Me".into()), email: None, role: None },
        PeopleChange::SetPassword { person, password: Some("hashed".into()), keep: None, proved: Some(7) },
        PeopleChange::SetIdentity { person, issuer, subject },
        PeopleChange::MakeLink { person, link: link() },
        PeopleChange::HandOverAll { from: person, to: OTHER },
        PeopleChange::MakeToken(token(Rights::ALL, None)),
    ] {
        assert!(planned(&me(Role::Viewer), &change, &mine).is_ok(), "{change:?}");
    }
    for change in [
        PeopleChange::ChangePerson { person, name: None, email: Some("a@b".into()), role: None },
        PeopleChange::ChangePerson { person, name: None, email: None, role: Some(Role::Owner) },
        PeopleChange::Disable { person },
    ] {
        assert_eq!(refused(&me(Role::Viewer), &change, &mine), denied(Denied::NeedsRole(Role::Admin)));
    }
}

#[test]
fn nobody_gets_more_out_of_a_credential_than_was_put_in() {
    let lesser = Rights::NONE.with(Right::Admin).with(Right::Read);
    let weak = Principal { rights: lesser, ..me(Role::Owner) };
    let robot = Principal { client: Some("robot".into()), ..me(Role::Owner) };
    let mine = ChangeRows { person: Some(state(ME, Role::Owner)), ..rows(Role::Member) };
    let password = Some("hashed".to_owned());
    for change in [
        PeopleChange::MakeLink { person: ME, link: link() },
        PeopleChange::MakeLink { person: THEY, link: link() },
        PeopleChange::SetPassword { person: ME, password, keep: None, proved: None },
    ] {
        assert_eq!(refused(&weak, &change, &mine), denied(Denied::NeedsRight(Right::Prompt)), "{change:?}");
        assert_eq!(refused(&robot, &change, &mine), PeopleRefusal::OneClient, "{change:?}");
    }
    let make = |rights, client| PeopleChange::MakeToken(token(rights, client));
    assert_eq!(refused(&weak, &make(Rights::ALL, None), &mine), denied(Denied::NeedsRight(Right::Prompt)));
    assert!(planned(&weak, &make(lesser, None), &mine).is_ok());
    assert_eq!(refused(&robot, &make(lesser, None), &mine), PeopleRefusal::OtherClient);
    assert_eq!(refused(&robot, &make(lesser, Some("other")), &mine), PeopleRefusal::OtherClient);
    assert!(planned(&robot, &make(lesser, Some("robot")), &mine).is_ok());
}

#[test]
fn a_credential_is_revoked_by_its_person_or_who_may_change_them_and_is_none_for_others() {
    let revoke = PeopleChange::RevokeToken { token: TOKEN };
    let held = |person, role, purpose| ChangeRows {
        token: Some(TokenHolder { person: state(person, role), purpose }),
        ..rows(Role::Member)
    };
    let none = PeopleRefusal::NotFound("token");
    for purpose in [Purpose::Api, Purpose::Browser, Purpose::Cli] {
        assert!(planned(&me(Role::Viewer), &revoke, &held(ME, Role::Viewer, purpose)).is_ok());
        assert!(planned(&me(Role::Admin), &revoke, &held(THEY, Role::Admin, purpose)).is_ok());
        assert_eq!(refused(&me(Role::Admin), &revoke, &held(THEY, Role::Owner, purpose)), none);
        assert_eq!(refused(&me(Role::Member), &revoke, &held(THEY, Role::Viewer, purpose)), none);
    }
    for purpose in [Purpose::Machine, Purpose::Turn] {
        assert_eq!(refused(&me(Role::Owner), &revoke, &held(ME, Role::Owner, purpose)), none);
        assert_eq!(refused(&me(Role::Owner), &revoke, &held(THEY, Role::Viewer, purpose)), none);
        // Whoever holds it may end it, whatever it is good for.
        let (bound, rights) = (Some((SESSION, Turn(1))), Rights::NONE);
        let holder = Principal { credential: Some(TOKEN), bound, rights, ..me(Role::Viewer) };
        assert!(planned(&holder, &revoke, &held(ME, Role::Viewer, purpose)).is_ok());
    }
    assert_eq!(refused(&me(Role::Owner), &revoke, &ChangeRows { token: None, ..rows(Role::Member) }), none);
}

#[test]
fn an_org_keeps_its_owners() {
    let by = me(Role::Owner);
    let demote =
        |role| PeopleChange::ChangePerson { person: THEY, name: None, email: None, role: Some(role) };
    let few = |role, disabled_at| {
        let person = Some(PersonState { disabled_at, ..state(THEY, role) });
        ChangeRows { person, owners: OWNERS_MIN, ..rows(role) }
    };
    let last = few(Role::Owner, None);
    for change in [demote(Role::Admin), demote(Role::Viewer), PeopleChange::Disable { person: THEY }] {
        assert_eq!(refused(&by, &change, &last), PeopleRefusal::LastOwner, "{change:?}");
        assert!(planned(&by, &change, &ChangeRows { owners: OWNERS_MIN + 1, ..last.clone() }).is_ok());
        assert!(planned(&by, &change, &few(Role::Owner, Some(AT))).is_ok(), "who is disabled does not count");
        assert!(planned(&by, &change, &few(Role::Admin, None)).is_ok());
    }
    assert!(planned(&by, &demote(Role::Owner), &last).is_ok(), "who stays one");
}

#[test]
fn what_is_called_so_already_is_taken() {
    let by = Principal { is_host: true, ..me(Role::Owner) };
    let add = |or_handles: &[&str]| PeopleChange::AddPerson {
        person: new_person(Role::Member),
        or_handles: or_handles.iter().map(|&handle| handle.to_owned()).collect(),
        link: link(),
        walled: true,
    };
    let taken = |handles: &[bool]| ChangeRows { handles: handles.to_vec(), ..rows(Role::Member) };
    assert_eq!(reads_of(&add(&["New-2"])).handles, ["new", "new-2"], "capital letters make no other name");
    assert_eq!(refused(&by, &add(&[]), &taken(&[true])), PeopleRefusal::Taken("handle"));
    assert_eq!(refused(&by, &add(&["a"]), &taken(&[true, true])), PeopleRefusal::Taken("handle"));
    let plan = planned(&by, &add(&["a", "b"]), &taken(&[true, false, false])).unwrap();
    let PeopleWrite::Person { person, is_host: false, .. } = &plan.writes()[0] else { panic!("{plan:?}") };
    assert_eq!((person.handle.as_str(), person.email.as_deref()), ("a", Some("new@x")));
    let theirs = ChangeRows { email: Some(THEY), ..rows(Role::Member) };
    assert_eq!(refused(&by, &add(&[]), &theirs), PeopleRefusal::Taken("email"));
    let email =
        |person| PeopleChange::ChangePerson { person, name: None, email: Some("x".into()), role: None };
    assert!(planned(&by, &email(THEY), &theirs).is_ok(), "whoever has an address keeps it");
    assert_eq!(refused(&by, &email(ME), &theirs), PeopleRefusal::Taken("email"));
    let group = PeopleChange::MakeGroup { group: GROUP, name: "ours".into() };
    let named = ChangeRows { group_name: true, org_name: true, ..rows(Role::Member) };
    assert_eq!(refused(&by, &group, &named), PeopleRefusal::Taken("name"));
    let org = NewOrg { org: ORG, name: "Home".into(), owner: new_person(Role::Owner), roots: vec![] };
    let org = PeopleChange::MakeOrg { org, link: link(), walled: true };
    assert_eq!(reads_of(&org).org_name.as_deref(), Some("home"));
    assert_eq!(refused(&by, &org, &named), PeopleRefusal::Taken("name"));
}

#[test]
fn a_name_elsewhere_is_one_persons_and_only_who_looks_after_them_replaces_it() {
    let tie = |person| PeopleChange::SetIdentity { person, issuer: "i".into(), subject: "new".into() };
    let with = |person, identity, subject: Option<&str>| ChangeRows {
        person: Some(state(person, Role::Member)),
        identity,
        subject: subject.map(str::to_owned),
        ..ChangeRows::default()
    };
    let house = Principal { person: PersonId::ENGINE, credential: None, ..me(Role::Owner) };
    let taken = PeopleRefusal::Taken("identity");
    assert_eq!(refused(&me(Role::Owner), &tie(THEY), &with(THEY, Some(OTHER), None)), taken);
    assert!(planned(&me(Role::Owner), &tie(THEY), &with(THEY, Some(THEY), Some("new"))).is_ok());
    assert!(planned(&me(Role::Owner), &tie(THEY), &with(THEY, None, Some("old"))).is_ok());
    assert_eq!(refused(&me(Role::Owner), &tie(ME), &with(ME, None, Some("old"))), taken);
    assert_eq!(refused(&house, &tie(THEY), &with(THEY, None, Some("old"))), taken);
    assert!(planned(&house, &tie(THEY), &with(THEY, None, None)).is_ok());
}

#[test]
fn a_session_is_handed_over_by_the_yes_of_whom_it_is_offered_to() {
    let (session, other) = (SESSION, Principal::member(ORG, OTHER, "other"));
    let change = PeopleChange::HandOver { session, to: OTHER };
    let open = ChangeRows { offer: None, ..rows(Role::Member) };
    let plan = planned(&me(Role::Member), &change, &open).unwrap();
    let until = Moment(AT.0 + OFFER_MS_MAX);
    let made = OfferRow { session, from: ME, to: OTHER, at: AT, until };
    let lapsed = PeopleWrite::DropOffers(OffersToDrop::Lapsed(AT));
    assert_eq!(plan.writes(), [lapsed, PeopleWrite::Offer(made)], "nothing else changes");

    let accept = accept(2, 1_000);
    let offered = ChangeRows { offer: Some(offer(OTHER)), ..rows(Role::Member) };
    let plan = planned(&other, &accept, &offered).unwrap();
    assert_eq!(
        plan.writes(),
        [
            PeopleWrite::Owner { session, to: OTHER },
            PeopleWrite::DropGrantsOn(session),
            PeopleWrite::DropOffers(OffersToDrop::One(session)),
            PeopleWrite::TellOwner { session, to: OTHER, at: AT },
        ]
    );
    let viewer = Principal { role: Role::Viewer, ..other.clone() };
    assert_eq!(refused(&viewer, &accept, &offered), PeopleRefusal::CannotOwn);
    let bound = Principal { bound: Some((session, Turn(1))), ..other.clone() };
    assert_eq!(refused(&bound, &accept, &offered), denied(Denied::BoundElsewhere));
    for change in [accept, PeopleChange::DeclineOffer { session }] {
        let none = PeopleRefusal::NotFound("offer");
        for by in [&me(Role::Owner), &Principal::house(ORG)] {
            assert_eq!(refused(by, &change, &offered), none, "{change:?} by {}", by.handle);
        }
        assert_eq!(refused(&other, &change, &open), none);
        let nothing = ChangeRows { session: None, offer: None, ..rows(Role::Member) };
        assert_eq!(refused(&other, &change, &nothing), none, "as if there were no such session");
        let late = ChangeRows { offer: Some(OfferRow { until: AT, ..offer(OTHER) }), ..rows(Role::Member) };
        assert_eq!(refused(&other, &change, &late), none);
        let mut over = offered.clone();
        over.session.as_mut().unwrap().ended = Some(EndWhy::Asked);
        assert_eq!(refused(&other, &change, &over), none);
    }
}

fn accept(open_max: u32, words_bytes_max: u64) -> PeopleChange {
    let own_directory = "/srv/work/own".into();
    PeopleChange::AcceptOffer {
        session: SESSION,
        within: HeirLimits { own_directory, open_max, words_bytes_max },
    }
}

#[test]
fn whoever_takes_a_session_over_could_have_made_it() {
    let other = Principal::member(ORG, OTHER, "other");
    let mut offered = ChangeRows { offer: Some(offer(OTHER)), ..rows(Role::Member) };
    offered.heir_room = HeirRoom { open: 1, words_bytes: 900 };
    assert!(planned(&other, &accept(2, 1_000), &offered).is_ok(), "what fits to the byte is theirs");
    assert_eq!(refused(&other, &accept(1, 1_000), &offered), PeopleRefusal::TooManyOpen { limit: 1 });
    let full = PeopleRefusal::TooManyWords { used: 900, limit: 999 };
    assert_eq!(refused(&other, &accept(2, 999), &offered), full);
    // Somebody else's directory is not theirs to choose, unless it is below one that is.
    offered.session.as_mut().unwrap().directory = "/home/me/project".into();
    let elsewhere = denied(Denied::DirectoryNotYours);
    assert_eq!(refused(&other, &accept(2, 1_000), &offered), elsewhere);
    let rooted = Principal { roots: vec!["/home/me".to_owned()], ..other.clone() };
    assert!(planned(&rooted, &accept(2, 1_000), &offered).is_ok());
    let unkeyed = Principal { agents: vec![("scripted".to_owned(), None)], ..rooted.clone() };
    assert_eq!(refused(&unkeyed, &accept(2, 1_000), &offered), denied(Denied::AgentNotYours));
    // A no takes nothing of it.
    let decline = PeopleChange::DeclineOffer { session: SESSION };
    assert!(planned(&unkeyed, &decline, &offered).is_ok());
    // What the credential may do is asked as always: it takes the right to manage, and no other.
    let manages = Principal { rights: Rights::NONE.with(Right::Manage), ..rooted };
    assert!(planned(&manages, &accept(2, 1_000), &offered).is_ok());
}

#[test]
fn what_lets_somebody_in_for_good_is_not_made_with_a_token() {
    let password = || PeopleChange::SetPassword {
        person: ME,
        password: Some("$argon2".to_owned()),
        keep: None,
        proved: None,
    };
    let email = |person| PeopleChange::ChangePerson {
        person,
        name: None,
        email: Some("me@x".to_owned()),
        role: None,
    };
    let identity =
        || PeopleChange::SetIdentity { person: ME, issuer: "https://i".into(), subject: "s".into() };
    let by = me(Role::Owner);
    let with = |purpose, parent, person| ChangeRows {
        person: Some(state(person, Role::Owner)),
        own_credential: Some(OwnCredential { token: TOKEN, purpose, expires: None, parent }),
        ..rows(Role::Owner)
    };
    for (change, person) in [(password(), ME), (email(ME), ME), (email(THEY), THEY), (identity(), ME)] {
        assert!(reads_of(&change).own_credential, "{change:?}");
        for purpose in [Purpose::Machine, Purpose::Browser, Purpose::Cli] {
            assert!(planned(&by, &change, &with(purpose, None, person)).is_ok(), "{change:?} by {purpose:?}");
            // Who came in by what a token made is no better than the token.
            let rows = with(purpose, Some(TOKEN), person);
            assert_eq!(refused(&by, &change, &rows), PeopleRefusal::NeedsSignIn, "{change:?}");
        }
        let rows = with(Purpose::Api, None, person);
        assert_eq!(refused(&by, &change, &rows), PeopleRefusal::NeedsSignIn, "{change:?}");
    }
    // Taking a password away lets nobody in, and a name for people is none.
    let none = PeopleChange::SetPassword { person: ME, password: None, keep: None, proved: None };
    let name = PeopleChange::ChangePerson { person: ME, name: Some("Me".into()), email: None, role: None };
    for change in [none, name] {
        assert!(planned(&by, &change, &with(Purpose::Api, None, ME)).is_ok(), "{change:?}");
    }
}

#[test]
fn a_session_is_offered_to_one_person_who_does_not_own_it_while_it_is_open() {
    let by = me(Role::Member);
    let to = |to| PeopleChange::HandOver { session: SESSION, to };
    let none = ChangeRows { offer: None, ..rows(Role::Member) };
    let offered = ChangeRows { offer: Some(offer(THEY)), ..rows(Role::Member) };
    assert_eq!(refused(&by, &to(OTHER), &offered), PeopleRefusal::OfferedAlready);
    let late = ChangeRows { offer: Some(OfferRow { until: AT, ..offer(THEY) }), ..rows(Role::Member) };
    assert!(planned(&by, &to(OTHER), &late).is_ok(), "it has lapsed");
    let mine = ChangeRows { heir: Some(state(ME, Role::Member)), ..none.clone() };
    assert_eq!(refused(&by, &to(ME), &mine), PeopleRefusal::OwnsAlready);
    let mut over = none;
    over.session.as_mut().unwrap().ended = Some(EndWhy::Gone);
    assert_eq!(refused(&by, &to(OTHER), &over), PeopleRefusal::Ended(SESSION, EndWhy::Gone));
    let back = PeopleChange::TakeOfferBack { session: SESSION };
    assert!(planned(&by, &back, &offered).is_ok());
    let they = Principal::member(ORG, THEY, "they");
    assert_eq!(refused(&they, &back, &offered), PeopleRefusal::NotFound("session"), "they may decline it");
    assert_eq!(refused(&by, &back, &late), PeopleRefusal::NotFound("offer"));
}

#[test]
fn all_sessions_of_somebody_are_offered_and_those_of_somebody_who_is_disabled_are_handed_over() {
    let session = |bits, ended| {
        let session = rows(Role::Member).session.unwrap();
        let record = Record { session: SessionId::from_bits(bits), owner: THEY, ..session.record.clone() };
        SessionState { record, ended, ..session }
    };
    let kept = OfferRow { session: SessionId::from_bits(2), from: THEY, ..offer(ME) };
    let owned = vec![
        (session(1, None), None),
        (session(2, None), Some(kept)),
        (session(3, Some(EndWhy::Asked)), None),
        (session(4, None), Some(OfferRow { until: AT, session: SessionId::from_bits(4), ..kept })),
    ];
    let all = PeopleChange::HandOverAll { from: THEY, to: OTHER };
    let rows = ChangeRows { owned, ..rows(Role::Member) };
    let plan = planned(&me(Role::Admin), &all, &rows).unwrap();
    let offered = plan.writes().iter().map(|write| match write {
        PeopleWrite::Offer(offer) => (offer.session.bits(), offer.from, offer.to),
        other => panic!("{other:?}"),
    });
    assert_eq!(offered.collect::<Vec<_>>(), [(1, THEY, OTHER), (4, THEY, OTHER)]);
    let left = Some(PersonState { disabled_at: Some(AT), ..state(THEY, Role::Member) });
    let rows = ChangeRows { person: left, ..rows };
    let plan = planned(&me(Role::Admin), &all, &rows).unwrap();
    let owners = plan.writes().iter().filter(|write| matches!(write, PeopleWrite::Owner { to: OTHER, .. }));
    let told = plan.writes().iter().filter(|write| matches!(write, PeopleWrite::TellOwner { .. }));
    assert_eq!((owners.count(), told.count()), (4, 3), "nothing goes on in one that has ended");
}

#[test]
fn nothing_is_handed_over_to_whoever_could_do_nothing_with_it() {
    let heir = |role, disabled_at| Some(PersonState { disabled_at, ..state(OTHER, role) });
    let over = [
        PeopleChange::HandOver { session: SESSION, to: OTHER },
        PeopleChange::HandOverAll { from: THEY, to: OTHER },
    ];
    for change in over {
        for unfit in [heir(Role::Viewer, None), heir(Role::Owner, Some(AT))] {
            let rows = ChangeRows { heir: unfit, ..rows(Role::Member) };
            assert_eq!(refused(&me(Role::Owner), &change, &rows), PeopleRefusal::CannotOwn, "{change:?}");
        }
        let rows = ChangeRows { heir: None, ..rows(Role::Member) };
        assert_eq!(refused(&me(Role::Owner), &change, &rows), PeopleRefusal::NotFound("person"));
    }
}

#[test]
fn nobody_is_let_in_while_agents_are_not_walled_off() {
    let by = Principal { is_host: true, ..me(Role::Owner) };
    let org = NewOrg { org: ORG, name: "o".into(), owner: new_person(Role::Owner), roots: vec![] };
    let (person, or_handles) = (new_person(Role::Member), vec![]);
    for change in [
        PeopleChange::MakeOrg { org, link: link(), walled: false },
        PeopleChange::AddPerson { person, or_handles, link: link(), walled: false },
        PeopleChange::Enable { person: THEY, walled: false },
    ] {
        assert_eq!(refused(&by, &change, &rows(Role::Member)), PeopleRefusal::NotWalled, "{change:?}");
    }
}

#[test]
fn a_password_is_set_by_whoever_proved_that_they_know_the_old_one() {
    let set = |person, proved| PeopleChange::SetPassword {
        person,
        password: Some("hashed".into()),
        keep: Some(TOKEN),
        proved,
    };
    let mine = ChangeRows { person: Some(state(ME, Role::Member)), ..ChangeRows::default() };
    assert_eq!(
        refused(&me(Role::Owner), &set(THEY, None), &rows(Role::Member)),
        PeopleRefusal::NotTheirPassword
    );
    assert_eq!(refused(&me(Role::Member), &set(ME, Some(6)), &mine), PeopleRefusal::Changed);
    let plan = planned(&me(Role::Member), &set(ME, Some(7)), &mine).unwrap();
    let drop = TokensToDrop::SignInsOf { person: ME, keep: Some(TOKEN) };
    assert!(plan.writes().contains(&PeopleWrite::DropTokens(drop)));
    let kept = |token, purpose| !drop.has(&TokenRow::full(token, [0; 32], ME, purpose, AT));
    let another = TokenId::from_bits(99);
    assert_eq!([Purpose::Browser, Purpose::Cli].map(|purpose| kept(another, purpose)), [false; 2]);
    assert_eq!([Purpose::Machine, Purpose::Api, Purpose::Turn].map(|p| kept(another, p)), [true; 3]);
    assert!(kept(TOKEN, Purpose::Browser));
}

#[test]
fn a_rule_is_made_in_an_open_session_by_its_maker_while_there_is_room_and_time() {
    let by = me(Role::Owner);
    let of = |rule| PeopleChange::AddRule(rule);
    let open = rows(Role::Member);
    let in_session = || rule(Some(SESSION), RuleEffect::Allow);
    assert!(planned(&by, &of(in_session()), &open).is_ok());
    let mut ended = open.clone();
    ended.session.as_mut().unwrap().ended = Some(EndWhy::Asked);
    assert_eq!(refused(&by, &of(in_session()), &ended), PeopleRefusal::Ended(SESSION, EndWhy::Asked));
    let none = PeopleRefusal::NotFound("rule");
    assert_eq!(refused(&by, &of(RuleRow { by: THEY, ..in_session() }), &open), none);
    let asks = rule(None, RuleEffect::Ask(Grantee::Group(GROUP)));
    assert_eq!(refused(&by, &of(asks.clone()), &ChangeRows { grantee: false, ..open.clone() }), none);
    assert!(planned(&by, &of(asks), &open).is_ok());
    let full = ChangeRows { rules: RULES_MAX, ..open.clone() };
    assert_eq!(refused(&by, &of(in_session()), &full), PeopleRefusal::TooManyRules);
    for (until, over) in [(999, true), (1_000, true), (1_001, false)] {
        let row = RuleRow { until: Some(Moment(until)), ..in_session() };
        assert_eq!(planned(&by, &of(row), &open) == Err(PeopleRefusal::Over), over, "{until}");
    }
}

#[test]
fn what_is_not_of_the_org_is_not_found() {
    let by = me(Role::Owner);
    let to = Grantee::Person(OTHER);
    for change in of_them() {
        let none = ChangeRows { person: None, ..rows(Role::Member) };
        assert_eq!(refused(&by, &change, &none), PeopleRefusal::NotFound("person"), "{change:?}");
    }
    let no_group = ChangeRows { group: false, ..rows(Role::Member) };
    for change in [
        PeopleChange::RemoveGroup { group: GROUP },
        PeopleChange::Join { group: GROUP, person: THEY },
        PeopleChange::Leave { group: GROUP, person: THEY },
    ] {
        assert_eq!(refused(&by, &change, &no_group).code(), "not_found", "{change:?}");
    }
    let nobody = ChangeRows { grantee: false, ..rows(Role::Member) };
    let root = || RootRow { directory: "/srv".into(), to };
    for on in [Resource::Session(SESSION), Resource::Agent("a".into())] {
        let give = PeopleChange::Give { on: on.clone(), to, grant: Grant::View };
        assert_eq!(refused(&by, &give, &nobody), PeopleRefusal::NotFound("person or group"));
        assert!(
            planned(&by, &PeopleChange::TakeBack { on, to }, &nobody).is_ok(),
            "what is gone is taken back"
        );
    }
    for change in [PeopleChange::AddRoot(root()), PeopleChange::RemoveRoot(root())] {
        assert_eq!(refused(&by, &change, &nobody), PeopleRefusal::NotFound("person or group"));
    }
}

#[test]
fn a_change_touches_those_whose_rights_it_changes_and_nobody_else() {
    let by = Principal { is_host: true, ..me(Role::Owner) };
    let rows = rows(Role::Member);
    let touched = |change: &PeopleChange| {
        let plan = planned(&by, change, &rows).unwrap();
        plan.touched().map(|touched| (touched.people.clone(), touched.within))
    };
    let they = Grantee::Person(THEY);
    for change in of_them() {
        let expected = match change.verb() {
            "change_person" | "make_link" | "hand_over_all" => None,
            _ => Some((vec![they], None)),
        };
        assert_eq!(touched(&change), expected, "{change:?}");
    }
    let becomes =
        |role| PeopleChange::ChangePerson { person: THEY, name: None, email: None, role: Some(role) };
    assert_eq!(touched(&becomes(Role::Admin)), Some((vec![they], None)));
    assert_eq!(touched(&becomes(Role::Member)), None, "that is what they are");
    for change in of_the_org() {
        let expected = match change.verb() {
            "remove_group" | "add_root" | "remove_root" => Some((vec![Grantee::Group(GROUP)], None)),
            "give" | "take_back" => Some((vec![Grantee::Org], None)),
            _ => None,
        };
        assert_eq!(touched(&change), expected, "{change:?}");
    }
    for change in of_the_session() {
        let expected = match change.verb() {
            "give" | "take_back" => Some((vec![Grantee::Group(GROUP)], Some(SESSION))),
            _ => None,
        };
        assert_eq!(touched(&change), expected, "{change:?}");
    }
    assert_eq!(touched(&PeopleChange::RevokeToken { token: TOKEN }), Some((vec![they], None)));
    assert_eq!(touched(&PeopleChange::MakeToken(token(Rights::ALL, None))), None);
}

#[test]
fn what_is_made_with_a_token_ends_with_it_and_what_is_made_by_signing_in_does_not() {
    let made = |purpose, asked: Option<u64>, own: Option<u64>| {
        let make = NewToken { expires: asked.map(Moment), ..token(Rights::ALL, None) };
        let (token, parent) = (TokenId::from_bits(77), None);
        let own = OwnCredential { token, purpose, expires: own.map(Moment), parent };
        let rows = ChangeRows { own_credential: Some(own), ..ChangeRows::default() };
        let plan = planned(&me(Role::Member), &PeopleChange::MakeToken(make), &rows).unwrap();
        let [PeopleWrite::Token(row)] = plan.writes() else { panic!("{plan:?}") };
        (row.expires.map(|end| end.0), row.parent.is_some())
    };
    assert_eq!(made(Purpose::Api, None, Some(500)), (Some(500), true));
    assert_eq!(made(Purpose::Api, Some(501), Some(500)), (Some(500), true));
    assert_eq!(made(Purpose::Api, Some(499), Some(500)), (Some(499), true));
    assert_eq!(made(Purpose::Api, Some(499), None), (Some(499), true));
    assert_eq!(made(Purpose::Api, None, None), (None, true));
    for purpose in [Purpose::Browser, Purpose::Cli, Purpose::Machine] {
        assert_eq!(made(purpose, Some(501), Some(500)), (Some(501), false), "{purpose:?}");
        assert_eq!(made(purpose, None, Some(500)), (None, false), "{purpose:?}");
    }
}

#[test]
fn a_link_that_is_made_with_a_token_ends_with_it_and_so_does_what_is_made_by_who_came_in_by_it() {
    let own = |purpose, expires: u64, parent: Option<u128>| {
        let (token, parent) = (TokenId::from_bits(77), parent.map(TokenId::from_bits));
        Some(OwnCredential { token, purpose, expires: Some(Moment(expires)), parent })
    };
    let made = |own_credential| {
        let rows = ChangeRows { own_credential, person: Some(state(ME, Role::Owner)), ..rows(Role::Member) };
        let of = [
            PeopleChange::MakeLink { person: ME, link: link() },
            PeopleChange::AddPerson {
                person: new_person(Role::Member),
                or_handles: vec![],
                link: link(),
                walled: true,
            },
        ];
        let ends = of.map(|change| {
            let plan = planned(&me(Role::Owner), &change, &rows).unwrap();
            let Some(PeopleWrite::Link { link, parent, .. }) = plan.writes().last() else {
                panic!("{plan:?}")
            };
            (link.expires.0, parent.map(|token| token.bits()))
        });
        assert_eq!(ends[0], ends[1]);
        let make = PeopleChange::MakeToken(token(Rights::ALL, None));
        let plan = planned(&me(Role::Owner), &make, &rows).unwrap();
        let [PeopleWrite::Token(row)] = plan.writes() else { panic!("{plan:?}") };
        assert_eq!(row.parent.map(|token| token.bits()), ends[0].1);
        ends[0]
    };
    assert_eq!(made(own(Purpose::Api, 1_500, None)), (1_500, Some(77)));
    assert_eq!(made(own(Purpose::Api, 2_500, None)), (2_000, Some(77)));
    for purpose in [Purpose::Browser, Purpose::Cli, Purpose::Machine] {
        assert_eq!(made(own(purpose, 1_500, None)), (2_000, None), "{purpose:?}");
    }
    assert_eq!(made(own(Purpose::Browser, 1_500, Some(5))), (1_500, Some(5)), "it came from a token");
    assert_eq!(made(None), (2_000, None));
}

#[test]
fn who_is_disabled_loses_what_let_them_in() {
    let plan =
        planned(&me(Role::Owner), &PeopleChange::Disable { person: THEY }, &rows(Role::Member)).unwrap();
    assert_eq!(
        plan.writes(),
        [
            PeopleWrite::DisabledAt { person: THEY, at: Some(AT) },
            PeopleWrite::DropTokens(TokensToDrop::Of(THEY)),
            PeopleWrite::DropLinks(LinksToDrop::Of(THEY)),
            PeopleWrite::DropOffers(OffersToDrop::Of(THEY)),
        ]
    );
    let before = Some(PersonState { disabled_at: Some(Moment(5)), ..state(THEY, Role::Member) });
    let rows = ChangeRows { person: before, ..rows(Role::Member) };
    let plan = planned(&me(Role::Owner), &PeopleChange::Disable { person: THEY }, &rows).unwrap();
    assert_eq!(plan.writes()[0], PeopleWrite::DisabledAt { person: THEY, at: Some(Moment(5)) });
}

#[test]
fn a_credential_lets_in_while_it_is_fresh_and_its_turn_and_person_are_there() {
    let row = TokenRow { expires: Some(Moment(500)), ..TokenRow::full(TOKEN, [1; 32], ME, Purpose::Api, AT) };
    let row = TokenRow { made_at: Moment(1), idle_ms_max: Some(100), ..row };
    let good = CredentialState {
        last_used: Some(Moment(450)),
        old_until: None,
        is_under_way: true,
        is_disabled: false,
    };
    assert!(lets_in(&row, good, Moment(499)));
    assert!(!lets_in(&row, good, Moment(500)), "it has expired");
    assert!(!lets_in(&row, CredentialState { last_used: Some(Moment(300)), ..good }, Moment(400)), "idle");
    assert!(!lets_in(&row, CredentialState { is_disabled: true, ..good }, Moment(499)));
    assert!(lets_in(&row, CredentialState { old_until: Some(Moment(460)), ..good }, Moment(459)));
    assert!(!lets_in(&row, CredentialState { old_until: Some(Moment(460)), ..good }, Moment(460)));
    let over = CredentialState { is_under_way: false, ..good };
    assert!(lets_in(&row, over, Moment(499)), "it is for no turn");
    assert!(!lets_in(&TokenRow { bound: Some((SESSION, Turn(1))), ..row }, over, Moment(499)));
}

#[test]
fn who_was_changed_since_they_proved_who_they_are_does_not_come_in() {
    let row = TokenRow::full(TOKEN, [1; 32], ME, Purpose::Browser, AT);
    let mine = state(ME, Role::Member);
    assert!(come_in(Some(mine), 7, row.clone()).is_some());
    assert!(come_in(Some(mine), 6, row.clone()).is_none());
    assert!(come_in(None, 7, row.clone()).is_none());
    assert!(come_in(Some(PersonState { disabled_at: Some(AT), ..mine }), 7, row.clone()).is_none());
    assert!(come_in(Some(state(THEY, Role::Member)), 7, row).is_none());
}

#[test]
fn a_link_lets_in_until_it_expires_and_is_spent_by_it() {
    let link = LinkState { person: ME, expires: Moment(500), is_disabled: false, parent: None };
    let writes = spend_link(link, [9; 32], Some(token(Rights::ALL, None)), None, Moment(499)).unwrap();
    assert_eq!(writes[0], PeopleWrite::DropLinks(LinksToDrop::One([9; 32])));
    let PeopleWrite::Token(row) = &writes[1] else { panic!("{writes:?}") };
    assert_eq!((row.person, row.made_at), (ME, Moment(499)));
    assert!(spend_link(link, [9; 32], None, None, Moment(500)).is_none());
    assert!(spend_link(LinkState { is_disabled: true, ..link }, [9; 32], None, None, Moment(499)).is_none());
    let parent = Some(TokenId::from_bits(77));
    let link = LinkState { parent, ..link };
    assert!(spend_link(link, [9; 32], None, None, Moment(499)).is_none(), "what it was made with is gone");
    let (purpose, expires) = (Purpose::Api, Some(Moment(700)));
    let maker = Some(OwnCredential { token: TokenId::from_bits(77), purpose, expires, parent: None });
    let writes = spend_link(link, [9; 32], Some(token(Rights::ALL, None)), maker, Moment(499)).unwrap();
    let [_, PeopleWrite::Token(row)] = &writes[..] else { panic!("{writes:?}") };
    assert_eq!((row.expires, row.parent), (expires, parent));
}

#[test]
fn the_machines_person_is_made_once_and_gets_the_name_that_is_missing() {
    let fresh =
        || NewOrg { org: ORG, name: "home".into(), owner: new_person(Role::Owner), roots: vec!["/".into()] };
    let (person, writes) = make_host(None, fresh(), AT);
    assert_eq!((person, writes.len()), (OTHER, 3));
    assert!(matches!(writes[1], PeopleWrite::Person { is_host: true, .. }));
    let there = HostState { person: ME, org: OrgId::from_bits(5), has_name: true };
    assert_eq!(make_host(Some(there), fresh(), AT), (ME, vec![]));
    let (person, writes) = make_host(Some(HostState { has_name: false, ..there }), fresh(), AT);
    assert_eq!((person, writes.len()), (ME, 2));
    assert_eq!(writes[0], PeopleWrite::OrgName { org: OrgId::from_bits(5), name: "home".into() });
}

#[test]
fn a_turns_credential_replaces_that_of_its_session_and_a_machines_that_of_its_person() {
    let row = |purpose| TokenRow::full(TOKEN, [1; 32], ME, purpose, AT);
    assert_eq!(add_token(row(Purpose::Machine), false), []);
    let dropped = |token: TokenRow, others: &[TokenRow]| {
        let writes = add_token(token, true);
        let drops: Vec<_> = writes
            .iter()
            .filter_map(|write| match write {
                PeopleWrite::DropTokens(drop) => Some(*drop),
                _ => None,
            })
            .collect();
        others.iter().map(|other| drops.iter().any(|drop| drop.has(other))).collect::<Vec<_>>()
    };
    let other = |purpose, person| TokenRow { token: TokenId::from_bits(99), person, ..row(purpose) };
    let expired = TokenRow { expires: Some(AT), ..other(Purpose::Api, THEY) };
    let others =
        [other(Purpose::Machine, ME), other(Purpose::Machine, THEY), other(Purpose::Api, ME), expired];
    assert_eq!(dropped(row(Purpose::Machine), &others), [true, false, false, true]);
    let turn = |session| TokenRow { bound: Some((session, Turn(2))), ..other(Purpose::Turn, THEY) };
    let elsewhere = SessionId::from_bits(31);
    let mine = TokenRow { bound: Some((SESSION, Turn(1))), ..row(Purpose::Turn) };
    assert_eq!(dropped(mine, &[turn(SESSION), turn(elsewhere), others[0].clone()]), [true, false, false]);
    assert_eq!(dropped(row(Purpose::Api), &others), [false; 4]);
}

#[test]
fn nobody_asks_to_set_anothers_password_who_may_change_nobody() {
    let set = |person| PeopleChange::SetPassword {
        person,
        password: Some("hashed".into()),
        keep: None,
        proved: None,
    };
    assert_eq!(may_ask(&me(Role::Member), &set(ME)), Ok(()));
    let denied = PeopleRefusal::Denied(Denied::NeedsRole(Role::Admin));
    assert_eq!(may_ask(&me(Role::Member), &set(THEY)), Err(denied));
}

#[test]
fn a_change_is_printed_without_the_secrets_in_it() {
    let (password, keep, proved) = (Some("hunter2".to_owned()), None, None);
    let change = PeopleChange::SetPassword { person: THEY, password, keep, proved };
    assert_eq!(format!("{change:?}"), "PeopleChange(set_password)");
}
