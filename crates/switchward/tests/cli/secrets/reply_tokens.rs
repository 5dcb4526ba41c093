//! Reply tokens are in outbound mail, and never stored.

use serde_json::{Value, json};

use super::{Written, made, server};
use crate::delivery_jobs::Endpoint;
use crate::mail::{Sink, field};
use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::{Ended, folder, private, program, run};

/// A workflow that gives the token to everybody that a definition can reach, and keeps it wherever it can.
fn shipment(url: &str) -> String {
    let send = |channel: &str, to: &str, body: &str| {
        let config = json!({ "channel": channel, "recipients": [to], "subject": "S {gathered.reply_token}", "body": body });
        json!({ "type": "send_notification", "config": config })
    };
    let request = json!({ "type": "http_request", "config": {
        "method": "POST", "url": format!("{url}/request?t={{gathered.reply_token}}"),
        "headers": { "authorization": "Bearer {gathered.reply_token}" },
        "body": { "t": ["{gathered.token}", "{gathered.reply_token}."] },
    } });
    let keep = json!({ "type": "set_data", "config": { "key": "token", "value": "{gathered.reply_token}" } });
    let texts = json!({ "subject_template": "S {{ gathered_data.token }}", "body_template": "B {{ gathered_data.token }}" });
    json!({
        "name": "parcel",
        "states": [
            { "name": "push", "type": "logic", "operations": [
                keep,
                send("email", "carrier@example.com", "Answer with {gathered.reply_token}."),
                send("webhook", &format!("{url}/message?t={{gathered.reply_token}}"), "{\"t\": \"{gathered.token}\"}"),
                request,
            ] },
            { "name": "decide", "type": "approval", "approvers": ["lead@example.com"], "request_template": texts },
            { "name": "done", "type": "conversation" },
        ],
        "transitions": [
            { "from": "push", "to": "decide", "guards": [{ "type": "external_event", "config": { "event_key": "noted" } }] },
            { "from": "decide", "port": "approved", "to": "done" },
            { "from": "decide", "port": "rejected", "to": "done" },
        ],
    })
    .to_string()
}

/// The configuration of a server that may reach these two, or without delivery.
fn configure(site: &Site, (endpoint, sink): (&Endpoint, &Sink), delivery: bool) {
    let port = endpoint.url.rsplit(':').next().expect("an address has a port");
    let config = format!(
        "[delivery]\nenabled = {delivery}\nallow_http = true\nallow_loopback = true\nports = [{port}]\n\
         [[tenants]]\nname = \"acme\"\nadmin_key_file = {:?}\n\
         [mail]\nfrom = \"Acme <approvals@acme.example>\"\nreply = \"r+{{token}}@reply.acme.example\"\n\
         [mail.smtp]\nhost = \"127.0.0.1\"\nport = {}\ntls = \"plain\"\nhello = \"acme.example\"\n",
        site.path("admin.key"),
        sink.address.port()
    );
    private(site.path("tenants.toml"), &config);
}

fn call(running: &Running, key: &str, words: &[&str]) -> Ended {
    Ended::of(program().args(words).args(["--address", &running.address, "--api-key", key]))
}

/// Lets the endpoint take a message and a request, in whichever order they come; both must hold the token.
fn taken(endpoint: &Endpoint, token: &str) {
    let mut paths = Vec::new();
    for _ in 0..2 {
        let asked = endpoint.next("POST /");
        let path = asked.line().split(' ').nth(1).expect("a path").to_owned();
        assert!(path.ends_with(&format!("?t={token}")), "{path}");
        let whole = if path.starts_with("/message") {
            json!({ "t": token })
        } else {
            assert_eq!(asked.header("authorization"), Some(format!("Bearer {token}").as_str()));
            json!({ "t": [token, format!("{token}.")] })
        };
        assert_eq!(asked.body, whole, "{path}");
        paths.push(path.split('?').next().unwrap_or_default().to_owned());
        asked.answer.send((200, json!({}))).expect("it waits");
    }
    paths.sort();
    assert_eq!(paths, ["/message", "/request"]);
}

/// A reply token, its code, and the code's bytes, none of which may be stored anywhere.
fn parts(token: &str) -> Vec<Vec<u8>> {
    let code = token.rsplit('.').next().expect("a code");
    let digits: Vec<u8> =
        code.chars().map(|c| u8::try_from(c.to_digit(16).expect("hex")).expect("a digit")).collect();
    let bytes = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    vec![token.as_bytes().to_vec(), code.as_bytes().to_vec(), code.to_uppercase().into_bytes(), bytes]
}

#[test]
fn a_reply_token_is_in_what_goes_out_and_in_nothing_that_a_server_writes() {
    let (site, endpoint, sink) = (Site::new(), Endpoint::start(), Sink::start());
    let (ring, data) = (made(&site), site.path("data"));
    let (waiting, still) = (site.path("waiting"), site.path("still"));
    // Delivery is disabled at first, so that all effects are pending when the backup is taken.
    configure(&site, (&endpoint, &sink), false);
    let running = Running::of(&mut server(&site, Some(&ring)));
    let files = folder(&[("parcel.json", &shipment(&endpoint.url))]);
    let definition = files.path().join("parcel.json");
    call(&running, ADMIN_KEY, &["deploy", definition.to_str().expect("a path")]).with_code(0);
    call(&running, ADMIN_KEY, &["start", "parcel", "--key", "parcel-1"]).with_code(0);
    let shown = call(&running, ADMIN_KEY, &["get", "parcel-1", "-o", "json"]).with_code(0).json();
    let token = shown["session"]["replyToken"].as_str().expect("a token").to_owned();
    assert_eq!(shown["session"]["data"]["token"], token.as_str(), "everyone who may read it does");
    run(["backup", &waiting, "--data-dir", &data]).with_code(0);
    assert_eq!(running.stop().1, Some(0));
    configure(&site, (&endpoint, &sink), true);
    let running = Running::of(&mut server(&site, Some(&ring)));
    taken(&endpoint, &token);
    let mail = sink.next().replace("=\r\n", "");
    assert!(mail.contains(&format!("Answer with {token}.")), "{mail}");
    assert_eq!(field(&mail, "Subject"), format!("S {token}"));
    // It admits its event. The log of the call must not contain it, either.
    call(&running, &token, &["event", "-", "noted", "a=1"]).with_code(0);
    let at = |running: &Running| -> Value {
        call(running, ADMIN_KEY, &["get", "parcel-1", "-o", "json"]).with_code(0).json()["session"]["at"][0]
            .clone()
    };
    assert_eq!(at(&running), "decide");
    let (log, code) = running.stop();
    assert_eq!(code, Some(0), "{log}");
    let mut command = program();
    command.args(["backup", &still, "--data-dir", &data]).env("SWITCHWARD_KEYS_FILE", &ring);
    Ended::of(&mut command).with_code(0);
    for folder in [&data, &waiting, &still] {
        let written = Written::of(folder);
        assert!(!written.holds(b"carrier@example.com").is_empty(), "{folder}");
        for part in parts(&token) {
            assert_eq!(written.holds(&part), [""; 0], "{folder}: {}", String::from_utf8_lossy(&part));
        }
    }
    assert!(!log.contains(&token), "{log}");
}
