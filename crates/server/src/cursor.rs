//! Cursors: where a page ended, as a text that means nothing to anybody else. Each list takes only its own.

use crate::problem::{ApiError, ApiResult};
use api::Code;
use engine::WhichApprovals;
use kernel::{Address, ApprovalId, Moment, SessionId};

pub(crate) fn sessions(at: (Moment, SessionId)) -> String {
    format!("s{:x}.{}", at.0.0, at.1)
}

pub(crate) fn read_sessions(cursor: Option<&str>) -> ApiResult<Option<(Moment, SessionId)>> {
    read(cursor, |text| {
        let (moment, session) = text.strip_prefix('s')?.split_once('.')?;
        Some((Moment(small(moment)?), session.parse().ok()?))
    })
}

pub(crate) fn heads(place: u64) -> String {
    format!("h{place:x}")
}

pub(crate) fn read_heads(cursor: Option<&str>) -> ApiResult<u64> {
    Ok(read(cursor, |text| small(text.strip_prefix('h')?))?.unwrap_or(0))
}

pub(crate) fn rows(place: u64) -> String {
    format!("w{place:x}")
}

pub(crate) fn read_rows(cursor: Option<&str>) -> ApiResult<Option<u64>> {
    read(cursor, |text| small(text.strip_prefix('w')?))
}

pub(crate) fn search(place: u64) -> String {
    format!("f{place:x}")
}

pub(crate) fn read_search(cursor: Option<&str>) -> ApiResult<Option<u64>> {
    read(cursor, |text| small(text.strip_prefix('f')?))
}

/// Open questions are in another order than settled ones, so each choice has cursors of its own.
pub(crate) fn approvals(which: WhichApprovals, at: (Moment, ApprovalId)) -> String {
    format!("{}{:x}.{}", approvals_mark(which), at.0.0, at.1)
}

pub(crate) fn read_approvals(
    which: WhichApprovals,
    cursor: Option<&str>,
) -> ApiResult<Option<(Moment, ApprovalId)>> {
    read(cursor, |text| {
        let (moment, approval) = text.strip_prefix(approvals_mark(which))?.split_once('.')?;
        Some((Moment(small(moment)?), approval.parse().ok()?))
    })
}

fn approvals_mark(which: WhichApprovals) -> &'static str {
    match which {
        WhichApprovals::Open => "qo",
        WhichApprovals::Settled => "qs",
        WhichApprovals::All => "qa",
    }
}

/// An address is long enough; its `%` would be escaped once more in a query, so another mark stands for it.
pub(crate) fn bindings(at: &Address) -> String {
    format!("b{}", at.to_string().replace('%', "!"))
}

pub(crate) fn read_bindings(cursor: Option<&str>) -> ApiResult<Option<Address>> {
    read(cursor, |text| text.strip_prefix('b')?.replace('!', "%").parse().ok())
}

/// In order of their handles, which are plain.
pub(crate) fn people(handle: &str) -> String {
    format!("p{handle}")
}

pub(crate) fn read_people(cursor: Option<&str>) -> ApiResult<Option<String>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    read(cursor, |text| {
        let handle = text.strip_prefix('p')?;
        let fits = handle.len() <= api::LOGIN_LENGTH_MAX && handle.chars().all(is_plain);
        fits.then(|| handle.to_owned())
    })
}

pub(crate) fn audit(entry: u64) -> String {
    format!("a{entry:x}")
}

pub(crate) fn read_audit(cursor: Option<&str>) -> ApiResult<Option<u64>> {
    read(cursor, |text| small(text.strip_prefix('a')?))
}

pub(crate) fn outbox(outgoing: u64) -> String {
    format!("o{outgoing:x}")
}

pub(crate) fn read_outbox(cursor: Option<&str>) -> ApiResult<u64> {
    Ok(read(cursor, |text| small(text.strip_prefix('o')?))?.unwrap_or(0))
}

/// A number that every database can hold.
fn small(hex: &str) -> Option<u64> {
    u64::from_str_radix(hex, 16).ok().filter(|number| *number <= api::NUMBER_MAX)
}

fn read<T>(cursor: Option<&str>, parse: impl Fn(&str) -> Option<T>) -> ApiResult<Option<T>> {
    let Some(text) = cursor else { return Ok(None) };
    let error = || ApiError::new(Code::BadCursor, "no page of this list ended like this").at("cursor");
    parse(text).map(Some).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_reads_its_own_cursors_and_no_others() {
        let at = (Moment(7), SessionId::from_bits(9));
        let address: Address = "api:a%2Fb/%C3%A9".parse().unwrap();
        let texts = [sessions(at), heads(3), bindings(&address)];
        assert_eq!(read_sessions(Some(&texts[0])).unwrap(), Some(at));
        assert_eq!(read_heads(Some(&texts[1])).unwrap(), 3);
        assert_eq!(read_bindings(Some(&texts[2])).unwrap(), Some(address));
        assert_eq!(read_rows(Some(&rows(3))).unwrap(), Some(3));
        assert!(read_rows(Some(&texts[1])).is_err() && read_heads(Some(&rows(3))).is_err());
        assert!(read_sessions(Some(&texts[1])).is_err());
        assert!(read_heads(Some(&texts[2])).is_err());
        assert!(read_bindings(Some(&texts[0])).is_err());
        assert!(read_heads(Some("hffffffffffffffff")).is_err());
        let asked = (Moment(8), ApprovalId::from_bits(1));
        let question = approvals(WhichApprovals::Settled, asked);
        assert_eq!(read_approvals(WhichApprovals::Settled, Some(&question)).unwrap(), Some(asked));
        assert!(
            read_approvals(WhichApprovals::Open, Some(&question)).is_err()
                && read_search(Some(&question)).is_err()
        );
        assert_eq!(read_people(Some(&people("ann"))).unwrap().as_deref(), Some("ann"));
        assert_eq!(read_audit(Some(&audit(17))).unwrap(), Some(17));
        assert!(read_people(Some("pa/b")).is_err() && read_audit(Some(&heads(3))).is_err());
    }
}
