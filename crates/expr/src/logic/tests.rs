use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::limits::{
    LIST_ITEMS_MAX, LOGIC_DEPTH_MAX, LOGIC_FUEL_MAX, LOGIC_STEP_FUEL, LOGIC_VALUES_MAX, LOGIC_WORD_CHARS_MAX,
    TEXT_BYTES_MAX,
};
use crate::path::PathError;

fn over(rule: Value, data: &Value) -> Result<Value, LogicFault> {
    Logic::parse(&rule).unwrap().evaluate(data, &Fuel::unlimited())
}

fn evaluated(rule: Value) -> Result<Value, LogicFault> {
    let data = json!({
        "gate": {"rows": [{"n": 3}]}, "none": null, "list": [1, 2, 3], "text": "abc", "empty": [],
        "object": {"a": 1},
    });
    over(rule, &data)
}

fn refused(rule: Value) -> (String, LogicProblem) {
    let LogicError { at, problem } = Logic::parse(&rule).unwrap_err();
    (at, problem)
}

fn at(at: &str, problem: LogicProblem) -> (String, LogicProblem) {
    (at.to_owned(), problem)
}

#[test]
fn the_data_are_read_from_their_root() {
    assert_eq!(evaluated(json!({"var": "gate.rows.0.n"})), Ok(json!(3)));
    assert_eq!(evaluated(json!({"var": ["gate.rows.0.n"]})), Ok(json!(3)));
    assert_eq!(evaluated(json!({"var": "context.gate"})), Ok(json!(null)));
    assert_eq!(evaluated(json!({"var": "gate.rows.1.n"})), Ok(json!(null)));
    assert_eq!(evaluated(json!({"var": ["nobody", {"var": "text"}]})), Ok(json!("abc")));
    assert_eq!(evaluated(json!({"var": ["none", 1]})), Ok(json!(null)), "null is there");
    assert_eq!(evaluated(json!({"var": {"cat": ["te", "xt"]}})), Ok(json!("abc")));
    assert_eq!(evaluated(json!({"var": [{"cat": ["te", "xt"]}]})), Ok(json!("abc")));
    assert_eq!(evaluated(json!({"var": {"var": "none"}})).unwrap()["text"], json!("abc"));
    assert_eq!(evaluated(json!({"var": {"var": "list"}})), Err(LogicFault::NotPath { kind: "a list" }));
    let bad = json!({"var": {"cat": ["a.", ".b"]}});
    assert_eq!(evaluated(bad), Err(LogicFault::BadPath(PathError::EmptyName)));
}

#[test]
fn what_is_empty_is_false() {
    let holds = |value: Value| Logic::parse(&value).unwrap().holds(&json!({}), &Fuel::unlimited()).unwrap();
    for no in [json!(null), json!(false), json!(0), json!(-0.0), json!(""), json!([]), json!({"var": "x"})] {
        assert!(!holds(no.clone()), "{no}");
    }
    for yes in [json!(true), json!(-1), json!(0.5), json!("0"), json!("false"), json!([0]), json!({})] {
        assert!(holds(yes.clone()), "{yes}");
    }
}

#[test]
fn an_unknown_operator_is_refused_where_it_stands() {
    let unknown = |word: &str| LogicProblem::UnknownOperator { word: word.to_owned() };
    assert_eq!(refused(json!({"equals": [1, 1]})), at("", unknown("equals")));
    let nested = json!({"and": [true, {"/": [1, {"Var": "x"}]}]});
    assert_eq!(refused(nested.clone()), at("/and/1/~1/1", unknown("Var")));
    let error = Logic::parse(&nested).unwrap_err();
    assert_eq!(error.to_string(), "unknown operator \"Var\" (at /and/1/~1/1)");
    let long = "é".repeat(1_000);
    assert_eq!(refused(json!({ long: 1 })), at("", unknown(&"é".repeat(LOGIC_WORD_CHARS_MAX))));
    assert_eq!(refused(json!([{"and": [], "or": []}])), at("/0", LogicProblem::SeveralOperators));
}

#[test]
fn arguments_are_counted() {
    let wrong = |rule: Value, pointer: &str, operator: &'static str, least: usize, most: usize| {
        let arity = LogicArity { least, most };
        assert_eq!(refused(rule), at(pointer, LogicProblem::ArgumentCount { operator, arity }));
    };
    wrong(json!({"<": [1]}), "/<", "<", 2, usize::MAX);
    wrong(json!({"in": ["a", "b", "c"]}), "/in", "in", 2, 2);
    wrong(json!({"!": [1, 2]}), "/!", "!", 0, 1);
    wrong(json!({"%": 1}), "/%", "%", 2, usize::MAX);
    wrong(json!({"-": []}), "/-", "-", 1, usize::MAX);
    wrong(json!({"if": [{"var": ["a", "b", "c"]}]}), "/if/0/var", "var", 0, 2);
    wrong(json!({"reduce": [[]]}), "/reduce", "reduce", 2, 3);
    assert_eq!(refused(json!({"and": true})), at("/and", LogicProblem::NoArguments { operator: "and" }));
    assert_eq!(refused(json!({"map": [1, 2]})), at("/map/0", LogicProblem::NoList { operator: "map" }));
    let texts = [(2, usize::MAX, "at least 2 arguments"), (1, usize::MAX, "at least 1 argument")];
    for (least, most, text) in texts.into_iter().chain([(2, 2, "2 arguments"), (0, 1, "at most 1 argument")])
    {
        assert_eq!(LogicArity { least, most }.to_string(), text);
    }
    assert_eq!(LogicArity { least: 2, most: 3 }.to_string(), "2 to 3 arguments");
}

#[test]
fn a_bad_path_is_refused() {
    let bad = LogicProblem::BadPath;
    assert_eq!(refused(json!({"!": {"var": "a..b"}})), at("/!/var", bad(PathError::EmptyName)));
    assert_eq!(refused(json!({"missing": ["a", "{b}"]})), at("/missing", bad(PathError::BadName)));
    assert_eq!(refused(json!({"var": true})), at("/var", LogicProblem::NoPath));
    assert_eq!(refused(json!({"var": [["a"]]})), at("/var", LogicProblem::NoPath));
}

#[test]
fn a_guard_is_an_operation_or_a_boolean() {
    for good in [json!(true), json!(false), json!({"var": "x"})] {
        assert_eq!(Logic::guard(&good).unwrap().as_str(), good.to_string());
    }
    for bad in [json!(null), json!(1), json!("true"), json!([]), json!([{"var": "x"}]), json!({})] {
        let error = Logic::guard(&bad).unwrap_err();
        assert_eq!((error.at.as_str(), error.problem), ("", LogicProblem::NoCondition), "{bad}");
    }
    assert_eq!(Logic::guard_json(" {\"var\": \"x\"}").unwrap().as_str(), "{\"var\":\"x\"}");
    assert_eq!(Logic::guard_json("[]").unwrap_err().problem, LogicProblem::NoCondition);
    for bad in ["", "{", "{} {}", &"[".repeat(1_000)] {
        assert_eq!(Logic::guard_json(bad).unwrap_err().problem, LogicProblem::NotJson, "{bad}");
    }
    assert!(Logic::guard(&json!(true)).unwrap().is_true());
    for other in [json!(false), json!({"!": false})] {
        assert!(!Logic::guard(&other).unwrap().is_true(), "{other}");
    }
}

#[test]
fn what_is_read_is_listed() {
    let reads = |rule: Value| {
        let reads = Logic::parse(&rule).unwrap().reads().clone();
        let paths = reads.paths.iter().map(|read| format!("{} {}", read.path.as_str(), read.at));
        (paths.collect::<Vec<_>>(), reads.others)
    };
    let rule = json!({"and": [{"var": "a.b"}, {"==": [{"var": ["c", {"var": "d"}]}, 1]}]});
    let paths = ["a.b /and/0/var", "c /and/1/==/0/var", "d /and/1/==/0/var/1/var"];
    assert_eq!(reads(rule), (paths.map(str::to_owned).to_vec(), false));
    let items =
        json!({"reduce": [{"filter": [{"var": "list"}, {"var": "x"}]}, {"var": "current.y"}, {"var": "z"}]});
    let paths = ["list /reduce/0/filter/0/var", "z /reduce/2/var"];
    assert_eq!(reads(items), (paths.map(str::to_owned).to_vec(), false), "items are read below the list");
    assert_eq!(reads(json!({"var": ""})), (Vec::new(), true));
    assert_eq!(reads(json!({"var": {"var": "key"}})), (vec!["key /var/var".to_owned()], true));
    assert!(!reads(json!({"map": [{"var": "list"}, {"var": ""}]})).1, "all of an item is read");
    let missing = (vec!["a /missing".to_owned(), "b.c /missing".to_owned()], false);
    assert_eq!(reads(json!({"missing": ["a", "b.c"]})), missing);
    let some = (vec!["a /missing_some".to_owned()], false);
    assert_eq!(reads(json!({"missing_some": [1, ["a"]]})), some);
    assert!(reads(json!({"missing": {"merge": ["a"]}})).1, "the keys are computed");
}

#[test]
fn numbers_are_exact() {
    assert_eq!(evaluated(json!({"+": [9_007_199_254_740_993_i64, 1]})), Ok(json!(9_007_199_254_740_994_i64)));
    assert_eq!(evaluated(json!({"-": ["10", 2.5, true]})), Ok(json!(6.5)));
    assert_eq!(evaluated(json!({"/": [6, 3]})), Ok(json!(2)));
    assert_eq!(evaluated(json!({"/": 4})), Ok(json!(0.25)));
    assert_eq!(evaluated(json!({"%": [-7, 3]})), Ok(json!(-1)));
    let trillion = 1_000_000_000_000_i64;
    assert_eq!(evaluated(json!({"*": [trillion, trillion]})), Ok(json!(1e24)));
    assert_eq!(evaluated(json!({"max": [1, "3", 2.5]})), Ok(json!(3)));
    assert_eq!(evaluated(json!({"min": {"var": "list"}})), Ok(json!(1)));
    assert_eq!(evaluated(json!({"+": {"var": "list"}})), Ok(json!(6)));
}

#[test]
fn what_cannot_be_computed_is_an_error() {
    let not_number = |operator, kind| Err(LogicFault::NotNumber { operator, kind });
    assert_eq!(evaluated(json!({"+": ["a", 1]})), not_number("+", "a text"));
    assert_eq!(evaluated(json!({"max": [[1], 1]})), not_number("max", "a list"));
    assert_eq!(evaluated(json!({"substr": ["abc", "x"]})), not_number("substr", "a text"));
    assert_eq!(evaluated(json!({"missing_some": [{}, ["a"]]})), not_number("missing_some", "an object"));
    for zero in [json!({"/": [1, 0]}), json!({"/": 0}), json!({"/": [0, ""]}), json!({"/": [1, -0.0]})] {
        assert_eq!(evaluated(zero), Err(LogicFault::DivisionByZero { operator: "/" }));
    }
    assert_eq!(evaluated(json!({"%": [5, false]})), Err(LogicFault::DivisionByZero { operator: "%" }));
    assert_eq!(evaluated(json!({"*": [1e308, 10]})), Err(LogicFault::OutOfRange { operator: "*" }));
    let compared = LogicFault::NotComparable { operator: ">=", left: "a text", right: "a number" };
    assert_eq!(compared.to_string(), ">= cannot compare a text with a number");
    assert_eq!(evaluated(json!({">=": [{"var": "text"}, 1]})), Err(compared));
    assert!(evaluated(json!({"<": [{"var": "list"}, {"var": "list"}]})).is_err());
    let list = Err(LogicFault::NotList { operator: "all", kind: "an object" });
    assert_eq!(evaluated(json!({"all": [{"var": "object"}, true]})), list);
    let few = Err(LogicFault::TooFewArguments { operator: "%" });
    assert_eq!(evaluated(json!({"%": {"var": "empty"}})), few);
    assert_eq!(
        evaluated(json!({"!": {"or": [false, {"/": [1, 0]}]}})).unwrap_err().to_string(),
        "/ divides by zero"
    );
}

/// What is not needed is not evaluated, so that an operation can be guarded by the one before it.
#[test]
fn evaluation_is_lazy() {
    let broken = json!({"/": [1, 0]});
    for (rule, value) in [
        (json!({"and": [false, broken]}), json!(false)),
        (json!({"or": [1, broken]}), json!(1)),
        (json!({"if": [true, 1, broken]}), json!(1)),
        (json!({"if": [false, broken, 2]}), json!(2)),
        (json!({"<": [3, 2, broken]}), json!(false)),
        (json!({"var": ["text", broken]}), json!("abc")),
        (json!({"some": [[1, 0], {"/": [1, {"var": ""}]}]}), json!(true)),
    ] {
        assert_eq!(evaluated(rule.clone()), Ok(value), "{rule}");
    }
    assert!(evaluated(json!({"and": [true, broken]})).is_err());
}

#[test]
fn expressions_are_bounded() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    assert!(Logic::parse(&nested(LOGIC_DEPTH_MAX)).is_ok());
    let error = Logic::parse(&nested(LOGIC_DEPTH_MAX + 1)).unwrap_err();
    assert_eq!(error.problem, LogicProblem::TooDeep);
    assert_eq!(error.at, "/0".repeat(LOGIC_DEPTH_MAX));
    let negated = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"!": [inner]}));
    assert!(Logic::parse(&negated(LOGIC_DEPTH_MAX / 2)).is_ok());
    let too_deep = |levels| refused(negated(levels)).1 == LogicProblem::TooDeep;
    assert!(too_deep(LOGIC_DEPTH_MAX / 2 + 1));
    assert!(too_deep(100), "far too deep");
    let var = (0..LOGIC_DEPTH_MAX).fold(json!("a"), |inner, _| json!({"var": [inner]}));
    assert_eq!(refused(var).1, LogicProblem::TooDeep);
    let wide = json!(vec![1; LOGIC_VALUES_MAX - 1]);
    assert!(Logic::parse(&wide).is_ok());
    assert_eq!(refused(json!(vec![1; LOGIC_VALUES_MAX])).1, LogicProblem::TooManyValues);
    assert!(Logic::parse(&json!("a".repeat(LOGIC_BYTES_MAX - 2))).is_ok());
    assert_eq!(refused(json!("a".repeat(LOGIC_BYTES_MAX - 1))), at("", LogicProblem::TooLong));
}

#[test]
fn each_step_and_each_value_is_paid_for() {
    let spent = |rule: Value| {
        let fuel = Fuel::new(u64::MAX);
        let data = json!({"long": "a".repeat(5_000), "list": vec![1; 100]});
        Logic::parse(&rule).unwrap().evaluate(&data, &fuel).unwrap();
        u64::MAX - fuel.left()
    };
    assert!(spent(json!({"and": [true, true, true]})) >= 4 * LOGIC_STEP_FUEL);
    assert!(spent(json!({"map": [{"var": "list"}, true]})) >= 102 * LOGIC_STEP_FUEL);
    assert!(spent(json!({"cat": [{"var": "long"}, {"var": "long"}]})) >= 10_000);
    assert!(spent(json!({"==": [{"var": "long"}, "b"]})) >= 5_000);
    assert!(spent(json!({"in": ["b", {"var": "long"}]})) >= 5_000);
    assert!(spent(json!({"var": "long"})) >= 10_000);
    assert!(spent(json!({"!!": {"var": "long"}})) < 1_000, "a value that is not read costs nothing");
}

#[test]
fn without_fuel_nothing_is_evaluated() {
    let rule = Logic::guard(&json!({"==": [1, 1]})).unwrap();
    assert_eq!(rule.holds(&json!({}), &Fuel::new(1_000_000)), Ok(true));
    assert_eq!(rule.holds(&json!({}), &Fuel::new(0)), Err(LogicFault::NoFuel));
    assert_eq!(rule.holds(&json!({}), &Fuel::new(LOGIC_STEP_FUEL)), Err(LogicFault::NoFuel));
}

/// One that goes through a list for each of its items, again and again, ends after the work that one
/// evaluation may take.
#[test]
fn one_evaluation_takes_a_bounded_part_of_the_fuel() {
    let list = json!({"var": "list"});
    let once = |body: Value| json!({"some": [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], body]});
    let slow = (0..9).fold(json!(false), |body, _| once(body));
    let fuel = Fuel::new(u64::MAX);
    assert_eq!(Logic::parse(&slow).unwrap().holds(&json!({}), &fuel), Err(LogicFault::TooMuchWork));
    assert!(u64::MAX - fuel.left() <= LOGIC_FUEL_MAX + 2 * LOGIC_STEP_FUEL);
    let doubled = json!({"reduce": [list, [{"var": "accumulator"}, {"var": "accumulator"}], "a"]});
    assert_eq!(over(doubled, &json!({"list": vec![1; 60]})), Err(LogicFault::TooMuchWork));
}

#[test]
fn what_is_made_is_bounded() {
    let data =
        json!({"list": vec![1; LIST_ITEMS_MAX], "long": "a".repeat(TEXT_BYTES_MAX), "few": vec![1; 200]});
    let merged = json!({"merge": [{"var": "list"}, 1]});
    assert_eq!(over(merged, &data), Err(LogicFault::TooManyItems { operator: "merge" }));
    assert!(over(json!({"merge": {"var": "list"}}), &data).is_ok());
    let text = json!({"cat": [{"var": "long"}, "b"]});
    assert_eq!(over(text, &data), Err(LogicFault::TextTooLong { operator: "cat" }));
    let deep = json!({"reduce": [{"var": "few"}, [{"var": "accumulator"}], 1]});
    assert_eq!(over(deep, &data), Err(LogicFault::TooDeep { operator: "[]" }));
    let both = json!({"reduce": [{"var": "few"}, {"var": ""}, 1]});
    assert_eq!(over(both, &data), Err(LogicFault::TooDeep { operator: "reduce" }));
}

#[test]
fn the_stored_form_is_the_source() {
    let logic = Logic::guard(&json!({"and": [{">": [{"var": "a"}, 1.5]}, {"in": ["é", "\n"]}]})).unwrap();
    let bytes = minicbor::to_vec(&logic).unwrap();
    assert_eq!(bytes.len(), minicbor::len(&logic));
    assert_eq!(minicbor::decode::<String>(&bytes).unwrap(), logic.as_str());
    assert_eq!(minicbor::decode::<Logic>(&bytes).unwrap(), logic);
    let long = format!("\"{}\"", "a".repeat(LOGIC_BYTES_MAX));
    for bad in [
        "",
        "{",
        "{\"foo\": 1}",
        "{\"foo\":1}",
        "{\"var\": \"a\"}",
        " true",
        "1e999",
        &"[".repeat(200),
        &long,
    ] {
        let bytes = minicbor::to_vec(bad).unwrap();
        assert!(minicbor::decode::<Logic>(&bytes).is_err(), "{bad}");
    }
}

/// Any JSON of a few levels, most of it made of operators.
fn any_rule() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-4_i64..5).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c.0é]{0,4}".prop_map(Value::from),
        prop::sample::select(vec!["", "list", "deep.x", "text", "current", "accumulator"])
            .prop_map(Value::from),
    ];
    let words = vec![
        "var",
        "missing",
        "missing_some",
        "if",
        "?:",
        "==",
        "===",
        "!=",
        "!==",
        "!",
        "!!",
        "or",
        "and",
        ">",
        ">=",
        "<",
        "<=",
        "max",
        "min",
        "+",
        "-",
        "*",
        "/",
        "%",
        "map",
        "filter",
        "reduce",
        "all",
        "none",
        "some",
        "merge",
        "in",
        "cat",
        "substr",
        "log",
        "odd",
    ];
    leaf.prop_recursive(6, 64, 4, move |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4);
        let word = prop::sample::select(words.clone());
        prop_oneof![
            1 => list.clone().prop_map(Value::Array),
            1 => (word.clone(), inner).prop_map(|(word, argument)| json!({ word: argument })),
            6 => (word, list).prop_map(|(word, arguments)| json!({ word: arguments })),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_expression_is_too_odd(rule in any_rule(), units in 0_u64..100_000) {
        let data = json!({"list": [1, "a", null, [2]], "deep": {"x": -1.5}, "text": "é", "a": {"b": 0}});
        if let Ok(logic) = Logic::parse(&rule) {
            let fuel = Fuel::new(units);
            let value = logic.evaluate(&data, &fuel);
            prop_assert_eq!(&value, &logic.evaluate(&data, &Fuel::new(units)), "it is the same each time");
            if let (Ok(value), Ok(holds)) = (value, logic.holds(&data, &Fuel::unlimited())) {
                prop_assert_eq!(number::is_truthy(&value), holds);
            }
            let bytes = minicbor::to_vec(&logic).unwrap();
            prop_assert_eq!(minicbor::decode::<Logic>(&bytes).unwrap(), logic);
        }
    }

    #[test]
    fn no_text_is_too_odd(text in ".{0,80}") {
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            let _ = Logic::parse(&value);
        }
        let bytes = minicbor::to_vec(&text).unwrap();
        let _ = minicbor::decode::<Logic>(&bytes);
    }

    #[test]
    fn comparisons_agree_with_those_of_numbers(left in any::<i32>(), right in any::<i32>()) {
        for (word, holds) in [
            ("<", left < right), ("<=", left <= right), (">", left > right), (">=", left >= right),
            ("==", left == right), ("!=", left != right), ("===", left == right), ("!==", left != right),
        ] {
            prop_assert_eq!(evaluated(json!({ word: [left, right] })), Ok(json!(holds)), "{}", word);
        }
        for (word, made) in [
            ("+", i64::from(left) + i64::from(right)), ("-", i64::from(left) - i64::from(right)),
            ("*", i64::from(left) * i64::from(right)),
        ] {
            prop_assert_eq!(evaluated(json!({ word: [left, right] })), Ok(json!(made)), "{}", word);
        }
    }
}
