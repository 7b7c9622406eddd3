//! The sessions that are offered to somebody, as rows. What follows from them is the kernel's.

use crate::columns::{Columns, Id, int};
use crate::error::SqliteError;
use crate::people;
use crate::tx::{Pid, SqliteTx};
use crate::view::read_all;
use kernel::people::OffersToDrop;
use kernel::{OrgId, PersonId, SessionId};
use rusqlite::{Connection, Row, params};
use store::OfferRow;

macro_rules! offer {
    ($rest:literal) => {
        concat!(
            "SELECT s.id, f.person, t.person, o.at, o.until
             FROM offers o CROSS JOIN sessions s ON s.sid = o.sid
             CROSS JOIN persons f ON f.pid = o.owner CROSS JOIN persons t ON t.pid = o.heir WHERE ",
            $rest
        )
    };
}

pub(crate) const OF_SESSION: &str = offer!("o.sid = (SELECT sid FROM sessions WHERE id = ?1)");
pub(crate) const OF_OWNER: &str = offer!("o.owner = ?1");
pub(crate) const OF_HEIR: &str = offer!("o.heir = ?1");
pub(crate) const DROP_OF_OWNER: &str = "DELETE FROM offers WHERE owner = ?1";
pub(crate) const DROP_OF_HEIR: &str = "DELETE FROM offers WHERE heir = ?1";
pub(crate) const DROP_LAPSED: &str = "DELETE FROM offers WHERE until <= ?1";

pub(crate) fn of_session(db: &Connection, session: SessionId) -> Result<Option<OfferRow>, SqliteError> {
    Ok(read_all(db, OF_SESSION, params![session.stored()], offer_row)?.pop())
}

/// Those to or from somebody, in the order in which they were made.
pub(crate) fn of_person(db: &Connection, org: OrgId, person: PersonId) -> Result<Vec<OfferRow>, SqliteError> {
    let Some(somebody) = people::of(db, org, person)? else { return Ok(Vec::new()) };
    let mut all = read_all(db, OF_HEIR, params![somebody.pid], offer_row)?;
    all.extend(read_all(db, OF_OWNER, params![somebody.pid], offer_row)?);
    all.sort_by_key(|offer| (offer.at, offer.session));
    all.dedup();
    Ok(all)
}

fn offer_row(row: &Row<'_>) -> Result<OfferRow, SqliteError> {
    let row = Columns(row);
    let (session, from, to) = (row.id(0)?, row.id(1)?, row.id(2)?);
    Ok(OfferRow { session, from, to, at: row.moment(3)?, until: row.moment(4)? })
}

pub(crate) fn put(tx: &SqliteTx, offer: &OfferRow, owner: Pid, heir: Pid) -> Result<(), SqliteError> {
    tx.run(
        "INSERT OR REPLACE INTO offers (sid, owner, heir, at, until)
         SELECT sid, ?2, ?3, ?4, ?5 FROM sessions WHERE id = ?1",
        params![offer.session.stored(), owner, heir, int(offer.at.0), int(offer.until.0)],
    )
    .map(drop)
}

pub(crate) fn drop_those(tx: &SqliteTx, offers: OffersToDrop) -> Result<(), SqliteError> {
    match offers {
        OffersToDrop::One(session) => {
            let sql = "DELETE FROM offers WHERE sid = (SELECT sid FROM sessions WHERE id = ?1)";
            tx.run(sql, params![session.stored()])?;
        }
        OffersToDrop::Of(person) => {
            if let Some(somebody) = people::by_id(tx.db(), person)? {
                tx.run(DROP_OF_OWNER, params![somebody.pid])?;
                tx.run(DROP_OF_HEIR, params![somebody.pid])?;
            }
        }
        OffersToDrop::Lapsed(at) => {
            tx.run(DROP_LAPSED, params![int(at.0)])?;
        }
    }
    Ok(())
}
