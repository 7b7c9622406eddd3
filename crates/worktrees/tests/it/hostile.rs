//! Repositories that want something executed. Nothing of theirs runs, and with plain git everything does.
//!
//! Each way has a yard of its own. First everything we do is done there, and no trace may appear; then a person's git does
//! one thing, and the trace must appear: a way that does not work would prove nothing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use homing_worktrees::git::{CollectPolicy, EnterRequest, GitError, SnapshotMoment};
use kernel::{SessionId, UndoFiles};

use super::{Yard, named, plain, plain_command, snapshot_name, write};

/// A way by which a repository gets something executed.
struct Way {
    name: &'static str,
    /// Settings; `TRACE` stands for a program that leaves a trace.
    config: &'static [(&'static str, &'static str)],
    attributes: &'static str,
    /// The person's act that lets it happen.
    person: &'static [&'static str],
}

const WAYS: &[Way] = &[
    Way {
        name: "hooks path",
        config: &[("core.hooksPath", "HOOKS")],
        attributes: "",
        person: &["commit", "--allow-empty", "-m", "x"],
    },
    Way { name: "monitor", config: &[("core.fsmonitor", "TRACE")], attributes: "", person: &["status"] },
    Way {
        name: "clean",
        config: &[("filter.evil.clean", "TRACE; cat")],
        attributes: "* filter=evil",
        person: &["add", "-A"],
    },
    Way {
        name: "smudge",
        config: &[("filter.evil.smudge", "TRACE; cat"), ("filter.evil.required", "true")],
        attributes: "* filter=evil",
        person: &["worktree", "add", "../elsewhere"],
    },
    Way {
        name: "process",
        config: &[("filter.evil.process", "TRACE")],
        attributes: "* filter=evil",
        person: &["add", "-A"],
    },
    Way {
        name: "textconv",
        config: &[("diff.evil.textconv", "TRACE; cat")],
        attributes: "* diff=evil",
        person: &["diff"],
    },
    Way {
        name: "diff driver",
        config: &[("diff.evil.command", "TRACE")],
        attributes: "* diff=evil",
        person: &["diff"],
    },
    Way { name: "external diff", config: &[("diff.external", "TRACE")], attributes: "", person: &["diff"] },
    Way { name: "alias", config: &[("alias.st", "!TRACE")], attributes: "", person: &["st"] },
    Way {
        name: "include",
        config: &[("include.path", "INCLUDED")],
        attributes: "* filter=evil",
        person: &["add", "-A"],
    },
    Way {
        name: "signing",
        config: &[("commit.gpgSign", "true"), ("gpg.program", "TRACE")],
        attributes: "",
        person: &["commit", "--allow-empty", "-m", "x"],
    },
    Way {
        name: "editor",
        config: &[("core.editor", "TRACE")],
        attributes: "",
        person: &["commit", "--allow-empty"],
    },
    Way {
        name: "ssh",
        config: &[("core.sshCommand", "TRACE"), ("remote.origin.url", "ssh://localhost/x")],
        attributes: "",
        person: &["fetch"],
    },
];

struct Hostile {
    yard: Yard,
    trace: PathBuf,
}

fn hostile(way: &Way) -> Hostile {
    let yard = Yard::new();
    let place = yard.place.path().canonicalize().unwrap();
    let (program, trace) = (place.join("leave-a-trace"), place.join("trace"));
    script(&program, &trace);
    for hook in HOOKS {
        script(&place.join("hooks").join(hook), &trace);
    }
    write(
        &place.join("included"),
        format!("[filter \"evil\"]\n\tclean = {}; cat\n", program.display()).as_bytes(),
    );
    if !way.attributes.is_empty() {
        yard.write(".gitattributes", way.attributes);
    }
    yard.write(".worktreeinclude", "*.ignored\n");
    yard.write("x.ignored", "ignored");
    yard.plain(&["add", "-A"]);
    yard.plain(&["commit", "-q", "-m", "as if harmless"]);
    for (key, value) in way.config {
        let value = value.replace("TRACE", program.to_str().unwrap());
        let value = value.replace("HOOKS", place.join("hooks").to_str().unwrap());
        yard.plain(&["config", key, &value.replace("INCLUDED", place.join("included").to_str().unwrap())]);
    }
    Hostile { yard, trace }
}

/// Every hook that git knows.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

fn script(path: &Path, trace: &Path) {
    write(path, format!("#!/bin/sh\necho \"$0 $*\" >> {}\n", trace.display()).as_bytes());
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Everything we do, once.
async fn do_everything(yard: &Yard, worktree: &str) {
    let git = &yard.git;
    let root = yard.enter(worktree).await.directory;
    for directory in [&yard.repository, &root] {
        let before =
            git.snapshot(directory, &snapshot_name(1, SnapshotMoment::Before)).await.unwrap().unwrap();
        write(&directory.join("a.txt"), b"changed");
        write(&directory.join("new.txt"), b"new");
        let after = git.snapshot(directory, &snapshot_name(1, SnapshotMoment::After)).await.unwrap().unwrap();
        assert!(git.diff(&before, &after).await.unwrap().files.len() >= 2);
        let safety = snapshot_name(1, SnapshotMoment::Safety);
        git.undo(directory, &before, &after, &safety, &UndoFiles::All, || true).await.unwrap();
        write(&directory.join("a.txt"), b"changed again");
    }
    git.list(None).await.unwrap();
    let removed = git.remove(&named(worktree), &snapshot_name(2, SnapshotMoment::Removed)).await.unwrap();
    git.restore(&yard.repository, &removed.snapshot, &named(worktree)).await.unwrap();
    let policy = CollectPolicy {
        age: Duration::ZERO,
        bytes_max: 0,
        snapshot_age: Duration::ZERO,
        in_use: BTreeSet::new(),
        session: SessionId::from_bits(9),
    };
    git.collect(&policy).await.unwrap();
}

fn seen(trace: &Path) -> String {
    fs::read_to_string(trace).unwrap_or_default()
}

#[tokio::test]
async fn nothing_that_a_repository_configures_is_executed() {
    for way in WAYS {
        let hostile = hostile(way);
        let _ = fs::remove_file(&hostile.trace);
        do_everything(&hostile.yard, "one").await;
        assert_eq!(seen(&hostile.trace), "", "{}", way.name);
        hostile.yard.write("a.txt", "a person's change");
        plain_command(&hostile.yard.repository).args(way.person).output().unwrap();
        assert_ne!(seen(&hostile.trace), "", "{} works no more, so it proves nothing", way.name);
    }
}

#[tokio::test]
async fn no_hook_in_its_usual_place_is_executed() {
    let way = Way { name: "hooks", config: &[], attributes: "", person: &[] };
    let hostile = hostile(&way);
    for hook in HOOKS {
        script(&hostile.yard.repository.join(".git/hooks").join(hook), &hostile.trace);
    }
    do_everything(&hostile.yard, "one").await;
    assert_eq!(seen(&hostile.trace), "");
    hostile.yard.plain(&["worktree", "add", "-q", "../elsewhere"]);
    let trace = seen(&hostile.trace);
    assert!(trace.contains("post-checkout") && trace.contains("reference-transaction"), "{trace}");
}

/// Git looks into submodules by starting itself there, without the settings it was given.
#[tokio::test]
async fn nothing_that_a_submodule_configures_is_executed() {
    let way = Way { name: "submodule", config: &[], attributes: "", person: &[] };
    let hostile = hostile(&way);
    let inner = Yard::new();
    let yard = &hostile.yard;
    yard.plain(&["submodule", "--quiet", "add", inner.repository.to_str().unwrap(), "module"]);
    yard.plain(&["commit", "-q", "-m", "module"]);
    let root = yard.enter("one").await.directory;
    plain(&root, &["submodule", "--quiet", "update", "--init"]);
    let program = yard.place.path().canonicalize().unwrap().join("leave-a-trace");
    for directory in [&yard.repository, &root] {
        plain(&directory.join("module"), &["config", "core.fsmonitor", program.to_str().unwrap()]);
    }
    let _ = fs::remove_file(&hostile.trace);
    do_everything(yard, "one").await;
    assert_eq!(seen(&hostile.trace), "");
    yard.plain(&["status"]);
    assert_ne!(seen(&hostile.trace), "");
}

/// A partial clone fetches what it lacks, by a program that its configuration names.
#[tokio::test]
async fn nothing_is_fetched() {
    let way = Way { name: "promise", config: &[], attributes: "", person: &[] };
    let hostile = hostile(&way);
    let yard = &hostile.yard;
    let program = yard.place.path().canonicalize().unwrap().join("leave-a-trace");
    let far = yard.place.path().canonicalize().unwrap().join("far");
    plain(
        yard.place.path(),
        &["clone", "-q", "--bare", yard.repository.to_str().unwrap(), far.to_str().unwrap()],
    );
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", far.to_str().unwrap()),
        ("remote.origin.uploadpack", program.to_str().unwrap()),
        ("protocol.file.allow", "always"),
        ("protocol.allow", "always"),
    ] {
        yard.plain(&["config", key, value]);
    }
    let blob = yard.plain(&["rev-parse", "HEAD:a.txt"]);
    let (directory, file) = blob.split_at(2);
    fs::remove_file(yard.repository.join(".git/objects").join(directory).join(file)).unwrap();
    assert!(yard.git.enter(yard.wish("one")).await.is_err());
    let taken = yard.git.snapshot(&yard.repository, &snapshot_name(1, SnapshotMoment::Before)).await.unwrap();
    assert!(taken.is_some());
    assert_eq!(seen(&hostile.trace), "");
    let _ = fs::remove_file(yard.repository.join(".git/objects").join(directory).join(file));
    let _ = plain_command(&yard.repository).args(["cat-file", "-p", "HEAD:a.txt"]).output().unwrap();
    assert_ne!(seen(&hostile.trace), "");
}

#[tokio::test]
async fn a_repository_cannot_lead_us_to_other_peoples_files() {
    let others = Yard::new();
    let name = snapshot_name(1, SnapshotMoment::Before);
    let refs = others.plain(&["for-each-ref"]);

    // A `.git` file that names somebody else's repository.
    let yard = Yard::new();
    fs::remove_dir_all(yard.repository.join(".git")).unwrap();
    yard.write(".git", &format!("gitdir: {}\n", others.repository.join(".git").display()));
    assert!(matches!(yard.git.snapshot(&yard.repository, &name).await, Err(GitError::Strange { .. })));
    assert!(matches!(yard.git.enter(yard.wish("one")).await, Err(GitError::Strange { .. })));

    // The same by a link, and by links within.
    fs::remove_file(yard.repository.join(".git")).unwrap();
    symlink(others.repository.join(".git"), yard.repository.join(".git")).unwrap();
    assert!(matches!(yard.git.snapshot(&yard.repository, &name).await, Err(GitError::Strange { .. })));
    for part in ["objects", "refs"] {
        let yard = Yard::new();
        fs::remove_dir_all(yard.repository.join(".git").join(part)).unwrap();
        symlink(others.repository.join(".git").join(part), yard.repository.join(".git").join(part)).unwrap();
        assert!(
            matches!(yard.git.snapshot(&yard.repository, &name).await, Err(GitError::Strange { .. })),
            "{part}"
        );
    }

    // A common directory elsewhere.
    let yard = Yard::new();
    yard.write(".git/commondir", others.repository.join(".git").to_str().unwrap());
    assert!(matches!(yard.git.snapshot(&yard.repository, &name).await, Err(GitError::Strange { .. })));
    assert_eq!(others.plain(&["for-each-ref"]), refs);
}

#[tokio::test]
async fn a_working_tree_is_where_its_repository_is_whatever_its_config_says() {
    let yard = Yard::new();
    let others = yard.place.path().canonicalize().unwrap().join("others");
    write(&others.join("secret"), b"secret");
    yard.plain(&["config", "core.worktree", others.to_str().unwrap()]);
    let taken = yard
        .git
        .snapshot(&yard.repository, &snapshot_name(1, SnapshotMoment::Before))
        .await
        .unwrap()
        .unwrap();
    yard.plain(&["config", "--unset", "core.worktree"]);
    assert_eq!(yard.ours(&["ls-tree", "-r", "--name-only", &taken.commit]), ".gitignore\na.txt\nsub/b.txt");
}

/// A file that makes whoever opens it wait.
#[tokio::test]
async fn a_pipe_in_the_place_of_a_file_holds_nobody_up() {
    let yard = Yard::new();
    for part in ["HEAD", "config", "index"] {
        let path = yard.repository.join(".git").join(part);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let name = snapshot_name(1, SnapshotMoment::Before);
        let done =
            tokio::time::timeout(Duration::from_secs(20), yard.git.snapshot(&yard.repository, &name)).await;
        assert!(done.is_ok(), "{part}");
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    let entered =
        tokio::time::timeout(Duration::from_secs(20), yard.git.enter(EnterRequest { ..yard.wish("one") }))
            .await;
    entered.unwrap().unwrap();
}
