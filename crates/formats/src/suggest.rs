//! The name that was probably meant.

use crate::limits::COMPARED_CHARS_MAX;

/// The candidate with the fewest edits from `word`, the first of several; nothing where even that one differs in
/// more than a third of its characters. Case does not matter. Every comparison uses one of `left` up.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    left: &mut usize,
) -> Option<String> {
    let word_chars = word.chars().count();
    if word_chars > COMPARED_CHARS_MAX {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if *left == 0 {
            break;
        }
        let chars = candidate.chars().count();
        let edits_max = word_chars.max(chars) / 3;
        if chars > COMPARED_CHARS_MAX || chars.abs_diff(word_chars) > edits_max {
            continue;
        }
        *left -= 1;
        let edits = strsim::osa_distance(&word.to_lowercase(), &candidate.to_lowercase());
        if edits <= edits_max && best.is_none_or(|(fewest, _)| edits < fewest) {
            best = Some((edits, candidate));
        }
    }
    best.map(|(_, name)| name.to_owned())
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
            "the first"
        );
        assert_eq!(near("ox"), None, "of two letters, one is half");
    }

    #[test]
    fn comparisons_are_bounded() {
        let mut left = 1;
        assert_eq!(nearest("beta", ["bela", "beta"], &mut left).as_deref(), Some("bela"));
        assert_eq!(left, 0);
        assert_eq!(nearest("beta", ["beta"], &mut left), None);
    }
}
