//! Revoking keys.

/// State for revoking keys besides the catalogue.
#[derive(Debug, Default)]
pub(crate) struct Revocations {
    pub(super) turn: tokio::sync::Mutex<()>,
}
