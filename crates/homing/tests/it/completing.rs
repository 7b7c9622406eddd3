//! Completion in real shells: what TAB offers, that nothing of it is run, and that it says nothing where there is nothing to say.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::{CommandOutput, Homing, Terminal, TerminalSize, eventually};

use crate::people::{Person, add, url_of};
use crate::yard::Yard;
use crate::{EXE, homing, sessions, setup, text};

/// Wide and high enough that no list is asked about first.
const SIZE: TerminalSize = TerminalSize { columns: 120, rows: 40 };
/// Far longer than a completion waits for a server (half a second), on a machine that has other things to do.
const SOON: Duration = Duration::from_secs(10);
/// The prompt of each shell.
const PROMPT: &str = "next>";
/// Titles that would do something if a shell took them for more than a word. Each begins and ends like no other one; no id has an `l`.
const HOSTILE: [&str; 9] = [
    "la $(touch pwned) a9",
    "lb `touch pwned` b9",
    "lc'; touch pwned; echo 'c9",
    "ld\"; touch pwned; echo \"d9",
    "le \\ \\\\ $HOME ${HOME} e9",
    "lf * ? [x] {a,b} ~ # & | < > ( ) ; = : f9",
    "lg !! !$ ^a^b^ g9",
    "lh größe ñ %F{red}%n%~ h9",
    "li 'single' \"double\" i9",
];

/// A shell that was started as somebody would who has read the guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }

    /// The lines of its start-up file, those of the guide last.
    fn start_up(self) -> String {
        match self {
            Self::Bash => format!("PS1='{PROMPT} '\nHISTFILE=\nsource <(homing completions bash)\n"),
            Self::Zsh => format!(
                "PS1='{PROMPT} '\nunset zle_bracketed_paste\nautoload -Uz compinit && compinit -u -D\nsource <(homing completions zsh)\n"
            ),
            Self::Fish => format!(
                "function fish_prompt; printf '{PROMPT} '; end\nset -g fish_greeting\nset -g fish_autosuggestion_enabled 0\nhoming completions fish | source\n"
            ),
        }
    }

    /// Starts it in a terminal of its own, with the binary under test on its path, and waits until it is ready.
    #[track_caller]
    fn start(self, homing: &Homing, variables: &[(&str, &str)]) -> Terminal {
        let files = homing.root().join(self.name());
        fs::create_dir_all(&files).unwrap();
        let start_up = files.join(if self == Self::Zsh { ".zshrc" } else { "start-up" });
        fs::write(&start_up, self.start_up()).unwrap();
        // The terminal is to be the shell's own, as it is in a window.
        let mut command = Command::new("setsid");
        let ours = homing.command();
        for (name, value) in ours.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let start_up = start_up.to_str().unwrap();
        match self {
            Self::Bash => command.args(["-cw", "bash", "--noprofile", "--rcfile", start_up, "-i"]),
            Self::Zsh => command.args(["-cw", "zsh", "-i"]).env("ZDOTDIR", &files),
            Self::Fish => command.args(["-cw", "fish", "-iN", "-C", &format!("source {start_up}")]),
        };
        let path =
            format!("{}:{}", Path::new(EXE).parent().unwrap().display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("LC_ALL", "C.UTF-8").envs(variables.iter().copied());
        command.current_dir(homing.place());
        let there = Command::new(self.name()).arg("--version").stdin(Stdio::null()).output();
        assert!(there.is_ok(), "there is no {}; `cargo xtask tools` gets it", self.name());
        let terminal = Terminal::start(command, SIZE);
        terminal.until(PROMPT);
        terminal
    }
}

/// The candidates for the last of these words, as fish is told them: each with the words beside it.
#[track_caller]
fn offered(said: &CommandOutput) -> Vec<(String, String)> {
    let mut lines = said.expect(0).lines();
    assert_eq!((lines.next(), said.err.as_str()), (Some("words"), ""));
    let pair = |line: &str| line.split_once('\t').map(|(value, words)| (value.to_owned(), words.to_owned()));
    lines.map(|line| pair(line).expect("a value and its words")).collect()
}

#[track_caller]
fn complete(homing: &Homing, words: &[&str]) -> Vec<(String, String)> {
    offered(&homing.run(&[&["__complete", "fish", "homing"], words].concat()))
}

#[track_caller]
fn values(homing: &Homing, words: &[&str]) -> Vec<String> {
    complete(homing, words).into_iter().map(|(value, _)| value).collect()
}

/// A session of this title, and its id.
#[track_caller]
fn titled(homing: &Homing, title: &str) -> String {
    text(&homing.run(&["send", "--json", "--aside", "--title", title, "hello"]).json(0), "session")
}

/// The end of an id, as lists show it: no number.
fn short(id: &str) -> &str {
    let ends = (6..id.len()).map(|length| &id[id.len() - length..]);
    ends.into_iter().find(|end| end.bytes().any(|c| !c.is_ascii_digit())).unwrap()
}

/// Types how a title begins, presses TAB and Enter, and waits until the session of that title was shown.
#[track_caller]
fn show_by_title(terminal: &mut Terminal, quote: &str, title: &str, id: &str) {
    let shown =
        |lines: &[String]| lines.iter().filter(|line| line.contains(&format!("\"id\":\"{id}\""))).count();
    let before = shown(&terminal.lines());
    let (begins, ends) = (&title[..2], &title[title.len() - 2..]);
    terminal.press(&format!("homing show --json {quote}{begins}\t"));
    terminal.until_lines(&format!("{quote}{title} is put in"), |lines| {
        lines.iter().rfind(|line| line.contains(PROMPT)).is_some_and(|line| line.contains(ends))
    });
    terminal.press("\r");
    terminal.until_lines(&format!("{title} is shown"), |lines| shown(lines) > before);
    terminal.until_lines("the next prompt", |lines| {
        lines.iter().rfind(|line| !line.is_empty()).is_some_and(|line| line == PROMPT)
    });
}

#[track_caller]
fn a_title_is_a_word_and_nothing_of_it_is_run(shell: Shell) {
    let homing = homing();
    let ids = HOSTILE.map(|title| titled(&homing, title));
    let mut terminal = shell.start(&homing, &[]);
    for quote in ["", "'", "\""] {
        // In bash an exclamation mark cannot stand within double quotes.
        let is_left_out = |title: &str| shell == Shell::Bash && quote == "\"" && title.contains('!');
        for (title, id) in HOSTILE.iter().zip(&ids).filter(|(title, _)| !is_left_out(title)) {
            show_by_title(&mut terminal, quote, title, id);
        }
    }
    for place in [homing.place(), homing.home()] {
        let was_run = place.join("pwned").exists();
        assert!(!was_run, "something was run:\n{}", terminal.lines().join("\n"));
    }
}

#[test]
fn a_title_is_a_word_in_bash_and_nothing_of_it_is_run() {
    a_title_is_a_word_and_nothing_of_it_is_run(Shell::Bash);
}

#[test]
fn a_title_is_a_word_in_zsh_and_nothing_of_it_is_run() {
    a_title_is_a_word_and_nothing_of_it_is_run(Shell::Zsh);
}

#[test]
fn a_title_is_a_word_in_fish_and_nothing_of_it_is_run() {
    a_title_is_a_word_and_nothing_of_it_is_run(Shell::Fish);
}

#[test]
fn a_tab_completes_commands_and_lists_sessions_with_their_titles_in_every_shell() {
    let homing = homing();
    let (one, two) = (titled(&homing, "mend the login page"), titled(&homing, "100% of %n \u{1f980}"));
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut terminal = shell.start(&homing, &[]);
        terminal.press("homing bindi\t");
        terminal.until("homing bindings");
        terminal.press("\u{15}");
        // Bash lists when it is asked for the second time.
        terminal.press(if shell == Shell::Bash { "homing show \t\t" } else { "homing show \t" });
        for (id, title) in [(&one, "mend the login page"), (&two, "100% of %n")] {
            terminal.until_lines(&format!("{shell:?} lists {title}"), |lines| {
                lines.iter().any(|line| line.contains(short(id)) && line.contains(title))
            });
        }
    }
}

#[test]
fn a_tab_says_nothing_where_there_is_no_server() {
    let homing = homing();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let nowhere = homing.root().join("nowhere");
        let mut terminal = shell.start(&homing, &[("HOMING_DATA", nowhere.to_str().unwrap())]);
        terminal.press("homing show \t\t\x15echo it goes on\r");
        terminal.until_lines("it goes on", |lines| lines.iter().any(|line| line == "it goes on"));
        let lines = terminal.lines();
        let ours =
            |line: &&String| !line.is_empty() && !line.contains("it goes on") && !line.starts_with(PROMPT);
        let said: Vec<&String> = lines.iter().filter(ours).collect();
        assert!(said.is_empty(), "{shell:?} said {said:?} in {lines:#?}");
        assert!(!nowhere.exists(), "nothing was made");
    }
}

#[test]
fn whatever_is_wrong_with_a_server_a_completion_is_silent_soon_and_commands_are_there() {
    let homing = homing();
    titled(&homing, "shop");
    // It takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let closed = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let here = url_of(&homing);
    let wrong = [
        (silent.as_str(), "x"),
        (closed.as_str(), "x"),
        ("http://no-such-host.invalid:1", "x"),
        ("nonsense", "x"),
        (here.as_str(), "hmg_m_wrong"),
    ];
    for (url, token) in wrong {
        let run = |words: &[&str]| -> CommandOutput {
            let mut command = homing.command();
            command.env_remove("HOMING_DATA").env("HOMING_URL", url).env("HOMING_TOKEN", token);
            command.args(["__complete", "fish", "homing"]).args(words).stdin(Stdio::null());
            command.output().unwrap().into()
        };
        for words in [
            &["show", ""][..],
            &["show", "sh"],
            &["send", "--model", ""],
            &["queue", "hold", ""],
            &["scope", "enter", ""],
        ] {
            let began = Instant::now();
            assert_eq!(offered(&run(words)), [], "{url} {words:?}");
            assert!(began.elapsed() < SOON, "{url} {words:?} took {:?}", began.elapsed());
        }
        assert_eq!(offered(&run(&["ren"]))[0].0, "rename");
    }
}

#[test]
fn sessions_are_completed_by_short_ids_whole_ids_and_titles() {
    let homing = homing();
    let (one, two) = (titled(&homing, "the shop"), titled(&homing, "the wall"));
    let words = text(&homing.run(&["send", "--json", "the first words"]).json(0), "session");
    homing.run(&["end", &two]).expect(0);
    let [one, two, words] = [one, two, words];
    let open = values(&homing, &["send", "-s", ""]);
    assert_eq!(open.len(), 2, "{open:?}");
    assert!(open.contains(&short(&one).to_owned()) && open.contains(&short(&words).to_owned()), "{open:?}");
    let all = complete(&homing, &["show", ""]);
    let ended = all.iter().find(|(value, _)| value == short(&two)).unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!(ended.1, "ended: the wall");
    // Only a title that a person gave is a name.
    let mut titles = values(&homing, &["log", "the "]);
    titles.sort();
    assert_eq!(titles, ["the shop", "the wall"]);
    assert_eq!(values(&homing, &["end", "the "]), ["the shop"]);
    assert_eq!(values(&homing, &["send", "--session=the s"]), ["--session=the shop"]);
    assert_eq!(values(&homing, &["diff", &one[..20]]).iter().filter(|id| **id == one).count(), 1);
    assert_eq!(values(&homing, &["show", &short(&one)[..3]]), [short(&one)]);
    // A title is not taken for an option, a line of a list or the id of another one.
    for title in ["--json", "-", "@1", &two, "~root", "x\u{202e}y"] {
        homing.run(&["rename", &one, "--", title]);
        for typed in ["", "-", "--js", "@", "~", "x"] {
            let offered = values(&homing, &["log", typed]);
            assert!(
                offered.iter().all(|value| value != title || value == "--json"),
                "{title:?} {typed:?}: {offered:?}"
            );
        }
    }
    let offered = values(&homing, &["log", "ses_"]);
    assert_eq!(offered.iter().filter(|value| **value == two).count(), 1, "{offered:?}");
    // Where a title or a turn follows, no session does.
    assert_eq!(values(&homing, &["rename", "x", ""]), Vec::<String>::new());
    for command in ["log", "show", "queue", "end", "fork", "export", "diff", "undo", "redo", "stop", "rename"]
    {
        assert!(values(&homing, &[command, ""]).contains(&short(&one).to_owned()), "{command}");
    }
}

#[test]
fn messages_and_questions_are_completed_by_short_ids_that_commands_take() {
    let homing = homing();
    let asked = text(&homing.run(&["send", "--json", "!ask shell"]).json(0), "id");
    let waits = text(&homing.run(&["send", "--json", "later, please"]).json(0), "id");
    let question =
        eventually("the agent asks", || complete(&homing, &["approve", "yes", ""]).into_iter().next());
    let queued = eventually("it waits", || {
        Some(complete(&homing, &["queue", "hold", ""])).filter(|queued| queued.len() == 2)
    });
    assert_eq!(queued[1].0, short(&waits));
    assert!(queued[1].1.contains("later, please"), "{queued:?}");
    assert!(values(&homing, &["stop", ""]).contains(&short(&asked).to_owned()));
    assert_eq!(values(&homing, &["queue", "move", short(&waits), "--before", "msg_"]).len(), 2);
    homing.run(&["queue", "withdraw", &queued[1].0]).expect(0);
    assert!(question.1.contains("shell"), "{question:?}");
    homing.run(&["approve", "yes", &question.0]).expect(0);
    homing.http().until_final(&asked);
    assert_eq!(complete(&homing, &["approve", "yes", ""]), []);
}

#[test]
fn agents_models_and_worktrees_are_completed_where_they_are_meant() {
    let yard = Yard::new();
    let homing = &yard.homing;
    let agents = complete(homing, &["send", "--agent", ""]);
    let scripted = agents.iter().find(|(name, _)| name == "scripted").unwrap_or_else(|| panic!("{agents:?}"));
    assert!(scripted.1.contains("default"), "{scripted:?}");
    assert_eq!(values(homing, &["agents", "show", "scr"]), ["scripted"]);
    // The session's agent has listed them in its first turn.
    assert_eq!(values(homing, &["scope", "set", "--model", ""]), ["small", "large"]);
    assert_eq!(values(homing, &["send", "--new", "--model=l"]), ["--model=large"]);
    assert_eq!(complete(homing, &["send", "--agent", "codex", "--model", ""]), []);
    homing.run(&["scope", "enter", "feature-login"]).expect(0);
    let offered = complete(homing, &["worktree", "merge", "feat"]);
    assert_eq!(offered[0].0, "feature-login");
    assert!(offered[0].1.contains("in use"), "{offered:?}");
    assert_eq!(values(homing, &["scope", "enter", ""]), ["feature-login"]);
    let other = titled(homing, "other");
    assert_eq!(complete(homing, &["scope", "-s", &other, "enter", ""]), [], "that one has none");
    homing.run(&["scope", "exit"]).expect(0);
    homing.run(&["worktree", "rm", "feature-login"]).expect(0);
    assert_eq!(values(homing, &["worktree", "rm", ""]), Vec::<String>::new());
    assert_eq!(values(homing, &["worktree", "restore", ""]), ["feature-login"]);
}

#[test]
fn what_somebody_may_not_see_is_no_candidate_of_theirs() {
    let homing = setup().argument("--trust-everyone").start();
    let ours = titled(&homing, "the shop");
    homing.run(&["send", "--json", "-s", &ours, "!ask shell"]).expect(0);
    eventually("the agent asks", || complete(&homing, &["approve", ""]).into_iter().next());
    let bob = Person::new(&homing, "bob");
    let link = add(&homing, &["bob"]);
    bob.type_in(&homing, &["login", "--link"], &link).expect(0);
    let complete =
        |words: &[&str]| offered(&bob.run(&homing, &[&["__complete", "fish", "homing"], words].concat()));
    let sessions_of = |said: &CommandOutput| said.json(0)["items"].as_array().unwrap().len();
    assert_eq!(sessions_of(&bob.run(&homing, &["ls", "--all", "--json"])), 0);
    for typed in ["", "the", "ses_", &ours, short(&ours)] {
        assert_eq!(complete(&["show", typed]), [], "{typed:?}");
    }
    assert_eq!(complete(&["approve", "apr_"]), []);
    homing.run(&["grant", "give", &ours, "bob", "view"]).expect(0);
    assert_eq!(complete(&["show", "the"])[0].0, "the shop");
    assert_eq!(sessions(&homing, &[]).len(), 1, "nothing was made");
}
