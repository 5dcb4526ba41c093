//! Endpoints: where a tenant wants to be told of what happens.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::Time;

use super::SourceSecret;

/// Where a tenant wants to be told of what happens in its sessions.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Endpoint {
    /// Its name; never changes.
    #[n(0)]
    pub id: String,
    /// Where messages go.
    #[n(1)]
    pub url: String,
    /// What messages are signed with: the one of now first, then the one before it while that is still good.
    #[n(2)]
    pub secrets: Vec<SourceSecret>,
    /// What it wants: `session.started`, `session.*` or `*`; empty for everything.
    #[n(3)]
    pub filters: Vec<String>,
    /// Why it is sent nothing, where it is: `gone` or `failing`.
    #[n(4)]
    pub disabled: Option<String>,
    /// When it was made.
    #[n(5)]
    pub created: Time,
}

impl Endpoint {
    /// Whether it is to be told of events of this type.
    #[must_use]
    pub fn wants(&self, kind: &str) -> bool {
        let group = kind.split_once('.').map_or(kind, |(group, _)| group);
        let takes = |filter: &String| {
            filter == "*" || filter == kind || filter.strip_suffix(".*").is_some_and(|word| word == group)
        };
        self.disabled.is_none() && (self.filters.is_empty() || self.filters.iter().any(takes))
    }

    /// The secrets that are good at this time, the newest first.
    pub fn good_secrets(&self, now: Time) -> impl Iterator<Item = &str> {
        let good = self.secrets.iter().filter(move |secret| secret.until.is_none_or(|until| now < until));
        good.map(|secret| secret.text.as_str())
    }

    /// Stands for the endpoint as it is now: 16 hexadecimal digits, others after every change.
    #[must_use]
    pub fn etag(&self) -> String {
        super::catalogue::etag(self)
    }

    /// What it holds, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.url.len() + self.filters.iter().map(String::len).sum::<usize>()
    }
}
