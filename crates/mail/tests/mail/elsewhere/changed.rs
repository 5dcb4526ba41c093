//! Ways to put our address into a mail from the approver that was not sent to it, and signatures that prove nothing.

use super::{BOB, Hostile, SignedMail, bad, good};
use crate::forged::RESULTS;
use crate::hand_signed::{Hand, by_rsa, usual};
use crate::harness::{APPROVER, HARNESS, Mail, REPLY_TO, TRUSTED};

pub(super) const FAMILIES: &[fn(&SignedMail) -> Vec<Hostile>] =
    &[named, twice, elsewhere, uncovered, in_part, by_flawed_key, by_flawed_signature, arc, forged_results];

/// Ways to write `bob@evil.example` with an address of ours beside it. Bob chooses the display name, and the approver's
/// program copies it.
const NAMED: &[&str] = &[
    "\"r+tok1@reply.acme.example\" <bob@evil.example>",
    "r+tok1@reply.acme.example <bob@evil.example>",
    "\"Bob: r+tok1@reply.acme.example\" <bob@evil.example>",
    "\"Bob:r+tok1@reply.acme.example\" <bob@evil.example>",
    "\"Bob <r+tok1@reply.acme.example>\" <bob@evil.example>",
    "\"<r+tok1@reply.acme.example>, \" <bob@evil.example>",
    "\"Bob\\\" <r+tok1@reply.acme.example>, \\\"x\" <bob@evil.example>",
    "\"Bob\\\": r+tok1@reply.acme.example\" <bob@evil.example>",
    "\"Bob, r+tok1@reply.acme.example\" <bob@evil.example>",
    "\"Bob, r+tok1@reply.acme.example, x\" <bob@evil.example>",
    "\"Bob; r+tok1@reply.acme.example\" <bob@evil.example>",
    "\"Bob (r+tok1@reply.acme.example\" <bob@evil.example>",
    "\"Bob), r+tok1@reply.acme.example, (\" <bob@evil.example>",
    "bob@evil.example (r+tok1@reply.acme.example)",
    "bob@evil.example (a, r+tok1@reply.acme.example, b)",
    "bob@evil.example (a: r+tok1@reply.acme.example; b)",
    "bob@evil.example (a\\), r+tok1@reply.acme.example)",
    "bob@evil.example (a (b), r+tok1@reply.acme.example)",
    "(r+tok1@reply.acme.example) bob@evil.example",
    "Team: bob@evil.example;",
    "r+tok1@reply.acme.example: bob@evil.example;",
    "\"r+tok1@reply.acme.example\": bob@evil.example;",
    "\"Team: r+tok1@reply.acme.example\": bob@evil.example;",
    "r+tok1@reply.acme.example:;",
    "\"a: r+tok1@reply.acme.example\":;",
    "<@reply.acme.example:bob@evil.example>",
    "<@r+tok1@reply.acme.example:bob@evil.example>",
    "\"r+tok1@reply.acme.example\"@evil.example",
    "\"a:r+tok1@reply.acme.example\"@evil.example",
    "<\"r+tok1@reply.acme.example,\"@evil.example>",
    "\"r+tok1\"@evil.example",
    "=?utf-8?q?r+tok1=40reply.acme.example?= <bob@evil.example>",
    "=?utf-8?q?=3Cr+tok1=40reply.acme.example=3E=2C?= <bob@evil.example>",
    "=?utf-8?q?a=3A_r+tok1=40reply.acme.example?= <bob@evil.example>",
    "=?utf-8?b?PHIrdG9rMUByZXBseS5hY21lLmV4YW1wbGU+LA==?= <bob@evil.example>",
    "\"x\" <bob@evil.example> \"<r+tok1@reply.acme.example>\"",
    "<bob@evil.example> r+tok1@reply.acme.example",
    "r+tok1@reply.acme.example <bob@evil.example",
];

/// Addresses that look like ours.
const LIKE_OURS: &[&str] = &[
    "r+tok1@reply.acme.example.evil.example",
    "r+tok1@evil.example",
    "r+tok1@acme.example",
    "r+tok1@reply-acme.example",
    "r+tok1@xreply.acme.example",
    "r+tok1@sub.reply.acme.example",
    "r+tok1@reply.other.example",
    "r+tok1@repl\u{443}.acme.example",
    "r+tok1@xn--repl-6kd.acme.example",
    "r+tok1%reply.acme.example@evil.example",
    "r+tok1@[reply.acme.example]",
    "r-tok1@reply.acme.example",
    "rtok1@reply.acme.example",
    "x+tok1@reply.acme.example",
    "r+tok1\u{200b}@reply.acme.example",
];

fn named(template: &SignedMail) -> Vec<Hostile> {
    let covered: Vec<&str> = template.fields_without("Cc").into_iter().chain(["Cc"]).collect();
    let in_to = NAMED.iter().map(|name| good("name in to", template.to(name)));
    let in_cc = NAMED.iter().map(|name| {
        let mail = template.unsigned("carol@corp.example").below("Cc", name);
        good("name in cc", mail.signed(&HARNESS.corp, &covered))
    });
    let folded = template.to("\"Bob:\r\n r+tok1@reply.acme.example\" <bob@evil.example>");
    in_to.chain(in_cc).chain([good("name in to", folded)]).collect()
}

fn elsewhere(template: &SignedMail) -> Vec<Hostile> {
    LIKE_OURS.iter().map(|to| good("another reply address", template.to(to))).collect()
}

fn twice(template: &SignedMail) -> Vec<Hostile> {
    let way = "header twice";
    let mut all = Vec::new();
    for (name, value) in
        [("To", REPLY_TO), ("From", BOB), ("From", APPROVER), ("Subject", template.phrase), ("Cc", REPLY_TO)]
    {
        let to_bob = template.unsigned(BOB);
        let to_bob = if name == "Cc" { to_bob.below("Cc", "carol@corp.example") } else { to_bob };
        // Added below a signature it is the one that is signed, and above it is not.
        all.push(good(way, template.sign(to_bob.clone()).above(name, value)));
        all.push(bad(way, template.sign(to_bob.clone()).below(name, value)));
        all.push(good(way, template.sign(to_bob.clone().above(name, value))));
        all.push(good(way, template.sign(to_bob.below(name, value))));
        // An added copy does not invalidate a mail to us.
        if name != "Cc" {
            all.push(bad(way, template.to(REPLY_TO).above(name, value)));
            all.push(bad(way, template.to(REPLY_TO).below(name, value)));
        }
    }
    for (above, below) in [("to", "TO"), ("tO", "To")] {
        let mail = template.unsigned(BOB).without("To").below(below, BOB);
        all.push(good(way, template.sign(mail).above(above, REPLY_TO)));
    }
    all
}

fn uncovered(template: &SignedMail) -> Vec<Hostile> {
    let way = "not signed to";
    let mut all = Vec::new();
    for field in ["To", "Subject", "From", "Message-ID"] {
        let fields = template.fields_without(field);
        let signed = template.unsigned(BOB).signed(&HARNESS.corp, &fields);
        all.push(good(way, signed.clone()));
        let changed = if field == "To" {
            good(way, signed.set("To", REPLY_TO))
        } else {
            bad(way, signed.set("To", REPLY_TO))
        };
        all.push(changed);
        if field != "Message-ID" {
            all.push(good(way, template.unsigned(REPLY_TO).signed(&HARNESS.corp, &fields)));
            all.push(good(way, template.unsigned(REPLY_TO).signed_by_hand(&usual(&fields))));
        }
    }
    let few = template.fields_without("To");
    all.push(good(way, template.unsigned(BOB).signed(&HARNESS.corp, &few).above("To", REPLY_TO)));
    all.push(good(
        way,
        template.unsigned(BOB).without("To").signed(&HARNESS.corp, &few).below("To", REPLY_TO),
    ));
    // A second signature that covers our address, of another domain or with no key.
    let two = |key| {
        template.unsigned(BOB).signed(&HARNESS.corp, &few).set("To", REPLY_TO).signed(key, template.fields)
    };
    all.extend([
        good(way, two(&HARNESS.evil)),
        good(way, two(&HARNESS.lookalike)),
        good(way, two(&HARNESS.plain)),
    ]);
    all
}

fn in_part(template: &SignedMail) -> Vec<Hostile> {
    let way = "part signed";
    let empty = Mail::plain("").set("To", REPLY_TO).signed_in_part(&HARNESS.corp);
    let said = template.unsigned(REPLY_TO);
    let whole = said.body.len();
    let part = |length, tags: &'static str| Hand { length: Some(length), tags, ..usual(template.fields) };
    let begun = Mail::plain("")
        .set("To", REPLY_TO)
        .signed_with(&HARNESS.corp, template.fields, |it| it.body_length(true));
    vec![
        bad(way, Mail { body: said.body.clone(), ..empty }),
        bad(way, Mail { body: said.body.clone(), ..begun }),
        good(way, said.clone().signed_by_hand(&part(0, "l=0; "))),
        good(way, said.clone().signed_by_hand(&part(whole, "l=4096; "))),
        bad(way, said.clone().signed_by_hand(&part(0, ""))),
        good(way, said.clone().signed_with(&HARNESS.corp, template.fields, |it| it.body_length(true))),
        good(way, said.clone().signed_by_hand(&part(2, "l=2; "))),
        good(way, said.signed_by_hand(&part(2, "l = 2 ; "))),
    ]
}

fn by_flawed_key(template: &SignedMail) -> Vec<Hostile> {
    let said = template.unsigned(REPLY_TO);
    let of = |selector| said.clone().signed_by_hand(&Hand { selector, ..usual(template.fields) });
    let mut all: Vec<Hostile> = ["testing", "reports", "sha1", "absent"]
        .into_iter()
        .map(|selector| bad("key for something else", of(selector)))
        .collect();
    for key in [&HARNESS.evil, &HARNESS.lookalike, &HARNESS.plain, &HARNESS.forger] {
        let hand = Hand { key, ..usual(template.fields) };
        all.push(bad("key for something else", said.clone().signed_by_hand(&hand)));
        all.push(bad(
            "key for something else",
            template.to(BOB).set("To", REPLY_TO).signed(key, template.fields),
        ));
    }
    for bits in ["512", "768"] {
        all.push(bad("key too short", by_rsa(bits)));
        all.push(bad("key too short", by_rsa(bits).above("X-Phrase", template.phrase)));
    }
    all
}

fn by_flawed_signature(template: &SignedMail) -> Vec<Hostile> {
    let said = template.unsigned(REPLY_TO);
    let with = |tags: &'static str| said.clone().signed_by_hand(&Hand { tags, ..usual(template.fields) });
    let expired = ["x=1000000000; ", "t=900000000; x=1000000000; ", "t=1700000000; x=1700000001; ", "x=1; "];
    let tags = [
        "q=dns/other; ",
        "q=ldap; ",
        "i=dana@evil.example; ",
        "i=@acme.example; ",
        "v=2; ",
        "d=evil.example; ",
        "atps=evil.example; atpsh=sha256; ",
        "h=From; ",
    ];
    let mut all: Vec<Hostile> = expired.into_iter().map(|tags| bad("expired", with(tags))).collect();
    all.extend(tags.into_iter().map(|tags| bad("tags of the signature", with(tags))));
    let mut renamed = template.to(REPLY_TO);
    renamed.headers[0].0 = "X-Google-DKIM-Signature".to_owned();
    all.push(bad("tags of the signature", renamed));
    for (from, to) in [("a=ed25519-sha256", "a=rsa-sha1"), ("s=s1", "s=s2"), ("d=corp.example", "d=example")]
    {
        let mut changed = template.to(REPLY_TO);
        changed.headers[0].1 = changed.headers[0].1.replacen(from, to, 1);
        all.push(bad("tags of the signature", changed));
    }
    all
}

fn arc(template: &SignedMail) -> Vec<Hostile> {
    let way = "arc";
    let found =
        format!("i=1; {TRUSTED}; dkim=pass header.d=corp.example; dmarc=pass header.from=corp.example");
    let seal = "i=1; a=rsa-sha256; t=1700000000; cv=none; d=google.com; s=arc; b=AAAA";
    let signature = "i=1; a=rsa-sha256; c=relaxed/relaxed; d=google.com; s=arc; h=from:to:subject:message-id; bh=AAAA; b=AAAA";
    let sealed = |mail: Mail| {
        let mail = mail.above("ARC-Authentication-Results", &found).above("ARC-Message-Signature", signature);
        mail.above("ARC-Seal", seal)
    };
    let mut renamed = template.to(REPLY_TO);
    renamed.headers[0].0 = "ARC-Message-Signature".to_owned();
    renamed.headers[0].1 = format!("i=1; {}", renamed.headers[0].1);
    vec![
        bad(way, sealed(template.unsigned(REPLY_TO))),
        good(way, sealed(template.to(BOB))),
        bad(way, sealed(template.to(BOB).set("To", REPLY_TO))),
        bad(way, sealed(template.unsigned(REPLY_TO).signed(&HARNESS.evil, template.fields))),
        bad(way, renamed),
        bad(
            way,
            sealed(template.unsigned(REPLY_TO))
                .above(RESULTS, &format!("{TRUSTED}; arc=pass (i=1 dkim=pass)")),
        ),
    ]
}

/// Forged results in a mail from the approver to somebody else.
fn forged_results(template: &SignedMail) -> Vec<Hostile> {
    let way = "results forged";
    let good_ones = format!(
        "{TRUSTED}; dkim=pass header.d=corp.example header.s=s1; spf=pass smtp.mailfrom={APPROVER}; \
         dmarc=pass header.from=corp.example"
    );
    let spf = format!("{TRUSTED}; spf=pass smtp.mailfrom={APPROVER}");
    let mut all = Vec::new();
    for results in [good_ones.as_str(), spf.as_str(), "mx.evil.example; dkim=pass header.d=corp.example"] {
        for received in
            ["from x by mx.evil.example with ESMTP id 1", "from x by mx.acme.example with ESMTP id 1"]
        {
            let below = |mail: Mail| mail.above(RESULTS, results).above("Received", received);
            all.push(bad(way, below(template.unsigned(REPLY_TO))));
            all.push(bad(way, below(template.to(BOB).set("To", REPLY_TO))));
            all.push(good(way, below(template.to(BOB))));
            all.push(good(way, template.to(BOB).above("Received", received).above(RESULTS, results)));
        }
        all.push(bad(way, template.unsigned(REPLY_TO).below(RESULTS, results)));
    }
    all
}
