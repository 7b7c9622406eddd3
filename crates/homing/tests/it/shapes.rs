//! Shapes of repositories, as people have them: everything that looks at a repository or changes something in it is done with each,
//! and what is the person's own is as before.
//!
//! Files, modes and empty directories; the index with its flags, refs, reflogs, stash and configuration. What is not supported
//! is refused by its name, and changes nothing. Repositories that lie are in `liars`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Homing, Http, eventually_within};

use crate::{count, counted, kill, text};

/// The longest that one thing may take in a repository of 100,000 files, on a machine that has other things to do.
const LONG: Duration = Duration::from_secs(240);

/// The files of a repository that is like most.
const PLAIN: &str = "git init -q -b main .
printf 'one\\ntwo\\n' > kept.txt; echo gone > gone.txt; echo run > mode.sh; mkdir dir; echo a > dir/a.txt
git add .; git commit -q -m first; echo more >> dir/a.txt; git commit -q -a -m second";

/// The work of a turn: something new, changed, gone, with another mode, as far as it is there.
const WORK: &str = "echo made > made.txt; mkdir -p new/deep; echo d > new/deep/d.txt; \
    if [ -f kept.txt ]; then echo three >> kept.txt; fi; if [ -f gone.txt ]; then rm gone.txt; fi; \
    if [ -f mode.sh ]; then chmod 755 mode.sh; fi; if [ -f dir/a.txt ]; then echo agent > dir/a.txt; fi";

/// The things that a shape cannot be asked for. The words are in the refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    Nothing,
    /// A worktree and a fork, with these words.
    Worktrees(&'static str),
    /// Everything, with one of these words.
    Undo(&'static str),
    /// Nothing, but what a turn does there is not seen.
    Ignored,
}

struct Shape {
    name: &'static str,
    /// A shell's words, in an empty directory called `repo` with nothing beside it.
    make: &'static str,
    refused: Refused,
    /// Where the session works, below it.
    within: &'static str,
}

const fn shape(name: &'static str, make: &'static str) -> Shape {
    Shape { name, make, refused: Refused::Nothing, within: "" }
}

const fn refused(name: &'static str, refused: Refused, make: &'static str) -> Shape {
    Shape { name, make, refused, within: "" }
}

const fn within(name: &'static str, within: &'static str, make: &'static str) -> Shape {
    Shape { name, make, refused: Refused::Nothing, within }
}

/// Words with which a shape begins that is not made of `PLAIN`.
const ALONE: &str = "cd .;";

const SHAPES: &[Shape] = &[
    shape("plain", ":"),
    shape(
        "mid-merge with conflicts",
        "git checkout -q -b other; echo theirs > kept.txt; git commit -q -am theirs; git checkout -q main; echo ours > kept.txt; git commit -q -am ours; ! git merge -q other 2>/dev/null",
    ),
    shape("split index", "git update-index --split-index; echo s > staged; git add staged"),
    shape(
        "submodule",
        "git init -q -b main ../sub; (cd ../sub; echo s > s.txt; git add .; git commit -q -m s); git -c protocol.file.allow=always submodule --quiet add ../sub sub; git commit -q -m sub",
    ),
    shape(
        "sha256",
        "cd .; git init -q -b main --object-format=sha256 .; echo k > kept.txt; git add .; git commit -q -m first",
    ),
    shape(
        "modes",
        "chmod 600 kept.txt; chmod 777 gone.txt; chmod 444 mode.sh; chmod 640 dir/a.txt; chmod 700 dir; echo p > private; chmod 400 private",
    ),
    shape(
        "staged, changed and new at once",
        "echo staged >> kept.txt; git add kept.txt; echo unstaged >> kept.txt; echo new > new.txt; git rm -q --cached mode.sh; rm dir/a.txt",
    ),
    refused(
        "no commits",
        Refused::Worktrees("no commit"),
        "cd .; git init -q -b main .; echo k > kept.txt; echo g > gone.txt; git add kept.txt",
    ),
    shape(
        "names",
        "printf x > 'with space'; printf x > \"$(printf 'new\\nline')\"; printf x > 'quote\"s'; printf x > -dash; printf x > 'ünïcode'; printf x > \"$(printf 'u\\314\\210')\"; printf x > \"$(printf '\\377\\376')\"; printf x > '*?[a]'; printf x > :colon; printf x > 'back\\slash'; git add .; git commit -q -m names; printf y > '*?[a]'; printf y >> -dash",
    ),
    shape(
        "sparse checkout",
        "mkdir other; echo o > other/o.txt; git add .; git commit -q -m other; git sparse-checkout set --cone dir",
    ),
    shape(
        "nested repository",
        "git init -q -b main inner; (cd inner; echo i > i.txt; git add .; git commit -q -m inner; echo changed > i.txt)",
    ),
    shape("empty directories", "mkdir -p empty/deep/er; mkdir -m 700 empty/closed; mkdir dir/empty"),
    // Those above are the ones of the test command, in this order.
    shape(
        "a stash",
        "echo stashed >> kept.txt; git stash -q; echo more > kept.txt; git stash push -q -m second",
    ),
    shape(
        "mid-rebase",
        "git checkout -q -b topic; echo topic > kept.txt; git commit -q -am topic; git checkout -q main; echo ours > kept.txt; git commit -q -am ours; git checkout -q topic; ! git rebase -q main 2>/dev/null",
    ),
    shape(
        "mid-cherry-pick",
        "git checkout -q -b topic; echo topic > kept.txt; git commit -q -am topic; git checkout -q main; echo ours > kept.txt; git commit -q -am ours; ! git cherry-pick topic 2>/dev/null",
    ),
    shape(
        "mid-revert",
        "echo x > kept.txt; git commit -q -am x; echo y > kept.txt; git commit -q -am y; ! git revert --no-edit HEAD~1 2>/dev/null",
    ),
    shape(
        "mid-bisect",
        "for i in 1 2 3 4; do echo $i > kept.txt; git commit -q -am $i; done; git bisect start -q HEAD HEAD~4 >/dev/null",
    ),
    shape(
        "mid-am",
        "echo x > kept.txt; git commit -q -am x; git format-patch -q -1 -o ../patches; git reset -q --hard HEAD~1; echo y > kept.txt; git commit -q -am y; ! git am -q ../patches/*.patch 2>/dev/null",
    ),
    shape("detached", "git checkout -q --detach HEAD~1"),
    refused("an orphan branch", Refused::Worktrees("commit"), "git checkout -q --orphan lonely"),
    shape("only staged", "echo s > s.txt; git add s.txt; git mv dir/a.txt dir/b.txt"),
    shape("intent to add", "echo i > i.txt; git add -N i.txt"),
    shape("assume unchanged", "git update-index --assume-unchanged kept.txt; echo changed > kept.txt"),
    shape("skip worktree", "git update-index --skip-worktree kept.txt; echo changed > kept.txt"),
    shape(
        "submodule that is not there",
        "git init -q -b main ../sub; (cd ../sub; echo s > s.txt; git add .; git commit -q -m s); git -c protocol.file.allow=always submodule --quiet add ../sub sub; git commit -q -m sub; git submodule --quiet deinit -f sub",
    ),
    shape(
        "submodule with changes",
        "git init -q -b main ../sub; (cd ../sub; echo s > s.txt; git add .; git commit -q -m s); git -c protocol.file.allow=always submodule --quiet add ../sub sub; git commit -q -m sub; echo changed > sub/s.txt; echo new > sub/new.txt",
    ),
    shape(
        "nested repository that is ignored",
        "echo inner/ > .gitignore; git init -q -b main inner; (cd inner; echo i > i.txt; git add .; git commit -q -m inner)",
    ),
    shape(
        "nested repository that was added",
        "git init -q -b main inner; (cd inner; echo i > i.txt; git add .; git commit -q -m inner); git add inner 2>/dev/null; git commit -q -m inner",
    ),
    shape("sparse checkout by patterns", "git sparse-checkout set --no-cone '/*' '!/dir/'"),
    shape(
        "sparse index",
        "for i in 1 2 3; do mkdir d$i; echo $i > d$i/f; done; git add .; git commit -q -m many; git sparse-checkout set --cone --sparse-index d1",
    ),
    refused(
        "reftable",
        Refused::Undo("as files"),
        "cd .; git init -q -b main --ref-format=reftable .; echo k > kept.txt; echo g > gone.txt; git add .; git commit -q -m first; git tag v1; git branch topic",
    ),
    shape(
        "shallow",
        "cd .; git init -q -b main ../far; (cd ../far; for i in 1 2 3; do echo $i > kept.txt; git add .; git commit -q -m $i; done); git clone -q --depth 1 \"file://$(cd ../far; pwd)\" .",
    ),
    shape(
        "partial",
        "cd .; git init -q -b main ../far; (cd ../far; for i in 1 2 3; do echo $i > kept.txt; git add .; git commit -q -m $i; done; git config uploadpack.allowFilter true); git clone -q --filter=blob:none \"file://$(cd ../far; pwd)\" .",
    ),
    shape(
        "a clone that shares",
        "cd .; git init -q -b main ../far; (cd ../far; echo k > kept.txt; git add .; git commit -q -m k); git clone -q --shared ../far .",
    ),
    shape(
        "odd bits",
        "mkdir shared; chmod 2775 shared; mkdir sticky; chmod 1777 sticky; echo s > shared/s; chmod 4755 shared/s",
    ),
    shape(
        "links",
        "ln -s kept.txt link; ln -s /etc/hostname away; ln -s nowhere dangling; ln -s dir to-dir; git add .; git commit -q -m links; ln -s dir/a.txt new-link",
    ),
    shape("hard links", "ln kept.txt twin.txt; git add .; git commit -q -m twins"),
    shape("names that differ in case", "echo A > README; echo a > readme; git add .; git commit -q -m case"),
    shape(
        "deep and long",
        "d=$(printf 'd%.0s/' $(seq 1 60)); mkdir -p \"$d\"; echo x > \"$d/x\"; echo l > $(printf 'l%.0s' $(seq 1 255)); git add .; git commit -q -m deep",
    ),
    shape(
        "large and binary",
        "head -c 8000000 /dev/urandom > big.bin; printf 'a\\0b' > nul; git add .; git commit -q -m big; head -c 8000000 /dev/urandom > new.bin",
    ),
    shape(
        "autocrlf",
        "git config core.autocrlf true; printf 'a\\r\\nb\\r\\n' > crlf.txt; printf 'a\\nb\\n' > lf.txt; git add . 2>/dev/null; git commit -q -m crlf; printf 'c\\r\\n' >> crlf.txt",
    ),
    shape(
        "attributes",
        "printf '*.txt eol=crlf\\n*.id ident\\n*.utf text working-tree-encoding=UTF-16LE\\n' > .gitattributes; printf 'x\\r\\n' > e.txt; echo '$Id$' > f.id; printf 'a\\0\\n\\0' > g.utf; git add . 2>/dev/null; git commit -q -m attributes",
    ),
    shape(
        "a filter",
        "git config filter.up.clean 'tr a-z A-Z'; git config filter.up.smudge 'tr A-Z a-z'; echo '*.up filter=up' > .gitattributes; echo words > a.up; git add .; git commit -q -m up; echo more >> a.up",
    ),
    shape(
        "ignored files",
        "printf 'node_modules/\\n*.log\\n!keep.log\\n' > .gitignore; mkdir -p node_modules/x; echo x > node_modules/x/i.js; echo l > a.log; echo k > keep.log; git add .; git commit -q -m ignore; echo 'a.txt' > dir/.gitignore",
    ),
    shape("own excludes", "echo private.txt > .git/info/exclude; echo p > private.txt"),
    shape(
        "many",
        "mkdir many; cd many; i=0; while [ $i -lt $FILES ]; do mkdir d$i; for j in 0 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n o p q r s t u v w x y z 0a 0b 0c 0d 0e 0f 0g 0h 0i 0j 0k 0l 0m 0n; do echo $i > d$i/$j; done; i=$((i+50)); done; cd ..; git add .; git commit -q -m many",
    ),
    shape(
        "tags, notes and replaced commits",
        "git tag -a -m t v1; git tag light; git notes add -m note; git replace HEAD HEAD~1",
    ),
    shape("packed", "git branch topic; git tag v1; git gc -q --prune=now; git pack-refs --all"),
    shape(
        "graphs and indexes of packs",
        "git repack -q -a -d; git commit-graph write --reachable; git multi-pack-index write",
    ),
    shape(
        "index of version 4, untracked cache",
        "git update-index --index-version 4; git update-index --untracked-cache 2>/dev/null; git status >/dev/null",
    ),
    shape(
        "a worktree of the person's own",
        "mkdir ../main; mv .git kept.txt gone.txt mode.sh dir ../main/; (cd ../main; git worktree add -q ../repo2 -b topic); rmdir ../repo; mv ../repo2 ../repo; (cd ../main; git worktree repair ../repo >/dev/null)",
    ),
    shape(
        "settings of its own for each worktree",
        "git config extensions.worktreeConfig true; git config --worktree core.bare false; git config --worktree user.name Own",
    ),
    within("a directory within", "dir", "echo beside >> kept.txt"),
    refused(
        "git's directory elsewhere",
        Refused::Undo("neither a worktree's nor a submodule's"),
        "cd .; git init -q -b main --separate-git-dir ../elsewhere.git .; echo k > kept.txt; echo g > gone.txt; git add .; git commit -q -m first",
    ),
    shape("a pipe and a socket", "mkfifo pipe; mkfifo dir/pipe"),
    shape(
        "a branch without a name of its own",
        "git checkout -q -b feature/deep/name; git branch -q -d main; git tag feature",
    ),
    shape(
        "hooks",
        "for h in post-checkout pre-commit post-index-change reference-transaction; do printf '#!/bin/sh\\ntouch %s/hooked\\n' \"$(cd ..; pwd)\" > .git/hooks/$h; chmod 755 .git/hooks/$h; done",
    ),
    refused(
        "nothing but ignored",
        Refused::Ignored,
        "git rm -q -r .; echo '*' > .gitignore; git add -f .gitignore; git commit -q -m nothing; echo x > ignored.txt",
    ),
    refused("no version control", Refused::Undo("version control|not in a git repository"), "rm -rf .git"),
    refused("bare", Refused::Undo("version control|not in a git repository"), "cd .; git init -q --bare ."),
];

#[test]
fn every_shape_of_a_repository_is_as_before_when_everything_was_done_with_it() {
    let homing = crate::homing();
    let wanted = usize::try_from(count("HOMING_SHAPES", 12)).unwrap().min(SHAPES.len());
    let mut wrong = String::new();
    for shape in &SHAPES[..wanted] {
        let found = Tried::new(&homing, shape).everything();
        for finding in found {
            let _ = writeln!(wrong, "{}: {finding}", shape.name);
        }
    }
    let files = count("HOMING_SHAPE_FILES", 1_000);
    counted(format_args!("{wanted} of {} shapes, the largest with {files} files", SHAPES.len()));
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// One shape, and a session in it.
struct Tried<'a> {
    homing: &'a Homing,
    http: Http,
    shape: &'a Shape,
    place: PathBuf,
    session: String,
    wrong: Vec<String>,
}

impl<'a> Tried<'a> {
    fn new(homing: &'a Homing, shape: &'a Shape) -> Self {
        let place = homing.root().join(shape.name.replace([' ', ',', '\''], "-")).join("repo");
        fs::create_dir_all(&place).unwrap();
        let plain = if shape.make.starts_with(ALONE) { ":" } else { PLAIN };
        sh(&place, &format!("{plain}\n{}", shape.make));
        let http = homing.http();
        Self { homing, http, shape, place, session: String::new(), wrong: Vec::new() }
    }

    fn everything(mut self) -> Vec<String> {
        let before = Person::of(&self.place);
        self.turn();
        let worked = Person::of(&self.place);
        assert_ne!(worked.files, before.files, "{}: a turn changes something", self.shape.name);
        self.look();
        self.undo_and_redo(&before, &worked);
        let is_as_worked = matches!(self.shape.refused, Refused::Undo(_) | Refused::Ignored);
        self.trees(if is_as_worked { &worked } else { &before });
        if self.homing.root().join("hooked").exists() || self.place.join("../hooked").exists() {
            self.wrong.push("a hook has run".to_owned());
        }
        self.wrong
    }

    fn turn(&mut self) {
        let directory = self.place.join(self.shape.within);
        let first = self.http.send(&json!({ "new": { "directory": directory } }), &format!("!run {WORK}"));
        self.session = text(&first, "session");
        self.http.until_final_within(&text(&first, "id"), LONG);
    }

    fn at(&self, what: &str) -> String {
        format!("/api/v1/sessions/{}/{what}", self.session)
    }

    fn look(&mut self) {
        let seen = self.http.get(&self.at("changes?turn=1"));
        let told = seen.text();
        let is_told = match self.shape.refused {
            Refused::Nothing | Refused::Worktrees(_) => told.contains("made.txt"),
            Refused::Ignored => told.contains("what git ignores was not looked at"),
            Refused::Undo(_) => told.contains("\"known\":false"),
        };
        if seen.status != 200 || !is_told {
            self.wrong.push(format!("changes: {} {told}", seen.status));
        }
    }

    fn undo_and_redo(&mut self, before: &Person, worked: &Person) {
        let wanted = match self.shape.refused {
            Refused::Undo(words) => {
                let why = self.change("POST", "undo", Some(&json!({ "turn": 1, "all": true })));
                self.expect_refusal("undo", why, words);
                return self.compare("undo that is refused", worked);
            }
            // Nothing of it was seen, so nothing of it is taken back.
            Refused::Ignored => [worked, worked],
            Refused::Nothing | Refused::Worktrees(_) => [before, worked],
        };
        for (what, wanted) in [("undo", wanted[0]), ("redo", wanted[1]), ("undo", wanted[0])] {
            if what == "redo" && self.shape.refused == Refused::Ignored {
                continue;
            }
            let body = match what {
                "undo" => json!({ "turn": 1, "all": true }),
                _ => json!({ "turn": 1 }),
            };
            self.post(what, &body);
            self.compare(what, wanted);
        }
    }

    /// Asks for something that is done later, and waits until it is.
    fn post(&mut self, what: &str, body: &Value) {
        if let Some(why) = self.change("POST", what, Some(body)) {
            self.wrong.push(format!("{what}: {why}"));
        }
    }

    /// The same; answers the reason if it is not done.
    fn change(&self, method: &str, what: &str, body: Option<&Value>) -> Option<String> {
        let known = kill::facts(&self.http, &self.session).len();
        let asked = self.http.must(method, &self.at(what), &[], body);
        if asked.status >= 300 {
            return Some(format!("{} {}", asked.status, asked.text()));
        }
        eventually_within(LONG, "it is done, or not", || {
            let facts = kill::facts(&self.http, &self.session);
            facts[known..].iter().find_map(|fact: &Value| match fact["type"].as_str() {
                Some("errand_failed") => Some(Some(format!("{:?}", &facts[known..]))),
                Some("scope_changed" | "undone" | "redone") => Some(None),
                _ => None,
            })
        })
    }

    /// Enters a worktree, leaves it, forks, removes it, and has it back.
    fn trees(&mut self, before: &Person) {
        let failed = self.change("POST", "scope", Some(&json!({ "enter": { "name": "shed" } })));
        match (self.shape.refused, failed) {
            (Refused::Nothing | Refused::Ignored, None) => {}
            (Refused::Nothing | Refused::Ignored, Some(why)) => {
                return self.wrong.push(format!("enter: {why}"));
            }
            (Refused::Worktrees(words) | Refused::Undo(words), why) => {
                self.expect_refusal("enter", why, words);
                return self.compare("enter that is refused", before);
            }
        }
        self.compare("enter", before);
        let shed = PathBuf::from(text(
            &self.http.get(&format!("/api/v1/sessions/{}", self.session)).json(),
            "directory",
        ));
        fs::write(shed.join("left.txt"), "left in it").unwrap();
        let left = contents_of(&shed);
        if let Some(why) = self.change("POST", "scope", Some(&json!({ "exit": true }))) {
            self.wrong.push(format!("exit: {why}"));
        }
        let forked = self.http.post(&self.at("fork"), &json!({}));
        self.expect("fork", forked.status, &forked.text());
        self.compare("exit and fork", before);
        let removed = self.http.must("DELETE", &self.at("worktrees/shed"), &[], None);
        self.expect("rm", removed.status, &removed.text());
        let restored = self.http.post(&self.at("worktrees/shed/restore"), &json!({}));
        self.expect("restore", restored.status, &restored.text());
        let whole = contents_of(&shed);
        let paths = left.keys().chain(whole.keys()).collect::<std::collections::BTreeSet<_>>();
        for path in paths.into_iter().filter(|path| left.get(*path) != whole.get(*path)) {
            self.wrong.push(format!("restore: {} is not as it was left", path.display()));
        }
        let removed = self.http.must("DELETE", &self.at("worktrees/shed"), &[], None);
        self.expect("rm again", removed.status, &removed.text());
        self.compare("rm and restore", before);
    }

    fn expect_refusal(&mut self, what: &str, why: Option<String>, words: &str) {
        if !why.as_ref().is_some_and(|why| words.split('|').any(|words| why.contains(words))) {
            self.wrong.push(format!("{what} is not refused by name: {why:?}"));
        }
    }

    fn expect(&mut self, what: &str, status: u16, told: &str) {
        if !(200..300).contains(&status) {
            self.wrong.push(format!("{what}: {status} {told}"));
        }
    }

    fn compare(&mut self, what: &str, wanted: &Person) {
        let found = Person::of(&self.place);
        let differences = found.differences(wanted);
        self.wrong.extend(differences.into_iter().map(|difference| format!("after {what}: {difference}")));
    }
}

/// All that is a person's own in a repository.
#[derive(Debug, PartialEq, Eq)]
struct Person {
    files: BTreeMap<PathBuf, (u32, Vec<u8>)>,
    /// The answers of git, and the bytes of its own files, by name.
    git: BTreeMap<String, Vec<u8>>,
}

impl Person {
    fn of(place: &Path) -> Self {
        let mut git = BTreeMap::new();
        let dot_git = ask(place, &["rev-parse", "--absolute-git-dir"]);
        if let Some(dot_git) = Some(dot_git).filter(|answer| !answer.is_empty()) {
            for args in [
                ["ls-files", "-s", "-v"].as_slice(),
                &["status", "--porcelain=v2", "--branch", "--untracked-files=all"],
                &["for-each-ref"],
                &["stash", "list"],
                &["reflog", "show", "--all"],
                &["symbolic-ref", "-q", "HEAD"],
                &["rev-parse", "-q", "--verify", "HEAD"],
            ] {
                let mut told = ask(place, args);
                // The branches of our own worktrees are meant to be there.
                if let Ok(text) = String::from_utf8(told.clone()) {
                    let theirs = text.lines().filter(|line| !line.contains("refs/heads/homing/"));
                    told = theirs.flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect();
                }
                git.insert(args.join(" "), told);
            }
            let dot_git = PathBuf::from(std::ffi::OsStr::from_bytes(dot_git.trim_ascii_end()));
            for file in [
                "config",
                "config.worktree",
                "info/exclude",
                "MERGE_HEAD",
                "MERGE_MSG",
                "ORIG_HEAD",
                "shallow",
            ] {
                git.insert(file.to_owned(), fs::read(dot_git.join(file)).unwrap_or_default());
            }
        }
        Self { files: files_of(place), git }
    }

    fn differences(&self, wanted: &Self) -> Vec<String> {
        let mut all = Vec::new();
        let paths = self.files.keys().chain(wanted.files.keys()).collect::<std::collections::BTreeSet<_>>();
        for path in paths {
            let shown = |file: Option<&(u32, Vec<u8>)>| {
                file.map(|(mode, bytes)| {
                    format!("{mode:o} {:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(60)]))
                })
            };
            let (found, wanted) = (self.files.get(path), wanted.files.get(path));
            if found != wanted {
                all.push(format!("{} is {:?}, not {:?}", path.display(), shown(found), shown(wanted)));
            }
        }
        for (what, wanted) in &wanted.git {
            let found = &self.git[what];
            if found != wanted {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                all.push(format!("{what}: {:?}, not {:?}", text(found), text(wanted)));
            }
        }
        all.truncate(8);
        all
    }
}

/// Everything below a directory but git's own files: its mode, and its bytes or where it leads.
fn files_of(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_path_buf()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).unwrap().map(Result::unwrap) {
            let (path, about) = (entry.path(), entry.metadata().unwrap());
            if path == root.join(".git") {
                continue;
            }
            let kind = about.file_type();
            let bytes = match (kind.is_dir() || kind.is_fifo() || kind.is_socket(), kind.is_symlink()) {
                (true, _) => Vec::new(),
                (_, true) => fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                _ => fs::read(&path).unwrap(),
            };
            found.insert(path.strip_prefix(root).unwrap().to_owned(), (about.permissions().mode(), bytes));
            if kind.is_dir() {
                left.push(path);
            }
        }
    }
    found
}

/// Its files and links alone: git knows no empty directories.
fn contents_of(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut files = files_of(root);
    files.retain(|path, _| !root.join(path).symlink_metadata().is_ok_and(|about| about.is_dir()));
    files
}

/// The answer of git; nothing if it does not succeed.
fn ask(place: &Path, args: &[&str]) -> Vec<u8> {
    let mut git = Command::new("git");
    git.args(["--no-optional-locks"]).args(args).current_dir(place);
    alone(&mut git);
    let answer = git.output().unwrap();
    if answer.status.success() { answer.stdout } else { Vec::new() }
}

fn sh(place: &Path, script: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", script]).current_dir(place);
    shell.env("FILES", count("HOMING_SHAPE_FILES", 1_000).to_string());
    alone(&mut shell);
    let done = shell.output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Nobody's settings but those of the repository.
fn alone(command: &mut Command) {
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "A Person")
            .env(format!("GIT_{who}_EMAIL"), "person@example.org");
    }
}
