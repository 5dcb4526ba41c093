//! The first day of an operator: a server's first key, a certificate that is renewed, files that others cannot read.

use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use serde_json::json;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::{Dev, Ended, hang_up, program, run};

/// How long is looked for what must become so.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server on this data folder without configured tenants.
fn server(data: &Path) -> Command {
    let mut command = program();
    command.args(["server", "--listen", "127.0.0.1:0", "--log", "info", "--data-dir"]).arg(data);
    command
}

#[test]
fn a_server_without_tenants_says_how_to_make_one_and_the_made_key_opens_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let at = data.to_str().expect("a plain path");
    let refused = Ended::of(&mut server(&data)).with_code(2);
    assert!(refused.err.contains("error: this server has no tenant"), "{refused:?}");
    let next = format!("switchward tenant create NAME --data-dir {at}");
    assert!(refused.err.contains(&next) && refused.err.contains("[[tenants]]"), "{refused:?}");

    let wrong = run(["tenant", "create", "Acme!", "--data-dir", at, "-o", "json"]).with_code(2).error();
    assert_eq!(wrong["reason"], "FIELD_INVALID", "{wrong}");
    let made = run(["tenant", "create", "acme", "--data-dir", at, "-o", "json", "--default", "deny"]);
    let made = made.with_code(0).json();
    let secret = made["adminSecret"].as_str().expect("a secret").to_owned();
    assert_eq!(made["tenant"]["defaultEffect"], "DEFAULT_EFFECT_DENY", "{made}");
    let again = run(["tenant", "create", "acme", "--data-dir", at, "-o", "json"]).with_code(4).error();
    assert_eq!(again["reason"], "ALREADY_EXISTS", "{again}");

    let running = Running::of(&mut server(&data));
    let call = |key: &str, words: &[&str]| {
        Ended::of(program().args(words).args(["--address", &running.address, "--api-key", key, "-o", "json"]))
    };
    let tenants = call(&secret, &["tenant", "list"]).with_code(0).json();
    assert_eq!(tenants["tenants"][0]["name"], "tenants/acme", "{tenants}");
    let busy = run(["tenant", "create", "globex", "--data-dir", at]).with_code(4);
    assert!(busy.err.contains("is in use by a server"), "{busy:?}");
    let busy = run(["keys", "bootstrap", "--data-dir", at]).with_code(4);
    assert!(busy.err.contains("is in use by a server"), "{busy:?}");
    assert_eq!(running.stop().1, Some(0));

    let key =
        run(["keys", "bootstrap", "--data-dir", at, "--subject", "dana", "-o", "json"]).with_code(0).json();
    assert_eq!(
        (&key["apiKey"]["role"], &key["apiKey"]["subject"]),
        (&json!("KEY_ROLE_ADMIN"), &json!("dana"))
    );
    let running = Running::of(&mut server(&data));
    let own = Ended::of(
        program()
            .args(["tenant", "get", "--address", &running.address, "-o", "json"])
            .args(["--api-key", key["secret"].as_str().expect("a secret")]),
    );
    assert_eq!(own.with_code(0).json()["tenant"]["name"], "tenants/acme");
}

#[test]
fn keys_are_made_for_the_tenant_that_is_meant() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().join("data");
    let at = at.to_str().expect("a plain path");
    let none = run(["keys", "bootstrap", "--data-dir", at]).with_code(3);
    assert!(none.err.contains("is not a server's data folder") && !Path::new(at).exists(), "{none:?}");
    for name in ["acme", "globex"] {
        let made = run(["tenant", "create", name, "--data-dir", at, "--shards", "1"]).with_code(0);
        assert!(made.out.contains("swk_") && made.out.contains("shown only once"), "{made:?}");
    }
    let which = run(["keys", "bootstrap", "--data-dir", at]).with_code(2);
    assert!(which.err.contains("acme, globex") && which.err.contains("--tenant"), "{which:?}");
    run(["keys", "bootstrap", "--data-dir", at, "--tenant", "nobody"]).with_code(3);
    run(["keys", "bootstrap", "--data-dir", at, "--tenant", "globex"]).with_code(0);
}

#[test]
fn a_folder_of_another_user_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    // Only root can give a folder away.
    if std::os::unix::fs::chown(folder.path(), Some(65_534), None).is_err() {
        assert_ne!(folder.path().metadata().expect("it is there").uid(), 0);
        return;
    }
    let at = folder.path().to_str().expect("a plain path");
    let refused = run(["tenant", "create", "acme", "--data-dir", at]).with_code(4);
    assert!(refused.err.contains("belongs to the user 65534"), "{refused:?}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn tenants_are_made_shown_and_set() {
    let dev = Dev::start();
    let made = dev.json(&["tenant", "create", "globex", "--display-name", "Globex"]);
    assert_eq!(made["tenant"]["displayName"], "Globex", "{made}");
    let listed = dev.run(&["tenant", "list", "-o", "jsonl"]).with_code(0).lines();
    let names: Vec<_> = listed.iter().map(|tenant| tenant["name"].as_str().unwrap_or_default()).collect();
    assert_eq!(names, ["tenants/dev", "tenants/globex"]);
    let first = dev.json(&["tenant", "list", "--limit", "1"]);
    assert_eq!(first["tenants"].as_array().map(Vec::len), Some(1), "{first}");
    let rest = dev.json(&["tenant", "list", "--page-token", first["nextPageToken"].as_str().expect("more")]);
    assert_eq!(rest["tenants"][0]["name"], "tenants/globex", "{rest}");
    let set = dev.json(&["tenant", "set", "--default", "ask"]);
    assert_eq!(set["tenant"]["defaultEffect"], "DEFAULT_EFFECT_ASK", "{set}");
    let set = dev.json(&["tenant", "set", "dev", "--allow-foreign-role", "true"]);
    assert_eq!(
        (&set["tenant"]["allowForeignRole"], &set["tenant"]["defaultEffect"]),
        (&json!(true), &json!("DEFAULT_EFFECT_ASK"))
    );
    let set = dev.json(&["tenant", "set", "--any-approver-address", "true"]);
    assert_eq!(set["tenant"]["anyApproverAddress"], true, "{set}");
    let shown = dev.run(&["tenant", "get"]).with_code(0);
    for part in ["default_effect        ask\n", "any_approver_address  true\n"] {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
    let set = dev.json(&["tenant", "set", "--link-auth", "code", "--browser-known", "7d"]);
    assert_eq!(
        (&set["tenant"]["linkAuth"], &set["tenant"]["browserKnownTime"], &set["tenant"]["defaultEffect"]),
        (&json!("LINK_AUTH_CODE"), &json!("604800s"), &json!("DEFAULT_EFFECT_ASK")),
        "{set}"
    );
    let shown = dev.run(&["tenant", "get"]).with_code(0);
    assert!(shown.out.contains("link_auth             code\nbrowser_known_time    7d\n"), "{shown:?}");
    let short = dev.run(&["tenant", "set", "--browser-known", "9m"]).with_code(2);
    assert!(short.err.contains("must be 10 minutes to 365 days"), "{short:?}");
    let set = dev.json(&["tenant", "set", "--link-auth", "default"]);
    assert_eq!(
        (&set["tenant"]["linkAuth"], &set["tenant"]["browserKnownTime"]),
        (&json!(null), &json!("604800s")),
        "{set}"
    );
    dev.run(&["tenant", "set"]).with_code(2);
    dev.run(&["tenant", "get", "globex"]).with_code(3);
    dev.run(&["tenant", "set", "--default", "deny", "--as", "agent"]).with_code(6);
}

/// A connection over TLS that trusts this certificate alone.
struct Line(rustls::StreamOwned<rustls::ClientConnection, TcpStream>);

impl Line {
    fn open(address: &str, trusted: &str) -> Result<Self, String> {
        let mut roots = rustls::RootCertStore::empty();
        let anchor = CertificateDer::from_pem_file(trusted).expect("a certificate");
        roots.add(anchor).expect("it can be trusted");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        let connection = rustls::ClientConnection::new(Arc::new(config), name).expect("a client");
        let stream = TcpStream::connect(address.strip_prefix("https://").expect("TLS")).expect("it listens");
        let mut line = Self(rustls::StreamOwned::new(connection, stream));
        line.0.conn.complete_io(&mut line.0.sock).map_err(|error| error.to_string())?;
        Ok(line)
    }

    /// Asks how the server is: whether it is ready.
    fn asks(&mut self) -> bool {
        self.0.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n").expect("it reads");
        let (mut answer, mut part) = (Vec::new(), [0; 1024]);
        while !answer.ends_with(b"ready\n") {
            let read = self.0.read(&mut part).expect("it answers");
            assert!(read > 0, "it hung up: {}", String::from_utf8_lossy(&answer));
            answer.extend(&part[..read]);
        }
        answer.starts_with(b"HTTP/1.1 200")
    }
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "not so: {what}");
    }
}

#[test]
fn a_certificate_is_renewed_without_losing_a_connection() {
    let (site, next) = (Site::new(), Site::new());
    let mut running = Running::of(&mut site.command());
    let at = running.address.clone();
    let mut old = Line::open(&at, &site.path("tls.crt")).expect("the first certificate is shown");
    assert!(old.asks());
    let copy = |name: &str| fs::copy(next.path(name), site.path(name)).expect("a file");
    fs::copy(site.path("tls.crt"), site.path("before.crt")).expect("a file");
    let trusts = |name: &str| Line::open(&at, &site.path(name)).is_ok();

    // By the files alone.
    copy("tls.crt");
    copy("tls.key");
    until("the new certificate is shown", || trusts("tls.crt"));
    assert!(!trusts("before.crt"), "the old one is shown no more");
    assert!(old.asks(), "a connection of before goes on");

    // A bad one is ignored, and the next good one is taken, also after a signal.
    fs::copy(site.path("tls.crt"), site.path("good.crt")).expect("a file");
    fs::write(site.path("tls.crt"), "no certificate").expect("a file");
    hang_up(running.pid());
    running.until_logged("the previous one stays in use");
    assert!(trusts("good.crt") && old.asks());
    fs::copy(site.path("good.crt"), site.path("tls.crt")).expect("a file");
    hang_up(running.pid());
    running.until_logged("reloaded the certificate");
    assert!(trusts("good.crt") && old.asks());
    let (log, code) = running.stop();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("stopped"), "{log}");
}

#[test]
fn a_hangup_ends_no_server() {
    let dev = Dev::start();
    hang_up(dev.pid());
    assert!(dev.page("/readyz").0.starts_with("http/1.1 200"));
    let site = Site::new();
    let server = Running::of(&mut site.plain("127.0.0.1:0"));
    hang_up(server.pid());
    let list = ["list", "sessions", "--address", &server.address, "--api-key", ADMIN_KEY];
    Ended::of(program().args(list)).with_code(0);
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(dev.stop(), Some(0));
}

#[test]
fn the_first_page_says_what_is_here_and_metrics_are_elsewhere() {
    let dev = Dev::start();
    let (head, page) = dev.page("/");
    assert!(head.starts_with("http/1.1 200") && head.contains("content-type: text/html"), "{head}");
    assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
    for part in
        ["SessionService", "href=\"/healthz\"", "href=\"/readyz\"", "href=\"/mail\"", "href=\"/webhooks\""]
    {
        assert!(page.contains(part), "{part} is not on {page}");
    }
    for link in page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(dev.page(link).0.starts_with("http/1.1 200"), "{link} leads nowhere");
    }
    let secret = dev.ready["person_key"].as_str().expect("a key");
    assert!(!page.contains(secret) && !page.contains("swk_0"), "{page}");
    assert!(dev.page("/metrics").0.starts_with("http/1.1 404"), "metrics are on a port of their own");
    assert!(dev.metrics().1.contains("switchward_disk_level 0"));

    let site = Site::new();
    let server = Running::of(&mut site.plain("127.0.0.1:0"));
    assert_ne!(server.metrics.rsplit(':').next(), server.address.rsplit(':').next());
    assert!(server.metrics.starts_with("http://127.0.0.1:"), "{}", server.metrics);
}

#[test]
fn pages_of_allowed_origins_may_call_from_a_browser() {
    let origin = "https://console.acme.example";
    let asks = |dev: &Dev, origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization,content-type,x-grpc-web"),
        ];
        dev.options("/switchward.v1.SessionService/GetSession", &headers)
    };
    let closed = Dev::start();
    assert!(!asks(&closed, origin).contains("access-control-allow-origin"), "off unless somebody says so");
    let dev = Dev::start_with(&[("SWITCHWARD_CORS__ALLOWED_ORIGINS", "[\"https://console.acme.example\"]")]);
    let head = asks(&dev, origin);
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(head.contains(&format!("access-control-allow-origin: {origin}\r\n")), "{head}");
    assert!(head.contains("access-control-allow-methods: post\r\n"), "{head}");
    assert!(head.contains("authorization") && head.contains("x-grpc-web"), "{head}");
    assert!(!head.contains("access-control-allow-credentials"), "{head}");
    assert!(!asks(&dev, "https://evil.example").contains("access-control-allow-origin"));
    let (head, _) = dev.send(
        "/switchward.v1.SessionService/GetSession",
        &[("origin", origin), ("content-type", "application/grpc-web+proto")],
        "\0\0\0\0\0",
    );
    assert!(head.contains(&format!("access-control-allow-origin: {origin}\r\n")), "{head}");
    assert!(head.contains("access-control-expose-headers") && head.contains("grpc-status"), "{head}");
}
