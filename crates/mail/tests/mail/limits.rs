//! What is too large, too many, too deep or not there is refused with its word, and soon.

use std::time::{Duration, Instant};

use switchward_mail::incoming::{Envelope, Sorted, TokenPosition, Unusable, sort};
use switchward_mail::limits::{HEADERS_MAX, MESSAGE_BYTES_MAX, TEXT_BYTES_MAX};

use crate::harness::{HARNESS, Mail, REPLY_TO};

/// Longer than any message here takes, unless the time grows with the square of its size.
const SLOW: Duration = Duration::from_secs(60);

fn refused(raw: &[u8]) -> &'static str {
    let began = Instant::now();
    let sorted = sort(raw, &Default::default(), &HARNESS.settings);
    assert!(began.elapsed() < SLOW, "{:?}", began.elapsed());
    match sorted {
        Sorted::Unusable { reason } => reason.word(),
        Sorted::Machine { kind } => kind.word(),
        Sorted::Bounce(_) => "bounce",
        Sorted::Reply(_) => "reply",
    }
}

/// Nested parts of this depth.
fn nested(levels: usize, ends: bool) -> Mail {
    let open: String = (0..levels)
        .map(|n| format!("--b{n}\nContent-Type: multipart/mixed; boundary=b{}\n\n", n + 1))
        .collect();
    let close: String =
        if ends { (0..=levels).rev().map(|n| format!("--b{n}--\n")).collect() } else { String::new() };
    Mail::new("multipart/mixed; boundary=b0", &format!("{open}--b{levels}\n\napproved\n{close}"))
}

#[test]
fn each_limit_has_its_word() {
    let plain = || Mail::plain("approved\n");
    let fields = |count: usize| (0..count).fold(plain(), |mail, n| mail.below(&format!("X-{n}"), "y"));
    let parts = |count: usize| {
        let part = "--b\nContent-Type: text/plain\n\nyes\n";
        Mail::new("multipart/mixed; boundary=b", &format!("{}--b--\n", part.repeat(count)))
    };
    let addresses = |count: usize| vec!["a@b.example"; count].join(", ");
    let cases = [
        ("too_many_headers", fields(10_000)),
        ("too_many_headers", fields(HEADERS_MAX)),
        ("reply", fields(HEADERS_MAX - 20)),
        ("too_many_headers", plain().below("X", &"y".repeat(100_000))),
        ("too_many_parts", parts(1000)),
        ("reply", parts(150)),
        ("too_many_parts", parts(30_000)),
        ("too_many_parts", nested(1000, true)),
        ("too_many_parts", nested(1000, false)),
        ("too_many_parts", nested(25, true)),
        ("reply", nested(10, true)),
        ("too_many_addresses", plain().set("Cc", &addresses(1000))),
        ("reply", plain().set("Cc", &addresses(100))),
        ("text_too_large", Mail::plain(&"yes no\n".repeat(TEXT_BYTES_MAX / 7))),
        ("no_from", plain().without("From")),
        ("several_from", plain().below("From", "x@y.example")),
        ("several_from", plain().set("From", "a@b.example, c@d.example")),
        ("bad_from", plain().set("From", "Dana")),
        ("no_message_id", plain().without("Message-ID")),
        ("no_message_id", plain().set("Message-ID", "x")),
        ("no_message_id", plain().set("Message-ID", "<>")),
        ("duplicate_header", plain().below("Subject", "x")),
        ("malformed", Mail { headers: vec![("From x".into(), "a@b.example".into())], body: String::new() }),
        ("malformed", plain().below("X", "a\rb")),
        ("malformed", plain().below("X", "a\u{0}b")),
        ("no_body", Mail::plain("")),
        ("no_body", Mail::plain("\n \n\t\n")),
        ("no_text", Mail::new("application/pdf", "yes")),
        ("encrypted", Mail::new("application/pkcs7-mime", "yes")),
        ("unknown_charset", Mail::new("text/plain; charset=x-nobody", "yes")),
        ("hidden_preamble", Mail::new("multipart/mixed; boundary=b", "yes\n--b\n\nno\n--b--\n")),
    ];
    for (word, mail) in cases {
        let headers: Vec<_> = mail.headers.iter().take(12).collect();
        assert_eq!(refused(&mail.raw()), word, "{headers:?} {:.100}", mail.body);
    }
    // A part that ends inside another one of a nested message breaks a debug assertion of the parser.
    let inside =
        "--b\nContent-Type: message/rfc822\n\n--c\nContent-Type: message/rfc822\n\n--b\n\nyo\n--b--\n";
    let breaks =
        refused(&Mail::new("multipart/mixed; boundary=b", &format!("{inside}--b\n\nyo\n--b--\n")).raw());
    assert!(["breaks_reader", "reply"].contains(&breaks), "{breaks}");
    assert_eq!(refused(&vec![b'a'; MESSAGE_BYTES_MAX + 1]), "too_large");
    assert_eq!(Unusable::TooLarge.word(), "too_large");
}

#[test]
fn what_is_made_to_take_long_does_not() {
    let many = 200_000;
    let bodies = [
        "<div>".repeat(many),
        "</div>".repeat(many),
        "<p style=\"".repeat(many),
        "<!--".repeat(many),
        "<script>".repeat(many),
        "&".repeat(many),
        "<a b=c ".repeat(many),
        "<style>a{".repeat(many),
        format!("<style>{}</style>", ".a{display:none}".repeat(many / 8)),
        "<table><td>".repeat(many),
        format!("<a {}>", (0..many).map(|n| format!("b{n} ")).collect::<String>()),
        (0..many / 2).map(|n| format!("<body b{n}>")).collect(),
        (0..many / 4).map(|n| format!("<p><b id={n}>")).collect(),
        format!("{}{}", "<b title=x>".repeat(200), "<p>x</p>".repeat(many)),
        format!("<b style='{}'>{}", "color:red;".repeat(1000), "</p><p>x".repeat(many)),
        format!("{}{}", "<i><div>".repeat(100), "</i>".repeat(many)),
        format!("{}{}", "<div>".repeat(250), "<br></x>".repeat(many)),
        format!("<style>{}", ".a{".repeat(many)),
        format!("<style>{}", "@media(a){".repeat(many / 4)),
        format!("<style>{}", "a:b{c:d;".repeat(many / 4)),
        format!("<p style=\"{}\">", "a:rgb(".repeat(many)),
        format!("<p style=\"{}\">", "a{[(".repeat(many)),
        format!("<style>{}</style>{}", ".a.b{color:red}".repeat(900), "<p class='a b'>x".repeat(50_000)),
        format!(
            "<style>{}</style>{}",
            (0..900).map(|n| format!(".a.b{n}{{color:#{n:03}}}")).collect::<String>(),
            "<p class='a b'>x".repeat(50_000)
        ),
        format!("<style>.a{{color:red}}</style><p class='{}'>x", "a b c ".repeat(many)),
        "<table>x".repeat(many),
        "<svg><math>".repeat(many / 4),
        "<template>".repeat(many / 4),
    ];
    for body in bodies {
        assert!(["reply", "text_too_large"].contains(&refused(&Mail::html(&body).raw())));
    }
    let lines =
        ["On 1\n", "a@b ", "From: x\n", ">", "> a\nb\n", "\u{200b}", "*", "\n", "2024 \n", "--\n", "--x\n"];
    for line in lines {
        let text = line.repeat(many.min(900_000 / line.len()));
        assert_ne!(refused(&Mail::plain(&text).raw()), "malformed");
        assert_ne!(refused(&Mail::plain("yes").set("To", &text.replace('\n', " ")).raw()), "malformed");
    }
    for (open, count) in
        [("(", 60_000), ("<", 60_000), ("\"", 60_000), (",", 60_000), ("a@b.example,", 5_000)]
    {
        let text = open.repeat(count);
        for name in ["From", "To", "References", "Subject", "Content-Type", "Authentication-Results"] {
            refused(&Mail::plain("yes").set(name, &text).raw());
        }
    }
}

#[test]
fn tokens_come_from_where_it_was_sent_and_never_from_what_it_answers() {
    let mail = Mail::plain("yes")
        .set("To", "R+TOK2@Reply.Acme.Example, x@y.example")
        .below("Cc", "\"r+tok0@reply.acme.example\" <r+tok3@reply.acme.example>")
        .above("Delivered-To", "r+tok4@reply.acme.example")
        .above("X-Original-To", "r+tok2@reply.acme.example")
        .set("In-Reply-To", "<a.tok5@reply.acme.example>")
        .set("References", "<a.tok6@other.example> <a.tok7@reply.acme.example> <x@reply.acme.example>");
    let recipients = ["r+tok1@reply.acme.example", "r+@reply.acme.example", REPLY_TO];
    let envelope = Envelope { recipients: recipients.map(str::to_owned).to_vec(), ..Envelope::default() };
    let Sorted::Reply(reply) = mail.sorted_with(&envelope) else { panic!("no reply") };
    let tokens: Vec<(&str, TokenPosition)> =
        reply.tokens.iter().map(|token| (token.text.as_str(), token.position)).collect();
    let expected = [
        ("tok1", TokenPosition::Envelope),
        ("tok2", TokenPosition::To),
        ("tok3", TokenPosition::Cc),
        ("tok4", TokenPosition::Delivery),
    ];
    assert_eq!(tokens, expected);
}

#[test]
fn the_same_message_has_the_same_digest_whichever_way_it_came() {
    let digest = |raw: &[u8]| match sort(raw, &Default::default(), &HARNESS.settings) {
        Sorted::Reply(reply) => reply.digest,
        other @ (Sorted::Machine { .. } | Sorted::Bounce(_) | Sorted::Unusable { .. }) => panic!("{other:?}"),
    };
    let mail = Mail::plain("yes\nplease\n");
    let first = digest(&mail.raw());
    assert_eq!(first, digest(&mail.clone().above("Received", "from a by b").raw()));
    let stored: Vec<u8> = mail.raw().into_iter().filter(|byte| *byte != b'\r').collect();
    assert_eq!(first, digest(&stored));
    assert_ne!(first, digest(&mail.set("Message-ID", "<m2@corp.example>").raw()));
}
