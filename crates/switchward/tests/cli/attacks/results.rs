//! Forged `Authentication-Results`, and ones in a position where anybody could have put them.

use super::mail::{Mail, SIGNATURE, events, server, undecided};
use super::{APPROVER, DOMAIN};
use crate::mail::field;

const HOST: &str = "mx.acme.example";
const RECEIVED: &str = "Received: from mail.example.com (mail.example.com [192.0.2.10])\r\n";

/// A field of this host.
fn by(host: &str, results: &str) -> String {
    format!("Authentication-Results: {host}; {results}\r\n")
}

/// What the host would say of a mail that its sender signed.
fn good(host: &str) -> String {
    by(host, &format!("dkim=pass header.d={DOMAIN}; dmarc=pass header.from={DOMAIN}"))
}

/// The fields above a mail of the attacker, and what they are.
fn forged() -> Vec<(&'static str, String)> {
    let good = good(HOST);
    let spf = by(HOST, &format!("spf=pass smtp.mailfrom={APPROVER}"));
    let failed = by(HOST, &format!("spf=fail smtp.mailfrom={APPROVER}"));
    let received = |by: &str, with: &str| format!("{RECEIVED}\tby {by} with {with} id 1;\r\n");
    let other = |host: &str| good.replacen(HOST, host, 1);
    let rows = [
        ("below the host's that found nothing", [by(HOST, "none"), good.clone()].concat()),
        ("another method below the host's", [by(HOST, "dkim=none"), spf.clone()].concat()),
        ("a signature below the host's failure", [failed.clone(), good.clone()].concat()),
        ("below a field between", [failed, "Received-SPF: fail\r\n".into(), good.clone()].concat()),
        ("below a foreign Received", [received("mx.evil.example", "ESMTP"), good.clone()].concat()),
        ("below a foreign Received by LMTP", [received("mx.evil.example", "LMTP"), good.clone()].concat()),
        ("below the host's own Received", [received(HOST, "ESMTP"), good.clone()].concat()),
        (
            "below many",
            [received(HOST, "LMTP"), received(HOST, "ESMTPS"), received("a.example", "ESMTP"), good.clone()]
                .concat(),
        ),
        ("below another host's", [by("mx.evil.example", "dkim=none"), good.clone()].concat()),
        ("by a host with words behind its name", other(&format!("\"{HOST}\" evil"))),
        ("by a host with words behind the version", other(&format!("{HOST} 1 foo bar"))),
        ("by a host whose name goes on", other("mx.acme.example.evil.example")),
        ("by a host whose name begins before", other("x-mx.acme.example")),
        ("where the host speaks of SPF alone", spf),
    ];
    rows.into_iter().map(|(what, fields)| (what, format!("{fields}{}", SIGNATURE))).collect()
}

#[test]
fn results_that_the_trusted_host_has_not_written_decide_nothing() {
    let server = server();
    let mail = server.asked("asks-1");
    let to = field(&mail, "Reply-To");
    let mut brought = 0;
    for (what, fields) in forged() {
        let message = fields
            + &Mail::reply(&mail, "forged")
                .text()
                .replace("approve\r\n", &format!("approve\r\n\r\n{what}\r\n"));
        server.hand_over(&[&to], &message);
        brought += 1;
        undecided(&server, "asks-1", what);
        let records = events(&server, "asks-1", "reply.recorded");
        assert_eq!(records.len(), brought, "{what}: {records:?}");
        assert!(records.iter().all(|record| record["authenticated"] == "false"), "{what}: {records:?}");
    }
    // What the host wrote itself, above what came from outside, does.
    let received = format!("{RECEIVED}\tby {HOST} with ESMTP id 1;\r\n");
    let genuine = [good(HOST), received, SIGNATURE.to_owned(), Mail::reply(&mail, "yes").text()].concat();
    server.hand_over(&[&to], &genuine);
    assert_eq!(server.at("asks-1"), "go");
}
