//! Mail: how it is written, and what a mail server's answer means for it.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use switchward_delivery::mail::{
    Choice, Composed, Fact, Head, OutboundMail, Post as _, Purpose, Sender, Smtp, SmtpConfig, SmtpTls,
    compose,
};
use switchward_delivery::{DeliveryReason, Secret};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

/// A port at which nobody listens: it is none that a system gives away by itself.
const DESERTED: u16 = 1;
const GOLDEN: &str = include_str!("../golden/mail.v1.json");

fn outbound() -> OutboundMail {
    OutboundMail {
        to: "kim@acme.example".into(),
        subject: "deploy-gate: write_file?".into(),
        purpose: Purpose::Ask,
        body: String::new(),
        html: false,
        id: "7".into(),
        thread: "ses_a-6".into(),
        reply_token: Some("abc234".into()),
        page_token: Some("def567".into()),
        bounce_token: Some("ghi567".into()),
        facts: vec![Fact { name: "Call".into(), value: "mcp:fs:write_file".into() }],
        choice: Some(Choice {
            approve: "approve".into(),
            refuse: "refuse".into(),
            also: Vec::new(),
            page_only: false,
            discusses: false,
            rule: "The first decision counts.".into(),
        }),
        head: None,
    }
}

fn sender() -> Sender {
    Sender {
        from: "Acme approvals <approvals@acme.example>".into(),
        reply: Some("r+{token}@reply.acme.example".into()),
        pages: Some("https://acme.example/".into()),
        authors: vec!["Bot@acme.example".into(), "*@shop.example".into()],
        dkim: None,
    }
}

fn raw(mail: &Composed) -> String {
    String::from_utf8(mail.raw.clone()).expect("headers and parts are ASCII")
}

#[test]
fn outbound_mails_keep_their_form() {
    assert_eq!(serde_json::to_string(&outbound()).expect("the mail can be written"), GOLDEN.trim_end());
    assert_eq!(serde_json::from_str::<OutboundMail>(GOLDEN).expect("the mail can be read"), outbound());
    let least =
        json!({ "to": "a@b.example", "subject": "", "purpose": "say", "body": "", "id": "1", "thread": "t" });
    assert!(serde_json::from_value::<OutboundMail>(least).is_ok());
}

#[test]
fn a_mail_that_asks_says_how_to_decide_and_threads_with_its_kin() {
    let mail = compose(&outbound(), &sender()).expect("the mail can be written");
    assert_eq!(mail.reply_to.as_deref(), Some("r+abc234@reply.acme.example"));
    assert_eq!(mail.bounce_to.as_deref(), Some("r+ghi567@reply.acme.example"));
    let text = raw(&mail);
    // What its reader quotes, answers or passes on is called by ids that open nothing.
    let id = mail.message_id.strip_suffix("@reply.acme.example").and_then(|id| id.strip_prefix("m."));
    assert!(id.is_some_and(|id| id.len() == 32 && !id.contains("abc234")), "{}", mail.message_id);
    assert!(!text.contains("ghi567") && text.matches("abc234").count() == 1, "{text}");
    let thread = text.lines().find(|line| line.starts_with("References: <t.")).expect("a thread").to_owned();
    for header in [
        "Subject: Approve? deploy-gate: write_file?\r\n",
        "Reply-To: r+abc234@reply.acme.example\r\n",
        &thread.replace("References", "In-Reply-To"),
        "Auto-Submitted: auto-generated\r\n",
        "X-Auto-Response-Suppress: All\r\n",
    ] {
        assert!(text.contains(header), "{header} is missing in {text}");
    }
    assert!(mail.text.starts_with("--- reply above this line ---\n"), "{}", mail.text);
    for line in ["  APPROVE    or    REFUSE", "https://acme.example/a/def567", "mcp:fs:write_file"] {
        assert!(mail.text.contains(line), "{line} is missing in {}", mail.text);
    }
    let notice =
        OutboundMail { purpose: Purpose::Inform, subject: "Re: x".into(), id: "8".into(), ..outbound() };
    let outcome = compose(&notice, &sender()).expect("the mail can be written");
    assert!(raw(&outcome).contains(&thread));
    assert_ne!(outcome.message_id, mail.message_id);
    // Numbers are a session's own: mails of two sessions are never taken for one, also where nobody can reply.
    let closed = |thread: &str| {
        let outbound = OutboundMail { reply_token: None, thread: thread.into(), ..notice.clone() };
        compose(&outbound, &sender()).expect("the mail can be written").message_id
    };
    assert_ne!(closed("ses_a-6"), closed("ses_b-6"));
    assert!(!outcome.text.contains("APPROVE"), "{}", outcome.text);
    // The answer that says that a reply decides nothing has a link to the decision page.
    assert!(outcome.text.contains("\nDecision page: https://acme.example/a/def567"), "{}", outcome.text);
}

#[test]
fn every_word_that_decides_is_named_and_what_is_too_long_is_left_to_the_page() {
    let with = |how: &dyn Fn(&mut Choice)| {
        let mut outbound = outbound();
        how(outbound.choice.as_mut().expect("a choice"));
        let mail = compose(&outbound, &sender()).expect("the mail can be written");
        let (_, html) = raw(&mail)
            .replace("=\r\n", "")
            .split_once("text/html")
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .expect("HTML");
        (mail.text, html)
    };
    let (text, html) = with(&|choice| choice.also = vec!["ok, yes".into(), "no, deny".into()]);
    for part in [&text, &html] {
        assert!(part.contains("decide as well"), "{part}");
        assert!(part.contains("ok, yes") && part.contains("no, deny"), "{part}");
    }
    let (text, html) = with(&|choice| choice.page_only = true);
    assert!(!text.contains("APPROVE") && !html.contains("APPROVE"), "{text}");
    for part in [&text, &html] {
        assert!(part.contains("too long for a mail") && part.contains("REFUSE"), "{part}");
    }
}

#[test]
fn what_others_say_stays_text() {
    let body = "<script>alert(1)</script> approve & go".to_owned();
    let fact = Fact { name: "With".into(), value: "<img src=x onerror=y>".into() };
    let mail = compose(&OutboundMail { body, facts: vec![fact], ..outbound() }, &sender())
        .expect("the mail can be written");
    let text = raw(&mail).replace("=\r\n", "").replace("=3D", "=");
    assert!(!text.contains("<script>alert") || mail.text.contains("<script>alert"), "{text}");
    let (_, html) = text.split_once("text/html").expect("a part of HTML");
    assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
    assert!(
        html.contains("&lt;script&gt;") && html.contains("The request, as the process wrote it"),
        "{html}"
    );
}

#[test]
fn no_header_is_slipped_in() {
    let evil = "a@b.example\r\nBcc: eve@evil.example";
    let rows = [
        OutboundMail { to: evil.into(), ..outbound() },
        OutboundMail { to: "a@b.example\nX: y".into(), ..outbound() },
        OutboundMail { to: "a@b.example, eve@evil.example".into(), ..outbound() },
        OutboundMail { to: "a b@c.example".into(), ..outbound() },
        OutboundMail { to: String::new(), ..outbound() },
        OutboundMail { to: format!("{}@b.example", "a".repeat(300)), ..outbound() },
        OutboundMail { subject: "hi\r\nBcc: eve@evil.example".into(), ..outbound() },
        OutboundMail { subject: "hi\u{0}".into(), ..outbound() },
        OutboundMail { subject: "x".repeat(2_000), ..outbound() },
        OutboundMail { id: "7>\r\nX: y".into(), ..outbound() },
        OutboundMail { thread: "t y".into(), ..outbound() },
        OutboundMail { reply_token: Some("a@evil.example".into()), ..outbound() },
        OutboundMail { body: "x".repeat(2 * 1024 * 1024), ..outbound() },
    ];
    for outbound in rows {
        let outcome = compose(&outbound, &sender()).map_err(|failed| failed.reason);
        assert_eq!(outcome, Err(DeliveryReason::MailInvalid), "{:?} {:?}", outbound.to, outbound.subject);
    }
    let odd =
        OutboundMail { subject: "Grüße \"you\" <a@b.example>, x: y".into(), choice: None, ..outbound() };
    let text = raw(&compose(&odd, &sender()).expect("the mail can be written"));
    assert_eq!(text.lines().filter(|line| line.to_lowercase().starts_with("bcc")).count(), 0);
    assert_eq!(text.lines().filter(|line| line.starts_with("Subject:")).count(), 1);
}

#[test]
fn a_mail_is_sent_in_no_name_that_is_not_listed() {
    let of = |author: &str| {
        let head = Some(Head { from: Some(author.to_owned()), to: Vec::new(), cc: Vec::new() });
        let outbound = OutboundMail { head, choice: None, purpose: Purpose::Say, ..outbound() };
        compose(&outbound, &sender()).map_err(|failed| failed.reason)
    };
    let shop = raw(&of("Sales@Shop.example").expect("the mail can be written"));
    assert!(shop.contains("From: Sales@Shop.example\r\n"), "{shop}");
    for other in ["kim@acme.example", "bot@evil.acme.example", "a@b.shop.example"] {
        assert_eq!(of(other), Err(DeliveryReason::MailInvalid), "{other}");
    }
}

#[test]
fn no_mail_of_ours_comes_back_as_a_reply() {
    for to in [
        "r+abc@reply.acme.example",
        "R+abc@Reply.Acme.example",
        "r@reply.acme.example",
        "\"r+abc\"@reply.acme.example",
    ] {
        let outcome =
            compose(&OutboundMail { to: to.into(), ..outbound() }, &sender()).map_err(|failed| failed.reason);
        assert_eq!(outcome, Err(DeliveryReason::MailInvalid), "{to}");
    }
    for to in ["kim@reply.acme.example", "r+abc@acme.example", "rita@reply.acme.example"] {
        assert!(compose(&OutboundMail { to: to.into(), ..outbound() }, &sender()).is_ok(), "{to}");
    }
}

#[test]
fn a_mail_of_somebody_else_says_who_wrote_it_and_keeps_copies_to_itself() {
    let list = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let of = |to: &str, from: Option<&str>, listed: &[&str], cc: &[&str]| {
        let head = Some(Head { from: from.map(str::to_owned), to: list(listed), cc: list(cc) });
        let outbound =
            OutboundMail { to: to.into(), head, choice: None, purpose: Purpose::Say, ..outbound() };
        compose(&outbound, &sender())
    };
    let bot = Some("bot@acme.example");
    let copy = of("eve@b.example", bot, &["ann@b.example", "ben@b.example"], &["cy@b.example"]);
    let copy = copy.expect("the mail can be written");
    assert_eq!((copy.from.as_str(), copy.to.as_str()), ("approvals@acme.example", "eve@b.example"));
    assert_eq!(copy.reply_to, None);
    let text = raw(&copy);
    for header in [
        "From: bot@acme.example\r\n",
        "Sender: \"Acme approvals\" <approvals@acme.example>\r\n",
        "To: ann@b.example, ben@b.example\r\n",
        "Cc: cy@b.example\r\n",
    ] {
        assert!(text.contains(header), "{header} is missing in {text}");
    }
    assert!(!text.contains("eve@b.example") && !text.contains("\nReply-To"), "{text}");
    let hidden = raw(&of("eve@b.example", None, &[], &[]).expect("the mail can be written"));
    assert!(hidden.contains("To: undisclosed-recipients:;\r\n") && !hidden.contains("eve@"), "{hidden}");
    assert!(
        hidden.contains("approvals@acme.example>") && hidden.contains("\nReply-To: r+abc234@"),
        "{hidden}"
    );
    let own =
        raw(&of("a@b.example", Some("Approvals@acme.example"), &[], &[]).expect("the mail can be written"));
    assert!(own.contains("From: Approvals@acme.example\r\n"), "{own}");
    for bad in ["x@a.example\r\nBcc: y@b.example", "x@a.example, y@b.example", "nobody"] {
        for outcome in [of("a@b.example", Some(bad), &[], &[]), of("a@b.example", bot, &[bad], &[])] {
            assert_eq!(outcome.map_err(|failed| failed.reason), Err(DeliveryReason::MailInvalid), "{bad}");
        }
    }
    let many = vec!["a@b.example"; 200];
    assert!(of("a@b.example", None, &many, &[]).is_err());
}

#[test]
fn a_sender_that_cannot_be_used_is_refused() {
    let of = |from: &str, reply: Option<&str>| {
        let sender = Sender { from: from.into(), reply: reply.map(str::to_owned), ..sender() };
        sender.check().err().map(|problem| problem.split(':').next().unwrap_or_default().to_owned())
    };
    assert_eq!(of("Acme <a@acme.example>", Some("r+{token}@r.example")), None);
    assert_eq!(of("a@acme.example", None), None);
    assert_eq!(of("nobody", None).as_deref(), Some("from"));
    for (author, fits) in
        [("*", true), ("*@a.example", true), ("a@b.example", true), ("a*@b.example", false), ("b", false)]
    {
        let outcome = Sender { authors: vec![author.into()], ..sender() }.check();
        assert_eq!(outcome.is_ok(), fits, "{author}");
    }
    for reply in [
        "r@r.example",
        "{token}",
        "a@{token}",
        "{token}{token}@r.example",
        "approve+{token}@r.example",
        "r +{token}@r.example",
    ] {
        assert_eq!(of("a@acme.example", Some(reply)).as_deref(), Some("reply"), "{reply}");
    }
}

/// A mail server that answers the end of a message, or an earlier command, with this line.
async fn server(at: &'static str, answer: &'static str) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let received: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let received = Arc::clone(&kept);
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut data = false;
                let _sent = stream.write_all(b"220 sink\r\n").await;
                loop {
                    let mut line = String::new();
                    if stream.read_line(&mut line).await.unwrap_or_default() == 0 {
                        return;
                    }
                    received.lock().push(line.clone());
                    let word = line.split([' ', ':', '\r']).next().unwrap_or_default().to_uppercase();
                    let usual = match word.as_str() {
                        "." if data => {
                            data = false;
                            "250 taken"
                        }
                        _ if data => continue,
                        "DATA" => {
                            data = true;
                            "354 go on"
                        }
                        "EHLO" => "250-sink\r\n250-AUTH PLAIN\r\n250 8BITMIME",
                        "QUIT" => "221 bye",
                        _ => "250 fine",
                    };
                    let said = if word == at { answer } else { usual };
                    data = data && (word != at || said.starts_with('3'));
                    let _sent = stream.write_all(format!("{said}\r\n").as_bytes()).await;
                }
            });
        }
    });
    (port, received)
}

fn smtp(port: u16) -> Smtp {
    smtp_as(port, None)
}

fn smtp_as(port: u16, login: Option<(String, Secret)>) -> Smtp {
    let host = "127.0.0.1".to_owned();
    let config = SmtpConfig { host, port, tls: SmtpTls::Plain, login, hello: Some("switchward".into()) };
    Smtp::new(&config).expect("the connection has no TLS")
}

#[tokio::test]
async fn what_a_mail_server_answers_says_whether_to_come_again() {
    let mail = compose(&outbound(), &sender()).expect("the mail can be written");
    for (at, answer, wanted) in [
        ("none", "", None),
        (".", "451 later", Some(DeliveryReason::MailDeferred)),
        (".", "554 spam", Some(DeliveryReason::MailRejected)),
        ("RCPT", "450 greylisted", Some(DeliveryReason::MailDeferred)),
        ("RCPT", "550 5.1.1 no such user", Some(DeliveryReason::MailRejected)),
        ("MAIL", "421 too busy", Some(DeliveryReason::MailDeferred)),
        ("EHLO", "garbage", Some(DeliveryReason::AnswerBroken)),
    ] {
        let (port, received) = server(at, answer).await;
        let outcome = smtp(port).send(1, &mail).await.map_err(|failed| failed.reason);
        assert_eq!(outcome.err(), wanted, "{at} {answer}");
        if wanted.is_none() {
            let received = received.lock();
            let ids = received.iter().filter(|line| line.contains(&mail.message_id)).count();
            assert_eq!(ids, 1, "{received:?}");
        }
    }
    let outcome = smtp(DESERTED).send(1, &mail).await.map_err(|failed| failed.reason);
    assert_eq!(outcome, Err(DeliveryReason::ConnectFailed));
}

/// It refuses no mail: an operator may have changed the password there first.
#[tokio::test]
async fn a_mail_comes_again_while_the_mail_server_refuses_the_login() {
    let mail = compose(&outbound(), &sender()).expect("the mail can be written");
    for (at, answer, wanted) in [
        ("none", "", None),
        ("AUTH", "535 5.7.8 bad credentials", Some(DeliveryReason::MailDeferred)),
        ("AUTH", "534 5.7.9 use another mechanism", Some(DeliveryReason::MailDeferred)),
        ("MAIL", "530 5.7.0 log in first", Some(DeliveryReason::MailDeferred)),
        ("MAIL", "553 5.7.1 not yours", Some(DeliveryReason::MailRejected)),
    ] {
        let (port, _received) = server(at, answer).await;
        let smtp = smtp_as(port, Some(("approvals".to_owned(), Secret::new("old".to_owned()))));
        let outcome = smtp.send(1, &mail).await.map_err(|failed| failed.reason);
        assert_eq!(outcome.err(), wanted, "{at} {answer}");
    }
}
