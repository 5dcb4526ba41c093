//! Checks whether a token was given to anybody, before a mail with it causes DNS queries.

use switchward_query::CheckMailToken;
pub use switchward_query::Origin;
use switchward_state::approval::MailToken;

use crate::api::Api;
use crate::error::Refusal;

/// Returns whether a token was made for the person with this address, or for others at a gate that asks this person too.
///
/// # Errors
/// The shard cannot be read.
pub(super) async fn of(api: &Api, token: &MailToken, from: &str) -> Result<Origin, Refusal> {
    api.ask(&CheckMailToken { token: token.clone(), from: from.to_owned() }).await
}
