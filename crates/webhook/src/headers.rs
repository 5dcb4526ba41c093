//! The headers of a message, as received.

use crate::limits::{HEADER_BYTES_MAX, ID_BYTES_MAX};
use crate::unverified::Unverified;

/// The headers of a message, as received: names in any case, in any order.
#[derive(Clone, Copy)]
pub struct Headers<'h>(&'h [(&'h str, &'h [u8])]);

impl<'h> Headers<'h> {
    /// Creates headers from pairs of a name and a value.
    #[must_use]
    pub fn new(pairs: &'h [(&'h str, &'h [u8])]) -> Self {
        Self(pairs)
    }

    /// Returns the value of a header, or `None` if it is missing.
    ///
    /// # Errors
    /// [`Unverified::HeaderMalformed`] if it occurs more than once, is longer than [`HEADER_BYTES_MAX`], or has other
    /// characters than visible ASCII and spaces.
    pub fn optional(&self, name: &'static str) -> Result<Option<&'h str>, Unverified> {
        let mut found = self.0.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        let Some((_, value)) = found.next() else { return Ok(None) };
        let malformed = Unverified::HeaderMalformed(name);
        let plain = |byte: &u8| matches!(byte, b' '..=b'~');
        if found.next().is_some() || value.len() > HEADER_BYTES_MAX || !value.iter().all(plain) {
            return Err(malformed);
        }
        std::str::from_utf8(value).map(Some).map_err(|_| malformed)
    }

    /// Returns the value of a required header.
    ///
    /// # Errors
    /// As [`Headers::optional`], and [`Unverified::HeaderMissing`].
    pub fn required(&self, name: &'static str) -> Result<&'h str, Unverified> {
        self.optional(name)?.ok_or(Unverified::HeaderMissing(name))
    }

    /// Returns the value of a header that identifies the message, or `None` if it is missing.
    ///
    /// # Errors
    /// As [`Headers::optional`], and if it is empty, has spaces or is longer than [`ID_BYTES_MAX`].
    pub fn id(&self, name: &'static str) -> Result<Option<&'h str>, Unverified> {
        let Some(id) = self.optional(name)? else { return Ok(None) };
        if is_id(id) { Ok(Some(id)) } else { Err(Unverified::HeaderMalformed(name)) }
    }
}

/// Returns true if it can identify a message: 1 to [`ID_BYTES_MAX`] visible ASCII characters.
pub(crate) fn is_id(text: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_is_there_twice_or_is_no_text_is_not_believed() {
        let long = "a".repeat(HEADER_BYTES_MAX + 1);
        let pairs: Vec<(&str, &[u8])> = vec![
            ("One", b"1"),
            ("two", b"a"),
            ("TWO", b"a"),
            ("odd", b"a\xff"),
            ("line", b"a\nb"),
            ("long", long.as_bytes()),
            ("spaced", b"a b"),
            ("empty", b""),
        ];
        let headers = Headers::new(&pairs);
        assert_eq!(headers.required("one"), Ok("1"));
        assert_eq!(headers.required("none"), Err(Unverified::HeaderMissing("none")));
        assert_eq!(headers.optional("none"), Ok(None));
        for name in ["two", "odd", "line", "long"] {
            assert_eq!(headers.optional(name), Err(Unverified::HeaderMalformed(name)));
        }
        for name in ["spaced", "empty"] {
            assert!(headers.optional(name).is_ok());
            assert_eq!(headers.id(name), Err(Unverified::HeaderMalformed(name)));
        }
    }
}
