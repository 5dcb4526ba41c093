//! The mail servers around a server: one that takes what goes out, and one that hands replies over by LMTP.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How long a test waits for a mail, and for the other side of a connection.
const PATIENCE: Duration = Duration::from_secs(90);

/// A definition that asks one approver.
pub(crate) const ASKS: &str = "name: asks
states:
  - {name: decide, type: approval, approvers: [lead@example.com]}
  - {name: go, type: conversation}
  - {name: stop, type: conversation}
transitions:
  - {from: decide, port: approved, to: go}
  - {from: decide, port: rejected, to: stop}
";

/// A mail server that takes everything.
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    mails: Receiver<String>,
}

impl Sink {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (sender, mails) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let sender = sender.clone();
                std::thread::spawn(move || take(stream.expect("a connection"), &sender));
            }
        });
        Self { address, mails }
    }

    pub(crate) fn next(&self) -> String {
        self.mails.recv_timeout(PATIENCE).expect("a mail goes out")
    }
}

/// Talks SMTP until the other side has enough.
fn take(mut stream: TcpStream, sender: &Sender<String>) {
    let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
    let mut say = |text: &str| stream.write_all(format!("{text}\r\n").as_bytes()).is_ok();
    let mut going = say("220 sink");
    while let (true, Some(Ok(line))) = (going, lines.next()) {
        going = match line.to_ascii_uppercase().split_whitespace().next() {
            Some("DATA") => {
                going = say("354 go on");
                let mail: Vec<String> =
                    lines.by_ref().map_while(Result::ok).take_while(|it| it != ".").collect();
                // The test may have ended.
                let _gone = sender.send(mail.join("\r\n"));
                going && say("250 taken")
            }
            Some("QUIT") => {
                say("221 gone");
                false
            }
            _ => say("250 fine"),
        };
    }
}

/// The unfolded value of a mail's field.
pub(crate) fn field(mail: &str, name: &str) -> String {
    let head = mail.split("\r\n\r\n").next().unwrap_or_default().replace("\r\n ", " ");
    let found = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned));
    found.unwrap_or_else(|| panic!("{name}: {mail}")).trim_matches(['<', '>']).to_owned()
}

/// Hands a message over to a server that listens there: the answers to its recipients and to the message.
pub(crate) fn hand_over(lmtp: SocketAddr, recipients: &[&str], message: &str) -> Vec<String> {
    let mut stream = TcpStream::connect(lmtp).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let to: String = recipients.iter().map(|to| format!("RCPT TO:<{to}>\r\n")).collect();
    let all = format!("LHLO mx\r\nMAIL FROM:<lead@example.com>\r\n{to}DATA\r\n{message}.\r\nQUIT\r\n");
    stream.write_all(all.as_bytes()).expect("it reads");
    let lines: Vec<String> = BufReader::new(stream).lines().map(|line| line.expect("a line")).collect();
    let greeted = lines.iter().position(|line| line.starts_with("250 SIZE")).expect("a greeting");
    lines[greeted + 2..].iter().map(|line| line[..3].to_owned()).collect()
}

/// The approver's reply; `proof` is what the host in front says of its signature.
pub(crate) fn reply(mail: &str, proof: &str, text: &str) -> String {
    let id = field(mail, "Message-ID");
    format!(
        "Authentication-Results: mx.acme.example; dkim={proof} header.d=example.com; dmarc={proof} \
         header.from=example.com\r\n\
         DKIM-Signature: v=1; a=rsa-sha256; d=example.com; s=s1; c=relaxed/relaxed; h=from:to:subject:message-id; \
         bh=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=; b=AAAA\r\n\
         From: Lead <lead@example.com>\r\nTo: {}\r\nSubject: Re: {}\r\nMessage-ID: <{proof}.{}@example.com>\r\n\
         In-Reply-To: <{id}>\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n",
        field(mail, "Reply-To"),
        field(mail, "Subject"),
        text.len()
    )
}
