//! Conversations with the listener.

use std::sync::{Arc, Mutex};

use switchward_mail::incoming::Envelope;
use switchward_mail::limits::{LMTP_ERRORS_MAX, LMTP_LINE_BYTES_MAX, LMTP_RECIPIENTS_MAX, MESSAGE_BYTES_MAX};
use switchward_mail::lmtp::{Ended, Receive, ReceiveOutcome, converse, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Keeps what comes, and says of each message what its body asks for.
#[derive(Default)]
struct Box(Mutex<Vec<(Envelope, Vec<u8>)>>);

impl Receive for Box {
    fn knows(&self, recipient: &str) -> bool {
        recipient.starts_with("r+")
    }

    async fn receive(&self, envelope: Envelope, raw: Vec<u8>) -> ReceiveOutcome {
        let text = String::from_utf8_lossy(&raw).into_owned();
        self.0.lock().unwrap().push((envelope, raw));
        match text {
            text if text.contains("later") => ReceiveOutcome::Later,
            text if text.contains("refuse") => ReceiveOutcome::Refused,
            _ => ReceiveOutcome::Stored,
        }
    }
}

/// Says all of it at once, as a pipelining client does, and gives the codes of the replies.
async fn said(lines: &[u8]) -> (Vec<String>, Ended, Vec<(Envelope, Vec<u8>)>) {
    let kept = Box::default();
    let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
    let (mut from, mut to) = tokio::io::split(&mut ours);
    let mut replies = String::new();
    let talk = async {
        let write = async {
            // The other side may have hung up already, which is what some of these tests want.
            let _ = to.write_all(lines).await;
            let _ = to.shutdown().await;
        };
        let (_, read) = tokio::join!(write, from.read_to_string(&mut replies));
        read.unwrap();
    };
    let (ended, ()) = tokio::join!(converse(theirs, "mx.acme.example", &kept), talk);
    let codes = replies.lines().map(|line| line[..4].trim().to_owned()).collect();
    (codes, ended, kept.0.into_inner().unwrap())
}

const OPEN: &str = "LHLO mx\r\nMAIL FROM:<dana@corp.example> BODY=8BITMIME\r\nRCPT TO:<r+tok1@x.example>\r\n";

#[tokio::test]
async fn a_message_is_handed_over_with_a_reply_for_each_recipient() {
    let more = "RCPT TO:<nobody@x.example>\r\nRCPT TO:<r+tok2@x.example>\r\nDATA\r\n";
    let text = "Subject: x\r\n\r\nyes\r\n..\r\n.two\r\nbare\n.\nend\r\n.\r\nQUIT\r\n";
    let (codes, ended, kept) = said(format!("{OPEN}{more}{text}").as_bytes()).await;
    let expected = [
        "220", "250-", "250-", "250-", "250-", "250", "250", "250", "550", "250", "354", "250", "250", "221",
    ];
    assert_eq!((codes, ended), (expected.map(str::to_owned).to_vec(), Ended::Quit));
    let [(envelope, raw)] = &kept[..] else { panic!("{kept:?}") };
    assert_eq!(envelope.sender.as_deref(), Some("dana@corp.example"));
    assert_eq!(envelope.recipients, ["r+tok1@x.example", "r+tok2@x.example"]);
    assert_eq!(envelope.peer, None);
    assert_eq!(String::from_utf8_lossy(raw), "Subject: x\r\n\r\nyes\r\n.\r\ntwo\r\nbare\n.\nend\r\n");
}

#[tokio::test]
async fn what_becomes_of_a_message_is_what_the_sender_hears() {
    for (word, code) in [("yes", "250"), ("later", "451"), ("refuse", "554")] {
        let (codes, ..) = said(format!("{OPEN}DATA\r\n{word}\r\n.\r\nQUIT\r\n").as_bytes()).await;
        assert_eq!(codes[codes.len() - 2..], [code, "221"], "{word}");
    }
}

#[tokio::test]
async fn what_is_out_of_order_is_refused() {
    for (lines, code) in [
        ("MAIL FROM:<a@b>\r\n", "503"),
        ("EHLO mx\r\n", "500"),
        ("LHLO mx\r\nRCPT TO:<r+a@b>\r\n", "503"),
        ("LHLO mx\r\nDATA\r\n", "503"),
        ("LHLO mx\r\nMAIL FROM:<a@b>\r\nDATA\r\n", "503"),
        ("LHLO mx\r\nMAIL FROM:<a@b>\r\nRCPT TO:<no@b>\r\nDATA\r\n", "503"),
        ("LHLO mx\r\nMAIL FROM:<a@b>\r\nMAIL FROM:<a@b>\r\n", "503"),
        ("LHLO mx\r\nMAIL FROM:a@b\r\n", "501"),
        ("LHLO mx\r\nMAIL FROM:<a@b> SIZE=99999999999\r\n", "552"),
        ("LHLO mx\r\nMAIL FROM:<>\r\n", "250"),
        ("LHLO mx\r\nMAIL FROM:<a@b>\r\nRSET\r\nMAIL FROM:<a@b>\r\n", "250"),
        ("VRFY a\r\n", "252"),
        ("\r\n", "500"),
        ("\u{0}\r\n", "500"),
    ] {
        let (codes, ended, kept) = said(lines.as_bytes()).await;
        assert_eq!(codes.last().map(String::as_str), Some(code), "{lines}");
        assert_eq!((ended, kept.len()), (Ended::Broken, 0), "{lines}");
    }
}

#[tokio::test]
async fn limits_hold() {
    let (codes, ended, _) = said("x\r\n".repeat(LMTP_ERRORS_MAX + 5).as_bytes()).await;
    assert_eq!((codes.last().unwrap().as_str(), ended), ("421", Ended::TooMuch));
    let (codes, ..) = said(format!("LHLO {}\r\nQUIT\r\n", "x".repeat(LMTP_LINE_BYTES_MAX)).as_bytes()).await;
    assert_eq!(codes, ["220", "500", "221"]);
    let many: String = (0..=LMTP_RECIPIENTS_MAX).map(|n| format!("RCPT TO:<r+{n}@b>\r\n")).collect();
    let (codes, ..) = said(format!("{OPEN}{many}").as_bytes()).await;
    assert_eq!(codes.last().unwrap(), "452");
    for line in ["x".repeat(MESSAGE_BYTES_MAX + 10), "x\r\n".repeat(MESSAGE_BYTES_MAX / 3 + 10)] {
        let (codes, ended, kept) = said(format!("{OPEN}DATA\r\n{line}\r\n.\r\nQUIT\r\n").as_bytes()).await;
        assert_eq!(codes[codes.len() - 2..], ["552", "221"]);
        assert_eq!((ended, kept.len()), (Ended::Quit, 0));
    }
    let (_, ended, kept) = said(format!("{OPEN}DATA\r\nyes\r\n.").as_bytes()).await;
    assert_eq!((ended, kept.len()), (Ended::Broken, 0), "an incomplete message is not accepted");
}

#[tokio::test(start_paused = true)]
async fn who_is_silent_is_left() {
    let kept = Box::default();
    let (mut ours, theirs) = tokio::io::duplex(1024);
    assert_eq!(converse(theirs, "mx", &kept).await, Ended::Silent);
    let mut replies = String::new();
    ours.read_to_string(&mut replies).await.unwrap();
    assert!(replies.ends_with("421 4.4.2 timeout\r\n"), "{replies}");
    let (mut ours, theirs) = tokio::io::duplex(1024);
    ours.write_all(format!("{OPEN}DATA\r\nhalf").as_bytes()).await.unwrap();
    assert_eq!(converse(theirs, "mx", &kept).await, Ended::Silent);
    assert!(kept.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_listener_answers_until_it_is_stopped() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let kept = Arc::new(Box::default());
    let server = tokio::spawn(serve(listener, "mx".to_owned(), kept.clone(), stopped));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{OPEN}DATA\r\nyes\r\n.\r\nQUIT\r\n").as_bytes()).await.unwrap();
    let mut replies = String::new();
    stream.read_to_string(&mut replies).await.unwrap();
    assert!(replies.ends_with("250 2.0.0 accepted\r\n221 2.0.0 bye\r\n"), "{replies}");
    assert_eq!(kept.0.lock().unwrap().len(), 1);
    stop.send(true).unwrap();
    server.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}
