//! Foreign text, made safe to show.

/// Replaces every character that moves a terminal's cursor, recolours it, is invisible or changes the reading direction:
/// an agent's text must not be able to look like something else.
#[must_use]
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if (c.is_control() && c != '\n') || hides(c) { '\u{fffd}' } else { c }).collect()
}

/// Replaces every character of a prose text that changes its reading direction or controls a terminal. Joiners and
/// non-joiners stay, which some languages need.
#[must_use]
pub fn prose(text: &str) -> String {
    let plain = |c: char| (!c.is_control() || matches!(c, '\n' | '\r' | '\t')) && !turns(c);
    text.chars().map(|c| if plain(c) { c } else { '\u{fffd}' }).collect()
}

/// Escapes invisible and direction-changing characters in JSON. The value stays the same, and two values that differ also
/// look different.
#[must_use]
pub fn exact(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && (c.is_control() || hides(c)) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
        } else {
            text.push(c);
        }
    }
    text
}

/// Returns true for a character that is invisible or changes the direction of its neighbours.
fn hides(c: char) -> bool {
    turns(c)
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
                | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_or_hides_is_seen() {
        assert_eq!(clean("a\u{1b}[2Jb\u{202e}c\u{200b}\nd"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}\nd");
        assert_eq!(
            prose("a\u{1b}b\u{202e}c\u{2067}\u{200c}\n\td"),
            "a\u{fffd}b\u{fffd}c\u{fffd}\u{200c}\n\td"
        );
        assert_eq!(prose("\u{61c}100 - 20"), "\u{fffd}100 - 20", "after it, the numbers change places");
        assert_eq!(exact("{\"a\":\"\u{202e}\"}\n"), "{\"a\":\"\\u202e\"}\n");
    }
}
