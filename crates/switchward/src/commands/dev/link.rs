//! A TCP proxy between two processes that can lose, delay and reset what it forwards; for tests of failures.
//!
//! A [`Link`] listens on a free port of this machine and forwards each connection to one address. Its [`Mode`] applies to
//! open connections and to new ones. What is not forwarded waits: here, within a bound, and beyond it in the buffers of
//! the sockets, so a sender notices it as it would in a network. The file uses nothing of this crate.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

/// Connections of one link; further ones are reset.
const CONNECTIONS_MAX: usize = 64;
/// Bytes that are read at one time.
const CHUNK_BYTES_MAX: usize = 16 * 1024;
/// Chunks of one direction of a connection that wait here.
const CHUNKS_MAX: usize = 16;
/// How many parts of a slow second are forwarded one by one.
const PARTS_OF_SECOND: usize = 10;
/// The pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The longest delay, milliseconds.
const DELAY_MS_MAX: u64 = 60_000;

/// How a link forwards bytes. A link is named after the side that opens its connections: bytes from it go forth, bytes to
/// it go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Mode {
    /// At once.
    Open,
    /// Not at all. Connections stay open, as in a network that loses every packet.
    Cut,
    /// Only those in the other direction.
    CutDirection(Direction),
    /// This much later, in their order.
    Delay(Duration),
    /// At most this many bytes per second, in each direction of a connection.
    Slow(u32),
    /// Connections are reset, and new ones too.
    Reset,
}

/// A direction of a link's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the side that opens the connections.
    Forth,
    /// To that side.
    Back,
}

impl Mode {
    /// Returns true if bytes in this direction wait until the mode changes.
    fn holds(self, direction: Direction) -> bool {
        match self {
            Self::Cut => true,
            Self::CutDirection(cut) => cut == direction,
            Self::Open | Self::Delay(_) | Self::Slow(_) | Self::Reset => false,
        }
    }

    fn delay(self) -> Duration {
        match self {
            Self::Delay(by) => by,
            Self::Open | Self::Cut | Self::CutDirection(_) | Self::Slow(_) | Self::Reset => Duration::ZERO,
        }
    }

    /// How many bytes are forwarded at one time, and the pause after them.
    fn pace(self) -> Pace {
        match self {
            Self::Slow(rate) => {
                let rate = usize::try_from(rate).unwrap_or(usize::MAX).max(1);
                Pace { bytes: (rate / PARTS_OF_SECOND).max(1), rate: Some(rate) }
            }
            Self::Open | Self::Cut | Self::CutDirection(_) | Self::Delay(_) | Self::Reset => {
                Pace { bytes: CHUNK_BYTES_MAX, rate: None }
            }
        }
    }
}

/// How fast bytes are written.
struct Pace {
    bytes: usize,
    /// Bytes per second.
    rate: Option<usize>,
}

impl Pace {
    fn pause(&self, bytes: usize) -> Option<Duration> {
        let rate = u32::try_from(self.rate?).unwrap_or(u32::MAX);
        Some(Duration::from_secs(1) * u32::try_from(bytes).unwrap_or(u32::MAX) / rate)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open"),
            Self::Cut => f.write_str("cut"),
            Self::CutDirection(Direction::Forth) => f.write_str("cut-forth"),
            Self::CutDirection(Direction::Back) => f.write_str("cut-back"),
            Self::Delay(by) => write!(f, "delay:{}", by.as_millis()),
            Self::Slow(rate) => write!(f, "slow:{rate}"),
            Self::Reset => f.write_str("reset"),
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, number) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
        let mode = match (word, number) {
            ("open", None) => Some(Self::Open),
            ("cut", None) => Some(Self::Cut),
            ("cut-forth", None) => Some(Self::CutDirection(Direction::Forth)),
            ("cut-back", None) => Some(Self::CutDirection(Direction::Back)),
            ("reset", None) => Some(Self::Reset),
            ("delay", Some(ms)) => ms
                .parse()
                .ok()
                .filter(|ms| *ms <= DELAY_MS_MAX)
                .map(|ms| Self::Delay(Duration::from_millis(ms))),
            ("slow", Some(rate)) => rate.parse().ok().filter(|rate| *rate > 0).map(Self::Slow),
            _ => None,
        };
        let message = || {
            format!(
                "write open, cut, cut-forth, cut-back, reset, delay:MS with at most {DELAY_MS_MAX} \
                 milliseconds, or slow:BYTES with bytes per second"
            )
        };
        mode.ok_or_else(message)
    }
}

impl TryFrom<String> for Mode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Mode> for String {
    fn from(mode: Mode) -> Self {
        mode.to_string()
    }
}

/// A listening proxy. Dropping it ends its connections.
pub(crate) struct Link {
    address: SocketAddr,
    modes: watch::Sender<Mode>,
    #[cfg(test)]
    held: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Link {
    /// Listens on a free port of this machine for connections to `target`, which need not listen yet. Must be called
    /// within a Tokio runtime.
    ///
    /// # Errors
    /// There is no free port.
    pub(crate) async fn open(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (modes, mode) = watch::channel(Mode::Open);
        let held = Arc::new(AtomicUsize::new(0));
        let route = Route { target, mode, held: Arc::clone(&held) };
        let accepting = tokio::spawn(accept(listener, route));
        Ok(Self {
            address,
            modes,
            #[cfg(test)]
            held,
            accepting,
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How it forwards bytes.
    pub(crate) fn mode(&self) -> Mode {
        *self.modes.borrow()
    }

    /// Changes how it forwards bytes, at once.
    pub(crate) fn set(&self, mode: Mode) {
        self.modes.send_replace(mode);
    }

    /// The directions of connections that wait because they are cut.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// What each connection of a link shares.
#[derive(Clone)]
struct Route {
    target: SocketAddr,
    mode: watch::Receiver<Mode>,
    held: Arc<AtomicUsize>,
}

impl Route {
    /// Waits while this direction is cut, and returns the mode. Fails if the link has ended.
    async fn pass(&mut self, direction: Direction) -> io::Result<Mode> {
        let mode = *self.mode.borrow_and_update();
        if !mode.holds(direction) {
            return Ok(mode);
        }
        let _counted = Counted::one(&self.held);
        let opened = self.mode.wait_for(|mode| !mode.holds(direction)).await;
        opened.map(|mode| *mode).map_err(|_| ended())
    }

    /// Does the work until the mode is [`Mode::Reset`] or the link has ended, and returns `None` then.
    async fn unless_reset<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut mode = self.mode.clone();
        tokio::select! {
            biased;
            _reset = mode.wait_for(|mode| *mode == Mode::Reset) => None,
            done = work => Some(done),
        }
    }
}

/// Counts one in a number while it lives.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn one(number: &'a AtomicUsize) -> Self {
        number.fetch_add(1, Ordering::SeqCst);
        Self(number)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn ended() -> io::Error {
    io::Error::other("the link has ended")
}

/// Accepts connections until it is dropped.
async fn accept(listener: TcpListener, route: Route) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((dialer, _)) if connections.len() < CONNECTIONS_MAX => {
                    connections.spawn(carry(dialer, route.clone()));
                }
                Ok((dialer, _)) => reset(&dialer),
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            Some(_ended) = connections.join_next() => {}
        }
    }
}

/// Lets the socket end with a reset when it is dropped.
fn reset(stream: &TcpStream) {
    // A socket that is gone needs no reset.
    let _gone = stream.set_zero_linger();
}

/// Forwards one connection to its end.
async fn carry(mut dialer: TcpStream, mut route: Route) {
    let watched = route.clone();
    let Some(Ok(mut target)) = watched.unless_reset(reach(&mut route)).await else { return reset(&dialer) };
    let done = watched.unless_reset(forward(&mut dialer, &mut target, &route)).await;
    if !matches!(done, Some(Ok(()))) {
        reset(&dialer);
        reset(&target);
    }
}

/// Connects to the target, as soon as the link is not cut.
async fn reach(route: &mut Route) -> io::Result<TcpStream> {
    route.pass(Direction::Forth).await?;
    TcpStream::connect(route.target).await
}

async fn forward(dialer: &mut TcpStream, target: &mut TcpStream, route: &Route) -> io::Result<()> {
    dialer.set_nodelay(true)?;
    target.set_nodelay(true)?;
    let (from_dialer, to_dialer) = dialer.split();
    let (from_target, to_target) = target.split();
    let forth = pump(from_dialer, to_target, route.clone(), Direction::Forth);
    let back = pump(from_target, to_dialer, route.clone(), Direction::Back);
    tokio::try_join!(forth, back).map(drop)
}

/// Bytes that were read, and when they are written at the earliest.
struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
}

/// Forwards one direction of a connection.
async fn pump(from: ReadHalf<'_>, to: WriteHalf<'_>, route: Route, direction: Direction) -> io::Result<()> {
    let (queue, waiting) = mpsc::channel(CHUNKS_MAX);
    let (reading, writing) =
        (read(from, queue, route.clone(), direction), write(to, waiting, route, direction));
    tokio::try_join!(reading, writing).map(drop)
}

async fn read(
    mut from: ReadHalf<'_>,
    queue: mpsc::Sender<Chunk>,
    mut route: Route,
    direction: Direction,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES_MAX];
    loop {
        let mode = route.pass(direction).await?;
        let count = tokio::select! {
            biased;
            changed = route.mode.changed() => {
                changed.map_err(|_| ended())?;
                continue;
            }
            count = from.read(&mut buffer) => count?,
        };
        let bytes = buffer.get(..count).unwrap_or_default().to_vec();
        let chunk = Chunk { due: Instant::now() + mode.delay(), bytes };
        // The end of the stream closes the queue; so does a writer that has failed.
        if count == 0 || queue.send(chunk).await.is_err() {
            return Ok(());
        }
    }
}

async fn write(
    mut to: WriteHalf<'_>,
    mut waiting: mpsc::Receiver<Chunk>,
    mut route: Route,
    direction: Direction,
) -> io::Result<()> {
    while let Some(chunk) = waiting.recv().await {
        sleep_until(chunk.due).await;
        let mut rest = chunk.bytes.as_slice();
        while !rest.is_empty() {
            let pace = route.pass(direction).await?.pace();
            let (part, later) = rest.split_at(rest.len().min(pace.bytes));
            to.write_all(part).await?;
            if let Some(pause) = pace.pause(part.len()) {
                sleep(pause).await;
            }
            rest = later;
        }
    }
    to.shutdown().await
}

#[cfg(test)]
mod tests;
