//! Ways by which a mail of the approver's reaches us as it is, or within another one.

use super::{BOB, Hostile, OTHER_REPLY_TO, SignedMail, bad, good};
use crate::harness::{HARNESS, Mail, REPLY_TO, SIGNED};
use crate::shapes::{SHAPES, Talk};

pub(super) const FAMILIES: &[fn(&SignedMail) -> Vec<Hostile>] = &[
    forwarded,
    quoted,
    attached,
    attached_in_parts,
    resent,
    bounced,
    copied,
    blind,
    listed,
    threaded,
    again,
];

const SHAPES_TRIED: usize = 6;

/// The approver's own mail to us whose only words are another's.
fn of_others(template: &SignedMail, body: &str) -> Mail {
    template.sign(Mail::plain(body))
}

fn text(mail: &Mail) -> String {
    String::from_utf8_lossy(&mail.raw()).replace("\r\n", "\n")
}

/// Bob's own mail to us, signed by Bob's domain.
fn of_bob(body: &str, kind: &str) -> Mail {
    Mail::new(kind, body).set("From", BOB).signed(&HARNESS.evil, SIGNED)
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn forwarded(template: &SignedMail) -> Vec<Hostile> {
    let way = "forwarded";
    let SignedMail { phrase, language, .. } = template;
    let [from, sent, to, subject] = language.headers;
    let headers =
        format!("{from}: {BOB}\n{sent}: 2024-05-01 10:00\n{to}: dana@corp.example\n{subject}: Ok\n");
    let rule = format!("---------- {} ----------", language.original);
    let begins = ["Begin forwarded message:", "---------- Forwarded message ---------", rule.as_str()];
    let mut all = vec![
        bad(way, of_bob(&format!("{rule}\n{headers}\n{phrase}\n"), PLAIN)),
        bad(way, of_bob(&format!("{phrase}\n"), PLAIN).set("From", crate::harness::APPROVER)),
        bad(way, Mail::plain(&format!("{phrase}\n")).signed(&HARNESS.evil, template.fields)),
        good(way, template.to(BOB)),
        good(
            way,
            template.sign(Mail::plain(&format!("{phrase}\n\n{rule}\n{headers}\nPlease?\n")).set("To", BOB)),
        ),
    ];
    for begin in begins {
        all.push(good(way, of_others(template, &format!("{begin}\n{headers}\n{phrase}\n"))));
        all.push(good(way, of_others(template, &format!("What is this?\n\n{begin}\n{headers}\n{phrase}\n"))));
    }
    all
}

/// The approver's own mail to us in which the phrase is quoted alone.
fn quoted(template: &SignedMail) -> Vec<Hostile> {
    let way = "quoted";
    let lines = [template.phrase.to_owned(), String::new(), template.phrase.to_owned()];
    let begin = template.phrase.len() % (SHAPES.len() - SHAPES_TRIED);
    let shapes = SHAPES.iter().skip(begin).take(SHAPES_TRIED);
    let mut all: Vec<Hostile> = shapes
        .flat_map(|shape| ["", "Should I say so?"].map(|own| (shape, own)))
        .map(|(shape, own)| (shape.mail)(&Talk { own, quoted: &lines, language: template.language }))
        .map(|mail| good(way, template.sign(mail)))
        .collect();
    for body in ["> @\n", ">> @\n> @\n", "Is it this?\n\n> @\n"] {
        all.push(good(way, of_others(template, &body.replace('@', template.phrase))));
    }
    all
}

/// A message with others attached, after a text if there is one.
fn with_attached(said: &str, mails: &[String]) -> (String, String) {
    let said =
        if said.is_empty() { String::new() } else { format!("--b\nContent-Type: {PLAIN}\n\n{said}\n") };
    let parts: String = mails
        .iter()
        .map(|mail| format!("--b\nContent-Type: message/rfc822\nContent-Disposition: attachment\n\n{mail}\n"))
        .collect();
    ("multipart/mixed; boundary=b".to_owned(), format!("{said}{parts}--b--\n"))
}

fn attached(template: &SignedMail) -> Vec<Hostile> {
    let way = "attached";
    let inner = [text(&template.to(REPLY_TO)), text(&template.to(BOB))];
    let mut all = Vec::new();
    for mail in &inner {
        for said in ["", "See what they wrote.", "> they said so"] {
            let (kind, body) = with_attached(said, std::slice::from_ref(mail));
            all.push(bad(way, of_bob(&body, &kind)));
            all.push(good(way, template.sign(Mail::new(&kind, &body))));
        }
        all.push(good(way, template.sign(Mail::new("message/rfc822", mail))));
        all.push(bad(way, of_bob(mail, "message/rfc822")));
        // With the fields of the one inside above the one that carries it.
        let (kind, body) = with_attached("", std::slice::from_ref(mail));
        let carried = Mail { body: Mail::new(&kind, &body).body, ..template.to(REPLY_TO) };
        all.push(bad(way, carried.set("Content-Type", &kind)));
    }
    let (kind, body) = with_attached("", &inner);
    all.push(good(way, template.sign(Mail::new(&kind, &body))));
    all
}

fn attached_in_parts(template: &SignedMail) -> Vec<Hostile> {
    let way = "attached in parts";
    let inner = text(&template.to(REPLY_TO));
    let mut all = Vec::new();
    for depth in 1..=4 {
        for kind in ["mixed", "alternative", "related", "digest"] {
            let open: String = (0..depth)
                .map(|n| format!("--b{n}\nContent-Type: multipart/{kind}; boundary=b{}\n\n", n + 1))
                .collect();
            let close: String = (0..=depth).rev().map(|n| format!("--b{n}--\n")).collect();
            let body = format!("{open}--b{depth}\nContent-Type: message/rfc822\n\n{inner}\n{close}");
            let kind = format!("multipart/{kind}; boundary=b0");
            all.push(good(way, template.sign(Mail::new(&kind, &body))));
            all.push(bad(way, of_bob(&body, &kind)));
        }
    }
    all
}

fn resent(template: &SignedMail) -> Vec<Hostile> {
    let way = "resent";
    let by = |mail: Mail, from: &str| {
        let mail = mail.above("Resent-Message-ID", "<r1@evil.example>").above("Resent-To", REPLY_TO);
        mail.above("Resent-Date", "Wed, 01 May 2024 11:00:00 +0000").above("Resent-From", from)
    };
    let signed_again = |mail: Mail| {
        mail.signed(
            &HARNESS.evil,
            &["Resent-From", "Resent-To", "Resent-Date", "From", "To", "Subject", "Message-ID"],
        )
    };
    vec![
        good(way, by(template.to(BOB), BOB)),
        good(way, by(template.to(BOB), "Dana Reed <dana@corp.example>")),
        good(way, signed_again(by(template.to(BOB), BOB))),
        good(way, by(template.to(BOB), BOB).above("Resent-Cc", REPLY_TO)),
        good(way, template.to(BOB).below("Resent-To", REPLY_TO).below("Apparently-To", REPLY_TO)),
        // The approver's own service signs the `Resent-To`, and not the `To`.
        good(
            way,
            by(template.unsigned(BOB), "dana@corp.example")
                .signed(&HARNESS.corp, &["From", "Subject", "Resent-To"]),
        ),
        bad(way, by(template.unsigned(REPLY_TO), BOB).signed(&HARNESS.evil, template.fields)),
    ]
}

fn bounced(template: &SignedMail) -> Vec<Hostile> {
    let way = "bounced";
    let mut all = Vec::new();
    for to in [REPLY_TO, BOB] {
        let inner = text(&template.to(to));
        for part in ["message/rfc822", "text/rfc822-headers", PLAIN] {
            let body = format!(
                "--b\nContent-Type: {PLAIN}\n\n{}\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; \
                 mx.evil.example\n\nFinal-Recipient: rfc822; bob@evil.example\nAction: failed\nStatus: 5.1.1\n\n--b\n\
                 Content-Type: {part}\n\n{inner}\n--b--\n",
                template.phrase
            );
            let kind = "multipart/report; report-type=delivery-status; boundary=b";
            let server =
                of_bob(&body, kind).set("From", "MAILER-DAEMON@evil.example").signed(&HARNESS.evil, SIGNED);
            all.push(Hostile { sender: Some(""), ..bad(way, server) });
            all.push(Hostile { sender: Some(""), ..good(way, template.sign(Mail::new(kind, &body))) });
            let mixed = "multipart/mixed; boundary=b";
            let carried = Mail::new(mixed, &body.replacen(template.phrase, "It did not arrive.", 1));
            all.push(good(way, template.sign(carried)));
        }
        let old = format!("This is the mail system.\n\n----- Original message -----\n\n{inner}");
        all.push(bad(way, of_bob(&old, PLAIN).set("From", "MAILER-DAEMON@evil.example")));
    }
    all.push(Hostile { sender: Some(""), ..good(way, template.to(BOB)) });
    all
}

fn copied(template: &SignedMail) -> Vec<Hostile> {
    let way = "cc";
    let with_cc = |to: &str, cc: &str| template.sign(template.unsigned(to).below("Cc", cc));
    let covered: Vec<&str> = template.fields_without("Cc").into_iter().chain(["Cc"]).collect();
    let signed_cc = |mail: Mail| mail.signed(&HARNESS.corp, &covered);
    let bare = template.fields_without("Cc");
    vec![
        good(way, with_cc("carol@corp.example", BOB)),
        good(way, with_cc("carol@corp.example", BOB).above("X-Original-To", REPLY_TO)),
        good(way, signed_cc(template.unsigned("carol@corp.example").below("Cc", BOB))),
        good(
            way,
            signed_cc(
                template
                    .unsigned("carol@corp.example")
                    .below("Cc", OTHER_REPLY_TO.replace("tok2", "tok9").as_str()),
            ),
        )
        .meant("tok9"),
        // The recipient of the copy adds our address to an unsigned field.
        good(way, template.unsigned(BOB).signed(&HARNESS.corp, &bare).below("Cc", REPLY_TO)),
        good(way, template.unsigned(BOB).signed(&HARNESS.corp, &bare).above("Cc", REPLY_TO)),
        bad(way, signed_cc(template.unsigned(BOB)).below("Cc", REPLY_TO)),
        bad(way, signed_cc(template.unsigned(BOB).below("Cc", "carol@corp.example")).set("Cc", REPLY_TO)),
        good(way, signed_cc(template.unsigned(BOB).below("Cc", "carol@corp.example")).above("Cc", REPLY_TO)),
    ]
}

fn blind(template: &SignedMail) -> Vec<Hostile> {
    let way = "bcc";
    let none = "undisclosed-recipients:;";
    vec![
        good(way, template.to(BOB).above("Bcc", REPLY_TO)),
        good(way, template.to(BOB).below("Bcc", REPLY_TO)),
        good(way, template.unsigned(BOB).below("Bcc", REPLY_TO).signed(&HARNESS.corp, SIGNED_BCC)),
        good(way, template.to(none)),
        good(way, template.to(none).below("Bcc", REPLY_TO)),
        good(way, template.sign(template.unsigned(BOB).without("To"))),
        good(way, template.sign(template.unsigned(BOB).without("To")).below("To", REPLY_TO))
            .not_held_if_signed(template),
    ]
}

const SIGNED_BCC: &[&str] = &["From", "To", "Bcc", "Subject", "Message-ID"];

fn listed(template: &SignedMail) -> Vec<Hostile> {
    let team = "Team <team@lists.example>";
    let kinds: [(&'static str, &[(&str, &str)]); 5] = [
        ("list without its fields", &[]),
        ("list", &[("List-Id", "<team.lists.example>"), ("Precedence", "list")]),
        (
            "list",
            &[
                ("List-Post", "<mailto:team@lists.example>"),
                ("List-Unsubscribe", "<https://lists.example/u>"),
            ],
        ),
        ("list", &[("X-BeenThere", "team@lists.example"), ("X-Mailman-Version", "2.1.23")]),
        (
            "list without its fields",
            &[("Sender", "team-bounces@lists.example"), ("Errors-To", "x@lists.example")],
        ),
    ];
    let mut all = Vec::new();
    for (way, fields) in kinds {
        let through = |mail: Mail| fields.iter().fold(mail, |mail, (name, value)| mail.above(name, value));
        let tagged = format!("[team] {}", crate::harness::SUBJECT);
        let footer = |mail: Mail| Mail { body: format!("{}\r\n-- \r\nTeam\r\n", mail.body), ..mail };
        all.extend([
            good(way, through(template.to(team))),
            good(way, through(template.to(team)).signed(&HARNESS.evil, SIGNED)),
            bad(way, through(footer(template.to(team)))),
            bad(
                way,
                through(footer(template.to(team)).set("Subject", &tagged)).signed(&HARNESS.evil, SIGNED),
            ),
            bad(way, through(template.to(team).set("From", "Dana via Team <team@evil.example>"))),
            // The list puts in the address of the one whom it sends to.
            bad(way, through(template.to(team).set("To", REPLY_TO)).signed(&HARNESS.evil, SIGNED)),
        ]);
    }
    all
}

fn threaded(template: &SignedMail) -> Vec<Hostile> {
    let way = "thread";
    let ids = [
        "<m.tok1@reply.acme.example>",
        "<a.tok1@reply.acme.example> <m.tok1@reply.acme.example>",
        "<r+tok1@reply.acme.example>",
        "<x@evil.example> <m.tok1@reply.acme.example>",
    ];
    let mut all = Vec::new();
    for id in ids {
        let mail = template.unsigned(BOB).set("In-Reply-To", id).set("References", id);
        all.push(good(way, template.sign(mail.clone())));
        all.push(good(way, mail.clone().signed(&HARNESS.corp, SIGNED)));
        all.push(good(way, mail.clone().without("In-Reply-To").signed(&HARNESS.corp, SIGNED)));
        all.push(good(
            way,
            template.sign(mail.set("Thread-Topic", REPLY_TO).below("Original-Recipient", REPLY_TO)),
        ));
    }
    all
}

/// What was signed for another request of ours counts there alone.
fn again(template: &SignedMail) -> Vec<Hostile> {
    let (way, other) = ("sent again", "another token");
    let to_other = || template.to(OTHER_REPLY_TO);
    let bare = template.fields_without("Cc");
    let added = template.unsigned(OTHER_REPLY_TO).signed(&HARNESS.corp, &bare);
    let all = vec![
        good(way, to_other()),
        good(way, to_other().above("Received", "from a by b; date").above("Delivered-To", REPLY_TO)),
        good(way, to_other().above("Return-Path", "<bob@evil.example>").above("X-Original-To", REPLY_TO)),
        Hostile { sender: Some("dana@corp.example"), ..good(way, to_other()) },
        good(way, added.clone().below("Cc", REPLY_TO)),
        good(other, template.to(&format!("\"{REPLY_TO}\" <{OTHER_REPLY_TO}>"))),
        good(other, template.to(&format!("{OTHER_REPLY_TO}, {BOB}"))),
        good(other, added.above("Cc", REPLY_TO)),
        good(other, template.to("R+TOK2@Reply.Acme.Example")),
        bad(other, to_other().set("To", REPLY_TO)),
        bad(other, to_other().above("To", REPLY_TO)),
        bad(other, to_other().set("To", &format!("{OTHER_REPLY_TO}, {REPLY_TO}"))),
    ];
    all.into_iter().map(|hostile| hostile.meant("tok2")).collect()
}

impl Hostile {
    fn meant(self, token: &'static str) -> Self {
        Self { meant: Some(token), ..self }
    }

    /// If the service signs an absent field, the field cannot be added.
    fn not_held_if_signed(self, template: &SignedMail) -> Self {
        let signed = template.fields.iter().any(|field| field.eq_ignore_ascii_case("to"));
        Self { holds: !signed, ..self }
    }
}
