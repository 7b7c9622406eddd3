//! The spelling of an address, for the schema. The server parses it; this says beforehand what it will take.

use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The text of an address: a scheme and its parts. Whatever is not a letter, a digit or one of `. _ ~ -` is escaped, and
/// nothing else is.
pub struct Address(());

impl PartialSchema for Address {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(
                "The name of a conversation, in its one spelling: a scheme and its parts. Every byte that is not a letter, \
                 a digit or one of `.`, `_`, `~`, `-` is `%` and two upper-case hex digits; a part has at most 1,024 \
                 bytes.",
            ))
            .max_length(Some(crate::ADDRESS_LENGTH_MAX))
            .pattern(Some(pattern()))
            .examples(["api:demo/1"])
            .into()
    }
}

impl ToSchema for Address {}

fn pattern() -> String {
    // A byte of a longer character, after the first.
    let more = "%[89AB][0-9A-F]";
    let escaped_ascii = "%([01][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])";
    let two = format!("%(C[2-9A-F]|D[0-9A-F]){more}");
    let three = format!("(%E0%[AB][0-9A-F]|%E[1-9A-CEF]{more}|%ED%[89][0-9A-F]){more}");
    let four = format!("(%F0%[9AB][0-9A-F]|%F[1-3]{more}|%F4%8[0-9A-F]){more}{more}");
    let part = format!("([A-Za-z0-9._~-]|{escaped_ascii}|{two}|{three}|{four})+");
    format!("^(cli:{part}/{part}/{part}|(web|api|acp|mcp):{part}/{part})$")
}
