//! Transforms, one by one.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn applied(word: &str, value: Value) -> Result<Value, TransformError> {
    Transform::from_word(word).unwrap().apply(&value)
}

fn round_to(digits: u8, value: Value) -> Value {
    Transform::Round { digits }.apply(&value).unwrap()
}

#[test]
fn every_word_is_a_transform() {
    assert!(Transform::WORDS.iter().all(|word| Transform::from_word(word).is_some()));
    assert_eq!(Transform::from_word("upper"), None);
}

#[test]
fn texts_are_changed_and_nothing_else() {
    assert_eq!(applied("uppercase", json!("aß é")), Ok(json!("ASS É")));
    assert_eq!(applied("lowercase", json!("AÉ")), Ok(json!("aé")));
    assert_eq!(applied("trim", json!(" \n a b\t ")), Ok(json!("a b")));
    for word in ["uppercase", "lowercase", "trim", "split"] {
        assert_eq!(applied(word, json!(1)), Err(TransformError::NotText));
    }
    assert_eq!(applied("uppercase", json!("ŉ".repeat(TEXT_BYTES_MAX / 2))), Err(TransformError::TooLarge));
}

#[test]
fn texts_are_split_and_lists_joined() {
    assert_eq!(applied("split", json!("a, b,,")), Ok(json!(["a", " b", "", ""])));
    assert_eq!(applied("split", json!("")), Ok(json!([""])));
    assert_eq!(applied("join", json!(["a", 1, null, [true]])), Ok(json!("a,1,,[true]")));
    assert_eq!(applied("join", json!([])), Ok(json!("")));
    assert_eq!(applied("join", json!("a")), Err(TransformError::NotList));
    let dashes = Transform::Split { separator: "--".into() };
    assert_eq!(dashes.apply(&json!("a--b-c")), Ok(json!(["a", "b-c"])));
    assert_eq!(Transform::Join { separator: " ".into() }.apply(&json!(["a", "b"])), Ok(json!("a b")));
    assert_eq!(
        Transform::Split { separator: String::new() }.apply(&json!("a")),
        Err(TransformError::NoSeparator)
    );
    assert_eq!(applied("split", json!(",".repeat(LIST_ITEMS_MAX))), Err(TransformError::TooLarge));
    let wide = Transform::Join { separator: "x".repeat(TEXT_BYTES_MAX) };
    assert_eq!(wide.apply(&json!([1, 2])), Err(TransformError::TooLarge));
}

#[test]
fn halves_go_away_from_zero() {
    for (number, rounded) in [
        (0.5, 1),
        (-0.5, -1),
        (1.5, 2),
        (2.5, 3),
        (-2.5, -3),
        (2.4999, 2),
        (999.5, 1000),
        (0.4, 0),
        (-0.4, 0),
    ] {
        assert_eq!(round_to(0, json!(number)), json!(rounded), "{number}");
    }
    assert_eq!(round_to(2, json!(2.675)), json!(2.68));
    assert_eq!(round_to(2, json!(-1.005)), json!(-1.01));
    assert_eq!(round_to(1, json!(9.96)), json!(10));
    assert_eq!(round_to(3, json!(1.5)), json!(1.5));
    assert_eq!(round_to(2, json!(7)), json!(7));
    assert_eq!(round_to(1, json!("12.35")), json!(12.4));
    assert_eq!(applied("round", json!(1e300)), Ok(json!(1e300)));
    assert_eq!(applied("round", json!(1.5e20)), Ok(json!(1.5e20)), "too large for a whole number");
    assert_eq!(applied("round", json!("x")), Err(TransformError::NotNumber));
    assert_eq!(Transform::Round { digits: 16 }.apply(&json!(1)), Err(TransformError::TooLarge));
}

#[test]
fn texts_become_numbers_and_values_texts() {
    assert_eq!(applied("to_number", json!(" 12 ")), Ok(json!(12)));
    assert_eq!(applied("to_number", json!("-1.50")), Ok(json!(-1.5)));
    assert_eq!(applied("to_number", json!(3.5)), Ok(json!(3.5)));
    for odd in [json!("12 apples"), json!(""), json!("inf"), json!(true), json!(null), json!("1e999")] {
        assert_eq!(applied("to_number", odd.clone()), Err(TransformError::NotNumber), "{odd}");
    }
    assert_eq!(applied("to_number", json!("99999999999999999999")), Err(TransformError::TooLarge));
    for (value, text) in
        [(json!("a"), "a"), (json!(1.5), "1.5"), (json!(null), ""), (json!({"a": [1]}), "{\"a\":[1]}")]
    {
        assert_eq!(applied("to_string", value), Ok(json!(text)));
    }
}

proptest! {
    #[test]
    fn what_is_split_is_joined_again(text in ".{0,60}", separator in ".{1,3}") {
        let split = Transform::Split { separator: separator.clone() }.apply(&json!(text)).unwrap();
        prop_assert_eq!(Transform::Join { separator }.apply(&split), Ok(json!(text)));
    }

    #[test]
    fn hundredths_are_rounded_as_integers_are(hundredths in -1_000_000_i64..1_000_000) {
        let sign = if hundredths < 0 { "-" } else { "" };
        let text = format!("{sign}{}.{:02}", hundredths.abs() / 100, hundredths.abs() % 100);
        let tenths = (hundredths.abs() + 5) / 10 * hundredths.signum();
        let expected = Amount::of_text(&format!("{}e-1", tenths)).unwrap().value().unwrap();
        let number: f64 = text.parse().unwrap();
        prop_assert_eq!(round_to(1, json!(number)), expected);
    }

    #[test]
    fn no_number_is_too_odd(bits in any::<u64>(), digits in 0..=ROUND_DIGITS_MAX) {
        let number = f64::from_bits(bits);
        prop_assume!(number.is_finite());
        let rounded = round_to(digits, json!(number)).as_f64().unwrap();
        prop_assert!((rounded - number).abs() <= 0.5 + number.abs() * 1e-12);
    }
}
