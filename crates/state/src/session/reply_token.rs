//! Reply tokens: what lets somebody outside, and nobody else, send events to the state that a session stands in.
//!
//! A token names a session, a run and one entry of a node, with a code (HMAC-SHA256, its first 128 bits) under the key
//! of its tenant. So a token is made wherever it is read, needs no row and no secret of its own, and is worth nothing
//! once its node was left. See `docs/webhooks.md#with-a-reply-token`.
//!
//! What is stored holds no token: rows, the log, snapshots and backups hold a mark instead, which opens nothing. The code
//! that sends a stored text, or shows it to somebody who may read tokens, puts the tokens in with [`ReplyTokens`]. A mark
//! has a code of its own under the same key, so that nobody who writes a text can make the server put a token into it.

use hmac::Mac as _;
use serde_json::Value;
use std::fmt;
use std::str::FromStr;
use switchward_machine::{RunId, SessionId};

use crate::approval::MailKey;

/// What a token begins with.
const PREFIX: &str = "swr_";
/// What the mark of a token begins with; as long as [`PREFIX`], so that a text with marks is as long as one with tokens.
const MARK: &str = "swp_";
/// Bytes that are looked through for the four parts of a mark before its code; more than any have.
const NAMED_BYTES_MAX: usize = 256;
/// Bytes of a token's code.
const CODE_BYTES: usize = 16;

impl MailKey {
    /// The reply token of one entry of a node, of a session of the tenant with this name.
    #[must_use]
    pub fn reply_token(&self, tenant: &str, session: SessionId, run: RunId, entry: u32) -> ReplyToken {
        let mut token = ReplyToken { tenant: tenant.to_owned(), session, run, entry, code: [0; CODE_BYTES] };
        let code = self.reply_code(&token.named(PREFIX)).finalize().into_bytes();
        token.code.copy_from_slice(&code[..CODE_BYTES]);
        token
    }

    /// What is stored instead of a reply token.
    pub fn reply_mark(&self, token: &ReplyToken) -> ReplyMark {
        let mut mark = ReplyMark(token.clone());
        let code = self.reply_code(&mark.0.named(MARK)).finalize().into_bytes();
        mark.0.code.copy_from_slice(&code[..CODE_BYTES]);
        mark
    }

    /// Returns true if a mark was made with this key. Takes the same time for every code.
    fn made_mark(&self, ReplyMark(mark): &ReplyMark) -> bool {
        self.reply_code(&mark.named(MARK)).verify_truncated_left(&mark.code).is_ok()
    }

    /// Whether a reply token was made with this key. Takes the same time for every code.
    #[must_use]
    pub fn made_reply(&self, token: &ReplyToken) -> bool {
        self.reply_code(&token.named(PREFIX)).verify_truncated_left(&token.code).is_ok()
    }
}

/// A reply token, as somebody brings it: true only once [`MailKey::made_reply`] says so.
///
/// Its text is `swr_<tenant>.<session>.<run>.<entry>.<code in hex>`, of characters that need no quoting in a URL.
#[derive(Clone, PartialEq, Eq)]
pub struct ReplyToken {
    /// The tenant's name.
    pub tenant: String,
    /// The session that events are for.
    pub session: SessionId,
    /// The run that events are for.
    pub run: RunId,
    /// Which of the nodes that the run has entered, from 1.
    pub entry: u32,
    code: [u8; CODE_BYTES],
}

impl ReplyToken {
    fn named(&self, prefix: &str) -> String {
        format!("{prefix}{}.{}.{}.{}", self.tenant, self.session, self.run.0, self.entry)
    }

    /// Its text behind this prefix.
    fn text(&self, prefix: &str) -> String {
        let code: String = self.code.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}.{code}", self.named(prefix))
    }

    /// Reads its text behind this prefix.
    fn read(prefix: &str, text: &str) -> Result<Self, NoReplyToken> {
        let parts: Vec<&str> = text.strip_prefix(prefix).ok_or(NoReplyToken)?.splitn(6, '.').collect();
        let [tenant, session, run, entry, code] = parts[..] else { return Err(NoReplyToken) };
        let token = Self {
            tenant: tenant.to_owned(),
            session: session.parse().map_err(|_| NoReplyToken)?,
            run: RunId(run.parse().map_err(|_| NoReplyToken)?),
            entry: entry.parse().map_err(|_| NoReplyToken)?,
            code: bytes(code).ok_or(NoReplyToken)?,
        };
        // One token has one text: no plus signs before numbers, no capitals.
        if token.text(prefix) == text { Ok(token) } else { Err(NoReplyToken) }
    }
}

impl fmt::Display for ReplyToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(PREFIX))
    }
}

impl fmt::Debug for ReplyToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(PREFIX))
    }
}

crate::wire::as_text! { ReplyToken => "reply token", }

/// The text is not a reply token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoReplyToken;

impl FromStr for ReplyToken {
    type Err = NoReplyToken;

    fn from_str(text: &str) -> Result<Self, NoReplyToken> {
        Self::read(PREFIX, text)
    }
}

/// What stands for a reply token in what is stored: the token's text with another beginning and another code.
#[derive(Clone, PartialEq, Eq)]
pub struct ReplyMark(ReplyToken);

impl fmt::Display for ReplyMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text(MARK))
    }
}

/// The tokens that stored texts have marks of.
#[derive(Clone)]
pub struct ReplyTokens {
    tenant: String,
    /// The session, if those of no other are put in.
    session: Option<SessionId>,
    keys: Vec<MailKey>,
}

impl ReplyTokens {
    /// Those of all sessions of a tenant with this name, whose tokens are made with the first of these keys.
    #[must_use]
    pub fn of_tenant(tenant: String, keys: Vec<MailKey>) -> Self {
        Self { tenant, session: None, keys }
    }

    /// Those of one session of the tenant with this name, whose tokens are made with the first of these keys.
    pub(crate) fn of_one(tenant: String, session: SessionId, keys: Vec<MailKey>) -> Self {
        Self { tenant, session: Some(session), keys }
    }

    /// The text with a token instead of every mark; `None` if it has no mark of theirs.
    #[must_use]
    pub fn put_into(&self, text: &str) -> Option<String> {
        let (mut out, mut rest, mut found) = (String::new(), text, false);
        while let Some(at) = rest.find(MARK) {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let token = whole(from).and_then(|mark| Some((mark.len(), self.token(mark)?)));
            let (long, put) = match token {
                Some((long, token)) => (long, token.to_string()),
                None => (MARK.len(), MARK.to_owned()),
            };
            found |= put != MARK;
            out.push_str(&put);
            rest = &from[long..];
        }
        out.push_str(rest);
        found.then_some(out)
    }

    /// Puts the tokens into every text of a JSON value; no template makes the name of a field.
    pub fn put_into_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(put) = self.put_into(text) {
                    *text = put;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.put_into_json(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.put_into_json(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The token of a mark that is theirs.
    fn token(&self, mark: &str) -> Option<ReplyToken> {
        let mark = ReplyMark(ReplyToken::read(MARK, mark).ok()?);
        let ReplyToken { tenant, session, run, entry, .. } = &mark.0;
        let own = *tenant == self.tenant && self.session.is_none_or(|own| own == *session);
        let made = own && self.keys.iter().any(|key| key.made_mark(&mark));
        made.then(|| self.keys.first().map(|key| key.reply_token(tenant, *session, *run, *entry))).flatten()
    }
}

/// The mark that a text begins with, if it is long enough for one.
fn whole(text: &str) -> Option<&str> {
    let first = &text[..text.floor_char_boundary(NAMED_BYTES_MAX.min(text.len()))];
    let (code, _) = first.match_indices('.').nth(3)?;
    text.get(..code + 1 + 2 * CODE_BYTES)
}

fn bytes(hex: &str) -> Option<[u8; CODE_BYTES]> {
    let digits: Vec<u8> = hex.chars().map(|c| c.to_digit(16)?.try_into().ok()).collect::<Option<_>>()?;
    let pairs: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    (digits.len() == 2 * CODE_BYTES).then(|| pairs.try_into().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> MailKey {
        MailKey([byte; 32])
    }

    fn token(key: &MailKey, session: u8) -> ReplyToken {
        key.reply_token("acme", SessionId([session; 16]), RunId(1), 2)
    }

    #[test]
    fn a_mark_is_as_long_as_its_token_and_opens_nothing() {
        let (key, other) = (key(1), key(2));
        let token = token(&key, 7);
        let mark = key.reply_mark(&token).to_string();
        assert_eq!(mark.len(), token.to_string().len());
        assert!(mark.parse::<ReplyToken>().is_err());
        let posed: ReplyToken = mark.replacen(MARK, PREFIX, 1).parse().unwrap();
        assert!(key.made_reply(&token) && !key.made_reply(&posed) && !other.made_reply(&token));
    }

    #[test]
    fn tokens_stand_where_their_marks_stood_and_no_others_do() {
        let (new, old) = (key(1), key(2));
        let (own, foreign) = (token(&new, 7), token(&new, 8));
        let mark = old.reply_mark(&own);
        let text = format!("To {mark}.{mark}/x swp_ é swp_a.b.c.d.é {}", new.reply_mark(&foreign));
        let session = Some(SessionId([7; 16]));
        let tokens = ReplyTokens { tenant: "acme".into(), session, keys: vec![new.clone(), old] };
        let put = format!("To {own}.{own}/x swp_ é swp_a.b.c.d.é {}", new.reply_mark(&foreign));
        assert_eq!(tokens.put_into(&text), Some(put));
        let all = ReplyTokens::of_tenant("acme".into(), vec![new.clone()]);
        let put = all.put_into(&text).unwrap();
        assert!(put.ends_with(&foreign.to_string()) && put.contains(&mark.to_string()), "{put}");
        // A text that looks like a mark and was not made with the tenant's key stays as it is.
        let zero = ReplyMark(ReplyToken { code: [0; CODE_BYTES], ..own.clone() });
        let posed = own.to_string().replacen(PREFIX, MARK, 1);
        for made_up in [zero.to_string(), posed, key(3).reply_mark(&own).to_string(), "a text".into()] {
            assert_eq!(tokens.put_into(&made_up), None, "{made_up}");
            assert_eq!(all.put_into(&made_up), None, "{made_up}");
        }
        assert_eq!(ReplyTokens::of_tenant("globex".into(), vec![new]).put_into(&text), None);
    }
}
