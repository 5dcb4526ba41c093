//! `Authentication-Results` of hosts that are trusted (RFC 8601).
//!
//! Only the topmost field is believed, and only if it is above everything that an outside host may have written. A host does
//! not add such a field to every message, and not every host removes forged ones, so a field further down may be the
//! sender's own.

use super::Settings;
use super::headers::Headers;
use crate::limits::COMMENT_DEPTH_MAX;

/// A host's result for one method.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MethodResult {
    /// The method: `dkim`, `spf`, `dmarc`; in lower case.
    pub(super) method: String,
    /// The result: `pass`, `fail` and others; in lower case.
    pub(super) result: String,
    /// The properties that were checked, such as `header.d` and its value; in lower case except for `header.b`.
    pub(super) properties: Vec<(String, String)>,
}

impl MethodResult {
    /// The value of a property.
    pub(super) fn property(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A property that is a domain, or the domain of an address.
    pub(super) fn domain(&self, name: &str) -> Option<&str> {
        self.property(name).map(|value| value.rsplit_once('@').map_or(value, |(_, domain)| domain))
    }
}

/// Returns the trusted host's results by method, in its order; `None` if no trusted host's field counts.
pub(super) fn of(headers: &Headers<'_>, settings: &Settings) -> Option<Vec<MethodResult>> {
    let field = headers
        .fields
        .iter()
        .take_while(|field| field.name != "received" || is_internal(&field.bare(), settings))
        .find(|field| field.name == "authentication-results")?;
    let (host, results) = read(&field.text())?;
    is_trusted(&host, settings).then_some(results)
}

fn is_trusted(host: &str, settings: &Settings) -> bool {
    settings.trusted_hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
}

/// Returns true if a trusted host wrote the `Received` field for an internal hop over LMTP, which outside hosts cannot use.
fn is_internal(bare: &str, settings: &Settings) -> bool {
    let clauses = bare.split(';').next().unwrap_or_default();
    let words: Vec<&str> = clauses.split_whitespace().collect();
    let after = |name: &str| {
        let at = words.iter().position(|word| word.eq_ignore_ascii_case(name))?;
        words.get(at + 1).copied()
    };
    let lmtp = |protocol: &str| protocol.to_ascii_uppercase().contains("LMTP");
    after("by").is_some_and(|host| is_trusted(host, settings)) && after("with").is_some_and(lmtp)
}

/// Returns a field's host and its results; `None` unless the value has the grammar of RFC 8601, 2.2.
fn read(value: &str) -> Option<(String, Vec<MethodResult>)> {
    let mut reader = Reader { rest: value };
    reader.space()?;
    let host = reader.value()?.to_ascii_lowercase();
    if reader.space()? && reader.rest.starts_with(|c: char| c.is_ascii_digit()) {
        let version = reader.token()?;
        if version != "1" {
            return None;
        }
        reader.space()?;
    }
    let mut results = Vec::new();
    while !reader.rest.is_empty() {
        reader.character(';')?;
        reader.space()?;
        let method = reader.token()?.to_ascii_lowercase();
        reader.space()?;
        if method == "none" && results.is_empty() && reader.rest.is_empty() {
            return Some((host, results));
        }
        results.push(reader.result(method)?);
    }
    (!results.is_empty()).then_some((host, results))
}

/// The unread rest of a value. Each method returns `None` if the expected part does not follow.
struct Reader<'v> {
    rest: &'v str,
}

impl<'v> Reader<'v> {
    /// Skips spaces and comments; returns true if there were any.
    fn space(&mut self) -> Option<bool> {
        let before = self.rest.len();
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if !self.rest.starts_with('(') {
                return Some(self.rest.len() < before);
            }
            self.comment()?;
        }
    }

    fn comment(&mut self) -> Option<()> {
        let (mut depth, mut escaped) = (0_usize, false);
        for (at, character) in self.rest.char_indices() {
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth > COMMENT_DEPTH_MAX {
                return None;
            }
            if depth == 0 {
                self.rest = &self.rest[at + 1..];
                return Some(());
            }
        }
        None
    }

    fn character(&mut self, wanted: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }

    fn run(&mut self, of: impl Fn(char) -> bool) -> &'v str {
        let end = self.rest.find(|c| !of(c)).unwrap_or(self.rest.len());
        let (run, rest) = self.rest.split_at(end);
        self.rest = rest;
        run
    }

    fn token(&mut self) -> Option<&'v str> {
        Some(self.run(in_token)).filter(|token| !token.is_empty())
    }

    fn quoted(&mut self) -> Option<String> {
        let (mut text, mut escaped) = (String::new(), false);
        for (at, character) in self.rest.char_indices().skip(1) {
            match character {
                _ if escaped => {
                    escaped = false;
                    text.push(character);
                }
                '\\' => escaped = true,
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(text);
                }
                _ => text.push(character),
            }
        }
        None
    }

    /// A token, or a text in quotes.
    fn value(&mut self) -> Option<String> {
        if self.rest.starts_with('"') { self.quoted() } else { self.token().map(str::to_owned) }
    }

    /// A value, an address, or a domain after an `@`.
    fn property_value(&mut self) -> Option<String> {
        if self.rest.starts_with('"') {
            return self.quoted();
        }
        let first = self.run(in_local_part);
        if self.character('@').is_some() {
            let domain = self.run(|c| c.is_ascii_alphanumeric() || ".-_".contains(c));
            return (!domain.is_empty()).then(|| format!("{first}@{domain}"));
        }
        (!first.is_empty() && first.chars().all(in_token)).then(|| first.to_owned())
    }

    /// The result after a method, up to the next `;` or the end.
    fn result(&mut self, method: String) -> Option<MethodResult> {
        if self.character('/').is_some() {
            self.space()?;
            self.token().filter(|version| *version == "1")?;
            self.space()?;
        }
        self.character('=')?;
        self.space()?;
        let result = self.token()?.to_ascii_lowercase();
        let mut found = MethodResult { method, result, properties: Vec::new() };
        while self.space()? {
            if self.rest.is_empty() || self.rest.starts_with(';') {
                break;
            }
            let kind = self.run(|c| in_token(c) && c != '.').to_ascii_lowercase();
            self.space()?;
            let reason = kind == "reason" && found.properties.is_empty();
            let name = if reason { kind } else { self.name_below(&kind)? };
            self.space()?;
            self.character('=')?;
            self.space()?;
            let value = self.property_value()?;
            let value = if name == "header.b" { value } else { value.to_ascii_lowercase() };
            found.properties.push((name, value));
        }
        (self.rest.is_empty() || self.rest.starts_with(';')).then_some(found)
    }

    /// The name of a property below its kind.
    fn name_below(&mut self, kind: &str) -> Option<String> {
        self.character('.')?;
        self.space()?;
        let name = self.token()?.to_ascii_lowercase();
        (!kind.is_empty()).then(|| format!("{kind}.{name}"))
    }
}

/// Source: RFC 2045, 5.1.
fn in_token(c: char) -> bool {
    c.is_ascii_graphic() && !"()<>@,;:\\\"/[]?=".contains(c)
}

/// Source: RFC 5322, 3.2.3.
fn in_local_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(value: &str) -> Option<String> {
        let (host, results) = read(value)?;
        let results = results.iter().map(|one| {
            let properties: Vec<_> =
                one.properties.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            format!("; {}={}{}", one.method, one.result, properties.concat())
        });
        Some(format!("{host}{}", results.collect::<Vec<_>>().concat()))
    }

    #[test]
    fn what_has_the_grammar_is_read() {
        let rows = [
            ("mx.acme.example; none", "mx.acme.example"),
            (" mx.acme.example 1; none ", "mx.acme.example"),
            ("(a (b\\)) c) \"MX.acme.example\" (x) 1 ; none", "mx.acme.example"),
            (
                "mx.google.com; dkim=pass header.i=@Acme.example header.s=s1 header.b=\"Ab/c+\"; spf=pass (google.com: \
                 domain of kim@acme.example designates 192.0.2.1 as permitted sender) smtp.mailfrom=kim+a=b@acme.example; \
                 dmarc=pass (p=REJECT sp=REJECT dis=NONE) header.from=acme.example",
                "mx.google.com; dkim=pass header.i=@acme.example header.s=s1 header.b=Ab/c+; \
                 spf=pass smtp.mailfrom=kim+a=b@acme.example; dmarc=pass header.from=acme.example",
            ),
            (
                "a.example; DKIM/1 = Pass reason=\"good, it is\" header . d = b.example",
                "a.example; dkim=pass reason=good, it is header.d=b.example",
            ),
        ];
        for (value, wanted) in rows {
            assert_eq!(words(value).as_deref(), Some(wanted), "{value}");
        }
    }

    #[test]
    fn what_has_not_says_nothing() {
        let rows = [
            "",
            "mx.acme.example",
            "mx.acme.example;",
            "mx.acme.example; dkim=pass;",
            "mx.acme.example; none; dkim=pass",
            "mx.acme.example 2; dkim=pass",
            "mx.acme.example 1 foo bar; dkim=pass",
            "\"mx.acme.example\" evil; dkim=pass",
            "mx.acme.example; dkim/2=pass",
            "mx.acme.example; dkim=pass header.d",
            "mx.acme.example; dkim=pass header.d=b/c",
            "mx.acme.example; dkim=pass \"x\"",
            "mx.acme.example (open; dkim=pass",
            "mx.acme.example; dkim=pass header.d=\"open",
            "spf=pass smtp.mailfrom=a.example; dkim=pass",
        ];
        for value in rows {
            assert_eq!(words(value), None, "{value}");
        }
    }
}
