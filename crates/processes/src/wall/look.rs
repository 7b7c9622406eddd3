//! The wall of a look at an agent's program: it is asked for its version before any session is there, for whoever wants to know.
//!
//! Agents may have written the program, so the look is behind a wall that lists in every layout: what is there for all sessions, to be read,
//! and places in memory. Nothing of a session, of a person, or of ours is there, and nothing that is written stays.

use std::path::{Path, PathBuf};

use kernel::{GroundPath, SessionId};

use super::{HiddenPath, ListedAccess, ListedPath, SessionWall, Wall, WallKind, WalledSession, new_root};
use crate::error::ProcessError;

impl Wall {
    /// The wall around a look at that program, which finds an empty home of that name. Where a wall cannot be had it goes without, as
    /// agents do.
    pub fn around_look(
        &self,
        program: &Path,
        home: &Path,
        locks: &Path,
    ) -> Result<SessionWall, ProcessError> {
        let nowhere = GroundPath::from("/");
        let session = SessionId::from_bits(0);
        let of = WalledSession { session, whose: "", directory: &nowhere, must: false };
        let around = self.keeping(&of, self.hidden(&of, home, locks), Vec::new(), None)?;
        if self.kind == WallKind::Off || self.listed.is_empty() {
            // Of a wall that lists nothing for anybody no list can be made.
            return Ok(around);
        }
        let mut listed = self.listed.clone();
        // It may have been installed after the server's start.
        listed.add_program(program, &self.homes());
        let hidden: Vec<PathBuf> = around.hide.iter().map(HiddenPath::name).collect();
        let is_scratch = |name: &Path| new_root::SCRATCH.iter().any(|place| name == Path::new(place));
        let is_listed = |listed: &ListedPath| {
            !hidden.iter().any(|hidden| listed.name().starts_with(hidden)) && !is_scratch(listed.name())
        };
        let to_read = |listed: ListedPath| ListedPath { access: ListedAccess::Read, ..listed };
        let paths = listed.paths.into_iter().filter(is_listed).map(to_read).collect();
        let in_memory =
            Some(self.home_name(home)).filter(|home| home.parent().is_some() && !is_scratch(home));
        let mut list = self.list_of(paths, in_memory);
        list.links = listed.links;
        Ok(SessionWall { list: Some(list), ..around })
    }
}
