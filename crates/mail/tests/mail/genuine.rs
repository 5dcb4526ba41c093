//! Genuine replies: what a person wrote is what is read.

use switchward_expr::{APPROVALS, REJECTIONS, ReplyDecision};
use switchward_mail::incoming::Sorted;

use crate::harness::{Mail, base64, said};
use crate::shapes::{LANGUAGES, SHAPES, Shape, Talk};

const GENUINE_MIN: usize = 2_000;
const CLEAR_MIN: u32 = 1_000;
const CLEAR_SHARE_MIN: f64 = 0.9;

/// The mail that is answered, as it would be quoted.
pub(crate) fn request() -> Vec<String> {
    let text = "--- reply above this line ---\nRelease manager, one decision is waiting for you.\n\n  What     deploy api 1.42 to prod\n\nTo decide, answer this mail with one word on the first line:\n  APPROVE    or    REJECT      (a comment may follow on the next lines)\nApproved\nOr open the decision page: https://acme.example/a/x";
    text.lines().map(str::to_owned).collect()
}

fn expected(phrase: &str) -> ReplyDecision {
    if APPROVALS.contains(&phrase) { ReplyDecision::Approve } else { ReplyDecision::Reject }
}

fn capital(phrase: &str) -> String {
    let mut chars = phrase.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

async fn read(mail: Mail) -> (ReplyDecision, String) {
    let seen = mail.genuine().seen().await;
    let verdict = seen.decides();
    match seen.sorted {
        Sorted::Reply(reply) => {
            assert!(seen.proofs[0].is_signed(), "{:?}", seen.proofs);
            (verdict, reply.text)
        }
        other @ (Sorted::Machine { .. } | Sorted::Bounce(_) | Sorted::Unusable { .. }) => {
            panic!("a person's reply is {other:?}")
        }
    }
}

#[tokio::test]
async fn a_phrase_on_the_first_line_is_what_is_read_whatever_the_program() {
    let quoted = request();
    let (mut count, mut wrong) = (0, Vec::new());
    for (at, shape) in SHAPES.iter().enumerate() {
        for (beside, language) in LANGUAGES.iter().enumerate() {
            for (phrase, own) in phrases(at + beside, shape) {
                let (verdict, text) =
                    read((shape.mail)(&Talk { own: &own, quoted: &quoted, language })).await;
                count += 1;
                if verdict != expected(phrase) {
                    wrong.push(format!("{} {} {own:?}: {verdict:?} of {text:?}", shape.name, language.name));
                }
            }
        }
    }
    println!("{count} genuine replies, {} of them read wrongly", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= GENUINE_MIN, "{count}");
}

/// Four phrases, and what is written with each.
fn phrases(at: usize, shape: &Shape) -> Vec<(&'static str, String)> {
    let all: Vec<&str> = APPROVALS.iter().chain(REJECTIONS).copied().collect();
    let pick = |step: usize| all[(at * 4 + step) % all.len()];
    let comment = if shape.bottom { "" } else { "\n\nBut mind the gap.\nDana" };
    vec![
        (pick(0), pick(0).to_owned()),
        (pick(1), format!("{}!", capital(pick(1)))),
        (pick(2), format!("{}, thanks.{comment}", capital(pick(2)))),
        (pick(3), format!("{}{comment}\n\nOn it,\nDana", pick(3).to_uppercase())),
    ]
}

/// Ways to say something clearly; `@` is the phrase. Only the first line decides, so those with a greeting above it do
/// not, and their share is what it may cost.
const CLEAR: &[&str] = &[
    "@",
    "@.",
    "@!",
    "@, thanks",
    "@ thank you!",
    "@, cheers",
    "@\n\nThanks,\nDana",
    "@.\n\nPlease take care with the migration, and tell me when it is done.",
    "@\nDana Reed\nHead of releases",
    "\n\n@\n\nregards",
    "@  \n- first check the traffic\n- then the logs",
    "@, please\n\n\n\nDana",
    "*@*",
    "Hi all,\n\n@\n\nDana",
];

#[tokio::test]
async fn nearly_all_clear_decisions_are_read_and_none_as_another() {
    let quoted = request();
    let (mut count, mut read_right, mut wrong) = (0_u32, 0_u32, Vec::new());
    for shape in SHAPES {
        for (at, form) in CLEAR.iter().enumerate() {
            for (phrase, language) in
                ["approved", "reject", "go ahead", "no"].iter().zip([at, at + 7, at + 13, at + 19])
            {
                let own = form.replace('@', &capital(phrase));
                let language = &LANGUAGES[language % LANGUAGES.len()];
                let (verdict, text) =
                    read((shape.mail)(&Talk { own: &own, quoted: &quoted, language })).await;
                count += 1;
                if verdict == expected(phrase) {
                    read_right += 1;
                } else if verdict != ReplyDecision::Undecided {
                    wrong.push(format!("{} {own:?}: {verdict:?} of {text:?}", shape.name));
                }
            }
        }
    }
    let share = f64::from(read_right) / f64::from(count);
    println!(
        "{read_right} of {count} clear decisions are read ({:.1} %), {} as another",
        share * 100.0,
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= CLEAR_MIN, "{count}");
    assert!(share >= CLEAR_SHARE_MIN, "{share}");
}

#[tokio::test]
async fn nothing_is_read_of_a_reply_without_words_of_its_own() {
    let quoted = request();
    for shape in SHAPES {
        for language in LANGUAGES {
            let (_, text) = read((shape.mail)(&Talk { own: "", quoted: &quoted, language })).await;
            assert_eq!(said(&text), ReplyDecision::Undecided, "{} {}: {text:?}", shape.name, language.name);
        }
    }
}

/// A text as quoted-printable (RFC 2045 section 6.7), from bytes.
fn quoted_printable(bytes: &[u8]) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for byte in bytes {
        let piece = match byte {
            b'\r' => continue,
            b'\n' => "\r\n".to_owned(),
            b'!'..=b'<' | b'>'..=b'~' => char::from(*byte).to_string(),
            other => format!("={other:02X}"),
        };
        if column + piece.len() > 75 && piece != "\r\n" {
            text.push_str("=\r\n");
            column = 0;
        }
        column = if piece == "\r\n" { 0 } else { column + piece.len() };
        text.push_str(&piece);
    }
    text
}

fn kind_of(mail: &Mail) -> String {
    mail.headers
        .iter()
        .find(|(name, _)| name == "Content-Type")
        .map(|(_, kind)| kind.clone())
        .unwrap_or_default()
}

fn is_of_parts(mail: &Mail) -> bool {
    kind_of(mail).starts_with("multipart/")
}

/// A mail as the first part of another.
fn within(mail: &Mail, kind: &str, more: &str) -> Mail {
    let coding = if is_of_parts(mail) { "7bit" } else { "8bit" };
    let first =
        format!("Content-Type: {}\nContent-Transfer-Encoding: {coding}\n\n{}", kind_of(mail), mail.body);
    Mail::new(
        &format!("{kind}; boundary=\"outer\""),
        &format!("--outer\n{first}\n--outer\n{more}\n--outer--\n"),
    )
}

/// The changes of hosts and programs to a whole reply; `None` if one does not apply.
fn wrapped(mail: &Mail) -> Vec<(&'static str, Mail)> {
    let smime = "Content-Type: application/pkcs7-signature; name=smime.p7s\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=smime.p7s\n\nMIIB";
    let pgp = "Content-Type: application/pgp-signature; name=signature.asc\n\n-----BEGIN PGP SIGNATURE-----\n\niQEz\n-----END PGP SIGNATURE-----";
    let note = "Content-Type: text/plain; charset=utf-8\n\nThis message is confidential. Rejected if you are not whom it is for.";
    let logo = "Content-Type: image/png; name=logo.png\nContent-Transfer-Encoding: base64\nContent-Disposition: inline\n\niVBORw0KGgo=";
    let mut all = vec![
        (
            "s/mime",
            within(mail, "multipart/signed; protocol=\"application/pkcs7-signature\"; micalg=sha-256", smime),
        ),
        (
            "pgp/mime",
            within(mail, "multipart/signed; protocol=\"application/pgp-signature\"; micalg=pgp-sha256", pgp),
        ),
        ("a host's note", within(mail, "multipart/mixed", note)),
        ("a logo", within(mail, "multipart/related", logo)),
    ];
    if !is_of_parts(mail) {
        let of = |body: String, coding: &str| {
            Mail { body, ..mail.clone() }.set("Content-Transfer-Encoding", coding)
        };
        all.push(("quoted-printable", of(quoted_printable(mail.body.as_bytes()), "quoted-printable")));
        let lines = base64(mail.body.as_bytes());
        let lines: Vec<&str> =
            lines.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        all.push(("base64", of(format!("{}\r\n", lines.join("\r\n")), "base64")));
        let latin: Option<Vec<u8>> = mail.body.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
        if let (Some(bytes), true) = (latin, kind_of(mail).starts_with("text/plain; charset=utf-8")) {
            let old = of(quoted_printable(&bytes), "quoted-printable");
            all.push(("latin", old.set("Content-Type", "text/plain; charset=iso-8859-1")));
        }
    }
    all
}

#[tokio::test]
async fn a_phrase_is_read_however_the_reply_is_coded_signed_or_added_to() {
    let quoted = request();
    let (mut counts, mut wrong) = (std::collections::BTreeMap::new(), Vec::new());
    for (at, shape) in SHAPES.iter().enumerate() {
        for (beside, language) in LANGUAGES.iter().enumerate() {
            for (phrase, own) in phrases(at + beside, shape).into_iter().take(2) {
                for (how, mail) in wrapped(&(shape.mail)(&Talk { own: &own, quoted: &quoted, language })) {
                    let (verdict, text) = read(mail).await;
                    *counts.entry(how).or_insert(0_usize) += 1;
                    if verdict != expected(phrase) {
                        wrong.push(format!(
                            "{how} {} {} {own:?}: {verdict:?} of {text:?}",
                            shape.name, language.name
                        ));
                    }
                }
            }
        }
    }
    println!("{counts:?}, {} read wrongly", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(counts.len() == 7 && counts.values().all(|count| *count >= 30), "{counts:?}");
}
