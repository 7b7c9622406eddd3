//! Talking: people say something, and get the answer to it and to nothing else.

use std::fs;

use crate::{homing, last_line, sessions, text};
use serde_json::Value;

#[test]
fn a_fresh_directory_answers() {
    let homing = homing();
    let first = homing.run(&["send", "--follow", "hello"]);
    assert_eq!(first.expect(0), "#1 hello\n");
    assert!(first.err.contains("(new)"), "{}", first.err);
    let second = homing.run(&["send", "--follow", "hello", "again"]);
    assert_eq!(second.expect(0), "#2 hello again\n");
    assert!(second.err.contains("(joined)"), "{}", second.err);
}

#[test]
fn streamed_words_come_whole_and_once() {
    let homing = homing();
    let said = homing.run(&["send", "--follow", "!say 40 200"]);
    let words: Vec<&str> = said.expect(0).split_whitespace().collect();
    let receipt = homing.run(&["send", "--follow", "--json", "!say 40 200"]);
    let receipt: Value = serde_json::from_str(last_line(receipt.expect(0))).unwrap();
    let answer = text(&receipt, "answer");
    // The second answer differs in its number only.
    assert_eq!(words[1..], answer.split_whitespace().collect::<Vec<_>>()[1..]);
    assert!(words.len() >= 40, "{words:?}");
}

#[test]
fn without_following_there_is_a_receipt_at_once() {
    let homing = homing();
    let sent = homing.run(&["send", "hello"]);
    let id = sent.expect(0).trim();
    assert!(id.starts_with("msg_"), "{id}");
    let shown = homing.run(&["show", id, "--wait", "30", "--json"]).json(0);
    assert_eq!(
        (shown["state"].as_str(), shown["answer"].as_str()),
        (Some("answered"), Some("#1 hello")),
        "{shown}"
    );
    assert_eq!(text(&shown, "text"), "hello");
}

#[test]
fn json_is_the_apis_own() {
    let homing = homing();
    let receipt = homing.run(&["send", "--json", "hello"]).json(0);
    homing.http().until_final(&text(&receipt, "id"));
    let same = homing.http().get(&format!("/api/v1/messages/{}", text(&receipt, "id"))).expect(200);
    assert_eq!(
        (&receipt["id"], &receipt["session"], &receipt["links"]),
        (&same["id"], &same["session"], &same["links"])
    );
    let shown = homing.run(&["show", &text(&receipt, "session"), "--json"]).json(0);
    assert_eq!(
        shown,
        homing.http().get(&format!("/api/v1/sessions/{}", text(&receipt, "session"))).expect(200)
    );
    let log = homing.run(&["log", &text(&receipt, "session"), "--json"]);
    let facts: Vec<Value> = log.expect(0).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let page =
        homing.http().get(&format!("/api/v1/sessions/{}/facts", text(&receipt, "session"))).expect(200);
    assert_eq!(&facts, page["items"].as_array().unwrap());
}

#[test]
fn words_can_be_piped_in() {
    let homing = homing();
    assert_eq!(homing.run_with(&["send", "-f", "-"], "from a pipe\n").expect(0), "#1 from a pipe\n");
    assert_eq!(homing.run_with(&["send", "-f"], "one\ntwo\n").expect(0), "#2 one\ntwo\n");
    homing.run_with(&["send", "-f"], "\n").expect(2);
}

#[test]
fn a_failed_turn_is_told_by_the_exit_code() {
    let homing = homing();
    let refused = homing.run(&["send", "-f", "!refuse"]);
    refused.expect(1);
    assert!(refused.err.contains("failed (refused)") && refused.err.contains("hint:"), "{}", refused.err);
}

#[test]
fn each_directory_is_a_conversation_of_its_own() {
    let homing = homing();
    let places = ["apples", "pears"].map(|name| homing.root().join(name));
    for place in &places {
        fs::create_dir(place).unwrap();
    }
    for round in 1..=5 {
        for place in &places {
            let word = place.file_name().unwrap().to_str().unwrap();
            let said = homing.run_in(place, &["send", "-f", &format!("{word} {round}")]);
            assert_eq!(said.expect(0), format!("#{round} {word} {round}\n"));
        }
    }
    for (place, mine, other) in [(&places[0], "apples", "pears"), (&places[1], "pears", "apples")] {
        let recalled = homing.run_in(place, &["send", "-f", "!recall"]);
        let recalled = recalled.expect(0);
        assert!(recalled.contains(&format!("{mine} 5")) && !recalled.contains(other), "{recalled}");
    }
    let all = sessions(&homing, &[]);
    let mut directories: Vec<String> = all.iter().map(|session| text(session, "directory")).collect();
    directories.sort();
    let known = places.map(|place| place.canonicalize().unwrap().to_str().unwrap().to_owned());
    assert_eq!(directories, known);
}

#[test]
fn an_unknown_session_is_refused_and_nothing_is_made() {
    let homing = homing();
    let said = homing.run(&["send", "--session", "ses_01k0000000000000000000000a", "hello"]);
    said.expect(3);
    assert!(said.err.contains("hint:"), "{}", said.err);
    assert_eq!(sessions(&homing, &["--all"]), Vec::<Value>::new());
}

#[test]
fn an_ended_session_is_refused_and_says_how_to_go_on() {
    let homing = homing();
    let receipt = homing.run(&["send", "--json", "hello"]).json(0);
    let session = text(&receipt, "session");
    homing.run(&["end", &session]).expect(0);
    homing.run(&["end", &session]).expect(0);
    let said = homing.run(&["send", "--session", &session, "hello"]);
    said.expect(1);
    assert!(said.err.contains("ended") && said.err.contains("--new"), "{}", said.err);
    let problem = homing.run(&["send", "--json", "--session", &session, "hello"]).json(1);
    assert_eq!(problem["code"], "session_ended");
    // The conversation goes on in a new session, and the receipt says so.
    let next = homing.run(&["send", "--json", "hello"]).json(0);
    assert_eq!(
        (&next["new"], &next["previous"]["session"]),
        (&true.into(), &session.as_str().into()),
        "{next}"
    );
    assert_ne!(text(&next, "session"), session);
    assert_eq!(sessions(&homing, &["--all"]).len(), 2);
}

#[test]
fn new_is_always_new() {
    let homing = homing();
    let made: Vec<String> =
        (0..3).map(|_| text(&homing.run(&["send", "--new", "--json", "hello"]).json(0), "session")).collect();
    assert!(made[0] != made[1] && made[1] != made[2], "{made:?}");
    // And is this directory's conversation from then on.
    assert_eq!(text(&homing.run(&["send", "--json", "hello"]).json(0), "session"), made[2]);
}

#[test]
fn a_named_session_is_used_from_anywhere() {
    let homing = homing();
    let receipt = homing.run(&["send", "--new", "--title", "A title", "--json", "hello"]).json(0);
    let session = text(&receipt, "session");
    let said = homing.run_in(homing.root(), &["send", "-f", "--session", &session, "hello"]);
    assert_eq!(said.expect(0), "#2 hello\n");
    assert_eq!(text(&homing.run(&["show", &session, "--json"]).json(0), "title"), "A title");
}

#[test]
fn how_a_session_is_made_can_be_said_only_where_one_is_made() {
    let homing = homing();
    homing.run(&["send", "--session", "ses_x", "--agent", "scripted", "hello"]).expect(2);
    homing.run(&["send", "--new", "--session", "ses_x", "hello"]).expect(2);
    let unknown = homing.run(&["send", "--new", "--agent", "nobody", "hello"]);
    unknown.expect(1);
    assert!(unknown.err.contains("homing agents"), "{}", unknown.err);
    homing.run(&["send", "-f", "hello"]).expect(0);
    let ignored = homing.run(&["send", "-f", "--title", "late", "hello"]);
    ignored.expect(0);
    assert!(ignored.err.contains("for new sessions"), "{}", ignored.err);
}

#[test]
fn a_conversation_can_be_named_explained_and_moved() {
    let homing = homing();
    assert_eq!(homing.run(&["route", "explain", "--json"]).json(0)["route"], "new");
    let said = homing.run(&["send", "-f", "--conversation", "api:tests/1", "hello"]);
    assert_eq!(said.expect(0), "#1 hello\n");
    let explained = homing.run(&["route", "explain", "--conversation", "api:tests/1", "--json"]).json(0);
    let first = text(&explained["session"], "id");
    let second = text(&homing.run(&["send", "--new", "--json", "hello"]).json(0), "session");
    homing.run(&["bindings", "move", "api:tests/1", &second]).expect(0);
    assert!(homing.run(&["bindings"]).expect(0).contains(&second));
    let said = homing.run(&["send", "-f", "--conversation", "api:tests/1", "hello"]);
    assert_eq!(said.expect(0), "#2 hello\n");
    assert_ne!(first, second);
    assert_eq!(
        homing.run(&["route", "explain", "--session", "ses_01k0000000000000000000000a"]).code,
        Some(3)
    );
    homing.run(&["send", "--conversation", "cli:elsewhere/somebody/dir", "hello"]).expect(4);
}

#[test]
fn a_chat_is_one_conversation_line_by_line() {
    let homing = homing();
    let said = homing.run_with(&["chat", "--new"], "one\n\ntwo\nthree");
    assert_eq!(said.expect(0), "#1 one\n#2 two\n#3 three\n");
    assert_eq!(sessions(&homing, &[]).len(), 1);
    homing.run_with(&["chat", "--session", "ses_01k0000000000000000000000a"], "one\n").expect(3);
}

#[test]
fn a_file_goes_along_with_the_next_message_of_a_chat_and_with_no_other() {
    let homing = homing();
    let path = homing.place().join("shot.png");
    std::fs::write(&path, b"\x89PNG\r\n\x1a\n").unwrap();
    let lines = format!("/attach {}\nlook\nand now?\n", path.display());
    let said = homing.run_with(&["chat", "--new"], &lines);
    let answer = said.expect(0);
    assert!(answer.starts_with("#1 look\ngot image image/png 8 bytes sha256 "), "{answer}");
    assert!(answer.ends_with("shot.png\n#2 and now?\n"), "{answer}");
    assert!(
        said.err.contains("goes along with the next message: image shot.png (image/png, 8 bytes)"),
        "{}",
        said.err
    );
}

#[test]
fn a_question_reaches_a_person_and_the_answer_the_agent() {
    let homing = homing();
    let receipt = homing.send("api:tests/1", "!ask shell");
    let open = testkit::eventually("the agent asks", || {
        let page = homing.run(&["approve", "--json"]).json(0);
        page["items"].as_array().unwrap().first().cloned()
    });
    let approval = text(&open, "id");
    assert!(homing.run(&["approve"]).expect(0).contains("shell"));
    homing.run(&["approve", "yes", &approval]).expect(0);
    let answered = homing.http().until_final(&text(&receipt, "id"));
    assert_eq!(answered["state"], "answered", "{answered}");
    assert!(text(&answered, "answer").contains("shell"), "{answered}");
    assert_eq!(homing.run(&["approve", "no", &approval]).code, Some(1));
}

#[test]
fn what_would_command_a_terminal_is_blank_in_what_people_read() {
    let yard = crate::yard::Yard::new();
    let words = r"!run touch $(printf 'n\033[31m') && printf 'a\033]0;pwn\007b'";
    let said = yard.homing.run(&["send", "-f", words]);
    assert!(
        said.expect(0).contains("a\x1b]0;pwn\x07b"),
        "a program gets the answer as it is: {:?}",
        said.out
    );
    assert!(
        yard.homing.run(&["log", "--json"]).expect(0).contains("\\u001b[31m"),
        "there is something to hide"
    );
    let message = yard.homing.run(&["send", "--json", words]).json(0);
    let message = text(&message, "id");
    yard.homing.http().until_final(&message);
    for command in [&["log"][..], &["show", &message]] {
        let shown = yard.homing.run(command);
        let shown = shown.expect(0);
        assert!(shown.contains("a ]0;pwn b"), "{shown:?}");
        assert!(!shown.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')), "{shown:?}");
    }
}

#[test]
fn files_go_along_by_what_they_are_and_what_cannot_is_refused_by_name_before_anything_is_sent() {
    let homing = homing();
    let at = |name: &str, bytes: &[u8]| {
        let path = homing.place().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (notes, more) = (at("notes.txt", "grüße\n".as_bytes()), at("more.md", b"no end of line"));
    let png = at("photo.dat", b"\x89PNG\r\n\x1a\n\0\xff");
    let attached = ["--attach", &notes, "--attach", &more, "--attach", &png];
    let sent = homing.run(&[&["send", "--json"][..], &attached[..], &["look"][..]].concat()).json(0);
    let (message, session) = (text(&sent, "id"), text(&sent, "session"));
    let answer = text(&homing.http().until_final(&message), "answer");
    let words = "--- file notes.txt\ngrüße\n--- end of notes.txt\n--- file more.md\nno end of line\n--- end of more.md";
    assert!(answer.contains(&format!("#1 look\n{words}")), "{answer}");
    assert!(answer.contains("got image image/png 10 bytes sha256 "), "{answer}");
    let named = "image photo.dat (image/png, 10 bytes)";
    for command in [
        &["show", &message][..],
        &["log", &session],
        &["log", "--talk", &session],
        &["export", "--markdown", &session],
    ] {
        let shown = homing.run(command).expect(0).to_owned();
        assert!(
            shown.contains(named) && shown.contains("file notes.txt (text/plain, 8 bytes)"),
            "{command:?}: {shown}"
        );
    }
    // Each is had back by its number, in a file that nobody else reads and that was not there.
    let into = homing.root().join("out.png");
    let save = |number: &str, file: &std::path::Path| {
        homing.run(&["show", &message, "--save", number, file.to_str().unwrap()])
    };
    assert!(save("3", &into).expect(0).contains(named));
    assert_eq!(std::fs::read(&into).unwrap(), b"\x89PNG\r\n\x1a\n\0\xff");
    assert_eq!(crate::people::mode(&into), 0o600);
    let again = save("1", &into);
    again.expect(2);
    assert!(again.err.contains("nothing is overwritten"), "{}", again.err);
    assert_eq!(std::fs::read(&into).unwrap().len(), 10, "it is what it was");
    let text_file = homing.root().join("out.txt");
    assert_eq!(
        homing.run(&["show", &message, "--save", "1", text_file.to_str().unwrap(), "--json"]).json(0)["number"],
        1
    );
    assert_eq!(std::fs::read(&text_file).unwrap(), "grüße\n".as_bytes());
    let none = homing.root().join("none");
    for number in ["4", "0", "x"] {
        let wrong = save(number, &none);
        assert!(wrong.code == Some(3) && wrong.err.contains("there are 1 to 3"), "{}", wrong.err);
    }
    save("1", &homing.root().join("nowhere/out")).expect(2);
    homing.run(&["show", &session, "--save", "1", none.to_str().unwrap()]).expect(2);
    assert!(!none.exists());
    // Without a word, too.
    let alone = homing.run(&["send", "--json", "--attach", &png]).json(0);
    homing.http().until_final(&text(&alone, "id"));
    let refused = |path: &str, part: &str| {
        let refused = homing.run(&["send", "--attach", path, "look"]);
        refused.expect(2);
        assert!(refused.err.contains(path) && refused.err.contains(part), "{}", refused.err);
    };
    refused(&at("long", &vec![b'x'; 5 * 1024 * 1024 + 1]), "at most 5242880");
    refused("/dev/zero", "is no file");
    refused(homing.place().join("nowhere").to_str().unwrap(), "there is no file");
    let piped = homing.run(&["send", "--attach", "-", "look"]);
    piped.expect(2);
    assert!(piped.err.contains("standard input cannot be attached"), "{}", piped.err);
    let facts = crate::kill::facts(&homing.http(), &session);
    let queued = facts.iter().filter(|fact| fact["type"] == "queued").count();
    assert_eq!(queued, 2, "nothing of what was refused was sent: {facts:#?}");
}
