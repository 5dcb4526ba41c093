//! The one matcher of capabilities, and the one of mail addresses.

use minicbor::{CborLen, Decode, Encode};

use crate::limits::CAPABILITY_BYTES_MAX;

/// A capability pattern: a dot or colon path whose end may be `*`. See `docs/policies.md#capabilities`.
///
/// Without `*` it covers exactly itself, and a pattern of one segment also what lies below it (`bash` covers
/// `bash:rm`). With `*` it covers everything that goes on after what stands before the star by at least one
/// character; a bare `*` covers all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Pattern(#[n(0)] String);

/// Why a text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// No character at all.
    #[error("is empty")]
    Empty,
    /// Longer than [`CAPABILITY_BYTES_MAX`].
    #[error("is longer than {CAPABILITY_BYTES_MAX} bytes")]
    TooLong,
    /// A `*` that is not the last character.
    #[error("has a * that is not at its end")]
    StarInside,
    /// White space or a control character.
    #[error("holds white space or a control character")]
    BadCharacter,
    /// Two separators without a name between them, or one at either end.
    #[error("has an empty segment")]
    EmptySegment,
}

const SEPARATORS: [char; 2] = [':', '.'];

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// As [`PatternError`] says.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let stem = text.strip_suffix('*').unwrap_or(text);
        if stem.contains('*') {
            return Err(PatternError::StarInside);
        }
        if text != "*" {
            // "p:*" has a stem that ends in a separator; the star is its last segment.
            check_path(if stem.len() < text.len() && stem.ends_with(SEPARATORS) {
                &stem[..stem.len() - 1]
            } else {
                stem
            })?;
        }
        Ok(Self(text.to_owned()))
    }

    /// The pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it covers this capability.
    #[must_use]
    pub fn covers(&self, capability: &str) -> bool {
        if let Some(stem) = self.0.strip_suffix('*') {
            return capability.len() > stem.len() && capability.starts_with(stem);
        }
        match capability.strip_prefix(self.0.as_str()) {
            Some("") => true,
            Some(rest) => !self.0.contains(SEPARATORS) && rest.starts_with(SEPARATORS) && rest.len() > 1,
            None => false,
        }
    }

    /// Whether this is a capability that can be called: a path without `*`.
    ///
    /// # Errors
    /// As [`PatternError`] says.
    pub fn check_call(capability: &str) -> Result<(), PatternError> {
        if capability.contains('*') { Err(PatternError::StarInside) } else { check_path(capability) }
    }
}

fn check_path(path: &str) -> Result<(), PatternError> {
    if path.is_empty() {
        return Err(PatternError::Empty);
    }
    if path.len() > CAPABILITY_BYTES_MAX {
        return Err(PatternError::TooLong);
    }
    if path.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(PatternError::BadCharacter);
    }
    if path.split(SEPARATORS).any(str::is_empty) { Err(PatternError::EmptySegment) } else { Ok(()) }
}

/// A mail address pattern: one exact address, or `*@domain`. Case does not matter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct AddressPattern(#[n(0)] String);

impl AddressPattern {
    /// Reads a pattern; `None` if the text is neither one address nor `*@domain`.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let (local, domain) = text.split_once('@')?;
        let star_inside = (local.contains('*') && local != "*") || domain.contains('*');
        let clean = !text.contains(is_odd) && !domain.contains('@');
        (!local.is_empty() && !domain.is_empty() && !star_inside && clean).then(|| Self(text.to_lowercase()))
    }

    /// The pattern in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it covers this address. A display name (`Ann <ann@example.org>`) is looked through.
    #[must_use]
    pub fn covers(&self, address: &str) -> bool {
        let Some(address) = bare_address(address) else { return false };
        match self.0.strip_prefix("*@") {
            Some(domain) => {
                address.rsplit_once('@').is_some_and(|(local, of)| !local.is_empty() && of == domain)
            }
            None => self.0 == address,
        }
    }
}

/// The address alone, in lower case; `None` for a text that holds none or that could be read as two.
fn bare_address(text: &str) -> Option<String> {
    let text = text.trim();
    let bare = match text.split_once('<') {
        Some((_, rest)) => rest.strip_suffix('>')?,
        None => text,
    };
    (!bare.contains(is_odd) && bare.matches('@').count() == 1).then(|| bare.to_lowercase())
}

/// Returns true for a character that no bare address has.
fn is_odd(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "<>,;\"()".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(pattern: &str, capability: &str) -> bool {
        Pattern::new(pattern).unwrap().covers(capability)
    }

    #[test]
    fn the_table_of_the_source_holds() {
        assert!(covers("bash", "bash"));
        assert!(covers("bash", "bash:rm") && covers("bash", "bash.rm"));
        assert!(!covers("bash", "bashful") && !covers("bash", "bash:"));
        assert!(
            covers("mcp:*", "mcp:filesystem:write_file")
                && !covers("mcp:*", "mcp:")
                && !covers("mcp:*", "mcp")
        );
        assert!(covers("mcp:filesystem:*", "mcp:filesystem:write_file"));
        assert!(!covers("mcp:filesystem:*", "mcp:filesystems:write_file"));
        assert!(covers("mcp:filesystem:write_file", "mcp:filesystem:write_file"));
        assert!(!covers("mcp:filesystem:write_file", "mcp:filesystem:write_file:x"));
        assert!(covers("*", "anything:at.all"));
    }

    #[test]
    fn a_capability_has_at_most_256_bytes() {
        assert!(Pattern::check_call(&"a".repeat(256)).is_ok() && Pattern::new(&"a".repeat(256)).is_ok());
        assert_eq!(Pattern::check_call(&"a".repeat(257)), Err(PatternError::TooLong));
        assert_eq!(Pattern::new(&"a".repeat(257)), Err(PatternError::TooLong));
    }

    #[test]
    fn a_star_stands_only_at_the_end() {
        assert_eq!(Pattern::new("mcp:*:x"), Err(PatternError::StarInside));
        assert_eq!(Pattern::new("**"), Err(PatternError::StarInside));
        assert_eq!(Pattern::new("a::b"), Err(PatternError::EmptySegment));
        assert_eq!(Pattern::new(""), Err(PatternError::Empty));
        assert_eq!(Pattern::new(":*"), Err(PatternError::Empty));
        assert_eq!(Pattern::new("a b"), Err(PatternError::BadCharacter));
        assert_eq!(Pattern::check_call("mcp:*"), Err(PatternError::StarInside));
    }

    #[test]
    fn addresses_match_exactly_or_by_domain_whatever_their_case() {
        let domain = AddressPattern::new("*@Example.org").unwrap();
        assert!(domain.covers("Ann@example.ORG") && domain.covers("Ann <ann@example.org>"));
        assert!(!domain.covers("ann@sub.example.org") && !domain.covers("@example.org"));
        assert!(
            !domain.covers("evil@evil.org, ann@example.org")
                && !domain.covers("a@evil.org <b@example.org> x")
        );
        let one = AddressPattern::new("ann@example.org").unwrap();
        assert!(one.covers("ANN@example.org") && !one.covers("bann@example.org"));
        assert_eq!(AddressPattern::new("a*@example.org"), None);
        assert_eq!(AddressPattern::new("example.org"), None);
        for several in [
            "a@example.org,b@example.org",
            "a@example.org;b",
            "<a@example.org>",
            "a@b@example.org",
            "*@b@example.org",
        ] {
            assert_eq!(AddressPattern::new(several), None, "{several} covers no address");
        }
    }
}
