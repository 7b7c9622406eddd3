//! Whatever a snapshot does not look at is said: nobody hears that no file changed when one did.

use std::fs;
use std::path::Path;

use homing_worktrees::git::{Git, GitDirectories, GitLimits, PersonHome, SnapshotMoment, SnapshotName};

use super::{Yard, our_git, plain, snapshot_name, write};

/// A git for which files of this size are large.
const LARGE_BYTES: u64 = 2 * 1024 * 1024;

fn git(yard: &Yard) -> Git {
    let data = yard.place.path().join("data");
    let places =
        GitDirectories { worktrees: data.join("worktrees"), work: data.join("work"), own: data.join("git") };
    let limits = GitLimits { untracked_bytes_max: LARGE_BYTES, ..GitLimits::default() };
    Git::new(Path::new("git"), places, limits).unwrap()
}

/// The files that differ, and what is said beside.
async fn turn(yard: &Yard, git: &Git, work: impl FnOnce()) -> (Vec<String>, Vec<String>) {
    let name = |moment| -> SnapshotName { snapshot_name(1, moment) };
    let before = git.snapshot(&yard.repository, &name(SnapshotMoment::Before)).await.unwrap().unwrap();
    work();
    let after = git.snapshot(&yard.repository, &name(SnapshotMoment::After)).await.unwrap().unwrap();
    let files = git.diff(&before, &after).await.unwrap().files;
    let files = files.into_iter().map(|file| file.path.to_str().unwrap().to_owned()).collect();
    (files, git.unseen(&before, &after).await.unwrap())
}

#[tokio::test]
async fn large_files_that_git_does_not_track_are_named() {
    let yard = Yard::new();
    let git = git(&yard);
    let large = vec![1; usize::try_from(LARGE_BYTES).unwrap() + 1];
    write(&yard.repository.join("tracked.bin"), &large);
    yard.plain(&["add", "tracked.bin"]);
    yard.plain(&["commit", "-q", "-m", "large"]);
    let (files, said) = turn(&yard, &git, || {
        write(&yard.repository.join("large.bin"), &large);
        write(&yard.repository.join("tracked.bin"), &large[1..]);
    })
    .await;
    assert_eq!(files, ["tracked.bin"], "what git tracks is looked at");
    assert_eq!(said, ["large.bin was not looked at: it is not tracked, and larger than 2 MiB"]);
    let (files, said) = turn(&yard, &git, || write(&yard.repository.join("large.bin"), &large[..10])).await;
    assert_eq!((files, said.len()), (vec!["large.bin".to_owned()], 1), "one side had not looked at it");
    let (files, said) = turn(&yard, &git, || {}).await;
    assert_eq!((files.len(), said.len()), (0, 0));
}

#[tokio::test]
async fn repositories_within_and_submodules_are_named() {
    let (yard, module) = (Yard::new(), Yard::new());
    let git = git(&yard);
    yard.plain(&["submodule", "-q", "add", module.repository.to_str().unwrap(), "module"]);
    yard.plain(&["commit", "-q", "-m", "with a submodule"]);
    let nested = yard.repository.join("nested");
    fs::create_dir(&nested).unwrap();
    plain(&nested, &["init", "-q"]);
    plain(&nested, &["commit", "-q", "--allow-empty", "-m", "x"]);
    for _ in 0..2 {
        let (files, said) = turn(&yard, &git, || {
            write(&nested.join("inside"), b"inside");
            write(&yard.repository.join("module/inside"), b"inside");
        })
        .await;
        assert_eq!(files.len(), 0);
        assert_eq!(
            said,
            [
                "nested was not looked at: it is a repository of its own",
                "module is a submodule: only its commit was looked at, not what is in it"
            ]
        );
    }
}

#[tokio::test]
async fn files_that_somebody_ignores_everywhere_are_ignored() {
    let yard = Yard::new();
    let home = yard.place.path().join("home");
    write(&home.join(".config/git/ignore"), b"*.swp\n*.kept\n");
    yard.write(".gitignore", "!*.kept\n");
    let person = PersonHome { home, config: None };
    let git = our_git(yard.place.path(), Path::new("git")).for_person(Some(person));
    let (files, said) = turn(&yard, &git, || {
        yard.write("a.swp", "by an editor");
        yard.write("b.kept", "the repository's own file wins");
    })
    .await;
    assert_eq!((files, said), (vec!["b.kept".to_owned()], Vec::new()));
}

#[tokio::test]
async fn an_index_in_two_parts_or_with_gaps_is_read_like_any_other() {
    let yard = Yard::new();
    yard.plain(&["update-index", "--split-index"]);
    yard.write("staged.txt", "staged");
    yard.plain(&["add", "staged.txt"]);
    let (files, said) = turn(&yard, &yard.git, || yard.write("a.txt", "changed")).await;
    assert_eq!((files, said), (vec!["a.txt".to_owned()], Vec::new()));
    assert!(
        fs::read_dir(yard.repository.join(".git"))
            .unwrap()
            .any(|entry| { entry.unwrap().file_name().to_string_lossy().starts_with("sharedindex.") })
    );

    let yard = Yard::new();
    yard.plain(&["sparse-checkout", "init", "--cone", "--sparse-index"]);
    assert!(!yard.repository.join("sub").exists());
    let (files, _) = turn(&yard, &yard.git, || yard.write("a.txt", "changed")).await;
    assert_eq!(files, ["a.txt"]);
    yard.plain(&["update-index", "--skip-worktree", ".gitignore"]);
    let (files, _) = turn(&yard, &yard.git, || yard.write(".gitignore", "changed")).await;
    assert_eq!(files, [".gitignore"]);
}
