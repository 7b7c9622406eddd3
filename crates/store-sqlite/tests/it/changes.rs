//! Changes of who may do what, and cuts in between: a change without its audit entry, or an entry without its change, is
//! never there.

use crate::shim::{Disk, lock};
use crate::world::*;
use homing_store_sqlite::SqliteStore;
use kernel::{GroupId, Moment, PersonId, Principal, Role, TokenId};
use rusqlite::Connection;
use std::path::Path;
use store::{Credentials, Nodes, People};
use store::{NewChange, NewLink, NewPerson, PeopleChange, Purpose, StoreError, TokenRow, WriteOutcome};

/// Changes that are made at most, unless something ends them.
pub(crate) const CHANGES: u64 = 200;
/// The number of changes of each person, one after the other.
const STEPS: u64 = 4;
const GROUP: GroupId = GroupId::from_bits(0x6109);

fn person(number: u64) -> PersonId {
    PersonId::from_bits(0x9e0 << 64 | u128::from(number))
}

fn token(number: u64) -> TokenId {
    TokenId::from_bits(0x70c << 64 | u128::from(number))
}

/// The change of this number, with its verb: each person is added, gets a credential, joins the group, is disabled.
fn change_of(number: u64) -> (&'static str, PeopleChange) {
    let whose = number / STEPS;
    let mut hash = [0xee; 32];
    hash[..8].copy_from_slice(&whose.to_be_bytes());
    match number % STEPS {
        0 => {
            let handle = format!("person-{whose}");
            let role = Role::Member;
            let person = NewPerson { person: person(whose), handle, name: None, email: None, role };
            let (or_handles, link) = (vec![], NewLink { hash, expires: Moment(1 << 40) });
            ("add", PeopleChange::AddPerson { person, or_handles, link, walled: true })
        }
        1 => {
            let row = TokenRow::full(token(whose), hash, person(whose), Purpose::Api, Moment(1));
            ("mint", PeopleChange::MakeToken(row.into()))
        }
        2 => ("join", PeopleChange::Join { group: GROUP, person: person(whose) }),
        _ => ("disable", PeopleChange::Disable { person: person(whose) }),
    }
}

async fn make(
    store: &SqliteStore,
    number: u64,
    verb: &'static str,
    change: PeopleChange,
) -> Result<(), StoreError> {
    // A credential is made by whoever it is for, everything else by the machine's person.
    let by = match &change {
        PeopleChange::MakeToken(_) => Principal::member(somebody().org, person(number / STEPS), "person"),
        _ => somebody(),
    };
    let new = NewChange { change, key: None, trail: trail(verb, number) };
    let made = store.change(by, new).await?;
    assert_eq!(made, WriteOutcome::Done(()), "{number} {verb}");
    Ok(())
}

/// Puts the machine's person and the group there that everybody joins.
pub(crate) async fn begin(store: &SqliteStore) -> Result<(), StoreError> {
    store.host(home()).await?;
    make(store, 0, "group", PeopleChange::MakeGroup { group: GROUP, name: "everybody".into() }).await
}

/// Makes the change of this number.
pub(crate) async fn make_numbered(store: &SqliteStore, number: u64) -> Result<(), StoreError> {
    let (verb, change) = change_of(number);
    make(store, number, verb, change).await
}

/// Looks at every change there can have been: it is there if and only if its entry is. Answers how many are.
pub(crate) fn each_change_has_its_entry(dir: &Path) -> u64 {
    let db = Connection::open(dir.join("homing.db")).unwrap();
    let count = |sql: &str, row: &[&dyn rusqlite::ToSql]| -> u64 {
        db.query_row(sql, row, |row| row.get::<_, u32>(0)).unwrap().into()
    };
    let entries = |verb: &str, subject: String| {
        count("SELECT count(*) FROM audit WHERE verb = ?1 AND subject = ?2", &[&verb, &subject])
    };
    let of = |sql: &str, person: PersonId| count(sql, &[&person.bits().to_be_bytes()]);
    let mut there = 0;
    for whose in 0..CHANGES.div_ceil(STEPS) {
        let id = person(whose);
        let added = entries("add", format!("{id} member"));
        let minted = entries("mint", format!("{} read prompt approve manage admin", token(whose)));
        let joined = entries("join", format!("{GROUP} {id}"));
        let disabled = entries("disable", id.to_string());
        assert_eq!(of("SELECT count(*) FROM persons WHERE person = ?1", id), added, "{whose}");
        let pid = "(SELECT pid FROM persons WHERE person = ?1)";
        assert_eq!(
            of(&format!("SELECT count(*) FROM group_people WHERE pid = {pid}"), id),
            joined,
            "{whose}"
        );
        let off = "SELECT count(*) FROM persons WHERE person = ?1 AND disabled_at IS NOT NULL";
        assert_eq!(of(off, id), disabled, "{whose}");
        // Who is disabled has nothing left that lets them in.
        let (tokens, links) = (added * minted * (1 - disabled), added * (1 - disabled));
        assert_eq!(of(&format!("SELECT count(*) FROM tokens WHERE pid = {pid}"), id), tokens, "{whose}");
        assert_eq!(of(&format!("SELECT count(*) FROM links WHERE pid = {pid}"), id), links, "{whose}");
        let standing = of("SELECT coalesce(sum(standing), 0) FROM persons WHERE person = ?1", id);
        assert_eq!(standing, added + joined + disabled, "{whose}");
        there += added + minted + joined + disabled;
    }
    assert_eq!(count("SELECT count(*) FROM audit WHERE verb <> 'group'", &[]), there);
    there
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_leaves_no_change_without_its_entry_and_no_entry_without_its_change() {
    let mut cut_short = 0;
    for seed in 1..=crate::power::seeds() / 4 {
        let before = tempfile::tempdir().unwrap();
        drop(open(before.path()).unwrap());
        let disk = Disk::watch(before.path(), seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let store = crate::power::open_on_shim(before.path(), crate::power::rig(""));
        begin(&store).await.unwrap();
        lock(&disk).cut_after(10 + seed * 131 % 1_000);
        let mut acknowledged = 0;
        while !lock(&disk).is_cut() {
            if acknowledged == CHANGES {
                // All that there is to change has been: wait for the cut with something else.
                store.announce(format!("http://127.0.0.1:{seed}")).await.unwrap();
                continue;
            }
            make_numbered(&store, acknowledged).await.unwrap();
            acknowledged += 1;
            lock(&disk).acknowledge(acknowledged);
        }
        let after = tempfile::tempdir().unwrap();
        lock(&disk).write_left(after.path());
        let promised = lock(&disk).acknowledged.last().copied().unwrap_or(0);
        drop(open(after.path()).unwrap());
        let there = each_change_has_its_entry(after.path());
        assert!(there >= promised, "seed {seed}: {promised} were promised and {there} are there");
        assert_eq!(integrity(after.path()), "ok");
        cut_short += u64::from(there < CHANGES);
    }
    assert!(cut_short > 0, "no cut came before the last change");
}
