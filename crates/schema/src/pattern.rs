//! Regular expressions of schemas: what does not run in linear time is refused before any engine sees it, and
//! what one costs is known from its text.

use crate::limits::{PATTERN_BYTES_MAX, PATTERN_COMPILED_BYTES_MAX};

/// Weights of parts of a pattern: about how many states an engine has for each.
const LITERAL: u64 = 2;
const SET: u64 = 24;
const PROPERTY: u64 = 800;
/// What a pattern can weigh at most: it is compiled to a bounded size, and a state takes at least 16 bytes of
/// it.
const WEIGHT_MAX: u64 = PATTERN_COMPILED_BYTES_MAX as u64 / 16;

/// Checks the text of a pattern.
///
/// # Errors
/// A sentence about what the engine in linear time lacks, or about a limit.
pub(crate) fn check(pattern: &str) -> Result<(), String> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(format!("the pattern is longer than {PATTERN_BYTES_MAX} bytes"));
    }
    let mut characters = pattern.chars().peekable();
    let mut in_set = false;
    let mut after_repeat = false;
    while let Some(character) = characters.next() {
        let repeats = !in_set && matches!(character, '*' | '+' | '?' | '}');
        match character {
            '\\' => match characters.next() {
                Some('1'..='9' | 'k') if !in_set => {
                    return Err("the pattern refers back to a group, which linear time excludes".to_owned());
                }
                // The braces of a property or of a code point repeat nothing.
                Some('p' | 'P' | 'u' | 'x') if characters.peek() == Some(&'{') => {
                    characters.by_ref().find(|character| *character == '}');
                }
                Some(_) => {}
                None => return Err("the pattern ends in a backslash".to_owned()),
            },
            '[' => in_set = true,
            ']' => in_set = false,
            '(' if !in_set && characters.peek() == Some(&'?') => {
                characters.next();
                check_group(&characters.clone().take(2).collect::<String>())?;
            }
            '+' if after_repeat => {
                return Err("the pattern repeats a repetition".to_owned());
            }
            _ => {}
        }
        after_repeat = repeats;
    }
    Ok(())
}

/// Checks what stands after `(?`.
fn check_group(begin: &str) -> Result<(), String> {
    let looks = begin.starts_with(['=', '!']) || begin.starts_with("<=") || begin.starts_with("<!");
    if looks {
        return Err("the pattern looks ahead or behind, which linear time excludes".to_owned());
    }
    if begin.starts_with(['>', '(', '|', '&']) {
        return Err("the pattern has a group that linear time excludes".to_owned());
    }
    Ok(())
}

/// About how many states an engine may look at for one byte of a text; more rather than less.
pub(crate) fn weight(pattern: &str) -> u64 {
    // What is open: the weight before each group, and of the group's last part.
    let mut stack: Vec<u64> = Vec::new();
    let mut sum: u64 = 1;
    let mut last: u64 = 0;
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        let mut length = character.len_utf8();
        match character {
            '(' => {
                stack.push(sum);
                sum = 0;
                last = 0;
            }
            ')' => {
                last = sum;
                sum = sum.saturating_add(stack.pop().unwrap_or_default());
            }
            '[' => {
                let inner = set_length(rest);
                let set = &rest[..inner];
                length = inner;
                let properties = set.matches("\\p").count() + set.matches("\\P").count();
                let wide = u64::try_from(set.len() + properties * 100).unwrap_or(u64::MAX);
                last = SET.saturating_add(wide.saturating_mul(8));
                sum = sum.saturating_add(last);
            }
            '\\' => {
                let escaped = rest[1..].chars().next();
                length += escaped.map_or(0, char::len_utf8);
                last = match escaped {
                    Some('p' | 'P') => PROPERTY,
                    Some(_) => SET,
                    None => LITERAL,
                };
                sum = sum.saturating_add(last);
            }
            '{' => {
                let times = repeated(rest);
                sum = sum.saturating_add(last.saturating_mul(times.saturating_sub(1)));
                last = last.saturating_mul(times);
            }
            // Another repetition of the same part may follow.
            '*' | '+' | '?' => sum = sum.saturating_add(LITERAL),
            _ => {
                last = if character == '.' { SET } else { LITERAL };
                sum = sum.saturating_add(last);
            }
        }
        rest = &rest[length..];
    }
    stack.into_iter().fold(sum, u64::saturating_add).min(WEIGHT_MAX)
}

/// The length of a set of characters at the beginning of a text, brackets included, bytes.
fn set_length(text: &str) -> usize {
    let mut escaped = false;
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => depth += 1,
            ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// The larger number of `{m,n}` at the beginning of a text; 1 if it is none.
fn repeated(text: &str) -> u64 {
    let inner = text[1..].split('}').next().unwrap_or_default();
    inner.split(',').filter_map(|number| number.trim().parse::<u64>().ok()).max().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_backtracks_is_refused() {
        for pattern in [
            "(?=a)b",
            "(?!a)b",
            "(?<=a)b",
            "(?<!a)b",
            r"(a)\1",
            r"(?<x>a)\k<x>",
            "(?>a)",
            "a++",
            "a*+",
            "a{2}+",
            "\\",
        ] {
            assert!(check(pattern).is_err(), "{pattern}");
        }
        assert!(check(&"a".repeat(PATTERN_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn ordinary_patterns_pass() {
        for pattern in [
            "^a*$",
            "(?:a|b)+",
            "(?<name>a)",
            r"[\1(?=]",
            r"^\d{3}-\p{L}+$",
            "[+*]+",
            "a+?",
            r"\\+",
            "(?i)a",
            "ünï",
        ] {
            assert_eq!(check(pattern), Ok(()), "{pattern}");
        }
    }

    #[test]
    fn repetitions_multiply() {
        assert!(weight("(a{50})+{50}") >= 2_500 * LITERAL);
        assert_eq!(weight("((((a{99}){99}){99}){99}){99}"), WEIGHT_MAX);
        assert!(weight("[a-z]{1,32}") >= 32 * SET);
        assert!(weight("^abc$") < 64);
        assert!(weight(")(]{[\\") > weight(")"));
    }
}
