//! Running copies of Homing, and the program that answers.

use crate::door::SharedDoor;
use crate::extract::{Caller, Json};
use crate::openapi::problems;
use crate::problem::ApiResult;
use crate::wire::at;
use api::{Node, Page, RunningProgram};
use axum::extract::State;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

problems! {
    NodesProblems = [RightMissing];
    ProgramProblems = [RightMissing, RoleTooLow, BoundElsewhere];
}

/// List nodes
#[utoipa::path(
    get, path = "/api/v1/nodes", tag = "house", operation_id = "nodes",
    responses((status = 200, description = "Every running copy of Homing.", body = Page<Node>), NodesProblems),
)]
pub(crate) async fn list(State(door): State<SharedDoor>, caller: Caller) -> ApiResult<Json<Page<Node>>> {
    let nodes = door.engine.views().nodes(&caller.by).await?;
    let items = nodes.into_iter().map(|row| Node {
        id: row.node.to_string(),
        term: row.term.0,
        host: row.host,
        pid: row.pid,
        since: at(row.since),
        url: row.url,
    });
    Ok(Json(Page { items: items.collect(), next: None }))
}

/// The program that this server is, as whoever started it knows it.
#[derive(Debug, Clone)]
pub struct OwnProgram {
    /// Its version.
    pub version: String,
    /// Its build. Made when somebody asks: it takes a look at the file.
    pub build: fn() -> String,
    /// The file that runs, whatever it is called by now.
    pub exe: PathBuf,
    /// The file that it was started from.
    pub file: PathBuf,
    /// Where it looks for agents.
    pub path: String,
}

impl OwnProgram {
    /// A program of which nothing is known.
    pub(crate) fn unknown() -> Self {
        let (version, path) = (env!("CARGO_PKG_VERSION").to_owned(), String::new());
        Self { version, build: String::new, exe: PathBuf::new(), file: PathBuf::new(), path }
    }

    /// True if another file has the name by now, or none. A program that runs cannot be written to, so the number of its file
    /// tells.
    fn is_replaced(&self) -> bool {
        let number = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino()));
        match (number(&self.exe), number(&self.file)) {
            (Ok(running), Ok(named)) => running != named,
            (Ok(_), Err(_)) => true,
            (Err(_), _) => false,
        }
    }
}

/// Show the program that answers
///
/// Its version and build, whether its file was replaced since it started, and by which `PATH` it looks for agents. It tells of
/// the machine, so it is for the person whose machine it is.
#[utoipa::path(
    get, path = "/api/v1/program", tag = "house", operation_id = "program",
    responses((status = 200, description = "The program.", body = RunningProgram), ProgramProblems),
)]
pub(crate) async fn program(
    State(door): State<SharedDoor>,
    caller: Caller,
) -> ApiResult<Json<RunningProgram>> {
    door.engine.views().may_see_figures(&caller.by)?;
    let own = door.config.program.clone();
    let look = tokio::task::spawn_blocking(move || RunningProgram {
        build: (own.build)(),
        replaced: own.is_replaced(),
        version: own.version,
        program: own.file.to_string_lossy().into_owned(),
        pid: std::process::id(),
        path: own.path,
    });
    Ok(Json(look.await.expect("a look at two files does not panic")))
}
