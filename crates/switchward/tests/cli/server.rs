//! `switchward server` as in production: configured by file, environment and flags, behind TLS, stopped by a signal.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};
use switchward_testkit::within;
use tempfile::TempDir;

use crate::support::{Ended, Process, deploy_gate, private, program, repository};

pub(crate) const ADMIN_KEY: &str =
    "swk_0123456789abcdef_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// An address of no network here: a server that uses the file's value fails to listen.
const NOT_MINE: &str = "192.0.2.1:7400";
/// A process that has got SIGTERM must have ended after this time.
const STOP_MAX: Duration = Duration::from_secs(20);

/// A folder with a certificate, a key of the tenant acme, and a configuration that names both.
pub(crate) struct Site(TempDir);

impl Site {
    pub(crate) fn new() -> Self {
        let site = Self(tempfile::tempdir().expect("a folder"));
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let write = |name: &str, text: &str| private(site.path(name), text);
        write("tls.crt", &made.cert.pem());
        write("tls.key", &made.signing_key.serialize_pem());
        write("admin.key", ADMIN_KEY);
        let at = |name: &str| site.path(name);
        write(
            "switchward.toml",
            &format!(
                "data_dir = {:?}\nlisten = {NOT_MINE:?}\nshards = 1\n[log]\nlevel = \"error\"\n[tls]\ncert_file = {:?}\n\
                 key_file = {:?}\n[[tenants]]\nname = \"acme\"\nadmin_key_file = {:?}\n",
                at("data"),
                at("tls.crt"),
                at("tls.key"),
                at("admin.key")
            ),
        );
        write(
            "tenants.toml",
            &format!("[[tenants]]\nname = \"acme\"\nadmin_key_file = {:?}\n", at("admin.key")),
        );
        site
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("a plain path").to_owned()
    }

    /// The server's command: the environment sets the address, and a flag the log level.
    pub(crate) fn command(&self) -> Command {
        let mut command = program();
        command.args(["server", "--config", &self.path("switchward.toml"), "--log", "info"]);
        command.env("SWITCHWARD_LISTEN", "127.0.0.1:0");
        command
    }

    /// The same server without TLS, configured by flags except for its tenants.
    pub(crate) fn plain(&self, listen: &str) -> Command {
        let mut command = program();
        command.args(["server", "--config", &self.path("tenants.toml"), "--data-dir", &self.path("data")]);
        command.args(["--listen", listen, "--shards", "2", "--log", "info"]);
        command
    }
}

/// A server that is ready.
pub(crate) struct Running {
    process: Process,
    stderr: BufReader<ChildStderr>,
    /// What it logged until it was ready.
    log: String,
    pub(crate) address: String,
    /// The address of its metrics page.
    pub(crate) metrics: String,
}

impl Running {
    fn start(site: &Site) -> Self {
        Self::of(&mut site.command())
    }

    /// Starts a server that logs, and waits until it is ready.
    pub(crate) fn of(command: &mut Command) -> Self {
        let mut process = Process(command.stderr(Stdio::piped()).spawn().expect("it starts"));
        let mut stderr = BufReader::new(process.0.stderr.take().expect("it logs"));
        let (mut log, mut address) = (String::new(), None);
        while address.is_none() {
            let begin = log.len();
            let read = within(process.0.id(), "the server is ready", || stderr.read_line(&mut log));
            assert!(read.expect("it says that it is ready") > 0, "it ended: {log}");
            let line = &log[begin..];
            let said = |name: &str| {
                let rest = line.split(name).nth(1).filter(|_| line.contains("ready"))?;
                Some(rest.trim().trim_matches('"').split(['"', ' ', '\n']).next()?.to_owned())
            };
            address = said("address=").zip(said("metrics="));
        }
        let (address, metrics) = address.expect("the loop ends with it");
        Self { process, stderr, log, address, metrics }
    }

    /// A command of the tenant's admin, who trusts this certificate and no other.
    fn run(&self, certificate: &str, words: &[&str]) -> Ended {
        let mut command = program();
        command.env("SWITCHWARD_ADDRESS", &self.address).env("SWITCHWARD_API_KEY", ADMIN_KEY);
        command.env("SSL_CERT_FILE", certificate).env_remove("SSL_CERT_DIR");
        Ended::of(command.args(words))
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Reads its log until a line holds these words.
    pub(crate) fn until_logged(&mut self, words: &str) {
        loop {
            let begin = self.log.len();
            let read = within(self.process.0.id(), words, || self.stderr.read_line(&mut self.log));
            assert!(read.expect("it logs") > 0, "it ended: {}", self.log);
            if self.log[begin..].contains(words) {
                return;
            }
        }
    }

    /// Asks it to stop, and waits until it has: what it logged, and how it ended.
    pub(crate) fn stop(mut self) -> (String, Option<i32>) {
        self.process.terminate();
        let mut log = std::mem::take(&mut self.log);
        let process = self.process.0.id();
        within(process, "the server stops", || self.stderr.read_to_string(&mut log))
            .expect("it logs to its end");
        (log, self.process.code())
    }
}

#[test]
fn a_server_keeps_what_it_took_behind_tls_and_stops_in_order() {
    let site = Site::new();
    let server = Running::start(&site);
    assert!(server.address.starts_with("https://127.0.0.1:"), "{}", server.address);
    let trusted = site.path("tls.crt");
    server.run(&trusted, &["deploy", &deploy_gate()]).with_code(0);
    server.run(&trusted, &["start", "deploy-gate", "--key", "release-42"]).with_code(0);
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("stopped"), "{log}");

    let server = Running::start(&site);
    let kept: Value = server.run(&trusted, &["get", "release-42", "-o", "json"]).with_code(0).json();
    assert_eq!(kept["session"]["at"][0], "env-check");
    assert!(Path::new(&site.path("data")).is_dir());
}

/// A disk that does not answer holds up what the server writes last.
#[test]
fn a_server_whose_disk_is_stuck_ends_in_time() {
    let site = Site::new();
    let (library, hold) = (site.path("hold-sync.so"), site.path("hold"));
    let source = repository("crates/switchward/tests/it/cluster_faults/hold-sync.c");
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.args(["-shared", "-fPIC", "-O1", "-o", &library]).arg(source).arg("-ldl");
    assert!(compiler.status().expect("there is a C compiler").success());
    let mut command = site.plain("127.0.0.1:0");
    let server = Running::of(command.env("LD_PRELOAD", &library).env("HOLD_SYNC_FILE", &hold));
    fs::write(&hold, server.pid().to_string()).expect("a file");
    let asked = Instant::now();
    let (log, code) = server.stop();
    assert!(asked.elapsed() < STOP_MAX, "{:?}: {log}", asked.elapsed());
    assert_eq!(code, Some(1), "{log}");
    let said = log.lines().last().unwrap_or_default();
    assert!(said.starts_with("switchward: the stop took longer than 17 seconds"), "{log}");
}

#[test]
fn a_program_reads_one_line_when_the_server_is_ready() {
    let site = Site::new();
    let mut server = site.command();
    let mut server = Process(server.args(["-o", "json"]).stdout(Stdio::piped()).spawn().expect("it starts"));
    let mut line = String::new();
    let mut stdout = BufReader::new(server.0.stdout.take().expect("it has an output"));
    within(server.0.id(), "the server is ready", || stdout.read_line(&mut line)).expect("it is ready");
    let ready: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let address = ready["address"].as_str().expect("an address");
    let mut health = program();
    health.env("SWITCHWARD_API_KEY", ADMIN_KEY).env("SSL_CERT_FILE", site.path("tls.crt"));
    Ended::of(health.args(["list", "sessions", "--address", address])).with_code(0);
    let expected = json!({
        "address": address,
        "metrics": ready["metrics"],
        "data_dir": site.path("data"),
        "durable": true,
        "clock": "system",
    });
    assert!(ready["metrics"].as_str().is_some_and(|at| at.starts_with("http://127.0.0.1:")), "{ready}");
    assert_eq!(ready, expected, "no key is told");
    assert_eq!(server.stop(), Some(0));

    let refused = Ended::of(site.command().args(["-o", "json"]).env("SWITCHWARD_SHARDS", "0")).with_code(1);
    assert_eq!(refused.error()["message"], "shards: must be from 1 to 64");
}

#[test]
fn who_does_not_trust_the_certificate_and_who_speaks_no_tls_gets_nothing() {
    let (site, other) = (Site::new(), Site::new());
    let server = Running::start(&site);
    let refused = server.run(&other.path("tls.crt"), &["list", "sessions"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    let port = server.address.strip_prefix("https://").expect("TLS");
    let mut plain = TcpStream::connect(port).expect("it listens");
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").expect("it reads");
    let mut answer = Vec::new();
    // It may close with what was sent still unread, which ends the connection in another way.
    let _ended = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{:?}", String::from_utf8_lossy(&answer));
}

#[test]
fn the_authority_of_the_certificate_can_be_named() {
    let (site, other) = (Site::new(), Site::new());
    let server = Running::start(&site);
    // This machine trusts another one.
    let list = |ca: &str| server.run(&other.path("tls.crt"), &["list", "sessions", "--ca", ca]);
    list(&site.path("tls.crt")).with_code(0);
    let refused = list(&other.path("tls.crt")).with_code(69);
    assert!(refused.err.contains("next     set --ca FILE"), "{refused:?}");
    let none = list(&site.path("tls.key")).with_code(2);
    assert!(none.err.contains("tls.key contains no certificate (PEM)"), "{none:?}");
    list(&site.path("nothing.pem")).with_code(3);
}

#[test]
fn flags_alone_configure_a_server_behind_tls() {
    let site = Site::new();
    let mut command = site.plain("127.0.0.1:0");
    let half = Ended::of(site.plain("127.0.0.1:0").args(["--tls-cert", &site.path("tls.crt")])).with_code(1);
    assert!(half.err.contains("key_file"), "{half:?}");
    command.args(["--tls-cert", &site.path("tls.crt"), "--tls-key", &site.path("tls.key")]);
    // A flag beats the environment.
    command.env("SWITCHWARD_TLS__CERT_FILE", "/nowhere/tls.crt").env("SWITCHWARD_LISTEN", NOT_MINE);
    let server = Running::of(&mut command);
    assert!(server.address.starts_with("https://"), "{}", server.address);
    server.run(&site.path("tls.crt"), &["list", "sessions"]).with_code(0);
}

#[test]
fn what_can_be_reached_from_outside_speaks_tls_or_is_configured_as_insecure() {
    let site = Site::new();
    let refused = Ended::of(&mut site.plain("0.0.0.0:0")).with_code(1);
    assert!(refused.err.contains("--insecure-listen"), "{refused:?}");
    let server = Running::of(site.plain("0.0.0.0:0").arg("--insecure-listen"));
    let port = server.address.rsplit(':').next().expect("a port");
    let address = format!("http://127.0.0.1:{port}");
    server.run(&site.path("tls.crt"), &["list", "sessions", "--address", &address]).with_code(0);
}

#[test]
fn a_name_of_the_environment_that_nothing_reads_is_logged() {
    let site = Site::new();
    let server = Running::of(site.command().env("SWITCHWARD_LISTN", "127.0.0.1:1"));
    let (log, code) = server.stop();
    assert_eq!(code, Some(0));
    assert!(
        log.contains("WARN") && log.contains("SWITCHWARD_LISTN (did you mean SWITCHWARD_LISTEN?)"),
        "{log}"
    );
    assert_eq!(log.matches("SWITCHWARD_").count(), 2, "{log}");
}

#[test]
fn what_is_wrong_with_the_configuration_is_named() {
    let site = Site::new();
    let refused = |command: &mut Command, words: &str| {
        let ended = Ended::of(command);
        let named = ended.err.to_lowercase().contains(&words.to_lowercase());
        assert!(ended.code != 0 && named, "{words}: {ended:?}");
    };
    refused(site.command().env("SWITCHWARD_LISTEN", "here"), "listen");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = listener.local_addr().expect("an address").to_string();
    refused(site.command().env("SWITCHWARD_LISTEN", &taken), &taken);
    refused(site.command().env("SWITCHWARD_TLS__KEY_FILE", site.path("admin.key")), "admin.key");
    refused(site.command().env("SWITCHWARD_SHARDS", "0"), "shards");
    fs::write(site.path("admin.key"), "swordfish").expect("a file");
    refused(&mut site.command(), "admin.key");
    fs::write(site.path("switchward.toml"), "listen = [").expect("a file");
    refused(&mut site.command(), "switchward.toml");
    fs::remove_file(site.path("switchward.toml")).expect("a file");
    refused(&mut site.command(), "switchward.toml");
}
