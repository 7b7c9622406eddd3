//! Searching sessions: what a list is narrowed to, and the names that somebody may type for one.
//!
//! Whatever is compared here is of rows that the caller may see; a backend reads no others.

use crate::{Need, SessionRow, SessionsQuery, TitleBy, Which};
use kernel::{PersonId, SessionId};
use std::fmt::Display;

/// The most rows of a list that are looked at for one page of a search. What fits less often is found page by page by nobody:
/// a search is for what was going on lately.
pub const SEARCHED_MAX: usize = 10_000;

/// The fewest digits of an id that name something. Fewer would be in too many ids.
pub const NAME_DIGITS_MIN: usize = 4;

/// The sessions that a list is narrowed to. What is none is not asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Those of this agent.
    pub agent: Option<String>,
    /// Those that act in this directory or below it.
    pub directory: Option<String>,
    /// Those that do this.
    pub doing: Option<Doing>,
    /// Those with these words in their title, in whatever case.
    pub text: Option<String>,
    /// Those of this person.
    pub owner: Option<PersonId>,
    /// Those that are archived, or those that are not.
    pub archived: Option<bool>,
    /// The forks of this session.
    pub origin: Option<SessionId>,
    /// Those that need their reader for this.
    pub needs: Option<Need>,
}

/// The work of an open session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// A turn is under way.
    Running,
    /// Messages wait, and no turn is under way.
    Waiting,
    /// Neither.
    Dormant,
}

impl SessionFilter {
    /// True if it shows everything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if it shows this one.
    pub fn shows(&self, row: &SessionRow) -> bool {
        let Self { agent, directory, doing, text, owner, archived, origin, needs } = self;
        doing.is_none_or(|doing| doing == row.doing())
            && owner.is_none_or(|owner| owner == row.owner)
            && archived.is_none_or(|archived| archived == row.archived)
            && origin.is_none_or(|origin| row.origin.is_some_and(|of| of.session == origin))
            && needs.is_none_or(|need| row.attention().needs(need))
            && agent.as_ref().is_none_or(|agent| *agent == row.scope.agent)
            && directory.as_ref().is_none_or(|directory| row.scope.directory.is_under(directory))
            && text.as_ref().is_none_or(|text| {
                let title = row.title.as_deref().unwrap_or_default();
                title.to_lowercase().contains(&text.to_lowercase())
            })
    }
}

impl SessionsQuery {
    /// True if the list shows this one. What is archived is in a list only if that was asked for, or everything was.
    pub fn shows(&self, row: &SessionRow) -> bool {
        let is_wanted = match self.which {
            Which::Open => row.ended.is_none(),
            Which::Ended => row.ended.is_some(),
            Which::All => true,
        };
        let is_here = !row.archived || self.which == Which::All || self.filter.archived == Some(true);
        is_wanted && is_here && self.filter.shows(row)
    }
}

impl SessionRow {
    /// Its work; what has ended has none.
    fn doing(&self) -> Doing {
        match (self.awake, self.pending) {
            (true, _) => Doing::Running,
            (false, 0) => Doing::Dormant,
            (false, _) => Doing::Waiting,
        }
    }
}

/// A name as somebody types it: how an id begins or ends, with its prefix or without, or a title that a person gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedName {
    text: String,
    digits: Option<String>,
}

impl TypedName {
    /// The name of a thing whose ids have this prefix.
    pub fn new(prefix: &str, text: &str) -> Self {
        let bare = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')).unwrap_or(text);
        let is_digits = bare.len() >= NAME_DIGITS_MIN && bare.bytes().all(|c| c.is_ascii_alphanumeric());
        Self { text: text.to_owned(), digits: is_digits.then(|| bare.to_ascii_lowercase()) }
    }

    /// True if this id begins or ends so.
    pub fn is_of(&self, id: impl Display) -> bool {
        let Some(digits) = &self.digits else { return false };
        let id = id.to_string();
        let bare = id.split_once('_').map_or(id.as_str(), |(_, bare)| bare);
        bare.ends_with(digits.as_str()) || bare.starts_with(digits.as_str())
    }

    /// The title that it would be.
    pub fn title(&self) -> &str {
        &self.text
    }

    /// True if a session goes by this name.
    pub fn names(&self, row: &SessionRow) -> bool {
        let is_title = row.title_by == Some(TitleBy::Person) && row.title.as_deref() == Some(self.title());
        is_title || self.is_of(row.session)
    }
}
