//! The header section, read line by line: the parsers after this must read the same as was checked here.

use std::borrow::Cow;

use mail_parser::parsers::MessageStream;

use super::Unusable;
use crate::limits::{
    HEADER_BYTES_MAX, HEADER_SECTION_BYTES_MAX, HEADERS_MAX, MESSAGE_ID_BYTES_MAX, MESSAGE_IDS_MAX,
    SUBJECT_BYTES_MAX,
};

/// Fields that may occur once (RFC 5322 §3.6, RFC 2045 §3).
const SINGLE: &[&str] = &[
    "from",
    "sender",
    "reply-to",
    "to",
    "cc",
    "bcc",
    "date",
    "subject",
    "message-id",
    "in-reply-to",
    "references",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
    "content-disposition",
];

/// A header field; its value is not decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field<'r> {
    /// Its name in lower case.
    pub(super) name: String,
    /// The text after the colon, with its folds and the end of its last line.
    pub(super) value: &'r [u8],
}

impl Field<'_> {
    /// The value on one line, as far as it is UTF-8.
    pub(super) fn text(&self) -> String {
        let text = String::from_utf8_lossy(self.value).replace(['\r', '\n'], "");
        text.trim().to_owned()
    }

    /// The value without comments, on one line.
    pub(super) fn bare(&self) -> String {
        without_comments(&self.text())
    }
}

/// The fields of a message.
#[derive(Debug)]
pub(super) struct Headers<'r> {
    /// In the order of the message.
    pub(super) fields: Vec<Field<'r>>,
    /// Where the first field begins: behind the line that some mailboxes put before it.
    pub(super) begins_at: usize,
    /// Where the body begins.
    pub(super) body_at: usize,
    /// Whether every line was a field or a part of one.
    well_formed: bool,
}

/// The message with CRLF line ends. A message without any was stored with bare line feeds, which are converted; every other
/// is left alone.
pub(super) fn with_line_ends(raw: &[u8]) -> Cow<'_, [u8]> {
    if raw.contains(&b'\r') {
        return Cow::Borrowed(raw);
    }
    let mut all = Vec::with_capacity(raw.len() + raw.len() / 32);
    for line in raw.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => {
                all.extend_from_slice(line);
                all.extend_from_slice(b"\r\n");
            }
            None => all.extend_from_slice(line),
        }
    }
    Cow::Owned(all)
}

impl<'r> Headers<'r> {
    /// Reads the header section.
    pub(super) fn of(raw: &'r [u8]) -> Result<Self, Unusable> {
        let mut at = 0;
        if raw.starts_with(b"From ") || raw.starts_with(b">From ") {
            at = line_end(raw, 0);
        }
        let mut headers = Self { fields: Vec::new(), begins_at: at, body_at: raw.len(), well_formed: true };
        while at < raw.len() {
            if at - headers.begins_at > HEADER_SECTION_BYTES_MAX {
                return Err(Unusable::TooManyHeaders);
            }
            let mut end = line_end(raw, at);
            let line = &raw[at..end];
            if line == b"\r\n" || line == b"\n" {
                headers.body_at = end;
                break;
            }
            while end < raw.len() && matches!(raw[end], b' ' | b'\t') {
                end = line_end(raw, end);
            }
            headers.add(&raw[at..end])?;
            at = end;
        }
        if headers.fields.is_empty() { Err(Unusable::Malformed) } else { Ok(headers) }
    }

    fn add(&mut self, field: &'r [u8]) -> Result<(), Unusable> {
        if self.fields.len() >= HEADERS_MAX || field.len() > HEADER_BYTES_MAX {
            return Err(Unusable::TooManyHeaders);
        }
        let colon = field.iter().position(|byte| *byte == b':').filter(|colon| *colon > 0);
        let named = colon.filter(|colon| field[..*colon].iter().all(u8::is_ascii_graphic));
        // Other parsers read a line differently if it ends otherwise than the rest, or holds what ends a line for them.
        let ends = field.ends_with(b"\r\n");
        let odd = field.contains(&0) || lone(field);
        self.well_formed &= ends && !odd && named.is_some();
        if let Some(colon) = named {
            let name = String::from_utf8_lossy(&field[..colon]).to_ascii_lowercase();
            self.fields.push(Field { name, value: &field[colon + 1..] });
        }
        Ok(())
    }

    /// Refuses ambiguous headers.
    pub(super) fn check(&self) -> Result<(), Unusable> {
        if !self.well_formed {
            return Err(Unusable::Malformed);
        }
        if SINGLE.iter().any(|name| self.all(name).nth(1).is_some()) {
            return Err(Unusable::DuplicateHeader);
        }
        Ok(())
    }

    /// Every field of a name, which is in lower case.
    pub(super) fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Field<'r>> {
        self.fields.iter().filter(move |field| field.name == name)
    }

    /// Returns the first field of this name from the top; `None` if there is none. The name is in lower case.
    pub(super) fn first(&self, name: &str) -> Option<&Field<'r>> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The first field of a name on one line without comments, in lower case; empty if there is none.
    pub(super) fn word(&self, name: &str) -> String {
        self.first(name).map(|field| field.bare().to_ascii_lowercase()).unwrap_or_default()
    }

    /// The message ids in the first field of a name.
    pub(super) fn ids(&self, name: &str) -> Vec<String> {
        let Some(field) = self.first(name) else { return Vec::new() };
        let text = field.text();
        let ids = text.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(id, _)| id.trim());
        let good = |id: &&str| {
            id.len() <= MESSAGE_ID_BYTES_MAX
                && !id.is_empty()
                && !id.chars().any(|c| c.is_whitespace() || c.is_control())
        };
        ids.filter(good).take(MESSAGE_IDS_MAX).map(str::to_owned).collect()
    }

    /// The subject, decoded and on one line.
    pub(super) fn subject(&self) -> String {
        let Some(field) = self.first("subject") else { return String::new() };
        let value = MessageStream::new(field.value).parse_unstructured();
        let text = value.as_text().unwrap_or_default();
        let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        cut(line.collect::<String>().trim(), SUBJECT_BYTES_MAX)
    }
}

/// The beginning of a text, at most this many bytes.
pub(super) fn cut(text: &str, bytes_max: usize) -> String {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// The end of the line that begins here, after its line feed.
fn line_end(raw: &[u8], at: usize) -> usize {
    raw[at..].iter().position(|byte| *byte == b'\n').map_or(raw.len(), |found| at + found + 1)
}

/// Returns true if there is a carriage return or a line feed here without the other.
fn lone(field: &[u8]) -> bool {
    let mut before = 0;
    for byte in field {
        if (*byte == b'\n') != (before == b'\r') {
            return true;
        }
        before = *byte;
    }
    before == b'\r'
}

/// A value without its comments, which are in parentheses outside of quotes (RFC 5322 §3.2.2).
pub(super) fn without_comments(text: &str) -> String {
    let (mut bare, mut depth, mut quoted, mut escaped) = (String::new(), 0_usize, false, false);
    for c in text.chars() {
        let skip = match c {
            _ if escaped => depth > 0,
            '(' if !quoted => {
                depth += 1;
                true
            }
            ')' if !quoted && depth > 0 => {
                depth -= 1;
                true
            }
            '"' if depth == 0 => {
                quoted = !quoted;
                false
            }
            _ => depth > 0,
        };
        escaped = !escaped && c == '\\';
        if !skip {
            bare.push(c);
        }
    }
    bare.trim().to_owned()
}
