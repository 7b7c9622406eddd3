//! The address schemes that are HTTP's: what a person or a program can call a conversation when it comes this way.
//!
//! Every other scheme is another door's, and nobody can use or bind it from here.

use kernel::Scheme;

/// All of them.
pub const SCHEMES: &[Scheme] = &[
    // One directory in one person's terminals on one host.
    Scheme {
        name: "cli",
        form: "cli:HOST/USER/DIR",
        parts: &[3],
        person: Some(1),
        client: None,
        each_person: false,
    },
    // One chat of one person in the browser.
    Scheme {
        name: "web",
        form: "web:USER/CHAT",
        parts: &[2],
        person: Some(0),
        client: None,
        each_person: false,
    },
    // Whatever a program calls a conversation.
    Scheme {
        name: "api",
        form: "api:CLIENT/KEY",
        parts: &[2],
        person: None,
        client: Some(0),
        each_person: true,
    },
    // One conversation of an editor.
    Scheme {
        name: "acp",
        form: "acp:CLIENT/ID",
        parts: &[2],
        person: None,
        client: Some(0),
        each_person: true,
    },
    // One conversation of a tool caller.
    Scheme {
        name: "mcp",
        form: "mcp:CLIENT/ID",
        parts: &[2],
        person: None,
        client: Some(0),
        each_person: true,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::{Address, NotAnAddress};

    #[test]
    fn the_forms_in_the_documents_are_addresses_of_these_schemes() {
        for text in [
            "web:ada/0198c1",
            "cli:laptop/ada/%2Fhome%2Fada%2Fshop",
            "api:ci/build-7",
            "acp:zed/1",
            "mcp:desk/1",
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(SCHEMES.iter().filter(|scheme| scheme.owns(&address)).count(), 1, "{text}");
        }
    }

    #[test]
    fn a_wrong_number_of_parts_is_told_with_the_right_form() {
        for scheme in SCHEMES {
            let address: Address = format!("{}:a", scheme.name).parse().unwrap();
            assert_eq!(scheme.check(&address), Err(NotAnAddress::WrongParts { form: scheme.form }));
            let named = scheme.person.or(scheme.client).unwrap();
            assert!(scheme.parts.iter().all(|parts| named < *parts), "{}", scheme.form);
        }
    }
}
