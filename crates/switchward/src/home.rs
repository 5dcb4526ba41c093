//! `/`: what this server is, and where its parts are. It shows nothing that needs a key.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{DOCTYPE, Markup, html};

/// The page of a server.
pub(crate) fn page() -> Router {
    routed(false)
}

/// The page of a development server.
pub(crate) fn page_of_development() -> Router {
    routed(true)
}

fn routed(development: bool) -> Router {
    Router::new().route("/", get(move || async move { guarded(whole(development)) }))
}

fn whole(development: bool) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Switchward" }
                // The decision page's.
                link rel="stylesheet" href="/a/style.css";
            }
            body { main {
                p.kicker { @if development { "A development server" } @else { "A server" } }
                h1 { "Switchward" }
                p { "Processes that people and AI agents carry out together. Each tool call is allowed, denied or put to a person, who decides." }
                @if development { (of_development()) }
                h2 { "API" }
                table { (api()) }
                h2 { "Health" }
                table {
                    (row("/healthz", true, "200 while the process runs"))
                    (row("/readyz", true, "200 while the server accepts calls, 503 otherwise; reports if the disk runs low"))
                    (row("grpc.health.v1.Health", false, "the same over gRPC: liveness, readiness, writes, and each service"))
                }
                h2 { "People" }
                table {
                    (row("/a/…", false, "decision pages; mails link to them, and there is no list of them"))
                }
                h2 { "Documentation" }
                p {
                    "Every command has a help text: " code { "switchward --help" } ", " code { "switchward help COMMAND" }
                    ". " code { "switchward docs" } " lists the pages of the documentation: the first process, the API, how to run a server."
                }
                p.hint { "Metrics are on a separate port, which the server prints when it starts." }
            } }
        }
    }
}

fn api() -> Markup {
    let services = switchward_api::descriptor_pool().services();
    let names: Vec<String> = services.map(|service| service.name().to_owned()).collect();
    html! {
        (row("gRPC, gRPC-Web", false, "on this port, with reflection; send the API key as authorization: Bearer swk_…"))
        (row("JSON", false, "POST /switchward.v1.SessionService/GetSession, and the same for every method that is not a stream"))
        (row("POST /v1/…", false, "webhooks from other services, events sent with a reply token, mail from a mail server"))
        tr { th scope="row" { "Services" } td { (names.join(", ")) } }
    }
}

fn of_development() -> Markup {
    html! {
        h2 { "Outgoing messages" }
        table {
            (row("/mail", true, "the mail that this server would have sent, and a form to answer each"))
            (row("/webhooks", true, "an endpoint that shows the webhooks it receives"))
        }
    }
}

/// A part, with its path as a link if a browser can follow it.
fn row(name: &str, link: bool, what: &str) -> Markup {
    html! {
        tr {
            th scope="row" { @if link { a href=(name) { (name) } } @else { (name) } }
            td { (what) }
        }
    }
}

/// Nothing on it is run, and it is shown nowhere else.
fn guarded(page: Markup) -> Response {
    let mut response = page.into_response();
    let policy =
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
