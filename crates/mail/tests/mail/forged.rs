//! Messages with a forged sender, each beside the genuine one that differs from it in one point.

use std::net::IpAddr;

use switchward_expr::{APPROVALS, REJECTIONS, ReplyDecision};
use switchward_mail::incoming::{Envelope, Peer, Settings};

use crate::harness::{APPROVER, HARNESS, Key, LOOKALIKE, Mail, REPLY_TO, SIGNED, SUBJECT, Seen, TRUSTED};

/// A message that must not decide, with what its transport knows.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) mail: Mail,
    pub(crate) envelope: Envelope,
    pub(crate) trusting: bool,
}

fn case(name: &str, mail: Mail) -> Case {
    Case { name: name.to_owned(), mail, envelope: Envelope::default(), trusting: false }
}

fn settings(trusting: bool) -> &'static Settings {
    if trusting { &HARNESS.trusting } else { &HARNESS.settings }
}

pub(crate) fn all_phrases() -> impl Iterator<Item = &'static str> {
    APPROVALS.iter().chain(REJECTIONS).copied()
}

/// A reply that is genuine but for its signature.
fn unsigned(phrase: &str) -> Mail {
    Mail::plain(&format!("{phrase}\n\nDana\n"))
}

/// Signatures by others than the approver's host.
fn wrong_signatures(phrase: &str) -> Vec<Case> {
    let mail = || unsigned(phrase);
    let without = |field: &str| {
        let fields: Vec<&str> = SIGNED.iter().filter(|known| **known != field).copied().collect();
        mail().signed(&HARNESS.corp, &fields)
    };
    let of = |name: &str, key: &Key| case(name, mail().signed(key, SIGNED));
    let mut cases = vec![
        case("unsigned", mail()),
        of("signed by another domain", &HARNESS.evil),
        of("signed by a lookalike", &HARNESS.lookalike),
        of("signed with a key that is not published", &HARNESS.forger),
        case("signed twice by others", mail().signed(&HARNESS.evil, SIGNED).signed(&HARNESS.forger, SIGNED)),
        case(
            "signature without value",
            mail().above(
                "DKIM-Signature",
                "v=1; a=ed25519-sha256; d=corp.example; s=s1; h=from:to:subject:message-id; bh=; b=",
            ),
        ),
        case("signature of garbage", mail().above("DKIM-Signature", "d=corp.example;;;=;b")),
        case(
            "sender field",
            mail()
                .set("From", "Mallory <m@evil.example>")
                .below("Sender", APPROVER)
                .signed(&HARNESS.evil, SIGNED),
        ),
    ];
    let nameless: Vec<&str> =
        SIGNED.iter().filter(|field| !["Message-ID", "Date"].contains(field)).copied().collect();
    cases.push(case("neither id nor date signed", mail().signed(&HARNESS.corp, &nameless)));
    cases.push(case("a date signed that is not there", mail().without("Date").signed(&HARNESS.corp, &DATED)));
    for field in ["From", "To", "Subject"] {
        cases.push(case(&format!("{field} not signed"), without(field)));
    }
    let mut old = mail().genuine();
    old.headers[0].1 = old.headers[0].1.replace("d=corp", "x=1000000000; d=corp");
    cases.push(case("expired", old));
    let mut weaker = mail().genuine();
    weaker.headers[0].1 = weaker.headers[0].1.replace("ed25519-sha256", "rsa-sha1");
    cases.push(case("another algorithm", weaker));
    let mut many = mail().genuine();
    for _ in 0..12 {
        many = many.above("DKIM-Signature", &INVALID_SIGNATURE.replace("d=x", "d=evil.example"));
    }
    cases.push(case("too many signatures", many));
    cases
}

/// The fields of services that do not sign the id.
const DATED: [&str; 4] = ["From", "To", "Subject", "Date"];

const INVALID_SIGNATURE: &str = "v=1; a=ed25519-sha256; d=x; s=s1; h=from:to; bh=AAAA; b=AAAA";

/// Changes on the way.
fn changed(phrase: &str) -> Vec<Case> {
    let other = Mail::plain("What is this?\n").genuine();
    let of = |body: &str| Mail { body: body.to_owned(), ..other.clone() };
    let mut cases = vec![
        case("body replaced", of(&format!("{phrase}\r\n"))),
        case("word put before the body", of(&format!("{phrase}\r\n{}", other.body))),
        case("subject changed", other.clone().set("Subject", phrase)),
        case(
            "recipient changed",
            Mail { body: format!("{phrase}\r\n"), ..other.clone().set("To", REPLY_TO) },
        ),
    ];
    let mut part = Mail::plain("").signed_in_part(&HARNESS.corp);
    part.body = format!("{phrase}\r\n");
    cases.push(case("word added below a signature's length", part));
    let mut part = Mail::plain(&format!("{phrase}\n")).signed_in_part(&HARNESS.corp);
    cases.push(case("signature with a length", part.clone()));
    part.body.push_str("more\r\n");
    cases.push(case("signature with a length, and more", part));
    let sam = unsigned(phrase).set("From", "Sam <sam@corp.example>").genuine();
    cases.push(case("sender changed after signing", sam.clone().set("From", APPROVER)));
    cases.push(case("another of the same domain", sam));
    for (name, value) in [
        ("From", APPROVER),
        ("From", "sam@corp.example"),
        ("Subject", SUBJECT),
        ("To", REPLY_TO),
        ("Message-ID", "<m2@corp.example>"),
        ("Content-Type", "text/html"),
        ("Date", "Wed, 01 May 2024 11:00:00 +0000"),
        ("Content-Transfer-Encoding", "base64"),
    ] {
        cases.push(case(&format!("a second {name} above"), unsigned(phrase).genuine().above(name, value)));
        cases.push(case(&format!("a second {name} below"), unsigned(phrase).genuine().below(name, value)));
        cases.push(case(&format!("a second {name}, signed"), unsigned(phrase).below(name, value).genuine()));
    }
    // Signed and sent to somebody else, then sent to us by the recipient.
    let mut replayed = case("sent on to us", unsigned(phrase).set("To", "mallory@evil.example").genuine());
    replayed.envelope.recipients = vec![REPLY_TO.to_owned()];
    cases.push(replayed);
    let mut threaded = unsigned(phrase).set("To", "mallory@evil.example");
    threaded =
        threaded.set("References", "<a.tok1@reply.acme.example> <m.tok1@reply.acme.example>").genuine();
    let mut threaded = case("sent on to us, in our thread", threaded.above("Delivered-To", REPLY_TO));
    threaded.envelope.recipients = vec![REPLY_TO.to_owned()];
    cases.push(threaded);
    // A second signature with the first one's value, said to cover a field that was added, and blanks that no relaxed
    // signature sees.
    let few = ["From", "To", "Subject", "Message-ID"];
    let mut copied = unsigned(phrase).set("To", "mallory@evil.example").signed(&HARNESS.corp, &few);
    let second = copied.headers[0].1.replace("\th=", "\th=Cc:").replace(" h=", " h=Cc:");
    copied.body.push_str(" \r\n");
    let copied = copied.below("Cc", REPLY_TO);
    cases.push(case(
        "a signature copied for a field that was added",
        copied.clone().above("DKIM-Signature", &second),
    ));
    cases.push(case("the same below", copied.below("DKIM-Signature", &second)));
    let added = unsigned(phrase).set("To", "mallory@evil.example").genuine().below("Cc", REPLY_TO);
    cases.push(case("sent on to us by a field that is not signed", added));
    let boundary = Mail::plain(&format!("No.\n--x\n\n{phrase}\n--x--\n")).genuine();
    cases.push(case("another boundary", boundary.set("Content-Type", "multipart/mixed; boundary=x")));
    cases
}

/// Addresses that look like the approver's.
fn lookalikes(phrase: &str) -> Vec<Case> {
    let froms = [
        "\"dana@corp.example\" <m@evil.example>",
        "dana@corp.example <m@evil.example>",
        "\"Dana Reed <dana@corp.example>\" <m@evil.example>",
        "dana@corp.example, m@evil.example",
        "m@evil.example, dana@corp.example",
        "<dana@corp.example> <m@evil.example>",
        "<m@evil.example> <dana@corp.example>",
        "dana@corp.example:m@evil.example",
        "Team: dana@corp.example;",
        "<@corp.example:m@evil.example>",
        "dana@corp.example(@evil.example)m@evil.example",
        "m@evil.example (dana@corp.example)",
        "dana@corp.example\u{200b} <m@evil.example>",
        "\"dana@corp.example\"@evil.example",
        "dana@corp.example.evil.example",
        "dana@[192.0.2.1]",
        "dana@sub.corp.example",
        "dana%corp.example@evil.example",
        "=?utf-8?q?dana=40corp.example?= <m@evil.example>",
        "=?utf-8?q?dana=40corp.example_=3Cdana=40corp.example=3E?= <m@evil.example>",
        "dana@c\u{43e}rp.example",
        "dana@xn--crp-sed.example",
        "dan\u{430}@corp.example",
        "DANA@corp.example\u{0}",
        "dana",
        "",
        "<>",
    ];
    let mut cases = Vec::new();
    for from in froms {
        for key in [&HARNESS.evil, &HARNESS.lookalike] {
            let mail = unsigned(phrase).set("From", from);
            cases.push(case(&format!("from {from:?}, signed by {}", key.domain), mail.signed(key, SIGNED)));
        }
    }
    cases
}

/// What hosts and envelopes prove of others.
fn envelopes(phrase: &str) -> Vec<Case> {
    let peer = |address: &str, helo: &str| Peer {
        address: address.parse::<IpAddr>().unwrap(),
        helo: helo.to_owned(),
    };
    let of = |name: &str, sender: &str, peer: Option<Peer>| Case {
        envelope: Envelope { sender: Some(sender.to_owned()), recipients: vec![REPLY_TO.to_owned()], peer },
        ..case(name, unsigned(phrase))
    };
    vec![
        of("another host", APPROVER, Some(peer("198.51.100.1", "corp.example"))),
        of("a host of another domain", "m@evil.example", Some(peer("198.51.100.1", "evil.example"))),
        of("the domain's host for another", "m@evil.example", Some(peer("192.0.2.10", "mx.corp.example"))),
        of("no peer", APPROVER, None),
        of("the null sender", "", Some(peer("192.0.2.10", "corp.example"))),
        of("a domain below", "dana@x.corp.example", Some(peer("192.0.2.10", "corp.example"))),
    ]
}

pub(crate) const RESULTS: &str = "Authentication-Results";

/// What a trusted host says of a sender that it has proved.
fn good_results() -> String {
    let spf = format!("spf=pass smtp.mailfrom={APPROVER}");
    format!(
        "{TRUSTED}; dkim=pass header.d=corp.example header.s=s1; {spf}; dmarc=pass header.from=corp.example"
    )
}

/// A trusted host's results for a forged message.
fn bad_results() -> String {
    format!("{TRUSTED}; dkim=none; spf=none; dmarc=fail header.from=corp.example")
}

fn trusting(name: &str, mail: Mail) -> Case {
    Case { trusting: true, ..case(&format!("results {name}"), mail) }
}

/// Results that no trusted host has written, or not there.
pub(crate) fn forged_results(phrase: &str) -> Vec<Case> {
    let (good, bad) = (good_results(), bad_results());
    let elsewhere = good.replacen(TRUSTED, "mx.evil.example", 1);
    let mail = || unsigned(phrase);
    let with_results = |value: &str| mail().above(RESULTS, value);
    // Signed by an unpublished key, so that only the host's results could prove it.
    let with_results_below = |value: &str, received: &str| {
        mail().signed(&HARNESS.forger, SIGNED).above(RESULTS, value).above("Received", received)
    };
    let nothing = format!("{TRUSTED}; none");
    let failed = format!("{TRUSTED}; dkim=fail header.d=corp.example; spf=fail smtp.mailfrom={APPROVER}");
    vec![
        trusting("by another host", with_results(&elsewhere)),
        trusting("below the host's own", with_results(&good).above(RESULTS, &bad)),
        trusting(
            "below, with a field between",
            with_results(&good).above("Received", "from x").above(RESULTS, &bad),
        ),
        trusting("above, by another host", with_results(&bad).above(RESULTS, &elsewhere)),
        trusting("between", with_results(&bad).above(RESULTS, &elsewhere).above(RESULTS, &bad)),
        trusting("between, that pass", with_results(&bad).above(RESULTS, &good).above(RESULTS, &bad)),
        trusting(
            "below what says nothing of a policy",
            mail().signed(&HARNESS.forger, SIGNED).above(RESULTS, &good).above(RESULTS, &failed),
        ),
        trusting("below a host that found nothing", with_results(&good).above(RESULTS, &nothing)),
        trusting(
            "by a host whose name goes on",
            with_results(&good.replacen(TRUSTED, "mx.acme.example.evil.example", 1)),
        ),
        trusting(
            "by a host whose name begins before",
            with_results(&good.replacen(TRUSTED, "x-mx.acme.example", 1)),
        ),
        trusting("by nobody", with_results(good.split_once(';').unwrap().1)),
        trusting(
            "in the host's own field, below its Received",
            with_results_below(&good, &format!("from x by {TRUSTED} with ESMTP id 1")),
        ),
        trusting(
            "below a Received that says LMTP of another",
            with_results_below(&good, "from x by mx.evil.example with LMTP id 1"),
        ),
        trusting(
            "with words behind the name",
            with_results(&good.replacen(TRUSTED, &format!("\"{TRUSTED}\" evil"), 1)),
        ),
        trusting(
            "with words behind the version",
            with_results(&good.replacen(TRUSTED, &format!("{TRUSTED} 1 foo bar"), 1)),
        ),
        trusting("of another version", with_results(&good.replacen(TRUSTED, &format!("{TRUSTED} 2"), 1))),
        trusting("in the ARC field", mail().above("ARC-Authentication-Results", &format!("i=1; {good}"))),
        trusting("in an old field", mail().above("X-Authentication-Results", &good)),
    ]
}

/// Results of a trusted host that prove something else.
pub(crate) fn other_results(phrase: &str) -> Vec<Case> {
    let good = good_results();
    let mail = || unsigned(phrase);
    let with_results = |value: &str| mail().above(RESULTS, &format!("{TRUSTED}{value}"));
    let passed = format!("{TRUSTED}; dkim=pass header.d=corp.example; dmarc=pass header.from=corp.example");
    let part = Mail::plain(&format!("{phrase}\n")).signed_in_part(&HARNESS.corp);
    let few = mail().signed(&HARNESS.corp, &["From", "To", "Message-ID"]);
    vec![
        trusting(
            "in a comment",
            with_results(
                " (dkim=pass header.d=corp.example; dmarc=pass header.from=corp.example); dkim=fail; dmarc=fail",
            ),
        ),
        trusting(
            "in a quoted value",
            with_results(
                "; dkim=fail reason=\"; dkim=pass header.d=corp.example; dmarc=pass header.from=corp.example\"; dmarc=fail",
            ),
        ),
        trusting("of another signer", with_results("; dkim=pass header.d=evil.example")),
        trusting("of another sender", with_results("; spf=pass smtp.mailfrom=m@evil.example")),
        trusting(
            "of another policy",
            with_results("; spf=pass smtp.mailfrom=m@evil.example; dmarc=pass header.from=evil.example"),
        ),
        trusting(
            "of another policy, with the right sender",
            with_results(&format!(
                "; spf=pass smtp.mailfrom={APPROVER}; dmarc=pass header.from=evil.example"
            )),
        ),
        trusting("of a policy alone", with_results("; dmarc=pass header.from=corp.example")),
        trusting("of a signature that is not there", mail().above(RESULTS, &passed)),
        trusting("of a signature over a part", part.above(RESULTS, &passed)),
        trusting("of a signature without the subject", few.above(RESULTS, &passed)),
        trusting("failed, and a good signature beside it", mail().genuine().above(RESULTS, &bad_results())),
        trusting("neutral", mail().above(RESULTS, &good.replace("=pass", "=neutral"))),
        trusting("as a word longer", mail().above(RESULTS, &good.replace("=pass", "=passed"))),
        trusting("of a domain above", with_results("; dkim=pass header.d=example")),
    ]
}

#[tokio::test]
async fn nobody_decides_for_the_approver() {
    let (mut count, mut wrong) = (0, Vec::new());
    for phrase in all_phrases() {
        let families = [wrong_signatures, changed, lookalikes, envelopes, forged_results, other_results];
        for case in families.iter().flat_map(|family| family(phrase)) {
            let sorted = Seen::of(&case.mail.raw(), &case.envelope, settings(case.trusting)).await;
            count += 1;
            if sorted.decides() != ReplyDecision::Undecided {
                wrong.push(format!("{} {phrase:?}: {sorted:?}", case.name));
            }
        }
    }
    println!("{count} forged messages, {} of them decide", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 3500, "{count}");
}

#[tokio::test]
async fn each_way_of_proving_a_sender_works() {
    let envelope = |sender: &str, address: &str| Envelope {
        sender: Some(sender.to_owned()),
        recipients: vec![REPLY_TO.to_owned()],
        peer: Some(Peer { address: address.parse().unwrap(), helo: "mx.corp.example".to_owned() }),
    };
    let none = Envelope::default();
    let field = "Authentication-Results";
    let dkim = format!(
        "{TRUSTED}; dkim=pass (good) header.d=corp.example header.s=s1; dmarc=pass (p=REJECT) header.from=corp.example"
    );
    let (policy, signature) = (
        format!("{TRUSTED}; dmarc=pass header.from=corp.example"),
        format!("{TRUSTED}; dkim=pass header.d=corp.example"),
    );
    let unsigned = || unsigned("approved");
    let genuine = unsigned().genuine();
    let cases = [
        ("signature", unsigned().genuine(), none.clone(), false),
        ("signature over the date", unsigned().signed(&HARNESS.corp, &DATED), none.clone(), false),
        ("signature and others", unsigned().genuine().signed(&HARNESS.evil, SIGNED), none.clone(), false),
        ("signature and host", unsigned().genuine(), envelope(APPROVER, "192.0.2.10"), false),
        ("results of a signature", unsigned().genuine().above(field, &dkim), none.clone(), true),
        ("results of a signature alone", unsigned().genuine().above(field, &signature), none.clone(), true),
        (
            "results of a policy, and a signature",
            unsigned().genuine().above(field, &policy),
            none.clone(),
            true,
        ),
        (
            "results of others, and a signature",
            unsigned().genuine().above(field, "relay.example; none"),
            none.clone(),
            true,
        ),
        (
            "results below where the host handed it on to itself",
            unsigned().genuine().above("Received", "from x by b; date").above(field, &dkim).above(
                "Received",
                &format!("from {TRUSTED} by {TRUSTED} (Dovecot) with LMTP id 1 for <r@x>; date"),
            ),
            none.clone(),
            true,
        ),
        (
            "lines of blanks below",
            Mail { body: format!("{} \r\n\t\r\n", genuine.body), ..genuine },
            none.clone(),
            false,
        ),
        ("a field that nobody knows", unsigned().genuine().above("X-Spam-Score", "0"), none.clone(), false),
        (
            "fields that came on the way",
            unsigned().genuine().above("Received", "from a by b").above("Return-Path", "<dana@corp.example>"),
            none,
            false,
        ),
    ];
    for (name, mail, envelope, trusting) in cases {
        let sorted = Seen::of(&mail.raw(), &envelope, settings(trusting)).await;
        assert_eq!(sorted.decides(), ReplyDecision::Approve, "{name}: {sorted:?}");
    }
}

#[tokio::test]
async fn a_domain_without_a_policy_still_has_to_sign() {
    let from = |domain: &str| unsigned("approved").set("From", &format!("dana@{domain}"));
    for (domain, key, aligned) in [
        ("plain.example", &HARNESS.plain, true),
        ("mail.plain.example", &HARNESS.plain, true),
        ("plain.example", &HARNESS.evil, false),
        ("notplain.example", &HARNESS.plain, false),
        (LOOKALIKE, &HARNESS.lookalike, true),
    ] {
        let seen = from(domain).signed(key, SIGNED).seen().await;
        let switchward_mail::incoming::Sorted::Reply(reply) = seen.sorted else { panic!("{seen:?}") };
        assert_eq!(seen.proofs[0].is_signed(), aligned, "{domain}: {:?}", seen.proofs);
        assert_eq!(reply.from.text, format!("dana@{domain}"));
    }
}

/// A message that is sent again is recognised by the signed fields, even if others changed.
#[tokio::test]
async fn a_signed_message_has_the_same_identity_however_often_it_comes() {
    let identity = |mail: Mail| async move {
        let seen = mail.seen().await;
        assert!(seen.proofs[0].is_signed(), "{seen:?}");
        seen.proofs[0].identity.clone()
    };
    let dated = || unsigned("approved").signed(&HARNESS.corp, &DATED);
    let first = Some("tok1 at Wed, 01 May 2024 10:00:00 +0000".to_owned());
    assert_eq!(identity(dated()).await, first);
    assert_eq!(identity(dated().set("Message-ID", "<m2@corp.example>")).await, first);
    assert_eq!(identity(dated().set("Date", "Wed, 01  May 2024\r\n\t10:00:00 +0000 ")).await, first);
    let other =
        unsigned("approved").set("Date", "Wed, 01 May 2024 10:00:01 +0000").signed(&HARNESS.corp, &DATED);
    assert_ne!(identity(other).await, first);
    // A signed id takes precedence.
    assert_eq!(identity(unsigned("approved").genuine()).await.as_deref(), Some("m1@corp.example"));
    let of_host = "mx.acme.example; dkim=pass header.d=corp.example header.s=s1";
    let trusting =
        Seen::of(&dated().above(RESULTS, of_host).raw(), &Envelope::default(), &HARNESS.trusting).await;
    assert_eq!(trusting.proofs[0].identity, first);
}
