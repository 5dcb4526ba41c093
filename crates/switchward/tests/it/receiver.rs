//! A receiver that records every attempt, and fails as often as configured.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The longest time for an answer, unless it hangs.
const ANSWER_MS: u64 = 40;

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was answered with 200.
    Accepted,
    /// It was answered with an error, or the connection was ended without an answer, or reset.
    Failed,
}

/// One attempt.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) path: String,
    /// Its idempotency key, or a webhook's id.
    pub(crate) id: String,
    pub(crate) begun: Instant,
    pub(crate) ended: Instant,
    pub(crate) outcome: Outcome,
}

/// How it answers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manner {
    /// Three of ten attempts fail.
    Flaky,
    /// Everything is taken.
    Good,
    /// It never answers.
    Hangs,
    /// 429, with a retry after this many seconds.
    Busy(u64),
}

/// A receiver on a port of this machine.
pub(crate) struct Receiver {
    pub(crate) port: u16,
    attempts: Mutex<Vec<Attempt>>,
    /// Attempts that hang now, and the most that ever did at one time.
    hanging: AtomicUsize,
    hanging_most: AtomicUsize,
    rng: Mutex<StdRng>,
    manner: Manner,
}

impl Receiver {
    pub(crate) async fn start(seed: u64, manner: Manner) -> anyhow::Result<Arc<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let rng = Mutex::new(StdRng::seed_from_u64(seed));
        let (attempts, hanging, hanging_most) = Default::default();
        let receiver = Arc::new(Self { port, attempts, hanging, hanging_most, rng, manner });
        let serving = Arc::clone(&receiver);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = Arc::clone(&serving);
                tokio::spawn(async move { serving.serve(stream).await });
            }
        });
        Ok(receiver)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All attempts that have ended, in the order of their ends.
    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        self.attempts.lock().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.attempts.lock().len()
    }

    /// The most attempts that hung at one time.
    pub(crate) fn hanging_most(&self) -> usize {
        self.hanging_most.load(Ordering::SeqCst)
    }

    /// One connection, one request. The sender may be gone at any moment: then only taken requests are recorded.
    async fn serve(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        let Some((path, id)) = read(&mut stream).await else { return };
        let begun = Instant::now();
        let (sort, wait) = {
            let mut rng = self.rng.lock();
            (rng.random_range(0..10), rng.random_range(0..=ANSWER_MS))
        };
        tokio::time::sleep(Duration::from_millis(wait)).await;
        // A repeated request that was taken before is taken again, unless the connection breaks.
        let sort = if sort == 0 && self.has_taken(&id) { 9 } else { sort };
        let (answer, outcome) = match (self.manner, sort) {
            (Manner::Good, _) | (Manner::Flaky, 3..) => (Some("200 OK\r\n".to_owned()), Outcome::Accepted),
            (Manner::Flaky, 0) => (Some("500 Broken\r\n".to_owned()), Outcome::Failed),
            (Manner::Flaky, 1) => (None, Outcome::Failed),
            (Manner::Flaky, _) => {
                let _reset = stream.get_ref().set_zero_linger();
                (None, Outcome::Failed)
            }
            (Manner::Busy(seconds), _) => {
                (Some(format!("429 Later\r\nretry-after: {seconds}\r\n")), Outcome::Failed)
            }
            (Manner::Hangs, _) => {
                self.note(path, id, begun, Outcome::Failed);
                let now = self.hanging.fetch_add(1, Ordering::SeqCst) + 1;
                self.hanging_most.fetch_max(now, Ordering::SeqCst);
                // Until the sender gives it up.
                let _gone = stream.read(&mut [0]).await;
                self.hanging.fetch_sub(1, Ordering::SeqCst);
                return;
            }
        };
        // Recorded before the answer, so that the sender never knows more than the record.
        self.note(path, id, begun, outcome);
        if let Some(answer) = answer {
            let whole = format!("HTTP/1.1 {answer}content-length: 0\r\nconnection: close\r\n\r\n");
            let _gone = stream.get_mut().write_all(whole.as_bytes()).await;
            let _gone = stream.get_mut().shutdown().await;
        }
    }

    fn has_taken(&self, id: &str) -> bool {
        self.attempts.lock().iter().any(|one| one.outcome == Outcome::Accepted && one.id == id)
    }

    fn note(&self, path: String, id: String, begun: Instant, outcome: Outcome) {
        self.attempts.lock().push(Attempt { path, id, begun, ended: Instant::now(), outcome });
    }
}

/// The path of a request and its idempotency key; `None` if it was incomplete.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let (mut path, mut id, mut length) = (None, String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if path.is_none() {
            path = Some(line.split(' ').nth(1)?.to_owned());
        } else if let Some((name, value)) = line.split_once(':') {
            match name.to_ascii_lowercase().as_str() {
                "idempotency-key" | "webhook-id" => value.trim().clone_into(&mut id),
                "content-length" => length = value.trim().parse().ok()?,
                _ => {}
            }
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    path.map(|path| (path, id))
}
