//! Searching what was said, in whatever the caller may see.

use crate::{ViewError, Views};
use kernel::{Moment, Number, Principal, SessionId, Turn};
use std::ops::Range;
use store::{FoundPassage, PassageKind, PassagesQuery, Seer, Wanted};

/// Something that was said, and found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundWords {
    /// Its place among everything that can be found, for the next page.
    pub place: u64,
    pub session: SessionId,
    pub turn: Turn,
    pub kind: PassageKind,
    /// The number of the fact that it begins with.
    pub number: Number,
    pub at: Moment,
    /// A part of the words.
    pub words: String,
    /// The first place in it that fits, in bytes.
    pub place_in_words: Range<usize>,
}

impl Views {
    /// The newest passages with these words, before a place; in one session, if one is named, which the caller has to see.
    pub async fn search(
        &self,
        by: &Principal,
        wanted: Wanted,
        session: Option<SessionId>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<FoundWords>, ViewError> {
        super::may_read(by, "session")?;
        if let Some(session) = session {
            self.seen(by, session).await?;
        }
        let query = PassagesQuery { by: Seer::of(by), wanted: wanted.clone(), session, before, limit };
        let found = self.ports.store.search(query).await?;
        Ok(found.into_iter().map(|found| shown(&wanted, found)).collect())
    }
}

/// The part of a passage that is shown. If the index is another version's, there may be no place that fits.
fn shown(wanted: &Wanted, found: FoundPassage) -> FoundWords {
    let FoundPassage { place, session, turn, passage } = found;
    let (words, place_in_words) = wanted.excerpt(&passage.words).unwrap_or_default();
    FoundWords {
        place,
        session,
        turn,
        kind: passage.kind,
        number: passage.first,
        at: passage.at,
        words,
        place_in_words,
    }
}
