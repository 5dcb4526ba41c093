//! The page at `/`: what a server is, and its parts.

use crate::piece::Piece;

/// The title of the page at `/`, as browsers show it.
pub const TITLE: &str = "Switchward";
/// What the product does.
pub const ABOUT: &str = "Processes that people and AI agents carry out together. Each tool call is allowed, denied or put to a person, \
     who decides.";
/// The kind of a server.
pub const SERVER: &str = "A server";
/// The kind of a development server.
pub const DEVELOPMENT_SERVER: &str = "A development server";

/// The heading of what a development server would have sent.
pub const OUTGOING: &str = "Outgoing messages";
/// The mailbox of a development server.
pub const MAILBOX: &str = "the mail that this server would have sent, and a form to answer each";
/// The webhook inspector of a development server.
pub const INSPECTOR: &str = "an endpoint that shows the webhooks it receives";

/// The heading of the ways to call the server.
pub const API: &str = "API";
/// The two protocols of the port.
pub const GRPC_NAME: &str = "gRPC, gRPC-Web";
/// How they are called.
pub const GRPC: &str = "on this port, with reflection; send the API key as authorization: Bearer swk_…";
/// How a method is called with JSON: the path of one of them.
pub const JSON: &str =
    "POST /switchward.v1.SessionService/GetSession, and the same for every method that is not a stream";
/// What else is posted to the server.
pub const POSTED: &str =
    "webhooks from other services, events sent with a reply token, mail from a mail server";
/// Before the names of the services.
pub const SERVICES: &str = "Services";

/// The heading of the probes.
pub const HEALTH: &str = "Health";
/// The probe of the process.
pub const LIVENESS: &str = "200 while the process runs";
/// The probe of the server.
pub const READINESS: &str = "200 while the server accepts calls, 503 otherwise; reports if the disk runs low";
/// The probes over gRPC.
pub const GRPC_HEALTH: &str = "the same over gRPC: liveness, readiness, writes, and each service";

/// The heading of the decision pages.
pub const PEOPLE: &str = "People";
/// How the decision pages are found.
pub const DECISION_PAGES: &str = "decision pages; mails link to them, and there is no list of them";

/// The heading of the documentation.
pub const DOCUMENTATION: &str = "Documentation";
/// Where the metrics are.
pub const METRICS: &str = "Metrics are on a separate port, which the server prints when it starts.";

/// The commands that show help and documentation.
#[must_use]
pub fn help() -> Vec<Piece<'static>> {
    vec![
        Piece::plain("Every command has a help text: "),
        Piece::code("switchward --help"),
        Piece::plain(", "),
        Piece::code("switchward help COMMAND"),
        Piece::plain(". "),
        Piece::code("switchward docs"),
        Piece::plain(
            " lists the pages of the documentation: the first process, the API, how to run a server.",
        ),
    ]
}
