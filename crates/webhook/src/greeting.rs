//! The first message of a new sender: signed like all its messages, and not about an event. Sources: GitHub, *ping event*;
//! Slack, *url_verification*.

use serde_json::Value;

use crate::SourceKind;
use crate::headers::Headers;
use crate::limits::CHALLENGE_CHARS_MAX;

/// The header with GitHub's kind of event.
const GITHUB_EVENT: &str = "x-github-event";

/// The first message of a new sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Greeting {
    /// Checks that the receiver answers.
    Ping,
    /// Expects this text back, in the member `challenge` of a JSON object.
    Challenge(String),
}

/// Returns the greeting if a verified message is one, and `None` if it is an event.
#[must_use]
pub fn greeting(kind: SourceKind, headers: Headers<'_>, body: &Value) -> Option<Greeting> {
    match kind {
        SourceKind::Github => (headers.required(GITHUB_EVENT) == Ok("ping")).then_some(Greeting::Ping),
        SourceKind::Slack if body["type"] == "url_verification" => {
            let challenge = body["challenge"].as_str()?;
            (challenge.len() <= CHALLENGE_CHARS_MAX).then(|| Greeting::Challenge(challenge.to_owned()))
        }
        SourceKind::Slack
        | SourceKind::StandardWebhooks
        | SourceKind::Stripe
        | SourceKind::Bearer
        | SourceKind::None => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_greeting_is_distinguished_from_an_event() {
        let ping = [(GITHUB_EVENT, b"ping".as_slice())];
        let push = [(GITHUB_EVENT, b"push".as_slice())];
        let zen = json!({ "zen": "Keep it logically awesome." });
        assert_eq!(greeting(SourceKind::Github, Headers::new(&ping), &zen), Some(Greeting::Ping));
        assert_eq!(greeting(SourceKind::Github, Headers::new(&push), &zen), None);
        assert_eq!(greeting(SourceKind::Bearer, Headers::new(&ping), &zen), None);
        let asks = json!({ "type": "url_verification", "challenge": "3eZbrw1a" });
        let none = Headers::new(&[]);
        assert_eq!(greeting(SourceKind::Slack, none, &asks), Some(Greeting::Challenge("3eZbrw1a".into())));
        assert_eq!(greeting(SourceKind::Slack, none, &json!({ "type": "event_callback" })), None);
        assert_eq!(greeting(SourceKind::Stripe, none, &asks), None);
        let long = json!({ "type": "url_verification", "challenge": "x".repeat(CHALLENGE_CHARS_MAX + 1) });
        assert_eq!(greeting(SourceKind::Slack, none, &long), None);
    }
}
