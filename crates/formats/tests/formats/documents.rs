//! The reader of JSON and YAML on its own.

use switchward_formats::document::{Node, Span, Syntax, Value, read};
use switchward_formats::{Report, codes, has_errors};

use super::support::summaries;

fn read_as(syntax: Syntax, bytes: &[u8]) -> (Option<Node>, Vec<String>) {
    let mut report = Report::new("x");
    let node = read(bytes, syntax, &mut report);
    let findings = report.finish();
    assert!(node.is_some() || has_errors(&findings), "nothing was read, but there is no error");
    (node, summaries(&findings))
}

#[track_caller]
fn json(text: &str) -> Node {
    let (node, summaries) = read_as(Syntax::Json, text.as_bytes());
    assert_eq!(summaries, Vec::<String>::new(), "{text}");
    node.expect("there is no error")
}

#[track_caller]
fn yaml(text: &str) -> Node {
    let (node, summaries) = read_as(Syntax::Yaml, text.as_bytes());
    assert_eq!(summaries, Vec::<String>::new(), "{text}");
    node.expect("there is no error")
}

#[test]
fn json_is_rfc_8259_and_nothing_beside_it() {
    for text in [
        "{,}",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1,,2]",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":}",
        "{1:2}",
        "{a:1}",
        "[01]",
        "[1.]",
        "[.5]",
        "[+1]",
        "[-]",
        "[1e]",
        "[0x1]",
        "[NaN]",
        "[Infinity]",
        "[-Infinity]",
        "[tru]",
        "[True]",
        "[nul]",
        "['a']",
        "[\"a]",
        "[\"\\x41\"]",
        "[\"\\u12\"]",
        "[\"\\ud800\"]",
        "[\"\\udc00\\ud800\"]",
        "[1] // c",
        "/* c */ [1]",
        "# c\n[1]",
        "[1}",
        "{\"a\":1]",
        "[",
        "{",
        "]",
        "[1][2]",
        "[1] x",
        "\u{feff}\u{feff}[]",
        "[1\u{a0}]",
        "[1\u{b}]",
        "[\"a\nb\"]",
        "[\"\u{1}\"]",
        "",
        " \n",
        "undefined",
        "[1e400]",
        "[-1e400]",
    ] {
        let (_, summaries) = read_as(Syntax::Json, text.as_bytes());
        assert_eq!(summaries.len(), 1, "{text:?}: {summaries:?}");
    }
}

#[test]
fn json_values_are_kept_as_written() {
    let node = json(
        "\u{feff}{\"a\": [null, true, -0, 1.50e+2, 123456789012345678901234567890, \"\\ud83d\\ude00\\u0000\"]}\r\n",
    );
    let items: Vec<Value> =
        node.get("a").unwrap().as_list().unwrap().iter().map(|it| it.value.clone()).collect();
    let number = |text: &str| Value::Number(text.to_owned());
    assert_eq!(
        items,
        [
            Value::Null,
            Value::Bool(true),
            number("-0"),
            number("1.50e+2"),
            number("123456789012345678901234567890"),
            Value::String("😀\0".to_owned())
        ]
    );
}

#[test]
fn spans_count_lines_of_every_kind_and_characters_not_bytes() {
    for line_end in ["\n", "\r\n", "\r"] {
        for syntax in [Syntax::Json, Syntax::Yaml] {
            let text = "\u{feff}{~  \"é→\": \"ö\",  \"key\": [~    7 ]~}~".replace('~', line_end);
            let (node, summaries) = read_as(syntax, text.as_bytes());
            assert_eq!(summaries, Vec::<String>::new());
            let node = node.expect("there is no error");
            let (key, list) = node.entry("key").unwrap();
            assert_eq!((key.span.line, key.span.column), (2, 15), "{syntax:?} {line_end:?}");
            assert_eq!(list.as_list().unwrap()[0].span, Span { line: 3, column: 5, width: 1 });
        }
    }
}

#[test]
fn plain_words_of_yaml_are_texts_and_keys_are_texts_whatever_they_look_like() {
    let node = yaml("yes: no\non: off\nnull: ~\n1: 2026-01-05\ntrue: 'true'\n~: \"1\"\n? 1.5\n: !!str 2\n");
    let keys: Vec<&str> = node.as_map().unwrap().iter().map(|(key, _)| key.text.as_str()).collect();
    assert_eq!(keys, ["yes", "on", "null", "1", "true", "~", "1.5"]);
    let texts: Vec<Option<&str>> = node.as_map().unwrap().iter().map(|(_, node)| node.as_text()).collect();
    assert_eq!(
        texts,
        [Some("no"), Some("off"), None, Some("2026-01-05"), Some("true"), Some("1"), Some("2")]
    );
}

#[test]
fn core_tags_are_read_and_others_are_not() {
    let node = yaml(
        "a: !!str 1\nb: !!int \"5\"\nc: !!float 1.5\nd: !!bool true\ne: !!null ~\nf: !!seq []\ng: !!map {}\nh: ! 12\n",
    );
    let kinds: Vec<&str> = node.as_map().unwrap().iter().map(|(_, node)| node.value.kind()).collect();
    assert_eq!(
        kinds,
        ["a text", "a number", "a number", "true or false", "null", "a list", "a map", "a text"]
    );
    for text in [
        "!!int x",
        "!!bool yes",
        "!!binary aGk=",
        "!!set {a}",
        "!foo {}",
        "!!map []",
        "!!str []",
        "!<tag:x> 1",
    ] {
        let (_, summaries) = read_as(Syntax::Yaml, text.as_bytes());
        assert_eq!(summaries, ["SW1012 1:1"], "{text}");
    }
    assert_eq!(yaml("!!str 1: a\n").as_map().map(|entries| entries[0].0.text.clone()), Some("1".to_owned()));
    assert_eq!(read_as(Syntax::Yaml, b"!!int 1: a\n!x b: c\n").1, ["SW1012 1:1", "SW1012 2:1"]);
}

#[test]
fn small_aliases_are_read_and_keep_the_spans_of_their_anchors() {
    let node = yaml("a: &x {k: [1, 2]}\nb: *x\nc: [*x, *x]\n");
    assert_eq!(node.get("a"), node.get("b"));
    assert_eq!(node.get("c").unwrap().as_list().unwrap()[1].span.line, 1);
}

#[test]
fn aliases_are_bounded_in_values_in_bytes_and_in_depth() {
    let bytes = format!("a: &x {}\nb: [*x, *x, *x, *x]\n", "long ".repeat(4000));
    assert_eq!(read_as(Syntax::Yaml, bytes.as_bytes()).1, ["SW1013 2:17"]);
    let huge = format!("a: &x {}\nb: *x\n", "long ".repeat(40_000));
    assert_eq!(read_as(Syntax::Yaml, huge.as_bytes()).1, ["SW1013 2:4"]);
    let deep =
        format!("a: &x {}{}\nb: {}*x{}\n", "[".repeat(40), "]".repeat(40), "[".repeat(40), "]".repeat(40));
    assert_eq!(read_as(Syntax::Yaml, deep.as_bytes()).1, ["SW1013 2:44"]);
    let many: String = (0..150).map(|at| format!("- &a{at} x\n")).collect();
    assert_eq!(read_as(Syntax::Yaml, format!("{many}- *a99\n").as_bytes()).1, Vec::<String>::new());
    assert_eq!(read_as(Syntax::Yaml, format!("{many}- *a100\n").as_bytes()).1, ["SW1013 151:3"]);
}

#[test]
fn a_second_document_is_refused_and_the_first_is_still_read() {
    let (node, summaries) = read_as(Syntax::Yaml, b"--- {a: 1}\n...\n--- {b: 1}\n");
    assert_eq!(summaries, ["SW1005 3:1"]);
    assert!(node.is_some_and(|node| node.get("a").is_some()));
    assert_eq!(yaml("%YAML 1.2\n---\na: 1\n...\n").get("a").map(|it| it.value.kind()), Some("a number"));
}

#[test]
fn the_first_of_equal_keys_is_kept() {
    for syntax in [Syntax::Json, Syntax::Yaml] {
        let (node, summaries) = read_as(syntax, b"{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2}, \"a\": [2]}");
        assert_eq!(summaries, ["SW1008 1:24", "SW1008 1:33"], "{syntax:?}");
        assert_eq!(node.unwrap().get("a").map(|it| it.value.kind()), Some("a number"));
    }
}

#[test]
fn the_extension_gives_the_syntax_and_else_the_first_character() {
    for (file, bytes, syntax) in [
        ("a.json", "a: 1", Syntax::Json),
        ("a.YAML", "{}", Syntax::Yaml),
        ("a.yml", "{}", Syntax::Yaml),
        ("a.kno", "{}", Syntax::Yaml),
        ("-", "\u{feff} \n{", Syntax::Json),
        ("", "[", Syntax::Json),
        ("a.b/c", "a: 1", Syntax::Yaml),
        ("", "", Syntax::Yaml),
    ] {
        assert_eq!(Syntax::of(file, bytes.as_bytes()), syntax, "{file:?} {bytes:?}");
    }
}

#[test]
fn every_code_is_explained() {
    assert!(codes::ALL.iter().all(|code| !code.about.is_empty() && !code.about.ends_with('.')));
}
