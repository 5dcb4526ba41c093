//! The writer's own words in a reply that comes without its mail.

use switchward_expr::own_text;
use switchward_state::limits::REPLY_BYTES_MAX;

/// The writer's own words in the text of a reply, without what it quotes, at most [`REPLY_BYTES_MAX`] bytes: what a command
/// takes. Replies by mail are stripped by `mail`, which knows the form of the mail.
pub(super) fn own_words(text: &str) -> String {
    let mut own = own_text(text);
    own.truncate(own.floor_char_boundary(REPLY_BYTES_MAX));
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_what_is_too_long_are_left_out() {
        assert_eq!(own_words("approve\n> Approve?\nfine\n"), "approve\nfine");
        assert_eq!(own_words(&"é".repeat(REPLY_BYTES_MAX)).len(), REPLY_BYTES_MAX);
        assert_eq!(own_words(&format!("x{}", "é".repeat(REPLY_BYTES_MAX))).len(), REPLY_BYTES_MAX - 1);
    }
}
