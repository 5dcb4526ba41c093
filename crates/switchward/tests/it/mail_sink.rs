//! A mail server that accepts everything, and records the message id and the recipient of each mail.

use parking_lot::Mutex;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A mail that was accepted.
#[derive(Debug, Clone)]
pub(crate) struct AcceptedMail {
    pub(crate) message_id: String,
    pub(crate) to: String,
}

/// A mail server on a port of this machine.
pub(crate) struct MailSink {
    pub(crate) port: u16,
    mails: Mutex<Vec<AcceptedMail>>,
}

impl MailSink {
    pub(crate) async fn start() -> anyhow::Result<Arc<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let sink = Arc::new(Self { port: listener.local_addr()?.port(), mails: Mutex::default() });
        let serving = Arc::clone(&sink);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = Arc::clone(&serving);
                tokio::spawn(async move { serving.serve(BufReader::new(stream)).await });
            }
        });
        Ok(sink)
    }

    /// All mails that were accepted, in the order of their ends.
    pub(crate) fn mails(&self) -> Vec<AcceptedMail> {
        self.mails.lock().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.mails.lock().len()
    }

    /// Talks SMTP until the sender quits or is gone.
    async fn serve(&self, mut stream: BufReader<TcpStream>) -> Option<()> {
        let mut to = String::new();
        answer(&mut stream, "220 sink").await?;
        loop {
            let line = next_line(&mut stream).await?;
            let command = line.to_ascii_uppercase();
            if command.starts_with("QUIT") {
                return answer(&mut stream, "221 gone").await;
            }
            if command.starts_with("RCPT TO:") {
                to = recipient(&line);
            } else if command.starts_with("DATA") {
                answer(&mut stream, "354 go on").await?;
                let message_id = read_mail(&mut stream).await?;
                // Recorded before the answer, so that the sender never knows more than the record.
                self.mails.lock().push(AcceptedMail { message_id, to: to.clone() });
            }
            answer(&mut stream, "250 fine").await?;
        }
    }
}

/// The address between the angle brackets of a line.
fn recipient(line: &str) -> String {
    let address = line.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    address.map_or(line, |(address, _)| address).to_owned()
}

/// Reads a mail to its end, and returns its message id.
async fn read_mail(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut message_id = String::new();
    loop {
        let line = next_line(stream).await?;
        if line == "." {
            return Some(message_id);
        }
        let field = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("message-id"));
        if let Some((_, value)) = field
            && message_id.is_empty()
        {
            value.trim().clone_into(&mut message_id);
        }
    }
}

/// The next line without its end; `None` if the sender is gone.
async fn next_line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let count = stream.read_line(&mut line).await.ok()?;
    (count > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}

async fn answer(stream: &mut BufReader<TcpStream>, text: &str) -> Option<()> {
    stream.get_mut().write_all(format!("{text}\r\n").as_bytes()).await.ok()
}
