//! A sign-in that a page has begun, as the browser keeps it.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use cookie::{Cookie, SameSite};
use http::{HeaderMap, HeaderValue, header};
use switchward_machine::Time;
use switchward_state::approval::{MAIL_TOKEN_BYTES_MAX, MailKey, SignInPart};
use switchward_state::limits::SIGN_IN_MS;

use crate::api::PageSettings;
use crate::decision::find::ApproverLink;
use crate::decision::provider::{Attempt, CALLBACK};
use crate::limits::{CLOCKS_APART_MS_MAX, FORM_ID_CHARS};

/// What the names of these cookies begin with; what comes back with the browser follows. So sign-ins of several pages go on
/// beside each other.
const NAME: &str = "switchward_sign_in-";

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Begun {
    /// What comes back with the browser, in lower-case hexadecimal digits.
    state: String,
    /// When.
    at: Time,
    /// The token of the page on which it began; unverified until [`Begun::key`] returns a key.
    pub(super) token: String,
    /// The code over all that.
    code: Vec<u8>,
}

impl Begun {
    /// A new one, which nobody can guess.
    pub(super) fn draw(asked: &ApproverLink) -> Self {
        let state = format!("{:032x}", rand::random::<u128>());
        let begun = Self { state, at: asked.visit.now, token: asked.token.to_string(), code: Vec::new() };
        let code = asked.visit.key.sign_in(SignInPart::Code, begun.signed().as_bytes()).to_vec();
        Self { code, ..begun }
    }

    /// The one of this state that a browser keeps.
    pub(super) fn read(headers: &HeaderMap, state: &str) -> Option<Self> {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if state.len() != FORM_ID_CHARS || !state.bytes().all(digit) {
            return None;
        }
        let sent = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut cookies = sent.flat_map(Cookie::split_parse).filter_map(Result::ok);
        let cookie = cookies.find(|cookie| cookie.name().strip_prefix(NAME) == Some(state))?;
        let mut parts = cookie.value().split('.');
        let (at, token, code) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || token.len() > MAIL_TOKEN_BYTES_MAX {
            return None;
        }
        let code = BASE64_URL_SAFE_NO_PAD.decode(code).ok()?;
        Some(Self { state: state.to_owned(), at: Time(at.parse().ok()?), token: token.to_owned(), code })
    }

    /// Returns the key under which a page of this tenant has begun it, perhaps one that was replaced since; `None` if no page
    /// has, or too long ago.
    pub(super) fn key<'k>(&self, asked: &'k ApproverLink) -> Option<&'k MailKey> {
        self.key_among(&asked.visit.keys, asked.visit.now)
    }

    fn key_among<'k>(&self, keys: &'k [MailKey], now: Time) -> Option<&'k MailKey> {
        keys.iter().find(|key| self.is_of(key, now))
    }

    fn is_of(&self, key: &MailKey, now: Time) -> bool {
        // Another server, whose clock is a little ahead, may have begun it.
        let new = self.at <= now.after_ms(CLOCKS_APART_MS_MAX) && now.since_ms(self.at) < SIGN_IN_MS;
        key.began_sign_in(self.signed().as_bytes(), &self.code) && new
    }

    /// The attempt as the provider sees it; its secrets come from the key under which it was begun.
    pub(super) fn attempt(&self, key: &MailKey, asked: &ApproverLink) -> Attempt {
        let signed = self.signed();
        Attempt {
            state: self.state.clone(),
            nonce: key.sign_in(SignInPart::Nonce, signed.as_bytes()),
            verifier: key.sign_in(SignInPart::Verifier, signed.as_bytes()),
            address: asked.caller.actor.subject.clone(),
            now: asked.visit.now,
        }
    }

    /// The header with which a browser keeps it.
    pub(super) fn cookie(&self, pages: &PageSettings) -> Option<HeaderValue> {
        let value = format!("{}.{}.{}", self.at.0, self.token, BASE64_URL_SAFE_NO_PAD.encode(&self.code));
        let age = i64::try_from(SIGN_IN_MS / 1_000).ok()?;
        self.kept(value, age, pages)
    }

    /// The header with which a browser forgets it.
    pub(super) fn removed(&self, pages: &PageSettings) -> Option<HeaderValue> {
        self.kept(String::new(), 0, pages)
    }

    fn kept(&self, value: String, seconds: i64, pages: &PageSettings) -> Option<HeaderValue> {
        let cookie = Cookie::build((format!("{NAME}{}", self.state), value))
            .path(CALLBACK)
            .http_only(true)
            .secure(pages.secure)
            // The way back from the provider is another site's, which a strict one would not come along on.
            .same_site(SameSite::Lax)
            .max_age(cookie::time::Duration::seconds(seconds))
            .build();
        HeaderValue::from_str(&cookie.to_string()).ok()
    }

    fn signed(&self) -> String {
        format!("{}.{}.{}", self.state, self.at.0, self.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: MailKey = MailKey([7; 32]);
    const BEGAN: Time = Time(5_000_000);

    fn begun() -> Begun {
        let begun = Begun { state: "0af1".repeat(8), at: BEGAN, token: "abc234".into(), code: Vec::new() };
        let code = KEY.sign_in(SignInPart::Code, begun.signed().as_bytes()).to_vec();
        Begun { code, ..begun }
    }

    /// What a browser sends that was given this header.
    fn sent(header: &HeaderValue) -> HeaderMap {
        let cookie = header.to_str().unwrap().split(';').next().unwrap();
        let all = format!("theme=dark; {cookie}; switchward-1=x");
        HeaderMap::from_iter([(header::COOKIE, all.parse().unwrap())])
    }

    #[test]
    fn it_counts_for_its_time_under_its_key() {
        let begun = begun();
        let headers = sent(&begun.cookie(&PageSettings::default()).unwrap());
        let read = Begun::read(&headers, &begun.state).unwrap();
        assert_eq!(read, begun);
        assert!(read.is_of(&KEY, BEGAN) && read.is_of(&KEY, BEGAN.after_ms(SIGN_IN_MS - 1)));
        assert!(!read.is_of(&KEY, BEGAN.after_ms(SIGN_IN_MS)));
        let behind = Time(BEGAN.0 - CLOCKS_APART_MS_MAX);
        assert!(read.is_of(&KEY, behind), "another server has begun it");
        assert!(!read.is_of(&KEY, Time(behind.0 - 1)));
        assert!(!read.is_of(&MailKey([8; 32]), BEGAN));
        assert_eq!(Begun::read(&headers, &"0af2".repeat(8)), None);
        assert_eq!(Begun::read(&headers, ""), None);
        assert_eq!(Begun::read(&sent(&begun.removed(&PageSettings::default()).unwrap()), &begun.state), None);
    }

    #[test]
    fn it_counts_under_its_key_after_the_tenant_has_a_newer_one() {
        let (begun, newer) = (begun(), MailKey([8; 32]));
        let found = |keys: &[MailKey]| begun.key_among(keys, BEGAN).map(|key| key.0);
        assert_eq!(found(&[newer.clone(), KEY]), Some(KEY.0));
        assert_eq!(found(&[newer]), None, "the key was taken away");
    }

    #[test]
    fn nothing_of_it_can_be_changed() {
        let begun = begun();
        for changed in [
            Begun { state: "0af2".repeat(8), ..begun.clone() },
            Begun { at: BEGAN.after_ms(1), ..begun.clone() },
            Begun { token: "abc235".into(), ..begun.clone() },
            Begun { code: begun.code[..16].to_vec(), ..begun.clone() },
            Begun { code: Vec::new(), ..begun.clone() },
            // No part that the provider learns stands for the code.
            Begun {
                code: KEY.sign_in(SignInPart::Nonce, begun.signed().as_bytes()).to_vec(),
                ..begun.clone()
            },
        ] {
            assert!(!changed.is_of(&KEY, BEGAN.after_ms(2)), "{changed:?}");
        }
        assert!(begun.is_of(&KEY, BEGAN.after_ms(2)));
    }

    #[test]
    fn it_is_kept_for_the_way_back_alone() {
        let text = |header: HeaderValue| header.to_str().unwrap().to_owned();
        let plain = PageSettings { secure: false, ..PageSettings::default() };
        let kept = text(begun().cookie(&PageSettings::default()).unwrap());
        for part in ["HttpOnly", "SameSite=Lax", "Secure", "Path=/a/oidc/callback", "Max-Age=600"] {
            assert!(kept.contains(part), "{kept}");
        }
        assert!(!text(begun().cookie(&plain).unwrap()).contains("Secure"));
        assert!(text(begun().removed(&PageSettings::default()).unwrap()).contains("Max-Age=0"));
    }
}
