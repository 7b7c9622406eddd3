//! Snapshots are ours: nothing of the person's has them, and nothing that the person does takes one away.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use homing_worktrees::git::{
    Git, GitDirectories, GitError, GitLimits, Snapshot, SnapshotMoment, SnapshotName,
};
use kernel::SessionId;

use super::{Yard, everything, named, our_git, plain, plain_command, snapshot_name, write};

/// More steps than a copy has.
const STEPS_MAX: usize = 20;

async fn taken(yard: &Yard, directory: &Path, turn: u64, moment: SnapshotMoment) -> Snapshot {
    yard.git.snapshot(directory, &snapshot_name(turn, moment)).await.unwrap().unwrap()
}

impl Yard {
    /// Everything that a person's git takes away if nothing holds it.
    fn prune(&self) {
        self.plain(&["reflog", "expire", "--expire=now", "--all"]);
        self.plain(&["gc", "--quiet", "--prune=now"]);
    }

    /// The objects that all snapshots reach, with nothing but our store to look at.
    fn alone(&self) -> Result<usize, String> {
        let mut command = plain_command(&self.repository);
        command.env("GIT_DIR", self.store()).args(["rev-list", "--objects", "--all"]);
        let out = command.output().unwrap();
        match out.status.success() {
            true => Ok(String::from_utf8_lossy(&out.stdout).lines().count()),
            false => Err(String::from_utf8_lossy(&out.stderr).into_owned()),
        }
    }

    /// A git of ours, and the number of times that it was run since that was last asked.
    pub(super) fn counting(&self) -> (Git, impl Fn() -> usize) {
        use std::os::unix::fs::PermissionsExt;
        let (program, count) = (self.place.path().join("counting-git"), self.place.path().join("count"));
        let text = format!("#!/bin/sh\necho \"$@\" >> {}\nexec git \"$@\"\n", count.display());
        write(&program, text.as_bytes());
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let counted = move || {
            let lines = fs::read_to_string(&count).unwrap_or_default().lines().count();
            let _ = fs::remove_file(&count);
            lines
        };
        (our_git(self.place.path(), &program), counted)
    }
}

#[tokio::test]
async fn no_snapshot_is_lost_whatever_becomes_of_the_persons_objects() {
    let yard = Yard::new();
    let before = taken(&yard, &yard.repository, 1, SnapshotMoment::Before).await;
    let found = yard.git.find(&yard.repository, &snapshot_name(1, SnapshotMoment::Before)).await.unwrap();
    assert_eq!(found.as_ref(), Some(&before), "it is there before it is copied");
    yard.write("committed.txt", "committed");
    yard.plain(&["add", "."]);
    yard.plain(&["commit", "-q", "-m", "second"]);
    yard.write("staged.txt", "staged");
    yard.plain(&["add", "."]);
    let after = taken(&yard, &yard.repository, 1, SnapshotMoment::After).await;
    yard.alone().expect_err("most of it is still the person's");
    yard.git.copy(&yard.repository).await.unwrap();
    yard.alone().unwrap();

    // They take all of it back, for good.
    yard.plain(&["reset", "-q", "--hard", "HEAD~1"]);
    yard.prune();
    let objects = everything(&yard.repository.join(".git"));
    let changes = yard.git.diff(&before, &after).await.unwrap();
    let changed: Vec<_> = changes.files.iter().map(|file| file.path.to_str().unwrap()).collect();
    assert_eq!(changed, ["committed.txt", "staged.txt"]);
    assert_eq!(everything(&yard.repository.join(".git")), objects);

    // What a fork needs in their repository is brought there, and no more.
    let name = named("fork");
    let fork = yard.git.fork(&yard.repository, &after, &name, None).await.unwrap();
    assert_eq!(plain(&fork.root, &["log", "--format=%s"]), "second\nfirst");
    assert_eq!(plain(&fork.root, &["status", "--porcelain"]), "A  staged.txt");
    assert_eq!(
        yard.plain(&["for-each-ref", "--format=%(refname)"]),
        "refs/heads/homing/fork\nrefs/heads/main"
    );
    yard.plain(&["fsck", "--strict"]);
    yard.plain(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(plain(&fork.root, &["status", "--porcelain"]), "A  staged.txt");

    // Nor does it matter if there is nothing left of it at all.
    fs::remove_dir_all(yard.repository.join(".git")).unwrap();
    yard.alone().unwrap();
}

#[tokio::test]
async fn a_fork_is_made_in_a_repository_that_has_nothing_left() {
    let yard = Yard::new();
    yard.write("a.txt", "changed");
    let after = taken(&yard, &yard.repository, 1, SnapshotMoment::After).await;
    yard.git.copy(&yard.repository).await.unwrap();
    yard.plain(&["checkout", "-q", "--orphan", "other"]);
    yard.plain(&["rm", "-rfq", "."]);
    yard.plain(&["branch", "-D", "main"]);
    yard.prune();
    let fork = yard.git.fork(&yard.repository, &after, &named("fork"), None).await.unwrap();
    assert_eq!(plain(&fork.root, &["log", "--format=%s"]), "first");
    assert_eq!(plain(&fork.root, &["status", "--porcelain"]), " M a.txt");
}

#[tokio::test]
async fn once_copied_the_next_snapshot_is_whole_by_itself() {
    let yard = Yard::new();
    taken(&yard, &yard.repository, 1, SnapshotMoment::Before).await;
    yard.git.copy(&yard.repository).await.unwrap();
    // Nothing but a stash that is gone has this file and its tree.
    yard.write("a.txt", "stashed");
    yard.write("new/b.txt", "stashed, too");
    yard.plain(&["stash", "push", "-q", "-u"]);
    yard.plain(&["stash", "pop", "-q"]);
    let after = taken(&yard, &yard.repository, 1, SnapshotMoment::After).await;
    yard.prune();
    for (file, text) in [("a.txt", "stashed"), ("new/b.txt", "stashed, too")] {
        assert_eq!(yard.ours(&["show", &format!("{}:{file}", after.commit)]), text);
    }
    yard.alone().unwrap();
}

#[tokio::test]
async fn a_copy_takes_what_changed_and_is_made_once() {
    let yard = Yard::new();
    for number in 0..200 {
        yard.write(&format!("many/{number}"), &format!("{number}\n").repeat(2_000));
    }
    yard.plain(&["add", "."]);
    yard.plain(&["commit", "-q", "-m", "many"]);
    let size = || {
        let files = everything(&yard.store());
        files.values().map(|(_, bytes)| bytes.len()).sum::<usize>()
    };
    let mut sizes = Vec::new();
    for turn in 1..5 {
        taken(&yard, &yard.repository, turn, SnapshotMoment::Before).await;
        yard.write("a.txt", &format!("turn {turn}"));
        taken(&yard, &yard.repository, turn, SnapshotMoment::After).await;
        yard.git.copy(&yard.repository).await.unwrap();
        sizes.push(size());
    }
    let grown: Vec<usize> = sizes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(grown.iter().all(|grown| *grown < sizes[0] / 4), "{sizes:?}");
    yard.alone().unwrap();
    let (git, runs) = yard.counting();
    git.copy(&yard.repository).await.unwrap();
    assert_eq!(runs(), 0, "there is nothing to copy");
}

#[tokio::test]
async fn a_snapshot_takes_few_runs_of_git() {
    let yard = Yard::new();
    let (git, runs) = yard.counting();
    let name = |turn, moment| snapshot_name(turn, moment);
    let taken = async |turn, moment| {
        let taken = git.snapshot_of_turn(&yard.repository, &name(turn, moment), None).await;
        taken.unwrap().unwrap()
    };
    taken(1, SnapshotMoment::Before).await;
    assert_eq!(runs(), 5, "the first one of a working tree, with a list of its files for their modes");
    yard.write("a.txt", "changed");
    taken(1, SnapshotMoment::After).await;
    assert_eq!(
        runs(),
        3,
        "with a change, of which nothing is copied yet: the tree is written once more, for us alone"
    );
    assert_eq!(git.find(&yard.repository, &name(2, SnapshotMoment::After)).await.unwrap(), None);
    assert_eq!(runs(), 0, "one that is not there");
    let before = taken(2, SnapshotMoment::Before).await;
    let after = taken(2, SnapshotMoment::After).await;
    assert_eq!(runs(), 0, "a turn without one: both looks are our own");
    for (moment, taken) in [(SnapshotMoment::Before, &before), (SnapshotMoment::After, &after)] {
        let found = git.find_recent(&yard.repository, &name(2, moment)).await.unwrap();
        assert_eq!(found.as_ref(), Some(taken));
    }
    assert!(git.diff(&before, &after).await.unwrap().files.is_empty());
    assert!(git.unseen(&before, &after).await.unwrap().is_empty());
    assert!(git.moves(&yard.repository, &before, &after).await.unwrap().is_empty());
    git.survey(&yard.repository).await.unwrap();
    assert_eq!(runs(), 0, "and nothing is asked about what was just written");
    yard.plain(&["commit", "-q", "-a", "-m", "second"]);
    taken(3, SnapshotMoment::Before).await;
    assert_eq!(runs(), 5, "HEAD and the person's index are others");
    yard.write(".git/info/exclude", "*.o\n");
    yard.write("a.o", "ignored");
    for turn in 4..6 {
        taken(turn, SnapshotMoment::Before).await;
        assert_eq!(runs(), 1, "git says what is ignored");
    }
    yard.write("deep/b.txt", "new");
    let after = taken(6, SnapshotMoment::After).await;
    assert_eq!(runs(), 4);
    fs::remove_file(yard.repository.join("a.o")).unwrap();
    assert_eq!(taken(7, SnapshotMoment::Before).await.tree, after.tree);
    assert_eq!(runs(), 1, "there were some the last time");
    taken(8, SnapshotMoment::Before).await;
    assert_eq!(runs(), 0);
    git.copy(&yard.repository).await.unwrap();
    runs();
    yard.write("a.txt", "changed once more");
    taken(8, SnapshotMoment::After).await;
    assert_eq!(runs(), 2, "with a change, once all is copied");
}

#[tokio::test]
async fn a_copy_that_is_cut_anywhere_is_made_by_the_next() {
    for step in 1..STEPS_MAX {
        let yard = Yard::new();
        let before = taken(&yard, &yard.repository, 1, SnapshotMoment::Before).await;
        yard.write("a.txt", "changed");
        let after = taken(&yard, &yard.repository, 1, SnapshotMoment::After).await;
        yard.git.stop_at_step(step);
        let stopped = yard.git.copy(&yard.repository).await;
        yard.git.stop_at_step(0);
        assert_eq!(yard.git.diff(&before, &after).await.unwrap().files.len(), 1, "{step}");
        yard.git.copy(&yard.repository).await.unwrap();
        yard.alone().unwrap();
        match stopped {
            Err(GitError::Stopped(_)) => {}
            Ok(()) => {
                super::cut_at("copy", step - 1);
                assert!(step > 3, "only {step} steps");
                return;
            }
            Err(why) => panic!("{why}"),
        }
    }
    panic!("a copy has no end");
}

#[tokio::test]
async fn beyond_the_bound_nothing_is_copied_and_it_is_known() {
    let yard = Yard::new();
    let data = yard.place.path().join("data");
    let places =
        GitDirectories { worktrees: data.join("worktrees"), work: data.join("work"), own: data.join("git") };
    let git = |store_bytes_max| {
        let limits = GitLimits { store_bytes_max, ..GitLimits::default() };
        Git::new(Path::new("git"), places.clone(), limits).unwrap()
    };
    taken(&yard, &yard.repository, 1, SnapshotMoment::Before).await;
    git(1).copy(&yard.repository).await.unwrap();
    assert!(git(1).is_beyond_bound(&yard.repository).unwrap());
    yard.alone().unwrap_err();

    // An undo is possible all the same, with what HEAD does not have safe before anything goes.
    let before = taken(&yard, &yard.repository, 2, SnapshotMoment::Before).await;
    yard.write("a.txt", "changed");
    let after = taken(&yard, &yard.repository, 2, SnapshotMoment::After).await;
    let safety = snapshot_name(2, SnapshotMoment::Safety);
    git(1).undo(&yard.repository, &before, &after, &safety, &kernel::UndoFiles::All, || true).await.unwrap();

    git(u64::MAX).copy(&yard.repository).await.unwrap();
    assert!(!yard.git.is_beyond_bound(&yard.repository).unwrap());
    yard.alone().unwrap();
}

#[tokio::test]
async fn where_they_take_too_much_room_the_oldest_go_first() {
    let yard = Yard::new();
    for turn in 1..5 {
        taken(&yard, &yard.repository, turn, SnapshotMoment::After).await;
    }
    let age = |turn: u64, days: u64| {
        let reference = yard.store().join(snapshot_name(turn, SnapshotMoment::After).reference());
        let at = std::time::SystemTime::now() - std::time::Duration::from_secs(days * 86_400);
        fs::File::options().append(true).open(reference).unwrap().set_modified(at).unwrap();
    };
    age(1, 9);
    age(2, 8);
    age(3, 7);
    let data = yard.place.path().join("data");
    let places =
        GitDirectories { worktrees: data.join("worktrees"), work: data.join("work"), own: data.join("git") };
    let limits = GitLimits { store_bytes_max: 1, ..GitLimits::default() };
    let crowded = Git::new(Path::new("git"), places, limits).unwrap();
    let year = std::time::Duration::from_secs(365 * 86_400);
    assert!(yard.git.sweep(year).await.unwrap().is_empty(), "there is room");
    assert_eq!(crowded.sweep(year).await.unwrap().len(), 3);
    assert!(crowded.sweep(year).await.unwrap().is_empty(), "that of today stays");
    let left = yard.ours(&["for-each-ref", "--format=%(refname)"]);
    assert_eq!(left, snapshot_name(4, SnapshotMoment::After).reference());
}

#[tokio::test]
async fn worktrees_of_a_repository_share_a_store_also_at_once() {
    let yard = Yard::new();
    let roots = [yard.repository.clone(), yard.enter("one").await.root, yard.enter("two").await.root];
    let works = roots.iter().enumerate().map(|(number, root)| {
        let git = our_git(yard.place.path(), Path::new("git"));
        let session = SessionId::from_bits(u128::try_from(number).unwrap() + 1);
        async move {
            for turn in 1..6 {
                for moment in [SnapshotMoment::Before, SnapshotMoment::After] {
                    git.snapshot(root, &SnapshotName { session, turn, moment }).await.unwrap().unwrap();
                    write(&root.join("work.txt"), format!("{number} {turn}").as_bytes());
                }
                git.copy(root).await.unwrap();
            }
        }
    });
    let mut works = works.map(Box::pin);
    let (one, two, three) = (works.next().unwrap(), works.next().unwrap(), works.next().unwrap());
    tokio::join!(one, two, three);
    assert_eq!(yard.stores().len(), 1);
    yard.prune();
    yard.alone().unwrap();
    let session = SessionId::from_bits(2);
    let at = |moment| SnapshotName { session, turn: 5, moment };
    let before = yard.git.find(&roots[0], &at(SnapshotMoment::Before)).await.unwrap().unwrap();
    let after = yard.git.find(&roots[0], &at(SnapshotMoment::After)).await.unwrap().unwrap();
    assert_eq!(yard.git.diff(&before, &after).await.unwrap().files.len(), 1);
}

/// Whoever tidies up a store removes the directories that are empty, also the one that a git is about to write to.
#[tokio::test]
async fn a_snapshot_does_not_mind_that_empty_directories_go_while_it_is_written() {
    let yard = Yard::new();
    taken(&yard, &yard.repository, 1, SnapshotMoment::Before).await;
    let objects = yard.store().join("objects");
    let over = Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    let tidies = std::thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            for directory in 0..=u8::MAX {
                let _ = fs::remove_dir(objects.join(format!("{directory:02x}")));
            }
        }
    });
    for turn in 2..42 {
        yard.write("work.txt", &format!("{turn}"));
        taken(&yard, &yard.repository, turn, SnapshotMoment::Before).await;
    }
    over.store(true, Ordering::Relaxed);
    tidies.join().unwrap();
}

#[tokio::test]
async fn long_ids_and_cut_off_histories_are_copied_too() {
    let yard = Yard::empty();
    fs::remove_dir_all(yard.repository.join(".git")).unwrap();
    yard.plain(&["init", "-q", "-b", "main", "--object-format=sha256"]);
    yard.write("a", "a");
    yard.plain(&["add", "."]);
    yard.plain(&["commit", "-q", "-m", "first"]);
    taken(&yard, &yard.repository, 1, SnapshotMoment::Before).await;
    yard.git.copy(&yard.repository).await.unwrap();
    yard.alone().unwrap();

    let yard = Yard::new();
    yard.plain(&["commit", "-q", "--allow-empty", "-m", "second"]);
    let place = yard.place.path().canonicalize().unwrap();
    let from = format!("file://{}", yard.repository.display());
    plain(&place, &["clone", "-q", "--depth=1", &from, "shallow"]);
    let shallow = place.join("shallow");
    let before = taken(&yard, &shallow, 1, SnapshotMoment::Before).await;
    write(&shallow.join("a.txt"), b"changed");
    let after = taken(&yard, &shallow, 1, SnapshotMoment::After).await;
    yard.git.copy(&shallow).await.unwrap();
    yard.alone().unwrap();
    // What lies beyond the cut comes later, and is none of the snapshots'.
    plain(&shallow, &["fetch", "-q", "--unshallow"]);
    assert_eq!(yard.git.diff(&before, &after).await.unwrap().files.len(), 1);
    taken(&yard, &shallow, 2, SnapshotMoment::Before).await;
    yard.git.copy(&shallow).await.unwrap();
    yard.alone().unwrap();
    let fork = yard.git.fork(&shallow, &after, &named("fork"), None).await.unwrap();
    assert_eq!(plain(&fork.root, &["status", "--porcelain"]), " M a.txt");
}

/// Git as a person runs it, whatever comes of it: beside `gc --prune=now` it may fail.
fn tried(directory: &Path, words: &[&str]) {
    plain_command(directory).args(words).output().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_snapshot_is_lost_beside_a_person_who_tidies_up_all_the_time() {
    let turns = super::cycles::count("HOMING_TIDIED_TURNS", 8);
    let yard = Yard::new();
    let (repository, place) = (yard.repository.clone(), yard.place.path().canonicalize().unwrap());
    let mirror = place.join("mirror.git");
    plain(&place, &["init", "-q", "--bare", mirror.to_str().unwrap()]);
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let tidying = {
        let (repository, mirror, is_over) = (repository.clone(), mirror.clone(), is_over.clone());
        std::thread::spawn(move || {
            let mut rounds = 0;
            while !is_over.load(std::sync::atomic::Ordering::SeqCst) {
                tried(&repository, &["gc", "--quiet", "--prune=now"]);
                tried(&repository, &["push", "-q", "--mirror", mirror.to_str().unwrap()]);
                tried(&repository, &["fetch", "-q", mirror.to_str().unwrap()]);
                tried(&repository, &["repack", "-q", "-a", "-d"]);
                rounds += 1;
            }
            rounds
        })
    };
    let mut all = Vec::new();
    for turn in 1..=turns {
        let before = taken(&yard, &repository, turn, SnapshotMoment::Before).await;
        yard.write("a.txt", &format!("turn {turn}\n"));
        yard.write(&format!("new/{turn}.txt"), &format!("new in turn {turn}\n"));
        match turn % 5 {
            1 => {}
            2 => {
                tried(&repository, &["add", "."]);
                tried(&repository, &["commit", "-q", "-m", "work"]);
            }
            3 => tried(&repository, &["commit", "-q", "-a", "--amend", "-m", "amended"]),
            4 => {
                tried(&repository, &["stash", "push", "-q", "-u"]);
                tried(&repository, &["stash", "pop", "-q"]);
            }
            _ => {
                tried(&repository, &["add", "."]);
                tried(&repository, &["reset", "-q"]);
            }
        }
        let after = taken(&yard, &repository, turn, SnapshotMoment::After).await;
        yard.git.copy(&repository).await.unwrap();
        all.push((before, after));
    }
    is_over.store(true, std::sync::atomic::Ordering::SeqCst);
    println!("counted: {turns} turns beside {} rounds of tidying up", tidying.join().unwrap());
    tried(&repository, &["reflog", "expire", "--expire=now", "--all"]);
    tried(&repository, &["gc", "--quiet", "--prune=now"]);
    for (before, after) in &all {
        assert!(!yard.git.diff(before, after).await.unwrap().files.is_empty(), "{after:?}");
        for snapshot in [before, after] {
            let mut look = plain_command(&repository);
            look.env("GIT_DIR", yard.store()).args(["rev-list", "--objects", "--quiet", &snapshot.tree]);
            assert!(look.status().unwrap().success(), "{snapshot:?}");
        }
    }
    for place in [&repository, &mirror] {
        assert_eq!(plain(place, &["for-each-ref", "--format=%(refname)", "refs/homing"]), "");
    }
}
