//! `Authentication-Results` of hosts that are trusted (RFC 8601).

use super::Settings;
use super::headers::{Field, Headers, without_comments};
use crate::limits::RESULTS_FIELDS_MAX;

/// What a host says of one method.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// The method: `dkim`, `spf`, `dmarc`.
    pub(super) method: String,
    /// What came out: `pass`, `fail` and others.
    pub(super) result: String,
    /// What it was found for, such as `header.d` and its value; in lower case but for `header.b`.
    pub(super) properties: Vec<(String, String)>,
}

impl Told {
    /// The value of a property.
    pub(super) fn property(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A property that is a domain, or the domain of an address.
    pub(super) fn domain(&self, name: &str) -> Option<&str> {
        self.property(name).map(|value| value.rsplit_once('@').map_or(value, |(_, domain)| domain))
    }
}

/// Fields that a host writes between two results of its own.
const BETWEEN: &[&str] = &["received-spf", "dkim-filter"];

/// What the trusted host says: the topmost run of its fields. Of each method the first field of the run that speaks of it
/// counts, so that what somebody has put directly below cannot add a result that the host has not given. Nothing where
/// no field of a trusted host is there.
pub(super) fn of(headers: &Headers<'_>, settings: &Settings) -> Option<Vec<Told>> {
    let trusted = |field: &Field<'_>| {
        let host = host(&field.bare());
        let known = settings.trusted_hosts.iter().any(|known| known.eq_ignore_ascii_case(&host));
        (field.name == "authentication-results" && known).then_some(host)
    };
    let at = headers.fields.iter().position(|field| trusted(field).is_some())?;
    let name = trusted(&headers.fields[at]);
    let run = headers.fields[at..]
        .iter()
        .take_while(|field| BETWEEN.contains(&field.name.as_str()) || trusted(field) == name)
        .filter(|field| field.name == "authentication-results")
        .take(RESULTS_FIELDS_MAX);
    let mut heard: Vec<Told> = Vec::new();
    for field in run {
        let told = read(&field.text());
        if told.is_empty() {
            // The host found nothing, and said so: what stands below is not its word.
            break;
        }
        let fresh: Vec<Told> =
            told.into_iter().filter(|it| !heard.iter().any(|known| known.method == it.method)).collect();
        heard.extend(fresh);
    }
    Some(heard)
}

/// The name at the beginning of a field's value.
fn host(bare: &str) -> String {
    let first = bare.split(';').next().unwrap_or_default();
    first.split_whitespace().next().unwrap_or_default().trim_matches('"').to_ascii_lowercase()
}

/// The results in a field's value. What cannot be read says nothing.
fn read(value: &str) -> Vec<Told> {
    let bare = without_comments(value);
    if bare.contains('"') && quoted_signs(&bare) {
        return Vec::new();
    }
    bare.split(';').skip(1).filter_map(result).collect()
}

/// Whether quotes hide a sign that divides results: such a value is not taken apart.
fn quoted_signs(bare: &str) -> bool {
    bare.split('"').skip(1).step_by(2).any(|quoted| quoted.contains([';', '=', ' ']))
}

fn result(text: &str) -> Option<Told> {
    let text = text.replace(" =", "=").replace("= ", "=");
    let mut words = text.split_whitespace();
    let (method, result) = words.next()?.split_once('=')?;
    let method = method.split('/').next().unwrap_or_default().to_ascii_lowercase();
    let mut told = Told { method, result: result.to_ascii_lowercase(), properties: Vec::new() };
    for word in words {
        if let Some((name, value)) = word.split_once('=') {
            let (name, value) = (name.to_ascii_lowercase(), value.trim_matches('"'));
            let value = if name == "header.b" { value.to_owned() } else { value.to_ascii_lowercase() };
            told.properties.push((name, value));
        }
    }
    Some(told)
}
