//! Pages of other origins that may call the API.

use anyhow::Context as _;
use http::HeaderValue;
use serde::{Deserialize, Serialize};

/// Which pages of other origins may call the API.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cors {
    /// Origins, like `https://console.acme.example`; empty: none.
    #[serde(default)]
    pub(crate) allowed_origins: Vec<String>,
}

impl Cors {
    /// The origins as browsers send them.
    ///
    /// # Errors
    /// One of them is none.
    pub(crate) fn origins(&self) -> anyhow::Result<Vec<HeaderValue>> {
        let origin = |text: &String| {
            let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
            let host = |rest: &str| !rest.is_empty() && !rest.contains(['/', '*', '?', '#', '@', ' ']);
            let value = rest.filter(|rest| host(rest)).and_then(|_| text.parse().ok());
            value.with_context(|| {
                format!(
                    "cors.allowed_origins: {text:?} is not an origin; write https://HOST or https://HOST:PORT"
                )
            })
        };
        self.allowed_origins.iter().map(origin).collect()
    }
}
