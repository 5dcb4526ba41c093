use super::*;
use switchward_testkit::until;

/// A link with both ends of one of its connections.
struct Pair {
    link: Link,
    listener: TcpListener,
    dialer: TcpStream,
    target: TcpStream,
}

impl Pair {
    async fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let link = Link::open(listener.local_addr().unwrap()).await.unwrap();
        let dialer = TcpStream::connect(link.address()).await.unwrap();
        let (target, _) = listener.accept().await.unwrap();
        let mut pair = Self { link, listener, dialer, target };
        pair.both_ways().await;
        pair
    }

    async fn both_ways(&mut self) {
        send(&mut self.dialer, &mut self.target).await;
        send(&mut self.target, &mut self.dialer).await;
    }

    /// Sets a mode, and waits until this many directions wait.
    async fn cut(&self, mode: Mode, held: usize) {
        self.link.set(mode);
        until("the directions wait", async || self.link.held() == held).await;
    }
}

/// Sends four bytes, and waits until they have arrived.
async fn send(from: &mut TcpStream, to: &mut TcpStream) {
    from.write_all(b"ping").await.unwrap();
    arrives(to).await;
}

async fn arrives(to: &mut TcpStream) {
    let mut bytes = [0; 4];
    to.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"ping");
}

#[track_caller]
fn nothing_arrives(at: &TcpStream) {
    let read = at.try_read(&mut [0; 4]).map_err(|error| error.kind());
    assert_eq!(read, Err(io::ErrorKind::WouldBlock));
}

#[tokio::test]
async fn an_open_link_forwards_both_ways_and_the_end_of_each() {
    let mut pair = Pair::new().await;
    pair.dialer.shutdown().await.unwrap();
    assert_eq!(pair.target.read(&mut [0; 1]).await.unwrap(), 0);
    send(&mut pair.target, &mut pair.dialer).await;
    drop(pair.target);
    assert_eq!(pair.dialer.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_cut_link_forwards_nothing_and_what_waited_when_it_opens() {
    let mut pair = Pair::new().await;
    pair.cut(Mode::Cut, 2).await;
    pair.dialer.write_all(b"ping").await.unwrap();
    pair.target.write_all(b"ping").await.unwrap();
    let mut late = TcpStream::connect(pair.link.address()).await.unwrap();
    late.write_all(b"ping").await.unwrap();
    until("the new connection waits", async || pair.link.held() == 3).await;
    nothing_arrives(&pair.target);
    nothing_arrives(&pair.dialer);
    pair.link.set(Mode::Open);
    arrives(&mut pair.target).await;
    arrives(&mut pair.dialer).await;
    let (mut accepted, _) = pair.listener.accept().await.unwrap();
    arrives(&mut accepted).await;
}

#[tokio::test]
async fn a_link_that_is_cut_one_way_forwards_the_other() {
    let mut pair = Pair::new().await;
    pair.cut(Mode::CutDirection(Direction::Forth), 1).await;
    pair.dialer.write_all(b"ping").await.unwrap();
    send(&mut pair.target, &mut pair.dialer).await;
    nothing_arrives(&pair.target);
    pair.link.set(Mode::Open);
    arrives(&mut pair.target).await;
    pair.cut(Mode::CutDirection(Direction::Back), 1).await;
    pair.target.write_all(b"ping").await.unwrap();
    send(&mut pair.dialer, &mut pair.target).await;
    nothing_arrives(&pair.dialer);
    pair.link.set(Mode::Open);
    arrives(&mut pair.dialer).await;
}

#[tokio::test(start_paused = true)]
async fn a_link_with_a_delay_forwards_later() {
    let mut pair = Pair::new().await;
    let delay = Duration::from_millis(400);
    pair.link.set(Mode::Delay(delay));
    // The connection reads the mode before the bytes, because the change is looked at first.
    let begun = Instant::now();
    send(&mut pair.dialer, &mut pair.target).await;
    send(&mut pair.target, &mut pair.dialer).await;
    assert!(begun.elapsed() >= 2 * delay, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_slow_link_forwards_few_bytes_each_second() {
    let mut pair = Pair::new().await;
    pair.link.set(Mode::Slow(100));
    let begun = Instant::now();
    pair.dialer.write_all(&[7; 1_000]).await.unwrap();
    let mut bytes = [0; 1_000];
    pair.target.read_exact(&mut bytes).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(9_900), "{:?}", begun.elapsed());
    assert_eq!(bytes, [7; 1_000]);
}

#[tokio::test]
async fn a_link_resets_its_connections_and_new_ones() {
    let mut pair = Pair::new().await;
    pair.link.set(Mode::Reset);
    for end in [&mut pair.dialer, &mut pair.target] {
        let read = end.read(&mut [0; 1]).await.map_err(|error| error.kind());
        assert_eq!(read, Err(io::ErrorKind::ConnectionReset));
    }
    if let Ok(mut late) = TcpStream::connect(pair.link.address()).await {
        assert!(late.read(&mut [0; 1]).await.is_err());
    }
    pair.link.set(Mode::Open);
    pair.dialer = TcpStream::connect(pair.link.address()).await.unwrap();
    (pair.target, _) = pair.listener.accept().await.unwrap();
    pair.both_ways().await;
}

#[tokio::test]
async fn a_target_that_does_not_listen_resets_the_connection() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let link = Link::open(listener.local_addr().unwrap()).await.unwrap();
    drop(listener);
    let mut dialer = TcpStream::connect(link.address()).await.unwrap();
    assert!(dialer.read(&mut [0; 1]).await.is_err());
}

#[tokio::test]
async fn there_are_only_so_few_connections_and_bytes() {
    let mut pair = Pair::new().await;
    pair.cut(Mode::Cut, 2).await;
    let mut waiting = Vec::new();
    for _ in 1..CONNECTIONS_MAX {
        waiting.push(TcpStream::connect(pair.link.address()).await.unwrap());
    }
    if let Ok(mut refused) = TcpStream::connect(pair.link.address()).await {
        assert!(refused.read(&mut [0; 1]).await.is_err());
    }
    // Nothing is read, so the sender's buffers fill.
    let mut sent = 0;
    until("the sender must wait", async || match pair.dialer.try_write(&[0; CHUNK_BYTES_MAX]) {
        Ok(more) => {
            sent += more;
            false
        }
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    })
    .await;
    assert!(sent > 0);
    pair.link.set(Mode::Open);
    let mut received = vec![0; sent];
    pair.target.read_exact(&mut received).await.unwrap();
}

#[test]
fn modes_are_read_as_they_are_shown() {
    for text in ["open", "cut", "cut-forth", "cut-back", "delay:200", "slow:1000", "reset"] {
        assert_eq!(text.parse::<Mode>().unwrap().to_string(), text);
    }
    for text in ["", "closed", "cut:1", "delay", "delay:", "delay:-1", "delay:60001", "slow:0", "slow:x"] {
        assert!(text.parse::<Mode>().unwrap_err().contains("cut-forth"), "{text}");
    }
}
