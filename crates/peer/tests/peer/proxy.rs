//! A proxy between two servers that stops carrying bytes when a test wants it.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A proxy. Connections stay open when it carries nothing.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    bytes_max: Arc<watch::Sender<u64>>,
}

impl Proxy {
    /// Carries connections to this address.
    pub(crate) async fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let bytes_max = Arc::new(watch::Sender::new(u64::MAX));
        let max = Arc::clone(&bytes_max);
        tokio::spawn(async move {
            while let Ok((inbound, _)) = listener.accept().await {
                let Ok(outbound) = TcpStream::connect(to).await else { continue };
                let (in_read, in_write) = inbound.into_split();
                let (out_read, out_write) = outbound.into_split();
                tokio::spawn(carry(in_read, out_write, max.subscribe()));
                tokio::spawn(carry(out_read, in_write, max.subscribe()));
            }
        });
        Self { address, bytes_max }
    }

    /// Carries no connection further, in each direction, than to this number of bytes.
    pub(crate) fn stop_at(&self, bytes: u64) {
        self.bytes_max.send_replace(bytes);
    }

    /// Carries everything again.
    pub(crate) fn go_on(&self) {
        self.stop_at(u64::MAX);
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut max: watch::Receiver<u64>) {
    let mut carried = 0;
    let mut buffer = vec![0; 16 * 1024];
    while max.wait_for(|max| carried < *max).await.is_ok() {
        // A read that waits while the maximum is lowered must not carry what comes then.
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = max.changed() => continue,
        };
        let Ok(read @ 1..) = read else { return };
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
        carried += read as u64;
    }
}
