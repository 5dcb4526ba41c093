//! The comments that the server itself writes into a session.

/// The comment on the cancellation of a session that a restored backup has and that was removed since.
pub(super) const REMOVED_AFTER_BACKUP: &str = "the session ended and was removed after the backup was taken";
