//! The one place where git is started: what it is told, what it cannot be told by anybody else, and when it ends.
//!
//! Git runs in a git directory of ours (see `shadow`), so no configuration but ours is ever read. What is set here holds in
//! addition: if one lock should turn out to be open, there is a second one.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::time::Duration;

use processes::{PATH_FALLBACK, find_program};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};

use super::error::GitError;
use super::progress::{ProgressSender, counted};
use super::running::RunningGits;
use super::stuck::until_stuck;

/// Of what git complains about, so much is told on.
const COMPLAINT_BYTES_MAX: usize = 4 * 1024;

/// The niceness of a git that nobody waits for: it gets a tenth of what one gets that somebody waits for.
const BACKGROUND: i32 = 10;

/// Git ends with no larger number by itself.
const GIT_CODE_MAX: i32 = 129;

/// Settings that keep git from starting anything, from asking anybody, and from changing what it is shown.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=false",
    "core.sshCommand=false",
    "core.gitProxy=false",
    "core.alternateRefsCommand=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.commitGraph=false",
    "core.quotePath=false",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.ignoreCase=false",
    // Names that only other systems mind are kept as they are.
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "core.bigFileThreshold=64m",
    // A pack of gigabytes is looked at through a small window: what git maps of it counts as the worker's memory, which has a bound.
    "core.packedGitWindowSize=32m",
    "core.packedGitLimit=256m",
    "credential.helper=",
    "diff.external=",
    "gpg.program=false",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=all",
    "status.submoduleSummary=false",
    "advice.detachedHead=false",
    // Two sessions may want the same file of git's at once; it waits for so many milliseconds.
    "core.filesRefLockTimeout=5000",
    "core.packedRefsTimeout=5000",
    // We answer for what git does in repositories of other users: it runs nothing of theirs.
    "safe.directory=*",
];

/// Git's own words when it cannot write an object because its directory is gone.
const LOST_PLACE: &str = "unable to create temporary file: No such file or directory";
/// Runs of a git that loses its place again and again.
const TRIES_MAX: usize = 10;

/// The program that is named first runs with the arguments after it, and closes to others whatever it makes.
const PRIVATELY: &str = r#"umask 077 && exec "$0" "$@""#;

/// Settings for everything that a removal rests on: it has to be on the disk, not in a cache.
const DURABLE: &[&str] = &["core.fsync=all", "core.fsyncMethod=fsync"];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "false"),
    ("GIT_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    // A partial clone must not fetch what is missing, by whatever means its configuration says.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    // `refs/replace` may say that a commit is another one.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_ADVICE", "0"),
    ("GIT_AUTHOR_NAME", "Homing"),
    ("GIT_AUTHOR_EMAIL", "homing@localhost"),
    ("GIT_COMMITTER_NAME", "Homing"),
    ("GIT_COMMITTER_EMAIL", "homing@localhost"),
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
];

/// The runner that starts git. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct GitRunner {
    pub(super) program: PathBuf,
    /// An empty directory of ours, which git takes for somebody's home.
    pub(super) home: PathBuf,
    pub(super) time_max: Duration,
    pub(super) stuck_max: Duration,
    pub(super) output_bytes_max: usize,
    pub(super) progress: ProgressSender,
    pub(super) runs: RunningGits,
    /// It gives way to everybody else's work.
    pub(super) is_background: bool,
}

/// The input of git.
pub(super) enum GitInput {
    Nothing,
    Bytes(Arc<Vec<u8>>),
    /// Written while git reads, for what is too much to be held.
    Written(Box<InputWriter>),
}

type InputWriter = dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send;

/// One run of git, before it is started.
pub(super) struct GitCall {
    plan: GitPlan,
    say: GitInput,
}

/// Everything about a run of git but its input: the same for each try.
#[derive(Clone)]
struct GitPlan {
    runner: GitRunner,
    words: Vec<OsString>,
    git_dir: PathBuf,
    work_tree: Option<PathBuf>,
    index: Option<PathBuf>,
    alternate: Option<PathBuf>,
    objects: Option<PathBuf>,
    identity: Option<(String, String)>,
    excludes: Option<PathBuf>,
    settings: Vec<String>,
    /// The beginning of what git prints that is not wanted.
    skipped_bytes: u64,
    output_bytes_max: usize,
    is_cut_allowed: bool,
    is_durable: bool,
    is_private: bool,
}

/// The words of git.
pub(super) struct GitOutput {
    pub(super) code: Option<i32>,
    pub(super) out: Vec<u8>,
    pub(super) complaint: String,
    /// There was more than was asked for.
    pub(super) is_cut: bool,
}

impl GitOutput {
    /// True if it did not come to an end by itself. Who starts git in our place says so by a number above its own.
    pub(super) fn was_killed(&self) -> bool {
        self.code.is_none_or(|code| code > GIT_CODE_MAX)
    }

    /// True if it failed because the directory that it was about to write an object to was taken away: another git that tidies
    /// up removes those that are empty, and git makes them only once.
    fn lost_its_place(&self) -> bool {
        self.code != Some(0) && self.complaint.contains(LOST_PLACE)
    }
}

impl GitRunner {
    pub(super) fn call(&self, git_dir: &Path, command: &str) -> GitCall {
        let plan = GitPlan {
            runner: self.clone(),
            words: vec![command.into()],
            git_dir: git_dir.to_path_buf(),
            work_tree: None,
            index: None,
            alternate: None,
            objects: None,
            identity: None,
            excludes: None,
            settings: Vec::new(),
            skipped_bytes: 0,
            output_bytes_max: self.output_bytes_max,
            is_cut_allowed: false,
            is_durable: false,
            is_private: false,
        };
        GitCall { plan, say: GitInput::Nothing }
    }
}

impl GitCall {
    pub(super) fn word(mut self, word: impl AsRef<OsStr>) -> Self {
        self.plan.words.push(word.as_ref().to_owned());
        self
    }

    pub(super) fn words<const N: usize>(mut self, words: [&str; N]) -> Self {
        self.plan.words.extend(words.iter().map(OsString::from));
        self
    }

    pub(super) fn work_tree(mut self, path: &Path) -> Self {
        self.plan.work_tree = Some(path.to_path_buf());
        self
    }

    pub(super) fn index(mut self, path: &Path) -> Self {
        self.plan.index = Some(path.to_path_buf());
        self
    }

    /// A directory of objects that are read, and never written to.
    pub(super) fn alternate(mut self, objects: &Path) -> Self {
        self.plan.alternate = Some(objects.to_path_buf());
        self
    }

    /// The directory that objects are written to, instead of that of the git directory.
    pub(super) fn objects(mut self, objects: &Path) -> Self {
        self.plan.objects = Some(objects.to_path_buf());
        self
    }

    /// The name and the address that a commit gets, instead of ours.
    pub(super) fn identity(mut self, identity: Option<(String, String)>) -> Self {
        self.plan.identity = identity;
        self
    }

    /// An ignore file that counts less than those of the repository.
    pub(super) fn excludes(mut self, file: Option<PathBuf>) -> Self {
        self.plan.excludes = file;
        self
    }

    /// More settings, which win over ours only where ours say nothing.
    pub(super) fn settings(mut self, settings: &[String]) -> Self {
        self.plan.settings.extend_from_slice(settings);
        self
    }

    pub(super) fn say(mut self, bytes: Vec<u8>) -> Self {
        self.say = GitInput::Bytes(Arc::new(bytes));
        self
    }

    pub(super) fn write(
        mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
    ) -> Self {
        self.say = GitInput::Written(Box::new(write));
        self
    }

    /// Only what git prints from that byte on is wanted.
    pub(super) fn skip(mut self, bytes: u64) -> Self {
        self.plan.skipped_bytes = bytes;
        self
    }

    /// The rest of what git prints is not wanted.
    pub(super) fn cut_at(mut self, bytes: usize) -> Self {
        self.plan.output_bytes_max = bytes;
        self.plan.is_cut_allowed = true;
        self
    }

    pub(super) fn durable(mut self, is_durable: bool) -> Self {
        self.plan.is_durable = is_durable;
        self
    }

    /// The files that it writes are for nobody else, until they are given another mode.
    pub(super) fn private(mut self, is_private: bool) -> Self {
        self.plan.is_private = is_private;
        self
    }

    /// The output of git, if it succeeds.
    pub(super) async fn out(self) -> Result<Vec<u8>, GitError> {
        let command = self.shown();
        let said = self.said().await?;
        if said.code == Some(0) || said.is_cut {
            return Ok(said.out);
        }
        Err(GitError::Git { command, said: said.complaint })
    }

    /// The one word that git prints, if it succeeds.
    pub(super) async fn text(self) -> Result<String, GitError> {
        let out = self.out().await?;
        Ok(String::from_utf8_lossy(&out).trim_end().to_owned())
    }

    /// Runs git to its end, or ends it.
    pub(super) async fn said(self) -> Result<GitOutput, GitError> {
        let (mut call, mut left) = (self, TRIES_MAX);
        loop {
            let again = call.again();
            let said = call.once().await?;
            left -= 1;
            match again {
                Some(again) if left > 0 && said.lost_its_place() => call = again,
                _ => return Ok(said),
            }
        }
    }

    /// The same call once more; none if its input is said only once.
    fn again(&self) -> Option<Self> {
        let say = match &self.say {
            GitInput::Nothing => GitInput::Nothing,
            GitInput::Bytes(bytes) => GitInput::Bytes(bytes.clone()),
            GitInput::Written(_) => return None,
        };
        Some(Self { plan: self.plan.clone(), say })
    }

    async fn once(self) -> Result<GitOutput, GitError> {
        let (shown, time_max) = (self.shown(), self.plan.runner.time_max);
        match tokio::time::timeout(time_max, self.run()).await {
            Ok(said) => said,
            // Dropping the run has ended the process.
            Err(_) => Err(GitError::Slow { command: shown, seconds: time_max.as_secs() }),
        }
    }

    /// For people: the words, without what is the same in each run.
    fn shown(&self) -> String {
        let words: Vec<_> = self.plan.words.iter().map(|word| word.to_string_lossy()).collect();
        let mut text = format!("git {}", words.join(" "));
        if let Some((end, _)) = text.char_indices().nth(200) {
            text.truncate(end);
        }
        text
    }

    fn command(&self) -> Command {
        let mut command = match self.plan.is_private {
            true => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", PRIVATELY]).arg(&self.plan.runner.program);
                shell
            }
            false => Command::new(&self.plan.runner.program),
        };
        command.env_clear().envs(ENVIRONMENT.iter().copied());
        command.env("PATH", search_path());
        command.env("HOME", &self.plan.runner.home).env("XDG_CONFIG_HOME", &self.plan.runner.home);
        command.env("GIT_DIR", &self.plan.git_dir);
        if let Some(work_tree) = &self.plan.work_tree {
            // Its names are looked up from there, too, when an index is written: what was changed in the index's own second
            // has to be looked into.
            command.env("GIT_WORK_TREE", work_tree).arg("-C").arg(work_tree);
        }
        if let Some(index) = &self.plan.index {
            command.env("GIT_INDEX_FILE", index);
        }
        if let Some(alternate) = &self.plan.alternate {
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(alternate));
        }
        if let Some(objects) = &self.plan.objects {
            command.env("GIT_OBJECT_DIRECTORY", objects);
        }
        if let Some((name, email)) = &self.plan.identity {
            command.env("GIT_AUTHOR_NAME", name).env("GIT_COMMITTER_NAME", name);
            command.env("GIT_AUTHOR_EMAIL", email).env("GIT_COMMITTER_EMAIL", email);
        }
        let durable = if self.plan.is_durable { DURABLE } else { &[] };
        let ours = SETTINGS.iter().chain(durable).copied();
        for setting in self.plan.settings.iter().map(String::as_str).chain(ours) {
            command.arg("-c").arg(setting);
        }
        if let Some(file) = &self.plan.excludes {
            let mut setting = OsString::from("core.excludesFile=");
            setting.push(file);
            command.arg("-c").arg(setting);
        }
        command.arg("--no-pager").args(&self.plan.words);
        command.current_dir(&self.plan.runner.home).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    async fn run(self) -> Result<GitOutput, GitError> {
        let shown = self.shown();
        let no_git = |why| GitError::NoGit { program: self.plan.runner.program.clone(), why };
        let (attended, complaints, complain) = self.plan.runner.runs.begin(&self.plan.git_dir)?;
        // Our own end of it is closed with what git is started by.
        let mut child = self.command().stderr(complain).spawn().map_err(no_git)?;
        let group = ProcessGroup::of(&child);
        if self.plan.runner.is_background {
            group.give_way();
        }
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both were asked for")
        };
        let (bytes_max, is_cut_allowed) = (self.plan.output_bytes_max, self.plan.is_cut_allowed);
        let skipped_bytes = self.plan.skipped_bytes;
        let reading = async {
            let read = read_bounded(output, skipped_bytes, bytes_max).await;
            if matches!(&read, Ok((_, true))) {
                group.end();
            }
            read
        };
        // Whoever is still being told something has somebody to wait for: us.
        let stuck_max = match self.say {
            GitInput::Written(_) => Duration::MAX,
            GitInput::Nothing | GitInput::Bytes(_) => self.plan.runner.stuck_max,
        };
        let progress = &self.plan.runner.progress;
        let talk =
            async { tokio::join!(write(input, self.say), reading, read_complaint(complaints, progress)) };
        let stuck = until_stuck(group.number(), stuck_max, |bytes| progress.moved(bytes));
        let (wrote, out, complaint) = tokio::select! {
            talked = talk => talked,
            () = stuck => {
                return Err(GitError::Stuck { command: shown, seconds: self.plan.runner.stuck_max.as_secs() });
            }
        };
        let status = child.wait().await.map_err(no_git)?;
        group.forget();
        attended.is_over();
        progress.run_over();
        let (out, is_cut) = out.map_err(no_git)?;
        if is_cut && !is_cut_allowed {
            return Err(GitError::TooMuch { command: shown, bytes_max });
        }
        let complaint = complaint.map_err(no_git)?;
        let mut complaint = String::from_utf8_lossy(&complaint).trim().to_owned();
        let mut code = status.code();
        // What we could not write is told if git itself has nothing to complain about; it closes the pipe when it has.
        if let (Err(why), true) = (wrote, complaint.is_empty() && !is_cut) {
            complaint = why.to_string();
            code = None;
        }
        if complaint.is_empty() && !status.success() {
            complaint = status.to_string();
        }
        Ok(GitOutput { code, out, complaint, is_cut })
    }
}

fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| PATH_FALLBACK.into())
}

/// Git as a path; its name, if it is nowhere: then the start says so. Who starts a program by its name, with a `PATH` of its own, is
/// copied whole for it, and every directory is tried, each time.
pub(super) fn program_at(named: &Path) -> PathBuf {
    find_program(named, &search_path()).unwrap_or_else(|| named.to_path_buf())
}

/// Git and what it has started itself, ended together. Zero: it has ended.
struct ProcessGroup(AtomicI32);

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        Self(AtomicI32::new(child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or(0)))
    }

    fn number(&self) -> i32 {
        self.0.load(Relaxed)
    }

    /// A git that has ended already needs no less.
    fn give_way(&self) {
        let _ =
            rustix::process::setpriority_process(rustix::process::Pid::from_raw(self.number()), BACKGROUND);
    }

    fn end(&self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.number()) {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }

    /// Its number may be somebody else's from now on.
    fn forget(&self) {
        self.0.store(0, Relaxed);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.end();
    }
}

/// A path in a list of paths, as git reads it: a colon in it ends nothing.
fn quoted(path: &Path) -> OsString {
    let mut text = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', *byte]),
            b'\n' => text.extend_from_slice(b"\\n"),
            byte => text.push(*byte),
        }
    }
    text.push(b'"');
    OsString::from_vec(text)
}

async fn write(mut to: ChildStdin, say: GitInput) -> io::Result<()> {
    match say {
        GitInput::Nothing => Ok(()),
        GitInput::Bytes(bytes) => to.write_all(&bytes).await,
        GitInput::Written(write) => {
            let mut to = std::io::BufWriter::new(std::fs::File::from(to.into_owned_fd()?));
            let writing = tokio::task::spawn_blocking(move || {
                write(&mut to)?;
                to.flush()
            });
            writing.await.map_err(io::Error::other)?
        }
    }
}

/// The beginning of what git complains about. Lines with counts are taken out and told on as numbers; the rest is read and dropped, so
/// that nobody waits.
async fn read_complaint(mut from: impl AsyncRead + Unpin, progress: &ProgressSender) -> io::Result<Vec<u8>> {
    let (mut kept, mut line, mut bytes) = (Vec::new(), Vec::new(), [0; 1024]);
    loop {
        let read = from.read(&mut bytes).await?;
        for byte in &bytes[..read] {
            line.push(*byte);
            // A line that is replaced by the next one ends otherwise.
            if !matches!(byte, b'\n' | b'\r') && line.len() < COMPLAINT_BYTES_MAX {
                continue;
            }
            match counted(&line) {
                Some((done, total)) => progress.files(done, Some(total)),
                None => kept.extend_from_slice(&line),
            }
            kept.truncate(COMPLAINT_BYTES_MAX);
            line.clear();
        }
        if read == 0 {
            kept.extend_from_slice(&line);
            kept.truncate(COMPLAINT_BYTES_MAX);
            return Ok(kept);
        }
    }
}

/// The beginning of what is said after so many bytes, and whether there was more. The rest is read and dropped, so that nobody waits.
async fn read_bounded(
    mut from: impl AsyncRead + Unpin,
    skipped_bytes: u64,
    bytes_max: usize,
) -> io::Result<(Vec<u8>, bool)> {
    if skipped_bytes > 0 {
        tokio::io::copy(&mut (&mut from).take(skipped_bytes), &mut tokio::io::sink()).await?;
    }
    let mut kept = Vec::new();
    (&mut from).take(bytes_max as u64).read_to_end(&mut kept).await?;
    let mut byte = [0];
    let is_cut = kept.len() == bytes_max && from.read(&mut byte).await? > 0;
    Ok((kept, is_cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_once_and_then_started_by_its_path() {
        let git = program_at(Path::new("git"));
        assert!(git.is_absolute() && git.ends_with("git"), "{git:?}");
        let made = Path::new("./made/by/somebody/git");
        assert_eq!(program_at(made), made);
        let nowhere = Path::new("no-such-program-of-anybody");
        assert_eq!(program_at(nowhere), nowhere, "the start says that it is not there");
    }
}
