//! Tokens: what a message may be a reply to, by its recipient addresses. `In-Reply-To` and `References` prove nothing: a
//! sender can put any id there that they have seen.

use std::str::FromStr;

use super::address::{Address, listed};
use super::headers::Headers;
use super::{Envelope, Settings, Unusable};
use crate::limits::{ADDRESSES_MAX, TOKEN_BYTES_MAX, TOKENS_MAX};

/// The form of a local part that holds a token, such as `r+{token}`: a fixed prefix, the token, a fixed suffix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    before: String,
    after: String,
}

/// A form without exactly one `{token}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the form needs {{token}} once")]
pub struct NoForm;

impl FromStr for Form {
    type Err = NoForm;

    fn from_str(text: &str) -> Result<Self, NoForm> {
        let (before, after) = text.split_once("{token}").ok_or(NoForm)?;
        if after.contains("{token}") {
            return Err(NoForm);
        }
        Ok(Self { before: before.to_ascii_lowercase(), after: after.to_ascii_lowercase() })
    }
}

impl Form {
    /// The token in a local part, in lower case: relays fold the case of addresses.
    fn token(&self, local: &str) -> Option<String> {
        let local = local.to_ascii_lowercase();
        let token = local.strip_prefix(&self.before)?.strip_suffix(&self.after)?;
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-=".contains(&byte);
        (!token.is_empty() && token.len() <= TOKEN_BYTES_MAX && token.bytes().all(good))
            .then(|| token.to_owned())
    }
}

/// Where a token was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenPosition {
    /// Among the recipients that the transport names.
    Envelope,
    /// In the field `To`.
    To,
    /// In the field `Cc`.
    Cc,
    /// In a field that a host on the way has added: `Delivered-To`, `X-Original-To`.
    Delivery,
}

/// A possible token of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its text, in lower case.
    pub text: String,
    /// The first position where it was found.
    pub position: TokenPosition,
}

impl Settings {
    fn in_address(&self, address: &str) -> Option<String> {
        let address = Address::parse(address)?;
        let ours = self.reply_domains.contains(&address.domain);
        ours.then(|| self.reply_address.token(address.local())).flatten()
    }

    /// Returns true if a message id may be one of ours.
    pub(super) fn is_own_id(&self, id: &str) -> bool {
        let Some((left, domain)) = id.rsplit_once('@') else { return false };
        let ours = self.reply_domains.iter().any(|known| known.eq_ignore_ascii_case(domain));
        ours && self.message_id.token(left).is_some()
    }
}

/// The address fields that are searched, and their positions.
const ADDRESS_FIELDS: &[(&str, TokenPosition)] = &[
    ("to", TokenPosition::To),
    ("cc", TokenPosition::Cc),
    ("delivered-to", TokenPosition::Delivery),
    ("x-original-to", TokenPosition::Delivery),
];

/// The tokens of a message, in the order in which they are to be tried.
pub(super) fn of(
    headers: &Headers<'_>,
    envelope: &Envelope,
    settings: &Settings,
) -> Result<Vec<Token>, Unusable> {
    let mut found = TokenSet(Vec::new());
    for recipient in &envelope.recipients {
        found.add(settings.in_address(recipient), TokenPosition::Envelope);
    }
    let mut seen = 0;
    for (name, position) in ADDRESS_FIELDS {
        for field in headers.all(name) {
            let addresses = listed(&field.text())?;
            seen += addresses.len();
            if seen > ADDRESSES_MAX {
                return Err(Unusable::TooManyAddresses);
            }
            for address in addresses {
                found.add(settings.in_address(&address.text), *position);
            }
        }
    }
    Ok(found.0)
}

/// Returns true if an address of a field has a token.
pub(super) fn stands_in(token: &str, headers: &Headers<'_>, name: &str, settings: &Settings) -> bool {
    headers.all(name).any(|field| {
        let addresses = listed(&field.text()).unwrap_or_default();
        addresses.iter().any(|address| settings.in_address(&address.text).as_deref() == Some(token))
    })
}

/// Everything in a text that looks like a reply address of ours.
pub(super) fn in_text(text: &str, settings: &Settings) -> Vec<String> {
    let mut found = TokenSet(Vec::new());
    let word = |c: char| c.is_ascii_alphanumeric() || "+._-=@".contains(c);
    for word in
        text.split(|c| !word(c)).filter(|word| word.contains('@') && word.len() <= 2 * TOKEN_BYTES_MAX)
    {
        let word = word.trim_end_matches('.');
        found.add(settings.in_address(word), TokenPosition::To);
        if found.0.len() >= TOKENS_MAX {
            break;
        }
    }
    found.0.into_iter().map(|token| token.text).collect()
}

struct TokenSet(Vec<Token>);

impl TokenSet {
    fn add(&mut self, text: Option<String>, position: TokenPosition) {
        let Some(text) = text else { return };
        if self.0.len() < TOKENS_MAX && !self.0.iter().any(|known| known.text == text) {
            self.0.push(Token { text, position });
        }
    }
}
