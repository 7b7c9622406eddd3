//! The wall around agents as the configuration has it, and its proof. `listed` is what is there for all of them where it lists,
//! `home_places` what one of them has of a person's home.

mod home_places;
mod listed;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use anyhow::{Context, Result};
use kernel::PersonId;
use processes::SpareSupervisor;
use processes::wall::{
    DataDirectory, HiddenPath, OsUser, PROOF_TRIES, ProofRequest, Unmapped, Wall, WallKind, WallLayout,
    WallProof, WorktreeRepositories, prove_wall,
};
use store_sqlite::SqliteStore;
use worktrees::WorktreeRecords;

use crate::config::agents::AgentTable;
use crate::config::{Config, WallBy, WallLayoutBy, reference, user_directory};
use crate::exit::{CliError, Exit};
use crate::system;
use home_places::home_places;

/// Those who may run as the server's own user, of which `host` is the machine's person. Root is everybody's, so it is for
/// nobody else, unless all are trusted.
pub(crate) fn unmapped(config: &Config, host: PersonId) -> Unmapped {
    if rustix::process::geteuid().is_root() && !config.trust_everyone {
        Unmapped::Only(host.to_string())
    } else {
        Unmapped::Anybody
    }
}

/// Checks that everybody in `[wall.people]` is there, under the name that never changes and is nobody else's: a handle is an
/// org's own, and may be given to another person in another one.
pub(crate) async fn check_people(config: &Config, store: &SqliteStore) -> Result<()> {
    if config.wall.people.is_empty() {
        return Ok(());
    }
    let orgs = store::People::orgs(store).await?;
    for name in config.wall.people.keys() {
        let mut found = Vec::new();
        for org in &orgs {
            let row = match name.parse::<PersonId>() {
                Ok(person) => store::People::person(store, org.org, person).await?,
                Err(_) => store::People::person_named(store, org.org, name.clone()).await?,
            };
            found.extend(row.map(|row| (row.person.to_string(), format!("{}/{}", org.name, row.handle))));
        }
        if !found.iter().any(|(id, _)| id == name) {
            return Err(not_an_id(name, &found).into());
        }
    }
    Ok(())
}

fn not_an_id(name: &str, found: &[(String, String)]) -> CliError {
    let hint = match found {
        [] => "`homing user ls` has the ids of those who are here".to_owned(),
        _ => found.iter().map(|(id, who)| format!("write {id} for {who}")).collect::<Vec<_>>().join(", or "),
    };
    let why = if found.is_empty() { "there is no such person" } else { "people are named by their ids here" };
    CliError::new(Exit::Usage, format!("wall.people.{name}: {why}")).hint(hint)
}

/// The users of people's sessions, each of them one person's own.
fn os_users(config: &Config) -> Result<BTreeMap<String, OsUser>, CliError> {
    let mut people: BTreeMap<String, OsUser> = BTreeMap::new();
    for (person, user) in &config.wall.people {
        let wrong = |why: String| CliError::new(Exit::Usage, format!("wall.people.{person}: {why}"));
        if person.parse::<PersonId>().is_err() {
            return Err(not_an_id(person, &[]));
        }
        let os_user = OsUser::named(user).map_err(|why| {
            wrong(why.to_string()).hint(
                "each line of [wall.people] is the id of a person and the name of a user of this machine",
            )
        })?;
        if let Some((other, _)) = people.iter().find(|(_, known)| known.is_same(&os_user)) {
            return Err(wrong(format!("{user:?} is the user of {other} already")).hint(
                "give each person a user of their own: people who share one reach each other's sessions",
            ));
        }
        people.insert(person.clone(), os_user);
    }
    Ok(people)
}

/// The kind of it.
pub(crate) fn kind(config: &Config) -> WallKind {
    match config.wall.kind {
        WallBy::Auto => WallKind::Auto,
        WallBy::Mounts => WallKind::Mounts,
        WallBy::Landlock => WallKind::Landlock,
        WallBy::Off => WallKind::Off,
    }
}

/// Around the agents of a data directory, which is there.
pub(crate) fn around(config: &Config, data: &Path, unmapped: Unmapped) -> Result<Arc<Wall>> {
    let table = &config.wall;
    let (given, data_path) = (data, data.canonicalize().with_context(|| data.display().to_string())?);
    let data = DataDirectory::of(&data_path).with_context(|| data_path.display().to_string())?;
    let mut hide = table.hide.iter().map(|path| hidden(path)).collect::<Result<Vec<_>, _>>()?;
    // Where the commands of whoever runs us keep their tokens. Made before anybody needs it, so that it can be held: one
    // that an agent had made would be the agent's.
    if let Some(own) = user_directory() {
        // Who has no home to write to keeps no tokens there.
        hide.push(HiddenPath::directory(own));
    }
    let people = os_users(config)?;
    let homes = people.values().map(|os_user| os_user.home.clone());
    let mut listed = listed::of(config, &data_path, homes.collect())?;
    // Sessions are told of it by the name that we were told.
    listed.add_links(&std::path::absolute(given)?);
    let repositories = Some(Arc::new(WorktreeRecords::of(&data_path)) as Arc<dyn WorktreeRepositories>);
    let layout = match table.layout {
        WallLayoutBy::Auto => WallLayout::Auto,
        WallLayoutBy::List => WallLayout::List,
        WallLayoutBy::Hide => WallLayout::Hide,
    };
    Ok(Arc::new(Wall {
        kind: kind(config),
        layout,
        listed,
        home_places: Vec::new(),
        repositories,
        data: Some(data),
        hide,
        home: system::home(),
        people,
        unmapped,
    }))
}

/// The wall around one of the agents, with what that has of the home of whoever runs the server.
pub(crate) fn of_agent(wall: &Arc<Wall>, config: &Config, name: &str, table: &AgentTable) -> Arc<Wall> {
    Arc::new(Wall { home_places: home_places(config, name, table), ..Wall::clone(wall) })
}

/// A name that ends with a slash is a directory's: it is made, if it is missing.
fn hidden(written: &str) -> Result<HiddenPath, CliError> {
    let path = path_of("hide", written)?;
    Ok(if written.ends_with('/') { HiddenPath::directory(path) } else { HiddenPath::of(path) })
}

/// A path as somebody wrote it under that key.
fn path_of(key: &str, written: &str) -> Result<PathBuf, CliError> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let path = reference::in_home(&written.replace("{uid}", &uid));
    if path.is_absolute() && path.parent().is_some() {
        return Ok(path);
    }
    let what = format!("wall.{key}: {} is no path that can stand here", path.display());
    Err(CliError::new(Exit::Usage, what).hint("write paths from / or ~/, and not / itself"))
}

/// Those behind a wall of one layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WallFor {
    /// The machine's person alone.
    One,
    /// Several people.
    Team,
}

/// The walls that there are: another one for a team, unless `[wall]` says that both are the same.
pub(crate) fn walls(config: &Config) -> &'static [WallFor] {
    match (config.wall.kind, config.wall.layout) {
        (WallBy::Off, _) | (_, WallLayoutBy::List | WallLayoutBy::Hide) => &[WallFor::Team],
        (_, WallLayoutBy::Auto) => &[WallFor::One, WallFor::Team],
    }
}

/// Tries the wall from inside an agent, each attack so often. `server` is the process that must stay out of its reach.
pub(crate) async fn prove(
    config: &Config,
    data: &Path,
    server: i32,
    whom: WallFor,
    tries: u32,
) -> Result<WallProof> {
    Ok(prove_as_used(ProofRequest { tries, ..proving(config, data, server, whom)? }).await)
}

/// Tries it with probes that begin as the agents of a server do: with a spare supervisor.
async fn prove_as_used(proving: ProofRequest) -> WallProof {
    let spare = SpareSupervisor::new(&proving.exe, proving.wall.kind);
    let proof = prove_wall(&ProofRequest { spare: Some(spare.clone()), ..proving }).await;
    spare.close().await;
    proof
}

fn proving(config: &Config, data: &Path, server: i32, whom: WallFor) -> Result<ProofRequest> {
    let exe = system::exe().context("our own program cannot be found")?;
    // A probe is nobody's session.
    let mut wall = Wall::clone(&*around(config, data, Unmapped::Anybody)?);
    // It tries what each of the agents has.
    wall.home_places =
        config.agents.iter().flat_map(|(name, table)| home_places(config, name, table)).collect();
    // It shall also say what gets through where nothing would be started for want of a wall.
    wall.layout = if wall.lists(whom == WallFor::Team) { WallLayout::List } else { WallLayout::Hide };
    let (wall, locks) = (Arc::new(wall), data.join("attempts"));
    let for_team = whom == WallFor::Team;
    Ok(ProofRequest { exe, locks, wall, server, tries: PROOF_TRIES, must: false, for_team, spare: None })
}

/// The wall of this server, which is tried before somebody else is let in, and those who are heard behind it.
#[derive(Debug)]
pub(crate) struct TriedWall {
    trying: ProofRequest,
    as_is: Wall,
}

impl TriedWall {
    pub(crate) fn new(config: &Config, data: &Path, unmapped: Unmapped) -> Result<Self> {
        let trying = proving(config, data, std::process::id().cast_signed(), WallFor::Team)?;
        let as_is = Wall { unmapped, ..Wall::clone(&trying.wall) };
        Ok(Self { trying, as_is })
    }
}

impl engine::WallProver for TriedWall {
    fn prove(&self) -> Pin<Box<dyn Future<Output = engine::Proof> + Send + '_>> {
        Box::pin(async {
            let proof = prove_as_used(self.trying.clone()).await;
            engine::Proof { proved: proof.proved, findings: proof.words() }
        })
    }

    fn refusal(&self, owner: PersonId, by: PersonId) -> Option<String> {
        self.as_is.refusal(&owner.to_string(), &by.to_string()).map(str::to_owned)
    }
}
