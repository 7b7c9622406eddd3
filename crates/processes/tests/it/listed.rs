//! A wall that lists what is there: behind it is what is listed, under its own name, and nothing else.
//!
//! These need root, or namespaces of users.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use homing_processes::wall::{
    DataDirectory, HiddenPath, ListedAccess, ListedPaths, OsUser, Wall, WallKind, WallLayout, WalledSession,
    WorktreeRepositories, worktree_suffix,
};
use homing_processes::{ProcessTree, TreePlan};
use kernel::{SessionId, TreeName};
use tempfile::TempDir;

use crate::bench::{ground, supervising};
use crate::namespaces::end_of;
use crate::wall::{Exchanging, count};

const SESSION: SessionId = SessionId::from_bits(1);

/// A machine in small: a data directory, a home, a project and others beside it.
struct Machine {
    root: PathBuf,
    _held: TempDir,
}

impl Machine {
    fn new() -> Self {
        Self::on(tempfile::tempdir().unwrap())
    }

    /// Not in `/tmp`, which is everybody's where no mounts are made.
    fn elsewhere() -> Self {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        std::fs::create_dir_all(place).unwrap();
        Self::on(tempfile::tempdir_in(place).unwrap())
    }

    fn on(held: TempDir) -> Self {
        let root = held.path().canonicalize().unwrap();
        let machine = Self { root, _held: held };
        for directory in [
            "person/.agent",
            "person/bin",
            "data/attempts",
            "home/.config/homing",
            "src/own/sub",
            "src/other",
            "tools/bin",
        ] {
            std::fs::create_dir_all(machine.at(directory)).unwrap();
        }
        for file in ["data/token", "home/.config/homing/token", "src/other/file", "outside"] {
            std::fs::write(machine.at(file), "a secret\n").unwrap();
        }
        for file in ["src/own/file", "home/file"] {
            std::fs::write(machine.at(file), "open\n").unwrap();
        }
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn wall(&self) -> Wall {
        let mut listed = ListedPaths::system();
        listed.add_home(self.at("home"));
        Wall {
            kind: WallKind::Mounts,
            layout: WallLayout::List,
            listed,
            data: Some(DataDirectory::of(&self.at("data")).unwrap()),
            hide: vec![HiddenPath::of(self.at("home/.config/homing"))],
            home: self.at("person"),
            ..Wall::default()
        }
    }

    /// The words of a shell behind that wall, in that directory.
    async fn shell(&self, wall: &Wall, directory: &Path, script: &str) -> Result<String, String> {
        self.shell_at(wall, directory, "home", script).await
    }

    /// The same with one of the homes.
    async fn shell_at(
        &self,
        wall: &Wall,
        directory: &Path,
        home: &str,
        script: &str,
    ) -> Result<String, String> {
        let of = WalledSession { session: SESSION, whose: "", directory: &ground(directory), must: true };
        let locks = self.at("data/attempts");
        let wall = wall.around(&of, &self.at(home), &locks).map_err(|why| why.to_string())?;
        let script = format!("exec 2>&1; {script}");
        let argv = ["/bin/sh", "-c", &script].map(str::to_owned).to_vec();
        let plan = TreePlan::new(supervising().into(), locks, TreeName::of(SESSION), argv, ground(directory));
        let env = vec![
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("HOME".to_owned(), self.at(home).display().to_string()),
        ];
        let tree = ProcessTree::start(&TreePlan { wall, env, ..plan }).await;
        Ok(end_of(&mut tree.map_err(|why| why.to_string())?).await.0)
    }

    async fn said(&self, script: &str) -> String {
        let script = script.replace("ROOT", &self.root.display().to_string());
        self.shell(&self.wall(), &self.at("src/own"), &script).await.unwrap()
    }
}

#[tokio::test]
async fn what_is_listed_is_there_and_nothing_beside_it() {
    let machine = Machine::new();
    let said = machine
        .said("cat file ~/file; echo new > made; pwd; ls ROOT ROOT/src; ls -A ROOT/data; echo over")
        .await;
    let root = machine.root.display();
    assert_eq!(
        said,
        format!("open\nopen\n{root}/src/own\n{root}:\ndata\nhome\nsrc\n\n{root}/src:\nown\nturns\nover\n")
    );
    assert_eq!(std::fs::read_to_string(machine.at("src/own/made")).unwrap(), "new\n");
    for way in [
        "cat ROOT/outside ROOT/src/other/file ROOT/data/token ~/.config/homing/token",
        "stat ROOT/outside; stat ROOT/src/other; stat ROOT/tools; ls ROOT/tools",
        "cat /proc/self/root/ROOT/outside /proc/1/root/ROOT/outside /proc/self/cwd/../other/file ../other/file",
        "ln -s ROOT/src/other link; cat link/file; rm link",
        "umount -l / ; cat ROOT/outside; umount -l ROOT/src/own; cat ROOT/src/other/file",
        "unshare -Urm sh -c 'umount -l /; umount -l ROOT; umount -l ROOT/data; cat ROOT/outside ROOT/data/token'",
        "unshare -Urm sh -c 'mkdir m; mount --bind / m; mount --rbind / m; cat m/ROOT/outside m/ROOT/data/token'",
        "unshare -Ur chroot /proc/1/root cat ROOT/outside",
        "cat /proc/self/mountinfo | grep -e outside -e other -e tools",
        "mkdir ROOT/new; touch ROOT/new /new /etc/new /usr/new; mv ROOT/home ROOT/moved; mv ROOT/src/own ROOT/o",
    ] {
        let said = machine.said(&format!("{way} 2>&1; echo over")).await;
        assert!(said.ends_with("over\n") && !said.contains("secret"), "{way}: {said}");
        assert!(!said.contains("Size:") && !said.contains(" - "), "{way}: {said}");
    }
    // It inherits nothing of what was held for the list, and what can only be read stays so in namespaces of its own.
    let said = machine.said("for f in /proc/$$/fd/*; do readlink $f; done").await;
    let is_held = |line: &str| line.starts_with(&root.to_string()) || line.starts_with("/usr");
    assert!(said.contains("pipe:") && !said.lines().any(is_held), "{said}");
    let remount =
        "unshare -Urm sh -c 'mount -o remount,bind,rw /usr; mount -o remount,bind,rw /; touch /usr/NEW /NEW'";
    machine.said(&remount.replace("NEW", "homing-remounted")).await;
    assert!(!Path::new("/usr/homing-remounted").exists() && !Path::new("/homing-remounted").exists());
    assert!(machine.at("home").is_dir() && machine.at("src/own").is_dir() && !Path::new("/new").exists());
}

/// A home that is somebody's own has what it is configured to have; that of whoever runs the server has their things in it.
#[tokio::test]
async fn of_a_persons_home_the_agents_own_places_are_there_and_nothing_else() {
    let machine = Machine::new();
    for directory in ["person/.ssh", "person/project", "person/other", "person/.config/git"] {
        std::fs::create_dir_all(machine.at(directory)).unwrap();
    }
    for file in ["person/.ssh/key", "person/other/file", "person/.netrc"] {
        std::fs::write(machine.at(file), "a secret\n").unwrap();
    }
    for file in ["person/.agent.json", "person/.config/git/config", "person/project/file"] {
        std::fs::write(machine.at(file), "open\n").unwrap();
    }
    let mut wall = machine.wall();
    let held = |place: &str, access| ListedPaths::in_home(&machine.at("person"), place, access);
    wall.home_places = [".agent/", ".agent.json", ".made/"]
        .iter()
        .filter_map(|place| held(place, ListedAccess::Write))
        .collect();
    wall.listed.add_held(held(".config/git/config", ListedAccess::Read));
    assert!(machine.at("person/.made").is_dir() && held("none", ListedAccess::Read).is_none());
    let script = "cd; ls -A; cat .agent.json .config/git/config project/file .ssh/key other/file .netrc ../person/.netrc                   /proc/self/root/$HOME/.netrc; echo kept > .agent/kept; echo kept > .made/kept; echo new > .agent.json;                   mkdir -p .cache/x .config/x; echo gone > .cache/x/y; echo bad >> .config/git/config; cat .cache/x/y; echo over";
    let project = machine.at("person/project");
    for _ in 0..2 {
        let said = machine.shell_at(&wall, &project, "person", script).await.unwrap();
        assert!(said.starts_with(".agent\n.agent.json\n.config\n.made\nproject\n"), "{said}");
        assert!(
            said.contains("open\n") && said.ends_with("gone\nover\n") && !said.contains("secret"),
            "{said}"
        );
    }
    for (file, words) in [
        (".agent/kept", "kept\n"),
        (".made/kept", "kept\n"),
        (".agent.json", "new\n"),
        (".config/git/config", "open\n"),
    ] {
        assert_eq!(std::fs::read_to_string(machine.at("person").join(file)).unwrap(), words, "{file}");
    }
    assert!(!machine.at("person/.cache").exists() && !machine.at("person/.config/x").exists());
    // A link that an agent left there leads nowhere.
    std::os::unix::fs::symlink(machine.at("person/.ssh"), machine.at("person/.link")).unwrap();
    assert!(held(".link/", ListedAccess::Write).is_none() && held(".link/key", ListedAccess::Read).is_none());
    // Whoever chose the home as a session's directory has it.
    let said = machine.shell_at(&wall, &machine.at("person"), "person", "cat .netrc").await.unwrap();
    assert_eq!(said, "a secret\n");
}

/// Where somebody's home is an agent's, whoever runs the server starts programs from it all the same.
#[tokio::test]
async fn what_may_only_be_read_stays_so_inside_of_a_home_and_where_it_is() {
    for kind in [WallKind::Mounts, WallKind::Landlock] {
        let machine = Machine::elsewhere();
        std::fs::create_dir_all(machine.at("home/.local/bin")).unwrap();
        std::fs::write(machine.at("home/.local/bin/tool"), "as it was\n").unwrap();
        let mut wall = Wall { kind, ..machine.wall() };
        wall.listed.add_search_path(&machine.at("home/.local/bin").display().to_string(), &wall.homes());
        let script = "cd; cat .local/bin/tool; echo x > .local/bin/tool; echo x > .local/bin/new; rm .local/bin/tool; \
                      mv .local .moved && mkdir -p .local/bin && echo x > .local/bin/tool; \
                      echo open > file && cat file; echo over";
        let said = machine.shell(&wall, &machine.at("src/own"), script).await.unwrap();
        assert!(said.starts_with("as it was\n") && said.ends_with("open\nover\n"), "{kind:?}: {said}");
        let tool = std::fs::read_to_string(machine.at("home/.local/bin/tool")).unwrap();
        assert!(tool == "as it was\n" && !machine.at("home/.local/bin/new").exists(), "{kind:?}: {said}");
    }
}

#[tokio::test]
async fn places_for_what_does_not_stay_are_its_own() {
    let machine = Machine::new();
    let name = format!("homing-{}", std::process::id());
    let script = "for d in /tmp /var/tmp /dev/shm; do ls -A $d; echo yes > $d/NAME && cat $d/NAME; done; \
                  echo out > /dev/null; head -c 1 /dev/zero | wc -c; ls /dev; [ -c /dev/ptmx ] && echo ptmx; \
                  ls /proc/self/fd >/dev/null && echo over";
    let said = machine.said(&script.replace("NAME", &name)).await;
    assert_eq!(said.matches("yes\n").count(), 3, "{said}");
    assert!(said.contains("\n1\n") && said.contains("ptmx\nover\n") && !said.contains("vda"), "{said}");
    for place in ["/tmp", "/var/tmp", "/dev/shm"] {
        assert!(!Path::new(place).join(&name).exists());
    }
}

#[tokio::test]
async fn agents_sandboxes_work_inside_of_a_list() {
    let script = "unshare -Ur sh -c 'echo users $(id -u)'; unshare -Urm sh -c 'mount -t tmpfs none /tmp && echo mounts'; \
                  unshare -Urpf sh -c 'echo processes $$'; \
                  unshare -Urm sh -c 'mount --rbind / /tmp && cd /tmp && mkdir -p tmp/old && pivot_root . tmp/old && echo pivoted'";
    let said = Machine::new().said(&format!("{script} 2>&1")).await;
    for part in ["users 0", "mounts", "processes 1", "pivoted"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
}

#[tokio::test]
async fn what_the_configuration_allows_is_there_to_be_read_or_changed() {
    let machine = Machine::new();
    let mut wall = machine.wall();
    wall.listed.add(machine.at("tools"), ListedAccess::Read);
    wall.listed.add(machine.at("src/other"), ListedAccess::Write);
    std::fs::write(machine.at("tools/bin/tool"), "a tool\n").unwrap();
    let root = machine.root.display().to_string();
    let script = "cat ROOT/tools/bin/tool; echo x > ROOT/tools/new; echo y > ROOT/src/other/new; echo over";
    let said = machine.shell(&wall, &machine.at("src/own"), &script.replace("ROOT", &root)).await.unwrap();
    assert!(said.starts_with("a tool\n") && said.contains("Read-only") && said.ends_with("over\n"), "{said}");
    assert!(!machine.at("tools/new").exists() && machine.at("src/other/new").exists());
}

#[tokio::test]
async fn a_directory_inside_of_a_working_tree_comes_with_all_of_the_tree() {
    let machine = Machine::new();
    let wall = machine.wall();
    let sub = machine.at("src/own/sub");
    let listed = async || machine.shell(&wall, &sub, "ls -A ..").await.unwrap();
    assert_eq!(listed().await, "sub\n");
    // What a file says is the agent's.
    std::fs::write(machine.at("src/own/.git"), "gitdir: ../other").unwrap();
    assert_eq!(listed().await, "sub\n");
    std::fs::remove_file(machine.at("src/own/.git")).unwrap();
    std::fs::create_dir(machine.at("src/own/.git")).unwrap();
    assert_eq!(listed().await, ".git\nfile\nsub\n");
}

#[derive(Debug)]
struct Records(PathBuf, PathBuf);

impl WorktreeRepositories for Records {
    fn common_of(&self, root: &Path) -> Option<PathBuf> {
        (root == self.0).then(|| self.1.clone())
    }
}

#[tokio::test]
async fn a_worktree_comes_with_the_repository_of_our_record_and_with_no_other() {
    let machine = Machine::new();
    let worktree = machine.at("data/worktrees").join(format!("blue{}", worktree_suffix(SESSION)));
    for directory in [worktree.clone(), machine.at("src/repo/.git"), machine.at("src/other/.git")] {
        std::fs::create_dir_all(directory).unwrap();
    }
    std::fs::write(machine.at("src/repo/.git/HEAD"), "ours\n").unwrap();
    // The agent's own word, which nobody takes.
    std::fs::write(worktree.join(".git"), format!("gitdir: {}", machine.at("src/other/.git").display()))
        .unwrap();
    let records = Records(worktree.clone(), machine.at("src/repo/.git"));
    let wall = Wall { repositories: Some(Arc::new(records)), ..machine.wall() };
    let script = format!("cd {0}/src; ls -A . repo other; cat repo/.git/HEAD", machine.root.display());
    let said = machine.shell(&wall, &worktree, &script).await.unwrap();
    assert!(said.contains(".:\nrepo\n\nrepo:\n.git\nours\n") && said.contains("'other': No such"), "{said}");
}

#[tokio::test]
async fn a_link_in_the_place_of_the_directory_is_not_followed() {
    let machine = Machine::new();
    std::fs::rename(machine.at("src/own"), machine.at("src/moved")).unwrap();
    std::os::unix::fs::symlink(machine.at("src/other"), machine.at("src/own")).unwrap();
    let why = machine.shell(&machine.wall(), &machine.at("src/own"), "cat file").await.unwrap_err();
    assert!(why.contains("leads elsewhere"), "{why}");
}

/// Exchanged from outside of every wall, with one that has a secret in it: what is there is the one that was meant, or nothing is
/// started.
#[tokio::test]
async fn directories_above_a_listed_one_that_are_exchanged_in_a_loop_open_nothing() {
    let starts = count("HOMING_EXCHANGES", 100);
    let machine = Machine::new();
    for directory in ["first/own", "second/own"] {
        std::fs::create_dir_all(machine.at(directory)).unwrap();
    }
    std::fs::write(machine.at("second/own/file"), "a secret\n").unwrap();
    let mut wall = machine.wall();
    // Held once, as what the server lists for all is.
    wall.listed.add(machine.at("first/own"), ListedAccess::Write);
    let exchanging = Exchanging::begin(machine.at("first"), machine.at("second"));
    let (mut started, mut open) = (0, 0);
    for _ in 0..starts {
        let script =
            format!("cat {0}/first/own/file {0}/second/own/file 2>&1; echo over", machine.root.display());
        let said = machine.shell(&wall, &machine.at("src/own"), &script).await;
        started += u64::from(said.as_ref().is_ok_and(|said| said.contains("over")));
        open += u64::from(said.is_ok_and(|said| said.contains("secret")));
    }
    let exchanged = exchanging.end();
    println!("{started} of {starts} were started, {open} of them read the secret, {exchanged} exchanges");
    assert!(exchanged > 10 * starts && started > starts / 2, "{started} in {exchanged} exchanges");
    assert_eq!(open, 0, "of {started}");
}

/// The real programs of this machine, as far as they are here.
#[tokio::test]
async fn toolchains_work_behind_a_list() {
    let machine = Machine::new();
    let mut wall = machine.wall();
    let homes = wall.homes();
    wall.listed.add_search_path(&std::env::var("PATH").unwrap(), &homes);
    for name in ["CARGO_HOME", "RUSTUP_HOME"] {
        let value = std::env::var(name).or_else(|_| {
            let below = if name == "CARGO_HOME" { ".cargo" } else { ".rustup" };
            std::env::var("HOME").map(|home| format!("{home}/{below}"))
        });
        wall.listed.add_named(&value.unwrap(), ListedAccess::Read, &homes);
    }
    let script = format!(
        "export RUSTUP_HOME={0}/.rustup CARGO_HOME=$PWD/cargo GIT_CONFIG_GLOBAL=/dev/null; set -e; \
         git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && git log --oneline | wc -l; \
         cargo init -q --name tried . && cargo build -q --offline && target/debug/tried; \
         if command -v node >/dev/null; then node -e 'console.log(require(\"os\").cpus().length > 0)'; else echo true; fi; \
         mktemp -d >/dev/null; echo over",
        std::env::var("HOME").unwrap()
    );
    let said = machine.shell(&wall, &machine.at("src/own"), &script).await.unwrap();
    assert!(said.ends_with("1\nHello, world!\ntrue\nover\n"), "{said}");
}

/// Whoever was kept out of a directory by its mode is kept out of what is listed in it.
#[tokio::test]
async fn modes_of_directories_above_hold() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let machine = Machine::new();
    let open =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    open(&machine.root, 0o755);
    for directory in ["src", "src/other"] {
        open(&machine.at(directory), 0o755);
    }
    let mut wall = machine.wall();
    wall.people = [("usr_bob".to_owned(), OsUser::named("nobody").unwrap())].into();
    wall.listed.add(machine.at("home/file"), ListedAccess::Read);
    for (mode, expected) in [(0o700, "denied"), (0o755, "open\n")] {
        open(&machine.at("home"), mode);
        let directory = machine.at("src/other");
        let of =
            WalledSession { session: SESSION, whose: "usr_bob", directory: &ground(&directory), must: true };
        let locks = machine.at("data/attempts");
        let around = wall.around(&of, Path::new("/nonexistent"), &locks).unwrap();
        let script = format!("id -un; cat {}/home/file 2>&1", machine.root.display());
        let argv = ["/bin/sh", "-c", &script].map(str::to_owned).to_vec();
        let plan =
            TreePlan::new(supervising().into(), locks, TreeName::of(SESSION), argv, ground(&directory));
        let said = end_of(&mut ProcessTree::start(&TreePlan { wall: around, ..plan }).await.unwrap()).await.0;
        assert!(said.starts_with("nobody\n") && said.contains(expected), "{mode:o}: {said}");
    }
}
