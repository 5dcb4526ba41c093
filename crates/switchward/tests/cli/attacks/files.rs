//! What other users of the machine, or the holder of a copy, find in the data folder of a carelessly started server.

use std::path::Path;
use switchward_testkit::free_port;

use crate::mail::{ASKS, Sink};
use crate::privacy::{readable, under};
use crate::secrets::{Written, ask, parts, put_in};
use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::{folder, private, run};

const MODEL_KEY: &str = "sk-model-0123456789abcdef0123456789abcdef";
const PASSWORD: &str = "smtp-password-0123456789abcdef";
/// Something that a mail says which is put aside.
const QUARANTINED: &str = "nobody asked for this";

/// A server that writes mail and asks a model.
fn configure(site: &Site, sink: &Sink) {
    private(site.path("model.key"), MODEL_KEY);
    private(site.path("smtp.password"), PASSWORD);
    let at = |name: &str| site.path(name);
    let config = format!(
        "[[tenants]]\nname = \"acme\"\nadmin_key_file = {:?}\n[delivery.model]\nprovider = \"openai\"\n\
         base_url = \"http://127.0.0.1:9\"\nname = \"small\"\nlocal = true\nkey_file = {:?}\n\
         [mail]\nfrom = \"Acme <approvals@acme.example>\"\nreply = \"r+{{token}}@reply.acme.example\"\n\
         [mail.smtp]\nhost = \"127.0.0.1\"\nport = {}\ntls = \"plain\"\nhello = \"acme.example\"\n\
         [mail.in]\ndns = [\"127.0.0.1:9\"]\nlmtp = \"127.0.0.1:{}\"\n",
        at("admin.key"),
        at("model.key"),
        sink.address.port(),
        free_port()
    );
    private(at("tenants.toml"), &config);
    run(["secrets", "create", &at("data.keys")]).with_code(0);
}

#[test]
fn a_server_that_was_started_carelessly_shows_nobody_its_files_and_holds_no_secret_in_them() {
    let (site, sink) = (Site::new(), Sink::start());
    configure(&site, &sink);
    let data = site.path("data");
    let server = Running::of(&mut under("000", &site.plain("127.0.0.1:0")));
    let mut secrets = put_in(&server);
    let key = ask(&server, &["keys", "create", "operator", "--subject", "kim"]).with_code(0).json();
    secrets.push(key["secret"].as_str().expect("a secret").to_owned());
    let files =
        folder(&[("asks.yaml", ASKS), ("odd.eml", &format!("From: a@b.example\r\n\r\n{QUARANTINED}\r\n"))]);
    let path = |name: &str| files.path().join(name).to_str().expect("a plain path").to_owned();
    ask(&server, &["deploy", &path("asks.yaml")]).with_code(0);
    ask(&server, &["start", "asks", "--key", "asks-1"]).with_code(0);
    sink.next();
    ask(&server, &["mail", "ingest", &path("odd.eml")]).with_code(4);
    assert_eq!(readable(Path::new(&data)), [""; 0], "while it runs");
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(readable(Path::new(&data)), [""; 0]);
    let written = Written::of(&data);
    for known in [QUARANTINED, "lead@example.com", "https://ops.example/in"] {
        assert!(!written.holds(known.as_bytes()).is_empty(), "the search looks where {known} is");
    }
    let ring = std::fs::read_to_string(site.path("data.keys")).expect("a ring");
    secrets.extend(ring.lines().filter(|line| line.starts_with("swm_")).map(str::to_owned));
    secrets.extend([MODEL_KEY, PASSWORD, ADMIN_KEY].map(str::to_owned));
    for part in secrets.iter().flat_map(|secret| parts(secret)) {
        assert_eq!(written.holds(&part), [""; 0], "{}", String::from_utf8_lossy(&part));
    }
    for secret in &secrets {
        assert!(!log.contains(secret.as_str()), "{log}");
    }
}
