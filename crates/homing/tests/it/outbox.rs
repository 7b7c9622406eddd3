//! `homing outbox`: what an admin does about replies that do not go out by themselves.

use rusqlite::Connection;
use testkit::Homing;

/// A server in whose outbox one reply is parked and one waits. No door is built yet that could put them there.
fn with_replies() -> Homing {
    let mut homing = Homing::start(crate::EXE);
    homing.converse("api:test/a", "hello");
    homing.kill9();
    let db = Connection::open(homing.data().join("homing.db")).unwrap();
    db.execute_batch(
        "INSERT INTO outbox (sid, address, scheme, message, kind, state, tries, due_at, reason, since) VALUES
            (1, 'chat:general/1', 'chat', zeroblob(16), 'final', 'parked', 3, NULL, 'the channel is archived', 0),
            (1, 'chat:general/1', 'chat', zeroblob(16), 'final', 'waiting', 0, 0, NULL, 0);",
    )
    .unwrap();
    drop(db);
    homing.restart();
    homing
}

#[test]
fn what_does_not_go_out_is_listed_and_sent_again_or_no_more() {
    let homing = with_replies();
    let listed = homing.run(&["outbox", "ls"]);
    let listed = listed.expect(0);
    for word in ["parked", "waiting", "chat:general/1", "the channel is archived"] {
        assert!(listed.contains(word), "{listed}");
    }
    assert_eq!(homing.run(&["outbox"]).expect(0), listed, "`ls` goes without saying");
    homing.run(&["outbox", "retry", "1"]).expect(0);
    let again = homing.run(&["outbox", "retry", "1"]);
    assert_ne!(again.code, Some(0), "it waits already");
    assert!(again.err.contains("hint:"), "{}", again.err);
    homing.run(&["outbox", "drop", "1"]).expect(0);
    homing.run(&["outbox", "drop", "2"]).expect(0);
    let gone = homing.run(&["outbox", "drop", "2"]);
    assert_ne!(gone.code, Some(0), "it is gone");
    assert!(!homing.run(&["outbox", "ls", "--all"]).expect(0).contains("chat:general/1"));
    let audit = homing.run(&["audit", "--what", "drop_reply"]);
    assert!(audit.expect(0).contains("drop_reply"), "{}", audit.out);
}
