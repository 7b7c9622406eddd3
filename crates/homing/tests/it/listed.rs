//! A team's agents see what is listed, and nothing else: the real binary, real git, and the scripted agent with a shell.

use std::fs;
use std::path::Path;

use serde_json::json;
use testkit::{Homing, Setup};

use crate::yard::{Yard, git};
use crate::{setup, text};

const CANARY: &str = "canary-7d20b4";

/// The words of a shell in a session of that directory.
#[track_caller]
fn shell(homing: &Homing, directory: &Path, command: &str) -> String {
    let to = json!({ "new": { "directory": directory } });
    homing.http().converse(&to, &format!("!run {command}; echo over"))
}

/// Somebody else can come in from now on.
#[track_caller]
fn become_a_team(homing: &Homing) {
    homing.run(&["user", "add", "bob"]).expect(0);
}

/// A project, another one beside it with a secret in it, and something that is shared.
#[track_caller]
fn projects(homing: &Homing) -> [std::path::PathBuf; 3] {
    ["own", "other", "shared"].map(|name| {
        let directory = homing.place().canonicalize().unwrap().join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("file"), format!("{CANARY} {name}\n")).unwrap();
        directory
    })
}

#[test]
fn a_teams_agent_sees_its_own_directory_and_no_other() {
    let homing = setup().start();
    let [own, other, _] = projects(&homing);
    let look = format!("cat file {0}/file; ls {0}; stat {0} | grep -c Size; echo x > made", other.display());
    let said = shell(&homing, &own, &look);
    assert!(said.contains("canary-7d20b4 own") && said.contains("canary-7d20b4 other"), "alone: {said}");
    become_a_team(&homing);
    let said = shell(&homing, &own, &look);
    assert!(said.contains("canary-7d20b4 own") && said.contains("over"), "{said}");
    assert!(!said.contains("canary-7d20b4 other") && said.contains("\n0\n"), "{said}");
    for way in [
        format!("cat ../other/file /proc/self/root{}/file", other.display()),
        format!("ln -s {} link; cat link/file; rm link", other.display()),
        format!("unshare -Urm sh -c 'umount -l /; cat {}/file'", other.display()),
        format!("grep -rs {CANARY} /srv /mnt /media /home {} | grep -v '/own/'", homing.root().display()),
        format!(
            "find / -path /proc -prune -o -path /sys -prune -o -name 'other' -print 2>/dev/null | grep {}",
            homing.place().display()
        ),
    ] {
        let said = shell(&homing, &own, &way);
        assert!(
            said.contains("over") && !said.contains(CANARY) && !said.contains("/other\n"),
            "{way}: {said}"
        );
    }
}

/// The home of whoever runs the server, which is theirs: for a team an agent has its own places in it.
#[test]
fn a_teams_agent_has_its_own_places_in_a_persons_home_and_nothing_else() {
    for setup in [setup(), setup().ordinary()] {
        let mut homing = setup.start();
        homing.terminate();
        let home = homing.home().canonicalize().unwrap();
        for directory in [".ssh", ".local/bin", "project"] {
            fs::create_dir_all(home.join(directory)).unwrap();
        }
        for file in [".ssh/key", ".netrc", "project/file"] {
            fs::write(home.join(file), format!("{CANARY} {file}\n")).unwrap();
        }
        fs::write(home.join(".gitconfig"), "[user]\n\tname = Ana\n").unwrap();
        let config = "[agents.sh]\nenabled = true\nkind = \"command\"\nprogram = \"/bin/sh\"\nhome_places = [\".sh/\"]\n";
        fs::write(homing.data().join("homing.toml"), config).unwrap();
        homing.give_away();
        homing.restart();
        let [own, ..] = projects(&homing);
        homing.give_away();
        let ask = |directory: &Path, words: &str| {
            let to = json!({ "new": { "directory": directory, "agent": "sh" } });
            homing.http().converse(&to, words)
        };
        let look = "exec 2>&1; cd; ls -A; cat .ssh/key .netrc project/file ~+/.netrc; git config user.name; echo kept > .sh/kept; \
                    echo x > .gitconfig; echo x > loose; cat .sh/kept loose; echo over";
        let alone = ask(&own, look);
        assert!(
            alone.contains("canary-7d20b4 .netrc") && alone.contains("canary-7d20b4 .ssh/key"),
            "{alone}"
        );
        fs::write(home.join(".gitconfig"), "[user]\n\tname = Ana\n").unwrap();
        fs::remove_file(home.join("loose")).unwrap();
        homing.give_away();
        become_a_team(&homing);
        let said = ask(&own, look);
        assert!(!said.contains(CANARY), "{said}");
        assert!(said.contains("Ana\n") && said.contains("kept\nx\nover"), "{said}");
        assert!(home.join(".sh/kept").exists() && !home.join("loose").exists());
        assert!(fs::read_to_string(home.join(".gitconfig")).unwrap().contains("Ana"));
        // A project in it is there for those who work in it.
        let said =
            ask(&home.join("project"), "cat file; cat ../.netrc 2>&1; cat ../.ssh/key 2>&1; echo over");
        assert!(said.contains("canary-7d20b4 project/file") && said.matches(CANARY).count() == 1, "{said}");
        let proved = homing.run(&["doctor"]);
        assert!(proved.out.contains("proved: agents cannot reach"), "{}", proved.out);
        assert!(proved.out.contains(&home.join(".sh").display().to_string()), "{}", proved.out);
        let left = fs::read_dir(&home).unwrap().flatten().map(|entry| entry.file_name());
        assert!(!left.into_iter().any(|name| name.to_string_lossy().contains("probe")), "doctor tidies up");
    }
}

#[test]
fn what_the_configuration_allows_is_in_the_list_and_another_layout_has_none() {
    let mut homing = setup().start();
    let [own, other, shared] = projects(&homing);
    become_a_team(&homing);
    let look = format!(
        "cat {0}/file {1}/file; echo x > {1}/made; echo x > {0}/made",
        other.display(),
        shared.display()
    );
    assert!(!shell(&homing, &own, &look).contains(CANARY));
    let restart_with = |homing: &mut Homing, config: &str| {
        homing.terminate();
        fs::write(homing.data().join("homing.toml"), config).unwrap();
        homing.restart();
    };
    let lists = format!("[wall]\nallow = [{other:?}]\nallow_read = [{shared:?}]\n");
    restart_with(&mut homing, &lists);
    let said = shell(&homing, &own, &look);
    assert!(said.contains("canary-7d20b4 other") && said.contains("canary-7d20b4 shared"), "{said}");
    assert!(other.join("made").exists() && !shared.join("made").exists(), "{said}");
    restart_with(&mut homing, "[wall]\nlayout = \"hide\"\n");
    assert!(shell(&homing, &own, &look).contains("canary-7d20b4 other"));
    homing.terminate();
    // A link in a home that agents write to may be theirs.
    fs::create_dir_all(homing.home()).unwrap();
    std::os::unix::fs::symlink(&other, homing.home().join("link")).unwrap();
    for named in ["allow = [\"/\"]", "allow_read = [\"here\"]", "allow_read = [\"~/link\"]"] {
        fs::write(homing.data().join("homing.toml"), format!("[wall]\n{named}\n")).unwrap();
        let said = homing.run(&["serve", "--listen", "127.0.0.1:0"]);
        said.expect(2);
        assert!(said.err.contains("wall.allow") && said.err.contains("hint:"), "{}", said.err);
    }
}

/// A server that is not root makes the same list: of namespaces that everybody may make.
#[test]
fn the_server_of_an_ordinary_user_lists_too() {
    let homing = setup().ordinary().start();
    let [own, other, _] = projects(&homing);
    git(&own, &["init", "-q", "-b", "main"]);
    git(&own, &["add", "."]);
    git(&own, &["commit", "-q", "-m", "first"]);
    homing.give_away();
    let look = format!(
        "id -u; grep CapEff /proc/self/status; cat file {0}/file; ls {0}; echo x >> file",
        other.display()
    );
    let said = shell(&homing, &own, &look);
    assert!(said.contains("canary-7d20b4 own") && said.contains("canary-7d20b4 other"), "alone: {said}");
    become_a_team(&homing);
    let said = shell(&homing, &own, &look);
    assert!(said.contains("canary-7d20b4 own") && !said.contains("canary-7d20b4 other"), "{said}");
    assert!(!said.starts_with("0\n") && said.contains("CapEff:\t0000000000000000"), "{said}");
    let to = json!({ "new": { "directory": &own } });
    let first = homing.http().send(&to, "!run echo work > work.txt");
    homing.http().until_final(&text(&first, "id"));
    let path = format!("/api/v1/sessions/{}/changes?turn=1", text(&first, "session"));
    let changes = homing.http().get(&path).expect(200);
    assert_eq!((&changes["known"], &changes["files"][0]["path"]), (&json!(true), &json!("work.txt")));
    let proved = homing.run(&["doctor"]);
    assert!(proved.out.contains("proved: agents cannot reach"), "{}", proved.out);
}

/// The commands with which agents bring their own sandbox along: whatever is installed of them is tried.
const SANDBOXES: &[(&str, &str)] = &[
    (
        "unshare",
        "unshare -Urmn sh -c 'mount -t tmpfs x $PWD && cd $PWD && echo inside && touch made && echo closed'",
    ),
    (
        "bwrap",
        "bwrap --ro-bind / / --dev /dev --unshare-all --die-with-parent sh -c 'echo inside; touch made 2>/dev/null || echo closed'",
    ),
];

/// Landlock on files would forbid them; the wall has it for signals and sockets only.
#[test]
fn an_agents_own_sandbox_works_behind_either_layout() {
    for homing in [setup().start(), setup().ordinary().start()] {
        let [own, _, _] = projects(&homing);
        homing.give_away();
        let try_all = |layout: &str| {
            for (program, command) in SANDBOXES {
                let said = shell(&homing, &own, &format!("command -v {program} || echo absent; {command}"));
                if said.contains("absent") {
                    // `cargo xtask tools` installs what it can; what was not tried is said where somebody looks.
                    crate::counted(format_args!(
                        "{program} is not installed here: not tried behind a wall that {layout}s"
                    ));
                    continue;
                }
                assert!(said.contains("inside\nclosed"), "{layout}, {program}: {said}");
                assert!(!own.join("made").exists(), "{layout}, {program}: {said}");
            }
        };
        try_all("hide");
        become_a_team(&homing);
        try_all("list");
    }
}

/// Everything that is done with a worktree, with an agent and a ground worker that see what is listed.
#[test]
fn a_worktree_lives_behind_a_list() {
    let yard = Yard::of(Setup::new(crate::EXE));
    become_a_team(&yard.homing);
    yard.homing.run(&["scope", "enter", "blue"]).expect(0);
    let said = yard.ask(
        "!run echo made > made.txt; echo changed >> kept.txt; git add -A && \
         git -c user.name=a -c user.email=a@b commit -q -m inside && git log -1 --format=%s; git status --short | wc -l; \
         ls $(dirname $PWD) | wc -l; echo over",
    );
    assert!(said.contains("inside\n0\n1\nover"), "{said}");
    let root = std::path::PathBuf::from(text(&yard.now(), "directory"));
    assert_eq!(git(&root, &["log", "-1", "--format=%s"]), "inside");
    let said = yard.ask("!run echo more >> kept.txt; echo new > new.txt");
    assert!(!said.contains("fatal"), "{said}");
    let diff = yard.homing.run(&["diff"]);
    assert!(diff.expect(0).contains("+more") && diff.out.contains("new.txt"), "{}", diff.out);
    yard.homing.run(&["undo", "3", "--all"]).expect(0);
    assert!(
        !root.join("new.txt").exists()
            && !fs::read_to_string(root.join("kept.txt")).unwrap().contains("more")
    );
    yard.homing.run(&["redo", "3"]).expect(0);
    assert!(root.join("new.txt").exists());
    yard.homing.run(&["scope", "exit"]).expect(0);
    yard.homing.run(&["worktree", "rm", "blue"]).expect(0);
    assert!(!root.exists());
    yard.homing.run(&["worktree", "restore", "blue"]).expect(0);
    assert!(root.join("new.txt").exists());
}

/// In the person's own working tree, from a directory below its root.
#[test]
fn a_directory_below_the_root_of_a_working_tree_has_all_of_it() {
    let yard = Yard::of(Setup::new(crate::EXE));
    become_a_team(&yard.homing);
    fs::create_dir(yard.place.join("below")).unwrap();
    let said = shell(
        &yard.homing,
        &yard.place.join("below"),
        "git log -1 --format=%s; echo x > ../beside; git status --short",
    );
    assert!(said.contains("first") && said.contains("beside"), "{said}");
}

#[test]
fn doctor_says_what_is_listed() {
    let homing = setup().start();
    let said = homing.run(&["doctor"]);
    for part in [
        "agents see everything but what is hidden",
        "for a team: agents see their own, a /tmp that goes with them, and what is listed: ",
        "/usr (to read)",
        "for a team: an agent tries to see what is listed nowhere: cannot",
        "proved: agents cannot reach",
    ] {
        assert!(said.expect(0).contains(part), "no {part:?} in {}", said.out);
    }
}
