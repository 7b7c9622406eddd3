//! Signing in and out: a password or a link becomes a credential.

use crate::bounds::*;
use crate::check::{invalid, is_longer, plain_line};
use crate::object::object;
use crate::{At, Invalid, Secret};
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::ToSchema;

/// The name that somebody claims, and the proof: a password, or a link that they were given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum NewSignIn {
    /// By password.
    Password(PasswordSignIn),
    /// By link.
    Link(LinkSignIn),
}

/// Signing in by password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordSignIn {
    /// A handle or an e-mail address; with `ORG/` before it where several orgs have one like it.
    #[schema(max_length = 400)]
    pub login: String,
    /// The password.
    #[schema(value_type = String, format = Password, max_length = 1_024)]
    pub password: Secret,
    /// The program that signs in.
    #[serde(rename = "for")]
    pub purpose: SignInFor,
    /// Its name in the list of your credentials: a machine's name, say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$",
        nullable = false
    )]
    pub name: Option<String>,
}

/// Signing in by a link that works once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSignIn {
    /// The last part of the link.
    #[schema(value_type = String, format = Password, max_length = 200)]
    pub link: Secret,
    /// The program that signs in.
    #[serde(rename = "for")]
    pub purpose: SignInFor,
    /// Its name in the list of your credentials: a machine's name, say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$",
        nullable = false
    )]
    pub name: Option<String>,
}

/// The program that signs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignInFor {
    /// A browser: it gets a cookie.
    Browser,
    /// A command line: it gets a token.
    Cli,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignInFields {
    login: Option<String>,
    password: Option<Secret>,
    link: Option<Secret>,
    #[serde(rename = "for")]
    purpose: SignInFor,
    name: Option<String>,
}

impl<'de> Deserialize<'de> for NewSignIn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SignInFields { login, password, link, purpose, name } = object(deserializer)?;
        match (login, password, link) {
            (Some(login), Some(password), None) => {
                Ok(Self::Password(PasswordSignIn { login, password, purpose, name }))
            }
            (None, None, Some(link)) => Ok(Self::Link(LinkSignIn { link, purpose, name })),
            _ => Err(de::Error::custom("give `login` with `password`, or `link`")),
        }
    }
}

impl NewSignIn {
    /// The program that signs in, and its name.
    pub fn parts(&self) -> (SignInFor, Option<&str>) {
        match self {
            Self::Password(by) => (by.purpose, by.name.as_deref()),
            Self::Link(by) => (by.purpose, by.name.as_deref()),
        }
    }

    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        match self {
            Self::Password(by) if is_longer(&by.login, LOGIN_LENGTH_MAX) => {
                return invalid("login", format!("more than {LOGIN_LENGTH_MAX} characters"));
            }
            Self::Password(by) if is_longer(by.password.reveal(), PASSWORD_LENGTH_MAX) => {
                return invalid("password", format!("more than {PASSWORD_LENGTH_MAX} characters"));
            }
            Self::Link(by) if is_longer(by.link.reveal(), LINK_LENGTH_MAX) => {
                return invalid("link", format!("more than {LINK_LENGTH_MAX} characters"));
            }
            Self::Password(_) | Self::Link(_) => {}
        }
        plain_line("name", self.parts().1, NAME_LENGTH_MAX)
    }
}

/// Ways to sign in, besides by a password or a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignInWays {
    /// The identity provider, by what people call it; `/in/oidc` leads a browser there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub provider: Option<String>,
}

/// Somebody who is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignedIn {
    /// The person.
    pub person: String,
    /// The name that stands in their addresses.
    pub handle: String,
    /// For a command line: what to send as `Authorization: Bearer SECRET`. Shown this one time. A browser has its cookie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Password)]
    pub secret: Option<Secret>,
    /// Until when it is good; none if it has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<At>,
}
