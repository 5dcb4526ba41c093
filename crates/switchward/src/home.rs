//! `/`: what this server is, and where its parts are. It shows nothing that needs a key.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{DOCTYPE, Markup, html};
use switchward_messages::LANGUAGE;
use switchward_messages::server_pages::home as words;

use crate::mailbox::worded;

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
        html lang=(LANGUAGE) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (words::TITLE) }
                // The decision page's.
                link rel="stylesheet" href="/a/style.css";
            }
            body { main {
                p.kicker { @if development { (words::DEVELOPMENT_SERVER) } @else { (words::SERVER) } }
                h1 { (words::TITLE) }
                p { (words::ABOUT) }
                @if development { (of_development()) }
                h2 { (words::API) }
                table { (api()) }
                h2 { (words::HEALTH) }
                table {
                    (row("/healthz", true, words::LIVENESS))
                    (row("/readyz", true, words::READINESS))
                    (row("grpc.health.v1.Health", false, words::GRPC_HEALTH))
                }
                h2 { (words::PEOPLE) }
                table {
                    (row("/a/…", false, words::DECISION_PAGES))
                }
                h2 { (words::DOCUMENTATION) }
                p { (worded(&words::help())) }
                p.hint { (words::METRICS) }
            } }
        }
    }
}

fn api() -> Markup {
    let services = switchward_api::descriptor_pool().services();
    let names: Vec<String> = services.map(|service| service.name().to_owned()).collect();
    html! {
        (row(words::GRPC_NAME, false, words::GRPC))
        (row("JSON", false, words::JSON))
        (row("POST /v1/…", false, words::POSTED))
        tr { th scope="row" { (words::SERVICES) } td { (names.join(", ")) } }
    }
}

fn of_development() -> Markup {
    html! {
        h2 { (words::OUTGOING) }
        table {
            (row("/mail", true, words::MAILBOX))
            (row("/webhooks", true, words::INSPECTOR))
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
