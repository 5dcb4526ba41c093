//! Whether the mail server in front takes out an `Authentication-Results` field that a sender wrote under its name.

use super::Settings;
use super::headers::{Headers, with_line_ends};
use super::results;

/// The state of a field that was planted in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// It was taken out.
    Gone,
    /// It is still there, below a field that keeps it from being believed.
    Below,
    /// It is there, and would be believed.
    Believed,
}

/// Looks in a returned message, or its header section, for a field that has `mark` as a domain and names one of these hosts,
/// in lower case. An unreadable message is not believed.
#[must_use]
pub fn planted(raw: &[u8], hosts: &[String], mark: &str) -> Planted {
    let raw = with_line_ends(raw);
    let Ok(headers) = Headers::of(&raw) else { return Planted::Gone };
    let fields = || headers.all("authentication-results");
    if !fields().any(|field| field.text().contains(mark)) {
        return Planted::Gone;
    }
    let trusting = Settings { trusted_hosts: hosts.to_vec(), ..Settings::of("example") };
    let results = results::of(&headers, &trusting).unwrap_or_default();
    let is_it = results.iter().any(|one| one.domain("header.d") == Some(mark));
    if is_it { Planted::Believed } else { Planted::Below }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_above_a_planted_field_says_what_it_is_worth() {
        let forged = "Authentication-Results: mx.acme.example; dkim=pass header.d=mark.invalid\r\n";
        let received =
            "Received: from a.example by mx.acme.example with ESMTP; Tue, 1 Jan 2030 00:00:00 +0000\r\n";
        let own = "Authentication-Results: mx.acme.example; dkim=none\r\n";
        let rest = "From: a@acme.example\r\n\r\n";
        let rows = [
            (format!("{received}{rest}"), Planted::Gone),
            (format!("{own}{received}{rest}"), Planted::Gone),
            (format!("{received}{forged}{rest}"), Planted::Below),
            (format!("{own}{received}{forged}{rest}"), Planted::Below),
            (format!("{own}{forged}{rest}"), Planted::Below),
            (format!("{forged}{received}{rest}"), Planted::Believed),
            (format!("{forged}{rest}"), Planted::Believed),
        ];
        for (raw, wanted) in rows {
            assert_eq!(planted(raw.as_bytes(), &["mx.acme.example".into()], "mark.invalid"), wanted, "{raw}");
        }
    }
}
