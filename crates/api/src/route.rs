//! Where a message would go, without sending one.

use crate::{Address, EndWhy, Expect, Invalid, Previous, Session};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The address of a sender's message. Exactly one of the three; a new session may take over a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RouteQuery {
    /// This session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub session: Option<String>,
    /// Whatever session this conversation is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<Address>)]
    pub conversation: Option<String>,
    /// A new session; say `true`. With a conversation, it takes that over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<bool>,
    /// The directory of the session if one is made; it is looked at as for a real one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 4_095, pattern = "^/[^\\u0000]*$")]
    pub directory: Option<String>,
    /// The agent that a session that is there has to have, as in `expect` of a message; with another one it would be refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    pub agent: Option<String>,
    /// The model that it has to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(max_length = 128, pattern = "^[A-Za-z0-9][A-Za-z0-9._:/@+#=,\\[\\]-]*$")]
    pub model: Option<String>,
}

impl RouteQuery {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        self.directory.as_deref().map_or(Ok(()), crate::check::directory)?;
        self.expect().as_ref().map_or(Ok(()), Expect::check)
    }

    /// The agent and model that a session that is there has to have.
    pub fn expect(&self) -> Option<Expect> {
        let Self { agent, model, .. } = self;
        let expect = Expect { agent: agent.clone(), model: model.clone() };
        Some(expect).filter(|expect| *expect != Expect::default())
    }
}

/// Where a message would go, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "route", rename_all = "snake_case")]
pub enum Explained {
    /// Into a session that exists.
    Existing {
        /// The session.
        session: Box<Session>,
        /// The session that this conversation had before this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Previous>,
        /// Why, in words.
        why: String,
    },
    /// Into a session that would be made for it.
    New {
        /// The conversation it would belong to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation: Option<String>,
        /// The session that this conversation had before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        previous: Option<Previous>,
        /// Why, in words.
        why: String,
    },
    /// Nowhere: it would be refused.
    Refused {
        /// The code that the refusal would have.
        code: crate::Code,
        /// Why the session ended, if that is the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended: Option<EndWhy>,
        /// Why, in words.
        why: String,
    },
}
