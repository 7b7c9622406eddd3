//! Messages to a session, and the receipt that comes back.
//!
//! `NewMessage`, `To` and `MessageChange` are each one of a few forms. In the schema these are alternatives; when read,
//! all fields are looked at together, so that the problem names what is missing or too much.

use crate::object::{object, whole, whole_maybe};
use crate::{Address, At, Attached, EndWhy, IfNew, NewSession, Part, Waiting, Who};
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::{IntoParams, ToSchema};

/// To which session. There is no default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum To {
    /// This session and no other.
    Session(ToSession),
    /// Whatever session this conversation is bound to; a new one if there is none.
    Conversation(ToConversation),
    /// A new session, always.
    New(ToNew),
}

/// This session and no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToSession {
    /// The session.
    #[schema(pattern = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub session: String,
    /// The agent and model that it has to have: with another one the message is refused (`other_agent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub expect: Option<Expect>,
}

/// Whatever session this conversation is bound to; a new one if there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToConversation {
    /// The conversation's address.
    #[schema(value_type = Address)]
    pub conversation: String,
    /// Options of the session if there is none; ignored if there is, and the receipt says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub if_new: Option<IfNew>,
    /// The agent and model of the session if there is one: with another one the message is refused (`other_agent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub expect: Option<Expect>,
}

/// The agent and model that a session has to have now. What is left out may be any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The agent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    pub agent: Option<String>,
    /// The model, as it was named for the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128, pattern = "^[A-Za-z0-9][A-Za-z0-9._:/@+#=,\\[\\]-]*$")]
    pub model: Option<String>,
}

/// A new session, always.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToNew {
    /// The options it is made with, and the conversation that it takes over, if any.
    pub new: NewSession,
}

impl To {
    /// This session and no other.
    pub fn session(session: impl Into<String>) -> Self {
        Self::Session(ToSession { session: session.into(), expect: None })
    }

    /// Whatever session this conversation is bound to.
    pub fn conversation(conversation: impl Into<String>, if_new: Option<IfNew>) -> Self {
        Self::Conversation(ToConversation { conversation: conversation.into(), if_new, expect: None })
    }

    /// A new session.
    pub fn new_session(new: IfNew) -> Self {
        Self::New(ToNew { new: new.into() })
    }

    /// A new session that takes over this conversation.
    pub fn new_in(conversation: impl Into<String>, new: IfNew) -> Self {
        Self::New(ToNew { new: NewSession { conversation: Some(conversation.into()), ..new.into() } })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToFields {
    #[serde(default, deserialize_with = "present")]
    session: Option<String>,
    #[serde(default, deserialize_with = "present")]
    conversation: Option<String>,
    #[serde(default, deserialize_with = "present_object")]
    if_new: Option<IfNew>,
    #[serde(default, deserialize_with = "present_object")]
    expect: Option<Expect>,
    #[serde(default, deserialize_with = "present_object")]
    new: Option<NewSession>,
}

impl<'de> Deserialize<'de> for To {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields: ToFields = object(deserializer)?;
        let expects = fields.expect.is_some();
        match (fields.session, fields.conversation, fields.new, fields.if_new) {
            (Some(session), None, None, None) => {
                Ok(Self::Session(ToSession { session, expect: fields.expect }))
            }
            (None, Some(conversation), None, if_new) => {
                Ok(Self::Conversation(ToConversation { conversation, if_new, expect: fields.expect }))
            }
            (None, None, Some(new), None) if !expects => Ok(Self::New(ToNew { new })),
            (None, None, Some(_), None) => Err(de::Error::custom(
                "`expect` goes with `conversation` and `session`: a new session is made as `new` says",
            )),
            (None, Some(_), Some(_), None) => Err(de::Error::custom(
                "name exactly one of `session`, `conversation` and `new`; a new session takes a conversation over that is named in `new`",
            )),
            (Some(_), None, None, Some(_)) => Err(de::Error::custom(
                "`if_new` goes with `conversation`: a session that is named is there already",
            )),
            _ => Err(de::Error::custom("name exactly one of `session`, `conversation` and `new`")),
        }
    }
}

/// A message on its way in: where to, and its words as one text or as parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum NewMessage {
    /// One text.
    Text(SayText),
    /// Several parts.
    Parts(SayParts),
}

/// A message that is one text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SayText {
    /// To which session.
    pub to: To,
    /// The words: at most 1 MiB in UTF-8, and not only white space.
    #[schema(min_length = 1, max_length = 1_048_576, pattern = "\\S")]
    pub text: String,
    /// The way it is to reach a session whose turn is under way; `queue` if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// The epoch of the scope that you saw: if it is another one by now, the message is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 2_147_483_647)]
    pub under: Option<u32>,
    /// Nobody sits in front of it: what the agent asks is answered at once, by rules and by the policy for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
}

/// A message of several parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SayParts {
    /// To which session.
    pub to: To,
    /// The parts: together at most 1 MiB of text in UTF-8, and 5 MiB of images and files. An agent reads the words as one text, with the
    /// files that are text, and gets everything else after them, in this order.
    #[schema(min_items = 1, max_items = 32)]
    pub parts: Vec<Part>,
    /// The way it is to reach a session whose turn is under way; `queue` if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// The epoch of the scope that you saw: if it is another one by now, the message is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 2_147_483_647)]
    pub under: Option<u32>,
    /// Nobody sits in front of it: what the agent asks is answered at once, by rules and by the policy for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
}

/// The way a message is to reach a session whose turn is under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// After everything that waits.
    #[default]
    Queue,
    /// The turn is stopped, then this comes first.
    Interrupt,
    /// Into the turn, if the agent takes words while it works; else after everything that waits.
    Steer,
}

impl NewMessage {
    /// One text.
    pub fn text(to: To, text: impl Into<String>) -> Self {
        Self::Text(SayText { to, text: text.into(), delivery: None, under: None, unattended: false })
    }

    /// The same, delivered so, and written for the scope of that epoch.
    #[must_use]
    pub fn delivered(mut self, how: Option<Delivery>, seen: Option<u32>) -> Self {
        let (Self::Text(SayText { delivery, under, .. }) | Self::Parts(SayParts { delivery, under, .. })) =
            &mut self;
        (*delivery, *under) = (how, seen);
        self
    }

    /// The way it is to be delivered, and the epoch of the scope that it was written for.
    pub fn delivery(&self) -> (Delivery, Option<u32>) {
        let (Self::Text(SayText { delivery, under, .. }) | Self::Parts(SayParts { delivery, under, .. })) =
            self;
        (delivery.unwrap_or_default(), *under)
    }

    /// The same, and nobody attends it.
    #[must_use]
    pub fn left_alone(mut self, alone: bool) -> Self {
        let (Self::Text(SayText { unattended, .. }) | Self::Parts(SayParts { unattended, .. })) = &mut self;
        *unattended = alone;
        self
    }

    /// True if nobody attends it.
    pub fn is_unattended(&self) -> bool {
        let (Self::Text(SayText { unattended, .. }) | Self::Parts(SayParts { unattended, .. })) = self;
        *unattended
    }

    /// Where to, and the parts.
    pub fn into_parts(self) -> (To, Vec<Part>) {
        match self {
            Self::Text(SayText { to, text, .. }) => (to, vec![Part::Text { text }]),
            Self::Parts(SayParts { to, parts, .. }) => (to, parts),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewMessageFields {
    to: To,
    #[serde(default, deserialize_with = "present")]
    text: Option<String>,
    #[serde(default, deserialize_with = "present")]
    parts: Option<Vec<Part>>,
    #[serde(default)]
    delivery: Option<Delivery>,
    #[serde(default, deserialize_with = "whole_maybe")]
    under: Option<u32>,
    #[serde(default)]
    unattended: bool,
}

impl<'de> Deserialize<'de> for NewMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let NewMessageFields { to, text, parts, delivery, under, unattended } = object(deserializer)?;
        match (text, parts) {
            (Some(text), None) => Ok(Self::Text(SayText { to, text, delivery, under, unattended })),
            (None, Some(parts)) => Ok(Self::Parts(SayParts { to, parts, delivery, under, unattended })),
            _ => Err(de::Error::custom("give exactly one of `text` and `parts`")),
        }
    }
}

/// A change of a message that has not been started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum MessageChange {
    /// Other words.
    Text(EditText),
    /// Other words, as parts.
    Parts(EditParts),
    /// Kept from being started, or let go again.
    Hold(Hold),
    /// Heard at once.
    Deliver(DeliverNow),
}

/// Other words for a waiting message. The images and files that go along with it stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditText {
    /// The words.
    #[schema(min_length = 1, max_length = 1_048_576, pattern = "\\S")]
    pub text: String,
    /// The revision you saw; if it is another one by now, somebody was faster.
    #[schema(maximum = 2_147_483_647)]
    pub revision: u32,
}

/// Other parts for a waiting message, in place of all that it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditParts {
    /// The parts.
    #[schema(min_items = 1, max_items = 32)]
    pub parts: Vec<Part>,
    /// The revision you saw; if it is another one by now, somebody was faster.
    #[schema(maximum = 2_147_483_647)]
    pub revision: u32,
}

/// Keeps a waiting message from being started, or lets it go again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// True if it is to be held.
    pub held: bool,
    /// Where it is released, which has to be said: `false` in the scope of now; `true` back in the one that it was written
    /// for, and takes the session along. That is a change of scope, and needs what such a change needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub there: Option<bool>,
}

/// Lets a waiting message be heard at once. If it is held it is released, in the scope of now; one that was written for another scope has to be
/// released first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliverNow {
    /// The way it is to be heard.
    pub delivery: DeliveryNow,
}

/// The way a waiting message is to be heard at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryNow {
    /// It is said into the turn under way; where nobody listens it goes on waiting as it was (`not_listening`).
    Steer,
    /// The turn under way is stopped, and it comes first.
    Interrupt,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageChangeFields {
    #[serde(default, deserialize_with = "present")]
    text: Option<String>,
    #[serde(default, deserialize_with = "present")]
    parts: Option<Vec<Part>>,
    #[serde(default, deserialize_with = "present_number")]
    revision: Option<u32>,
    #[serde(default, deserialize_with = "present")]
    held: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    there: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    delivery: Option<DeliveryNow>,
}

impl<'de> Deserialize<'de> for MessageChange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields: MessageChangeFields = object(deserializer)?;
        if let Some(delivery) = fields.delivery {
            let others = (&fields.text, &fields.parts, &fields.revision, &fields.held, &fields.there);
            return match others {
                (None, None, None, None, None) => Ok(Self::Deliver(DeliverNow { delivery })),
                _ => Err(de::Error::custom("`delivery` goes alone")),
            };
        }
        match (fields.text, fields.parts, fields.revision, fields.held) {
            (None, None, None, Some(held)) => Ok(Self::Hold(Hold { held, there: fields.there })),
            _ if fields.there.is_some() => Err(de::Error::custom("`there` goes with `held`")),
            (Some(text), None, Some(revision), None) => Ok(Self::Text(EditText { text, revision })),
            (None, Some(parts), Some(revision), None) => Ok(Self::Parts(EditParts { parts, revision })),
            (Some(_), _, None, _) | (_, Some(_), None, _) => {
                Err(de::Error::custom("other words need the `revision` that you saw"))
            }
            _ => Err(de::Error::custom("give `text` or `parts` with a `revision`, or `held`, or `delivery`")),
        }
    }
}

/// Reads a field that may be left out but not be null, as the schema says.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn present_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(d: D) -> Result<Option<T>, D::Error> {
    object(d).map(Some)
}

fn present_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    whole(deserializer).map(Some)
}

/// Options of asking for a receipt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MessageQuery {
    /// Seconds to wait for it to become final; 0, not at all, if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 0, maximum = 60)]
    pub wait: Option<u64>,
    /// True if the message's own words are to come along, and what is said about its images and files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<bool>,
}

/// The receipt, which the sender gets at once, and may ask for again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    /// The message.
    pub id: String,
    /// Its session.
    pub session: String,
    /// The person who said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
    /// The door by which it came in: `cli`, `browser` or `http`; none if that is not known, and in the answer that accepts it. There may be more one day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// Where it stands.
    pub state: ReceiptState,
    /// A stable word for why it is held, failed or refused: `asked`, `after_failure`, `other_scope`, `session_ended`, `expired`,
    /// `not_allowed`, `revoked`, `handed_over`, `interrupted`, `time_limit`, `gone`, `busy`, `transient`, `refused`. There may be more one day.
    /// Of a message whose sender may no longer prompt there, `not_allowed` says that it was refused while it waited, and `revoked`
    /// that it was stopped while it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Advice on going on, in words, where the state asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Why it is not being worked on, if it waits for something; not in the answer that accepts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// True if its session was made for it.
    pub new: bool,
    /// The session that its conversation had before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
    /// Agent or directory were named, and the session was there already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub if_new_ignored: bool,
    /// The number of times its words were replaced.
    pub revision: u32,
    /// The delivery that its sender wanted.
    pub delivery: Delivery,
    /// The epoch of the scope that it was written for, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// The turn that works on it, once one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The number of the fact that started the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// The number of the fact that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// The agent's answer in its turn, as far as there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The agent's own words for how it failed, or something else people should read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// The message's own words, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The images and files that go along with the message, if its words were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attached>,
    /// When it was accepted.
    pub accepted_at: At,
    /// When its state last changed.
    pub changed_at: At,
    /// Where to go from here.
    pub links: Links,
}

/// Where a message stands. The last five are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptState {
    /// It will be started.
    Waiting,
    /// It will not be started until somebody releases it.
    Held,
    /// The agent works on it.
    Running,
    /// The agent said that it has finished.
    Answered,
    /// It could not be done; `why` says more.
    Failed,
    /// It was stopped.
    Stopped,
    /// It was taken back.
    Withdrawn,
    /// It will never be started; `why` says more.
    Refused,
}

impl ReceiptState {
    /// True if it can never change again.
    pub fn is_final(self) -> bool {
        match self {
            Self::Waiting | Self::Held | Self::Running => false,
            Self::Answered | Self::Failed | Self::Stopped | Self::Withdrawn | Self::Refused => true,
        }
    }
}

/// The session that a conversation had before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Previous {
    /// The session.
    pub session: String,
    /// Why it ended; not there if it is open and the conversation was given to another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub why: Option<EndWhy>,
}

/// Where to go from here; paths on the same server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Links {
    /// This very thing.
    #[serde(rename = "self")]
    pub this: String,
    /// Its session.
    pub session: String,
    /// Its session's facts.
    pub facts: String,
}
