//! Comparisons, operator by operator.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn is(left: Value, op: CmpOp, right: Value) -> bool {
    compare(Some(&left), op, &right).unwrap()
}

fn check_pattern(pattern: &str) -> Result<(), CompareError> {
    Patterns::default().check(pattern)
}

#[test]
fn words_are_the_sources() {
    let words = ["eq", "neq", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "matches"];
    assert_eq!(CmpOp::ALL.map(CmpOp::word), words);
    assert_eq!(CmpOp::from_word("not_in"), Some(CmpOp::NotIn));
    assert_eq!(CmpOp::from_word("EQ"), None);
}

#[test]
fn what_is_absent_is_unequal_and_in_nothing() {
    let truths: Vec<&str> = CmpOp::ALL
        .into_iter()
        .filter(|op| compare(None, *op, &json!("[")).unwrap())
        .map(CmpOp::word)
        .collect();
    assert_eq!(truths, ["neq", "not_in"]);
}

#[test]
fn equality_is_that_of_json_with_numbers_by_worth() {
    for (left, right) in [
        (json!(1), json!(1.0)),
        (json!([1, {"a": 2}]), json!([1.0, {"a": 2.0}])),
        (json!(0), json!(-0.0)),
        (json!(null), json!(null)),
        (json!(u64::MAX), json!(u64::MAX)),
    ] {
        assert!(is(left.clone(), CmpOp::Eq, right.clone()) && !is(left, CmpOp::Neq, right));
    }
    for (left, right) in [
        (json!(1), json!("1")),
        (json!(1), json!(true)),
        (json!("a"), json!("A")),
        (json!([1]), json!([1, 1])),
        (json!({"a": 1}), json!({"b": 1})),
        (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64)),
    ] {
        assert!(!is(left.clone(), CmpOp::Eq, right.clone()) && is(left, CmpOp::Neq, right));
    }
}

#[test]
fn order_reads_numeric_text_and_is_false_for_the_rest() {
    assert!(is(json!("12"), CmpOp::Gt, json!(9)) && is(json!(12), CmpOp::Gt, json!("9")));
    assert!(is(json!(" 1e3 "), CmpOp::Gte, json!("1000")) && is(json!("-0.5"), CmpOp::Lt, json!(0)));
    assert!(is(json!(2), CmpOp::Lte, json!(2.0)) && !is(json!(2), CmpOp::Lt, json!(2.0)));
    for odd in [
        json!("many"),
        json!(""),
        json!("0x10"),
        json!("NaN"),
        json!("inf"),
        json!("e"),
        json!(true),
        json!(null),
        json!([1]),
    ] {
        for op in [CmpOp::Gt, CmpOp::Gte, CmpOp::Lt, CmpOp::Lte] {
            assert!(!is(odd.clone(), op, json!(1)) && !is(json!(1), op, odd.clone()), "{odd} {}", op.word());
        }
    }
}

#[test]
fn lists_hold_what_is_equal_to_an_item() {
    assert!(is(json!(1), CmpOp::In, json!(["1", 1.0])) && !is(json!(1), CmpOp::In, json!(["1"])));
    assert!(is(json!(1), CmpOp::NotIn, json!(["1"])) && !is(json!("x"), CmpOp::NotIn, json!(["x"])));
    assert!(!is(json!("a"), CmpOp::In, json!("abc")) && is(json!("a"), CmpOp::NotIn, json!("abc")));
}

#[test]
fn texts_lists_and_dictionaries_contain() {
    assert!(
        is(json!("order 66"), CmpOp::Contains, json!("der"))
            && is(json!("order 66"), CmpOp::Contains, json!(66))
    );
    assert!(
        !is(json!("order"), CmpOp::Contains, json!("Order"))
            && !is(json!("null"), CmpOp::Contains, json!(null))
    );
    assert!(
        is(json!([1, "a"]), CmpOp::Contains, json!("a"))
            && !is(json!([1, "ab"]), CmpOp::Contains, json!("a"))
    );
    assert!(
        is(json!({"a": 1}), CmpOp::Contains, json!("a")) && !is(json!({"a": 1}), CmpOp::Contains, json!(1))
    );
    assert!(!is(json!(123), CmpOp::Contains, json!(2)));
}

#[test]
fn a_pattern_is_searched_for() {
    assert!(is(json!("the order AB-12 came"), CmpOp::Matches, json!("[A-Z]{2}-[0-9]+")));
    assert!(!is(json!("the order"), CmpOp::Matches, json!("^order")));
    assert!(
        is(json!(1250), CmpOp::Matches, json!("^12")) && is(json!(["a"]), CmpOp::Matches, json!("\"a\""))
    );
}

#[test]
fn a_pattern_that_is_none_or_too_large_is_an_error() {
    let error = |pattern: Value| compare(Some(&json!("x")), CmpOp::Matches, &pattern).unwrap_err();
    assert_eq!(error(json!("(")), CompareError::BadPattern);
    assert_eq!(error(json!("(?=x)")), CompareError::BadPattern);
    assert_eq!(error(json!(7)), CompareError::NotText);
    assert_eq!(error(json!("(?:(?:a{100}){100}){100}")), CompareError::PatternTooLarge);
    assert_eq!(error(json!("a".repeat(REGEX_BYTES_MAX + 1))), CompareError::PatternTooLarge);
    assert_eq!(error(json!(format!("{}a{}", "(".repeat(1000), ")".repeat(1000)))), CompareError::BadPattern);
    assert_eq!(check_pattern("(a+)+$"), Ok(()));
    let long = json!("a".repeat(100_000) + "!");
    assert!(!is(long, CmpOp::Matches, json!("^(a+)+$")), "in linear time");
}

proptest! {
    #[test]
    fn numbers_are_ordered_as_they_are(a in -1000_i64..1000, b in -1000_i64..1000) {
        for (left, right) in [(json!(a), json!(b)), (json!(a.to_string()), json!(b)), (json!(a), json!(format!("{b}.0")))] {
            prop_assert_eq!(is(left.clone(), CmpOp::Gt, right.clone()), a > b);
            prop_assert_eq!(is(left.clone(), CmpOp::Gte, right.clone()), a >= b);
            prop_assert_eq!(is(left.clone(), CmpOp::Lt, right.clone()), a < b);
            prop_assert_eq!(is(left, CmpOp::Lte, right), a <= b);
        }
    }

    #[test]
    fn no_pattern_is_too_odd(pattern in ".{0,40}", text in ".{0,40}") {
        let _ = compare(Some(&json!(text)), CmpOp::Matches, &json!(pattern));
        prop_assert!(is(json!(text.clone()), CmpOp::Matches, json!(regex::escape(&text))));
    }
}

#[test]
fn patterns_are_compiled_once_and_all_of_them_within_a_bound() {
    let mut patterns = Patterns::default();
    let fuel = Fuel::unlimited();
    let mut matches =
        |pattern: String| patterns.compare(Some(&json!("x1")), CmpOp::Matches, &json!(pattern), &fuel);
    let most = REGEXES_COMPILED_BYTES_MAX / REGEX_COMPILED_BYTES_MIN;
    let known = (0..).find(|at| matches(format!("x{at}$")).is_err()).unwrap();
    assert!((1..=most).contains(&known), "{known}");
    assert_eq!(matches("y".into()), Err(CompareError::PatternsTooLarge));
    for _ in 0..=most {
        assert_eq!(matches("x1$".into()), Ok(true), "it is known");
    }
}

/// Each operator takes work that grows with what it reads, and ends without a result if there is no more fuel.
#[test]
fn comparisons_are_paid_for() {
    let (text, list) = (json!("x".repeat(1_000)), json!(vec!["x"; 1_000]));
    let cases = [
        (&text, CmpOp::Eq, &text),
        (&list, CmpOp::Neq, &list),
        (&text, CmpOp::Gt, &json!(1)),
        (&json!("y"), CmpOp::In, &list),
        (&json!("y"), CmpOp::NotIn, &list),
        (&list, CmpOp::Contains, &json!("y")),
        (&text, CmpOp::Contains, &json!("y")),
        (&text, CmpOp::Matches, &json!("y")),
    ];
    for (left, op, right) in cases {
        let fuel = Fuel::new(u64::MAX);
        assert!(Patterns::default().compare(Some(left), op, right, &fuel).is_ok(), "{op:?}");
        assert!(u64::MAX - fuel.left() >= 1_000, "{op:?}");
        let compared = Patterns::default().compare(Some(left), op, right, &Fuel::new(1_000));
        assert_eq!(compared, Err(CompareError::Fuel), "{op:?}");
    }
}

/// The work of a pattern is that of its text and of what it compiles to.
#[test]
fn a_large_pattern_costs_more_than_a_small_one() {
    let text = json!("ab".repeat(500));
    let spent = |pattern: &str| {
        let fuel = Fuel::new(u64::MAX);
        let found = Patterns::default().compare(Some(&text), CmpOp::Matches, &json!(pattern), &fuel);
        assert_eq!(found, Ok(false));
        u64::MAX - fuel.left()
    };
    assert!(spent("[ab]*a[ab]{2000}$") > 2 * spent("c"));
}
