//! A user of the operating system that an agent runs as in place of the server's.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Uid};
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

/// The numbers and names of that user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsUser {
    /// Its name.
    pub user: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    /// Its home.
    pub home: PathBuf,
}

/// Why nobody can be that user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchUser {
    #[error("there is no user {0:?} in /etc/passwd")]
    Unknown(String),
    #[error("the user {0:?} is root: an agent that is root has no wall around it")]
    Root(String),
    #[error("we may not become another user: start the server as root, or leave [wall.people] empty")]
    MayNot,
}

impl OsUser {
    /// The user of that name, if there is one and we may become it.
    pub fn named(user: &str) -> Result<Self, NoSuchUser> {
        let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
        let found = Self::in_files(user, &read("/etc/passwd"), &read("/etc/group"))?;
        let needed =
            CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::CHOWN | CapabilitySet::KILL;
        let has = rustix::thread::capabilities(None).map(|sets| sets.effective);
        if has.is_ok_and(|has| has.contains(needed)) { Ok(found) } else { Err(NoSuchUser::MayNot) }
    }

    fn in_files(user: &str, passwd: &str, group: &str) -> Result<Self, NoSuchUser> {
        let unknown = || NoSuchUser::Unknown(user.to_owned());
        let rows = |text: &str| {
            text.lines()
                .map(|line| line.split(':').map(str::to_owned).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        let row = rows(passwd).into_iter().find(|row| row[0] == user).ok_or_else(unknown)?;
        let number =
            |at: usize| row.get(at).and_then(|number| number.parse::<u32>().ok()).ok_or_else(unknown);
        let (uid, gid) = (number(2)?, number(3)?);
        if uid == 0 {
            return Err(NoSuchUser::Root(user.to_owned()));
        }
        let home = PathBuf::from(row.get(5).filter(|home| home.starts_with('/')).ok_or_else(unknown)?);
        let is_in =
            |row: &Vec<String>| row.get(3).is_some_and(|names| names.split(',').any(|name| name == user));
        let mut groups: Vec<u32> =
            rows(group).iter().filter(|row| is_in(row)).filter_map(|row| row[2].parse().ok()).collect();
        groups.push(gid);
        Ok(Self { user: user.to_owned(), uid, gid, groups, home })
    }

    /// True if both are one and the same to the operating system, which knows numbers and not names.
    pub fn is_same(&self, other: &Self) -> bool {
        self.uid == other.uid
    }

    /// Gives that user a file or directory of ours.
    pub fn chown(&self, path: &Path) -> io::Result<()> {
        std::os::unix::fs::lchown(path, Some(self.uid), Some(self.gid))
    }

    /// Gives that user a directory of ours with everything in it, the first time. Links are given, not followed; what
    /// belongs to that user already is not looked into again.
    pub fn chown_all(&self, root: &Path) -> io::Result<()> {
        if root.symlink_metadata()?.uid() == self.uid {
            return Ok(());
        }
        let mut left = vec![root.to_path_buf()];
        while let Some(path) = left.pop() {
            for entry in std::fs::read_dir(&path)? {
                let entry = entry?;
                match entry.file_type()?.is_dir() {
                    true => left.push(entry.path()),
                    false => self.chown(&entry.path())?,
                }
            }
            if path != root {
                self.chown(&path)?;
            }
        }
        // Last: whoever is killed before begins again.
        self.chown(root)
    }

    /// Becomes that user, for good. Only for a process with one thread.
    pub(super) fn become_user(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        rustix::thread::set_thread_groups(&groups)?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_with_all_groups() {
        let passwd = "root:x:0:0::/root:/bin/sh\nana:x:1000:1001::/home/ana:/bin/sh\n";
        let group = "users:x:100:bob,ana\nana:x:1001:\nroot:x:0:\n";
        let ana = OsUser::in_files("ana", passwd, group).unwrap();
        assert_eq!((ana.uid, ana.gid, ana.groups), (1000, 1001, vec![100, 1001]));
        assert_eq!(ana.home, Path::new("/home/ana"));
        assert_eq!(OsUser::in_files("bob", passwd, group), Err(NoSuchUser::Unknown("bob".to_owned())));
        assert_eq!(OsUser::in_files("root", passwd, group), Err(NoSuchUser::Root("root".to_owned())));
    }
}
