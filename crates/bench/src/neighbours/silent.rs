//! Silent connections and half-sent bodies, without a credential: a caller with a key is still answered, even from the same
//! address.

use anyhow::{Context as _, ensure};
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_api::v1::session_service_client::SessionServiceClient;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::Request;

use crate::load::{bearer, channel};
use crate::process::Server;

const SILENT: usize = 10_000;
const HALF_SENT: usize = 1_000;
/// Connections that are being opened at one time.
const AT_ONCE: usize = 64;
/// How often the caller connects, and how long they may wait.
const CALLS: usize = 20;
const ANSWER_MAX: Duration = Duration::from_secs(1);
const BETWEEN: Duration = Duration::from_millis(200);

/// Measures, prints, and fails if the caller waits too long.
pub(crate) async fn run(server: &Server, key: &str) -> anyhow::Result<()> {
    let host = server.address.strip_prefix("http://").context("the address is not a plain HTTP address")?;
    let mut half = format!(
        "POST /switchward.v1.SessionService/StartSession HTTP/1.1\r\nhost: {host}\r\n\
         content-type: application/json\r\ncontent-length: 4000000\r\n\r\n"
    );
    half += &" ".repeat(2_000);
    let silent = open(host, "", SILENT).await?;
    let half = open(host, &half, HALF_SENT).await?;
    let mut longest = Duration::ZERO;
    for _ in 0..CALLS {
        let begun = Instant::now();
        let mut list = Request::new(v1::ListSessionsRequest::default());
        list.metadata_mut().insert("authorization", bearer(key)?);
        SessionServiceClient::new(channel(server).await?).list_sessions(list).await?;
        longest = longest.max(begun.elapsed());
        tokio::time::sleep(BETWEEN).await;
    }
    println!(
        "{} silent connections and {} half-sent bodies: a caller from the same address waited {} ms at most",
        silent.len(),
        half.len(),
        longest.as_millis()
    );
    ensure!(longest <= ANSWER_MAX, "the caller may wait at most {} ms", ANSWER_MAX.as_millis());
    Ok(())
}

/// Opens `count` connections and sends `said` on each of them.
async fn open(host: &str, said: &str, count: usize) -> anyhow::Result<Vec<TcpStream>> {
    let (mut open, mut opening) = (Vec::new(), JoinSet::new());
    for _ in 0..count {
        if opening.len() == AT_ONCE {
            open.extend(opened(&mut opening).await?);
        }
        let (host, said) = (host.to_owned(), said.to_owned());
        opening.spawn(async move {
            let mut stream = TcpStream::connect(host).await?;
            // The server may have closed it in favour of another connection.
            let _closed = stream.write_all(said.as_bytes()).await;
            anyhow::Ok(stream)
        });
    }
    while !opening.is_empty() {
        open.extend(opened(&mut opening).await?);
    }
    Ok(open)
}

async fn opened(opening: &mut JoinSet<anyhow::Result<TcpStream>>) -> anyhow::Result<Option<TcpStream>> {
    let opened = opening.join_next().await.transpose()?.transpose();
    opened.context("a connection cannot be opened; raise the limit of open files with ulimit -n")
}
