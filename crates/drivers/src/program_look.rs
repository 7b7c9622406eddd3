//! A look at an agent's program: what it says when it is asked for its version.
//!
//! An agent may have written that file, so it is run as an agent is: behind a wall (`Wall::around_look`) and below a supervisor, with
//! bounds on time, words, memory and processes. Nothing of a session is there, and what it writes is gone with it.

use std::path::Path;
use std::time::Duration;

use kernel::{SessionId, TreeName};
use processes::{ProcessError, ProcessTree, TreeEvent, TreeExit, TreePlan};
use uuid::Uuid;

use crate::program::{ProgramConfig, make_directory};

/// The longest that a program may take to say its version.
const VERSION_WAIT: Duration = Duration::from_secs(20);
/// The longest that a supervisor may take to end what was asked. Dropped after that it goes on by itself.
const END_WAIT: Duration = Duration::from_secs(5);
/// The most that it may say. A version is one line; some print a notice before it.
const WORDS_BYTES_MAX: usize = 64 * 1024;
/// The memory of it and all that it starts: some are whole browsers of half a gigabyte.
const MEMORY_BYTES_MAX: u64 = 2 << 30;
/// Its processes, with their threads where a control group counts them.
const PROCESSES_MAX: u32 = 256;
/// Where a program stands whose home would be a session's own.
const NO_HOME: &str = "/tmp";
/// The part of a complaint that is shown.
const COMPLAINT_BYTES_MAX: usize = 300;
/// The remedy for whoever keeps programs in unusual places.
const HINT: &str =
    "it is asked behind the wall, without its home: `[wall] allow_read` says what else it needs";

/// The words that a program prints when it is started with these arguments, or why there are none.
pub(crate) async fn ask(config: &ProgramConfig, program: &Path, args: &[&str]) -> Result<String, String> {
    let asked = async {
        let mut tree = ProcessTree::start(&plan(config, program, args)?).await?;
        let heard = tokio::time::timeout(VERSION_WAIT, hear(&mut tree)).await;
        tree.kill();
        let heard = match heard {
            Ok(heard) => heard,
            Err(_) => Err(format!("it did not say its version within {} s", VERSION_WAIT.as_secs())),
        };
        if heard.is_err() {
            // Nothing of it goes on beside the next look.
            let _ = tokio::time::timeout(END_WAIT, until_over(&mut tree)).await;
        }
        Ok::<_, ProcessError>(heard)
    };
    asked.await.unwrap_or_else(|why| Err(why.to_string()))
}

fn plan(config: &ProgramConfig, program: &Path, args: &[&str]) -> Result<TreePlan, ProcessError> {
    let ProgramConfig { exe, locks, wall, .. } = config;
    make_directory(locks).map_err(|trouble| ProcessError::Failed(trouble.detail))?;
    let home = home(config);
    let mut env = config.env.clone();
    // It has one of its own, under the usual name.
    env.retain(|(name, _)| name != "TMPDIR" && name != "HOME");
    env.push(("HOME".to_owned(), home.to_owned()));
    let mut argv = vec![program.to_string_lossy().into_owned()];
    argv.extend(config.args.iter().cloned().chain(args.iter().map(|arg| (*arg).to_owned())));
    // It is no session's; the name is nobody else's.
    let tree = TreeName::of(SessionId::from_bits(Uuid::new_v4().as_u128()));
    Ok(TreePlan {
        env,
        group: config.group,
        closes_input: true,
        memory_bytes_max: Some(MEMORY_BYTES_MAX),
        processes_max: Some(PROCESSES_MAX),
        files_max: config.limits.files_max,
        wall: wall.around_look(program, Path::new(home), locks)?,
        ..TreePlan::new(exe.clone(), locks.clone(), tree, argv, "/")
    })
}

/// The home that it finds, empty.
pub(crate) fn home(config: &ProgramConfig) -> &str {
    if config.home.contains("{session}") { NO_HOME } else { &config.home }
}

async fn hear(tree: &mut ProcessTree) -> Result<String, String> {
    let (mut said, mut complained) = (Vec::new(), Vec::new());
    loop {
        let (into, bytes) = match tree.next().await {
            TreeEvent::Output(bytes) => (&mut said, bytes),
            TreeEvent::Errors(bytes) => (&mut complained, bytes),
            TreeEvent::Counted(_) | TreeEvent::Listed(_) => continue,
            TreeEvent::Exited(TreeExit { code: Some(0), .. }) => {
                return Ok(String::from_utf8_lossy(&said).into_owned());
            }
            TreeEvent::Exited(exit) => return Err(complaint(&complained, &exit)),
            TreeEvent::Lost => return Err("its supervisor is gone".to_owned()),
        };
        into.extend(bytes);
        if into.len() > WORDS_BYTES_MAX {
            return Err(format!(
                "it said more than {} KiB when asked for its version",
                WORDS_BYTES_MAX >> 10
            ));
        }
    }
}

fn complaint(complained: &[u8], exit: &TreeExit) -> String {
    let words = String::from_utf8_lossy(complained);
    let first = agent::bounded(words.lines().next().unwrap_or_default(), COMPLAINT_BYTES_MAX);
    let what = if first.is_empty() { exit.words() } else { first };
    format!("{what} ({HINT})")
}

async fn until_over(tree: &mut ProcessTree) {
    while !matches!(tree.next().await, TreeEvent::Exited(_) | TreeEvent::Lost) {}
}
