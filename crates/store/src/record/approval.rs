//! The stored form of an approval: the terms its answers are judged by, its answer, and which approval, which title, or which words of
//! the agent a story fact has. A permission that anybody may answer has no terms to store; their column and field are called `posed`.

use super::{Text, Unreadable, decode, encode};
use kernel::{Answer, ApprovalForm, ApprovalId, ApprovalTerms, Grantee, GroupId, PersonId, RuleId};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The stored form; none for a permission that whoever may answer in the session may answer.
pub fn encode_terms(terms: &ApprovalTerms) -> Option<Vec<u8>> {
    TermsRecord::of(terms).map(|record| encode(&record))
}

/// As it was stored.
pub fn decode_terms(bytes: Option<&[u8]>) -> Result<ApprovalTerms, Unreadable> {
    let Some(bytes) = bytes else { return Ok(ApprovalTerms::default()) };
    decode::<TermsRecord>("approval", bytes).map(ApprovalTerms::from)
}

/// The stored form of an answer.
pub fn encode_answer(answer: &Answer) -> Vec<u8> {
    encode(&AnswerRecord::from(answer))
}

/// An answer as it was stored.
pub fn decode_answer(bytes: &[u8]) -> Result<Answer, Unreadable> {
    decode::<AnswerRecord>("answer", bytes).map(Answer::from)
}

/// The approval whose words a story fact has, if it has those of one.
pub fn approval_told(kind: &str, body: &[u8]) -> Option<ApprovalId> {
    #[derive(Deserialize)]
    struct QuestionBody {
        approval: Text<ApprovalId>,
    }
    let is_question = kind == "question";
    is_question
        .then(|| serde_json::from_slice::<QuestionBody>(body).ok())
        .flatten()
        .map(|told| told.approval.0)
}

/// The title that an agent gives its session with a story fact, if it gives one.
pub fn title_told(kind: &str, body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct TitleBody {
        title: String,
    }
    let told = (kind == "title").then(|| serde_json::from_slice::<TitleBody>(body).ok()).flatten();
    told.map(|told| told.title).filter(|title| !title.is_empty())
}

/// A piece of an agent's words, as a story fact tells it.
#[derive(Debug, Deserialize)]
pub struct TextTold<'a> {
    /// The run of words that it belongs to.
    pub part: u32,
    /// Its place in the run, in bytes.
    pub offset: u64,
    /// The words.
    #[serde(borrow)]
    pub text: Cow<'a, str>,
}

/// The piece of an agent's words that a story fact has, if it has one.
pub fn text_told<'a>(kind: &str, body: &'a [u8]) -> Option<TextTold<'a>> {
    (kind == "text").then(|| serde_json::from_slice(body).ok()).flatten()
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TermsRecord {
    asks: FormRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    only: Option<OnlyRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum FormRecord {
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

impl TermsRecord {
    pub(super) fn of(terms: &ApprovalTerms) -> Option<Self> {
        if *terms == ApprovalTerms::default() {
            return None;
        }
        let asks = match terms.form {
            ApprovalForm::Permission => FormRecord::Permission {},
            ApprovalForm::Choice { options } => FormRecord::Choice { options },
            ApprovalForm::Words => FormRecord::Words {},
        };
        let only = terms.only.map(|(rule, who)| OnlyRecord { rule: Text(rule), who: who.into() });
        Some(Self { asks, only })
    }
}

impl From<TermsRecord> for ApprovalTerms {
    fn from(TermsRecord { asks, only }: TermsRecord) -> Self {
        let form = match asks {
            FormRecord::Permission {} => ApprovalForm::Permission,
            FormRecord::Choice { options } => ApprovalForm::Choice { options },
            FormRecord::Words {} => ApprovalForm::Words,
        };
        Self { form, only: only.map(|only| (only.rule.0, only.who.into())) }
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

/// The answer to an approval.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AnswerRecord {
    Yes,
    No,
    Chose(u16),
    Said(String),
}

impl From<&Answer> for AnswerRecord {
    fn from(answer: &Answer) -> Self {
        match answer {
            Answer::Yes => Self::Yes,
            Answer::No => Self::No,
            Answer::Chose(option) => Self::Chose(*option),
            Answer::Said(words) => Self::Said(words.clone()),
        }
    }
}

impl From<AnswerRecord> for Answer {
    fn from(record: AnswerRecord) -> Self {
        match record {
            AnswerRecord::Yes => Self::Yes,
            AnswerRecord::No => Self::No,
            AnswerRecord::Chose(option) => Self::Chose(option),
            AnswerRecord::Said(words) => Self::Said(words),
        }
    }
}
