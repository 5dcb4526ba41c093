//! Pagination of lists: page sizes and page tokens.

use prost::Message;
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_api::v1;
use switchward_machine::Digest;
use switchward_query::limits::LOOKED_AT_MAX;
use switchward_query::{Bounds, Compared, Entry, List, Rows, Scan};
use switchward_state::RowKind;

use crate::api::Call;
use crate::error::Refusal;
use crate::readable::{Readable, readable};
use crate::refusals::unreadable;
use crate::scans::{Pace, Share};

/// Entries of a page if the caller does not say.
const PAGE_DEFAULT: usize = 50;
/// Entries of a page at most.
const PAGE_MAX: usize = 1_000;
/// Bytes of a page; beyond it the page is shorter. Well below what clients take as one message.
pub(crate) const PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Bytes of a token that authenticate the list and the position in it.
const MARK_BYTES: usize = 8;

/// One shard's part of a page.
pub(crate) struct Part<T> {
    /// Entries with their positions in the list; one more than the page takes, if there are that many.
    found: Vec<(Vec<u8>, T)>,
    /// The position at which the scan was broken off, if it was.
    broken_off: Option<Vec<u8>>,
}

impl<T> Part<T> {
    fn take(&mut self) -> Self {
        Self { found: mem::take(&mut self.found), broken_off: self.broken_off.take() }
    }
}

/// One shard's part of a page while it is being scanned.
struct Looking<L, T> {
    scan: Scan<L>,
    part: Part<T>,
    /// How many entries were read.
    looked: usize,
    /// The bytes of what was found.
    bytes: usize,
}

/// A page of a list that every shard keeps a part of.
pub(crate) struct Listed<T> {
    pub(crate) entries: Vec<T>,
    /// The token of the next page; empty on the last one.
    pub(crate) next_page_token: String,
    /// The names of the shards whose entries the page lacks, because they could not be read.
    pub(crate) unreachable: Vec<String>,
}

/// One page, as it was asked for.
pub(crate) struct Page {
    pub(crate) size: usize,
    /// The entry that the page before ended with; its bytes after the list's own prefix.
    pub(crate) after: Option<Vec<u8>>,
    list: Digest,
}

impl Page {
    /// Reads `page_size` and `page_token`; `list` names what is listed, filter and tenant included, so that a token
    /// is good for its own list only.
    pub(crate) fn read(size: u32, token: &str, list: &[&str]) -> Result<Self, Refusal> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > PAGE_MAX {
            return Err(Refusal::field("page_size", format!("must be at most {PAGE_MAX}")));
        }
        let parts: Vec<&[u8]> = list.iter().map(|part| part.as_bytes()).collect();
        let list = Digest::of_parts(&parts);
        let bad = || Refusal::field("page_token", "is not a page token of this list");
        let after = match token {
            "" => None,
            token => {
                let bytes = unhex(token).ok_or_else(bad)?;
                let (found, after) = bytes.split_at_checked(MARK_BYTES).ok_or_else(bad)?;
                if found != mark(list, after) {
                    return Err(bad());
                }
                Some(after.to_vec())
            }
        };
        let size = if size == 0 { PAGE_DEFAULT } else { size };
        Ok(Self { size, after, list })
    }

    /// Returns the page of these entries, which have their positions in the list and may be in any order, and the token of
    /// the next page.
    pub(crate) fn cut<T: Message>(&self, mut found: Vec<(Vec<u8>, T)>) -> (Vec<T>, String) {
        found.retain(|(position, _)| self.after.as_ref().is_none_or(|after| position > after));
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut bytes = 0;
        let within = found.iter().take(self.size).take_while(|(_, entry)| {
            bytes += entry.encoded_len();
            bytes <= PAGE_BYTES_MAX
        });
        // An entry that is too large for any page is one alone.
        let count = within.count().max(1);
        let more = found.len() > count;
        found.truncate(count);
        let last = found.last().filter(|_| more).map(|(position, _)| self.token(position));
        (found.into_iter().map(|(_, entry)| entry).collect(), last.unwrap_or_default())
    }

    /// Returns a page of a list that every shard keeps as an index. `show` converts what an entry is about. The list reads
    /// rows, so it is scanned on a blocking thread. A shard that cannot be read at present is left out, unless none can.
    pub(crate) async fn of_shards<L: List + Send + Sync + 'static, T: Message + 'static>(
        self,
        call: &Call<'_>,
        list: L,
        show: impl Fn(&Call<'_>, L::Item) -> T + Send + Sync + 'static,
    ) -> Result<Listed<T>, Refusal> {
        let scan = call.api.scans.begin(call.caller.tenant).await?;
        let (list, page) = (Arc::new(list), Arc::new((self, show)));
        let Readable { readers, unreachable } = readable(&call.api.cluster).await?;
        let (count, mut parts) = (readers.len(), Vec::new());
        for rows in readers {
            let part = Part { found: Vec::new(), broken_off: None };
            let one = Scan::new(Arc::clone(&list), rows, page.0.after.as_deref());
            let (page, mut looking) = (Arc::clone(&page), Looking { scan: one, part, looked: 0, bytes: 0 });
            let look = move |call: &Call<'_>, share: &mut Share| {
                let (page, show) = &*page;
                let ended = page.go_on(&mut looking, share, |item| show(call, item))?;
                Ok(if ended { ControlFlow::Break(looking.part.take()) } else { ControlFlow::Continue(()) })
            };
            parts.push(call.in_slices(scan.share(count), look).await?);
        }
        let (entries, next_page_token) = page.0.merge(parts);
        Ok(Listed { entries, next_page_token, unreachable })
    }

    /// Continues the scan of one shard's index; returns true if the part is complete.
    fn go_on<L: List, T: Message>(
        &self,
        looking: &mut Looking<L, T>,
        share: &mut Share,
        show: impl Fn(L::Item) -> T,
    ) -> Result<bool, Refusal> {
        loop {
            if looking.scan.is_empty() && !self.read_on(looking)? {
                return Ok(true);
            }
            while let Some(Entry { position, item }) = looking.scan.pick_next().map_err(unreadable)? {
                let picked = item.map(&show);
                looking.bytes += picked.as_ref().map_or(0, Message::encoded_len);
                let (pace, part) = (share.pace()?, &mut looking.part);
                if looking.bytes > PAGE_BYTES_MAX || pace == Pace::Ends {
                    part.broken_off = Some(position.clone());
                }
                part.found.extend(picked.map(|picked| (position, picked)));
                if part.broken_off.is_some() || pace == Pace::Rests {
                    return Ok(part.broken_off.is_some());
                }
            }
        }
    }

    /// Reads the next entries of the index, if there are any and more are wanted.
    fn read_on<L: List, T>(&self, looking: &mut Looking<L, T>) -> Result<bool, Refusal> {
        let Looking { scan, part, looked, .. } = looking;
        if part.found.len() > self.size {
            return Ok(false);
        }
        if *looked >= LOOKED_AT_MAX {
            part.broken_off = scan.position();
            return Ok(false);
        }
        let read = scan.read_on(self.size.saturating_add(1)).map_err(unreadable)?;
        *looked += read;
        Ok(read > 0)
    }

    /// The page that all shards' parts make together, and the token of the next page.
    pub(crate) fn merge<T: Message>(&self, parts: Vec<Part<T>>) -> (Vec<T>, String) {
        let mut found = Vec::new();
        let mut cut: Option<Vec<u8>> = None;
        for part in parts {
            found.extend(part.found);
            cut = match (cut, part.broken_off) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        let Some(cut) = cut else { return self.cut(found) };
        // No entry beyond the position at which one shard's part was broken off may be shown before that part goes on.
        found.retain(|(position, _)| *position <= cut);
        let (entries, token) = self.cut(found);
        let token = if token.is_empty() { self.token(&cut) } else { token };
        (entries, token)
    }

    /// The token of the page after an entry.
    pub(crate) fn token(&self, last: &[u8]) -> String {
        mark(self.list, last).iter().chain(last).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The part of a list of the catalogue that the page shows.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { after: self.after.clone(), size: u32::try_from(self.size).unwrap_or(u32::MAX) }
    }

    /// The page that rows of the catalogue make, and the token of the next page.
    pub(crate) fn shown<R: RowKind, T>(&self, found: &Rows<R>, show: impl Fn(&R) -> T) -> (Vec<T>, String) {
        let token = found.next.as_deref().map(|next| self.token(next)).unwrap_or_default();
        (found.rows.iter().map(|row| show(row)).collect(), token)
    }
}

/// Binds a position to its list, so that a token is valid for that list only.
fn mark(list: Digest, position: &[u8]) -> [u8; MARK_BYTES] {
    let mut mark = [0u8; MARK_BYTES];
    mark.copy_from_slice(&Digest::of_parts(&[&list.0, position]).0[..MARK_BYTES]);
    mark
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() > 1024 || !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// The operators of filters. Longer ones come before their prefixes.
const OPERATORS: [(&str, Compared); 5] = [
    ("<=", Compared::LessOrEqual),
    (">=", Compared::GreaterOrEqual),
    ("<", Compared::Less),
    (">", Compared::Greater),
    ("=", Compared::Equal),
];

/// One term of a filter: `name`, how it compares, and the value.
pub(crate) type Term = (String, Compared, String);

fn bad_filter() -> Refusal {
    Refusal::field("filter", "must be terms like status=\"waiting\", joined by AND")
}

/// A filter whose terms may compare otherwise than by `=`, such as `create_time>"2026-01-01T00:00:00Z"`.
pub(crate) fn terms(text: &str) -> Result<Vec<Term>, Refusal> {
    let mut terms = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let at = rest.find(['<', '>', '=']).ok_or_else(bad_filter)?;
        let (name, after) = rest.split_at(at);
        let operator = OPERATORS
            .iter()
            .find_map(|(operator, compared)| Some((after.strip_prefix(operator)?, *compared)));
        let (after, compared) = operator.ok_or_else(bad_filter)?;
        let (value, after) = quoted_value(after.trim_start()).ok_or_else(bad_filter)?;
        terms.push((name.trim().to_owned(), compared, value));
        rest = after.trim();
        if !rest.is_empty() {
            rest = rest
                .strip_prefix("AND")
                .filter(|rest| rest.starts_with(char::is_whitespace))
                .ok_or_else(bad_filter)?
                .trim();
            if rest.is_empty() {
                return Err(bad_filter());
            }
        }
    }
    Ok(terms)
}

/// The value in quotes that a text begins with, and the rest. `\"` is a quote in the value and `\\` a backslash; before any
/// other character a backslash is itself. Returns `None` without an opening or a closing quote.
fn quoted_value(text: &str) -> Option<(String, &str)> {
    let rest = text.strip_prefix('"')?;
    let (mut value, mut after_backslash) = (String::new(), false);
    for (at, c) in rest.char_indices() {
        match c {
            '"' | '\\' if after_backslash => {
                value.pop();
                value.push(c);
                after_backslash = false;
            }
            '"' => return Some((value, &rest[at + 1..])),
            c => {
                value.push(c);
                after_backslash = c == '\\';
            }
        }
    }
    None
}

/// A filter of `name="value"` terms alone, joined by ` AND `.
pub(crate) fn filter(text: &str) -> Result<Vec<(String, String)>, Refusal> {
    let equal = |(name, compared, value): Term| match compared {
        Compared::Equal => Ok((name, value)),
        Compared::Less | Compared::LessOrEqual | Compared::Greater | Compared::GreaterOrEqual => {
            Err(Refusal::field("filter", format!("may compare {name} only by =")))
        }
    };
    terms(text)?.into_iter().map(equal).collect()
}

/// Checks `order_by` of a list that has one order, such as `create_time desc`.
///
/// # Errors
/// FIELD_INVALID for any other.
pub(crate) fn order(text: &str, known: &str) -> Result<(), Refusal> {
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let spelled_out = said.strip_suffix(" asc").filter(|name| !name.contains(' '));
    if said.is_empty() || spelled_out.unwrap_or(&said) == known {
        return Ok(());
    }
    Err(Refusal::field("order_by", format!("is not supported; this list has the order {known}")))
}

/// The refusal of a filter's word that the list does not know.
pub(crate) fn unknown_term(name: &str, known: &str) -> Refusal {
    Refusal::field("filter", format!("does not support {name}; it supports {known}"))
}

/// The decision that a term of a filter names.
pub(crate) fn decision_named(word: &str) -> Result<v1::ToolDecision, Refusal> {
    match word {
        "allow" => Ok(v1::ToolDecision::Allow),
        "deny" => Ok(v1::ToolDecision::Deny),
        "ask" => Ok(v1::ToolDecision::Ask),
        other => Err(unknown_term(other, "allow, ask and deny")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The terms of a filter, with their values.
    fn read(text: &str) -> Option<Vec<(String, String)>> {
        filter(text).ok()
    }

    #[test]
    fn a_value_may_have_any_character_and_a_quote_is_escaped() {
        for (written, value) in [
            (r#"definition="Contract Review""#, "Contract Review"),
            (r#"definition="50 % AND more""#, "50 % AND more"),
            (r#"definition="a=b<c""#, "a=b<c"),
            (r#"definition="the \"big\" one""#, r#"the "big" one"#),
            (r#"definition="a\\""#, r"a\"),
            (r#"definition="a\\\"b""#, r#"a\"b"#),
            (r#"definition="C:\temp""#, r"C:\temp"),
            (r#"definition="\u{5408}\u{540c}""#, r"\u{5408}\u{540c}"),
            ("definition=\"合同 v1.2\"", "合同 v1.2"),
            (r#"definition="""#, ""),
        ] {
            let wanted = vec![("definition".to_owned(), value.to_owned())];
            assert_eq!(read(written), Some(wanted), "{written}");
        }
    }

    #[test]
    fn terms_after_an_escaped_quote_are_read() {
        let terms = read(r#"definition="a\"" AND status="waiting""#).expect("a filter");
        assert_eq!(terms[0].1, "a\"");
        assert_eq!(terms[1], ("status".to_owned(), "waiting".to_owned()));
    }

    #[test]
    fn a_value_without_its_quotes_is_refused() {
        for text in ["definition=a", r#"definition="a"#, r#"definition="a\""#, r#"definition="a" b"#] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
