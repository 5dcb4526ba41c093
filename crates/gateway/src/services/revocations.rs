//! Revoked keys, as open streams learn of them.

/// State for revoking keys besides the catalogue.
#[derive(Debug)]
pub(crate) struct Revocations {
    pub(super) turn: tokio::sync::Mutex<()>,
    /// Notified whenever a key is revoked, so that open streams check their credentials again.
    pub(super) changed: tokio::sync::watch::Sender<()>,
}

impl Default for Revocations {
    fn default() -> Self {
        Self { turn: tokio::sync::Mutex::default(), changed: tokio::sync::watch::channel(()).0 }
    }
}
