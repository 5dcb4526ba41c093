//! The webhook inspector of a development server.

use crate::piece::Piece;

/// The title of the inspector, as browsers show it.
pub const TITLE: &str = "Webhooks";
/// What the page shows.
pub const ABOUT: &str = "The webhooks that an endpoint of this development server receives. Their signatures are checked as a receiver \
     would check them.";
/// The button that starts the inspector.
pub const LISTEN: &str = "Listen";
/// No events have come.
pub const NO_EVENTS: &str = "The inspector is listening. It has received no events yet.";
/// The heading of an event that does not say its type.
pub const NO_EVENT_TYPE: &str = "no event type";
/// The label of an event's time.
pub const RECEIVED: &str = "Received";
/// The label of an event's id.
pub const ID: &str = "Id";
/// The label of the result of the check.
pub const SIGNATURE: &str = "Signature";
/// The result of a check that found nothing.
pub const GOOD: &str = "good";
/// The heading of an error.
pub const NOT_STARTED: &str = "Failed to start the inspector";

/// The inspector does not listen; what it does if it is started for this tenant.
#[must_use]
pub fn not_listening(tenant: &str) -> Vec<Piece<'_>> {
    vec![
        Piece::plain(
            "The inspector is not listening yet. If you start it, it becomes an endpoint of the tenant ",
        ),
        Piece::code(tenant),
        Piece::plain(" and receives every event from then on."),
    ]
}
