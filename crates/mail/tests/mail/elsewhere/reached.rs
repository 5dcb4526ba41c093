//! Ways by which a mail of the approver's reaches us as it is, or within another one.

use super::{BOB, Hostile, Letter, OTHER_REPLY_TO, bad, good};
use crate::shapes::{SHAPES, Talk};
use crate::world::{Mail, REPLY_TO, SIGNED, WORLD};

pub(super) const FAMILIES: &[fn(&Letter) -> Vec<Hostile>] = &[
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
fn of_others(letter: &Letter, body: &str) -> Mail {
    letter.sign(Mail::plain(body))
}

fn text(mail: &Mail) -> String {
    String::from_utf8_lossy(&mail.raw()).replace("\r\n", "\n")
}

/// A mail of Bob's own to us, which his domain has signed.
fn of_bob(body: &str, kind: &str) -> Mail {
    Mail::new(kind, body).set("From", BOB).signed(&WORLD.evil, SIGNED)
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn forwarded(letter: &Letter) -> Vec<Hostile> {
    let way = "forwarded";
    let Letter { phrase, language, .. } = letter;
    let [from, sent, to, subject] = language.headers;
    let headers =
        format!("{from}: {BOB}\n{sent}: 2024-05-01 10:00\n{to}: dana@corp.example\n{subject}: Ok\n");
    let rule = format!("---------- {} ----------", language.original);
    let begins = ["Begin forwarded message:", "---------- Forwarded message ---------", rule.as_str()];
    let mut all = vec![
        bad(way, of_bob(&format!("{rule}\n{headers}\n{phrase}\n"), PLAIN)),
        bad(way, of_bob(&format!("{phrase}\n"), PLAIN).set("From", crate::world::APPROVER)),
        bad(way, Mail::plain(&format!("{phrase}\n")).signed(&WORLD.evil, letter.fields)),
        good(way, letter.to(BOB)),
        good(
            way,
            letter.sign(Mail::plain(&format!("{phrase}\n\n{rule}\n{headers}\nPlease?\n")).set("To", BOB)),
        ),
    ];
    for begin in begins {
        all.push(good(way, of_others(letter, &format!("{begin}\n{headers}\n{phrase}\n"))));
        all.push(good(way, of_others(letter, &format!("What is this?\n\n{begin}\n{headers}\n{phrase}\n"))));
    }
    all
}

/// The approver's own mail to us in which the phrase is quoted alone.
fn quoted(letter: &Letter) -> Vec<Hostile> {
    let way = "quoted";
    let lines = [letter.phrase.to_owned(), String::new(), letter.phrase.to_owned()];
    let begin = letter.phrase.len() % (SHAPES.len() - SHAPES_TRIED);
    let shapes = SHAPES.iter().skip(begin).take(SHAPES_TRIED);
    let mut all: Vec<Hostile> = shapes
        .flat_map(|shape| ["", "Should I say so?"].map(|own| (shape, own)))
        .map(|(shape, own)| (shape.mail)(&Talk { own, quoted: &lines, language: letter.language }))
        .map(|mail| good(way, letter.sign(mail)))
        .collect();
    for body in ["> @\n", ">> @\n> @\n", "Is it this?\n\n> @\n"] {
        all.push(good(way, of_others(letter, &body.replace('@', letter.phrase))));
    }
    all
}

/// A message with others attached, and before them a text where there is one.
fn with_attached(said: &str, mails: &[String]) -> (String, String) {
    let said =
        if said.is_empty() { String::new() } else { format!("--b\nContent-Type: {PLAIN}\n\n{said}\n") };
    let parts: String = mails
        .iter()
        .map(|mail| format!("--b\nContent-Type: message/rfc822\nContent-Disposition: attachment\n\n{mail}\n"))
        .collect();
    ("multipart/mixed; boundary=b".to_owned(), format!("{said}{parts}--b--\n"))
}

fn attached(letter: &Letter) -> Vec<Hostile> {
    let way = "attached";
    let inner = [text(&letter.to(REPLY_TO)), text(&letter.to(BOB))];
    let mut all = Vec::new();
    for mail in &inner {
        for said in ["", "See what they wrote.", "> they said so"] {
            let (kind, body) = with_attached(said, std::slice::from_ref(mail));
            all.push(bad(way, of_bob(&body, &kind)));
            all.push(good(way, letter.sign(Mail::new(&kind, &body))));
        }
        all.push(good(way, letter.sign(Mail::new("message/rfc822", mail))));
        all.push(bad(way, of_bob(mail, "message/rfc822")));
        // With the fields of the one inside above the one that carries it.
        let (kind, body) = with_attached("", std::slice::from_ref(mail));
        let carried = Mail { body: Mail::new(&kind, &body).body, ..letter.to(REPLY_TO) };
        all.push(bad(way, carried.set("Content-Type", &kind)));
    }
    let (kind, body) = with_attached("", &inner);
    all.push(good(way, letter.sign(Mail::new(&kind, &body))));
    all
}

fn attached_in_parts(letter: &Letter) -> Vec<Hostile> {
    let way = "attached in parts";
    let inner = text(&letter.to(REPLY_TO));
    let mut all = Vec::new();
    for depth in 1..=4 {
        for kind in ["mixed", "alternative", "related", "digest"] {
            let open: String = (0..depth)
                .map(|n| format!("--b{n}\nContent-Type: multipart/{kind}; boundary=b{}\n\n", n + 1))
                .collect();
            let close: String = (0..=depth).rev().map(|n| format!("--b{n}--\n")).collect();
            let body = format!("{open}--b{depth}\nContent-Type: message/rfc822\n\n{inner}\n{close}");
            let kind = format!("multipart/{kind}; boundary=b0");
            all.push(good(way, letter.sign(Mail::new(&kind, &body))));
            all.push(bad(way, of_bob(&body, &kind)));
        }
    }
    all
}

fn resent(letter: &Letter) -> Vec<Hostile> {
    let way = "resent";
    let by = |mail: Mail, from: &str| {
        let mail = mail.above("Resent-Message-ID", "<r1@evil.example>").above("Resent-To", REPLY_TO);
        mail.above("Resent-Date", "Wed, 01 May 2024 11:00:00 +0000").above("Resent-From", from)
    };
    let signed_again = |mail: Mail| {
        mail.signed(
            &WORLD.evil,
            &["Resent-From", "Resent-To", "Resent-Date", "From", "To", "Subject", "Message-ID"],
        )
    };
    vec![
        good(way, by(letter.to(BOB), BOB)),
        good(way, by(letter.to(BOB), "Dana Reed <dana@corp.example>")),
        good(way, signed_again(by(letter.to(BOB), BOB))),
        good(way, by(letter.to(BOB), BOB).above("Resent-Cc", REPLY_TO)),
        good(way, letter.to(BOB).below("Resent-To", REPLY_TO).below("Apparently-To", REPLY_TO)),
        // The approver's own service signs who it was sent on to, and not who it was sent to.
        good(
            way,
            by(letter.unsigned(BOB), "dana@corp.example")
                .signed(&WORLD.corp, &["From", "Subject", "Resent-To"]),
        ),
        bad(way, by(letter.unsigned(REPLY_TO), BOB).signed(&WORLD.evil, letter.fields)),
    ]
}

fn bounced(letter: &Letter) -> Vec<Hostile> {
    let way = "bounced";
    let mut all = Vec::new();
    for to in [REPLY_TO, BOB] {
        let inner = text(&letter.to(to));
        for part in ["message/rfc822", "text/rfc822-headers", PLAIN] {
            let body = format!(
                "--b\nContent-Type: {PLAIN}\n\n{}\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; \
                 mx.evil.example\n\nFinal-Recipient: rfc822; bob@evil.example\nAction: failed\nStatus: 5.1.1\n\n--b\n\
                 Content-Type: {part}\n\n{inner}\n--b--\n",
                letter.phrase
            );
            let kind = "multipart/report; report-type=delivery-status; boundary=b";
            let server =
                of_bob(&body, kind).set("From", "MAILER-DAEMON@evil.example").signed(&WORLD.evil, SIGNED);
            all.push(Hostile { sender: Some(""), ..bad(way, server) });
            all.push(Hostile { sender: Some(""), ..good(way, letter.sign(Mail::new(kind, &body))) });
            let mixed = "multipart/mixed; boundary=b";
            let carried = Mail::new(mixed, &body.replacen(letter.phrase, "It did not arrive.", 1));
            all.push(good(way, letter.sign(carried)));
        }
        let old = format!("This is the mail system.\n\n----- Original message -----\n\n{inner}");
        all.push(bad(way, of_bob(&old, PLAIN).set("From", "MAILER-DAEMON@evil.example")));
    }
    all.push(Hostile { sender: Some(""), ..good(way, letter.to(BOB)) });
    all
}

fn copied(letter: &Letter) -> Vec<Hostile> {
    let way = "cc";
    let with_cc = |to: &str, cc: &str| letter.sign(letter.unsigned(to).below("Cc", cc));
    let covered: Vec<&str> = letter.fields_without("Cc").into_iter().chain(["Cc"]).collect();
    let signed_cc = |mail: Mail| mail.signed(&WORLD.corp, &covered);
    let bare = letter.fields_without("Cc");
    vec![
        good(way, with_cc("carol@corp.example", BOB)),
        good(way, with_cc("carol@corp.example", BOB).above("X-Original-To", REPLY_TO)),
        good(way, signed_cc(letter.unsigned("carol@corp.example").below("Cc", BOB))),
        good(
            way,
            signed_cc(
                letter
                    .unsigned("carol@corp.example")
                    .below("Cc", OTHER_REPLY_TO.replace("tok2", "tok9").as_str()),
            ),
        )
        .meant("tok9"),
        // Whoever got the copy adds our address where nothing signs it.
        good(way, letter.unsigned(BOB).signed(&WORLD.corp, &bare).below("Cc", REPLY_TO)),
        good(way, letter.unsigned(BOB).signed(&WORLD.corp, &bare).above("Cc", REPLY_TO)),
        bad(way, signed_cc(letter.unsigned(BOB)).below("Cc", REPLY_TO)),
        bad(way, signed_cc(letter.unsigned(BOB).below("Cc", "carol@corp.example")).set("Cc", REPLY_TO)),
        good(way, signed_cc(letter.unsigned(BOB).below("Cc", "carol@corp.example")).above("Cc", REPLY_TO)),
    ]
}

fn blind(letter: &Letter) -> Vec<Hostile> {
    let way = "bcc";
    let none = "undisclosed-recipients:;";
    vec![
        good(way, letter.to(BOB).above("Bcc", REPLY_TO)),
        good(way, letter.to(BOB).below("Bcc", REPLY_TO)),
        good(way, letter.unsigned(BOB).below("Bcc", REPLY_TO).signed(&WORLD.corp, SIGNED_BCC)),
        good(way, letter.to(none)),
        good(way, letter.to(none).below("Bcc", REPLY_TO)),
        good(way, letter.sign(letter.unsigned(BOB).without("To"))),
        good(way, letter.sign(letter.unsigned(BOB).without("To")).below("To", REPLY_TO))
            .not_held_if_signed(letter),
    ]
}

const SIGNED_BCC: &[&str] = &["From", "To", "Bcc", "Subject", "Message-ID"];

fn listed(letter: &Letter) -> Vec<Hostile> {
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
        let tagged = format!("[team] {}", crate::world::SUBJECT);
        let footer = |mail: Mail| Mail { body: format!("{}\r\n-- \r\nTeam\r\n", mail.body), ..mail };
        all.extend([
            good(way, through(letter.to(team))),
            good(way, through(letter.to(team)).signed(&WORLD.evil, SIGNED)),
            bad(way, through(footer(letter.to(team)))),
            bad(way, through(footer(letter.to(team)).set("Subject", &tagged)).signed(&WORLD.evil, SIGNED)),
            bad(way, through(letter.to(team).set("From", "Dana via Team <team@evil.example>"))),
            // The list puts in the address of the one whom it sends to.
            bad(way, through(letter.to(team).set("To", REPLY_TO)).signed(&WORLD.evil, SIGNED)),
        ]);
    }
    all
}

fn threaded(letter: &Letter) -> Vec<Hostile> {
    let way = "thread";
    let ids = [
        "<m.tok1@reply.acme.example>",
        "<a.tok1@reply.acme.example> <m.tok1@reply.acme.example>",
        "<r+tok1@reply.acme.example>",
        "<x@evil.example> <m.tok1@reply.acme.example>",
    ];
    let mut all = Vec::new();
    for id in ids {
        let mail = letter.unsigned(BOB).set("In-Reply-To", id).set("References", id);
        all.push(good(way, letter.sign(mail.clone())));
        all.push(good(way, mail.clone().signed(&WORLD.corp, SIGNED)));
        all.push(good(way, mail.clone().without("In-Reply-To").signed(&WORLD.corp, SIGNED)));
        all.push(good(
            way,
            letter.sign(mail.set("Thread-Topic", REPLY_TO).below("Original-Recipient", REPLY_TO)),
        ));
    }
    all
}

/// What was signed for another request of ours counts there alone.
fn again(letter: &Letter) -> Vec<Hostile> {
    let (way, other) = ("sent again", "another token");
    let to_other = || letter.to(OTHER_REPLY_TO);
    let bare = letter.fields_without("Cc");
    let added = letter.unsigned(OTHER_REPLY_TO).signed(&WORLD.corp, &bare);
    let all = vec![
        good(way, to_other()),
        good(way, to_other().above("Received", "from a by b; date").above("Delivered-To", REPLY_TO)),
        good(way, to_other().above("Return-Path", "<bob@evil.example>").above("X-Original-To", REPLY_TO)),
        Hostile { sender: Some("dana@corp.example"), ..good(way, to_other()) },
        good(way, added.clone().below("Cc", REPLY_TO)),
        good(other, letter.to(&format!("\"{REPLY_TO}\" <{OTHER_REPLY_TO}>"))),
        good(other, letter.to(&format!("{OTHER_REPLY_TO}, {BOB}"))),
        good(other, added.above("Cc", REPLY_TO)),
        good(other, letter.to("R+TOK2@Reply.Acme.Example")),
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

    /// A field that was not there was signed as such where the service signs it, and cannot be added.
    fn not_held_if_signed(self, letter: &Letter) -> Self {
        let signed = letter.fields.iter().any(|field| field.eq_ignore_ascii_case("to"));
        Self { holds: !signed, ..self }
    }
}
