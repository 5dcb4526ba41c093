//! Browsers that decision pages know: each keeps a signed cookie for each person that a page recognised in it.
//!
//! A cookie says whose browser it is, how they were recognised and when, with a MAC (HMAC-SHA256) over that under a mail
//! key of the tenant. A tenant that takes its keys away forgets every browser. Source: RFC 6265, for cookies.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use cookie::{Cookie, SameSite};
use http::{HeaderMap, HeaderValue, header};
use switchward_machine::{Digest, TenantId, Time};
use switchward_state::approval::MailKey;
use switchward_state::catalogue::LinkAuth;
use switchward_state::limits::ADDRESS_BYTES_MAX;

use crate::api::PageSettings;
use crate::limits::{BROWSER_COOKIES_MAX, CLOCKS_APART_MS_MAX};

/// The prefix of the names of these cookies.
const NAME: &str = "switchward-";
/// The path that browsers send them to.
const PATH: &str = "/a/";

/// Somebody whom a page recognised in this browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    /// Their address.
    pub(super) person: String,
    /// How they were recognised.
    pub(super) by: LinkAuth,
    /// When they were recognised.
    pub(super) at: Time,
}

/// Returns everybody whom pages of a tenant recognised in the browser of a request within the last `keep_ms` milliseconds; of
/// more than [`BROWSER_COOKIES_MAX`], the newest.
pub(super) fn known(
    headers: &HeaderMap,
    tenant: TenantId,
    keys: &[MailKey],
    now: Time,
    keep_ms: u64,
) -> Vec<Known> {
    let sent = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let ours = sent
        .flat_map(Cookie::split_parse)
        .filter_map(|cookie| cookie.ok().filter(|cookie| cookie.name().starts_with(NAME)));
    let read = ours.filter_map(|cookie| read(cookie.value(), tenant, keys));
    // Another server, whose clock is a little ahead, may have recognised them a moment ago.
    let latest = now.after_ms(CLOCKS_APART_MS_MAX);
    let mut known: Vec<Known> =
        read.filter(|known| known.at <= latest && now.since_ms(known.at) < keep_ms).collect();
    // Browsers send the oldest first. A stable sort: those of one time stay in their order.
    known.sort_by_key(|known| std::cmp::Reverse(known.at));
    known.truncate(BROWSER_COOKIES_MAX);
    known
}

/// Returns the header that makes a browser known for this many milliseconds; `None` if it cannot be written.
pub(super) fn remember(
    tenant: TenantId,
    key: &MailKey,
    known: &Known,
    keep_ms: u64,
    pages: &PageSettings,
) -> Option<HeaderValue> {
    let signed = said(tenant, known);
    let code = key.browser_code(signed.as_bytes());
    let value = format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(code));
    let address = known.person.to_ascii_lowercase();
    let whose = Digest::of_parts(&[&tenant.0.to_be_bytes(), address.as_bytes()]).to_string();
    let name = format!("{NAME}{}", whose.get(..16)?);
    let age = i64::try_from(keep_ms / 1_000).ok()?;
    let cookie = Cookie::build((name, value))
        .path(PATH)
        .http_only(true)
        .secure(pages.secure)
        .same_site(SameSite::Lax)
        .max_age(cookie::time::Duration::seconds(age))
        .build();
    HeaderValue::from_str(&cookie.to_string()).ok()
}

/// The part of a cookie before its code.
fn said(tenant: TenantId, known: &Known) -> String {
    let person = BASE64_URL_SAFE_NO_PAD.encode(known.person.to_ascii_lowercase());
    format!("{}.{}.{}.{person}", tenant.0, known.by.word(), known.at.0)
}

fn read(value: &str, tenant: TenantId, keys: &[MailKey]) -> Option<Known> {
    let (signed, code) = value.rsplit_once('.')?;
    let code = BASE64_URL_SAFE_NO_PAD.decode(code).ok()?;
    if !keys.iter().any(|key| key.knows_browser(signed.as_bytes(), &code)) {
        return None;
    }
    let mut parts = signed.split('.');
    let (whose, by, at) = (parts.next()?, parts.next()?, parts.next()?);
    let person = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(parts.next()?).ok()?).ok()?;
    let by = [LinkAuth::Code, LinkAuth::Oidc].into_iter().find(|known| known.word() == by)?;
    let whole = whose.parse() == Ok(tenant.0) && person.len() <= ADDRESS_BYTES_MAX;
    whole.then_some(Known { person, by, at: Time(at.parse().ok()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: TenantId = TenantId(3);
    const HOUR: u64 = 3_600_000;

    fn key() -> MailKey {
        MailKey([7; 32])
    }

    fn kim(by: LinkAuth) -> Known {
        Known { person: "kim@acme.example".into(), by, at: Time(HOUR) }
    }

    fn sent(known: &Known) -> String {
        let header = remember(TENANT, &key(), known, HOUR, &PageSettings::default()).unwrap();
        header.to_str().unwrap().split(';').next().unwrap().to_owned()
    }

    fn read(cookies: &str, tenant: TenantId, key: MailKey, now: u64) -> Vec<Known> {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, cookies.parse().unwrap());
        known(&headers, tenant, &[MailKey([1; 32]), key], Time(now), HOUR)
    }

    #[test]
    fn a_browser_is_known_for_its_time_to_its_tenant_alone() {
        let cookie = sent(&kim(LinkAuth::Code));
        assert_eq!(read(&cookie, TENANT, key(), HOUR), [kim(LinkAuth::Code)]);
        assert_eq!(read(&cookie, TENANT, key(), 2 * HOUR - 1), [kim(LinkAuth::Code)]);
        let behind = HOUR - CLOCKS_APART_MS_MAX;
        assert_eq!(read(&cookie, TENANT, key(), behind), [kim(LinkAuth::Code)], "another server has set it");
        for (tenant, key, now) in [
            (TENANT, key(), 2 * HOUR),
            (TENANT, key(), behind - 1),
            (TenantId(4), key(), HOUR),
            (TENANT, MailKey([8; 32]), HOUR),
        ] {
            assert_eq!(read(&cookie, tenant, key, now), []);
        }
    }

    #[test]
    fn each_person_has_a_cookie_of_their_own() {
        let ann = Known { person: "ann@acme.example".into(), ..kim(LinkAuth::Oidc) };
        let all = format!("theme=dark; {}; bad; {}", sent(&kim(LinkAuth::Code)), sent(&ann));
        assert_eq!(read(&all, TENANT, key(), HOUR), [kim(LinkAuth::Code), ann]);
    }

    #[test]
    fn of_many_people_those_recognised_last_are_known() {
        let of = |number: usize| Known {
            person: format!("p{number}@acme.example"),
            at: Time(HOUR + u64::try_from(number).unwrap()),
            ..kim(LinkAuth::Code)
        };
        let all: Vec<String> = (0..=BROWSER_COOKIES_MAX).map(|number| sent(&of(number))).collect();
        let known = read(&all.join("; "), TENANT, key(), HOUR + 60);
        assert_eq!((known.len(), &known[0]), (BROWSER_COOKIES_MAX, &of(BROWSER_COOKIES_MAX)));
    }

    #[test]
    fn no_changed_sign_is_taken() {
        let cookie = sent(&kim(LinkAuth::Code));
        let value = cookie.find('=').unwrap() + 1;
        for at in value..cookie.len() {
            let mut signs = cookie.clone().into_bytes();
            signs[at] = if signs[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(signs).unwrap();
            assert!(
                read(&changed, TENANT, key(), HOUR).iter().all(|known| *known == kim(LinkAuth::Code)),
                "{changed}"
            );
        }
        let link = cookie.replacen(".code.", ".link.", 1);
        assert_eq!(read(&link, TENANT, key(), HOUR), []);
    }

    #[test]
    fn it_is_kept_from_scripts_and_from_plain_connections() {
        let header = |secure| {
            let pages = PageSettings { secure, ..PageSettings::default() };
            remember(TENANT, &key(), &kim(LinkAuth::Code), HOUR, &pages).unwrap()
        };
        let text = header(true).to_str().unwrap().to_owned();
        for part in ["HttpOnly", "SameSite=Lax", "Secure", "Path=/a/", "Max-Age=3600"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!header(false).to_str().unwrap().contains("Secure"));
    }
}
