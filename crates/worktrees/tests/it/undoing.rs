//! An undo takes back exactly what a turn did, or says who was there since.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use homing_worktrees::git::{GitError, Snapshot, SnapshotMoment, UndoError, UndoKind, Undone};

use kernel::UndoFiles;

use super::{Yard, difference, everything, snapshot_name};

async fn taken(yard: &Yard, turn: u64, moment: SnapshotMoment) -> Snapshot {
    yard.git.snapshot(&yard.repository, &snapshot_name(turn, moment)).await.unwrap().unwrap()
}

async fn undo(yard: &Yard, before: &Snapshot, after: &Snapshot) -> Result<Undone, UndoError> {
    undo_some(yard, before, after, &UndoFiles::All).await
}

async fn undo_some(
    yard: &Yard,
    before: &Snapshot,
    after: &Snapshot,
    files: &UndoFiles,
) -> Result<Undone, UndoError> {
    let safety = snapshot_name(1, SnapshotMoment::Safety);
    yard.git.undo(&yard.repository, before, after, &safety, files, || true).await
}

/// As before and after a real turn, with what the agent says it has changed.
async fn noted(yard: &Yard, moment: SnapshotMoment, edits: Option<&[&str]>) -> Snapshot {
    let edits = edits.map(|edits| edits.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>());
    let name = snapshot_name(1, moment);
    yard.git.snapshot_of_turn(&yard.repository, &name, edits.as_deref()).await.unwrap().unwrap()
}

async fn redo(yard: &Yard) -> Result<Undone, UndoError> {
    let safety = snapshot_name(1, SnapshotMoment::Safety);
    yard.git.redo(&yard.repository, safety.session, &safety, || true).await
}

fn set_mode(yard: &Yard, path: &str, mode: u32) {
    fs::set_permissions(yard.repository.join(path), fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(yard: &Yard, path: &str) -> u32 {
    fs::metadata(yard.repository.join(path)).unwrap().permissions().mode() & 0o7777
}

/// A turn that does a bit of everything.
pub(super) fn work(root: &Path) {
    fs::write(root.join("a.txt"), "changed by the turn").unwrap();
    fs::set_permissions(root.join(".gitignore"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("sub"), "a file where a directory was").unwrap();
    fs::create_dir_all(root.join("new/deep")).unwrap();
    fs::write(root.join("new/deep/file"), "new").unwrap();
    symlink("/etc/passwd", root.join("link")).unwrap();
}

#[tokio::test]
async fn everything_is_as_before_and_nothing_else_changes() {
    let yard = Yard::new();
    yard.write("untracked", "untracked");
    yard.write("x.ignored", "ignored");
    let (files, index) =
        (everything(&yard.repository), fs::read(yard.repository.join(".git/index")).unwrap());
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    work(&yard.repository);
    let changed = everything(&yard.repository);
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    yard.write("later", "by somebody else, elsewhere");
    let undone = undo(&yard, &before, &after).await.unwrap();
    fs::remove_file(yard.repository.join("later")).unwrap();
    assert_eq!(difference(&everything(&yard.repository), &files), [""; 0]);
    assert_eq!(fs::read(yard.repository.join(".git/index")).unwrap(), index);
    let told = [".gitignore", "a.txt", "link", "new/deep/file", "sub", "sub/b.txt"].map(PathBuf::from);
    assert_eq!(undone.files, told);
    // What there was is in the safety snapshot, and an undo can itself be undone.
    let undone_at = taken(&yard, 2, SnapshotMoment::After).await;
    assert_eq!(undone_at.tree, before.tree);
    undo(&yard, &after, &undone_at).await.unwrap();
    assert_eq!(difference(&everything(&yard.repository), &changed), [""; 0]);
}

#[tokio::test]
async fn done_twice_it_is_done_once() {
    let yard = Yard::new();
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    work(&yard.repository);
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    undo(&yard, &before, &after).await.unwrap();
    let files = everything(&yard.repository);
    let again = undo(&yard, &before, &after).await.unwrap();
    assert_eq!(everything(&yard.repository), files);
    assert_ne!(again.safety.reference, snapshot_name(1, SnapshotMoment::Safety).reference());
}

#[tokio::test]
async fn what_was_touched_since_is_told_and_stays() {
    type Touch = fn(&Path);
    let touches: [(&str, Touch); 5] = [
        ("a.txt", |root| fs::write(root.join("a.txt"), "later").unwrap()),
        ("a.txt", |root| fs::remove_file(root.join("a.txt")).unwrap()),
        ("new/deep/file", |root| fs::write(root.join("new/deep/file"), "later").unwrap()),
        ("link", |root| {
            fs::remove_file(root.join("link")).unwrap();
            fs::write(root.join("link"), "later").unwrap();
        }),
        ("a.txt", |root| fs::set_permissions(root.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap()),
    ];
    for (path, touch) in touches {
        let yard = Yard::new();
        let before = taken(&yard, 1, SnapshotMoment::Before).await;
        work(&yard.repository);
        let after = taken(&yard, 1, SnapshotMoment::After).await;
        touch(&yard.repository);
        let files = everything(&yard.repository);
        match undo(&yard, &before, &after).await {
            Err(UndoError::Touched { touched_since }) => assert_eq!(touched_since, [PathBuf::from(path)]),
            other => panic!("{path}: {other:?}"),
        }
        assert_eq!(everything(&yard.repository), files);
    }
}

#[tokio::test]
async fn what_an_undo_would_refuse_is_seen_before_and_the_look_leaves_no_trace() {
    let yard = Yard::new();
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    work(&yard.repository);
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    let references = || yard.plain(&["for-each-ref"]);
    let touched =
        async || yard.git.preview_undo(&yard.repository, &before, &after).await.unwrap().touched_since;
    yard.write("elsewhere", "of no matter");
    assert_eq!(touched().await, [""; 0].map(PathBuf::from));
    yard.write("a.txt", "by hand");
    let (files, there) = (everything(&yard.repository), references());
    assert_eq!(touched().await, [PathBuf::from("a.txt")]);
    assert_eq!(touched().await, [PathBuf::from("a.txt")], "however often it is looked at");
    assert_eq!((everything(&yard.repository), references()), (files, there));
    // The objects of a look belong to nobody: they may go at any time.
    yard.plain(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(touched().await, [PathBuf::from("a.txt")]);
    yard.write("a.txt", "changed by the turn");
    assert_eq!(touched().await, [""; 0].map(PathBuf::from));
    undo(&yard, &before, &after).await.unwrap();
    assert_eq!(touched().await, [""; 0].map(PathBuf::from), "what is as before is in nobody's way");
}

#[tokio::test]
async fn a_preview_says_of_each_file_what_an_undo_then_does() {
    let yard = Yard::new();
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    work(&yard.repository);
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    let files = everything(&yard.repository);
    let preview = async || yard.git.preview_undo(&yard.repository, &before, &after).await.unwrap();
    let seen = preview().await;
    let told: Vec<_> = seen.files.iter().map(|(path, kind)| (path.to_str().unwrap(), *kind)).collect();
    let (mode, back) = (UndoKind::Mode, UndoKind::BroughtBack);
    let (restored, removed) = (UndoKind::Restored, UndoKind::Removed);
    let expected = [
        (".gitignore", mode),
        ("a.txt", restored),
        ("link", removed),
        ("new/deep/file", removed),
        ("sub", removed),
        ("sub/b.txt", back),
    ];
    assert_eq!((told, seen.touched_since), (expected.to_vec(), Vec::new()));
    assert_eq!(everything(&yard.repository), files, "a look changes nothing");
    let undone = undo(&yard, &before, &after).await.unwrap();
    assert_eq!(undone.files, seen.files.into_iter().map(|(path, _)| path).collect::<Vec<_>>());
    let again = preview().await.files;
    assert!(again.iter().all(|(_, kind)| *kind == UndoKind::AsBefore), "{again:?}");
}

#[tokio::test]
async fn a_directory_in_the_place_of_a_removed_file_is_in_the_way() {
    let yard = Yard::new();
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    fs::remove_file(yard.repository.join("a.txt")).unwrap();
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    yard.write("a.txt/later", "later");
    let refused = undo(&yard, &before, &after).await;
    assert!(
        matches!(&refused, Err(UndoError::Touched { touched_since }) if touched_since.len() == 1),
        "{refused:?}"
    );
    assert!(yard.repository.join("a.txt/later").exists());
}

#[tokio::test]
async fn it_never_writes_through_a_link() {
    let yard = Yard::new();
    let out = yard.place.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("b.txt"), "somebody else's").unwrap();
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    yard.write("sub/b.txt", "changed");
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    fs::remove_dir_all(yard.repository.join("sub")).unwrap();
    symlink(&out, yard.repository.join("sub")).unwrap();
    let refused = undo(&yard, &before, &after).await;
    assert!(matches!(refused, Err(UndoError::Touched { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(out.join("b.txt")).unwrap(), "somebody else's");
}

#[tokio::test]
async fn who_has_moved_on_is_not_undone() {
    let yard = Yard::new();
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    work(&yard.repository);
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    let files = everything(&yard.repository);
    let safety = snapshot_name(1, SnapshotMoment::Safety);
    let refused = yard.git.undo(&yard.repository, &before, &after, &safety, &UndoFiles::All, || false).await;
    assert!(matches!(refused, Err(UndoError::MovedOn)), "{refused:?}");
    assert_eq!(everything(&yard.repository), files);
}

#[tokio::test]
async fn a_snapshot_of_another_repository_undoes_nothing() {
    let (yard, other) = (Yard::new(), Yard::new());
    let before = taken(&other, 1, SnapshotMoment::Before).await;
    work(&other.repository);
    let after = taken(&other, 1, SnapshotMoment::After).await;
    let refused = undo(&yard, &before, &after).await;
    assert!(matches!(refused, Err(UndoError::Trouble(GitError::NoSuchSnapshot(_)))), "{refused:?}");
}

#[tokio::test]
async fn modes_are_as_before_and_no_secret_is_open_for_a_moment() {
    let yard = Yard::new();
    for (path, mode) in
        [("secret", 0o600), ("group", 0o640), ("gone", 0o600), ("opened", 0o600), ("run", 0o2750)]
    {
        yard.write(path, "before");
        set_mode(&yard, path, mode);
    }
    let files = everything(&yard.repository);
    let before = noted(&yard, SnapshotMoment::Before, None).await;
    for path in ["secret", "group", "a.txt"] {
        yard.write(path, "changed in its place");
    }
    // As an editor does: another file in its place.
    for path in ["run", "sub/b.txt"] {
        fs::remove_file(yard.repository.join(path)).unwrap();
        yard.write(path, "another file");
    }
    fs::remove_file(yard.repository.join("gone")).unwrap();
    set_mode(&yard, "opened", 0o644);
    let changed = everything(&yard.repository);
    let after = noted(&yard, SnapshotMoment::After, None).await;
    let seen = yard.git.preview_undo(&yard.repository, &before, &after).await.unwrap();
    assert!(seen.files.contains(&(PathBuf::from("opened"), UndoKind::Mode)), "{:?}", seen.files);
    undo(&yard, &before, &after).await.unwrap();
    assert_eq!(difference(&everything(&yard.repository), &files), [""; 0]);
    redo(&yard).await.unwrap();
    assert_eq!(difference(&everything(&yard.repository), &changed), [""; 0], "and back");
}

#[tokio::test]
async fn a_mode_that_nobody_has_noted_is_never_widened() {
    let yard = Yard::new();
    noted(&yard, SnapshotMoment::Before, None).await;
    // Closed by a person between two turns, without changing it: no snapshot sees that.
    set_mode(&yard, "a.txt", 0o600);
    let before = noted(&yard, SnapshotMoment::Before, None).await;
    yard.write("a.txt", "changed");
    let after = noted(&yard, SnapshotMoment::After, None).await;
    undo(&yard, &before, &after).await.unwrap();
    assert_eq!(mode(&yard, "a.txt"), 0o600);
    // Of snapshots without a note the mode of now is kept, too.
    let before = taken(&yard, 2, SnapshotMoment::Before).await;
    yard.write("a.txt", "changed");
    let after = taken(&yard, 2, SnapshotMoment::After).await;
    undo(&yard, &before, &after).await.unwrap();
    assert_eq!(
        (mode(&yard, "a.txt"), fs::read_to_string(yard.repository.join("a.txt")).unwrap().len()),
        (0o600, 14)
    );
}

#[tokio::test]
async fn an_undo_is_taken_back_once_and_can_be_done_again() {
    let yard = Yard::new();
    assert!(matches!(redo(&yard).await, Err(UndoError::NotUndone)));
    let files = everything(&yard.repository);
    let before = noted(&yard, SnapshotMoment::Before, None).await;
    work(&yard.repository);
    let changed = everything(&yard.repository);
    let after = noted(&yard, SnapshotMoment::After, None).await;
    for _ in 0..2 {
        undo(&yard, &before, &after).await.unwrap();
        // Asked twice it is done once, and the first one is what is taken back.
        undo(&yard, &before, &after).await.unwrap();
        assert_eq!(difference(&everything(&yard.repository), &files), [""; 0]);
        yard.write("later", "by somebody else, elsewhere");
        let redone = redo(&yard).await.unwrap();
        assert_eq!(redone.files.len(), 6);
        fs::remove_file(yard.repository.join("later")).unwrap();
        assert_eq!(difference(&everything(&yard.repository), &changed), [""; 0]);
        assert_eq!(redo(&yard).await.unwrap().files, [""; 0].map(PathBuf::from), "it was done before");
    }
}

#[tokio::test]
async fn what_was_touched_since_an_undo_is_told_and_stays() {
    let yard = Yard::new();
    let before = noted(&yard, SnapshotMoment::Before, None).await;
    work(&yard.repository);
    let after = noted(&yard, SnapshotMoment::After, None).await;
    undo(&yard, &before, &after).await.unwrap();
    yard.write("a.txt", "by hand");
    let files = everything(&yard.repository);
    match redo(&yard).await {
        Err(UndoError::Touched { touched_since }) => assert_eq!(touched_since, [PathBuf::from("a.txt")]),
        other => panic!("{other:?}"),
    }
    assert_eq!(everything(&yard.repository), files);
    yard.write("a.txt", "one\ntwo\nthree\n");
    redo(&yard).await.unwrap();
}

#[tokio::test]
async fn only_what_the_agent_says_it_changed_is_undone_without_being_asked_for() {
    let yard = Yard::new();
    let before = noted(&yard, SnapshotMoment::Before, None).await;
    yard.write("a.txt", "by the agent");
    let absolute = yard.repository.join("a.txt");
    let after = noted(&yard, SnapshotMoment::After, Some(&[absolute.to_str().unwrap()])).await;
    undo_some(&yard, &before, &after, &UndoFiles::Certain).await.unwrap();
    redo(&yard).await.unwrap();

    yard.write("sub/b.txt", "by a person, meanwhile");
    let after = noted(&yard, SnapshotMoment::After, Some(&["a.txt"])).await;
    let files = everything(&yard.repository);
    match undo_some(&yard, &before, &after, &UndoFiles::Certain).await {
        Err(UndoError::Unsure { unsure, has_report: true }) => {
            assert_eq!(unsure, [PathBuf::from("sub/b.txt")])
        }
        other => panic!("{other:?}"),
    }
    let only = |names: &[&str]| UndoFiles::Only(names.iter().map(|name| (*name).to_owned()).collect());
    let unknown = undo_some(&yard, &before, &after, &only(&["a.txt", "none"])).await;
    assert!(matches!(&unknown, Err(UndoError::NotOfTurn { files }) if files.len() == 1), "{unknown:?}");
    assert_eq!(everything(&yard.repository), files, "nothing was changed");
    let undone = undo_some(&yard, &before, &after, &only(&["a.txt"])).await.unwrap();
    assert_eq!(undone.files, [PathBuf::from("a.txt")]);
    assert_eq!(fs::read_to_string(yard.repository.join("sub/b.txt")).unwrap(), "by a person, meanwhile");
    redo(&yard).await.unwrap();
    assert_eq!(difference(&everything(&yard.repository), &files), [""; 0]);

    // Who says nothing of its edits cannot be told from anybody else.
    let after = noted(&yard, SnapshotMoment::After, None).await;
    let asked = undo_some(&yard, &before, &after, &UndoFiles::Certain).await;
    assert!(
        matches!(&asked, Err(UndoError::Unsure { unsure, has_report: false }) if unsure.len() == 2),
        "{asked:?}"
    );
    undo_some(&yard, &before, &after, &UndoFiles::All).await.unwrap();
    // What is as before needs nobody's word.
    undo_some(&yard, &before, &after, &UndoFiles::Certain).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_not_meant_stays_where_another_one_has_to_be() {
    let yard = Yard::new();
    let before = noted(&yard, SnapshotMoment::Before, None).await;
    work(&yard.repository);
    let after = noted(&yard, SnapshotMoment::After, None).await;
    let files = everything(&yard.repository);
    let refused = undo_some(&yard, &before, &after, &UndoFiles::Only(vec!["sub/b.txt".to_owned()])).await;
    assert!(matches!(refused, Err(UndoError::Touched { .. })), "{refused:?}");
    assert_eq!(difference(&everything(&yard.repository), &files), [""; 0]);
}

#[tokio::test]
async fn what_a_turn_did_to_the_repository_is_named_with_how_to_take_it_back() {
    let yard = Yard::new();
    let old = yard.plain(&["rev-parse", "HEAD"]);
    let before = noted(&yard, SnapshotMoment::Before, None).await;
    yard.write("a.txt", "committed");
    yard.plain(&["commit", "-q", "-a", "-m", "by the turn"]);
    yard.write("sub/b.txt", "stashed");
    yard.plain(&["stash", "-q"]);
    let after = noted(&yard, SnapshotMoment::After, None).await;
    let told = |undone: &Undone| undone.moves.iter().map(|one| one.command.clone()).collect::<Vec<_>>();
    let undone = undo(&yard, &before, &after).await.unwrap();
    assert_eq!(told(&undone), [format!("git reset --soft {}", &old[..12]), "git stash drop".to_owned()]);
    assert!(undone.moves[0].words.contains("1 commit on main"), "{:?}", undone.moves);
    for one in &undone.moves {
        let words: Vec<&str> = one.command.split(' ').skip(1).collect();
        yard.plain(&words);
    }
    assert_eq!((yard.plain(&["rev-parse", "HEAD"]), yard.plain(&["stash", "list"])), (old, String::new()));

    yard.plain(&["reset", "-q"]);
    let before = noted(&yard, SnapshotMoment::Before, None).await;
    yard.plain(&["switch", "-q", "-c", "other"]);
    let after = noted(&yard, SnapshotMoment::After, None).await;
    let moves = yard.git.moves(&yard.repository, &before, &after).await.unwrap();
    assert_eq!(moves.iter().map(|one| one.command.as_str()).collect::<Vec<_>>(), ["git switch main"]);
}

/// A turn that takes a file away, and has git ignore its place; then somebody puts something of theirs there.
#[tokio::test]
async fn what_git_does_not_see_stands_in_the_way_of_an_undo_and_stays() {
    type Put = fn(&Path);
    let puts: [(&str, Put); 6] = [
        ("a.txt", |root| fs::write(root.join("a.txt"), "mine").unwrap()),
        ("a.txt", |root| symlink("elsewhere", root.join("a.txt")).unwrap()),
        ("a.txt", |root| pipe(&root.join("a.txt"))),
        ("a.txt", |root| {
            fs::create_dir_all(root.join("a.txt/deep")).unwrap();
            fs::write(root.join("a.txt/deep/mine"), "mine").unwrap();
        }),
        ("sub/b.txt", |root| fs::write(root.join("sub"), "mine").unwrap()),
        ("sub/b.txt", |root| pipe(&root.join("sub"))),
    ];
    for (path, put) in puts {
        let yard = Yard::new();
        let before = taken(&yard, 1, SnapshotMoment::Before).await;
        fs::remove_file(yard.repository.join("a.txt")).unwrap();
        fs::remove_dir_all(yard.repository.join("sub")).unwrap();
        yard.write(".gitignore", "*.ignored\n/build/\n/a.txt\n/sub\n");
        let after = taken(&yard, 1, SnapshotMoment::After).await;
        put(&yard.repository);
        let files = everything_but_pipes(&yard.repository);
        let look = yard.git.preview_undo(&yard.repository, &before, &after).await.unwrap();
        assert_eq!(look.touched_since, [PathBuf::from(path)]);
        match undo(&yard, &before, &after).await {
            Err(UndoError::Touched { touched_since }) => assert_eq!(touched_since, [PathBuf::from(path)]),
            other => panic!("{other:?}"),
        }
        assert_eq!(everything_but_pipes(&yard.repository), files, "{path}");
    }
}

fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Names and, of files, their bytes. Nobody reads a pipe.
fn everything_but_pipes(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let out = std::process::Command::new("find")
        .arg(root)
        .args(["-path", "*/.git", "-prune", "-o", "-print"])
        .output();
    let mut names: Vec<PathBuf> =
        String::from_utf8(out.unwrap().stdout).unwrap().lines().map(PathBuf::from).collect();
    names.sort();
    let read = |path: PathBuf| {
        let is_file = fs::symlink_metadata(&path).unwrap().is_file();
        let bytes = if is_file { fs::read(&path).unwrap() } else { Vec::new() };
        (path, bytes)
    };
    names.into_iter().map(read).collect()
}

/// Taken out of git's hands and ignored, it stays where it is: it is already as it was.
#[tokio::test]
async fn a_file_that_a_turn_only_has_ignored_is_undone_as_long_as_nobody_changes_it() {
    let yard = Yard::new();
    let before = taken(&yard, 1, SnapshotMoment::Before).await;
    yard.write("a.txt.ignored", "beside");
    yard.plain(&["rm", "-q", "--cached", "a.txt"]);
    yard.write(".gitignore", "*.ignored\n/build/\n/a.txt\n");
    let after = taken(&yard, 1, SnapshotMoment::After).await;
    undo(&yard, &before, &after).await.unwrap();
    assert_eq!(fs::read(yard.repository.join("a.txt")).unwrap(), b"one\ntwo\nthree\n");
    assert_eq!(fs::read(yard.repository.join(".gitignore")).unwrap(), b"*.ignored\n/build/\n");
}

/// A turn takes a directory out of the repository and has it ignored, and a build makes the same once more: its bytes are compared without
/// a run of git for each file.
#[tokio::test]
async fn many_files_that_stand_there_again_cost_an_undo_no_more_runs_of_git() {
    let counts = [1, 30].map(async |files| {
        let yard = Yard::new();
        let make = || (0..files).for_each(|each| yard.write(&format!("made/{each}.txt"), "made"));
        make();
        yard.plain(&["add", "."]);
        yard.plain(&["commit", "-q", "-m", "second"]);
        let before = taken(&yard, 1, SnapshotMoment::Before).await;
        fs::remove_dir_all(yard.repository.join("made")).unwrap();
        yard.write(".gitignore", "*.ignored\n/build/\n/made/\n");
        let after = taken(&yard, 1, SnapshotMoment::After).await;
        make();
        let (git, runs) = yard.counting();
        let safety = snapshot_name(1, SnapshotMoment::Safety);
        let undone = git.undo(&yard.repository, &before, &after, &safety, &UndoFiles::All, || true).await;
        assert_eq!(undone.unwrap().files.len(), files + 1);
        assert_eq!(fs::read(yard.repository.join("made/0.txt")).unwrap(), b"made");
        runs()
    });
    let [few, many] = counts;
    assert_eq!(few.await, many.await);
}

/// A mode alone, of a file that had the one that nearly all have.
#[tokio::test]
async fn a_mode_that_a_turn_has_changed_is_as_before_and_nobody_elses_is() {
    let yard = Yard::new();
    set_mode(&yard, "a.txt", 0o644);
    set_mode(&yard, "sub/b.txt", 0o644);
    set_mode(&yard, ".gitignore", 0o644);
    let before = noted(&yard, SnapshotMoment::Before, None).await;
    set_mode(&yard, "a.txt", 0o600);
    set_mode(&yard, "sub/b.txt", 0o666);
    let after = noted(&yard, SnapshotMoment::After, Some(&["a.txt"])).await;
    set_mode(&yard, ".gitignore", 0o640);
    let look = yard.git.preview_undo(&yard.repository, &before, &after).await.unwrap();
    let modes = ["a.txt", "sub/b.txt"].map(|path| (PathBuf::from(path), UndoKind::Mode));
    assert_eq!(look.files, modes);
    // The agent has not said that it did the second.
    assert_eq!(look.unsure, [PathBuf::from("sub/b.txt")]);
    match undo_some(&yard, &before, &after, &UndoFiles::Certain).await {
        Err(UndoError::Unsure { unsure, .. }) => assert_eq!(unsure, [PathBuf::from("sub/b.txt")]),
        other => panic!("{other:?}"),
    }
    assert_eq!([mode(&yard, "a.txt"), mode(&yard, "sub/b.txt")], [0o600, 0o666]);
    undo(&yard, &before, &after).await.unwrap();
    let all = ["a.txt", "sub/b.txt", ".gitignore"];
    assert_eq!(all.map(|path| mode(&yard, path)), [0o644, 0o644, 0o640]);
    redo(&yard).await.unwrap();
    assert_eq!(all.map(|path| mode(&yard, path)), [0o600, 0o666, 0o640]);
}
