//! The ids and the password that we choose ourselves.

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest id of opencode's that we put into a path.
const ID_BYTES_MAX: usize = 128;

/// A new conversation's id: random, so that nobody meets it by chance.
pub(super) fn session() -> io::Result<String> {
    Ok(format!("ses_{}", hex(&random::<16>()?)))
}

/// The password that opencode's server asks everybody for.
pub(super) fn password() -> io::Result<String> {
    Ok(hex(&random::<32>()?))
}

/// A new message's id. Opencode puts messages in order by their ids, so it is made as opencode makes its own: six bytes
/// of time and a counter, then something random.
pub(super) fn message() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let count = COUNTER.fetch_add(1, Ordering::Relaxed) & 0xfff;
    let time = u64::try_from(since.as_millis()).unwrap_or_default().wrapping_mul(0x1000).wrapping_add(count);
    // The time alone is enough to tell the messages of one session apart, as there is one turn at a time.
    let rest = random::<7>().unwrap_or_default();
    format!("msg_{}{}", hex(&time.to_be_bytes()[2..]), hex(&rest))
}

/// True if this is an id of opencode's of that kind (`ses`, `msg`, `per`, `que`) and safe in a path.
pub(super) fn is_id(kind: &str, id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    id.starts_with(kind) && id.len() <= ID_BYTES_MAX && id.bytes().all(is_plain)
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_new_each_time_and_safe_in_a_path() {
        let (one, two) = (session().unwrap(), session().unwrap());
        assert_ne!(one, two);
        assert!(is_id("ses", &one) && is_id("msg", &message()));
        for id in ["", "nonsense", "ses/../x", "ses_ä", "ses_a b", &format!("ses_{}", "x".repeat(200))] {
            assert!(!is_id("ses", id), "{id}");
        }
    }

    #[test]
    fn later_messages_have_greater_ids() {
        // The counter begins again after 4096, by which time the clock has moved on.
        let ids: Vec<String> = (0..3).map(|_| message()).collect();
        assert!(ids.is_sorted(), "{ids:?}");
    }
}
