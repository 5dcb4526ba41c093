//! Facts about sources of webhooks.

use minicbor::{CborLen, Decode, Encode};

use crate::delivery::WebhookSource;

/// A fact about a source of webhooks. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum WebhookSourceFact {
    /// It is this from now on.
    #[n(0)]
    Put {
        /// The source.
        #[n(0)]
        source: WebhookSource,
    },
    /// It is deleted.
    #[n(1)]
    Deleted {
        /// Its name.
        #[n(0)]
        name: String,
    },
}
