//! What guards the pages of a development server from the other pages of the same browser: the name by which they are
//! asked for, the origin of their forms, and a token that only the form itself holds.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq as _;
use switchward_messages::server_pages::guard::{FOREIGN_FORM, STALE_FORM, UNKNOWN_HOST};

/// The header in which a browser says how a request's origin relates to this server's.
const FETCH_SITE: &str = "sec-fetch-site";

/// Puts a guard before pages. They are answered under loopback names and these; forms are taken from their own origin.
pub(crate) fn before(pages: Router, allowed_hosts: &[String]) -> Router {
    let hosts: Arc<Vec<String>> = Arc::new(allowed_hosts.iter().map(|host| host.to_lowercase()).collect());
    pages.layer(from_fn_with_state(hosts, admit))
}

async fn admit(State(hosts): State<Arc<Vec<String>>>, request: Request, next: Next) -> Response {
    let Some(host) = host(&request).filter(|host| is_known(host, &hosts)) else {
        return refused(StatusCode::MISDIRECTED_REQUEST, UNKNOWN_HOST);
    };
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads && !is_own(request.headers(), &host) {
        return refused(StatusCode::FORBIDDEN, FOREIGN_FORM);
    }
    next.run(request).await
}

/// A refusal for people, as a line of text.
fn refused(status: StatusCode, why: &str) -> Response {
    (status, format!("{why}\n")).into_response()
}

/// The answer to a form that a page of an earlier start holds.
pub(crate) fn stale_form() -> Response {
    refused(StatusCode::FORBIDDEN, STALE_FORM)
}

/// Returns the name and port that a request is for, or `None` if it names none or several.
fn host(request: &Request) -> Option<Authority> {
    let mut said = request.headers().get_all(header::HOST).iter();
    match (said.next(), said.next(), request.uri().authority()) {
        (Some(host), None, None) => Authority::try_from(host.as_bytes()).ok(),
        (None, None, Some(authority)) => Some(authority.clone()),
        (Some(host), None, Some(authority)) => {
            Some(authority.clone()).filter(|it| it.as_str().as_bytes() == host.as_bytes())
        }
        (None | Some(_), _, _) => None,
    }
}

/// Returns true if a name is one of this machine's, or of those that were allowed.
fn is_known(host: &Authority, hosts: &[String]) -> bool {
    let name = host.host().to_lowercase();
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let loopback = address.is_ok_and(|address| address.is_loopback());
    loopback || name == "localhost" || name.ends_with(".localhost") || hosts.contains(&name)
}

/// Returns true unless a browser says that the request comes from another origin.
fn is_own(headers: &HeaderMap, host: &Authority) -> bool {
    let own_origin = |origin: &[u8]| {
        let origin = origin.to_ascii_lowercase();
        let rest = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        rest == Some(host.as_str().to_ascii_lowercase().as_bytes())
    };
    headers.get_all(header::ORIGIN).iter().all(|origin| own_origin(origin.as_bytes()))
        && headers.get_all(FETCH_SITE).iter().all(|site| site.as_bytes() == b"same-origin")
}

/// A name that nobody can guess: of a form, or of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    /// Draws 128 random bits.
    pub(crate) fn draw() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()))
    }

    /// The token as 32 hexadecimal digits.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Returns true if this is its text, in a time that does not depend on where they differ.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority(text: &str) -> Authority {
        text.parse().unwrap()
    }

    #[test]
    fn names_of_this_machine_and_allowed_ones_are_known() {
        let hosts = ["box.example".to_owned()];
        for name in
            ["127.0.0.1:7400", "127.9.9.9", "[::1]:7400", "localhost:1", "a.LOCALHOST", "BOX.example:443"]
        {
            assert!(is_known(&authority(name), &hosts), "{name}");
        }
        for name in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1:7400", "localhost.evil.example", "x"]
        {
            assert!(!is_known(&authority(name), &hosts), "{name}");
        }
    }

    #[test]
    fn another_origin_is_recognised_by_what_browsers_send() {
        let own = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            is_own(&pairs.collect(), &authority("127.0.0.1:7400"))
        };
        assert!(own(&[]));
        assert!(own(&[("origin", "http://127.0.0.1:7400"), (FETCH_SITE, "same-origin")]));
        for origin in ["null", "http://127.0.0.1:7401", "https://evil.example", "http://127.0.0.1:7400.evil"]
        {
            assert!(!own(&[("origin", origin)]), "{origin}");
        }
        for site in ["cross-site", "same-site", "none"] {
            assert!(!own(&[(FETCH_SITE, site)]), "{site}");
        }
    }
}
