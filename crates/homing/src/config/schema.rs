//! The configuration's types as a JSON Schema, for editors: `docs/config.schema.json`, printed by `homing config --schema`.

use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use super::Config;

/// The schema of the whole file.
pub(crate) fn schema() -> Value {
    let mut named = Vec::new();
    Config::schemas(&mut named);
    let mut definitions = Map::new();
    for (name, schema) in named {
        definitions.insert(name, plain(serde_json::to_value(schema).unwrap_or_default()));
    }
    let mut whole = plain(serde_json::to_value(Config::schema()).unwrap_or_default());
    if let Some(whole) = whole.as_object_mut() {
        whole.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        whole.insert("title".to_owned(), json!("homing.toml"));
        whole.insert("$defs".to_owned(), Value::Object(definitions));
    }
    whole
}

/// As JSON Schema has it: what is named stands in `$defs`. Defaults are those of `default.toml` and not of the types.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let meant = object.into_iter().filter(|(key, _)| key != "default");
            meant.map(|(key, value)| (key, plain(value))).collect()
        }
        Value::Array(values) => values.into_iter().map(plain).collect(),
        Value::String(text) => Value::String(text.replace("#/components/schemas/", "#/$defs/")),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.schema.json");
        let now = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(path, &now).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == now,
            "docs/config.schema.json is not up to date: run the tests with UPDATE_EXPECT=1"
        );
    }

    #[test]
    fn every_key_of_default_toml_is_in_the_schema() {
        let (schema, defaults) = (schema(), toml::from_str::<toml::Table>(super::super::DEFAULT).unwrap());
        let known = |at: &Value, key: &str| at["properties"].get(key).is_some();
        for key in defaults.keys() {
            assert!(known(&schema, key), "{key}");
        }
        let agent = &schema["$defs"]["AgentTable"];
        for table in defaults["agents"].as_table().unwrap().values() {
            for key in table.as_table().unwrap().keys() {
                assert!(known(agent, key), "{key} in {agent}");
            }
        }
        assert_eq!(agent["additionalProperties"], false);
    }
}
