//! MACs, constant-time comparisons, and the check of timestamps.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::time::Duration;
use subtle::ConstantTimeEq as _;

use crate::limits::{TIMESTAMP_DIGITS_MAX, TOLERANCE};
use crate::unverified::Unverified;

/// Computes HMAC-SHA256 of these parts, concatenated.
pub(crate) fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut hmac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| hmac.update(part));
    hmac.finalize().into_bytes().into()
}

/// Encodes bytes as lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing into memory cannot fail");
        text
    })
}

/// Returns true if any of the given texts equals any of the expected ones. Compares every pair, in a time that depends only
/// on the lengths.
pub(crate) fn any_same<'g>(given: impl IntoIterator<Item = &'g str>, expected: &[String]) -> bool {
    given.into_iter().fold(false, |found, given| {
        expected.iter().fold(found, |found, one| found | bool::from(one.as_bytes().ct_eq(given.as_bytes())))
    })
}

/// Returns true if two texts are equal; the time does not reveal the length of the expected one.
pub(crate) fn same_token(given: &str, expected: &str) -> bool {
    let digest = |text: &str| -> [u8; 32] { Sha256::digest(text.as_bytes()).into() };
    digest(given).ct_eq(&digest(expected)).into()
}

/// Checks a timestamp in seconds against now.
///
/// # Errors
/// Malformed, too old, too new. Exactly [`TOLERANCE`] away is still good.
pub(crate) fn check_timestamp(text: &str, now: Duration) -> Result<(), Unverified> {
    let digits = (1..=TIMESTAMP_DIGITS_MAX).contains(&text.len());
    if !digits || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Unverified::TimestampMalformed);
    }
    let at: u64 = text.parse().map_err(|_| Unverified::TimestampMalformed)?;
    let (now, tolerance) = (now.as_secs(), TOLERANCE.as_secs());
    if at.saturating_add(tolerance) < now {
        return Err(Unverified::TimestampTooOld);
    }
    if at > now.saturating_add(tolerance) {
        return Err(Unverified::TimestampTooNew);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_minutes_are_near_enough_and_a_second_more_is_not() {
        let check = |at: &str| check_timestamp(at, Duration::from_secs(1_000));
        assert_eq!(check("700"), Ok(()));
        assert_eq!(check("1300"), Ok(()));
        assert_eq!(check("699"), Err(Unverified::TimestampTooOld));
        assert_eq!(check("1301"), Err(Unverified::TimestampTooNew));
        assert_eq!(check("999999999999"), Err(Unverified::TimestampTooNew));
        for bad in
            ["", "-1", "+1000", "1000.0", " 1000", "1e3", "١٠٠٠", "0000000001000", "99999999999999999999"]
        {
            assert_eq!(check(bad), Err(Unverified::TimestampMalformed), "{bad:?}");
        }
    }
}
