//! Receives what other servers send, of all kinds.

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::RwLock;
use std::sync::Arc;
use switchward_machine::Time;

use crate::peers::{PeerRequest, PeerStream, RaftHandler};

/// Answers what is not Raft's.
#[async_trait]
pub(crate) trait Serve: Send + Sync {
    /// Answers a message of the server `from`.
    ///
    /// # Errors
    /// The message was refused, and nothing has happened.
    async fn serve(&self, from: u64, request: PeerRequest) -> Result<Bytes, String>;
}

/// Answers the messages of other servers. It exists before the server's groups are open, and refuses then what it cannot
/// answer yet. It trusts that the transport has checked who sends a message.
#[derive(Default)]
pub struct MemberHandler {
    raft: RaftHandler,
    rest: RwLock<Option<Arc<dyn Serve>>>,
    certificate_expires: RwLock<Option<Time>>,
}

impl MemberHandler {
    /// Answers Raft's messages.
    #[must_use]
    pub fn raft(&self) -> &RaftHandler {
        &self.raft
    }

    /// Until when this server's certificate is valid; `None` if it is not known. Operators see it in the cluster's status.
    #[must_use]
    pub fn certificate_expires(&self) -> Option<Time> {
        *self.certificate_expires.read()
    }

    /// Sets until when this server's certificate is valid.
    pub fn set_certificate_expires(&self, expires: Option<Time>) {
        *self.certificate_expires.write() = expires;
    }

    /// Answers the other messages too from now on.
    pub(crate) fn open(&self, rest: Arc<dyn Serve>) {
        *self.rest.write() = Some(rest);
    }

    /// Answers a message of the server `from`.
    ///
    /// # Errors
    /// The message was refused, and nothing has happened: it is not for this server, not readable, or not the sender's
    /// own; or the server is not open yet.
    pub async fn call(&self, from: u64, request: PeerRequest) -> Result<Bytes, String> {
        if RaftHandler::serves(request.kind) {
            return self.raft.call(from, request).await;
        }
        let Some(rest) = self.rest.read().clone() else { return Err("this server is not open yet".into()) };
        rest.serve(from, request).await
    }

    /// Serves a stream of the server `from`, to its end.
    ///
    /// # Errors
    /// The stream was refused.
    pub async fn stream(
        &self,
        from: u64,
        request: PeerRequest,
        stream: Arc<dyn PeerStream>,
    ) -> Result<(), String> {
        if !RaftHandler::serves(request.kind) {
            return Err(format!("no stream has the kind {}", request.kind));
        }
        self.raft.stream(from, request, stream).await;
        Ok(())
    }
}
