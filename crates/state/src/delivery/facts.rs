//! Facts about sources of webhooks.

use minicbor::{CborLen, Decode, Encode};

use crate::delivery::WebhookSource;

/// A fact about a source of webhooks. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum WebhookSourceFact {
    /// It is this from now on.
    #[n(0)]
    Put {
        /// All of it, as it is from now on.
        #[n(0)]
        source: WebhookSource,
    },
    /// Its path takes no message any more.
    #[n(1)]
    Deleted {
        /// The name that it had.
        #[n(0)]
        name: String,
    },
}
