//! Why a call did not return an answer.

/// Why a call or a stream failed. What matters to the caller is whether the other server may have acted on the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// Certain: no byte of the request was written, so it can be sent again. The text says why.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The request was written, and the connection ended before its answer came: the other server may have acted on it.
    #[error("sent, and not answered: {0}")]
    Unknown(String),
    /// Certain: the other server's handler refused the request, or one of the two servers refused the other in the
    /// handshake.
    #[error("refused: {0}")]
    Refused(String),
    /// The deadline passed after the request was written: the other server may have acted on it.
    #[error("no answer before the deadline")]
    TimedOut,
}
