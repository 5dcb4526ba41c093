//! The author's words inside messages.

use crate::limits::QUOTED_CHARS_MAX;

/// The text in backticks, cut to a bearable length, with nothing in it that moves a terminal's cursor or turns the
/// reading direction.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::from("`");
    for (at, c) in text.chars().enumerate() {
        if at == QUOTED_CHARS_MAX {
            out.push('…');
            break;
        }
        out.push(shown(c));
    }
    out.push('`');
    out
}

/// The character itself, or a replacement if showing it could have an effect.
pub(crate) fn shown(c: char) -> char {
    let moves = c.is_control();
    let hides = matches!(
        c,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    );
    if moves || hides { '\u{fffd}' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_nothing() {
        assert_eq!(quoted("a\u{1b}[2Jb\u{202e}c\nd"), "`a\u{fffd}[2Jb\u{fffd}c\u{fffd}d`");
        assert_eq!(quoted("a\u{61c}b"), "`a\u{fffd}b`");
        assert_eq!(quoted(&"x".repeat(500)).chars().count(), QUOTED_CHARS_MAX + 3);
        assert_eq!(quoted("é→ö"), "`é→ö`");
    }
}
