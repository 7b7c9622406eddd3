//! The identity that a provider's token gives somebody, and whether that is enough. Pure.

use super::{OidcConfig, SignInFailure};

/// Somebody, as the provider has signed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderIdentity {
    pub(crate) issuer: String,
    /// The provider's own name for them, which never changes.
    pub(crate) subject: String,
    /// Only if the provider has checked that it is theirs. In lower case.
    pub(crate) email: Option<String>,
    /// True if the provider named one at all.
    pub(crate) said_email: bool,
    /// Their name.
    pub(crate) name: Option<String>,
    /// The name they would like to have in addresses.
    pub(crate) nickname: Option<String>,
}

/// The claims of the token and of the provider's other answer, before anybody has judged it.
#[derive(Debug, Clone, Default)]
pub(super) struct Claims {
    pub(super) subject: String,
    pub(super) email: Option<String>,
    pub(super) email_verified: bool,
    pub(super) name: Option<String>,
    pub(super) nickname: Option<String>,
}

/// The longest e-mail address that counts as one.
const EMAIL_LENGTH_MAX: usize = 254;
/// The longest name that is taken over.
const NAME_LENGTH_MAX: usize = 100;
/// The longest name at a provider, by OpenID Connect itself.
const SUBJECT_LENGTH_MAX: usize = 255;

/// Judges if these claims may count. An e-mail address that nobody has checked is as good as none.
pub(super) fn judge(config: &OidcConfig, claims: Claims) -> Result<ProviderIdentity, SignInFailure> {
    if !(1..=SUBJECT_LENGTH_MAX).contains(&claims.subject.len()) {
        return Err(SignInFailure::Untrusted("the token names nobody".to_owned()));
    }
    let said = claims.email.is_some();
    let email = claims.email.filter(|_| claims.email_verified).and_then(|email| tidy_email(&email));
    if !config.allowed_domains.is_empty() {
        let Some(email) = &email else { return Err(SignInFailure::Unverified { said }) };
        let domain = email.rsplit_once('@').map_or("", |(_, domain)| domain);
        if !config.allowed_domains.iter().any(|allowed| allowed.eq_ignore_ascii_case(domain)) {
            return Err(SignInFailure::OtherDomain);
        }
    }
    Ok(ProviderIdentity {
        issuer: config.issuer.clone(),
        subject: claims.subject,
        email,
        said_email: said,
        name: claims.name.and_then(|name| tidy_name(&name)),
        nickname: claims.nickname.and_then(|name| tidy_name(&name)),
    })
}

fn tidy_email(email: &str) -> Option<String> {
    let email = email.trim().to_lowercase();
    let (local, domain) = email.rsplit_once('@')?;
    let is_plain = !email.chars().any(|c| c.is_whitespace() || c.is_control());
    (is_plain && !local.is_empty() && !domain.is_empty() && email.len() <= EMAIL_LENGTH_MAX).then_some(email)
}

fn tidy_name(name: &str) -> Option<String> {
    let name: String = name.chars().filter(|c| !c.is_control()).take(NAME_LENGTH_MAX).collect();
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(domains: &[&str]) -> OidcConfig {
        let allowed_domains = domains.iter().map(|domain| (*domain).to_owned()).collect();
        OidcConfig { allowed_domains, ..OidcConfig::new("https://id.example", "homing") }
    }

    fn claims(email: &str, email_verified: bool) -> Claims {
        Claims { subject: "7".into(), email: Some(email.into()), email_verified, ..Claims::default() }
    }

    #[test]
    fn an_address_that_nobody_checked_does_not_count() {
        let judged = judge(&config(&[]), claims("Ann@Example.org", true)).unwrap();
        assert_eq!(judged.email.as_deref(), Some("ann@example.org"));
        assert_eq!(judge(&config(&[]), claims("ann@example.org", false)).unwrap().email, None);
        for odd in ["", "ann", "@example.org", "ann@", "a nn@example.org", "a\u{0}@example.org"] {
            assert_eq!(judge(&config(&[]), claims(odd, true)).unwrap().email, None, "{odd:?}");
        }
    }

    #[test]
    fn a_domain_is_compared_whole() {
        let ours = config(&["Example.org"]);
        assert!(judge(&ours, claims("ann@EXAMPLE.org", true)).is_ok());
        for other in ["ann@sub.example.org", "ann@notexample.org", "ann@example.org.evil.example"] {
            assert!(matches!(judge(&ours, claims(other, true)), Err(SignInFailure::OtherDomain)), "{other}");
        }
        let tricky = judge(&ours, claims("ann@example.org@evil.example", true));
        assert!(matches!(tricky, Err(SignInFailure::OtherDomain)));
        let unchecked = judge(&ours, claims("ann@example.org", false));
        assert!(matches!(unchecked, Err(SignInFailure::Unverified { said: true })));
        let without = Claims { email: None, ..claims("", true) };
        assert!(matches!(judge(&ours, without), Err(SignInFailure::Unverified { said: false })));
    }

    #[test]
    fn a_token_that_names_nobody_is_not_trusted() {
        for subject in [String::new(), "x".repeat(SUBJECT_LENGTH_MAX + 1)] {
            let claims = Claims { subject, ..claims("ann@example.org", true) };
            assert!(matches!(judge(&config(&[]), claims), Err(SignInFailure::Untrusted(_))));
        }
    }

    #[test]
    fn names_are_short_and_plain() {
        let claims = Claims { name: Some(format!(" A\u{7}nn{}", "n".repeat(200))), ..claims("a@b", true) };
        let name = judge(&config(&[]), claims).unwrap().name.unwrap();
        assert!(name.starts_with("Ann") && name.chars().count() <= NAME_LENGTH_MAX, "{name}");
    }
}
