//! A person's own words in the text of a reply.
//!
//! What matters most is the first line that is not empty: it decides. So only text that the sender wrote now may become the
//! first line. If that is in doubt, no text is taken, and a person reads the mail instead.

use super::address::invisible;
use super::clients::{
    ATTRIBUTION_BEGINS, ATTRIBUTION_ENDS, FENCE, FROM_NAMES, MACHINE_SIGNATURES, MAIL_FOLLOWS, OTHER_NAMES,
    VERBS_WITHIN,
};
use crate::limits::{ATTRIBUTION_BYTES_MAX, ATTRIBUTION_LINES_MAX, QUOTED_HEADER_LINES_MAX};

/// Text, and whether something in it is invisible to its reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) text: String,
    pub(super) suspicious: bool,
}

/// A quoted line shorter than this was not wrapped.
const WRAPPED_BYTES_MIN: usize = 40;
/// The mark for invisible text.
const UNSEEN: char = '\u{fffd}';

/// The sender's own words, with `\n` at the ends of lines and no empty lines at both ends.
pub(super) fn words(text: &str) -> Own {
    let mut suspicious = false;
    let lines: Vec<String> = text.lines().map(|line| clean(line, &mut suspicious)).collect();
    let mut own: Vec<&str> = Vec::new();
    let (mut at, mut quoted, mut gap, mut said) = (0, false, false, false);
    while at < lines.len() {
        let line = lines[at].as_str();
        if ends(&lines[at..]) {
            break;
        }
        if let Some(length) = attribution(&lines[at..]) {
            at += length;
            let next = lines[at..].iter().find(|line| !line.is_empty());
            // Without marks the end of the quoted text is unknown.
            if next.is_none_or(|next| !next.starts_with('>')) {
                break;
            }
            continue;
        }
        at += 1;
        if line.starts_with('>') {
            // Shorter lines were not wrapped.
            (quoted, gap) = (true, line.len() < WRAPPED_BYTES_MIN);
        } else if line.is_empty() {
            gap = true;
            own.push(line);
        } else if quoted && !gap && !said {
            // This looks like the rest of a wrapped quoted line.
            return Own { text: String::new(), suspicious };
        } else {
            said = true;
            own.push(unstarred(line));
        }
    }
    Own { text: own.join("\n").trim_matches('\n').to_owned(), suspicious }
}

/// A line without spaces and invisible characters at its ends. Those inside stay if characters of their script need them,
/// and are marked otherwise.
fn clean(line: &str, suspicious: &mut bool) -> String {
    let edge = |c: char| c.is_whitespace() || (invisible(c) && !turns(c));
    let line: Vec<char> = line.trim_matches(edge).chars().collect();
    let mut clean = String::with_capacity(line.len());
    for (at, c) in line.iter().enumerate() {
        let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| line.get(at));
        let word = beside.clone().any(|c| c.is_ascii_alphanumeric() || invisible(*c));
        let control = c.is_control() && *c != '\t';
        if turns(*c) || control || (invisible(*c) && word) {
            *suspicious = true;
            clean.push(UNSEEN);
        } else {
            clean.push(*c);
        }
    }
    clean
}

/// A line of bold words, as some programs write it in plain text, without its two stars.
fn unstarred(line: &str) -> &str {
    let inside = line.strip_prefix('*').and_then(|line| line.strip_suffix('*'));
    inside.filter(|inside| !inside.is_empty() && !inside.contains('*')).unwrap_or(line)
}

/// Returns true if a character changes the direction in which others are shown.
fn turns(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns true if the sender's text ends here: a signature, our own line or another mail begins.
fn ends(lines: &[String]) -> bool {
    if lines[0].starts_with('>') {
        return false;
    }
    let line = bare(&lines[0]);
    let rule = ["---", "___", "***", "===", "———", "–––", "───"].iter().any(|sign| line.starts_with(sign));
    rule || line == "--"
        || line.contains(FENCE)
        || starts(&line, MAIL_FOLLOWS)
        || starts(&line, MACHINE_SIGNATURES)
        || quoted_headers(lines)
}

/// A line in lower case, without the stars that some programs put around bold words.
fn bare(line: &str) -> String {
    let line: String = line.trim_start_matches(['*', ' ']).to_lowercase();
    if line.is_empty() { String::new() } else { line.replace('*', "") }
}

fn starts(line: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| line.starts_with(beginning))
}

/// Returns true if the headers of a quoted mail begin here: a sender's line with others soon after it, or two others.
fn quoted_headers(lines: &[String]) -> bool {
    let Some(first) = header_name(&lines[0]) else { return false };
    let behind = lines.iter().skip(1).filter(|line| !line.is_empty()).take(QUOTED_HEADER_LINES_MAX);
    let others = behind.filter_map(|line| header_name(line)).filter(|name| *name != first).count();
    let from = FROM_NAMES.contains(&first.as_str());
    others >= if from { 1 } else { 2 }
}

/// The name before a line's colon, if it is a mail header's.
fn header_name(line: &str) -> Option<String> {
    let (name, _) = line.split_once([':', '：'])?;
    if name.len() > ATTRIBUTION_BYTES_MAX {
        return None;
    }
    let name = bare(name).trim().to_owned();
    (FROM_NAMES.contains(&name.as_str()) || OTHER_NAMES.contains(&name.as_str())).then_some(name)
}

/// The number of lines of the attribution that begins here; `None` if none does.
fn attribution(lines: &[String]) -> Option<usize> {
    let first = lines[0].to_lowercase();
    let first = first.trim_start_matches(['\u{202b}', '\u{202a}', UNSEEN, '[', '(']);
    if lines[0].is_empty() || lines[0].starts_with('>') {
        return None;
    }
    let begins = starts(first, ATTRIBUTION_BEGINS) || dated(first) || first.contains('@');
    let lines_max = if begins { ATTRIBUTION_LINES_MAX } else { 1 };
    let block = lines.iter().take(lines_max).take_while(|line| !line.is_empty() && !line.starts_with('>'));
    // An English one may name neither a date nor an address.
    let english = lines[0].starts_with("On ");
    let mut known = false;
    let mut joined = String::new();
    for (at, line) in block.enumerate() {
        if line.len() > ATTRIBUTION_BYTES_MAX {
            return None;
        }
        known |= line.contains('@') || line.chars().any(char::is_numeric);
        joined.push(' ');
        joined.push_str(&line.to_lowercase());
        let line = joined.trim_end_matches(|c: char| c == UNSEEN || c.is_whitespace() || invisible(c));
        if english && line.ends_with("wrote:") {
            return Some(at + 1);
        }
        if known && ATTRIBUTION_ENDS.iter().any(|end| line.ends_with(end)) {
            return Some(at + 1);
        }
        // Some languages put the name last.
        if known && line.ends_with(':') && VERBS_WITHIN.iter().any(|verb| line.contains(verb)) {
            return Some(at + 1);
        }
    }
    None
}

/// Returns true if a line has a year or a time of day in it.
fn dated(line: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let words = line.split(|c: char| !c.is_ascii_digit() && c != ':');
    words.into_iter().any(|word| match word.split_once(':') {
        Some((hour, minute)) => (1..=2).contains(&hour.len()) && minute.len() >= 2 && digits(hour),
        None => word.len() == 4 && digits(word) && (word.starts_with("20") || word.starts_with("19")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_english_attribution_needs_no_date() {
        assert_eq!(words("Yes\n\nOn Monday, Ann wrote:\n> Approve?\n").text, "Yes");
        assert_eq!(words("Yes\n\nOn Mon Ann wrote:\nApprove?\nno").text, "Yes", "quoted without marks");
        for own in
            ["On Monday I wrote to him\nand he came", "On it.\n\nShe wrote:", "On hold (see below):\nno"]
        {
            assert_eq!(words(own).text, own);
        }
    }
}
