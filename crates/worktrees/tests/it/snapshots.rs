//! A snapshot has every byte that is not ignored, and changes nothing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use homing_worktrees::git::{EnterRequest, GitError, GitLimits, SnapshotMoment};

use super::{Yard, everything, our_git_with, plain, plain_command, snapshot_name};

#[tokio::test]
async fn a_snapshot_changes_nothing_of_the_persons() {
    let yard = Yard::new();
    yard.write("a.txt", "staged");
    yard.plain(&["add", "a.txt"]);
    yard.write("a.txt", "and changed again");
    yard.write("new.txt", "new");
    yard.write("x.ignored", "ignored");
    fs::remove_file(yard.repository.join("sub/b.txt")).unwrap();
    // Their objects and refs, too.
    let dot_git = || everything(&yard.repository.join(".git"));
    let (before, files) = (dot_git(), everything(&yard.repository));
    let status = yard.plain(&["--no-optional-locks", "status", "--porcelain"]);
    for turn in 1..4 {
        let taken = yard
            .git
            .snapshot(&yard.repository, &snapshot_name(turn, SnapshotMoment::Before))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(yard.ours(&["show", &format!("{}:a.txt", taken.commit)]), "and changed again");
        assert_eq!(yard.ours(&["ls-tree", "-r", "--name-only", &taken.commit]), ".gitignore\na.txt\nnew.txt");
        // What was staged is a parent of it.
        assert_eq!(yard.ours(&["show", &format!("{}^2:a.txt", taken.commit)]), "staged");
        assert_eq!(
            yard.ours(&["rev-parse", &format!("{}^1", taken.commit)]),
            yard.plain(&["rev-parse", "HEAD"])
        );
        assert_eq!(yard.ours(&["rev-parse", &taken.reference]), taken.commit);
    }
    assert_eq!(dot_git(), before);
    yard.git.copy(&yard.repository).await.unwrap();
    assert_eq!(dot_git(), before);
    assert_eq!(everything(&yard.repository), files);
    assert_eq!(yard.plain(&["--no-optional-locks", "status", "--porcelain"]), status);
    assert!(!yard.plain(&["branch", "-a"]).contains("homing"));
}

/// A change of its mode is all that happens to the file: neither its bytes nor its size, and perhaps not even its times.
#[tokio::test]
async fn a_file_that_is_closed_to_others_between_two_turns_is_known_as_such() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let yard = Yard::new();
    let taken = async |turn| {
        let name = snapshot_name(turn, SnapshotMoment::Before);
        let taken = yard.git.snapshot_of_turn(&yard.repository, &name, None).await.unwrap().unwrap();
        yard.ours(&["cat-file", "commit", &taken.commit])
    };
    let close = |path: &str, mode: u32| {
        fs::set_permissions(yard.repository.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    assert!(!taken(1).await.contains("384"), "no file has a mode of its own");
    close("a.txt", 0o600);
    assert!(taken(2).await.contains(r#""a.txt":384"#), "its times have changed, or it is young");

    // From here on only its times can say it.
    let shadows = fs::read_dir(yard.place.path().join("data/git/shadows")).unwrap().flatten();
    let notes: Vec<_> =
        shadows.map(|shadow| shadow.path().join("modes.json")).filter(|note| note.exists()).collect();
    let [note] = &notes[..] else { panic!("{notes:?}") };
    let mut known: serde_json::Value = serde_json::from_slice(&fs::read(note).unwrap()).unwrap();
    assert!(known["index"].is_object(), "every file was looked at: {known}");
    known["recent"] = serde_json::json!([]);
    fs::write(note, known.to_string()).unwrap();
    // Git compares whole seconds.
    let changed_s = || fs::metadata(yard.repository.join("sub/b.txt")).unwrap().ctime();
    let before_s = changed_s();
    while changed_s() == before_s {
        close("sub/b.txt", 0o600);
    }
    let text = taken(3).await;
    assert!(text.contains(r#""a.txt":384,"sub/b.txt":384"#), "{text}");
    close("a.txt", 0o644);
    assert!(!taken(4).await.contains("a.txt"), "it is as the others again");
}

/// That HEAD has moved is seen by its files, and git is asked only then: each way to move it is one of those.
#[tokio::test]
async fn a_snapshot_names_the_commit_that_head_is_by_then() {
    let yard = Yard::new();
    yard.plain(&["commit", "-q", "--allow-empty", "-m", "second"]);
    yard.plain(&["branch", "other", "HEAD~1"]);
    let moves: &[&[&str]] = &[
        &["status"],
        &["commit", "-q", "--allow-empty", "-m", "third"],
        &["pack-refs", "--all"],
        &["update-ref", "refs/heads/main", "HEAD~1"],
        &["pack-refs", "--all"],
        &["pack-refs", "--all"],
        &["update-ref", "refs/heads/main", "other"],
        &["symbolic-ref", "HEAD", "refs/heads/other"],
        &["update-ref", "--no-deref", "HEAD", "main"],
        &["symbolic-ref", "refs/heads/alias", "refs/heads/main"],
        &["symbolic-ref", "HEAD", "refs/heads/alias"],
        &["commit", "-q", "--allow-empty", "-m", "by another name"],
        &["symbolic-ref", "HEAD", "refs/heads/unborn"],
        &["update-ref", "refs/heads/unborn", "other"],
        &["update-ref", "-d", "refs/heads/unborn"],
    ];
    for (turn, words) in moves.iter().enumerate() {
        yard.plain(words);
        let head =
            plain_command(&yard.repository).args(["rev-parse", "-q", "--verify", "HEAD"]).output().unwrap();
        let head = String::from_utf8(head.stdout).unwrap();
        let expected = if head.is_empty() { head } else { format!("head {}", head.trim_end()) };
        for moment in [SnapshotMoment::Before, SnapshotMoment::After] {
            let name = snapshot_name(u64::try_from(turn).unwrap(), moment);
            let taken = yard.git.snapshot(&yard.repository, &name).await.unwrap().unwrap();
            let text = yard.ours(&["cat-file", "commit", &taken.commit]);
            let found = text.lines().find(|line| line.starts_with("head ")).unwrap_or_default();
            assert_eq!(found, expected, "{words:?}");
            let parent = text.lines().find_map(|line| line.strip_prefix("parent "));
            assert_eq!(parent, expected.strip_prefix("head "), "{words:?}");
        }
    }
}

#[tokio::test]
async fn outside_of_a_repository_there_is_none() {
    let yard = Yard::new();
    let nowhere = tempfile::tempdir().unwrap();
    assert_eq!(
        yard.git.snapshot(nowhere.path(), &snapshot_name(1, SnapshotMoment::Before)).await.unwrap(),
        None
    );
}

#[tokio::test]
async fn a_repository_without_commits_has_snapshots() {
    let yard = Yard::empty();
    yard.write("a", "a");
    let taken = yard
        .git
        .snapshot(&yard.repository, &snapshot_name(1, SnapshotMoment::Before))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(yard.ours(&["ls-tree", "--name-only", &taken.commit]), "a");
    assert_eq!(
        yard.git.find(&yard.repository, &snapshot_name(1, SnapshotMoment::Before)).await.unwrap(),
        Some(taken)
    );
    assert_eq!(
        yard.git.find(&yard.repository, &snapshot_name(2, SnapshotMoment::Before)).await.unwrap(),
        None
    );
}

/// One change after another, each seen by the next snapshot, whatever git was told about the file.
#[tokio::test]
async fn each_snapshot_is_of_what_is_there() {
    let yard = Yard::new();
    let shown = async |turn: u64, path: &str| {
        let name = snapshot_name(turn, SnapshotMoment::After);
        let taken = yard.git.snapshot(&yard.repository, &name).await.unwrap().unwrap();
        let tree = yard.ours(&["ls-tree", "-r", "--name-only", &taken.commit]);
        let is_there = tree.lines().any(|each| each == path);
        let blob = || yard.ours_bytes(&["cat-file", "blob", &format!("{}:{path}", taken.commit)]);
        is_there.then(|| String::from_utf8(blob()).unwrap())
    };
    assert_eq!(shown(1, "a.txt").await.as_deref(), Some("one\ntwo\nthree\n"));
    yard.plain(&["update-index", "--assume-unchanged", "a.txt"]);
    yard.write("a.txt", "hidden from git");
    assert_eq!(shown(2, "a.txt").await.as_deref(), Some("hidden from git"));
    yard.write("forced.ignored", "forced");
    assert_eq!(shown(3, "forced.ignored").await, None);
    yard.plain(&["add", "-f", "forced.ignored"]);
    assert_eq!(shown(4, "forced.ignored").await.as_deref(), Some("forced"));
    fs::remove_file(yard.repository.join("a.txt")).unwrap();
    fs::create_dir(yard.repository.join("a.txt")).unwrap();
    yard.write("a.txt/inside", "inside");
    assert_eq!(shown(5, "a.txt/inside").await.as_deref(), Some("inside"));
    fs::remove_dir_all(yard.repository.join("sub")).unwrap();
    symlink("/etc", yard.repository.join("sub")).unwrap();
    assert_eq!(shown(6, "sub").await.as_deref(), Some("/etc"));
    assert_eq!(shown(7, "sub/b.txt").await, None);
    fs::remove_file(yard.repository.join("sub")).unwrap();
    yard.write("sub", "a file");
    assert_eq!(shown(8, "sub").await.as_deref(), Some("a file"));
    fs::remove_file(yard.repository.join(".git/index")).unwrap();
    assert_eq!(shown(9, "sub").await.as_deref(), Some("a file"));
    yard.plain(&["reset", "-q", "--hard"]);
    assert_eq!(shown(10, "a.txt").await.as_deref(), Some("one\ntwo\nthree\n"));
}

#[tokio::test]
async fn bytes_are_kept_as_they_are_whatever_attributes_say() {
    let yard = Yard::new();
    yard.write(".gitattributes", "*.txt text eol=crlf\n*.id ident\n*.utf working-tree-encoding=UTF-16\n");
    yard.write("mixed.txt", "one\r\ntwo\nthree\r\n");
    yard.write("x.id", "$Id: not this $\n");
    fs::write(yard.repository.join("x.utf"), [0xff, 0xfe, 0x41, 0x00]).unwrap();
    yard.plain(&["add", "."]);
    yard.plain(&["commit", "-q", "-m", "attributes"]);
    let name = snapshot_name(1, SnapshotMoment::Before);
    let taken = yard.git.snapshot(&yard.repository, &name).await.unwrap().unwrap();
    for file in ["mixed.txt", "x.id", "x.utf", "a.txt"] {
        let kept = yard.ours_bytes(&["cat-file", "blob", &format!("{}:{file}", taken.commit)]);
        assert_eq!(kept, fs::read(yard.repository.join(file)).unwrap(), "{file}");
    }
}

#[tokio::test]
async fn a_merge_under_way_is_kept_with_its_stages() {
    let yard = Yard::new();
    yard.plain(&["checkout", "-q", "-b", "other"]);
    yard.write("a.txt", "theirs\n");
    yard.plain(&["commit", "-q", "-a", "-m", "theirs"]);
    yard.plain(&["checkout", "-q", "main"]);
    yard.write("a.txt", "ours\n");
    yard.plain(&["commit", "-q", "-a", "-m", "ours"]);
    assert!(
        !super::plain_command(&yard.repository).args(["merge", "other"]).output().unwrap().status.success()
    );
    let stages = yard.plain(&["ls-files", "-s"]);
    let name = snapshot_name(1, SnapshotMoment::Before);
    let taken = yard.git.snapshot(&yard.repository, &name).await.unwrap().unwrap();
    assert_eq!(yard.ours(&["show", &format!("{}^2:2/a.txt", taken.commit)]), "ours");
    assert_eq!(yard.ours(&["show", &format!("{}^2:3/a.txt", taken.commit)]), "theirs");
    assert_eq!(yard.plain(&["ls-files", "-s"]), stages);
}

#[tokio::test]
async fn pipes_and_nested_repositories_do_not_stop_it() {
    let yard = Yard::new();
    for (nested, has_commit) in [("nested-empty", false), ("nested", true)] {
        let nested = yard.repository.join(nested);
        fs::create_dir(&nested).unwrap();
        plain(&nested, &["init", "-q"]);
        if has_commit {
            plain(&nested, &["commit", "-q", "--allow-empty", "-m", "x"]);
        }
    }
    fs::remove_file(yard.repository.join("a.txt")).unwrap();
    let status = std::process::Command::new("mkfifo").arg(yard.repository.join("a.txt")).status().unwrap();
    assert!(status.success());
    let name = snapshot_name(1, SnapshotMoment::Before);
    let taken = yard.git.snapshot(&yard.repository, &name).await.unwrap().unwrap();
    assert_eq!(yard.ours(&["ls-tree", "-r", "--name-only", &taken.commit]), ".gitignore\nsub/b.txt");
}

#[tokio::test]
async fn a_repository_with_longer_ids_has_snapshots() {
    let yard = Yard::empty();
    fs::remove_dir_all(yard.repository.join(".git")).unwrap();
    yard.plain(&["init", "-q", "-b", "main", "--object-format=sha256"]);
    yard.write("a", "a");
    yard.plain(&["add", "."]);
    yard.plain(&["commit", "-q", "-m", "first"]);
    let name = snapshot_name(1, SnapshotMoment::Before);
    let taken = yard.git.snapshot(&yard.repository, &name).await.unwrap().unwrap();
    assert_eq!(taken.commit.len(), 64);
    let root = yard.enter("one").await.directory;
    assert_eq!(plain(&root, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn a_repository_around_the_data_directory_is_no_sessions() {
    let yard = Yard::new();
    let git = super::our_git(&yard.repository, Path::new("git"));
    let own = yard.repository.join("data/work/ses_1");
    super::write(&own.join("note.txt"), b"mine");
    let name = snapshot_name(1, SnapshotMoment::Before);
    assert_eq!(git.root_of(&own).unwrap(), None);
    assert_eq!(git.snapshot(&own, &name).await.unwrap(), None);
    assert!(git.enter(EnterRequest { repository: &own, ..yard.wish("one") }).await.is_err());
    // What an agent makes there, or a person chooses beside it, is under version control as anywhere.
    plain(&own, &["init", "--quiet"]);
    assert_eq!(git.root_of(&own).unwrap(), Some(own));
    let chosen = yard.repository.join("sub");
    assert_eq!(git.root_of(&chosen).unwrap().as_deref(), Some(yard.repository.as_path()));
}

/// Git looks at seconds, and into a file that is as young as its index. A copy of the index must not look younger than it is.
#[tokio::test]
async fn a_file_that_was_changed_in_the_second_of_its_index_is_seen_later() {
    let yard = Yard::new();
    next_second().await;
    yard.write("a.txt", "first");
    yard.plain(&["add", "a.txt"]);
    yard.write("a.txt", "other");
    next_second().await;
    let taken = yard.git.snapshot(&yard.repository, &snapshot_name(1, SnapshotMoment::Before)).await.unwrap();
    assert_eq!(yard.ours(&["show", &format!("{}:a.txt", taken.unwrap().commit)]), "other");
}

/// The next second has begun, for files too: their times come from a clock that lags a few milliseconds behind.
async fn next_second() {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    tokio::time::sleep(Duration::from_millis(1_050) - Duration::from_nanos(since.subsec_nanos().into()))
        .await;
}

/// A pipe in the place of a file that git reads makes git wait for ever. It is not left waiting, and neither are we.
#[tokio::test]
async fn a_pipe_that_nobody_writes_into_ends_the_snapshot_and_the_next_one_works() {
    let yard = Yard::new();
    let limits = GitLimits { stuck_max: std::time::Duration::from_secs(1), ..GitLimits::default() };
    let git = our_git_with(yard.place.path(), Path::new("git"), limits);
    let pipe = yard.repository.join("sub/.gitignore");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let name = snapshot_name(1, SnapshotMoment::Before);
    let why = git.snapshot(&yard.repository, &name).await.unwrap_err();
    assert!(matches!(why, GitError::Stuck { .. }), "{why}");
    fs::remove_file(&pipe).unwrap();
    assert!(git.snapshot(&yard.repository, &name).await.unwrap().is_some());
}
