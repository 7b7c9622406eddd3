//! The operating system as the engine meets it: its clock, fresh ids, and who we are.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use chacha20poly1305::Key;
use chacha20poly1305::aead::Generate;
use engine::{Clock, Mint};
use kernel::Moment;
use server::OwnProgram;
use sha2::{Digest, Sha256};

/// The system's clock.
#[derive(Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        now()
    }
}

/// Now.
pub(crate) fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Ids by time (UUID version 7) that only grow, even when the clock is set back.
#[derive(Debug, Default)]
pub(crate) struct MonotonicMint {
    last: Mutex<u128>,
}

impl Mint for MonotonicMint {
    fn bits(&self) -> u128 {
        let fresh = uuid::Uuid::now_v7().as_u128();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = fresh.max(last.saturating_add(1));
        *last
    }

    fn secret(&self) -> [u8; 32] {
        secret()
    }
}

/// 32 bytes from the system's generator.
pub(crate) fn secret() -> [u8; 32] {
    Key::generate().into()
}

/// The machine's name, for people and for addresses of its terminals.
pub(crate) fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

/// The handle of the machine's person in addresses: the name of the operating system's user, in plain letters.
pub(crate) fn handle() -> String {
    let name = user_in(
        &std::fs::read_to_string("/etc/passwd").unwrap_or_default(),
        rustix::process::getuid().as_raw(),
    );
    let name = name.or_else(|| std::env::var("USER").ok()).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let plain: String = name.chars().map(|c| if plain(c) { c } else { '-' }).collect();
    if plain.trim_matches('-').is_empty() { "owner".to_owned() } else { plain }
}

/// The home of whoever runs us. A service manager may have left out the variable.
pub(crate) fn home() -> PathBuf {
    let variable = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    variable.unwrap_or_else(|| {
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let home = field_in(&passwd, rustix::process::getuid().as_raw(), 5);
        PathBuf::from(home.unwrap_or_else(|| "/".to_owned()))
    })
}

fn user_in(passwd: &str, uid: u32) -> Option<String> {
    field_in(passwd, uid, 0)
}

fn field_in(passwd: &str, uid: u32, field: usize) -> Option<String> {
    let mut users = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let user = users.find(|fields| fields.get(2).is_some_and(|field| *field == uid.to_string()))?;
    user.get(field).map(|field| (*field).to_owned())
}

/// Our own program, which is also the supervisor and the scripted agent. On Linux this very file, even if an upgrade has
/// put another one under its name meanwhile: the two sides of a pipe should be of one version.
pub(crate) fn exe() -> io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

/// The program that we are, for whoever asks the server.
pub(crate) fn own_program() -> OwnProgram {
    OwnProgram {
        version: VERSION.to_owned(),
        build,
        exe: exe().unwrap_or_default(),
        file: std::env::current_exe().unwrap_or_default(),
        path: std::env::var("PATH").unwrap_or_default(),
    }
}

/// Our version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Pieces of our program that its build is told by, and the bytes of each. All of it would take a second to read, and a build that
/// differs anywhere differs in its head, where the linker leaves its own mark, or has moved everything behind the difference.
const BUILD_PIECES: u64 = 256;
const BUILD_PIECE_BYTES: u64 = 4_096;

/// The build that we are, so that two programs of one version can be told apart; empty if our file cannot be read.
pub(crate) fn build() -> String {
    let hashed = || -> io::Result<String> {
        let file = std::fs::File::open(exe()?)?;
        let length = file.metadata()?.len();
        let mut hash = Sha256::new_with_prefix(length.to_le_bytes());
        let step = (length / BUILD_PIECES).max(BUILD_PIECE_BYTES);
        let mut piece = [0; BUILD_PIECE_BYTES as usize];
        for at in (0..length).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let read = file.read_at(&mut piece, at)?;
            hash.update(&piece[..read]);
        }
        Ok(hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect())
    };
    hashed().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_only_grow() {
        let mint = MonotonicMint::default();
        let ids: Vec<u128> = (0..10_000).map(|_| mint.bits()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
        // The clock was set back by an hour: ids go on from where they were.
        *mint.last.lock().unwrap() += 1 << 110;
        let before = *mint.last.lock().unwrap();
        assert!(mint.bits() > before);
    }

    #[test]
    fn a_user_is_found_by_number() {
        let passwd = "root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\n";
        assert_eq!(user_in(passwd, 1000).as_deref(), Some("me"));
        assert_eq!(user_in(passwd, 7), None);
        assert_eq!(field_in(passwd, 1000, 5).as_deref(), Some("/home/me"));
    }
}
