//! What people type in their first hours that is not quite right, or comes at the wrong moment: what they are told, and that nothing else
//! is done. Each of these was seen to puzzle somebody who had only the guide.

use crate::people::{Person, add, url_of};
use crate::{homing, setup};

#[test]
fn a_link_that_is_not_good_is_not_about_passwords() {
    let homing = setup().argument("--trust-everyone").start();
    let link = add(&homing, &["bob"]);
    let bob = Person::new(&homing, "bob");
    let wrong = bob.type_in(&homing, &["login", "--link"], &format!("{}x\n", link.trim()));
    wrong.expect(4);
    assert!(
        wrong.err.contains("this link lets nobody in") && !wrong.err.contains("password"),
        "{}",
        wrong.err
    );
    let nowhere = bob.type_in(&homing, &["login"], "");
    nowhere.expect(2);
    assert!(nowhere.err.contains("`homing login --link`"), "{}", nowhere.err);
    assert!(bob.type_in(&homing, &["login", "--link"], &link).expect(0).contains(&url_of(&homing)));
}

#[test]
fn files_that_are_not_there_are_named_without_a_number_of_the_system() {
    let homing = homing();
    refused(
        &homing,
        &["send", "--attach", "notes.txt", "look"],
        2,
        &["there is no file notes.txt; nothing was sent", "hint:"],
    );
    homing.run(&["send", "-f", "hello"]).expect(0);
    refused(
        &homing,
        &["export", "-o", "nowhere/talk.md", "--markdown"],
        1,
        &["nowhere/talk.md cannot be written: No such file"],
    );
}
