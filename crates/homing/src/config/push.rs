//! Telling people on their devices, in the configuration: the table `[push]`.

use serde::{Deserialize, Serialize};
use server::PushConfig;
use utoipa::ToSchema;

use super::line_of;

/// The settings of telling people on their devices of questions and of turns that are over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PushTable {
    enabled: bool,
    contact: String,
    private_hosts: Vec<String>,
}

impl PushTable {
    /// As the door wants it, with a key of this seed; none if nobody is told. An error names the line.
    pub(crate) fn pushes(&self, text: &str, seed: [u8; 32]) -> Result<Option<PushConfig>, String> {
        let wrong = |key: &str, why: &str| format!("{}push.{key}: {why}", line_of(text, &["push", key]));
        let Self { enabled, contact, private_hosts } = self;
        let is_address = ["mailto:", "https://"].iter().any(|kind| contact.starts_with(kind));
        if !contact.is_empty() && !is_address {
            return Err(wrong("contact", "write mailto:NAME@HOST or https://HOST"));
        }
        let is_host = |host: &String| !host.is_empty() && !host.contains(['/', '@', '*', ' ']);
        if !private_hosts.iter().all(is_host) {
            return Err(wrong("private_hosts", "each is HOST or HOST:PORT, and nothing else"));
        }
        let contact = Some(contact.clone()).filter(|contact| !contact.is_empty());
        Ok(enabled.then(|| PushConfig { seed, contact, private_hosts: private_hosts.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushes(lines: &str) -> Result<Option<PushConfig>, String> {
        let text = format!("[push]\n{lines}\n");
        let table = toml::from_str::<toml::Table>(&text).unwrap().remove("push").unwrap();
        table.try_into::<PushTable>().unwrap().pushes(&text, [1; 32])
    }

    #[test]
    fn nobody_is_told_where_it_is_switched_off() {
        assert!(pushes("enabled = false\ncontact = \"mailto:a@b.example\"").unwrap().is_none());
        let on = pushes("enabled = true\nprivate_hosts = [\"push.lan:8443\"]").unwrap().unwrap();
        assert_eq!((on.contact, on.private_hosts), (None, vec!["push.lan:8443".to_owned()]));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let contact = pushes("enabled = true\ncontact = \"me\"").unwrap_err();
        assert!(contact.contains("line 3") && contact.contains("mailto:"), "{contact}");
        let host = pushes("private_hosts = [\"https://push.lan/\"]").unwrap_err();
        assert!(host.contains("push.private_hosts") && host.contains("HOST:PORT"), "{host}");
    }
}
