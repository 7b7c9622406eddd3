//! The modes and models an agent lists, and how one of them is chosen. Pure.
//!
//! Agents list them in two ways: as `modes` and `models` with a method for each, or as options of the session. Some do both.

use std::collections::BTreeMap;

use agent::{CHOICES_MAX, Choice, NATIVE_BYTES_MAX, Trouble, bounded};
use serde_json::{Value, json};

/// The longest description that is kept.
const DESCRIPTION_BYTES_MAX: usize = 300;

/// The choices of a session.
#[derive(Debug, Default)]
pub(super) struct Choices {
    pub(super) mode: Setting,
    pub(super) model: Setting,
}

/// One thing that can be chosen, and what is chosen now.
#[derive(Debug, Default)]
pub(super) struct Setting {
    pub(super) current: String,
    pub(super) all: Vec<Choice>,
    /// The agent's own words for those that we call as it calls them for people, by that name.
    odd: BTreeMap<String, String>,
    by: Option<ChosenBy>,
}

/// The request that chooses it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ChosenBy {
    /// A method of its own, and what it calls the choice.
    Method(&'static str, &'static str),
    /// An option of the session.
    Option(String),
}

impl Choices {
    /// Takes in what an answer or an update says about them.
    pub(super) fn read(&mut self, said: &Value) {
        let options = said["configOptions"].as_array().map_or(&[][..], Vec::as_slice);
        let option = |category: &str| {
            options
                .iter()
                .find(|it| it["category"] == category || (it["category"].is_null() && it["id"] == category))
        };
        if let Some(option) = option("model") {
            self.model.read_option(option);
        } else if let Some(listed) = said["models"]["availableModels"].as_array() {
            self.model.read_list(listed, "modelId", &said["models"]["currentModelId"]);
            self.model.by = Some(ChosenBy::Method("session/set_model", "modelId"));
        }
        if let Some(listed) = said["modes"]["availableModes"].as_array() {
            self.mode.read_list(listed, "id", &said["modes"]["currentModeId"]);
            self.mode.by = Some(ChosenBy::Method("session/set_mode", "modeId"));
        } else if let Some(option) = option("mode") {
            match &self.mode.by {
                // The list we know came with the method, which stays the way to choose.
                Some(ChosenBy::Method(..)) => self.mode.current = text(&option["currentValue"]),
                _ => self.mode.read_option(option),
            }
        }
    }
}

impl Setting {
    fn read_list(&mut self, listed: &[Value], id: &str, current: &Value) {
        self.list(listed.iter(), id);
        self.current = self.plain(&text(current)).to_owned();
    }

    fn read_option(&mut self, option: &Value) {
        let listed = option["options"].as_array().map_or(&[][..], Vec::as_slice);
        // Options may stand in groups.
        let flat = listed.iter().flat_map(|it| match it["options"].as_array() {
            Some(group) => group.iter().collect(),
            None => vec![it],
        });
        self.list(flat, "value");
        self.current = self.plain(&text(&option["currentValue"])).to_owned();
        self.by = option["id"].as_str().map(|id| ChosenBy::Option(id.to_owned()));
    }

    /// Takes in a list. What nobody could type, as `$runtime|openai|m(openai)`, is called as the agent calls it for people.
    fn list<'a>(&mut self, listed: impl Iterator<Item = &'a Value> + Clone, key: &str) {
        self.all = choices(listed.clone(), key);
        let named = |it: &'a Value| Some((it["name"].as_str()?.to_owned(), it[key].as_str()?.to_owned()));
        let odd = listed.filter_map(named).filter(|(name, id)| !is_plain(id) && is_plain(name));
        // A name that is another one's is not taken from it.
        self.odd = odd.filter(|(name, _)| !self.has(name)).take(CHOICES_MAX).collect();
        for choice in &mut self.all {
            if let Some((name, _)) = self.odd.iter().find(|(_, id)| **id == choice.name) {
                choice.name.clone_from(name);
            }
        }
    }

    /// The name under which a choice is listed, whichever of its two names is said.
    pub(super) fn plain<'a>(&'a self, name: &'a str) -> &'a str {
        let listed = self.odd.iter().find(|(plain, id)| *id == name && self.has(plain));
        listed.map_or(name, |(plain, _)| plain)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.all.iter().any(|choice| choice.name == name)
    }

    /// Everything there is to choose from, as a list in a sentence.
    pub(super) fn names(&self) -> String {
        let all: Vec<&str> = self.all.iter().map(|choice| choice.name.as_str()).collect();
        all.join(", ")
    }

    /// The request by which this is chosen; nothing if it is already.
    pub(super) fn choose(
        &self,
        what: &str,
        name: &str,
        session: &str,
    ) -> Result<Option<(&'static str, Value)>, Trouble> {
        if self.current == name {
            return Ok(None);
        }
        let Some(by) = &self.by else {
            return Err(Trouble::refused(format!(
                "this agent does not let one choose a {what}; leave it out"
            )));
        };
        if !self.has(name) {
            return Err(Trouble::refused(format!("there is no {what} {name:?}; there is {}", self.names())));
        }
        let name = self.odd.get(name).map_or(name, String::as_str);
        Ok(Some(match by {
            ChosenBy::Method(method, key) => (method, json!({ "sessionId": session, *key: name })),
            ChosenBy::Option(id) => {
                let params = json!({ "sessionId": session, "configId": id, "value": name });
                ("session/set_config_option", params)
            }
        }))
    }
}

/// The entries of a list that can be chosen, by the key that names them.
pub(super) fn choices<'a>(listed: impl Iterator<Item = &'a Value>, key: &str) -> Vec<Choice> {
    let choice = |it: &Value| {
        let name = it[key].as_str().filter(|name| name.len() <= NATIVE_BYTES_MAX)?;
        let said = [&it["description"], &it["name"]].into_iter().find_map(Value::as_str).unwrap_or_default();
        Some(Choice { name: name.to_owned(), description: bounded(said, DESCRIPTION_BYTES_MAX) })
    };
    listed.filter_map(choice).take(CHOICES_MAX).collect()
}

/// True if it can be said in a command line and in the API: letters, digits and some marks.
fn is_plain(name: &str) -> bool {
    let is_mark = |letter: char| letter.is_ascii_alphanumeric() || "._:/@+#=,[]-".contains(letter);
    name.starts_with(|letter: char| letter.is_ascii_alphanumeric()) && name.chars().all(is_mark)
}

fn text(value: &Value) -> String {
    bounded(value.as_str().unwrap_or_default(), NATIVE_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> Choices {
        let mut choices = Choices::default();
        choices.read(&json!({
            "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "auto"}]},
            "configOptions": [
                {"id": "mode", "category": "mode", "currentValue": "ask", "options": [{"value": "ask"}]},
                {"id": "m", "category": "model", "currentValue": "a", "options": [
                    {"group": "g", "name": "G", "options": [{"value": "a", "name": "A"}, {"value": "b"}]}]},
            ],
        }));
        choices
    }

    #[test]
    fn what_is_listed_can_be_chosen_and_nothing_else() {
        let choices = both();
        let (method, params) = choices.mode.choose("mode", "auto", "s").unwrap().unwrap();
        assert_eq!((method, params), ("session/set_mode", json!({"sessionId": "s", "modeId": "auto"})));
        let (method, params) = choices.model.choose("model", "b", "s").unwrap().unwrap();
        let wanted = json!({"sessionId": "s", "configId": "m", "value": "b"});
        assert_eq!((method, params), ("session/set_config_option", wanted));
        assert_eq!(choices.model.choose("model", "a", "s").unwrap(), None);
        let refused = choices.model.choose("model", "c", "s").unwrap_err();
        assert!(refused.detail.contains("a, b"), "{refused}");
        assert!(Setting::default().choose("model", "c", "s").is_err());
    }

    #[test]
    fn what_nobody_could_type_is_called_as_people_call_it() {
        let odd = "$runtime|openai|stub-1(openai)";
        let list = |second: &str| {
            let mut choices = Choices::default();
            choices.read(&json!({"models": {"currentModelId": odd, "availableModels": [
                {"modelId": odd, "name": "stub-1"}, {"modelId": second, "name": "The second"}]}}));
            choices.model
        };
        let model = list("two");
        assert_eq!((model.current.as_str(), model.names().as_str()), ("stub-1", "stub-1, two"));
        assert_eq!((model.plain(odd), model.plain("two")), ("stub-1", "two"));
        assert_eq!(model.choose("model", "stub-1", "s").unwrap(), None);
        let other = Setting { current: "two".to_owned(), ..model };
        let (_, params) = other.choose("model", "stub-1", "s").unwrap().unwrap();
        assert_eq!(params["modelId"], odd);
        // A name that another one has is not taken from it.
        let taken = list("stub-1");
        assert_eq!(taken.names(), format!("{odd}, stub-1"));
        let (_, params) = taken.choose("model", "stub-1", "s").unwrap().unwrap();
        assert_eq!(params["modelId"], "stub-1");
    }

    #[test]
    fn a_later_option_changes_what_is_chosen_and_not_how() {
        let mut choices = both();
        choices.read(&json!({"configOptions": [{"id": "mode", "category": "mode", "currentValue": "auto", "options": []}]}));
        assert_eq!((choices.mode.current.as_str(), choices.mode.all.len()), ("auto", 2));
    }
}
