//! Reply tokens: what lets somebody outside, and nobody else, send events to the state that a session stands in.
//!
//! A token names a session, a run and one entry of a node, with a code (HMAC-SHA256, its first 128 bits) under the key of
//! its tenant. So a token is made wherever it is read, needs no row and no secret of its own, and is worth nothing once its
//! node was left. Source: conversation workflows, *Webhooks*.

use hmac::Mac as _;
use std::fmt;
use std::str::FromStr;
use switchward_machine::{RunId, SessionId};

use crate::turn::{Stop, Turn};
use crate::{MailKey, Reason, Rejection};

/// What a token begins with.
const PREFIX: &str = "swr_";
/// Bytes of a token's code.
const CODE_BYTES: usize = 16;

impl MailKey {
    /// The reply token of one entry of a node, of a session of the tenant with this name.
    #[must_use]
    pub fn reply_token(&self, tenant: &str, session: SessionId, run: RunId, entry: u32) -> ReplyToken {
        let mut token = ReplyToken { tenant: tenant.to_owned(), session, run, entry, code: [0; CODE_BYTES] };
        let code = self.reply_code(&token.named()).finalize().into_bytes();
        token.code.copy_from_slice(&code[..CODE_BYTES]);
        token
    }

    /// Whether a reply token was made with this key. Takes the same time for every code.
    #[must_use]
    pub fn made_reply(&self, token: &ReplyToken) -> bool {
        self.reply_code(&token.named()).verify_truncated_left(&token.code).is_ok()
    }
}

/// A reply token, as somebody brings it: true only once [`MailKey::made_reply`] says so.
///
/// Its text is `swr_<tenant>.<session>.<run>.<entry>.<code in hex>`, of letters that need no quoting in a URL.
#[derive(Clone, PartialEq, Eq)]
pub struct ReplyToken {
    /// The tenant's name.
    pub tenant: String,
    /// The session.
    pub session: SessionId,
    /// The run that events are for.
    pub run: RunId,
    /// Which of the nodes that the run has entered, from 1.
    pub entry: u32,
    code: [u8; CODE_BYTES],
}

impl ReplyToken {
    fn named(&self) -> String {
        format!("{PREFIX}{}.{}.{}.{}", self.tenant, self.session, self.run.0, self.entry)
    }
}

impl fmt::Display for ReplyToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.", self.named())?;
        self.code.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ReplyToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named())
    }
}

/// The text is no reply token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoReplyToken;

impl FromStr for ReplyToken {
    type Err = NoReplyToken;

    fn from_str(text: &str) -> Result<Self, NoReplyToken> {
        let parts: Vec<&str> = text.strip_prefix(PREFIX).ok_or(NoReplyToken)?.splitn(6, '.').collect();
        let [tenant, session, run, entry, code] = parts[..] else { return Err(NoReplyToken) };
        let token = Self {
            tenant: tenant.to_owned(),
            session: session.parse().map_err(|_| NoReplyToken)?,
            run: RunId(run.parse().map_err(|_| NoReplyToken)?),
            entry: entry.parse().map_err(|_| NoReplyToken)?,
            code: bytes(code).ok_or(NoReplyToken)?,
        };
        // One token has one text: no signs before numbers, no capitals.
        if token.to_string() == text { Ok(token) } else { Err(NoReplyToken) }
    }
}

fn bytes(hex: &str) -> Option<[u8; CODE_BYTES]> {
    let digits: Vec<u8> = hex.chars().map(|c| c.to_digit(16)?.try_into().ok()).collect::<Option<_>>()?;
    let pairs: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    (digits.len() == 2 * CODE_BYTES).then(|| pairs.try_into().ok()).flatten()
}

/// Refuses a token that was not made for this session.
pub(crate) fn check(turn: &Turn<'_, '_>, token: &ReplyToken) -> Result<(), Stop> {
    let named = turn.session()?.reply_tenant.as_ref() == Some(&token.tenant);
    let own = named && turn.mail_keys()?.iter().any(|key| key.made_reply(token));
    if own && token.session == turn.session_id()? {
        return Ok(());
    }
    Err(Rejection::new(Reason::CredentialInvalid, "the reply token is not valid").into())
}

/// The run that a token names, where it still stands in the node that the token was made for: the active leaf, or one
/// that waits for it.
pub(crate) fn addressed(turn: &Turn<'_, '_>, leaf: RunId, token: &ReplyToken) -> Result<RunId, Stop> {
    let mut next = Some(leaf);
    while let Some(run) = next {
        let at = turn.run(run)?;
        if run == token.run && at.entry == token.entry {
            return Ok(run);
        }
        next = at.parent.map(|parent| parent.run);
    }
    Err(Rejection::new(Reason::StateMismatch, "the state that the reply token was made for was left").into())
}
