//! One conversation: commands, replies, messages.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, ReadHalf, WriteHalf};
use tokio::time::timeout;

use super::command::Command;
use super::{Receive, ReceiveOutcome, lines};
use crate::incoming::Envelope;
use crate::limits::{
    LMTP_COMMAND_TIME_MAX, LMTP_ERRORS_MAX, LMTP_LINE_BYTES_MAX, LMTP_MESSAGE_TIME_MAX, LMTP_MESSAGES_MAX,
    LMTP_RECIPIENTS_MAX, MESSAGE_BYTES_MAX,
};

/// How a conversation came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client quit.
    Quit,
    /// The connection broke.
    Broken,
    /// The client was silent for too long.
    Silent,
    /// Too many commands were wrong, or too many messages came.
    TooMuch,
}

/// A conversation over a connection of any kind.
pub async fn converse<S, R>(stream: S, host: &str, receiver: &R) -> Ended
where
    S: AsyncRead + AsyncWrite + Send,
    R: Receive,
{
    let (from, to) = tokio::io::split(stream);
    let mut session = Session {
        from: BufReader::new(from),
        to,
        receiver,
        host,
        greeted: false,
        envelope: None,
        errors: 0,
        messages: 0,
    };
    match session.run().await {
        Ok(ended) => ended,
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ended::Silent,
        Err(_) => Ended::Broken,
    }
}

struct Session<'r, S, R> {
    from: BufReader<ReadHalf<S>>,
    to: WriteHalf<S>,
    receiver: &'r R,
    host: &'r str,
    greeted: bool,
    envelope: Option<Envelope>,
    errors: usize,
    messages: usize,
}

const LATE: &str = "the client sends nothing";

impl<S: AsyncRead + AsyncWrite + Send, R: Receive> Session<'_, S, R> {
    async fn run(&mut self) -> io::Result<Ended> {
        self.say(&format!("220 {} LMTP", self.host)).await?;
        loop {
            let next = timeout(LMTP_COMMAND_TIME_MAX, lines::read(&mut self.from, LMTP_LINE_BYTES_MAX));
            let Ok(line) = next.await else {
                self.say("421 4.4.2 timeout").await?;
                return Ok(Ended::Silent);
            };
            let Some(line) = line? else { return Ok(Ended::Broken) };
            let command = if line.cut { Command::Unknown } else { Command::of(trimmed(&line.bytes)) };
            if command == Command::Quit {
                self.say("221 2.0.0 bye").await?;
                return Ok(Ended::Quit);
            }
            self.answer(command).await?;
            if self.errors > LMTP_ERRORS_MAX || self.messages > LMTP_MESSAGES_MAX {
                self.say("421 4.7.0 too many messages or errors").await?;
                return Ok(Ended::TooMuch);
            }
        }
    }

    async fn answer(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Lhlo => {
                (self.greeted, self.envelope) = (true, None);
                let size = MESSAGE_BYTES_MAX;
                let host = self.host;
                let offers = format!(
                    "250-{host}\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n250 SIZE {size}"
                );
                self.say(&offers).await
            }
            Command::Mail(..) | Command::Rcpt(_) | Command::Data if !self.greeted => {
                self.wrong("503 5.5.1 LHLO first").await
            }
            Command::Mail(sender, size) => self.mail(sender, size).await,
            Command::Rcpt(recipient) => self.rcpt(recipient).await,
            Command::Data => self.data().await,
            Command::Rset => {
                self.envelope = None;
                self.say("250 2.0.0 reset").await
            }
            Command::Noop => self.say("250 2.0.0 ok").await,
            Command::Vrfy => self.say("252 2.5.0 cannot verify, but will accept the message").await,
            Command::Quit => Ok(()),
            Command::Wrong => self.wrong("501 5.5.4 invalid parameters").await,
            Command::Unknown => self.wrong("500 5.5.1 unknown command").await,
        }
    }

    async fn mail(&mut self, sender: String, size: Option<u64>) -> io::Result<()> {
        if self.envelope.is_some() {
            return self.wrong("503 5.5.1 one sender at a time").await;
        }
        if size.is_some_and(|size| size > MESSAGE_BYTES_MAX as u64) {
            return self.say("552 5.3.4 too large").await;
        }
        self.envelope = Some(Envelope { sender: Some(sender), ..Envelope::default() });
        self.say("250 2.1.0 ok").await
    }

    async fn rcpt(&mut self, recipient: String) -> io::Result<()> {
        let Some(envelope) = &mut self.envelope else { return self.wrong("503 5.5.1 MAIL first").await };
        if envelope.recipients.len() >= LMTP_RECIPIENTS_MAX {
            return self.say("452 4.5.3 too many recipients").await;
        }
        if !self.receiver.knows(&recipient) {
            return self.wrong("550 5.1.1 unknown recipient").await;
        }
        envelope.recipients.push(recipient);
        self.say("250 2.1.5 ok").await
    }

    async fn data(&mut self) -> io::Result<()> {
        if self.envelope.as_ref().is_none_or(|envelope| envelope.recipients.is_empty()) {
            return self.wrong("503 5.5.1 RCPT first").await;
        }
        let Some(envelope) = self.envelope.take() else { return Ok(()) };
        self.say("354 end with a dot on its own line").await?;
        let recipients = envelope.recipients.len();
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, LATE);
        let reply = match timeout(LMTP_MESSAGE_TIME_MAX, self.message()).await.map_err(late)?? {
            None => "552 5.3.4 too large",
            Some(raw) => match self.receiver.receive(envelope, raw).await {
                ReceiveOutcome::Stored => "250 2.0.0 accepted",
                ReceiveOutcome::Later => "451 4.3.0 try again later",
                ReceiveOutcome::Refused => "554 5.6.0 refused",
            },
        };
        self.messages += 1;
        // One reply for each recipient (RFC 2033 §4.2).
        self.say(&vec![reply; recipients].join("\r\n")).await
    }

    /// Reads the message up to the dot that ends it; `None` if it is too large. Only a dot between two CRLFs ends it, so
    /// that a message cannot smuggle another (RFC 5321 §4.1.1.4).
    async fn message(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut raw = Vec::new();
        let (mut fresh, mut too_large) = (true, false);
        loop {
            let bytes_max = MESSAGE_BYTES_MAX.saturating_sub(raw.len()).saturating_add(LMTP_LINE_BYTES_MAX);
            let line = lines::read(&mut self.from, bytes_max).await?;
            let line = line.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
            if fresh && line.bytes == b".\r\n" {
                return Ok((!too_large).then_some(raw));
            }
            let text = if fresh { line.bytes.strip_prefix(b".").unwrap_or(&line.bytes) } else { &line.bytes };
            too_large |= line.cut || raw.len() + text.len() > MESSAGE_BYTES_MAX;
            if too_large {
                raw = Vec::new();
            } else {
                raw.extend_from_slice(text);
            }
            fresh = line.whole;
        }
    }

    async fn wrong(&mut self, reply: &str) -> io::Result<()> {
        self.errors += 1;
        self.say(reply).await
    }

    async fn say(&mut self, reply: &str) -> io::Result<()> {
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, LATE);
        let written = async {
            self.to.write_all(format!("{reply}\r\n").as_bytes()).await?;
            self.to.flush().await
        };
        timeout(LMTP_COMMAND_TIME_MAX, written).await.map_err(late)?
    }
}

/// A line without its end.
fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
