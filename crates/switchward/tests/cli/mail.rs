//! Mail on its way out and back: a server that writes to an approver, and the listeners by which their reply comes in.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use switchward_testkit::free_port;

use crate::mail_server::reply;
pub(crate) use crate::mail_server::{ASKS, Sink, field, hand_over};
use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::{Dev, Ended, folder, program, run};

/// How long a test waits for a mail, and for a sweep that comes every 30 seconds.
const PATIENCE: Duration = Duration::from_secs(90);

/// A server that writes mail, and the listeners by which it comes back.
pub(crate) struct Server {
    pub(crate) running: Running,
    sink: Sink,
    pub(crate) lmtp: SocketAddr,
    site: Site,
}

impl Server {
    fn start() -> Self {
        Self::with_config("trusted_callers = [\"acme/admin\"]\n")
    }

    /// A server with more configuration of inbound mail. Its DNS does not answer.
    fn with_config(more: &str) -> Self {
        Self::asking(SocketAddr::from(([127, 0, 0, 1], 9)), more)
    }

    /// The same with a DNS.
    pub(crate) fn asking(dns: SocketAddr, more: &str) -> Self {
        let (site, sink) = (Site::new(), Sink::start());
        let lmtp = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let (admin, port) = (site.path("admin.key"), sink.address.port());
        let config = format!(
            "[[tenants]]\nname = \"acme\"\nadmin_key_file = {admin:?}\n\
             [mail]\nfrom = \"Acme <approvals@acme.example>\"\nreply = \"r+{{token}}@reply.acme.example\"\n\
             [mail.smtp]\nhost = \"127.0.0.1\"\nport = {port}\ntls = \"plain\"\nhello = \"acme.example\"\n\
             [mail.in]\ntrusted_hosts = [\"mx.acme.example\"]\ndns = [\"{dns}\"]\nlmtp = \"{lmtp}\"\n{more}"
        );
        std::fs::write(site.path("tenants.toml"), config).expect("a file");
        run(["secrets", "create", &site.path("data.keys")]).with_code(0);
        let running = Running::of(&mut site.plain("127.0.0.1:0"));
        Self { running, sink, lmtp, site }
    }

    pub(crate) fn run(&self, words: &[&str]) -> Ended {
        self.run_as(ADMIN_KEY, words)
    }

    /// Runs a command under a key.
    pub(crate) fn run_as(&self, key: &str, words: &[&str]) -> Ended {
        let mut command = program();
        command.env("SWITCHWARD_ADDRESS", &self.running.address).env("SWITCHWARD_API_KEY", key);
        Ended::of(command.args(words))
    }

    /// Starts a session that asks, and gives the mail.
    pub(crate) fn asked(&self, key: &str) -> String {
        self.asked_by(ADMIN_KEY, key)
    }

    /// The same from another sender.
    pub(crate) fn asked_of(&self, key: &str, approver: &str) -> String {
        let source = ASKS.replace("lead@example.com", approver).replace("name: asks", "name: asks-another");
        let folder = folder(&[("asks.yaml", &source)]);
        self.run(&["deploy", folder.path().join("asks.yaml").to_str().expect("a path")]).with_code(0);
        self.run(&["start", "asks-another", "--key", key]).with_code(0);
        self.sink.next()
    }

    /// The same under a key.
    pub(crate) fn asked_by(&self, who: &str, key: &str) -> String {
        let folder = folder(&[("asks.yaml", ASKS)]);
        self.run(&["deploy", folder.path().join("asks.yaml").to_str().expect("a path")]).with_code(0);
        self.run_as(who, &["start", "asks", "--key", key]).with_code(0);
        self.sink.next()
    }

    pub(crate) fn at(&self, key: &str) -> Value {
        self.run(&["get", key, "-o", "json"]).with_code(0).json()["session"]["at"][0].clone()
    }

    /// Ends the server and starts it on the same data.
    fn restarted(self) -> Self {
        let (_, code) = self.running.stop();
        assert_eq!(code, Some(0));
        Self { running: Running::of(&mut self.site.plain("127.0.0.1:0")), ..self }
    }

    /// What is in quarantine, the newest first.
    fn quarantined(&self) -> Vec<Value> {
        let listed = self.run(&["mail", "quarantine", "list", "-o", "json"]).with_code(0).json();
        listed["mails"].as_array().cloned().unwrap_or_default()
    }

    /// Writes a message to a file.
    pub(crate) fn file(&self, text: &str) -> String {
        let path = self.site.path("reply.eml");
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// Hands a message over, as a mail server does: the answers to its recipients and to the message.
    pub(crate) fn hand_over(&self, recipients: &[&str], message: &str) -> Vec<String> {
        hand_over(self.lmtp, recipients, message)
    }
}

/// The counter of this outcome.
fn counted(server: &Server, labels: &str) -> bool {
    measured(server, &format!("switchward_mail_in_total{{{labels}}} 1"))
}

/// Returns true if the metrics page has this line.
fn measured(server: &Server, wanted: &str) -> bool {
    let page = server.running.metrics.strip_prefix("http://").and_then(|at| at.strip_suffix("/metrics"));
    let mut stream = TcpStream::connect(page.expect("plain HTTP")).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").expect("it reads");
    BufReader::new(stream).lines().map_while(Result::ok).any(|line| line == wanted)
}

#[test]
fn a_reply_comes_back_by_lmtp_and_decides_where_it_is_proved() {
    let server = Server::start();
    let mail = server.asked("asks-1");
    let to = field(&mail, "Reply-To");
    let codes = server.hand_over(&["lead@example.com", &to], &reply(&mail, "fail", "approve"));
    assert_eq!(codes, ["550", "250", "354", "250", "221"], "mail for others is none of ours");
    assert_eq!(server.at("asks-1"), "decide", "nothing proves who wrote it");
    let codes = server.hand_over(&[&to], &reply(&mail, "pass", "reject\r\n\r\nToo dear."));
    assert_eq!(codes, ["250", "354", "250", "221"]);
    assert_eq!(server.at("asks-1"), "stop");
    let odd = server.hand_over(&["r+none@reply.acme.example"], "no message\r\n");
    assert_eq!(odd, ["250", "354", "250", "221"], "what nobody understands is kept, and not sent back");
    assert!(counted(&server, "outcome=\"quarantined\",why=\"malformed\""));
    let (log, code) = server.running.stop();
    assert!(log.contains("listening for mail over LMTP"), "{log}");
    assert_eq!(code, Some(0));
}

#[test]
fn a_message_in_a_file_is_brought_by_hand() {
    let server = Server::start();
    let mail = server.asked("asks-1");
    let bring = |text: &str| server.run(&["mail", "ingest", &server.file(text)]);
    let ingested = bring(&reply(&mail, "pass", "approve")).with_code(0);
    assert_eq!(ingested.out, "recorded: decided\n");
    assert_eq!(server.at("asks-1"), "go");
    assert_eq!(
        bring(&reply(&mail, "pass", "approve")).with_code(0).out,
        "recorded: decided\n",
        "the same is one reply"
    );
    let forged = reply(&mail, "pass", "approve").replace("To: r+", "To: r+0");
    assert_eq!(bring(&forged).with_code(4).out, "quarantined: no_token\n");
    let bounced = server.run(&["mail", "ingest", &server.file("x"), "-o", "json"]).with_code(4).json();
    assert_eq!(bounced["outcome"], "quarantined");
    server.run(&["mail", "ingest", "/nowhere.eml"]).with_code(3);
    let mut other = program();
    other.env("SWITCHWARD_ADDRESS", &server.running.address).env("SWITCHWARD_API_KEY", "swk_none");
    Ended::of(other.args(["mail", "ingest", &server.file("x")])).with_code(6);
}

#[test]
fn mail_in_quarantine_goes_with_an_erased_session() {
    let server = Server::start();
    let [gone, stays] = ["asks-1", "asks-2"].map(|key| {
        let mail = server.asked(key);
        server.run(&["cancel", key, "--yes"]).with_code(0);
        let away = format!("Auto-Submitted: auto-replied\r\n{}", reply(&mail, "pass", "I am away."));
        let brought = server.run(&["mail", "ingest", &server.file(&away)]).with_code(0);
        assert_eq!(brought.out, "ignored: auto_reply\n");
        server.run(&["get", key, "-o", "json"]).with_code(0).json()["session"]["name"].clone()
    });
    let mails = server.quarantined();
    assert!(mails.len() == 2 && mails[0]["session"] == stays && mails[1]["session"] == gone, "{mails:?}");
    let name = mails[1]["name"].as_str().and_then(|name| name.rsplit('/').next()).expect("a name");
    let shown = server.run(&["mail", "quarantine", "show", name]).with_code(0).out;
    let id = gone.as_str().and_then(|name| name.rsplit('/').next()).expect("a name");
    assert!(shown.contains(id), "{shown}");
    server.run(&["session", "erase", "asks-1", "--yes"]).with_code(0);
    // A server sweeps when it starts, and then every 30 seconds.
    let server = server.restarted();
    let deadline = Instant::now() + PATIENCE;
    while server.quarantined().len() > 1 {
        assert!(Instant::now() < deadline, "its mail is there after {PATIENCE:?}");
    }
    assert_eq!(server.quarantined()[0]["session"], stays);
    assert!(measured(&server, "switchward_quarantine_deleted_total 1"));
    assert_eq!(server.running.stop().1, Some(0));
}

#[test]
fn what_a_trusted_host_says_is_no_proof_in_what_anybody_could_have_brought() {
    let server = Server::with_config("");
    let mail = server.asked("asks-1");
    let file = server.file(&reply(&mail, "pass", "approve"));
    // No DNS answers, so the sender is not proved yet.
    server.run(&["mail", "ingest", &file]).with_code(69);
    assert_eq!(server.at("asks-1"), "decide", "who holds a key of an operator is not whom the mail went to");
    server.hand_over(&[&field(&mail, "Reply-To")], &reply(&mail, "pass", "approve\r\n\r\nAgain."));
    assert_eq!(server.at("asks-1"), "go", "the mail server in front is believed");
}

#[test]
fn a_development_server_takes_mail_by_the_same_path() {
    let dev = Dev::start();
    let folder = folder(&[("reply.eml", "From: a@b.example\r\nMessage-ID: <1@b.example>\r\n\r\nyes\r\n")]);
    let file = folder.path().join("reply.eml");
    let ingested = dev.run(&["mail", "ingest", file.to_str().expect("a path")]).with_code(4);
    assert_eq!(ingested.out, "quarantined: no_token\n");
}

#[test]
fn what_is_typed_in_the_mailbox_of_a_development_server_decides_where_it_is_said_to_be_proved() {
    let dev = Dev::start();
    let folder = folder(&[("asks.yaml", ASKS)]);
    dev.run(&["deploy", folder.path().join("asks.yaml").to_str().expect("a path")]).with_code(0);
    dev.run(&["start", "asks", "--key", "asks-1"]).with_code(0);
    dev.until("a mail goes out", || !dev.mails().is_empty());
    let mail = dev.mails().remove(0);
    for (proved, state) in [("", "decide"), ("&proved=yes", "go")] {
        let head = dev.reply(&mail, &format!("text=approve{proved}"));
        assert!(head.starts_with("http/1.1 303"), "{head}");
        assert_eq!(dev.json(&["get", "asks-1"])["session"]["at"][0], state, "{proved:?}");
    }
}
