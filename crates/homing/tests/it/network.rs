//! A server that is reached from elsewhere: encrypted, known by its certificate, renewed while it runs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use testkit::{Authority, CommandOutput, Homing, eventually};

use crate::{homing, setup, text};

/// A connection from that address of this machine, on which nothing is said.
fn connection_from(runtime: &tokio::runtime::Runtime, address: &str, host: &str) -> std::net::TcpStream {
    runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
        socket.connect(host.parse().unwrap()).await.unwrap().into_std().unwrap()
    })
}

/// More than there may be, from one address and from many, some of which begin a request and do not end it.
#[test]
fn strangers_who_open_all_the_connections_they_can_shut_nobody_out() {
    let homing = setup().config("[limits]\nconnections_max = 16\nconnections_per_address_max = 4\n").start();
    let session = text(&homing.send("api:crowd/a", "hello"), "session");
    let mut follow = homing.http().follow(&format!("/api/v1/sessions/{session}/facts"), None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut held = Vec::new();
    for round in 0..3 {
        for last in (1..=9).chain([1; 20]) {
            let stranger = connection_from(&runtime, &format!("127.0.0.{last}"), &homing.http().host);
            if held.len() % 2 == 0 {
                // One that is gone already cannot be told anything.
                let _ = std::io::Write::write_all(&mut &stranger, b"POST /api/v1/sign-in HTTP/1.1\r\nHost: ");
            }
            held.push(stranger);
        }
        let began = std::time::Instant::now();
        homing.run(&["ls"]).expect(0);
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
        assert!(
            homing.converse("api:crowd/a", &format!("round {round}")).contains(&format!("round {round}"))
        );
        follow.until(|heard| heard.json.to_string().contains(&format!("round {round}")));
    }
    let figures = homing.http().get("/metrics").text();
    let figure = |name: &str| -> u64 {
        let line = figures.lines().find_map(|line| line.strip_prefix(&format!("homing_http_{name} ")));
        line.unwrap_or_else(|| panic!("no {name}: {figures}")).parse().unwrap()
    };
    assert!(figure("connections") <= 16 && figure("connections_strangers") <= 8, "{figures}");
    assert!(figure("connections_closed") > 60, "{figures}");
}

/// A server with a certificate for these names.
struct Encrypted {
    homing: Homing,
    authority: Authority,
    files: tempfile::TempDir,
}

fn encrypted(names: &[&str]) -> Encrypted {
    let (authority, files) = (Authority::new(), tempfile::tempdir().unwrap());
    let (certificate, key) = authority.sign(names).write(files.path());
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let setup = setup().argument("--tls-certificate").argument(certificate);
    Encrypted { homing: setup.argument("--tls-key").argument(key).start(), authority, files }
}

impl Encrypted {
    /// The file with an authority's certificate.
    fn ca(&self, name: &str, authority: &Authority) -> PathBuf {
        let path = self.files.path().join(name);
        std::fs::write(&path, authority.pem()).unwrap();
        path
    }

    /// Asks as somebody on another machine would: by the address and a token alone.
    fn ask_from_elsewhere(&self, name: &str, ca: Option<&Path>, arguments: &[&str]) -> CommandOutput {
        let http = self.homing.http();
        let port = http.host.rsplit_once(':').unwrap().1;
        let mut command = self.homing.command();
        command.env("HOMING_DATA", self.homing.root().join("nowhere"));
        command.env("HOMING_URL", format!("https://{name}:{port}")).env("HOMING_TOKEN", &http.token);
        command.envs(ca.map(|ca| ("HOMING_CA", ca))).args(arguments);
        command.output().unwrap().into()
    }
}

#[test]
fn the_command_line_speaks_https_to_a_server_that_it_can_trust() {
    let server = encrypted(&["localhost"]);
    let ca = server.ca("ca.pem", &server.authority);
    let said = server.ask_from_elsewhere("localhost", Some(&ca), &["send", "-f", "--new", "hello"]);
    assert_eq!(said.expect(0), "#1 hello\n");
    let typed = ["ls", "--ca", ca.to_str().unwrap()];
    server.ask_from_elsewhere("localhost", None, &typed).expect(0);

    for (name, ca, words, hint) in [
        ("localhost", None, "signed by nobody we trust", "--ca FILE"),
        (
            "127.0.0.1",
            Some(&ca),
            "is for localhost, and not for 127.0.0.1",
            "a name that its certificate has",
        ),
    ] {
        let said = server.ask_from_elsewhere(name, ca.map(PathBuf::as_path), &["ls"]);
        said.expect(4);
        assert!(said.err.contains(words) && said.err.contains(hint), "{}", said.err);
    }
    let said = server.ask_from_elsewhere("localhost", Some(&server.files.path().join("none.pem")), &["ls"]);
    said.expect(4);
    assert!(said.err.contains("none.pem"), "{}", said.err);
}

#[test]
fn on_the_same_machine_a_server_is_known_by_what_it_has_written_down() {
    let mut server = encrypted(&["homing.example"]);
    let url = std::fs::read_to_string(server.homing.data().join("url")).unwrap();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    assert_eq!(server.homing.run(&["send", "-f", "hello"]).expect(0), "#1 hello\n");
    let written = server.homing.data().join("certificate");
    assert_eq!(std::fs::metadata(&written).unwrap().permissions().mode() & 0o777, 0o600);
    // Somebody else at the same address is not it.
    std::fs::write(&written, "00".repeat(32)).unwrap();
    let said = server.homing.run(&["ls"]);
    said.expect(4);
    assert!(said.err.contains("not the one of the server that was started here"), "{}", said.err);
    assert!(server.homing.terminate().success());
    assert!(!written.exists());
}

#[test]
fn a_renewed_certificate_is_used_after_sighup_and_when_the_files_change() {
    let server = encrypted(&["localhost"]);
    let old = server.ca("old.pem", &server.authority);
    server.ask_from_elsewhere("localhost", Some(&old), &["ls"]).expect(0);
    for (n, told) in [true, false].into_iter().enumerate() {
        let authority = Authority::new();
        let new = server.ca(&format!("new-{n}.pem"), &authority);
        server.ask_from_elsewhere("localhost", Some(&new), &["ls"]).expect(4);
        authority.sign(&["localhost"]).write(server.files.path());
        if told {
            server.homing.signal(Signal::HUP);
        }
        eventually("the new certificate is shown", || {
            (server.ask_from_elsewhere("localhost", Some(&new), &["ls"]).code == Some(0)).then_some(())
        });
        server.ask_from_elsewhere("localhost", Some(&old), &["ls"]).expect(4);
        server.homing.run(&["ls"]).expect(0);
    }
    // One that cannot be used is told, and changes nothing.
    std::fs::write(server.files.path().join("key.pem"), "nothing").unwrap();
    server.homing.signal(Signal::HUP);
    eventually("it says so", || server.homing.server_log().contains("stays as it is").then_some(()));
    server.homing.run(&["ls"]).expect(0);
}

#[test]
fn a_certificate_that_cannot_be_used_stops_the_start_and_says_why() {
    let homing = homing();
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = Authority::new().sign(&["localhost"]).write(dir.path());
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let other = homing.root().join("other");
    let serve = |arguments: &[&str]| {
        let usual = ["serve", "--listen", "127.0.0.1:0", "--data", other.to_str().unwrap()];
        homing.run(&[&usual, arguments].concat())
    };
    let cases = [
        (vec!["--tls-certificate", certificate], "--tls-key"),
        (vec!["--tls-certificate", key, "--tls-key", key], "has no certificate"),
        (vec!["--tls-certificate", certificate, "--tls-key", certificate], "has no private key"),
        (vec!["--tls-certificate", "none.pem", "--tls-key", key], "none.pem"),
    ];
    for (arguments, words) in cases {
        let said = serve(&arguments);
        said.expect(2);
        assert!(said.err.contains(words), "{}", said.err);
    }
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o604)).unwrap();
    let said = serve(&["--tls-certificate", certificate, "--tls-key", key]);
    said.expect(2);
    assert!(said.err.contains("everybody on this machine") && said.err.contains("chmod 600"), "{}", said.err);
}

#[test]
fn the_doctor_says_how_a_server_would_be_reached() {
    let homing = homing();
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = Authority::new().sign(&["localhost"]).write(dir.path());
    let doctor = |config: &str| {
        let path = dir.path().join("homing.toml");
        std::fs::write(&path, config).unwrap();
        let said = homing.run(&["doctor", "--json", "--config", path.to_str().unwrap()]);
        let checks: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let checks = checks["checks"].as_array().unwrap().clone();
        let found = checks.into_iter().find(|check| check["check"] == "network").unwrap();
        (found["state"].as_str().unwrap().to_owned(), found["detail"].as_str().unwrap().to_owned())
    };
    let tls = format!("[tls]\ncertificate = {certificate:?}\nkey = {key:?}\n");
    for (config, state, words) in [
        ("", "ok", "from this machine only"),
        ("listen = \"0.0.0.0:1\"\n", "fail", "can be reached from other machines"),
        ("listen = \"0.0.0.0:1\"\nbehind_proxy = true\n", "warn", "all clients look like it"),
        (&format!("listen = \"0.0.0.0:1\"\n{tls}"), "ok", "encrypted with"),
        (&tls.replace("certificate.pem", "none.pem"), "fail", "none.pem"),
    ] {
        let found = doctor(config);
        assert!(found.0 == state && found.1.contains(words), "{config}: {found:?}");
    }
}
