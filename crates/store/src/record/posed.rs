//! The stored form of what a question's answers are judged by. A permission that anybody may answer has none.

use super::{Text, Unreadable, decode, encode};
use kernel::{Asks, Grantee, GroupId, PersonId, Posed, RuleId};
use serde::{Deserialize, Serialize};

/// The stored form; none for a permission that whoever may answer in the session may answer.
pub fn encode_posed(posed: &Posed) -> Option<Vec<u8>> {
    PosedRecord::of(posed).map(|record| encode(&record))
}

/// As it was stored.
pub fn decode_posed(bytes: Option<&[u8]>) -> Result<Posed, Unreadable> {
    let Some(bytes) = bytes else { return Ok(Posed::default()) };
    decode::<PosedRecord>("question", bytes).map(Posed::from)
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PosedRecord {
    asks: AsksRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    only: Option<OnlyRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum AsksRecord {
    Permission {},
    Choice { options: u16 },
    Words {},
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OnlyRecord {
    rule: Text<RuleId>,
    who: WhoRecord,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum WhoRecord {
    Person { person: Text<PersonId> },
    Group { group: Text<GroupId> },
    Org {},
}

impl PosedRecord {
    pub(super) fn of(posed: &Posed) -> Option<Self> {
        if *posed == Posed::default() {
            return None;
        }
        let asks = match posed.asks {
            Asks::Permission => AsksRecord::Permission {},
            Asks::Choice { options } => AsksRecord::Choice { options },
            Asks::Words => AsksRecord::Words {},
        };
        let only = posed.only.map(|(rule, who)| OnlyRecord { rule: Text(rule), who: who.into() });
        Some(Self { asks, only })
    }
}

impl From<PosedRecord> for Posed {
    fn from(PosedRecord { asks, only }: PosedRecord) -> Self {
        let asks = match asks {
            AsksRecord::Permission {} => Asks::Permission,
            AsksRecord::Choice { options } => Asks::Choice { options },
            AsksRecord::Words {} => Asks::Words,
        };
        Self { asks, only: only.map(|only| (only.rule.0, only.who.into())) }
    }
}

impl From<Grantee> for WhoRecord {
    fn from(who: Grantee) -> Self {
        match who {
            Grantee::Person(person) => Self::Person { person: Text(person) },
            Grantee::Group(group) => Self::Group { group: Text(group) },
            Grantee::Org => Self::Org {},
        }
    }
}

impl From<WhoRecord> for Grantee {
    fn from(who: WhoRecord) -> Self {
        match who {
            WhoRecord::Person { person } => Self::Person(person.0),
            WhoRecord::Group { group } => Self::Group(group.0),
            WhoRecord::Org {} => Self::Org,
        }
    }
}
