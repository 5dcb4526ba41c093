//! Mail tokens: what ties a reply by mail, or a visit of a decision page, to one request and one person.
//!
//! A token names a session, what it is about there and a request of it, with a code (HMAC-SHA256, its first 128 bits) over
//! these, the way and the person's address, under a key of the tenant. It is made when it is needed and stored nowhere. A
//! sender who brings it from elsewhere, or another way, does not have the address that it was made for. The text is made
//! of `a` to `z` and `2` to `7`, because mail servers may change the case of an address, and short enough for the part of
//! an address before its `@`.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::fmt;
use std::str::FromStr;
use switchward_machine::{OpenId, SessionId, TenantId, Time};

use crate::limits::PAGE_CODE_DIGITS;
use crate::seal::{KeyRing, NotOpened, SEAL_NONCE_BYTES, Sealed, SecretOf};

/// Bytes of a token's code.
const CODE_BYTES: usize = 16;
/// The digits of a token's text. Source: RFC 4648, base32, in lower case.
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// The text of a token whose numbers are as large as they can be, bytes.
pub const MAIL_TOKEN_BYTES_MAX: usize = 84;

/// What a token allows; one of another use is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenUse {
    /// A reply by mail.
    Reply,
    /// The decision page.
    Page,
    /// A mail that did not arrive: the return address of such mails stands in no mail that a person answers.
    Bounce,
}

/// A mail token, as somebody brings it: true only once [`MailKey::made`] says so.
#[derive(Clone, PartialEq, Eq)]
pub struct MailToken {
    /// The tenant's number.
    pub tenant: TenantId,
    /// The session whose gate or conversation the token is about.
    pub session: SessionId,
    /// The gate; 0 if it is about what the session says and no gate.
    pub about: OpenId,
    /// The number of the gate's request that the person was sent.
    pub request: u32,
    code: [u8; CODE_BYTES],
}

crate::wire::as_text! { MailToken => "mail token", }

/// What the tokens of a tenant are made with. It is kept in no other form than sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct MailKey(pub [u8; 32]);

/// What is made for one sign-in with an OpenID provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInPart {
    /// Says that a page of this tenant has begun it.
    Code,
    /// What comes back in the ID token.
    Nonce,
    /// What proves to the provider who has begun it.
    Verifier,
}

impl SignInPart {
    fn word(self) -> &'static [u8] {
        match self {
            Self::Code => b"page.sign_in.code.",
            Self::Nonce => b"page.sign_in.nonce.",
            Self::Verifier => b"page.sign_in.verifier.",
        }
    }
}

impl fmt::Debug for MailKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("MailKey")
    }
}

impl MailKey {
    /// The key, sealed for its tenant; `None` if the ring has no key.
    #[must_use]
    pub fn sealed(&self, ring: &KeyRing, tenant: TenantId, nonce: [u8; SEAL_NONCE_BYTES]) -> Option<Sealed> {
        ring.seal(nonce, tenant, SecretOf::Mail, &self.0)
    }

    /// A tenant's key, opened.
    ///
    /// # Errors
    /// The ring has not got the key that it is sealed under, or it is not this tenant's.
    pub fn open(ring: &KeyRing, tenant: TenantId, sealed: &Sealed) -> Result<Self, NotOpened> {
        let bytes = ring.open(tenant, SecretOf::Mail, sealed)?;
        bytes[..].try_into().map(Self).map_err(|_| NotOpened::Foreign)
    }

    /// Those of these keys of a tenant that can be opened, in their order.
    #[must_use]
    pub fn open_all(ring: &KeyRing, tenant: TenantId, sealed: &[Sealed]) -> Vec<Self> {
        sealed.iter().filter_map(|key| Self::open(ring, tenant, key).ok()).collect()
    }

    /// The token for one person.
    #[must_use]
    pub fn token(
        &self,
        usage: TokenUse,
        tenant: TenantId,
        session: SessionId,
        about: OpenId,
        request: u32,
        address: &str,
    ) -> MailToken {
        let mut token = MailToken { tenant, session, about, request, code: [0; CODE_BYTES] };
        let code = self.keyed(&token.signed(usage, address)).finalize().into_bytes();
        token.code.copy_from_slice(&code[..CODE_BYTES]);
        token
    }

    /// Whether a token was made with this key, for this use and this person, whose address is compared without regard to
    /// case. Takes the same time for every code.
    #[must_use]
    pub fn made(&self, token: &MailToken, usage: TokenUse, address: &str) -> bool {
        self.keyed(&token.signed(usage, address)).verify_truncated_left(&token.code).is_ok()
    }

    /// The code that recognises a person on the decision page of this token, if it was sent then: [`PAGE_CODE_DIGITS`]
    /// digits.
    #[must_use]
    pub fn page_code(&self, token: &MailToken, address: &str, sent: Time) -> String {
        let about = token.signed_as(b"mail.page.code.", address);
        let bytes = self.keyed(&[&about[..], &sent.0.to_be_bytes()].concat()).finalize().into_bytes();
        let number = bytes.iter().take(8).fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
        format!("{:0width$}", number % 1_000_000, width = PAGE_CODE_DIGITS)
    }

    /// The code of a browser that a decision page recognised somebody in: HMAC-SHA256 over what it knows.
    #[must_use]
    pub fn browser_code(&self, known: &[u8]) -> [u8; 32] {
        self.keyed(&[b"page.browser.", known].concat()).finalize().into_bytes().into()
    }

    /// Whether a browser's code is of this key. Takes the same time for every code.
    #[must_use]
    pub fn knows_browser(&self, known: &[u8], code: &[u8]) -> bool {
        self.keyed(&[b"page.browser.", known].concat()).verify_slice(code).is_ok()
    }

    /// A part of a sign-in that a decision page began, HMAC-SHA256 over what names it. Without the key none of the parts
    /// can be computed, and no part reveals another.
    #[must_use]
    pub fn sign_in(&self, part: SignInPart, begun: &[u8]) -> [u8; 32] {
        self.keyed(&[part.word(), begun].concat()).finalize().into_bytes().into()
    }

    /// Whether the code of a sign-in is of this key. Takes the same time for every code.
    #[must_use]
    pub fn began_sign_in(&self, begun: &[u8], code: &[u8]) -> bool {
        self.keyed(&[SignInPart::Code.word(), begun].concat()).verify_slice(code).is_ok()
    }

    /// The reply token of one entry of a node: the code over its name.
    pub(crate) fn reply_code(&self, named: &str) -> Hmac<Sha256> {
        self.keyed(&[b"event.reply.", named.as_bytes()].concat())
    }

    fn keyed(&self, bytes: &[u8]) -> Hmac<Sha256> {
        let hmac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        hmac.chain_update(bytes)
    }
}

impl MailToken {
    fn signed(&self, usage: TokenUse, address: &str) -> Vec<u8> {
        let usage: &[u8] = match usage {
            TokenUse::Reply => b"mail.reply.",
            TokenUse::Page => b"mail.page.",
            TokenUse::Bounce => b"mail.bounce.",
        };
        self.signed_as(usage, address)
    }

    fn signed_as(&self, what: &[u8], address: &str) -> Vec<u8> {
        [what, &self.named(), address.to_ascii_lowercase().as_bytes()].concat()
    }

    fn named(&self) -> Vec<u8> {
        let mut bytes = self.session.0.to_vec();
        for number in [u64::from(self.tenant.0), self.about.0, u64::from(self.request)] {
            push(&mut bytes, number);
        }
        bytes
    }
}

/// Writes a number, the more bytes the larger it is.
fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or_default());
}

/// Reads a number off the front.
fn pull(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for at in 0..10 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f).checked_shl(7 * at)?;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

impl fmt::Display for MailToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut held, mut bits) = (0u32, 0u32);
        for byte in self.named().into_iter().chain(self.code) {
            held = held << 8 | u32::from(byte);
            bits += 8;
            while bits >= 5 {
                bits -= 5;
                write!(out, "{}", digit(held >> bits))?;
            }
        }
        if bits > 0 { write!(out, "{}", digit(held << (5 - bits))) } else { Ok(()) }
    }
}

fn digit(held: u32) -> char {
    char::from(DIGITS[usize::try_from(held & 31).unwrap_or_default()])
}

impl fmt::Debug for MailToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "MailToken({} {} {:?} request {})", self.tenant.0, self.session, self.about, self.request)
    }
}

/// The text is not a mail token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMailToken;

impl FromStr for MailToken {
    type Err = NoMailToken;

    fn from_str(text: &str) -> Result<Self, NoMailToken> {
        read(text).ok_or(NoMailToken)
    }
}

fn read(text: &str) -> Option<MailToken> {
    if text.len() > MAIL_TOKEN_BYTES_MAX {
        return None;
    }
    let (mut held, mut bits, mut bytes) = (0u32, 0u32, Vec::new());
    for sign in text.bytes() {
        let digit = DIGITS.iter().position(|digit| *digit == sign.to_ascii_lowercase())?;
        held = (held << 5 | u32::try_from(digit).ok()?) & 0xfff;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).ok()?);
        }
    }
    let (session, mut rest) = bytes.split_first_chunk::<16>()?;
    let tenant = u32::try_from(pull(&mut rest)?).ok()?;
    let about = pull(&mut rest)?;
    let request = u32::try_from(pull(&mut rest)?).ok()?;
    let code = rest.try_into().ok()?;
    let token = MailToken {
        tenant: TenantId(tenant),
        session: SessionId(*session),
        about: OpenId(about),
        request,
        code,
    };
    // One token has one text, but for its case.
    token.to_string().eq_ignore_ascii_case(text).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> MailKey {
        MailKey([7; 32])
    }

    fn token(usage: TokenUse, about: u64, request: u32, address: &str) -> MailToken {
        key().token(usage, TenantId(3), SessionId([9; 16]), OpenId(about), request, address)
    }

    #[test]
    fn a_text_comes_back_in_any_case() {
        for (about, request) in [(0, 0), (127, 1), (128, 2), (u64::MAX, u32::MAX)] {
            let token = token(TokenUse::Reply, about, request, "kim@acme.example");
            let text = token.to_string();
            assert!(text.len() <= MAIL_TOKEN_BYTES_MAX, "{text} has {} bytes", text.len());
            assert_eq!(text.parse(), Ok(token.clone()));
            assert_eq!(text.to_uppercase().parse(), Ok(token));
        }
    }

    #[test]
    fn a_usual_token_leaves_space_for_a_prefix_in_an_address() {
        let text = token(TokenUse::Reply, 9_999, 3, "kim@acme.example").to_string();
        assert!(text.len() <= 60, "{} has {} bytes; the part before the @ has at most 64", text, text.len());
    }

    #[test]
    fn it_is_worth_nothing_for_others_or_another_way() {
        let token = token(TokenUse::Reply, 5, 0, "kim@acme.example");
        let key = key();
        assert!(key.made(&token, TokenUse::Reply, "Kim@Acme.example"));
        assert!(!key.made(&token, TokenUse::Page, "kim@acme.example"));
        assert!(!key.made(&token, TokenUse::Reply, "dana@acme.example"));
        assert!(!MailKey([8; 32]).made(&token, TokenUse::Reply, "kim@acme.example"));
        let later = MailToken { request: 1, ..token };
        assert!(!key.made(&later, TokenUse::Reply, "kim@acme.example"));
    }

    #[test]
    fn every_changed_or_missing_sign_is_seen() {
        let text = token(TokenUse::Reply, 5, 0, "kim@acme.example").to_string();
        for at in 0..text.len() {
            let mut signs: Vec<char> = text.chars().collect();
            signs[at] = if signs[at] == 'a' { 'b' } else { 'a' };
            let changed: String = signs.iter().collect();
            let taken = changed.parse::<MailToken>().is_ok_and(|token| {
                token.session == SessionId([9; 16]) && key().made(&token, TokenUse::Reply, "kim@acme.example")
            });
            assert!(!taken, "{changed}");
            assert!(text[..at].parse::<MailToken>().is_err(), "{}", &text[..at]);
        }
        assert_eq!("".parse::<MailToken>(), Err(NoMailToken));
        assert_eq!("!".repeat(70).parse::<MailToken>(), Err(NoMailToken));
    }
}
