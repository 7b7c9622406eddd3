//! The identity provider in the configuration: the table `[oidc]`.

use serde::{Deserialize, Serialize};
use server::{CreateAs, OidcConfig};
use utoipa::ToSchema;

use super::{line_of, reference};

/// The identity provider at which people may sign in. There is none without an issuer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OidcTable {
    issuer: String,
    client_id: String,
    client_secret: String,
    name: String,
    org: String,
    allowed_domains: Vec<String>,
    create: Create,
}

/// The fate of somebody whom the provider knows and we do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Create {
    #[default]
    Never,
    Member,
    Viewer,
}

impl OidcTable {
    /// The provider as the door wants it; none if none is named. An error names the line, and never a secret.
    pub(crate) fn provider(&self, text: &str) -> Result<Option<OidcConfig>, String> {
        if self.issuer.is_empty() {
            return Ok(None);
        }
        let wrong = |key: &str, why: &str| format!("{}oidc.{key}: {why}", line_of(text, &["oidc", key]));
        if self.client_id.is_empty() {
            return Err(wrong("client_id", "a provider knows us by one; register Homing there first"));
        }
        let client_secret = self.secret().map_err(|why| wrong("client_secret", &why))?;
        let named = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let provider = OidcConfig {
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
            client_secret,
            name: named(&self.name).unwrap_or_else(|| self.issuer.clone()),
            org: named(&self.org),
            allowed_domains: self.allowed_domains.clone(),
            create: match self.create {
                Create::Never => CreateAs::Never,
                Create::Member => CreateAs::Member,
                Create::Viewer => CreateAs::Viewer,
            },
        };
        provider.check().map_err(|why| wrong("issuer", &why))?;
        Ok(Some(provider))
    }

    fn secret(&self) -> Result<Option<String>, String> {
        let is_reference = ["env:", "file:"].iter().any(|kind| self.client_secret.starts_with(kind));
        match self.client_secret.as_str() {
            "" => Ok(None),
            reference if is_reference => reference::resolve(reference).map(Some),
            _ => Err("a secret does not stand in this file; write \"env:NAME\" or \"file:PATH\"".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(lines: &str) -> Result<Option<OidcConfig>, String> {
        let text = format!("[oidc]\n{lines}\n");
        let table = toml::from_str::<toml::Table>(&text).unwrap().remove("oidc").unwrap();
        table.try_into::<OidcTable>().unwrap().provider(&text)
    }

    #[test]
    fn without_an_issuer_there_is_no_provider() {
        assert!(provider("client_id = \"x\"").unwrap().is_none());
        let here = provider("issuer = \"http://127.0.0.1:9\"\nclient_id = \"x\"").unwrap().unwrap();
        assert_eq!(
            (here.name.as_str(), here.org, here.create),
            ("http://127.0.0.1:9", None, CreateAs::Never)
        );
    }

    #[test]
    fn a_wrong_provider_is_told_with_its_line() {
        let missing = provider("issuer = \"https://id.example\"").unwrap_err();
        assert!(missing.contains("oidc.client_id") && missing.contains("register"), "{missing}");
        let plain = provider("client_id = \"x\"\nissuer = \"http://id.example\"").unwrap_err();
        assert!(plain.contains("line 3") && plain.contains("https"), "{plain}");
        let lines = "issuer = \"https://id.example\"\nclient_id = \"x\"\nclient_secret = ";
        let literal = provider(&format!("{lines}\"hush\"")).unwrap_err();
        assert!(
            literal.contains("line 4") && literal.contains("env:NAME") && !literal.contains("hush"),
            "{literal}"
        );
        let nowhere = provider(&format!("{lines}\"env:HOMING_NO_SUCH_VARIABLE\"")).unwrap_err();
        assert!(nowhere.contains("HOMING_NO_SUCH_VARIABLE"), "{nowhere}");
    }
}
