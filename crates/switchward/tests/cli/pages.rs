//! The pages of a development server, and what other pages in the same browser try with them.

use serde_json::Value;

use crate::mail_server::ASKS;
use crate::support::{Dev, folder, form_token, run};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// A server with one mail that asks for an approval.
fn asked(arguments: &[&str]) -> (Dev, Value) {
    let dev = Dev::start_on(&[&["--clock", "manual"], arguments].concat(), &[]);
    let folder = folder(&[("asks.yaml", ASKS)]);
    dev.run(&["deploy", folder.path().join("asks.yaml").to_str().expect("a path")]).with_code(0);
    dev.run(&["start", "asks", "--key", "asks-1"]).with_code(0);
    dev.until("a mail goes out", || !dev.mails().is_empty());
    let mail = dev.mails().remove(0);
    (dev, mail)
}

/// Sends a form that approves, and makes sure that it does not.
#[track_caller]
fn refused(dev: &Dev, path: &str, headers: &[(&str, &str)], token: &str, status: &str) {
    let body = format!("{token}text=approve&proved=yes");
    let (head, _) = dev.send(path, &[&[FORM], headers].concat(), &body);
    assert!(head.starts_with(&format!("http/1.1 {status}")), "{path} {headers:?}: {head}");
    assert_eq!(dev.json(&["get", "asks-1"])["session"]["at"][0], "decide", "{path} {headers:?}");
}

#[test]
fn a_mail_is_answered_by_its_own_form_alone() {
    let (dev, mail) = asked(&[]);
    let page = mail["page"].as_str().expect("a path").to_owned();
    let (head, shown) = dev.page(&page);
    assert!(head.contains("referrer-policy: same-origin") && head.contains("frame-ancestors"), "{head}");
    let (reply, token) = (format!("{page}/reply"), format!("token={}&", form_token(&shown)));
    let own = dev.address().to_owned();
    refused(&dev, &reply, &[], "", "403");
    refused(&dev, &reply, &[], "token=&", "403");
    refused(&dev, &reply, &[], &format!("token={:032x}&", 1), "403");
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", "http://127.0.0.1:1"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "none"),
    ] {
        refused(&dev, &reply, &[(name, value)], &token, "403");
    }
    refused(&dev, &reply, &[("origin", &own), ("sec-fetch-site", "cross-site")], &token, "403");
    let other = form_token(&dev.page("/webhooks").1);
    refused(&dev, &reply, &[("origin", &own)], &format!("token={other}&"), "403");

    let body = format!("{token}text=approve&proved=yes");
    let browser = [FORM, ("origin", &own), ("sec-fetch-site", "same-origin")];
    assert!(dev.send(&reply, &browser, &body).0.starts_with("http/1.1 303"));
    assert_eq!(dev.json(&["get", "asks-1"])["session"]["at"][0], "go");
}

#[test]
fn addresses_of_mails_cannot_be_guessed() {
    let (dev, mail) = asked(&[]);
    let page = mail["page"].as_str().expect("a path");
    let id = page.strip_prefix("/mail/").expect("a mail's");
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    for guessed in ["/mail/0", "/mail/1", "/mail/2", "/mail/00000000000000000000000000000001"] {
        assert!(dev.page(guessed).0.starts_with("http/1.1 404"), "{guessed}");
        refused(&dev, &format!("{guessed}/reply"), &[], "", "404");
    }
}

/// The head of the answer to a request for a page under another name.
fn under(dev: &Dev, method: &str, path: &str, host: &str) -> String {
    dev.http_as(host, &format!("{method} {path}"), &[FORM], "").0
}

#[test]
fn pages_are_shown_under_no_foreign_name() {
    let (dev, mail) = asked(&["--allow-host", "box.example"]);
    let page = mail["page"].as_str().expect("a path");
    let port = dev.address().rsplit(':').next().expect("a port");
    let paths = ["/mail", "/mail.json", page, "/webhooks"];
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", ""] {
        for path in paths {
            let head = under(&dev, "GET", path, host);
            assert!(head.starts_with("http/1.1 421") || head.starts_with("http/1.1 400"), "{host:?}: {head}");
        }
        let head = under(&dev, "POST", "/webhooks/listen", host);
        assert!(head.starts_with("http/1.1 421") || head.starts_with("http/1.1 400"), "{host:?}: {head}");
    }
    for host in [format!("localhost:{port}"), format!("[::1]:{port}"), "box.example".to_owned()] {
        for path in paths {
            assert!(under(&dev, "GET", path, &host).starts_with("http/1.1 200"), "{host} {path}");
        }
    }
}

#[test]
fn the_environment_names_the_authority_of_a_server() {
    let mut command = crate::support::program();
    command.args(["list", "sessions", "--address", "https://127.0.0.1:1", "--api-key", "swk_1"]);
    let ended = crate::support::Ended::of(command.env("SWITCHWARD_CA", "/nowhere/ca.pem")).with_code(3);
    assert!(ended.err.contains("/nowhere/ca.pem does not exist"), "{ended:?}");
}

#[test]
fn shells_know_what_to_complete() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(["completion", shell]).with_code(0).out;
        assert!(script.contains("authorize") && script.contains("switchward"), "{shell}");
    }
    run(["completion", "dos"]).with_code(2);
}
