//! The wall around agents as the configuration has it, and its proof.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use anyhow::{Context, Result};
use processes::wall::{
    DataDirectory, HiddenPath, OsUser, ProofRequest, Wall, WallKind, WallProof, prove_wall,
};

use crate::config::{Config, WallBy, reference, user_directory};
use crate::exit::{CliError, Exit};
use crate::system;

/// Around the agents of a data directory, which is there.
pub(crate) fn around(config: &Config, data: &Path) -> Result<Arc<Wall>> {
    let table = &config.wall;
    let data = DataDirectory::of(data).with_context(|| data.display().to_string())?;
    let mut hide = table.hide.iter().map(|path| hidden(path)).collect::<Result<Vec<_>, _>>()?;
    // Where the commands of whoever runs us keep their tokens. Made before anybody needs it, so that it can be held: one
    // that an agent had made would be the agent's.
    if let Some(own) = user_directory() {
        // Who has no home to write to keeps no tokens there.
        let _ = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&own);
        hide.push(HiddenPath::of(own));
    }
    let mut people = std::collections::BTreeMap::new();
    for (handle, user) in &table.people {
        let os_user = OsUser::named(user).map_err(|why| {
            CliError::new(Exit::Usage, format!("wall.people.{handle}: {why}")).hint(
                "each line of [wall.people] is the handle of a person and the name of a user of this machine",
            )
        })?;
        people.insert(handle.clone(), os_user);
    }
    let kind = match table.kind {
        WallBy::Auto => WallKind::Auto,
        WallBy::Mounts => WallKind::Mounts,
        WallBy::Landlock => WallKind::Landlock,
        WallBy::Off => WallKind::Off,
    };
    Ok(Arc::new(Wall { kind, data: Some(data), hide, home: system::home(), people }))
}

fn hidden(path: &str) -> Result<HiddenPath, CliError> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let path = reference::in_home(&path.replace("{uid}", &uid));
    if path.is_absolute() && path.parent().is_some() {
        return Ok(HiddenPath::of(path));
    }
    Err(CliError::new(Exit::Usage, format!("wall.hide: {} cannot be hidden", path.display()))
        .hint("write paths from / or ~/, and not / itself"))
}

/// Tries the wall from inside an agent. `server` is the process that must stay out of its reach.
pub(crate) async fn prove(config: &Config, data: &Path, server: i32) -> Result<WallProof> {
    Ok(prove_wall(&proving(config, data, server)?).await)
}

fn proving(config: &Config, data: &Path, server: i32) -> Result<ProofRequest> {
    let exe = system::exe().context("our own program cannot be found")?;
    Ok(ProofRequest { exe, locks: data.join("attempts"), wall: around(config, data)?, server })
}

/// The wall of this server, which is tried before somebody else is let in.
#[derive(Debug)]
pub(crate) struct TriedWall(ProofRequest);

impl TriedWall {
    pub(crate) fn new(config: &Config, data: &Path) -> Result<Self> {
        Ok(Self(proving(config, data, std::process::id().cast_signed())?))
    }
}

impl engine::WallProver for TriedWall {
    fn prove(&self) -> Pin<Box<dyn Future<Output = engine::Proof> + Send + '_>> {
        Box::pin(async {
            let proof = prove_wall(&self.0).await;
            engine::Proof { proved: proof.proved, findings: proof.words() }
        })
    }
}
