//! Sends a snapshot: from the state store straight into a stream to the other server.

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream};
use openraft::base::BoxStream;
use openraft::error::{NetworkError, ReplicationClosed, StreamingError, Unreachable};
use openraft::raft::SnapshotResponse;
use std::future::Future;
use std::io::{self, Write};
use std::pin::pin;
use std::sync::{Arc, atomic::Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, error::SendTimeoutError};
use tokio::time::timeout;

use super::codec::{
    SnapshotAnswer, SnapshotEnd, SnapshotHeader, SnapshotId, decode_snapshot_answer, encode_snapshot_end,
    encode_snapshot_header, encode_snapshot_piece,
};
use super::kind::Kind;
use super::network::RaftLink;
use super::transport::{PeerError, PeerStream};
use crate::blocking::blocking;
use crate::limits::{
    SNAPSHOT_IDLE, SNAPSHOT_INSTALL_WAIT, SNAPSHOT_LOOK, SNAPSHOT_PIECE_BYTES, SNAPSHOT_PIECES_AHEAD,
};
use crate::snapshot::{SnapshotRows, SnapshotSource};
use crate::types::{LogId, Snapshot, TypeConfig, Vote};

type Failed = StreamingError<TypeConfig>;
type Response = SnapshotResponse<TypeConfig>;

/// Sends a snapshot as the leader that this vote names, and waits until it is installed. Ends between two pieces, or
/// while it waits, once `cancel` is ready.
pub(super) async fn snapshot(
    link: &RaftLink,
    vote: Vote,
    snapshot: Snapshot,
    cancel: impl Future<Output = ReplicationClosed>,
) -> Result<Response, Failed> {
    tokio::select! {
        biased;
        closed = pin!(cancel) => Err(closed.into()),
        sent = transfer(link, vote, snapshot) => sent,
    }
}

async fn transfer(link: &RaftLink, vote: Vote, snapshot: Snapshot) -> Result<Response, Failed> {
    let Some(last) = snapshot.meta.last_log_id else {
        return Err(unreadable(&io::Error::other("a snapshot without a position cannot be sent")));
    };
    if !owned_by(last, &vote) {
        return Err(deposed());
    }
    let closed = |_| Failed::from(ReplicationClosed::new("no more snapshots are sent"));
    let _turn = link.peers().turns_of(link.to()).acquire_owned().await.map_err(closed)?;
    let sending = link.peers().snapshots().acquire().await.map_err(closed)?;
    let id = SnapshotId {
        group: link.group().0,
        server: link.peers().node(),
        term: vote.leader_id.term,
        number: link.peers().begun().fetch_add(1, Ordering::Relaxed),
    };
    let header = encode_snapshot_header(&SnapshotHeader { id, vote, last });
    let stream = link.stream(Kind::Snapshot, header).await.map_err(Failed::from)?;
    let mut answers = Answers::of(&stream);
    if let Some(vote) = answers.next(link, SNAPSHOT_IDLE).await? {
        return Ok(SnapshotResponse::new(vote));
    }
    tracing::info!(snapshot = %id, to = link.to(), "sending a snapshot");
    let end = match rows(link, snapshot.snapshot, vote, &*stream, &mut answers).await? {
        Sent::Rows(end) => end,
        Sent::Answered(vote) => return Ok(SnapshotResponse::new(vote)),
    };
    send(link, &*stream, encode_snapshot_end(end)).await?;
    drop(sending);
    match answers.next(link, SNAPSHOT_INSTALL_WAIT).await? {
        Some(vote) => {
            tracing::info!(snapshot = %id, to = link.to(), bytes = end.bytes, "sent a snapshot");
            Ok(SnapshotResponse::new(vote))
        }
        None => Err(lost(link, "the other server does not answer a snapshot")),
    }
}

enum Sent {
    /// All rows.
    Rows(SnapshotEnd),
    /// Not all rows, since the receiver has answered with its vote before.
    Answered(Vote),
}

/// Sends the rows, piece by piece.
async fn rows(
    link: &RaftLink,
    source: SnapshotSource,
    vote: Vote,
    stream: &dyn PeerStream,
    answers: &mut Answers,
) -> Result<Sent, Failed> {
    let (to, mut pieces) = mpsc::channel(SNAPSHOT_PIECES_AHEAD);
    let reading = blocking(move || read(&source, &vote, to));
    let mut end = SnapshotEnd::default();
    loop {
        let piece = tokio::select! {
            biased;
            early = answers.next(link, SNAPSHOT_INSTALL_WAIT) => match early? {
                Some(vote) => return Ok(Sent::Answered(vote)),
                None => continue,
            },
            piece = pieces.recv() => piece,
        };
        let Some(piece) = piece else { break };
        link.peers().pace().grant(piece.len()).await;
        end.count(&piece);
        send(link, stream, encode_snapshot_piece(&piece)).await?;
    }
    match reading.await.map_err(io::Error::other).flatten() {
        Ok(Reading::Complete) => Ok(Sent::Rows(end)),
        Ok(Reading::Deposed) => Err(deposed()),
        Err(error) => Err(unreadable(&error)),
    }
}

/// The receiver's answers.
struct Answers(BoxStream<'static, Result<Bytes, PeerError>>);

impl Answers {
    fn of(stream: &Arc<dyn PeerStream>) -> Self {
        let answers = stream::unfold(Arc::clone(stream), |stream| async move {
            let answer = stream.recv().await.transpose()?;
            Some((answer, stream))
        });
        Self(Box::pin(answers))
    }

    /// The receiver's vote; `None` if it waits for what follows.
    async fn next(&mut self, link: &RaftLink, wait: Duration) -> Result<Option<Vote>, Failed> {
        let failed = |error| Failed::from(link.failed(Kind::Snapshot, wait, error));
        let answer = timeout(wait, self.0.next()).await.map_err(|_| failed(PeerError::TimedOut))?;
        let answer = answer.ok_or_else(|| lost(link, "the other server has ended a snapshot"))?;
        let answer = decode_snapshot_answer(&answer.map_err(failed)?);
        match answer.map_err(|error| NetworkError::new(&error))? {
            SnapshotAnswer::Ready => Ok(None),
            SnapshotAnswer::Voted(vote) => Ok(Some(vote)),
            SnapshotAnswer::Refused(why) => Err(failed(PeerError::Refused(why))),
        }
    }
}

async fn send(link: &RaftLink, stream: &dyn PeerStream, chunk: Bytes) -> Result<(), Failed> {
    let sent = timeout(SNAPSHOT_IDLE, stream.send(chunk)).await.unwrap_or(Err(PeerError::TimedOut));
    sent.map_err(|error| link.failed(Kind::Snapshot, SNAPSHOT_IDLE, error).into())
}

fn deposed() -> Failed {
    ReplicationClosed::new("another server has led since the term of the snapshot").into()
}

fn lost(link: &RaftLink, why: &str) -> Failed {
    link.failed(Kind::Snapshot, SNAPSHOT_IDLE, PeerError::Unknown(why.to_owned())).into()
}

/// The error of rows that cannot be read now. They are read again after a while: what ends this server is reported by
/// the state itself.
fn unreadable(error: &io::Error) -> Failed {
    tracing::warn!(%error, "failed to read the rows of a snapshot");
    Unreachable::new(error).into()
}

/// How reading has ended.
enum Reading {
    /// All pieces were read.
    Complete,
    /// The rows hold entries of a later term.
    Deposed,
}

/// Reads the rows piece by piece. Blocks.
///
/// Rows that hold entries of a later term than the vote's are not read: another server has led meanwhile, and nobody
/// would take them from the leader of the earlier term.
fn read(source: &SnapshotSource, vote: &Vote, to: mpsc::Sender<Bytes>) -> io::Result<Reading> {
    let rows = source.rows()?;
    if !owned_by(rows.position()?, vote) {
        return Ok(Reading::Deposed);
    }
    let mut pieces = Pieces { rows: &rows, buffer: BytesMut::new(), to };
    rows.write(&mut pieces)?;
    pieces.end_piece()?;
    Ok(Reading::Complete)
}

/// Returns true if the leader that a vote names can have written the entry at this position, or an earlier leader.
pub(super) fn owned_by(position: LogId, vote: &Vote) -> bool {
    position.leader_id.term <= vote.leader_id.term
}

/// Cuts what is written into pieces.
struct Pieces<'r> {
    rows: &'r SnapshotRows,
    buffer: BytesMut,
    to: mpsc::Sender<Bytes>,
}

impl Pieces<'_> {
    fn end_piece(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut piece = self.buffer.split().freeze();
        // It must not wait there, and what is sent is short.
        #[cfg(feature = "simulation")]
        if crate::simulation::is_on() {
            return self.to.try_send(piece).map_err(io::Error::other);
        }
        loop {
            // The connection may be slow, and the rows must not be held for as long as it likes.
            match Handle::current().block_on(self.to.send_timeout(piece, SNAPSHOT_LOOK)) {
                Ok(()) => return Ok(()),
                Err(SendTimeoutError::Timeout(_)) if self.rows.must_end() => {
                    return Err(io::Error::other("the rows of a snapshot are not available any longer"));
                }
                Err(SendTimeoutError::Timeout(unsent)) => piece = unsent,
                Err(SendTimeoutError::Closed(_)) => return Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let free = SNAPSHOT_PIECE_BYTES - self.buffer.len();
        let taken = &bytes[..bytes.len().min(free)];
        self.buffer.extend_from_slice(taken);
        if self.buffer.len() == SNAPSHOT_PIECE_BYTES {
            self.end_piece()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::AtomicBool;

    use async_trait::async_trait;
    use futures::future::{join, join3};
    use openraft::vote::leader_id_std::CommittedLeaderId;
    use openraft::{BasicNode, RaftNetworkFactory as _};
    use parking_lot::Mutex;
    use switchward_store::{DataDir, GroupId, Record, RowKey, Snapshots, StateOptions, StateStore};
    use tempfile::TempDir;
    use tokio::sync::oneshot;
    use tokio::time::Instant;

    use super::*;
    use crate::codec::{Applied, encode_json};
    use crate::limits::SNAPSHOT_BYTES_PER_SECOND;
    use crate::peers::codec::encode_snapshot_answer;
    use crate::peers::network::RaftPeers;
    use crate::peers::transport::{PeerConnection, PeerRequest, Transport};
    use crate::snapshot::received;

    const GROUP: GroupId = GroupId(1);

    /// What servers take of a snapshot.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Takes {
        Everything,
        /// Its rows have to wait.
        Nothing,
    }

    /// Servers that never say that a snapshot is installed.
    struct Receivers {
        takes: Takes,
        /// To whom snapshots were begun.
        begun: Mutex<Vec<u64>>,
        /// When they have taken each chunk.
        taken: Arc<Mutex<Vec<Instant>>>,
    }

    impl Receivers {
        fn that_take(takes: Takes) -> Arc<Self> {
            Arc::new(Self { takes, begun: Mutex::default(), taken: Arc::default() })
        }

        /// The links to the servers 2 and 3.
        async fn links(self: &Arc<Self>) -> [RaftLink; 2] {
            let mut network = RaftPeers::new(1, Arc::<Self>::clone(self)).network(GROUP);
            let node = BasicNode::default();
            [network.new_client(2, &node).await, network.new_client(3, &node).await]
        }
    }

    #[async_trait]
    impl Transport for Receivers {
        async fn call(
            &self,
            _: u64,
            _: PeerConnection,
            _: PeerRequest,
            _: Duration,
        ) -> Result<Bytes, PeerError> {
            Err(PeerError::NotSent("only snapshots are sent".into()))
        }

        async fn stream(&self, to: u64, _: PeerRequest) -> Result<Arc<dyn PeerStream>, PeerError> {
            self.begun.lock().push(to);
            let (ready, taken) = (AtomicBool::default(), Arc::clone(&self.taken));
            Ok(Arc::new(Receiver { takes: self.takes, ready, taken }))
        }
    }

    struct Receiver {
        takes: Takes,
        ready: AtomicBool,
        taken: Arc<Mutex<Vec<Instant>>>,
    }

    #[async_trait]
    impl PeerStream for Receiver {
        async fn send(&self, _: Bytes) -> Result<(), PeerError> {
            if self.takes == Takes::Nothing {
                return pending().await;
            }
            self.taken.lock().push(Instant::now());
            Ok(())
        }

        async fn finish(&self) -> Result<(), PeerError> {
            Ok(())
        }

        async fn recv(&self) -> Result<Option<Bytes>, PeerError> {
            if self.ready.swap(true, Ordering::SeqCst) {
                return pending().await;
            }
            Ok(Some(encode_snapshot_answer(&SnapshotAnswer::Ready)))
        }
    }

    /// A row of bytes.
    #[derive(Clone)]
    struct Blob(Vec<u8>);

    impl Record for Blob {
        fn encode(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.0);
        }

        fn decode(bytes: &[u8]) -> Result<Self, String> {
            Ok(Self(bytes.to_vec()))
        }

        fn weight(&self) -> usize {
            self.0.len()
        }

        fn cache(&self) -> bool {
            false
        }
    }

    /// The vote of a leader that may send the snapshots below.
    fn vote() -> Vote {
        Vote::new_committed(1, 1)
    }

    /// A snapshot with rows of this many bytes together, and the folder that it is in.
    fn filled(row_bytes: usize) -> (TempDir, impl Fn() -> Snapshot) {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let state = StateStore::open(&data).unwrap().group(GROUP, &StateOptions::default()).unwrap();
        let last = Some(LogId { leader_id: CommittedLeaderId::new(1), index: 1 });
        let row = (RowKey::from_slice(b"row"), Some(Blob(vec![7; row_bytes])));
        state.apply([row], encode_json(&Applied { last, ..Applied::default() }).unwrap());
        let files = Snapshots::open(&data).unwrap();
        (folder, move || received(state.export(&files).unwrap()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn who_installs_a_snapshot_keeps_no_other_server_from_getting_one() {
        let (_folder, rows) = filled(1);
        let servers = Receivers::that_take(Takes::Everything);
        let [two, three] = servers.links().await;
        let sent = join3(
            snapshot(&two, vote(), rows(), pending()),
            snapshot(&two, vote(), rows(), pending()),
            snapshot(&three, vote(), rows(), pending()),
        );
        assert!(timeout(SNAPSHOT_INSTALL_WAIT / 2, sent).await.is_err(), "nothing is installed");
        assert_eq!(*servers.begun.lock(), [2, 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_rows_of_one_snapshot_are_sent_before_the_next_one_begins() {
        let (_folder, rows) = filled(1);
        let servers = Receivers::that_take(Takes::Nothing);
        let [two, three] = servers.links().await;
        let sent =
            join(snapshot(&two, vote(), rows(), pending()), snapshot(&three, vote(), rows(), pending()));
        assert!(timeout(SNAPSHOT_IDLE / 2, sent).await.is_err(), "no row is taken");
        assert_eq!(*servers.begun.lock(), [2]);
    }

    #[tokio::test(start_paused = true)]
    async fn rows_are_sent_no_faster_than_the_bandwidth_cap() {
        // Three pieces, since there is more than the row in them.
        let (_folder, rows) = filled(2 * SNAPSHOT_PIECE_BYTES);
        let servers = Receivers::that_take(Takes::Everything);
        let [two, _three] = servers.links().await;
        let sent = timeout(SNAPSHOT_INSTALL_WAIT / 2, snapshot(&two, vote(), rows(), pending())).await;
        assert!(sent.is_err(), "nothing is installed");
        let taken = servers.taken.lock().clone();
        assert_eq!(taken.len(), 4, "three pieces and the end");
        let two_pieces = u64::try_from(2 * SNAPSHOT_PIECE_BYTES).unwrap();
        let least = Duration::from_millis(two_pieces * 1_000 / SNAPSHOT_BYTES_PER_SECOND);
        assert!(taken[2] - taken[0] >= least, "{:?}, not {least:?}", taken[2] - taken[0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_snapshot_that_is_cancelled_waits_for_its_installation_no_longer() {
        let (_folder, rows) = filled(1);
        let servers = Receivers::that_take(Takes::Everything);
        let [two, _three] = servers.links().await;
        let (cancel, cancelled) = oneshot::channel::<()>();
        let closed = async move {
            let _dropped = cancelled.await;
            ReplicationClosed::new("enough")
        };
        let cancels = async move {
            // The only piece, and the end.
            while servers.taken.lock().len() < 2 {
                tokio::task::yield_now().await;
            }
            drop(cancel);
        };
        let (sent, ()) = join(snapshot(&two, vote(), rows(), closed), cancels).await;
        assert!(matches!(sent, Err(StreamingError::Closed(_))), "{sent:?}");
    }
}
