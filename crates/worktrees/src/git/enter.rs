//! Making a worktree, so that it can be begun again after a kill at any line.
//!
//! The record is written first and says *making*; each step looks whether it is done already. A linked worktree is a
//! few small files in a documented layout; they are written here, because `git worktree add` would read the repository's
//! configuration. The files are checked out by git in our plain shadow: converted as attributes say, but by no filter.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use engine::WorkPhase;
use kernel::SessionId;

use super::again::MadeFrom;
use super::directory_handle::DirectoryHandle;
use super::error::GitError;
use super::names::{BranchName, WorktreeName, check_revision, is_object_id};
use super::record::{RecordState, WorktreeRecord};
use super::repository::{Repository, read_line};
use super::shadow::ShadowRepository;
use super::{Git, now_ms};

/// Other worktrees of the repository may have taken the name there.
const IDS_MAX: usize = 1_000;

/// Keeps `git worktree prune` away, which cannot see our worktrees from behind a wall.
const LOCKED: &str = "a worktree of Homing's; remove it with Homing\n";

/// The worktree that is wanted.
#[derive(Debug, Clone)]
pub struct EnterRequest<'a> {
    /// Any directory within the repository.
    pub repository: &'a Path,
    pub name: WorktreeName,
    /// Where a new branch begins: a revision; HEAD if nothing is said.
    pub base: Option<String>,
    /// `homing/NAME` if nothing is said. One that exists is used as it is, if it was said and no base.
    pub branch: Option<BranchName>,
    /// A new worktree, or one that exists.
    pub is_new: bool,
    /// The session that it is made for.
    pub session: Option<SessionId>,
}

/// A worktree that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnteredWorktree {
    /// Where to work: the same place in the worktree as `home` in its own.
    pub directory: PathBuf,
    /// The root of the worktree.
    pub root: PathBuf,
    /// Where one comes from and goes back to.
    pub home: PathBuf,
    /// None: HEAD is on no branch, as somebody left it.
    pub branch: Option<String>,
    pub base_commit: String,
    /// Things that whoever enters it should know.
    pub notices: Vec<String>,
}

impl Git {
    /// Makes a worktree, or enters one that is there. Asked again with the same words it gives the same answer, also if the
    /// first time was cut short.
    pub async fn enter(&self, enter: EnterRequest<'_>) -> Result<EnteredWorktree, GitError> {
        let from = self.must_be_around(enter.repository)?;
        let home = enter.repository.to_path_buf();
        let _held = self.hold(&from.common, &from.common).await?;
        let record = self.record(&enter.name)?;
        let _root = self.hold_unmade(&enter.name, record.as_ref(), &from.common).await?;
        let record = match record {
            Some(record) if record.common != from.common => {
                return Err(GitError::NameTaken { name: enter.name, repository: record.home });
            }
            Some(WorktreeRecord { state: RecordState::Removing { .. }, .. }) if enter.is_new => {
                self.finish_removal(&enter.name).await?;
                self.plan(&enter, &from).await?
            }
            Some(WorktreeRecord { state: RecordState::Removing { .. }, .. }) => {
                return Err(GitError::NoSuchWorktree(enter.name));
            }
            Some(record) if enter.is_new && !is_asked_again(&record, &enter) => {
                return Err(GitError::NameTaken { name: enter.name, repository: record.home });
            }
            Some(record) => record,
            None if enter.is_new => self.plan(&enter, &from).await?,
            None => return Err(GitError::NoSuchWorktree(enter.name)),
        };
        let _damaged = self.hold_damaged(&enter.name, &record).await?;
        let record = self.plan_if_damaged(&enter.name, record).await?;
        let again: Vec<String> = record.again.iter().map(MadeFrom::words).collect();
        self.make(&enter.name, record, &from).await?;
        let entered = self.entered(&enter.name, &from, home)?;
        let pointers = self.pointer_words(&entered.root).await;
        Ok(EnteredWorktree { notices: again.into_iter().chain(pointers).collect(), ..entered })
    }

    /// Decides what is to be made, and writes it down. Nothing else has happened yet.
    async fn plan(&self, enter: &EnterRequest<'_>, from: &Repository) -> Result<WorktreeRecord, GitError> {
        let root = self.worktree(&enter.name);
        if fs::symlink_metadata(&root).is_ok() {
            return Err(GitError::InTheWay(root));
        }
        let shadow = self.shadow(from)?;
        let branch = enter.branch.clone().unwrap_or_else(|| BranchName::of(&enter.name));
        let there = self.find_one(&shadow, &branch.reference()).await?;
        let made_branch = there.is_none();
        let base_commit = match there {
            Some(commit) if enter.branch.is_some() && enter.base.is_none() => {
                if let Some(at) = checked_out_at(from, &branch.reference()) {
                    return Err(GitError::BranchInUse { branch: branch.to_string(), at });
                }
                commit
            }
            Some(_) => return Err(GitError::BranchTaken(branch.to_string())),
            None => self.resolve(&shadow, enter.base.as_deref().unwrap_or("HEAD")).await?,
        };
        let record = WorktreeRecord {
            common: from.common.clone(),
            home: from.top.clone(),
            branch: Some(branch.reference()),
            made_branch,
            base: enter.base.clone(),
            base_commit,
            id: free_id(from, &enter.name)?,
            made_at_ms: now_ms(),
            restoring: None,
            again: None,
            session: enter.session.map(|session| session.to_string()),
            state: RecordState::Making,
        };
        self.write_record(&enter.name, &record)?;
        self.step()?;
        Ok(record)
    }

    /// The commit that somebody's words name.
    pub(super) async fn resolve(
        &self,
        shadow: &ShadowRepository,
        revision: &str,
    ) -> Result<String, GitError> {
        check_revision(revision)?;
        let call = self.plain(shadow, "rev-parse").words(["--verify", "--quiet", "--end-of-options"]);
        let said = call.word(format!("{revision}^{{commit}}")).said().await?;
        let commit = String::from_utf8_lossy(&said.out).trim_end().to_owned();
        if said.code == Some(0) && is_object_id(&commit) {
            return Ok(commit);
        }
        Err(GitError::NoSuchRevision(revision.to_owned()))
    }

    /// Does what is not done yet. The repository and the root of the worktree are held by the caller.
    pub(super) async fn make(
        &self,
        name: &WorktreeName,
        mut record: WorktreeRecord,
        from: &Repository,
    ) -> Result<(), GitError> {
        let root = self.worktree(name);
        if record.state == RecordState::Made {
            return if root.join(".git").is_file() {
                Ok(())
            } else {
                Err(GitError::NoSuchWorktree(name.clone()))
            };
        }
        if let Some(source) = record.again.take() {
            self.make_again(name, &record, &source, from).await?;
            self.step()?;
            record.state = RecordState::Made;
            return self.write_record(name, &record);
        }
        if let Some(commit) = &record.restoring {
            self.bring_for(from, commit).await?;
            self.step()?;
        }
        self.make_branch(&record, from).await?;
        self.step()?;
        self.make_links(name, &record)?;
        self.step()?;
        let made = Repository::must_be_around(&root)?;
        // Whoever wrote this lock was killed: the record says that the worktree is not made yet.
        let _ = fs::remove_file(made.git_dir.join("index.lock"));
        match &record.restoring {
            Some(commit) => self.fill_again(&made, commit).await?,
            None => self.fill(&made, &record).await?,
        }
        self.step()?;
        record.state = RecordState::Made;
        self.write_record(name, &record)
    }

    /// The files of the base, and those that git does not track.
    async fn fill(&self, made: &Repository, record: &WorktreeRecord) -> Result<(), GitError> {
        let shadow = self.shadow_held(made)?;
        let settings = self.carried(made, &shadow).await?;
        self.phase(WorkPhase::CheckingOut);
        let call = self.plain(&shadow, "read-tree").words(["-v", "--reset", "-u", &record.base_commit]);
        call.settings(&settings).work_tree(&made.top).index(&made.git_dir.join("index")).out().await?;
        self.step()?;
        self.include(&record.home, made).await
    }

    async fn make_branch(&self, record: &WorktreeRecord, from: &Repository) -> Result<(), GitError> {
        let Some(branch) = &record.branch else { return Ok(()) };
        let shadow = self.shadow(from)?;
        // Without a commit a branch begins with the first one.
        let is_ours = (record.made_branch || record.restoring.is_some()) && !record.base_commit.is_empty();
        if is_ours && self.find_one(&shadow, branch).await?.is_none() {
            self.make_reference(&shadow, record, branch).await?;
        }
        Ok(())
    }

    /// The files of a new worktree that tie it to its repository.
    fn make_links(&self, name: &WorktreeName, record: &WorktreeRecord) -> Result<(), GitError> {
        self.write_head(record)?;
        self.step()?;
        self.tie(name, record)
    }

    /// The revision that the worktree begins with.
    pub(super) fn write_head(&self, record: &WorktreeRecord) -> Result<(), GitError> {
        let admin = record.admin();
        let head = match &record.branch {
            Some(branch) => format!("ref: {branch}\n"),
            None => format!("{}\n", record.base_commit),
        };
        fs::create_dir_all(&admin).map_err(GitError::disk(&admin))?;
        // Git takes a directory without it for one that is to be pruned.
        let (locked, path) = (admin.join("locked"), admin.join("HEAD"));
        fs::write(&locked, LOCKED).map_err(GitError::disk(&locked))?;
        fs::write(&path, head).map_err(GitError::disk(&path))
    }

    /// Both ends of the tie. HEAD is not touched: whoever works in the worktree may have moved it.
    pub(super) fn tie(&self, name: &WorktreeName, record: &WorktreeRecord) -> Result<(), GitError> {
        let (root, admin) = (self.worktree(name), record.admin());
        fs::create_dir_all(&admin).map_err(GitError::disk(&admin))?;
        let with_end = |path: &Path| [path.as_os_str().as_bytes(), b"\n"].concat();
        let dot_git = root.join(".git");
        for (file, text) in
            [("locked", LOCKED.as_bytes()), ("gitdir", &with_end(&dot_git)), ("commondir", b"../..\n")]
        {
            let path = admin.join(file);
            fs::write(&path, text).map_err(GitError::disk(&path))?;
            self.step()?;
        }
        match fs::create_dir(&root) {
            Err(why) if why.kind() != ErrorKind::AlreadyExists => return Err(GitError::disk(&root)(why)),
            _ => {}
        }
        self.step()?;
        fs::write(&dot_git, [b"gitdir: ", with_end(&admin).as_slice()].concat())
            .map_err(GitError::disk(&dot_git))
    }

    pub(super) fn entered(
        &self,
        name: &WorktreeName,
        from: &Repository,
        home: PathBuf,
    ) -> Result<EnteredWorktree, GitError> {
        let record = self.record(name)?.ok_or_else(|| GitError::NoSuchWorktree(name.clone()))?;
        let root = self.worktree(name);
        let within = home.strip_prefix(&from.top).unwrap_or(Path::new(""));
        let leads_out = |_| GitError::LeadsOut { path: root.join(within), root: root.clone() };
        // Joining nothing would put a slash at its end.
        let directory = if within.as_os_str().is_empty() { root.clone() } else { root.join(within) };
        // Made where the base does not have it; a link on the way would lead out.
        DirectoryHandle::open(&root)
            .map_err(GitError::disk(&root))?
            .make_directory(within)
            .map_err(leads_out)?;
        let branch = Repository::must_be_around(&root)?.branch();
        let branch = branch.and_then(|branch| Some(branch.strip_prefix("refs/heads/")?.to_owned()));
        Ok(EnteredWorktree {
            directory,
            root,
            home,
            branch,
            base_commit: record.base_commit,
            notices: Vec::new(),
        })
    }

    /// The part of the repository's configuration about files as such. Nothing in it can be executed.
    pub(super) async fn carried(
        &self,
        of: &Repository,
        shadow: &ShadowRepository,
    ) -> Result<Vec<String>, GitError> {
        let config = of.common.join("config");
        if !config.is_file() {
            return Ok(Vec::new());
        }
        let list =
            self.plain(shadow, "config").words(["--no-includes", "-z", "--list", "--file"]).word(config);
        let said = list.said().await?;
        let lines = said.out.split(|byte| *byte == 0).filter_map(|line| std::str::from_utf8(line).ok());
        let pairs = lines.filter_map(|line| line.split_once('\n'));
        let is_known = |key: &str| ["core.autocrlf", "core.eol"].contains(&key);
        let is_plain = |value: &str| value.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let known = pairs.filter(|(key, value)| is_known(key) && is_plain(value));
        Ok(known.map(|(key, value)| format!("{key}={value}")).collect())
    }
}

/// The same wish as the one that is written down: somebody was killed before they heard the answer.
fn is_asked_again(record: &WorktreeRecord, enter: &EnterRequest<'_>) -> bool {
    let branch = enter.branch.clone().unwrap_or_else(|| BranchName::of(&enter.name));
    record.branch == Some(branch.reference()) && record.base == enter.base
}

/// In which working tree a branch is checked out.
pub(super) fn checked_out_at(of: &Repository, branch: &str) -> Option<PathBuf> {
    let wanted = format!("ref: {branch}").into_bytes();
    let has = |git_dir: &Path| read_line(&git_dir.join("HEAD")).is_ok_and(|head| head == wanted);
    if has(&of.common) {
        return Some(of.common.parent().unwrap_or(&of.common).to_path_buf());
    }
    let others =
        fs::read_dir(of.common.join("worktrees")).into_iter().flatten().flatten().map(|entry| entry.path());
    others.filter(|admin| has(admin)).find_map(|admin| {
        let path = super::repository::bytes_path(&read_line(&admin.join("gitdir")).ok()?);
        Some(path.parent()?.to_path_buf())
    })
}

/// A name in the repository's `worktrees` that nobody has: the worktree's own, or with a number.
pub(super) fn free_id(of: &Repository, name: &WorktreeName) -> Result<String, GitError> {
    let all = of.common.join("worktrees");
    let names =
        std::iter::once(name.to_string()).chain((2..IDS_MAX).map(|number| format!("{name}.{number}")));
    let mut free = names.filter(|id| fs::symlink_metadata(all.join(id)).is_err());
    free.next().ok_or_else(|| GitError::InTheWay(all.join(name.as_str())))
}
