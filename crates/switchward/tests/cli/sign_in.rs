//! Decision pages that want a sign-in with an OpenID provider, over a server as a process.

mod provider;

use provider::{Provider, parameter};
use serde_json::{Value, json};
use std::collections::HashMap;
use switchward_gateway::limits::SIGN_INS_OF_TENANT_MAX;
use switchward_testkit::free_port;

use crate::attacks::dns;
use crate::mail::{ASKS, Sink};
use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::{Ended, exchange, folder, private, program, run};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// The cookies that a browser keeps.
type Browser = HashMap<String, String>;

/// A server whose pages require a sign-in, and an approver's page.
struct Server {
    running: Running,
    site: Site,
    provider: Provider,
    host: String,
    page: String,
}

/// The configuration of a server with pages on this port; `more` is in its `[mail]` section.
fn configure(site: &Site, sink: &Sink, port: u16, more: &str) {
    let config = format!(
        "listen = \"127.0.0.1:{port}\"\nmetrics = {{ listen = \"127.0.0.1:0\" }}\n[[tenants]]\nname = \"acme\"\nadmin_key_file = {:?}\n\
         [mail]\nfrom = \"Acme <approvals@acme.example>\"\nreply = \"r+{{token}}@reply.acme.example\"\n\
         pages = \"http://127.0.0.1:{port}\"\n{more}\
         [mail.smtp]\nhost = \"127.0.0.1\"\nport = {}\ntls = \"plain\"\nhello = \"acme.example\"\n\
         [mail.in]\ndns = [\"{}\"]\n",
        site.path("admin.key"),
        sink.address.port(),
        dns::start([])
    );
    private(site.path("tenants.toml"), &config);
}

/// The part of mail with this provider.
fn with(provider: &Provider, site: &Site) -> String {
    private(site.path("client.secret"), "swordfish");
    format!(
        "oidc = {{ issuer = {:?}, client_id = \"switchward\", client_secret_file = {:?}, local = true }}\n",
        provider.issuer,
        site.path("client.secret")
    )
}

fn port(host: &str) -> u16 {
    host.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
}

impl Server {
    fn start() -> Self {
        let (site, sink, provider) = (Site::new(), Sink::start(), Provider::start());
        let host = format!("127.0.0.1:{}", free_port());
        configure(&site, &sink, port(&host), &with(&provider, &site));
        run(["secrets", "create", &site.path("data.keys")]).with_code(0);
        let running = Running::of(&mut site.plain(&host));
        let mut server = Self { running, site, provider, host, page: String::new() };
        server.run(&["tenant", "set", "--link-auth", "oidc"]).with_code(0);
        let files = folder(&[("asks.yaml", ASKS)]);
        server.run(&["deploy", files.path().join("asks.yaml").to_str().expect("a path")]).with_code(0);
        server.run(&["start", "asks", "--key", "asks-1"]).with_code(0);
        let mail = sink.next().replace("=\r\n", "").replace("=3D", "=");
        let at = mail.find("/a/").unwrap_or_else(|| panic!("no page: {mail}"));
        server.page = mail[at..].split_whitespace().next().expect("a path").to_owned();
        server
    }

    fn run(&self, words: &[&str]) -> Ended {
        let mut command = program();
        command.env("SWITCHWARD_ADDRESS", &self.running.address).env("SWITCHWARD_API_KEY", ADMIN_KEY);
        Ended::of(command.args(words))
    }

    fn at(&self) -> Value {
        self.run(&["get", "asks-1", "-o", "json"]).with_code(0).json()["session"]["at"][0].clone()
    }

    /// Asks the server as a browser: the head of the answer, and its body.
    fn open(&self, browser: &mut Browser, line: &str, body: &str) -> (String, String) {
        let cookies: Vec<String> = browser.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let headers = [FORM, ("cookie", &cookies.join("; "))];
        let (head, body) = exchange(&self.host, &self.host, line, &headers, body);
        for set in head.lines().filter_map(|line| line.strip_prefix("set-cookie: ")) {
            let (name, value) =
                set.split(';').next().and_then(|pair| pair.split_once('=')).expect("a cookie");
            browser.insert(name.to_owned(), value.to_owned());
        }
        browser.retain(|_, value| !value.is_empty());
        (head, body)
    }

    /// Follows the page's link: the address of the provider's page.
    fn begun(&self, browser: &mut Browser) -> String {
        let (head, body) = self.open(browser, &format!("GET {}/sign-in", self.page), "");
        let to = head.lines().find_map(|line| line.strip_prefix("location: "));
        to.unwrap_or_else(|| panic!("{head}\n{body}")).to_owned()
    }

    /// The way back from the provider.
    fn back(&self, browser: &mut Browser, (code, state): &(String, String)) -> (String, String) {
        self.open(browser, &format!("GET /a/oidc/callback?code={code}&state={state}"), "")
    }

    /// The right person signs in. Returns their browser, and the page that it shows.
    fn signed_in(&self) -> (Browser, String) {
        let mut browser = Browser::new();
        let page = self.begun(&mut browser);
        assert!(page.starts_with(&format!("{}/authorize?", self.provider.issuer)), "{page}");
        let (head, body) = self.back(&mut browser, &self.provider.back(&page, false, &json!({})));
        assert!(head.starts_with("HTTP/1.1 303"), "{head}\n{body}");
        let (_, page) = self.open(&mut browser, &format!("GET {}", self.page), "");
        let shown = page.split("name=\"shown\" value=\"").nth(1).unwrap_or_else(|| panic!("no form: {page}"));
        (browser, shown.split('"').next().unwrap_or_default().to_owned())
    }

    /// Approves what a page has shown.
    fn approve(&self, browser: &mut Browser, shown: &str) -> String {
        let words = format!("decision=approve&shown={shown}&form={:032x}", 7);
        self.open(browser, &format!("POST {}", self.page), &words).0
    }
}

#[test]
fn only_the_person_signed_in_as_the_approver_decides() {
    let server = Server::start();
    let provider = &server.provider;
    let (mut right, shown) = server.signed_in();
    let faults = [
        ("issuer_wrong", json!({ "iss": "https://login.evil.example" })),
        ("audience_wrong", json!({ "aud": "another" })),
        ("nonce_wrong", json!({ "nonce": "0".repeat(64) })),
        ("id_token_expired", json!({ "exp": 1_700_000_000 })),
        ("address_unverified", json!({ "email_verified": false })),
        ("address_other", json!({ "email": "eve@example.com" })),
        ("signature_wrong", json!({})),
        ("state_unknown", json!({})),
    ];
    for (word, claims) in faults {
        let mut browser = Browser::new();
        let page = server.begun(&mut browser);
        let mut back = provider.back(&page, word == "signature_wrong", &claims);
        if word == "state_unknown" {
            back.1 = parameter(&server.begun(&mut Browser::new()), "state");
        }
        let (head, body) = server.back(&mut browser, &back);
        let refused = head.starts_with("HTTP/1.1 4") && body.contains(&format!("({word})"));
        assert!(refused, "{word}: {head}\n{body}");
        let head = server.approve(&mut browser, &shown);
        assert!(head.starts_with("HTTP/1.1 403"), "{word}: {head}");
        assert_eq!(server.at(), "decide", "{word}");
    }
    let head = server.approve(&mut right, &shown);
    assert!(head.starts_with("HTTP/1.1 303"), "{head}");
    assert_eq!(server.at(), "go");
}

#[test]
fn a_tenant_exchanges_no_more_codes_at_one_time_than_its_share() {
    let server = Server::start();
    let provider = &server.provider;
    let begin = || {
        let mut browser = Browser::new();
        let back = provider.back(&server.begun(&mut browser), false, &json!({}));
        (browser, back)
    };
    provider.hold(true);
    let several: Vec<_> = (0..SIGN_INS_OF_TENANT_MAX).map(|_| begin()).collect();
    let (mut other, back) = begin();
    let open = &|(mut browser, back): (Browser, _)| server.back(&mut browser, &back).0;
    std::thread::scope(|scope| {
        let waiting: Vec<_> = several.into_iter().map(|one| scope.spawn(move || open(one))).collect();
        provider.until_came(SIGN_INS_OF_TENANT_MAX);
        let (head, body) = server.back(&mut other, &back);
        let refused = head.starts_with("HTTP/1.1 503") && body.contains("(sign_in_unavailable)");
        assert!(refused, "{head}\n{body}");
        provider.hold(false);
        for one in waiting {
            let head = one.join().expect("it is answered");
            assert!(head.starts_with("HTTP/1.1 303"), "{head}");
        }
    });
    let (mut other, back) = begin();
    assert!(server.back(&mut other, &back).0.starts_with("HTTP/1.1 303"), "it is accepted again");
}

#[test]
fn a_sign_in_without_a_provider_is_logged_and_refused() {
    let mut server = Server::start();
    let (_, shown) = server.signed_in();
    let sink = Sink::start();
    let (log, code) = server.running.stop();
    assert!(code == Some(0) && !log.contains("has no OpenID provider"), "{log}");
    // The tenant's own setting stays, but there is no provider.
    configure(&server.site, &sink, port(&server.host), "");
    server.running = Running::of(&mut server.site.plain(&server.host));
    let mut browser = Browser::new();
    let (_, page) = server.open(&mut browser, &format!("GET {}", server.page), "");
    assert!(page.contains("has no OpenID provider") && !page.contains("/sign-in"), "{page}");
    let head = server.approve(&mut browser, &shown);
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    assert_eq!(server.at(), "decide");
    server.run(&["tenant", "set", "--link-auth", "code"]).with_code(0);
    let refused = server.run(&["tenant", "set", "--link-auth", "oidc", "-o", "json"]).with_code(4);
    assert_eq!(refused.error()["reason"], "SIGN_IN_NOT_CONFIGURED", "{refused:?}");
    let (log, code) = server.running.stop();
    assert_eq!(code, Some(0), "{log}");
    let warning = "the tenant acme has link_auth = oidc, but this server has no OpenID provider";
    assert!(log.contains(warning), "{log}");
    // A server whose configuration requires one for all does not start, and `doctor` reports the same.
    configure(&server.site, &sink, port(&server.host), "link_auth = \"oidc\"\n");
    let refused = Ended::of(&mut server.site.plain(&server.host)).with_code(1);
    assert!(refused.err.contains("configure one under [mail.oidc]"), "{refused:?}");
    let ended = doctor(&server.site).with_code(5);
    assert!(ended.out.contains("mail.link_auth"), "{ended:?}");
}

fn doctor(site: &Site) -> Ended {
    let mut command = program();
    command.args(["doctor", "--config", &site.path("tenants.toml"), "--data-dir", &site.path("data")]);
    Ended::of(command.args(["-o", "json"]))
}

#[test]
fn a_doctor_asks_the_provider_what_it_is() {
    let (site, sink, provider) = (Site::new(), Sink::start(), Provider::start());
    run(["secrets", "create", &site.path("data.keys")]).with_code(0);
    let said = |more: &str| {
        configure(&site, &sink, free_port(), more);
        let checks = doctor(&site).json()["checks"].as_array().cloned().unwrap_or_default();
        checks.into_iter().find(|check| check["check"] == "oidc")
    };
    assert_eq!(said(""), None);
    let right = with(&provider, &site);
    let found = said(&right).expect("it is looked at");
    assert!(found["status"] == "ok" && found["message"].to_string().contains("publishes 1 key"), "{found}");
    let found = said(&right.replace("127.0.0.1", "localhost")).expect("it is looked at");
    assert_eq!(found["status"], "fail", "it calls itself otherwise: {found}");
}
