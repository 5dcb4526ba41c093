//! Addresses: of the sender, and of the recipients, among which ours is looked for.

use std::fmt;

use super::Unusable;
use super::headers::{Headers, without_comments};
use crate::limits::{ADDRESS_BYTES_MAX, ADDRESSES_MAX};

/// An address of mail, with its domain in the one form that can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// The whole address: the local part as it was written, `@`, the domain in lower case and ASCII.
    pub text: String,
    /// The domain alone.
    pub domain: String,
}

impl Address {
    /// Reads an address without a name. `None` if it is invalid, has a quoted local part or is an address literal.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (local, domain) = text.trim().rsplit_once('@')?;
        let odd =
            |c: char| c.is_whitespace() || c.is_control() || "()<>[]:;@\\,\"".contains(c) || invisible(c);
        let dots = local.starts_with('.') || local.ends_with('.') || local.contains("..");
        if local.is_empty() || dots || local.chars().any(odd) {
            return None;
        }
        let domain = domain_in_ascii(domain)?;
        let text = format!("{local}@{domain}");
        (text.len() <= ADDRESS_BYTES_MAX).then_some(Self { text, domain })
    }

    /// The part before the `@`.
    #[must_use]
    pub fn local(&self) -> &str {
        self.text.strip_suffix(&self.domain).and_then(|rest| rest.strip_suffix('@')).unwrap_or_default()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns true if a character is invisible, or changes where others are shown.
pub(super) fn invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'
            ..='\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'
            ..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// A domain in lower case and ASCII (RFC 5891), without a dot at its end. `None` unless it is a name of several labels.
pub(super) fn domain_in_ascii(domain: &str) -> Option<String> {
    let domain = domain.trim().trim_end_matches('.');
    if domain.len() > ADDRESS_BYTES_MAX || domain.chars().any(invisible) {
        return None;
    }
    let ascii = idna::domain_to_ascii_strict(domain).ok()?;
    let label = |label: &str| {
        !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    (ascii.contains('.') && ascii.split('.').all(label)).then_some(ascii)
}

/// The one mailbox of the one `From`. Refuses everything but plainly one mailbox: names that look like addresses do not
/// count, and lists, groups and routes are not parsed.
pub(super) fn the_sender(headers: &Headers<'_>) -> Result<Address, Unusable> {
    let mut all = headers.all("from");
    let field = all.next().ok_or(Unusable::NoFrom)?;
    if all.next().is_some() {
        return Err(Unusable::SeveralFrom);
    }
    let text = std::str::from_utf8(field.value).map_err(|_| Unusable::BadFrom)?;
    let text = text.replace(['\r', '\n'], "");
    let mailboxes = split(&text, ',');
    let mailbox = match &mailboxes[..] {
        [] => return Err(Unusable::NoFrom),
        [one] => one,
        _ => return Err(Unusable::SeveralFrom),
    };
    if split(&text, ';').len() > 1 || outside_quotes(mailbox, ':') {
        return Err(Unusable::BadFrom);
    }
    Address::parse(&of_mailbox(mailbox).ok_or(Unusable::BadFrom)?).ok_or(Unusable::BadFrom)
}

/// The address of a mailbox: the content of its one pair of angle brackets, or all of it.
fn of_mailbox(mailbox: &str) -> Option<String> {
    let bare = without_quotes(&without_comments(mailbox));
    if !bare.contains(['<', '>']) {
        // A quoted local part leaves a gap here, which no address has.
        return Some(bare.trim().to_owned());
    }
    let (name, rest) = bare.split_once('<')?;
    let (address, behind) = rest.split_once('>')?;
    let plain = !name.contains('>') && behind.trim().is_empty() && !address.contains('<');
    plain.then(|| address.trim().to_owned())
}

/// A text with a gap for everything in double quotes.
fn without_quotes(text: &str) -> String {
    let (mut bare, mut quoted, mut escaped) = (String::new(), false, false);
    for c in text.chars() {
        if c == '"' && !escaped {
            quoted = !quoted;
            bare.push(' ');
        } else if !quoted {
            bare.push(c);
        }
        escaped = !escaped && c == '\\' && quoted;
    }
    bare
}

fn outside_quotes(text: &str, character: char) -> bool {
    without_quotes(&without_comments(text)).contains(character)
}

/// The parts of a list, split at a character outside of quotes, comments and angle brackets. Empty parts are dropped.
fn split(text: &str, character: char) -> Vec<String> {
    let bare = without_comments(text);
    let (mut parts, mut part) = (Vec::new(), String::new());
    let (mut quoted, mut escaped, mut angle) = (false, false, false);
    for c in bare.chars() {
        match c {
            '"' if !escaped => quoted = !quoted,
            '<' if !quoted => angle = true,
            '>' if !quoted => angle = false,
            _ => {}
        }
        if c == character && !quoted && !angle {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(c);
        }
        escaped = !escaped && c == '\\' && quoted;
    }
    parts.push(part);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// The addresses in a field that lists them, as far as they can be read. For finding our own among them, never as proof of
/// the sender.
pub(super) fn listed(text: &str) -> Result<Vec<Address>, Unusable> {
    let mut found = Vec::new();
    for mailbox in split(text, ',').iter().flat_map(|part| split(part, ';')) {
        if found.len() >= ADDRESSES_MAX {
            return Err(Unusable::TooManyAddresses);
        }
        found.extend(of_mailbox(behind_group(&mailbox)).and_then(|address| Address::parse(&address)));
    }
    Ok(found)
}

/// The text after the name of a group. A colon within quotes belongs to a person's name.
fn behind_group(mailbox: &str) -> &str {
    let (mut behind, mut quoted, mut escaped) = (0, false, false);
    for (at, c) in mailbox.char_indices() {
        match c {
            '"' if !escaped => quoted = !quoted,
            ':' if !quoted => behind = at + 1,
            _ => {}
        }
        escaped = !escaped && c == '\\' && quoted;
    }
    &mailbox[behind..]
}
