//! A scripted server on this machine, and a client that may ask it.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use switchward_delivery::guard::Egress;
use switchward_delivery::http::{Client, Config, Request, Resolve};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::interval;

/// What a server does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Sends these bytes and closes.
    Send(Vec<u8>),
    /// Sends these bytes one by one, ten milliseconds apart.
    Drip(Vec<u8>),
    /// Sends these bytes, and then more and more until nobody takes them.
    Flood(Vec<u8>),
    /// Says nothing and stays.
    Hang,
    /// Cuts the connection.
    Reset,
}

/// An answer with a JSON body.
pub(crate) fn json(status: u16, body: &Value) -> Act {
    answer(&format!("{status} x\r\ncontent-type: application/json"), body.to_string().as_bytes())
}

/// An answer: the status line after `HTTP/1.1`, with whatever headers follow it, and a body.
pub(crate) fn answer(head: &str, body: &[u8]) -> Act {
    let mut bytes = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    Act::Send(bytes)
}

/// A request that came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Its first line and headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// Its body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }
}

/// A server, until it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// Bytes that were taken from it.
    pub(crate) sent: Arc<AtomicUsize>,
    /// The most requests that it had at one time.
    pub(crate) peak: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Serves each request with what `script` says for its number, from 0.
    pub(crate) async fn new(script: impl Fn(usize) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        Self::at(listener, script)
    }

    /// Serves every request alike.
    pub(crate) async fn always(act: Act) -> Self {
        Self::new(move |_| act.clone()).await
    }

    pub(crate) fn at(listener: TcpListener, script: impl Fn(usize) -> Act + Send + Sync + 'static) -> Self {
        let port = listener.local_addr().expect("the listener is bound").port();
        let (seen, sent) = (Arc::new(Mutex::default()), Arc::new(AtomicUsize::new(0)));
        let (peak, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (all, count, most) = (Arc::clone(&seen), Arc::clone(&sent), Arc::clone(&peak));
        let script = Arc::new(script);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (all, count, script) = (Arc::clone(&all), Arc::clone(&count), Arc::clone(&script));
                let (most, open) = (Arc::clone(&most), Arc::clone(&open));
                tokio::spawn(async move {
                    most.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    serve(stream, &all, &count, &*script).await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { port, seen, sent, peak, task }
    }

    /// The requests that came so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("nobody panicked").clone()
    }

    /// Its address, with a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

async fn serve(
    mut stream: TcpStream,
    all: &Mutex<Vec<Seen>>,
    sent: &AtomicUsize,
    script: &(dyn Fn(usize) -> Act + Send + Sync),
) {
    let Some(seen) = read_request(&mut stream).await else { return };
    let number = {
        let mut all = all.lock().expect("nobody panicked");
        all.push(seen);
        all.len() - 1
    };
    let act = script(number);
    if let Act::Reset = act {
        stream.set_zero_linger().expect("the socket is open");
        return;
    }
    // The other side may leave at any time.
    let _ = play(&mut stream, act, sent).await;
}

/// Sends what an act says over any stream.
pub(crate) async fn play(
    stream: &mut (impl AsyncWrite + AsyncRead + Unpin),
    act: Act,
    sent: &AtomicUsize,
) -> io::Result<()> {
    match act {
        Act::Send(bytes) => stream.write_all(&bytes).await?,
        Act::Drip(bytes) => {
            let mut ticks = interval(Duration::from_millis(10));
            for byte in bytes {
                ticks.tick().await;
                stream.write_all(&[byte]).await?;
            }
        }
        Act::Flood(bytes) => {
            stream.write_all(&bytes).await?;
            loop {
                stream.write_all(&[b'x'; 16 * 1024]).await?;
                sent.fetch_add(16 * 1024, Ordering::SeqCst);
            }
        }
        Act::Hang => {
            // Ends when the other side does.
            stream.read_u8().await?;
        }
        Act::Reset => {}
    }
    stream.shutdown().await
}

/// Reads one request with its body.
pub(crate) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let mut seen = Seen { head, body: bytes.split_off(end + 4) };
    let length = seen.header("content-length").map_or(0, |text| text.parse().expect("a length"));
    while seen.body.len() < length {
        if stream.read_buf(&mut seen.body).await.ok()? == 0 {
            return None;
        }
    }
    Some(seen)
}

/// Rules under which the servers of tests can be asked.
pub(crate) fn open(ports: &[u16]) -> Egress {
    Egress {
        allow_loopback: true,
        allow_http: true,
        ports: ports.to_vec(),
        allow_private: false,
        allowed_hosts: None,
    }
}

/// A client that may ask these ports of this machine, for every tenant.
pub(crate) fn client(ports: &[u16]) -> Client {
    client_with(open(ports), Names::default())
}

pub(crate) fn client_with(egress: Egress, names: Names) -> Client {
    let egress = Arc::new(egress);
    let mut config = Config::new(Arc::new(move |_tenant: u32| Arc::clone(&egress)));
    config.resolver = Arc::new(names);
    Client::new(config).expect("the client can be set up")
}

/// A name server: each lookup is answered with the next row, the last row stays.
#[derive(Clone, Default)]
pub(crate) struct Names {
    pub(crate) rows: Vec<Vec<IpAddr>>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Names {
    pub(crate) fn of(rows: &[&[&str]]) -> Self {
        let row = |row: &&[&str]| row.iter().map(|text| text.parse().expect("an address")).collect();
        Self { rows: rows.iter().map(row).collect(), asked: Arc::default() }
    }
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut asked = self.asked.lock().expect("nobody panicked");
        let row = self.rows.get(asked.len()).or(self.rows.last()).cloned();
        asked.push(name.to_owned());
        row.ok_or_else(|| io::Error::other("the name does not exist"))
    }
}

/// A GET that may take ten seconds.
pub(crate) fn get(url: &str) -> Request {
    Request {
        method: "GET".to_owned(),
        url: url.to_owned(),
        headers: Vec::new(),
        body: None,
        deadline: Duration::from_secs(10),
    }
}
