//! Calling back: the credential of its turn lies in a file of its session's own, and two variables say where.
//!
//! A kept process outlives the turn whose environment it was given; the file under the same name holds whatever is good
//! now. The commands of this program use both by themselves.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use engine::{CallBack, CallBackError, Secret};
use kernel::SessionId;

/// The files of all sessions, below one directory.
#[derive(Debug)]
pub(crate) struct TurnFiles {
    /// Where they lie.
    pub(crate) dir: PathBuf,
    /// Where the server is.
    pub(crate) url: String,
}

impl CallBack for TurnFiles {
    fn open(&self, session: SessionId, secret: &Secret) -> Result<Vec<(String, String)>, CallBackError> {
        let path = self.path(session);
        self.write(session, secret).map_err(|why| CallBackError(format!("{}: {why}", path.display())))?;
        let no_text = || CallBackError("the data directory's name is not text".to_owned());
        let path = path.to_str().ok_or_else(no_text)?.to_owned();
        Ok(vec![("HOMING_URL".to_owned(), self.url.clone()), ("HOMING_TOKEN_FILE".to_owned(), path)])
    }

    fn close(&self, session: SessionId) {
        // What stays is good for nothing: its turn is over. The directory stays, because a process that is kept has exactly
        // this one behind its wall, and would not see another of the same name.
        let _ = fs::remove_file(self.path(session));
    }
}

impl TurnFiles {
    fn path(&self, session: SessionId) -> PathBuf {
        self.dir.join(session.to_string()).join("token")
    }

    /// Whole or not at all, so that nobody reads half of one. It need not survive a power cut: its turn would not.
    fn write(&self, session: SessionId, secret: &Secret) -> io::Result<()> {
        let path = self.path(session);
        let new = path.with_extension("new");
        let mut file = self.create(session, &new)?;
        file.write_all(format!("{}\n", secret.reveal()).as_bytes())?;
        // Its agent may run as another user, to whom the directory belongs.
        let owner = fs::metadata(self.dir.join(session.to_string()))?;
        if owner.uid() != file.metadata()?.uid() {
            fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
        fs::rename(&new, &path)
    }

    /// A new file, for which its directory is mostly there and no other one in the way: a turn waits for this.
    fn create(&self, session: SessionId, new: &Path) -> io::Result<fs::File> {
        let create = || fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(new);
        match create() {
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                let dir = self.dir.join(session.to_string());
                fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
                create()
            }
            // Of a server that was killed in the midst of this.
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(new)?;
                create()
            }
            created => created,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Purpose;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_next_turns_credential_lies_in_the_same_place_and_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let files = TurnFiles { dir: dir.path().join("turns"), url: "http://127.0.0.1:1".to_owned() };
        let session = SessionId::from_bits(7);
        let secret = |byte| Secret::of_credential(Purpose::Turn, [byte; 32]);
        let first = files.open(session, &secret(1)).unwrap();
        let second = files.open(session, &secret(2)).unwrap();
        assert_eq!(first, second);
        assert_eq!(second[0], ("HOMING_URL".to_owned(), "http://127.0.0.1:1".to_owned()));
        let path = PathBuf::from(&second[1].1);
        assert_eq!(fs::read_to_string(&path).unwrap().trim(), secret(2).reveal());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        files.close(session);
        assert!(!path.exists());
    }
}
