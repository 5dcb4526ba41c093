//! Tests of the names in a body.

use super::*;

/// Each mention in words, with the text of the source at its offset.
fn names(source: &str) -> Vec<String> {
    let found = mentions(source, &["gathered_data", "gathered"]).unwrap();
    let name = |name: &Name| {
        assert!(source[name.at..].starts_with(&name.text), "{source}: {name:?}");
        name.text.clone()
    };
    let one = |mention: &Mention| match mention {
        Mention::Data(names) => names.iter().map(name).collect::<Vec<_>>().join("/"),
        Mention::Unknown { kind, name: it, .. } => format!("no {} {}", kind.word(), name(it)),
        Mention::Literal(it) => format!("text {}", name(it)),
        Mention::Word(it) => format!("word {}", name(it)),
    };
    found.iter().map(one).collect()
}

#[test]
fn what_is_read_of_the_data_is_found_however_it_is_written() {
    assert_eq!(names("{{ gathered_data.a.b }} {{ gathered.c | upper }}"), ["a/b", "c"]);
    assert_eq!(names("{{ gathered_data['order id'].x[0] }}"), ["order id/x/0"]);
    assert_eq!(names("{{ gathered_data.get('k', 1) }}{{ gathered_data | tojson }}"), ["k"]);
    assert_eq!(names("{{ gathered_data.a[gathered.b] }}"), ["a", "b"]);
    assert_eq!(names("{{ gathered_data.get('k', gathered.b).c }}"), ["k/c", "b"]);
    assert_eq!(names("{% for k, v in gathered_data.all.items() %}{{ k }}{{ v.x }}{% endfor %}"), ["all"]);
    assert_eq!(names("{% if gathered.a is defined and not gathered.b %}{% endif %}"), ["a", "b"]);
    assert_eq!(names("é {# gathered.z #}{% raw %}{{ gathered.y }}{% endraw %}→{{ gathered.x }}"), ["x"]);
}

#[test]
fn local_names_are_known_inside_their_scope() {
    assert_eq!(names("{% for x in gathered.list %}{{ x.a }}{{ loop.index }}{% endfor %}"), ["list"]);
    assert_eq!(names("{% for x in [1] %}{% endfor %}{{ x }}{{ loop.index }}"), ["no name x", "no name loop"]);
    assert_eq!(names("{{ y }}{% set y = 1 %}{{ y }}"), ["no name y"]);
    assert_eq!(names("{% with a = 1, b = a %}{{ a + b }}{% endwith %}{{ a }}"), ["no name a"]);
    assert_eq!(names("{% set c %}{{ d }}{% endset %}{{ c }}"), ["no name d"]);
    assert_eq!(names("{% for x in [[1]] recursive %}{{ loop(x) }}{% endfor %}"), [""; 0]);
    assert_eq!(names("{% if true %}{% set z = 1 %}{% endif %}{{ z }}"), [""; 0]);
    assert_eq!(names("{% set gathered = 1 %}{{ gathered.x }}"), [""; 0]);
}

#[test]
fn unknown_names_are_reported_with_their_offsets() {
    assert_eq!(names("Buy {{ item }}?"), ["no name item"]);
    assert_eq!(names("{{ gatherd_data.x | uper }}"), ["no name gatherd_data", "no filter uper"]);
    assert_eq!(names("{{ gathered.x is defned }}{{ rang(3) }}"), ["x", "no test defned", "no function rang"]);
    assert_eq!(names("{{ gathered.x.appendd(1) }}"), ["no method appendd", "x"]);
    assert_eq!(
        names("{{ gathered.get('k', item).get('l', tem | uper)[0] }}"),
        ["k/l/0", "no name tem", "no filter uper", "no name item"]
    );
    assert_eq!(names("{% for x in [1] %}{{ loop.indx }}{% endfor %}"), ["no field of `loop` indx"]);
    assert_eq!(
        names("{{ gathered.x | map('uper') | select('od') | list }}"),
        ["x", "no filter uper", "no test od"]
    );
    assert_eq!(names("{% fi true %}{% endif %}"), ["no tag fi"]);
    assert_eq!(names("a {gathered_data.x} {b}"), ["text {gathered_data.x}"]);
}

#[test]
fn offsets_count_the_line_ends_as_they_are_written() {
    assert_eq!(names("a\r\nb\rc\r\n{{ gathered.x }} {{ y }}"), ["x", "no name y"]);
}
