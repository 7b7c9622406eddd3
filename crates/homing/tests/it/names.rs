//! Names one can type: titles, pieces of ids, lines of the last list, and the session before.

use std::process::{Command, Stdio};

use testkit::{Homing, Terminal, TerminalSize, eventually};

use crate::people::{Person, add};
use crate::yard::Yard;
use crate::{homing, sessions, setup, text};

/// The picture on a terminal of this width while a shell runs this there; `homing` is the binary under test.
pub(crate) fn terminal(homing: &Homing, columns: usize, line: &str) -> String {
    terminal_of(homing.command(), homing, columns, line)
}

/// The same, of whoever would run this command.
fn terminal_of(ours: Command, homing: &Homing, columns: usize, line: &str) -> String {
    let mut command = Command::new("script");
    for (name, value) in ours.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let run = format!("stty cols {columns}; homing() {{ \"$EXE\" \"$@\"; }}; {line}");
    command.args(["-qefc", &run, "/dev/null"]).env("SHELL", "/bin/sh").env("EXE", ours.get_program());
    command.env("TERM", "dumb").env("XDG_RUNTIME_DIR", homing.root());
    command.current_dir(ours.get_current_dir().expect("a place"));
    let shown = command.stdin(Stdio::null()).output().expect("there is script(1)");
    String::from_utf8_lossy(&shown.stdout).replace('\r', "")
}

/// The id of a new session in this directory, with these first words.
fn begin(homing: &Homing, words: &str) -> String {
    let receipt = homing.run(&["send", "--json", "--new", words]).json(0);
    homing.http().until_final(&text(&receipt, "id"));
    text(&receipt, "session")
}

fn end_of(id: &str) -> &str {
    &id[id.len() - 8..]
}

#[test]
fn the_first_words_are_the_title_until_somebody_gives_one() {
    let homing = homing();
    let id = begin(
        &homing,
        "mend the login\n\tpage \u{1b}[31mof the shop, and say what was wrong with it all along",
    );
    let row = &sessions(&homing, &[])[0];
    assert_eq!(text(row, "title"), "mend the login page [31mof the shop, and say what was wrong…");
    assert_eq!(text(row, "title_by"), "words");
    assert!(homing.run(&["show", &id]).expect(0).contains("its first words"));
    let said = homing.run(&["rename", &id, "login"]);
    assert!(said.expect(0).contains("is called \"login\""), "{}", said.out);
    homing.run(&["send", "--session", &id, "--follow", "more"]).expect(0);
    let row = &sessions(&homing, &[])[0];
    assert_eq!((text(row, "title"), text(row, "title_by")), ("login".into(), "person".into()));
    homing.run(&["rename", &id, &"x".repeat(201)]).expect(1);
    homing.run(&["rename", &id, ""]).expect(0);
    assert_eq!(sessions(&homing, &[])[0].get("title"), None);
}

#[test]
fn a_session_goes_by_a_piece_of_its_id_or_its_title_in_every_command() {
    let homing = homing();
    let (one, two) = (begin(&homing, "one"), begin(&homing, "two"));
    let shown = |name: &str| text(&homing.run(&["show", name, "--json"]).json(0), "id");
    assert_eq!(shown(end_of(&one)), one);
    assert_eq!(shown(&format!("ses_{}", end_of(&two))), two);
    homing.run(&["rename", end_of(&one), "the shop"]).expect(0);
    assert_eq!(shown("the shop"), one);
    for command in [
        &["log", "the shop"][..],
        &["queue", "the shop"],
        &["scope", "the shop"],
        &["scope", "-s", "the shop"],
        &["scope", "the shop", "models"],
        &["scope", "models", "-s", "the shop"],
        &["export", "the shop"],
        &["worktree", "-s", "the shop"],
        &["grant", "ls", "the shop"],
        &["route", "explain", "the shop"],
        &["route", "explain", "-s", "the shop"],
        &["chat", "-s", "the shop"],
    ] {
        homing.run(command).expect(0);
    }
    let named = |command: &[&str]| homing.run(command).expect(0).to_owned();
    assert!(named(&["scope", "the shop", "set", "--model", "large"]).contains(&one));
    assert_eq!(homing.run(&["show", &two, "--json"]).json(0).get("model"), None, "the other is as it was");
    assert!(named(&["route", "explain", end_of(&one)]).contains(&one));
    let said = homing.run_with(&["chat", end_of(&one)], "into the first\n");
    assert!(said.expect(0).contains("into the first"), "{}", said.out);
    assert!(named(&["log", &one]).contains("into the first"));
    assert!(homing.run(&["send", "-s", "the shop", "-f", "again"]).expect(0).contains("again"));
    // Automatic titles are no names, and neither are three characters.
    for nobody in ["two", "zzz", "no such thing"] {
        let said = homing.run(&["show", nobody]);
        assert_eq!(said.code, Some(3), "{nobody}: {}", said.err);
        assert!(said.err.contains("homing ls"), "{}", said.err);
    }
    homing.run(&["end", "the shop"]).expect(0);
    assert_eq!(shown("the shop"), one, "an ended one keeps its name");
}

#[test]
fn a_session_that_is_named_twice_or_with_what_makes_one_is_refused() {
    let homing = homing();
    let one = begin(&homing, "one");
    for command in [
        &["chat", &one, "-s", &one][..],
        &["chat", &one, "--new"],
        &["chat", &one, "--agent", "scripted"],
        &["route", "explain", &one, "--aside"],
        &["route", "explain", &one, "--conversation", "api:ci/x"],
        &["scope", &one, "-s", &one],
        &["scope", &one, "models", "-s", &one],
    ] {
        homing.run(command).expect(2);
    }
    // A verb that was typed wrongly stands where a session may.
    let said = homing.run(&["scope", "modles"]);
    assert!(said.code == Some(3) && said.err.contains("did you mean `homing scope models`"), "{}", said.err);
    let said = homing.run(&["queue", "withdrwa"]);
    assert!(said.code == Some(3) && said.err.contains("`homing queue withdraw`"), "{}", said.err);
    assert_eq!(sessions(&homing, &[]).len(), 1);
}

#[test]
fn a_session_that_is_offered_goes_by_its_line_a_piece_of_its_id_or_its_title() {
    let homing = setup().argument("--trust-everyone").start();
    let bob = Person::new(&homing, "bob");
    bob.type_in(&homing, &["login", "--link"], &add(&homing, &["bob"])).expect(0);
    homing.run(&["roots", "add", homing.place().to_str().unwrap(), "--to", "bob"]).expect(0);
    let offered: Vec<String> = ["one", "two", "three"].map(|words| begin(&homing, words)).into();
    for id in &offered {
        homing.run(&["grant", "hand-over", end_of(id), "bob"]).expect(0);
    }
    homing.run(&["rename", &offered[1], "shop"]).expect(0);
    let piped = bob.run(&homing, &["grant", "offers"]);
    assert!(piped.expect(0).contains(&offered[0]) && !piped.out.contains('@'), "{}", piped.out);
    let unclear = bob.run(&homing, &["grant", "decline", &offered[0][..8]]);
    assert_eq!(unclear.code, Some(2), "{}", unclear.err);
    assert!(offered.iter().all(|id| unclear.err.contains(id)), "{}", unclear.err);
    let nobody = bob.run(&homing, &["grant", "accept", "no such thing"]);
    assert!(nobody.code == Some(3) && nobody.err.contains("homing grant offers"), "{}", nobody.err);

    bob.run(&homing, &["grant", "accept", end_of(&offered[0])]).expect(0);
    bob.run(&homing, &["grant", "decline", "shop"]).expect(0);
    let shown = terminal_of(
        bob.command(&homing),
        &homing,
        80,
        "homing grant offers; homing grant accept @1; homing grant accept @2; echo \"code $?\"",
    );
    let last = &offered[2];
    assert!(shown.contains("@1") && shown.contains(&last[last.len() - 6..]), "{shown}");
    assert!(!shown.contains(last) && shown.contains("is yours") && shown.contains("code 3"), "{shown}");
    let his = bob.run(&homing, &["ls", "--json"]).json(0);
    let his: Vec<String> = his["items"].as_array().unwrap().iter().map(|row| text(row, "id")).collect();
    assert!(his.len() == 2 && his.contains(&offered[0]) && his.contains(last), "{his:?}");
}

#[test]
fn a_name_that_several_go_by_does_nothing_and_names_them() {
    let homing = homing();
    let (one, two) = (begin(&homing, "one"), begin(&homing, "two"));
    homing.run(&["rename", &one, "shop"]).expect(0);
    homing.run(&["rename", &two, "shop"]).expect(0);
    let said = homing.run(&["end", "shop"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    let place = homing.place();
    for part in [one.as_str(), two.as_str(), "\"shop\"", place.to_str().unwrap()] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    assert_eq!(sessions(&homing, &[]).len(), 2, "both are open");
    let said = homing.run(&["end", &one[..8]]);
    assert_eq!(said.code, Some(2), "they begin alike: {}", said.err);
}

#[test]
fn a_dash_is_the_session_that_this_directory_had_before() {
    let homing = homing();
    let none = homing.run(&["show", "-"]);
    assert_eq!(none.code, Some(3), "{}", none.err);
    let first = text(&homing.run(&["send", "--json", "hello"]).json(0), "session");
    homing.run(&["end"]).expect(0);
    let second = text(&homing.run(&["send", "--json", "hello"]).json(0), "session");
    assert_ne!(first, second);
    assert_eq!(text(&homing.run(&["show", "-", "--json"]).json(0), "id"), first);
    homing.run(&["log", "-"]).expect(0);
    let said = homing.run(&["send", "-s", "-", "hello"]);
    assert!(said.code == Some(1) && said.err.contains(&first), "it has ended: {}", said.err);
}

#[test]
fn a_list_fits_the_terminal_and_its_lines_are_names() {
    let homing = homing();
    let (one, two) = (begin(&homing, "mend the login page of the shop and its tests"), begin(&homing, "two"));
    for columns in [80, 40] {
        let shown = terminal(&homing, columns, "homing ls; homing show @2 --json; homing log @1");
        let list: Vec<&str> = shown.lines().take_while(|line| !line.starts_with('{')).collect();
        assert!(list.iter().all(|line| line.chars().count() <= columns), "{columns}: {shown}");
        assert!(list[1].contains("@1") && list[1].contains(&two[two.len() - 6..]), "{shown}");
        assert!(list[2].contains("mend the login"), "{shown}");
        assert!(
            !shown.contains(&format!("{two}  ")) && shown.contains(&format!("\"id\":\"{one}\"")),
            "{shown}"
        );
    }
    let piped = homing.run(&["ls"]);
    assert!(piped.expect(0).contains(&one) && !piped.out.contains('@'), "{}", piped.out);
}

#[test]
fn a_line_is_one_of_this_terminals_own_list() {
    let homing = homing();
    let id = begin(&homing, "one");
    assert!(terminal(&homing, 80, "homing ls").contains("@1"));
    let other = terminal(&homing, 80, "homing show @1; echo \"code $?\"");
    assert!(other.contains("code 2") && other.contains("homing ls") && !other.contains(&id), "{other}");
    let beyond =
        terminal(&homing, 80, "homing ls; homing show @2; echo \"code $?\"; homing end @0; echo \"code $?\"");
    assert!(beyond.contains("code 3") && beyond.contains("code 2"), "{beyond}");
    let piped = homing.run(&["show", "@1"]);
    assert!(piped.code == Some(2) && piped.err.contains("no terminal"), "{}", piped.err);
}

#[test]
fn messages_and_questions_go_by_lines_and_pieces_of_ids() {
    let homing = homing();
    let asked = text(&homing.run(&["send", "--json", "!ask shell"]).json(0), "id");
    let waits = text(&homing.run(&["send", "--json", "later"]).json(0), "id");
    eventually("the agent asks", || {
        homing.run(&["approve", "--json"]).json(0)["items"]
            .as_array()
            .filter(|items| !items.is_empty())
            .map(|_| ())
    });
    let queue = terminal(&homing, 80, "homing queue; homing queue hold @2; homing show @1 --json");
    assert!(queue.contains(&format!("\"id\":\"{asked}\"")), "{queue}");
    assert_eq!(text(&homing.run(&["show", end_of(&waits), "--json"]).json(0), "state"), "held", "{queue}");
    homing.run(&["queue", "withdraw", end_of(&waits)]).expect(0);
    let answered = terminal(&homing, 80, "homing approve; homing approve @1 --yes");
    assert!(answered.contains("@1"), "{answered}");
    homing.http().until_final(&asked);
    assert_eq!(text(&homing.run(&["show", &asked, "--json"]).json(0), "state"), "answered", "{answered}");
}

#[test]
fn a_worktree_goes_by_its_line_and_by_how_its_name_begins() {
    let yard = Yard::new();
    yard.homing.run(&["scope", "enter", "feature-login"]).expect(0);
    let listed =
        terminal(&yard.homing, 80, "homing worktree; homing worktree merge --dry-run @1; echo \"code $?\"");
    assert!(listed.contains("@1") && listed.contains("code 0"), "{listed}");
    yard.homing.run(&["worktree", "merge", "--dry-run", "feat"]).expect(0);
    let nothing = yard.homing.run(&["worktree", "rm", "nothing"]);
    assert_eq!(nothing.code, Some(3), "{}", nothing.err);
}

#[test]
fn a_list_is_narrowed_by_agent_directory_state_and_words() {
    let homing = homing();
    let one = begin(&homing, "mend the shop");
    let there = homing.root().join("elsewhere");
    std::fs::create_dir(&there).unwrap();
    let receipt = homing.run_in(&there, &["send", "--json", "--new", "paint the wall"]).json(0);
    homing.http().until_final(&text(&receipt, "id"));
    let two = text(&receipt, "session");
    let ids = |arguments: &[&str]| {
        sessions(&homing, arguments).iter().map(|row| text(row, "id")).collect::<Vec<_>>()
    };
    eventually("nothing runs", || (ids(&["--state", "dormant"]).len() == 2).then_some(()));
    assert_eq!(ids(&["--text", "SHOP"]), std::slice::from_ref(&one));
    assert_eq!(ids(&["--directory", there.to_str().unwrap()]), std::slice::from_ref(&two));
    assert_eq!(ids(&["--agent", "scripted"]).len(), 2);
    assert_eq!(ids(&["--agent", "claude"]), Vec::<String>::new());
    homing.run(&["end", &two]).expect(0);
    assert_eq!(ids(&["--state", "ended"]), [two]);
    assert_eq!(ids(&["--state", "running"]), Vec::<String>::new());
}

#[test]
fn a_list_is_kept_where_the_terminal_began_outside_of_our_pid_namespace() {
    let homing = homing();
    let id = begin(&homing, "hello");
    let inside = "unshare -Urpf --mount-proc sh -c '\"$EXE\" ls; \"$EXE\" show @1; true'";
    let shown = terminal(&homing, 80, inside);
    assert!(shown.contains(&id), "the whole id is what @1 was: {shown}");
}

#[test]
fn a_diff_is_of_the_session_that_is_named_in_whatever_way() {
    let yard = Yard::new();
    yard.ask("!run echo one > one.txt");
    let (homing, first) = (&yard.homing, &yard.session);
    let sent = homing.run(&["send", "--json", "--new", "!run echo two > two.txt"]).json(0);
    homing.http().until_final(&text(&sent, "id"));
    let second = text(&sent, "session");
    homing.run(&["rename", first, "the shop"]).expect(0);
    let of_first = |said: &str| said.contains("one.txt") && !said.contains("two.txt");
    for name in [first, end_of(first), &first[..20], "the shop", "-"] {
        let last = homing.run(&["diff", name, "--stat"]);
        assert!(of_first(last.expect(0)) && last.err.contains("turn 2:"), "{name}: {last:?}");
        assert!(of_first(homing.run(&["diff", name, "2"]).expect(0)), "{name}");
        let before = homing.run(&["diff", name, "1"]);
        assert!(before.expect(0).is_empty() && before.err.contains("changed no file"), "{name}: {before:?}");
        homing.run(&["undo", name, "2", "--dry-run"]).expect(0);
    }
    let said = homing.run(&["diff"]);
    assert!(said.expect(0).contains("two.txt"), "this directory's is the new one: {}", said.out);
    let shown = terminal(
        homing,
        80,
        "homing ls >/dev/tty; homing diff @2 --stat; homing diff @1 2>&1; homing diff @3",
    );
    let (list, diffs) = shown.split_once("turn 2:").unwrap_or_else(|| panic!("{shown}"));
    assert!(list.contains("@2") && diffs.contains("one.txt") && diffs.contains("two.txt"), "{shown}");
    assert!(diffs.contains("has 2 lines"), "{shown}");
    // A name that means nothing, or two, is of no turn.
    let nobody = homing.run(&["diff", "no such thing"]);
    assert_eq!(nobody.code, Some(3), "{}", nobody.err);
    homing.run(&["rename", &second, "the shop"]).expect(0);
    let both = homing.run(&["diff", "the shop", "2"]);
    assert!(both.code == Some(2) && both.err.contains(first) && both.err.contains(&second), "{}", both.err);
}

#[test]
fn ids_are_short_on_a_terminal_and_whole_in_a_pipe() {
    let yard = Yard::new();
    let homing = &yard.homing;
    let shown = terminal(
        homing,
        80,
        "homing send -f two; homing send -f '!fail after'; homing send '!sleep 60000'; homing send later; homing queue;
         homing queue hold @2; homing stop; homing stop; homing log; homing fork --at 1; homing bindings;
         homing approve yes apr_01k0000000000000000000000a; homing end; homing end; homing send -f after",
    );
    for part in [" (joined)", "held", "stopped", "says: two", "a fork of", "ended", "has ended"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let whole: Vec<&str> =
        shown.split_whitespace().filter(|word| word.contains("msg_") || word.contains("ses_")).collect();
    assert_eq!(whole, Vec::<&str>::new(), "{shown}");

    let piped = homing.run(&["send", "!sleep 60000"]);
    let message = piped.expect(0).trim().to_owned();
    assert!(message.starts_with("msg_") && piped.err.contains("ses_"), "{piped:?}");
    let stopped = homing.run(&["stop", &message]);
    assert!(stopped.expect(0).contains(&message), "{}", stopped.out);
    let ended = homing.run(&["end"]);
    assert!(ended.expect(0).starts_with("ses_"), "{}", ended.out);
}

#[test]
fn a_message_that_is_over_goes_by_a_piece_of_its_id() {
    let homing = homing();
    let message = text(&homing.run(&["send", "--json", "one"]).json(0), "id");
    homing.http().until_final(&message);
    for words in ["two", "three"] {
        homing.run(&["send", "-f", words]).expect(0);
    }
    let shown = |name: &str| text(&homing.run(&["show", name, "--json"]).json(0), "id");
    assert_eq!(shown(end_of(&message)), message);
    assert_eq!(shown(&format!("msg_{}", end_of(&message))), message);
    assert!(homing.run(&["stop", end_of(&message)]).err.contains("it was answered already"));
    // In the terminal that it was said in, wherever somebody goes and whatever they list meanwhile.
    let elsewhere = homing.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut shell = Command::new("sh");
    let ours = homing.command();
    shell.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.env("EXE", ours.get_program()).env("PS1", "$ ").env("TERM", "dumb").current_dir(homing.place());
    shell.env("XDG_RUNTIME_DIR", homing.root());
    let mut shell = Terminal::start(shell, TerminalSize { columns: 100, rows: 40 });
    shell.until_last("$");
    shell.press("\"$EXE\" send said here\r");
    let told = shell.until("has the answer once there");
    let told = told.join(" ");
    let short = told.split("homing show ").nth(1).and_then(|rest| rest.split('`').next()).unwrap().to_owned();
    assert!(short.len() < 10, "{told}");
    shell.until_last("$");
    let said = homing.run(&["log", "--json"]);
    let said = said.expect(0).lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let said =
        said.filter(|fact| fact["type"] == "queued").map(|fact| text(&fact, "message")).next_back().unwrap();
    assert!(said.ends_with(&short), "{said} {short}");
    homing.http().until_final(&said);
    let line = format!("\"$EXE\" queue; cd {}; \"$EXE\" show {short}\r", elsewhere.display());
    shell.press(&line);
    shell.until("#4 said here");
    assert!(homing.run_in(&elsewhere, &["show", &short]).code == Some(3), "no other terminal knows it there");
}

#[test]
fn several_messages_questions_or_worktrees_that_go_by_a_name_are_named_and_nothing_is_done() {
    let yard = Yard::new();
    let homing = &yard.homing;
    let unclear = |command: &[&str], candidates: &[String]| {
        let said = homing.run(command);
        assert_eq!(said.code, Some(2), "{command:?}: {}", said.err);
        assert!(candidates.iter().all(|id| said.err.contains(id)), "{command:?}: {}", said.err);
        assert!(said.err.contains("nothing was done"), "{}", said.err);
    };
    let asked = text(&homing.run(&["send", "--json", "!ask shell"]).json(0), "id");
    let waits: Vec<String> =
        ["one", "two"].map(|words| text(&homing.run(&["send", "--json", words]).json(0), "id")).into();
    unclear(&["queue", "withdraw", &waits[0][..8]], &waits);
    unclear(&["stop", &waits[0][..8]], &waits);
    let queue = homing.run(&["queue", "--json"]).json(0);
    assert_eq!(queue["items"].as_array().unwrap().len(), 3, "all are there: {queue}");

    let elsewhere = homing.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let other = text(&homing.run_in(&elsewhere, &["send", "--json", "!ask shell"]).json(0), "id");
    let open = || homing.run(&["approve", "--json"]).json(0)["items"].as_array().unwrap().clone();
    let both = eventually("both ask", || Some(open()).filter(|items| items.len() == 2));
    let questions: Vec<String> = both.iter().map(|asked| text(asked, "id")).collect();
    unclear(&["approve", &questions[0][..8], "--yes"], &questions);
    assert_eq!(open().len(), 2, "nobody was answered");
    for message in [&asked, &other] {
        homing.run(&["stop", message]).expect(0);
    }
    for message in &waits {
        homing.http().until_final(message);
    }

    for name in ["feature-login", "feature-logout"] {
        homing.run(&["scope", "enter", name]).expect(0);
        homing.run(&["scope", "exit"]).expect(0);
    }
    let names = ["feature-login".to_owned(), "feature-logout".to_owned()];
    unclear(&["worktree", "rm", "feature"], &names);
    assert_eq!(homing.run(&["worktree", "--json"]).json(0)["items"].as_array().unwrap().len(), 2);
    // By its end, one is enough.
    homing.run(&["worktree", "rm", "logout"]).expect(0);
    assert_eq!(homing.run(&["worktree", "--json"]).json(0)["items"][0]["name"], "feature-login");
}

#[test]
fn a_diff_is_of_a_worktree_that_is_named_wherever_its_session_is() {
    let yard = Yard::new();
    let homing = &yard.homing;
    yard.ask("!run echo before > before.txt");
    homing.run(&["scope", "enter", "feature-login"]).expect(0);
    yard.ask("!run echo in > in.txt");
    yard.ask("!run echo more > more.txt");
    let is_its =
        |said: &str| said.contains("in.txt") && said.contains("more.txt") && !said.contains("before");
    let elsewhere = homing.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for name in ["feature-login", "feat", "login"] {
        let told = homing.run_in(&elsewhere, &["diff", "--worktree", name, "--stat"]);
        assert!(is_its(told.expect(0)), "{name}: {told:?}");
    }
    assert!(is_its(homing.run(&["diff", end_of(&yard.session), "--worktree", "feat"]).expect(0)));
    homing.run(&["diff", "--worktree", "feat", "2"]).expect(2);
    homing.run(&["diff", "--worktree", "feat", "--all"]).expect(2);
    homing.run(&["diff", "--worktree", "nothing"]).expect(3);
    // Its session has left it: then it is what was done in it since it was made.
    homing.run(&["scope", "exit"]).expect(0);
    assert!(is_its(homing.run(&["diff", "--worktree", "feat", "--stat"]).expect(0)));
    homing.run(&["worktree", "rm", "feature-login"]).expect(0);
    let gone = homing.run(&["diff", "--worktree", "feature-login"]);
    assert!(gone.expect(1).is_empty() && gone.err.contains("homing worktree restore"), "{}", gone.err);
}

#[test]
fn bindings_tell_how_to_go_back() {
    let homing = homing();
    begin(&homing, "one");
    let first = homing.run(&["bindings"]);
    assert!(first.expect(0).contains("cli:") && !first.err.contains("move"), "{}", first.err);
    begin(&homing, "two");
    let told = homing.run(&["bindings"]);
    assert!(
        told.expect(0).contains("cli:") && told.err.contains("`homing bindings move . -`"),
        "{}",
        told.err
    );
    assert!(!homing.run(&["bindings", "--json"]).err.contains("move"));
}

#[test]
fn in_a_worktree_names_mean_what_they_mean_elsewhere_and_no_name_means_its_session() {
    let yard = Yard::new();
    let homing = &yard.homing;
    let sent = homing.run(&["send", "--new", "--worktree=fix", "--json", "!run echo in > in.txt"]).json(0);
    homing.http().until_final(&text(&sent, "id"));
    let session = text(&sent, "session");
    let tree =
        std::path::PathBuf::from(text(&homing.run(&["show", &session, "--json"]).json(0), "directory"));
    let id = |arguments: &[&str]| text(&homing.run_in(&tree, arguments).json(0), "id");

    // Without a name: its session, whatever the command.
    assert_eq!(id(&["show", "--json"]), session);
    assert!(homing.run_in(&tree, &["diff"]).expect(0).contains("in.txt"));
    assert!(homing.run_in(&tree, &["log"]).expect(0).contains("echo in"));
    homing.run_in(&tree, &["rename", "mended"]).expect(0);
    assert_eq!(text(&homing.run(&["show", &session, "--json"]).json(0), "title"), "mended");
    // With one: the same as anywhere.
    for name in [end_of(&yard.session), &yard.session[..20]] {
        assert_eq!(id(&["show", name, "--json"]), yard.session);
    }
    assert_eq!(id(&["show", "mended", "--json"]), session);
    let cd = format!("homing ls; cd {}; homing show @2 --json; homing show @1 --json", tree.display());
    let shown = terminal(homing, 80, &cd);
    let at = |id: &str| shown.find(&format!("\"id\":\"{id}\"")).unwrap_or_else(|| panic!("{id}: {shown}"));
    assert!(at(&yard.session) < at(&session), "lines are this terminal's, wherever one stands: {shown}");

    // Its messages go by pieces of their ids there, and not where another session's are.
    homing.run_in(&tree, &["send", "!ask shell"]).expect(0);
    let waits = text(&homing.run_in(&tree, &["send", "--json", "later"]).json(0), "id");
    homing.run(&["queue", "hold", end_of(&waits)]).expect(3);
    homing.run_in(&tree, &["queue", "hold", end_of(&waits)]).expect(0);
    homing.run_in(&tree, &["stop"]).expect(0);

    // No session was ever begun in it, and none can be: `-` means nothing there, and does nothing.
    for command in [&["show", "-"][..], &["end", "-"], &["send", "-s", "-", "hello"], &["diff", "-"]] {
        let none = homing.run_in(&tree, command);
        assert!(none.code == Some(3) && none.err.contains("it had none"), "{command:?}: {none:?}");
    }
    let new = homing.run_in(&tree, &["send", "--new", "--json", "hello"]);
    assert_eq!(text(&new.json(1), "code"), "bad_directory");
    assert_eq!(id(&["show", "--json"]), session, "it is that session's all the same");
    assert_eq!(sessions(homing, &["--all"]).len(), 2, "both are as they were");
}

#[test]
fn a_rule_and_the_audit_take_a_session_by_its_names_and_show_it_by_a_short_one() {
    let homing = homing();
    let id = begin(&homing, "hello");
    homing.run(&["rename", &id, "till"]).expect(0);
    for name in ["till", end_of(&id), &id] {
        let rule = ["approve", "rules", "add", "--tool", "shell", "--deny", "--session", name, "--json"];
        assert_eq!(text(&homing.run(&rule).json(0), "session"), id, "{name}");
    }
    let missed = homing.run(&["approve", "rules", "add", "--deny", "--session", "tll"]);
    assert!(
        missed.expect(3).is_empty() && missed.err.contains("no session goes by the name"),
        "{}",
        missed.err
    );
    let shown = terminal(
        &homing,
        80,
        "homing ls; homing approve rules add --tool paint --deny --session @1; homing audit --subject @1 -n 2",
    );
    assert!(!shown.contains("rul_") && shown.contains(&id[id.len() - 6..]), "{shown}");
    let audit = shown.split("ABOUT").nth(1).expect("the audit has rows");
    assert!(!audit.contains(&id) && audit.contains(&id[id.len() - 6..]), "{audit}");
}
