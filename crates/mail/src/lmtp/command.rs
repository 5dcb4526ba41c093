//! Parses commands.

use crate::limits::ADDRESS_BYTES_MAX;

/// A command of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    Lhlo,
    /// The sender, empty for the null one, and the announced size.
    Mail(String, Option<u64>),
    Rcpt(String),
    Data,
    Rset,
    Noop,
    Vrfy,
    Quit,
    /// A known command with invalid arguments.
    Wrong,
    /// An unknown command.
    Unknown,
}

impl Command {
    /// Reads a line without its end.
    pub(super) fn of(line: &[u8]) -> Self {
        let Ok(line) = std::str::from_utf8(line) else { return Self::Unknown };
        let (verb, rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
        let rest = rest.trim();
        match (verb.to_ascii_uppercase().as_str(), rest.is_empty()) {
            ("LHLO", false) => Self::Lhlo,
            ("MAIL", _) => mail(rest).unwrap_or(Self::Wrong),
            ("RCPT", _) => match path(rest, "TO:") {
                Some((address, "")) if !address.is_empty() => Self::Rcpt(address),
                Some(_) | None => Self::Wrong,
            },
            ("DATA", true) => Self::Data,
            ("RSET", true) => Self::Rset,
            ("NOOP", _) => Self::Noop,
            ("VRFY", false) => Self::Vrfy,
            ("QUIT", true) => Self::Quit,
            ("LHLO" | "VRFY", true) | ("DATA" | "RSET" | "QUIT", false) => Self::Wrong,
            _ => Self::Unknown,
        }
    }
}

fn mail(rest: &str) -> Option<Command> {
    let (address, parameters) = path(rest, "FROM:")?;
    let mut size = None;
    for parameter in parameters.split_whitespace() {
        match parameter.to_ascii_uppercase().split_once('=')? {
            ("SIZE", value) => size = Some(value.parse().ok()?),
            ("BODY", "7BIT" | "8BITMIME") => {}
            _ => return None,
        }
    }
    Some(Command::Mail(address, size))
}

/// The address in angle brackets after a word, without a route (RFC 5321 §4.1.1.3), and what follows.
fn path<'l>(rest: &'l str, word: &str) -> Option<(String, &'l str)> {
    let head = rest.get(..word.len())?;
    let path = head.eq_ignore_ascii_case(word).then(|| rest[word.len()..].trim_start())?;
    let (inside, behind) = path.strip_prefix('<')?.split_once('>')?;
    let address = match inside.strip_prefix('@') {
        Some(route) => route.split_once(':')?.1,
        None => inside,
    };
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '<';
    let good = address.is_empty() || address.contains('@');
    let apart = behind.is_empty() || behind.starts_with(' ');
    (good && apart && address.len() <= ADDRESS_BYTES_MAX && !address.chars().any(odd))
        .then(|| (address.to_owned(), behind.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        let mail = |address: &str, size| Command::Mail(address.to_owned(), size);
        for (line, command) in [
            ("LHLO mx", Command::Lhlo),
            ("lhlo mx", Command::Lhlo),
            ("LHLO", Command::Wrong),
            ("EHLO mx", Command::Unknown),
            ("MAIL FROM:<a@b>", mail("a@b", None)),
            ("mail from: <a@b> size=12 body=8bitmime", mail("a@b", Some(12))),
            ("MAIL FROM:<>", mail("", None)),
            ("MAIL FROM:<@r,@s:a@b>", mail("a@b", None)),
            ("MAIL FROM:a@b", Command::Wrong),
            ("MAIL FROM:<a@b", Command::Wrong),
            ("MAIL FROM:<a b@c>", Command::Wrong),
            ("MAIL FROM:<a@b> X=1", Command::Wrong),
            ("MAIL FROM:<a@b> SIZE=x", Command::Wrong),
            ("MAIL FROM:<a@b>SIZE=1", Command::Wrong),
            ("RCPT TO:<a@b>", Command::Rcpt("a@b".to_owned())),
            ("RCPT TO:<>", Command::Wrong),
            ("RCPT FROM:<a@b>", Command::Wrong),
            ("RCPT é", Command::Wrong),
            ("DATA", Command::Data),
            ("DATA x", Command::Wrong),
            ("QUIT ", Command::Quit),
            ("", Command::Unknown),
        ] {
            assert_eq!(Command::of(line.as_bytes()), command, "{line}");
        }
        assert_eq!(Command::of(b"NOOP \xff"), Command::Unknown);
    }
}
