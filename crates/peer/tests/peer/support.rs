//! Servers of a cluster, the handler that they have, and what they log.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use switchward_peer::certs::{Authority, Validity};
use switchward_peer::{
    CallStream, Handler, Hello, PROTOCOL, PeerError, PeerLimits, PeerName, PeerOptions, PeerStream, Peers,
    Request, TlsPem, Traffic,
};
use switchward_testkit::until;
use tokio::runtime::Handle;

/// A deadline that no test reaches.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Answers with the request's body.
pub(crate) const ECHO: u8 = 1;
/// Refuses.
pub(crate) const REFUSE: u8 = 2;
/// Never answers.
pub(crate) const HANG: u8 = 3;
/// Panics.
pub(crate) const PANIC: u8 = 4;
/// Answers with as many bytes as the group says.
pub(crate) const LENGTH: u8 = 5;
/// Answers with the name of the thread, on the handler's own runtime if it has one.
pub(crate) const THREAD: u8 = 6;
/// Panics, there too.
pub(crate) const PANIC_THERE: u8 = 7;
/// Never answers, there too.
pub(crate) const HANG_THERE: u8 = 8;

/// What the servers of a test have in common.
pub(crate) struct Cluster {
    pub(crate) id: [u8; 16],
    pub(crate) authority: Authority,
}

impl Cluster {
    pub(crate) fn new(byte: u8) -> Self {
        log();
        let id = [byte; 16];
        Self { id, authority: Authority::generate(&id, year()).unwrap() }
    }

    pub(crate) fn hello(&self, server: u64) -> Hello {
        Hello {
            cluster: self.id,
            server,
            folder: [9; 16],
            boot: 1,
            boot_id: [4; 16],
            protocol: PROTOCOL,
            lowest_level: 1,
            highest_level: 3,
            keys: [7; 32],
            clock_ms: 0,
        }
    }

    /// A certificate of this server that contains these names too.
    pub(crate) fn pem(&self, server: u64, names: &[String]) -> TlsPem {
        let issued = self.authority.issue(&self.id, &PeerName::Server(server), names, year()).unwrap();
        TlsPem {
            ca: self.authority.cert_pem().into(),
            cert: issued.cert_pem.into(),
            key: issued.key_pem.into(),
        }
    }

    pub(crate) fn options(&self, server: u64) -> PeerOptions {
        PeerOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            hello: self.hello(server),
            tls: self.pem(server, &[]),
            clock: Arc::new(|| 1_000_000),
            runtime: Handle::current(),
            commands: Handle::current(),
            limits: PeerLimits::default(),
        }
    }

    pub(crate) fn start(&self, server: u64) -> Server {
        Server::start(self.options(server))
    }

    /// Two servers, each of which dials the other one.
    pub(crate) fn pair(&self) -> [Server; 2] {
        let pair = [self.start(1), self.start(2)];
        pair[0].dial(2, pair[1].address());
        pair[1].dial(1, pair[0].address());
        pair
    }
}

pub(crate) fn year() -> Validity {
    Validity { from: SystemTime::now(), days: 365 }
}

/// Limits with which a test need not wait long for the end of a connection.
pub(crate) fn short() -> PeerLimits {
    PeerLimits {
        ping_interval: Duration::from_millis(50),
        idle: Duration::from_millis(1_000),
        handshake: Duration::from_millis(1_000),
        retry_max: Duration::from_millis(50),
        ..PeerLimits::default()
    }
}

/// A server.
pub(crate) struct Server {
    pub(crate) peers: Peers,
    pub(crate) handler: Arc<TestHandler>,
}

impl Server {
    pub(crate) fn start(options: PeerOptions) -> Self {
        let handler = Arc::new(TestHandler::default());
        let peers = Peers::start(options, Arc::clone(&handler) as Arc<dyn Handler>).unwrap();
        Self { peers, handler }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.peers.local_addr()
    }

    pub(crate) fn dial(&self, server: u64, address: SocketAddr) {
        self.peers.set_address(server, address.to_string());
    }

    pub(crate) async fn call(&self, to: u64, kind: u8, body: &'static [u8]) -> Result<Bytes, PeerError> {
        self.peers.call(to, Traffic::Control, request(kind, body), LONG).await
    }

    /// Waits until a call is answered.
    pub(crate) async fn connected(&self, to: u64) {
        until("the server answers", async || {
            for traffic in [Traffic::Control, Traffic::Bulk, Traffic::Commands] {
                if self.peers.call(to, traffic, request(ECHO, b"?"), LONG).await.is_err() {
                    return false;
                }
            }
            true
        })
        .await;
    }

    /// Waits until calls fail with an error that contains this text. Returns the error.
    pub(crate) async fn refused(&self, to: u64, text: &str) -> PeerError {
        let mut last = None;
        until(&format!("calls fail with {text:?}"), async || {
            last = self.call(to, ECHO, b"?").await.err();
            last.as_ref().is_some_and(|error| error.to_string().contains(text))
        })
        .await;
        last.unwrap()
    }
}

pub(crate) fn request(kind: u8, body: &'static [u8]) -> Request {
    Request { kind, group: 0, body: Bytes::from_static(body) }
}

/// What a server does with a stream.
type OnStream = Box<dyn Fn(Request, PeerStream) -> futures::future::BoxFuture<'static, ()> + Send + Sync>;

/// Answers by the kind of a request.
#[derive(Default)]
pub(crate) struct TestHandler {
    /// Calls that have begun.
    pub(crate) begun: AtomicUsize,
    /// Calls whose futures are alive.
    pub(crate) running: Arc<AtomicUsize>,
    /// The lowest boot counter that is admitted.
    pub(crate) boot_min: AtomicI64,
    pub(crate) on_stream: Mutex<Option<OnStream>>,
    /// Whether anybody may pass on calls.
    pub(crate) takes_calls: AtomicBool,
    /// Connections for calls that are served.
    pub(crate) calls: Arc<AtomicUsize>,
    /// Servers that were lost.
    lost: Mutex<Vec<u64>>,
    /// Its own runtime.
    pub(crate) own: OnceLock<Handle>,
}

impl TestHandler {
    /// The servers that could not be reached again after their connections had ended, in order.
    pub(crate) fn lost(&self) -> Vec<u64> {
        self.lost.lock().unwrap().clone()
    }

    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// Waits until this many connections for calls are served.
    pub(crate) async fn serves_calls(&self, expected: usize) {
        until("connections for calls are served or ended", async || {
            self.calls.load(Ordering::SeqCst) == expected
        })
        .await;
    }

    /// Waits until this many futures are alive.
    pub(crate) async fn running(&self, expected: usize) {
        until("the handler's futures are alive or dropped", async || {
            self.running.load(Ordering::SeqCst) == expected
        })
        .await;
    }

    pub(crate) fn serve_streams<F, Fut>(&self, serve: F)
    where
        F: Fn(Request, PeerStream) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        *self.on_stream.lock().unwrap() =
            Some(Box::new(move |request, stream| Box::pin(serve(request, stream))));
    }
}

/// Counts a future that is alive.
pub(crate) struct Alive(Arc<AtomicUsize>);

impl Alive {
    pub(crate) fn new(of: &Arc<AtomicUsize>) -> Self {
        of.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(of))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Handler for TestHandler {
    async fn call(&self, from: u64, request: Request) -> Result<Bytes, String> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let _alive = Alive::new(&self.running);
        match request.kind {
            ECHO => Ok(request.body),
            REFUSE => Err(format!("server {from} may not")),
            PANIC | PANIC_THERE => panic!("as the test wants"),
            THREAD => Ok(std::thread::current().name().unwrap_or_default().to_owned().into()),
            LENGTH => Ok(Bytes::from(vec![1; usize::try_from(request.group).unwrap()])),
            _ => std::future::pending().await,
        }
    }

    fn runtime(&self, kind: u8) -> Option<&Handle> {
        self.own.get().filter(|_| [THREAD, PANIC_THERE, HANG_THERE].contains(&kind))
    }

    async fn stream(&self, _: u64, request: Request, stream: PeerStream) {
        let served = self.on_stream.lock().unwrap().as_ref().map(|serve| serve(request, stream));
        if let Some(served) = served {
            served.await;
        }
    }

    async fn admit(&self, peer: &Hello) -> Result<(), String> {
        let min = self.boot_min.load(Ordering::SeqCst);
        if i64::try_from(peer.boot).unwrap() < min {
            return Err(format!("server {} has the boot counter {}", peer.server, peer.boot));
        }
        Ok(())
    }

    fn lost(&self, server: u64) {
        self.lost.lock().unwrap().push(server);
    }

    fn admit_calls(&self, from: &PeerName) -> Result<(), String> {
        let takes = self.takes_calls.load(Ordering::SeqCst);
        takes.then_some(()).ok_or_else(|| format!("{from} may not pass on calls to this server"))
    }

    /// Reads until the other side ends.
    async fn calls(&self, _: PeerName, mut stream: CallStream) {
        let _alive = Alive::new(&self.calls);
        let _ended = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
}

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Collects what all servers of this process log.
pub(crate) fn log() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        tracing_subscriber::fmt().with_ansi(false).with_writer(|| LogWriter).init();
    });
}

/// The lines of the log that contain all these texts.
pub(crate) fn lines(texts: &[&str]) -> Vec<String> {
    let log = String::from_utf8(LOG.lock().unwrap().clone()).unwrap();
    log.lines().filter(|line| texts.iter().all(|text| line.contains(text))).map(str::to_owned).collect()
}

/// Waits until a line of the log contains all these texts.
pub(crate) async fn logged(texts: &[&str]) {
    until(&format!("the log has a line with {texts:?}"), async || !lines(texts).is_empty()).await;
}
