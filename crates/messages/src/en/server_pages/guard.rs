//! Why a request to a page of a development server is refused.

/// The form was sent from a page that is older than the server's start.
pub const STALE_FORM: &str = "this form is out of date; open its page again";
/// The form was sent from a page of another server.
pub const FOREIGN_FORM: &str = "this form can be sent only from its own page";
/// The request names a host that is neither this machine nor allowed.
pub const UNKNOWN_HOST: &str =
    "unknown host name of this server; allow it with `switchward dev --allow-host HOST`";
