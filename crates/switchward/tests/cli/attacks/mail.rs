//! Mails that were not sent to the reply address, or without proof of their sender: none of them decides.

use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use switchward_testkit::until_blocking;

use super::signer::Key;
use super::{APPROVER, DOMAIN, dns};
use crate::mail::{Server, field, hand_over};
use crate::support::{Ended, ask};

/// A signature that is not checked, for a trusted host's results to refer to.
pub(crate) const SIGNATURE: &str = "DKIM-Signature: v=1; a=rsa-sha256; d=example.com; s=none; c=relaxed/relaxed; h=from:to:subject:message-id; \
     bh=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=; b=AAAA\r\n";
/// How many strangers write.
const STRANGERS: usize = 8;
/// A host of the approver's domain, as its SPF record says.
const HOST: &str = "192.0.2.10";

/// The records of the approver's domain and its keys.
fn records() -> Vec<(String, String)> {
    let mut records = vec![
        (format!("_dmarc.{DOMAIN}"), "v=DMARC1; p=reject".to_owned()),
        (DOMAIN.to_owned(), format!("v=spf1 ip4:{HOST} -all")),
    ];
    records.extend(Key::ALL.map(|key| key.record()).map(|(name, text)| (format!("{name}.{DOMAIN}"), text)));
    records
}

/// A strict server that trusts the host in front, and whose DNS knows the approver's domain and its keys.
pub(crate) fn server() -> Server {
    Server::asking(dns::start(records()), "level = \"strict\"\n")
}

/// A mail of the approver that says yes.
pub(crate) struct Mail {
    pub(crate) to: String,
    /// The message that it answers.
    pub(crate) thread: String,
    /// Says it apart from others.
    pub(crate) id: String,
}

impl Mail {
    /// A reply to what the server wrote.
    pub(crate) fn reply(mail: &str, id: &str) -> Self {
        let thread = format!("<{}>", field(mail, "Message-ID"));
        Self { to: field(mail, "Reply-To"), thread, id: id.to_owned() }
    }

    pub(crate) fn text(&self) -> String {
        let Self { to, thread, id } = self;
        format!(
            "From: Lead <{APPROVER}>\r\nTo: {to}\r\nSubject: Re: lunch at noon?\r\nMessage-ID: <{id}@{DOMAIN}>\r\n\
             Date: Wed, 01 May 2024 10:00:00 +0000\r\nIn-Reply-To: {thread}\r\nReferences: {thread}\r\n\
             MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\napprove\r\n"
        )
    }

    pub(crate) fn signed(&self) -> String {
        Key::good().signed(DOMAIN, &self.text())
    }
}

/// Sends a message by `POST /v1/mail` under a key. Returns the outcome and the reason.
fn post(server: &Server, key: &str, query: &str, message: &str) -> String {
    let address = server.running.address.strip_prefix("http://").expect("plain HTTP");
    let credential = format!("Bearer {key}");
    let headers = [("authorization", credential.as_str()), ("content-type", "message/rfc822")];
    let (head, body) = ask(address, address, &format!("POST /v1/mail?{query}"), &headers, message);
    assert!(head.starts_with("http/1.1 200"), "{head}\n{body}");
    let result: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    format!("{}: {}", result["outcome"].as_str().expect("a word"), result["why"].as_str().expect("a word"))
}

/// The session's events of a type: their data.
pub(crate) fn events(server: &Server, key: &str, kind: &str) -> Vec<Value> {
    let listed = server.run(&["list", "events", key, "-o", "json"]).with_code(0).json();
    let events = listed["events"].as_array().cloned().unwrap_or_default();
    events.into_iter().filter(|event| event["type"] == kind).map(|event| event["data"].clone()).collect()
}

#[track_caller]
pub(crate) fn undecided(server: &Server, key: &str, what: &str) {
    assert_eq!(server.at(key), "decide", "{what}");
    assert_eq!(events(server, key, "approval.decided"), [Value::Null; 0], "{what}");
}

/// An operator's key of this name.
fn operator(server: &Server, subject: &str) -> String {
    let made = server.run(&["keys", "create", "operator", "--subject", subject, "-o", "json"]).with_code(0);
    made.json()["secret"].as_str().expect("a secret").to_owned()
}

/// The answer to the message itself, as a mail server gets it.
fn taken(codes: &[String]) {
    assert!(codes.iter().any(|code| code == "354"), "it comes as far as the message: {codes:?}");
}

#[test]
fn what_the_approver_signed_for_somebody_else_decides_nothing() {
    let server = server();
    let mail = server.asked("asks-1");
    let requester = operator(&server, "bob");
    let (reply_to, id) = (field(&mail, "Reply-To"), field(&mail, "Message-ID"));
    let token = reply_to.split(['+', '@']).nth(1).expect("a token").to_owned();
    // Bob wrote to the approver in the thread, with any text, and the approver answered.
    let threads = [
        ("our id", format!("<{id}>")),
        ("the reply address", format!("<{reply_to}>")),
        ("an id with the token", format!("<a.{token}.2@reply.acme.example>")),
    ];
    for (at, (what, thread)) in threads.into_iter().enumerate() {
        // Each way in gets a mail of its own: what comes twice is one reply.
        let message = |way: &str| {
            let (to, thread) = ("bob@other.example".to_owned(), thread.clone());
            Mail { to, thread, id: format!("lunch.{at}.{way}") }.signed()
        };
        taken(&server.hand_over(&["r@reply.acme.example"], &message("lmtp")));
        taken(&server.hand_over(&[&reply_to], &message("envelope")));
        post(&server, &requester, "", &message("http"));
        let way = format!("sender={APPROVER}&recipient={}", reply_to.replace('+', "%2B"));
        post(&server, &requester, &way, &message("query"));
        server.run(&["mail", "ingest", &server.file(&message("file"))]);
        undecided(&server, "asks-1", what);
    }
    for record in events(&server, "asks-1", "reply.recorded") {
        assert_eq!(record["authenticated"], "false", "{record}");
    }
    // The same to the reply address does.
    server.hand_over(&[&reply_to], &Mail::reply(&mail, "yes").signed());
    assert_eq!(server.at("asks-1"), "go");
}

#[test]
fn the_requester_decides_neither_by_a_mail_of_their_own_nor_by_a_reply_that_they_vouch_for() {
    let server = server();
    let (olga, otto) = (operator(&server, "olga"), operator(&server, "otto"));
    let mail = server.asked_by(&olga, "asks-1");
    let reply_to = field(&mail, "Reply-To");
    let way = format!("peer={HOST}&helo=mail.{DOMAIN}&sender={APPROVER}");
    let results =
        format!("Authentication-Results: mx.acme.example; dkim=pass header.d={DOMAIN}; dmarc=pass\r\n");
    for (name, key) in [("olga", &olga), ("otto", &otto)] {
        // A repeated mail is one reply.
        let forged = |id: &str| Mail::reply(&mail, &format!("{name}.{id}")).text();
        post(&server, key, "", &forged("plain"));
        post(&server, key, &way, &forged("way"));
        post(
            &server,
            key,
            &format!("{way}&recipient={}", reply_to.replace('+', "%2B")),
            &forged("recipient"),
        );
        post(&server, key, "", &format!("{results}{}", forged("told")));
        post(&server, key, &way, &format!("{results}{SIGNATURE}{}", forged("signature")));
    }
    undecided(&server, "asks-1", "nothing is signed");
    let records = events(&server, "asks-1", "reply.recorded");
    assert_eq!(records.len(), 10, "{records:?}");
    for record in records {
        let evidence = record["evidence"].as_str().expect("a text");
        assert!(evidence.contains("spf=none") && record["authenticated"] == "false", "{record}");
        assert!(["olga", "otto"].iter().any(|who| record["brought_by"] == *who), "{record}");
    }
    let vouch = ["reply", "asks-1", APPROVER, "approve", "-o", "json"];
    let refused: Ended = server.run_as(&olga, &vouch).with_code(6);
    assert_eq!(refused.error()["reason"], "SELF_APPROVAL", "{refused:?}");
    undecided(&server, "asks-1", "who asked vouches");
    // A mail that the approver signed decides, by any route.
    assert_eq!(post(&server, &otto, "", &Mail::reply(&mail, "yes").signed()), "recorded: decided");
    assert_eq!(server.at("asks-1"), "go");
}

#[test]
fn short_rsa_keys_sign_nothing_that_decides() {
    let server = server();
    let mail = server.asked("asks-1");
    let to = [field(&mail, "Reply-To")];
    for (key, id) in Key::ALL.iter().zip(["short", "shorter", "good"]) {
        let message = key.signed(DOMAIN, &Mail::reply(&mail, id).text());
        taken(&server.hand_over(&[&to[0]], &message));
        let last = events(&server, "asks-1", "reply.recorded").pop().expect("it was recorded");
        let evidence = last["evidence"].as_str().expect("a text");
        if key.bits < 1024 {
            undecided(&server, "asks-1", &format!("{} bits", key.bits));
            assert!(evidence.contains("weak_key"), "{evidence}");
        } else {
            assert_eq!(server.at("asks-1"), "go", "{evidence}");
        }
    }
}

/// A domain whose DNS does not answer.
const TARPIT: &str = "tarpit.example";

#[test]
fn strangers_ask_nothing_of_the_dns_and_who_waits_for_it_holds_up_nobody() {
    let (dns, unanswered) = dns::start_silent(records(), Some(TARPIT));
    let server = Server::asking(dns, "level = \"strict\"\n");
    let mail = server.asked("asks-1");
    let reply_to = field(&mail, "Reply-To");
    let of = |sender: &str, domain: &str, to: &str, id: &str| {
        let mail = Mail { to: to.to_owned(), thread: "<a@b.example>".to_owned(), id: id.to_owned() };
        Key::good().signed(domain, &mail.text().replace(APPROVER, sender))
    };
    for number in 0..STRANGERS {
        let domain = format!("n{number}.{TARPIT}");
        let sender = format!("kim@{domain}");
        // Without a token, with an unknown one, and with another recipient's.
        let made_up = reply_to.replacen('+', "+0", 1);
        for (to, id) in [("r@reply.acme.example", "none"), (&made_up, "made.up"), (&reply_to, "another")] {
            server.hand_over(&[to], &of(&sender, &domain, to, &format!("{id}.{number}")));
        }
    }
    undecided(&server, "asks-1", "strangers wrote");
    assert_eq!(*unanswered.lock().expect("nobody panics with it"), [""; 0], "nothing was asked");
    // For a recipient of the gate, the DNS is queried and awaited.
    let slow = format!("slow.{TARPIT}");
    let asked = server.asked_of("slow-1", &format!("kim@{slow}"));
    let to = field(&asked, "Reply-To");
    let message = of(&format!("kim@{slow}"), &slow, &to, "slow");
    let (done, lmtp) = (AtomicBool::new(false), server.lmtp);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            hand_over(lmtp, &[&to], &message);
            done.store(true, Ordering::Relaxed);
        });
        until_blocking("the DNS is queried", || {
            !unanswered.lock().expect("nobody panics with it").is_empty()
        });
        server.hand_over(&[&reply_to], &Mail::reply(&mail, "yes").signed());
        assert_eq!(server.at("asks-1"), "go");
        assert!(!done.load(Ordering::Relaxed), "the other one still waits");
    });
}
