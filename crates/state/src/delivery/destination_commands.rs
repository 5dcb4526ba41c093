//! Commands about where messages go and where they come from: endpoints and sources of webhooks.

use minicbor::{Decode, Encode};

use crate::delivery::{
    Correlation, DeliveryDetail, DisabledReason, FailureCode, SourceSecret, WebhookSourceKind,
};
use crate::seal::Sealed;

/// What changes about a source of webhooks.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum ChangeWebhookSource {
    /// A new one.
    #[n(0)]
    Create {
        /// Its name: `[a-z0-9-]`, 1 to 63 characters.
        #[n(0)]
        name: String,
        /// How it is authenticated.
        #[n(1)]
        kind: WebhookSourceKind,
        /// What with; none for a kind that proves nothing.
        #[n(2)]
        secret: Option<SourceSecret>,
        /// Which event of which session a message is.
        #[n(3)]
        correlation: Correlation,
    },
    /// Its messages are other events.
    #[n(1)]
    Correlate {
        /// The name of a source that exists.
        #[n(0)]
        name: String,
        /// Which event of which session a message is.
        #[n(1)]
        correlation: Correlation,
        /// What the caller saw; empty if any will do.
        #[n(2)]
        etag: String,
    },
    /// It has another secret.
    #[n(2)]
    Rotate {
        /// The name of a source that exists.
        #[n(0)]
        name: String,
        /// The new one.
        #[n(1)]
        secret: SourceSecret,
        /// How long the one before it stays good, milliseconds.
        #[n(2)]
        overlap_ms: u64,
        /// What the caller saw; empty if any will do.
        #[n(3)]
        etag: String,
    },
    /// Its path takes no message any more.
    #[n(3)]
    Delete {
        /// The name of a source that exists.
        #[n(0)]
        name: String,
        /// What the caller saw; empty if any will do.
        #[n(1)]
        etag: String,
    },
}

/// A change of a tenant's endpoints.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum ChangeEndpoint {
    /// A new one, or another address and other filters for a known one; a disabled one is enabled again.
    #[n(0)]
    Put {
        /// Its name: `[a-z0-9-]`, 1 to 63 characters.
        #[n(0)]
        id: String,
        /// Where messages go.
        #[n(1)]
        url: String,
        /// What it wants; the caller has looked at them.
        #[n(2)]
        filters: Vec<String>,
        /// Drawn for it, sealed; used if it is new.
        #[n(3)]
        secret: Sealed,
        /// Drawn for the tenant; used if it has no key for its mail tokens yet.
        #[n(4)]
        key: Option<Sealed>,
        /// What the caller saw, see [`Endpoint::etag`](crate::delivery::Endpoint::etag); empty if any will do.
        #[n(5)]
        etag: String,
    },
    /// It has another secret.
    #[n(1)]
    Rotate {
        /// Its name.
        #[n(0)]
        id: String,
        /// The new one, sealed.
        #[n(1)]
        secret: Sealed,
        /// How long the one before it stays good, milliseconds.
        #[n(2)]
        overlap_ms: u64,
        /// What the caller saw; empty if any will do.
        #[n(3)]
        etag: String,
    },
    /// It is sent nothing any more, until it is put again.
    #[n(2)]
    Disable {
        /// Its name.
        #[n(0)]
        id: String,
        /// What its attempts have shown.
        #[n(1)]
        reason: DisabledReason,
    },
    /// It is sent nothing any more, and its secrets are gone.
    #[n(3)]
    Delete {
        /// Its name.
        #[n(0)]
        id: String,
        /// What the caller saw; empty if any will do.
        #[n(1)]
        etag: String,
    },
    /// An attempt to send it a message has ended.
    #[n(4)]
    Note {
        /// Its name.
        #[n(0)]
        id: String,
        /// What went wrong, a code and maybe a detail; `None` if the message has arrived.
        #[n(1)]
        failure: Option<(FailureCode, Option<DeliveryDetail>)>,
    },
}
