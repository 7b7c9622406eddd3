//! Credentials: what there is to see of them, and new ones. The secret of one is shown once.

use crate::bounds::*;
use crate::check::{handle, invalid, plain_line};
use crate::{At, Invalid, Right, Secret};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

/// The word for a credential that has no end.
const NEVER: &str = "never";

/// The purpose of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The file in the data directory.
    Machine,
    /// A browser's cookie.
    Browser,
    /// The one that `homing login` keeps.
    Cli,
    /// A token that somebody made for a program of theirs.
    Api,
    /// The one an agent may use to call back, while its turn lasts.
    Turn,
}

/// A credential, as far as it can be seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its id, which is not its secret.
    pub id: String,
    /// Whose it is.
    pub user: String,
    /// Its purpose.
    pub purpose: Purpose,
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its rights.
    pub rights: Vec<Right>,
    /// When it was made.
    pub made_at: At,
    /// Until when it is good; none if it has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<At>,
    /// When it was last used, give or take a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<At>,
    /// The token that it was made with: it ends no later, and is revoked with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_with: Option<String>,
}

/// Whose credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TokensQuery {
    /// This person's; your own if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(pattern = "^usr_[0-7][0-9a-hjkmnp-tv-z]{25}$")]
    pub user: Option<String>,
}

/// A credential to be made, for a program of yours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Its name, for people.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$"
    )]
    pub name: String,
    /// Its rights: one or more, and only what your own credential is good for.
    #[schema(min_items = 1, max_items = 5)]
    pub rights: Vec<Right>,
    /// Until when it is good: a moment, or `never`; for 90 days if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Expiry>,
    /// The only client name that it may use in addresses; any if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64, pattern = "^[a-z0-9][a-z0-9._-]*$")]
    pub client: Option<String>,
}

impl NewToken {
    /// Checks that every field is as the schema says.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.name.is_empty() {
            return invalid("name", "must not be empty");
        }
        plain_line("name", Some(&self.name), NAME_LENGTH_MAX)?;
        if !(1..=RIGHTS_MAX).contains(&self.rights.len()) {
            return invalid("rights", format!("must be 1 to {RIGHTS_MAX} rights"));
        }
        self.client.as_deref().map_or(Ok(()), |client| handle("client", client))
    }
}

/// The end that a new credential is to have. That it has none has to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    At(At),
    Never,
}

impl Serialize for Expiry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(at) => at.serialize(serializer),
            Self::Never => serializer.serialize_str(NEVER),
        }
    }
}

impl<'de> Deserialize<'de> for Expiry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == NEVER {
            return Ok(Self::Never);
        }
        text.parse().map(Self::At).map_err(|why| de::Error::custom(format!("{why}, or {NEVER}")))
    }
}

impl PartialSchema for Expiry {
    fn schema() -> RefOr<Schema> {
        let never = ObjectBuilder::new().schema_type(Type::String).enum_values(Some([NEVER]));
        AnyOfBuilder::new()
            .item(At::schema())
            .item(never)
            .description(Some("A moment (RFC 3339), or `never`."))
            .into()
    }
}

impl ToSchema for Expiry {}

/// A credential that was made. This is the only time that its secret is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeToken {
    /// The credential.
    pub token: Token,
    /// The text to send as `Authorization: Bearer SECRET`.
    #[schema(value_type = String, format = Password)]
    pub secret: Secret,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_moment_or_never_or_left_to_the_server() {
        let read = |expires: &str| {
            let text = format!(r#"{{"name":"ci","rights":["read"]{expires}}}"#);
            serde_json::from_str::<NewToken>(&text).map(|new| new.expires).map_err(|why| why.to_string())
        };
        assert_eq!(read(""), Ok(None));
        assert_eq!(read(r#","expires":null"#), Ok(None), "nothing is not said by saying nothing");
        assert_eq!(read(r#","expires":"never""#), Ok(Some(Expiry::Never)));
        let at = Expiry::At(At(951_782_400_000));
        assert_eq!(read(r#","expires":"2000-02-29T00:00:00Z""#), Ok(Some(at)));
        assert!(read(r#","expires":"soon""#).unwrap_err().contains("or never"));
        let written = [Expiry::Never, at].map(|end| serde_json::to_string(&end).unwrap());
        assert_eq!(written, [r#""never""#, r#""2000-02-29T00:00:00.000Z""#]);
    }
}
