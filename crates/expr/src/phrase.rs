//! Phrases in what people write: whole words, in any case.

use unicode_segmentation::UnicodeSegmentation;

use crate::limits::NEGATION_WORDS_MAX;

/// The phrases that confirm if a guard names none. See `docs/formats-conversation-operations.md#guards`,
/// `user_confirmed`.
pub const CONFIRMATIONS: &[&str] = &[
    "absolutely",
    "affirmative",
    "agree",
    "agreed",
    "approved",
    "confirm",
    "confirmed",
    "correct",
    "definitely",
    "go ahead",
    "looks good",
    "of course",
    "ok",
    "okay",
    "please do",
    "sounds good",
    "sure",
    "yeah",
    "yep",
    "yes",
    "yup",
];

/// Words that cancel a confirmation; so does every word that ends in `n't`.
const NEGATIONS: &[&str] = &[
    "cannot", "cant", "didnt", "doesnt", "dont", "isnt", "nah", "neither", "never", "no", "none", "nope",
    "nor", "not", "nothing", "shouldnt", "wasnt", "without", "wont", "wouldnt",
];

/// Returns true if a message confirms: it contains one of `phrases`, or of [`CONFIRMATIONS`] if there are none, without
/// a negation within [`NEGATION_WORDS_MAX`] words of it on either side
/// (`tests/corpus/conversation/sentences.tsv#4b-11`). One phrase that is not cancelled is enough. Words of the phrase
/// itself do not cancel it. A phrase of signs alone, such as an emoji, is cancelled by a negation anywhere.
#[must_use]
pub fn confirmed<S: AsRef<str>>(text: &str, phrases: &[S]) -> bool {
    let said = words(text);
    if phrases.is_empty() {
        return CONFIRMATIONS.iter().any(|phrase| affirms(&said, phrase));
    }
    let negated = || said.iter().any(|word| negates(word));
    let signed = |phrase: &str| has_sign(text, phrase) && !negated();
    phrases.iter().any(|phrase| affirms(&said, phrase.as_ref()) || signed(phrase.as_ref()))
}

fn affirms(said: &[String], phrase: &str) -> bool {
    let phrase = words(phrase);
    positions(said, &phrase).into_iter().any(|at| {
        let before = &said[at.saturating_sub(NEGATION_WORDS_MAX)..at];
        let after = said[at + phrase.len()..].iter().take(NEGATION_WORDS_MAX);
        !before.iter().chain(after).any(|word| negates(word))
    })
}

fn negates(word: &str) -> bool {
    word.ends_with("n't") || NEGATIONS.contains(&word)
}

/// The index of the only port of which the reply contains a hint. `None` if it is no port or several; the wait then goes
/// on (`tests/corpus/conversation/sentences.tsv#7c-1d`).
///
/// `ports` are pairs of a port and its hints.
#[must_use]
pub fn classify<P, S: AsRef<str>>(reply: &str, ports: &[(P, Vec<S>)]) -> Option<usize> {
    let said = words(reply);
    let says = |hint: &str| !positions(&said, &words(hint)).is_empty() || has_sign(reply, hint);
    let named = |hints: &[S]| hints.iter().any(|hint| says(hint.as_ref()));
    let mut found = ports.iter().enumerate().filter(|(_, (_, hints))| named(hints)).map(|(at, _)| at);
    match (found.next(), found.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// The phrases of a hint, which are separated by commas.
#[must_use]
pub fn hints(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|hint| !hint.is_empty()).map(str::to_owned).collect()
}

/// The words of a text in lower case, split at Unicode word boundaries; both kinds of apostrophe count as the same.
fn words(text: &str) -> Vec<String> {
    text.unicode_words().map(|word| word.to_lowercase().replace('\u{2019}', "'")).collect()
}

/// Returns true if the text contains a phrase that has no words, such as an emoji. A phrase of ASCII punctuation alone never
/// matches.
fn has_sign(text: &str, phrase: &str) -> bool {
    let phrase = phrase.trim();
    !phrase.is_ascii() && words(phrase).is_empty() && text.contains(phrase)
}

/// The positions among `words` at which the phrase begins.
fn positions(words: &[String], phrase: &[String]) -> Vec<usize> {
    if phrase.is_empty() {
        return Vec::new();
    }
    let windows = words.windows(phrase.len()).enumerate();
    windows.filter(|(_, window)| *window == phrase).map(|(at, _)| at).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DEFAULTS: &[&str] = &[];

    /// Returns true if the text contains the phrase, whatever is around it.
    fn contains_phrase(text: &str, phrase: &str) -> bool {
        let (words, phrase) = (words(text), words(phrase));
        !positions(&words, &phrase).is_empty()
    }

    #[test]
    fn phrases_are_whole_words_in_any_case() {
        assert!(contains_phrase("It LOOKS, good!", "looks good") && contains_phrase("Ça va: ÉTÉ", "été"));
        assert!(contains_phrase("I don\u{2019}t", "don't"));
        for (text, phrase) in [
            ("yesterday", "yes"),
            ("good looks", "looks good"),
            ("looks", "looks good"),
            ("nook", "ok"),
            ("any", ""),
            ("any", "!?"),
            ("", "yes"),
            ("étés", "été"),
        ] {
            assert!(!contains_phrase(text, phrase), "{phrase} in {text}");
        }
    }

    #[test]
    fn a_confirmation_is_found_and_a_negation_near_it_cancels_it() {
        for text in ["Yes", "ok.", "Sure, thanks", "I AGREE", "please go ahead now", "It is confirmed"] {
            assert!(confirmed(text, DEFAULTS), "{text}");
        }
        for text in [
            "",
            "maybe",
            "yesterday",
            "no",
            "not ok",
            "I am not so sure",
            "that's never really ok",
            "I don't agree",
            "I don\u{2019}t agree",
            "this isn't correct",
            "you cannot confirm",
            "ok? No",
            "yes I do not",
            "dont confirm",
        ] {
            assert!(!confirmed(text, DEFAULTS), "{text}");
        }
        assert!(
            confirmed("no one was there at first, yes", DEFAULTS),
            "a negation four words away does not count"
        );
        assert!(confirmed(
            "It's not what I had thought of; yes, ok and more words until here: not",
            DEFAULTS
        ));
    }

    #[test]
    fn phrases_of_a_guard_replace_the_defaults() {
        assert!(confirmed("ship it", &["ship it"]) && !confirmed("yes", &["ship it"]));
        assert!(
            confirmed("There are no objections", &["no objections"]),
            "a negation inside the phrase does not count"
        );
        assert!(!confirmed("There are not no objections", &["no objections"]));
        for (text, agrees) in [
            ("\u{1f44d}", true),
            ("fine\u{1f44d}\u{1f3fd}!", true),
            ("no \u{1f44d} from me", false),
            ("fine!", false),
        ] {
            assert_eq!(confirmed(text, &["\u{1f44d}", "!"]), agrees, "{text}");
        }
    }

    #[test]
    fn a_reply_is_classified_by_the_only_port_it_names() {
        let ports = [("interested", hints("yes, tell me more")), ("declined", hints("no,not interested"))];
        assert_eq!(classify("Please tell me MORE.", &ports), Some(0));
        assert_eq!(classify("we are not interested", &ports), Some(1));
        assert_eq!(classify("yes and no", &ports), None);
        assert_eq!(classify("later", &ports), None);
        let signs = [("keen", hints("yes, \u{1f44d}")), ("gone", hints("no, \u{1f44e}"))];
        assert_eq!(classify("\u{1f44e}", &signs), Some(1));
        assert_eq!(classify("\u{1f44d} or \u{1f44e}", &signs), None);
        assert_eq!(hints(" a b ,, c,"), ["a b", "c"]);
    }

    proptest! {
        #[test]
        fn a_phrase_is_found_among_other_words(before in "([a-z]{1,5} ){0,4}", phrase in "[a-z]{1,5}( [a-z]{1,5}){0,2}", after in "( [a-z]{1,5}){0,4}") {
            let text = format!("{before}{phrase}{after}");
            prop_assert!(contains_phrase(&text, &phrase) && contains_phrase(&text.to_uppercase(), &phrase));
            let glued = format!("{before}x{phrase}{after}");
            let others: Vec<&str> = glued.split(' ').collect();
            let there = others.windows(phrase.split(' ').count()).any(|window| window.join(" ") == phrase);
            prop_assert_eq!(contains_phrase(&glued, &phrase), there);
        }

        #[test]
        fn no_text_is_too_odd(text in ".{0,60}", phrase in ".{0,10}") {
            let _ = contains_phrase(&text, &phrase);
            let negated = format!("not {phrase}");
            prop_assert!(!confirmed(&negated, &[phrase]));
        }
    }
}
