//! Under which names we answer. A page of another site can make a browser call us under a name of its own (by letting
//! that name point here); it cannot make it call us by ours.

use std::collections::BTreeSet;

/// The names under which we answer.
#[derive(Debug)]
pub(crate) struct Hosts(BTreeSet<String>);

impl Hosts {
    /// `allowed` and the listening address, and the names of this machine's loopback, each with our port. A configured
    /// name is also good without a port (behind a proxy), or with the port it names itself. Browsers leave out the usual
    /// port of their scheme.
    pub(crate) fn new(allowed: &[String], listen: &str, port: u16, tls: bool) -> Self {
        let usual_port = if tls { 443 } else { 80 };
        let mut names = BTreeSet::new();
        let listen_name = listen.rsplit_once(':').map_or(listen, |(name, _)| name);
        for name in ["localhost", "127.0.0.1", "[::1]", listen_name] {
            names.insert(format!("{}:{port}", name.to_ascii_lowercase()));
            if port == usual_port {
                names.insert(name.to_ascii_lowercase());
            }
        }
        for name in allowed {
            let name = name.to_ascii_lowercase();
            if !has_port(&name) {
                names.insert(format!("{name}:{port}"));
            }
            names.insert(name);
        }
        Self(names)
    }

    /// True if a `Host` header, or a request's authority, names us.
    pub(crate) fn know(&self, host: &str) -> bool {
        self.0.contains(host) || self.0.contains(&host.to_ascii_lowercase())
    }
}

fn has_port(name: &str) -> bool {
    let after_brackets = name.rsplit_once(']').map_or(name, |(_, rest)| rest);
    after_brackets.contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_known() {
        let hosts = Hosts::new(
            &["Homing.example".into(), "other:9".into(), "[fe80::1]".into()],
            "0.0.0.0:0",
            4747,
            false,
        );
        for name in [
            "localhost:4747",
            "LOCALHOST:4747",
            "127.0.0.1:4747",
            "[::1]:4747",
            "homing.example",
            "homing.example:4747",
            "other:9",
            "[fe80::1]",
            "[fe80::1]:4747",
        ] {
            assert!(hosts.know(name), "{name}");
        }
        for name in ["", "localhost", "localhost:80", "127.0.0.1", "evil.example:4747", "other", "other:4747"]
        {
            assert!(!hosts.know(name), "{name}");
        }
    }

    #[test]
    fn the_usual_port_of_a_scheme_need_not_be_said() {
        let know = |port, tls| Hosts::new(&[], "127.0.0.1:0", port, tls).know("localhost");
        assert!(know(80, false) && know(443, true));
        assert!(!know(80, true) && !know(443, false));
    }
}
