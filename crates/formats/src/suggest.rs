//! The name that was probably meant.

use std::cmp::Reverse;

use crate::limits::COMPARED_CHARS_MAX;

/// The least length of a word that may match the beginning or a part of a name, characters.
const PART_CHARS_MIN: usize = 3;

/// The candidate that was probably meant by `word`: the one with the fewest edits, if it differs in at most a third of its
/// characters; else the shortest one of which `word` is a prefix or a whole part, or which is one of `word`. The first
/// one wins a tie. Case does not matter. Every comparison decrements `left`.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    left: &mut usize,
) -> Option<String> {
    let word = word.to_lowercase();
    let word_chars = word.chars().count();
    if word_chars > COMPARED_CHARS_MAX {
        return None;
    }
    let mut best: Option<((usize, Reverse<usize>), &str)> = None;
    let mut part: Option<(usize, &str)> = None;
    for candidate in candidates {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let chars = candidate.chars().count();
        if chars > COMPARED_CHARS_MAX {
            continue;
        }
        let name = candidate.to_lowercase();
        let edits_max = word_chars.max(chars) / 3;
        if chars.abs_diff(word_chars) <= edits_max {
            let rank = (strsim::osa_distance(&word, &name), Reverse(shared(&word, &name)));
            if rank.0 <= edits_max && best.is_none_or(|(fewest, _)| rank < fewest) {
                best = Some((rank, candidate));
            }
        }
        let surplus = chars.abs_diff(word_chars);
        if is_part(&word, &name) && part.is_none_or(|(least, _)| surplus < least) {
            part = Some((surplus, candidate));
        }
    }
    best.map(|(_, name)| name).or(part.map(|(_, name)| name)).map(str::to_owned)
}

/// The length of the common prefix plus that of the common suffix, characters.
fn shared(one: &str, other: &str) -> usize {
    let begin = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    begin + one.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b).count()
}

/// Returns true if one is a prefix of the other, or a whole part of it between hyphens, underscores, dots or spaces.
fn is_part(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if short.chars().count() < PART_CHARS_MIN {
        return false;
    }
    let bound = |c: Option<char>| c.is_none_or(|c| matches!(c, '_' | '-' | '.' | ' '));
    // A word may be a prefix of a name; if it is longer than the name, only whole parts count.
    let begins = one.len() <= other.len() && other.starts_with(one);
    begins
        || long.match_indices(short).any(|(at, _)| {
            bound(long[..at].chars().next_back()) && bound(long[at + short.len()..].chars().next())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_found_and_what_is_far_is_not() {
        let names = ["env-check", "migration-check", "traffic-check", "ok"];
        let near = |word| nearest(word, names, &mut 100);
        assert_eq!(near("migration-chek").as_deref(), Some("migration-check"));
        assert_eq!(near("evn-check").as_deref(), Some("env-check"));
        assert_eq!(near("TRAFFIC-CHECK").as_deref(), Some("traffic-check"));
        assert_eq!(near("nowhere"), None);
        assert_eq!(near("OK").as_deref(), Some("ok"));
        assert_eq!(
            nearest("state-x", ["state-a", "state-b"], &mut 9).as_deref(),
            Some("state-a"),
            "the first of equal distance"
        );
        assert_eq!(near("ox"), None, "one letter of two is too much of the word");
        assert_eq!(
            nearest("orde", ["code", "order"], &mut 9).as_deref(),
            Some("order"),
            "of two at the same distance, the one with the same beginning"
        );
    }

    #[test]
    fn beginnings_and_parts_of_names_are_found() {
        let names =
            ["subject_template", "body_template", "timeout_hours", "notify_human", "description", "to"];
        let near = |word| nearest(word, names, &mut 100);
        assert_eq!(near("subject").as_deref(), Some("subject_template"));
        assert_eq!(near("timeout").as_deref(), Some("timeout_hours"));
        assert_eq!(near("notify").as_deref(), Some("notify_human"));
        assert_eq!(near("desc").as_deref(), Some("description"));
        assert_eq!(near("template").as_deref(), Some("body_template"));
        assert_eq!(near("hours").as_deref(), Some("timeout_hours"));
        assert_eq!(nearest("approver-list", ["approver", "list-x"], &mut 9).as_deref(), Some("approver"));
        assert_eq!(near("our"), None, "it is in the middle of a part");
        assert_eq!(near("total"), None, "two letters are not a part");
        assert_eq!(near("ünï"), None);
    }

    #[test]
    fn comparisons_are_bounded() {
        let mut left = 1;
        assert_eq!(nearest("beta", ["bela", "beta"], &mut left).as_deref(), Some("bela"));
        assert_eq!(left, 0);
        assert_eq!(nearest("beta", ["beta"], &mut left), None);
    }
}
