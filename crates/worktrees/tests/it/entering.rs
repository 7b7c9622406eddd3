//! Worktrees are made from a base, entered again, and lead nowhere else.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use homing_worktrees::git::{EnterRequest, GitError, WorktreeName};

use super::{Yard, named, plain};

#[tokio::test]
async fn a_worktree_is_one_that_git_knows() {
    let yard = Yard::new();
    let entered = yard.enter("one").await;
    assert_eq!(entered.branch.as_deref(), Some("homing/one"));
    assert_eq!(entered.base_commit, yard.plain(&["rev-parse", "HEAD"]));
    assert_eq!(entered.home, yard.repository);
    let root = &entered.directory;
    assert_eq!(fs::read_to_string(root.join("a.txt")).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(plain(root, &["status", "--porcelain"]), "");
    assert_eq!(plain(root, &["branch", "--show-current"]), "homing/one");
    let listed = yard.plain(&["worktree", "list"]);
    assert!(listed.contains(root.to_str().unwrap()), "{listed}");
    // An agent of another session that tidies up does not see this directory, and must not take it for gone.
    let moved = root.with_extension("moved");
    fs::rename(root, &moved).unwrap();
    yard.plain(&["worktree", "prune", "--expire=now"]);
    fs::rename(&moved, root).unwrap();
    fs::write(root.join("a.txt"), "changed").unwrap();
    plain(root, &["commit", "-q", "-a", "-m", "second"]);
    assert_eq!(yard.plain(&["rev-list", "--count", "homing/one"]), "2");
    yard.plain(&["fsck", "--strict"]);
}

#[tokio::test]
async fn a_subdirectory_is_entered_as_such() {
    let yard = Yard::new();
    fs::create_dir_all(yard.repository.join("new/deep")).unwrap();
    for (within, name) in [("sub", "one"), ("new/deep", "two")] {
        let repository = yard.repository.join(within);
        let entered =
            yard.git.enter(EnterRequest { repository: &repository, ..yard.wish(name) }).await.unwrap();
        assert!(entered.directory.ends_with(format!("{name}/{within}")), "{:?}", entered.directory);
        assert!(entered.directory.is_dir());
        assert_eq!(entered.home, repository);
    }
}

#[tokio::test]
async fn a_subdirectory_that_leads_out_is_not_entered() {
    let yard = Yard::new();
    let out = yard.place.path().join("out");
    fs::create_dir(&out).unwrap();
    symlink(&out, yard.repository.join("way")).unwrap();
    yard.plain(&["add", "."]);
    yard.plain(&["commit", "-q", "-m", "a link"]);
    fs::remove_file(yard.repository.join("way")).unwrap();
    fs::create_dir(yard.repository.join("way")).unwrap();
    let repository = yard.repository.join("way");
    let refused = yard.git.enter(EnterRequest { repository: &repository, ..yard.wish("one") }).await;
    assert!(matches!(refused, Err(GitError::LeadsOut { .. })), "{refused:?}");
}

#[tokio::test]
async fn it_begins_where_it_is_told() {
    let yard = Yard::new();
    yard.plain(&["tag", "v1"]);
    yard.write("later.txt", "later");
    yard.plain(&["add", "."]);
    yard.plain(&["commit", "-q", "-m", "second"]);
    let wish = EnterRequest {
        base: Some("v1".into()),
        branch: Some("topic/a".parse().unwrap()),
        ..yard.wish("one")
    };
    let entered = yard.git.enter(wish).await.unwrap();
    assert_eq!(entered.base_commit, yard.plain(&["rev-parse", "v1"]));
    assert_eq!(entered.branch.as_deref(), Some("topic/a"));
    assert!(!entered.directory.join("later.txt").exists());
    for base in ["nothing", "-n", "--exec=x", "HEAD..v1", ":/first"] {
        let refused = yard.git.enter(EnterRequest { base: Some(base.into()), ..yard.wish("two") }).await;
        assert!(
            matches!(refused, Err(GitError::NoSuchRevision(_) | GitError::BadName { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(yard.git.list(None).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_branch_that_exists_is_used_if_it_is_free() {
    let yard = Yard::new();
    yard.plain(&["branch", "free"]);
    let wish = |name, branch: &str| EnterRequest { branch: Some(branch.parse().unwrap()), ..yard.wish(name) };
    let entered = yard.git.enter(wish("one", "free")).await.unwrap();
    assert_eq!(entered.branch.as_deref(), Some("free"));
    for branch in ["main", "free"] {
        let refused = yard.git.enter(wish("two", branch)).await;
        assert!(matches!(refused, Err(GitError::BranchInUse { .. })), "{refused:?}");
    }
    yard.plain(&["branch", "homing/three"]);
    let refused = yard.git.enter(yard.wish("three")).await;
    assert!(matches!(refused, Err(GitError::BranchTaken(_))), "{refused:?}");
}

#[tokio::test]
async fn asked_again_it_is_the_same_worktree() {
    let yard = Yard::new();
    let entered = yard.enter("one").await;
    fs::write(entered.directory.join("mine"), "mine").unwrap();
    assert_eq!(yard.enter("one").await, entered);
    assert_eq!(yard.git.enter(EnterRequest { is_new: false, ..yard.wish("one") }).await.unwrap(), entered);
    assert!(entered.directory.join("mine").exists());
    let other = EnterRequest { base: Some("HEAD".into()), ..yard.wish("one") };
    assert!(matches!(yard.git.enter(other).await, Err(GitError::NameTaken { .. })));
    let missing = EnterRequest { is_new: false, ..yard.wish("two") };
    assert!(matches!(yard.git.enter(missing).await, Err(GitError::NoSuchWorktree(_))));
}

#[tokio::test]
async fn what_is_in_the_way_stays() {
    let yard = Yard::new();
    let way = yard.place.path().join("data/worktrees/one");
    fs::write(&way, "somebody's").unwrap();
    assert!(matches!(yard.git.enter(yard.wish("one")).await, Err(GitError::InTheWay(_))));
    assert_eq!(fs::read_to_string(way).unwrap(), "somebody's");
}

#[tokio::test]
async fn outside_of_a_repository_there_is_no_worktree() {
    let yard = Yard::new();
    let nowhere = tempfile::tempdir().unwrap();
    let refused = yard.git.enter(EnterRequest { repository: nowhere.path(), ..yard.wish("one") }).await;
    assert!(matches!(refused, Err(GitError::NoRepository(_))), "{refused:?}");
}

#[tokio::test]
async fn what_worktreeinclude_names_is_copied() {
    let yard = Yard::new();
    yard.write(".worktreeinclude", ".env\n*.ignored\n/build/cache/\n../outside\n/etc/passwd\n");
    yard.write(".env", "secret");
    fs::set_permissions(yard.repository.join(".env"), fs::Permissions::from_mode(0o600)).unwrap();
    yard.write("sub/x.ignored", "x");
    yard.write("build/cache/deep/file", "cached");
    yard.write("build/other", "not asked for");
    yard.write("loose.txt", "not asked for");
    symlink("/etc/hostname", yard.repository.join("link.ignored")).unwrap();
    fs::write(yard.place.path().join("outside"), "outside").unwrap();
    let root = yard.enter("one").await.directory;
    assert_eq!(fs::read_to_string(root.join(".env")).unwrap(), "secret");
    assert_eq!(fs::metadata(root.join(".env")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(root.join("sub/x.ignored")).unwrap(), "x");
    assert_eq!(fs::read_to_string(root.join("build/cache/deep/file")).unwrap(), "cached");
    assert_eq!(fs::read_link(root.join("link.ignored")).unwrap().to_str(), Some("/etc/hostname"));
    for absent in ["build/other", "loose.txt", "outside", "etc"] {
        assert!(!root.join(absent).exists(), "{absent}");
    }
    assert!(!yard.place.path().join("data/worktrees/outside").exists());
}

#[tokio::test]
async fn nothing_is_copied_through_a_link() {
    let yard = Yard::new();
    let out = yard.place.path().join("out");
    fs::create_dir(&out).unwrap();
    symlink(&out, yard.repository.join("conf")).unwrap();
    yard.plain(&["add", "."]);
    yard.plain(&["commit", "-q", "-m", "a link"]);
    fs::remove_file(yard.repository.join("conf")).unwrap();
    yard.write("conf/x.ignored", "x");
    yard.write(".worktreeinclude", "*.ignored\n");
    let root = yard.enter("one").await.root;
    assert!(fs::symlink_metadata(root.join("conf")).unwrap().is_symlink(), "what the base has stays");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
}

#[tokio::test]
async fn a_list_shows_what_is_in_each() {
    let yard = Yard::new();
    let root = yard.enter("one").await.directory;
    yard.enter("two").await;
    fs::write(root.join("a.txt"), "changed").unwrap();
    plain(&root, &["commit", "-q", "-a", "-m", "second"]);
    fs::write(root.join("a.txt"), "again").unwrap();
    fs::write(root.join("new"), "new").unwrap();
    fs::write(root.join("x.ignored"), vec![1; 100_000]).unwrap();
    yard.plain(&["commit", "-q", "--allow-empty", "-m", "elsewhere"]);
    fs::remove_dir_all(yard.place.path().join("data/worktrees/two")).unwrap();
    let seen = yard.git.list(Some(&yard.repository)).await.unwrap();
    let [one, two] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((one.ahead, one.behind, one.dirty, one.untracked), (1, 1, 1, 1));
    assert_eq!(one.branch.as_deref(), Some("homing/one"));
    assert_eq!(one.head, Some(plain(&root, &["rev-parse", "HEAD"])));
    assert!(one.size_bytes > 100_000 && one.made_at_ms > 0 && !one.is_missing);
    assert!(two.is_missing);
    let other = Yard::new();
    assert_eq!(yard.git.list(Some(&other.repository)).await.unwrap(), []);
}

#[test]
fn a_name_is_no_way_out() {
    for name in ["..", "-f", "../x", "/x", "a/b", ".git", ".trash", "", "a b", "ü"] {
        assert!(name.parse::<WorktreeName>().is_err(), "{name:?}");
    }
    assert_eq!(named("a-1").as_str(), "a-1");
}

#[tokio::test]
async fn files_that_lfs_keeps_elsewhere_are_named() {
    let yard = Yard::new();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
    yard.write("media/large.bin", pointer);
    yard.plain(&["add", "."]);
    yard.plain(&["commit", "-q", "-m", "a file that nobody calls a pointer"]);
    assert_eq!(yard.enter("one").await.notices, [""; 0]);
    yard.write("media/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    yard.write("media/plain.bin", "it was never a pointer\n");
    yard.plain(&["-c", "filter.lfs.clean=cat", "add", "."]);
    yard.plain(&["commit", "-q", "-m", "lfs"]);
    let entered = yard.enter("two").await;
    let [words] = &entered.notices[..] else { panic!("{:?}", entered.notices) };
    assert!(words.contains("pointers: media/large.bin;") && words.contains("git lfs pull"), "{words}");
    // Fetched, it is a file like any other.
    super::write(&entered.root.join("media/large.bin"), &[0; 4_096]);
    let again = EnterRequest { is_new: false, ..yard.wish("two") };
    assert_eq!(yard.git.enter(again).await.unwrap().notices, [""; 0]);
}
