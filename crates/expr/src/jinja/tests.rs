//! Bodies: what they see, what they print, and that no body exceeds its limits.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::limits::KNOWN_NAME_BYTES_MAX;
use crate::mention::Mention;

const LIMITS: JinjaLimits = JinjaLimits { fuel: 100_000, depth: 100, bytes: 256 * 1024 };
/// For bodies that have to be stopped.
const LITTLE: JinjaLimits = JinjaLimits { fuel: 10_000, ..LIMITS };

fn text(source: &str) -> String {
    let data =
        json!({"name": "Ann", "amount": 12.5, "tags": ["a", "b"], "none": null, "deep": {"city": "Ulm"}});
    render(source, &data, Escape::None, &LIMITS).unwrap()
}

fn refused(source: &str) -> RenderError {
    render(source, &json!({}), Escape::None, &LITTLE).unwrap_err()
}

#[test]
fn data_has_two_names_and_its_keys_are_none() {
    assert_eq!(
        text("{{ gathered_data.name }} {{ gathered.deep.city }} {{ gathered['tags'][1] }}"),
        "Ann Ulm b"
    );
    assert_eq!(text("[{{ name }}]"), "[]");
}

/// A list of known names is short, however long the names are.
#[test]
fn long_names_are_not_listed_beside_an_unknown_one() {
    let long = "a".repeat(KNOWN_NAME_BYTES_MAX + 1);
    let source = format!("{{% set {long} = 1 %}}{{% set b = 1 %}}{{{{ c }}}}");
    let found = mentions(&source, &["gathered_data"]).unwrap();
    let [Mention::Unknown { known, .. }] = found.as_slice() else { panic!("one name is unknown: {found:?}") };
    assert_eq!(known, &["gathered_data", "b"]);
}

#[test]
fn what_is_absent_is_empty_however_deep_it_is_looked_for() {
    assert_eq!(text("[{{ gathered.no }}{{ gathered.no.where.at_all }}{{ no.thing[0] }}]"), "[]");
    assert_eq!(text("{% for x in gathered.no %}x{% else %}none{% endfor %}"), "none");
    assert_eq!(text("{{ gathered.no|default('-') }}{{ gathered.name|d('-') }}"), "-Ann");
}

#[test]
fn values_print_as_jinja2_prints_them() {
    assert_eq!(
        text("{{ true }} {{ none }} {{ gathered.none }} {{ [1, 'a', none] }}"),
        "True None None [1, 'a', None]"
    );
    assert_eq!(text("{{ gathered.amount }} {{ 2.0 }} {{ 1e20 }} {{ 0.00001 }}"), "12.5 2.0 1e+20 1e-05");
}

#[test]
fn statements_of_the_subset_work() {
    let body = "{% set n = 0 %}{% for t in gathered.tags %}{{ loop.index }}{{ t|upper }}\
        {% if not loop.last %},{% endif %}{% endfor %}{% if n > 0 %}x{% elif n == 0 %}zero{% else %}y{% endif %}";
    assert_eq!(text(body), "1A,2Bzero");
    assert_eq!(text("{{ gathered.deep.items() }} {{ gathered.get('no', 'x') }}"), "[('city', 'Ulm')] x");
}

#[test]
fn html_is_escaped_only_where_it_is_asked_for() {
    let data = json!({"x": "<a href=\"b\">'&"});
    let body = "<p>{{ gathered.x }}</p>{{ gathered.x|safe }}";
    let html = render(body, &data, Escape::Html, &LIMITS).unwrap();
    assert_eq!(html, "<p>&lt;a href=&#34;b&#34;&gt;&#39;&amp;</p><a href=\"b\">'&");
    let plain = render(body, &data, Escape::None, &LIMITS).unwrap();
    assert_eq!(plain, "<p><a href=\"b\">'&</p><a href=\"b\">'&");
}

#[test]
fn what_is_outside_of_the_subset_is_refused_at_its_line() {
    for source in [
        "\n{% include 'x' %}",
        "\n{% extends 'x' %}",
        "\n{% import 'x' as y %}",
        "\n{% macro m() %}{% endmacro %}",
        "\n{{ 1|random }}",
        "\n{{ 1|urlize }}",
        "\n{{ 1 is callable }}",
        "\n{{ now() }}",
        "\n{{ namespace() }}",
        "\n{{ debug() }}",
        "\n{{ open",
        "\n{% if x %}",
    ] {
        let error = check(source).unwrap_err();
        assert_eq!(error.line, 2, "{source}: {error}");
        assert_eq!(render(source, &json!({}), Escape::None, &LIMITS), Err(RenderError::Bad(error)));
    }
    assert_eq!(check("{{ gathered.x|upper }}{% if 1 is odd %}{{ range(3) }}{% endif %}"), Ok(()));
}

#[test]
fn steps_are_counted() {
    assert_eq!(
        refused("{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}"),
        RenderError::Fuel
    );
    assert_eq!(refused("{% for a in range(10**9) %}{% endfor %}"), RenderError::Fuel);
    assert_eq!(
        refused(
            "{{ range(99999)|sort|unique|list|length }}{{ range(99999)|sort|join|length }}\
        {% for i in range(99) %}{{ range(99999)|sort|length }}{% endfor %}"
        ),
        RenderError::Fuel
    );
}

#[test]
fn values_cannot_grow_without_being_paid_for() {
    let doubled = |step: &str| format!("{{% set s = 'x' %}}{}", format!("{{% set s = {step} %}}").repeat(60));
    for step in [
        "s ~ s",
        "s + s",
        "s * 2",
        "[s, s]",
        "(s, s)",
        "{'a': s, 'b': s}",
        "[s] + [s]",
        "s|replace('x', 'xx')",
        "(s ~ 'x')|join(s)",
        "[s, s]|join",
        "s|list + s|list",
        "(s ~ '\n.')|indent(s|length)",
        "s|center(s|length * 2)",
        "dict(a=s, b=s)",
    ] {
        let error = refused(&doubled(step));
        assert!(matches!(error, RenderError::Fuel | RenderError::Depth), "{step}: {error}");
    }
    let captured = "{% set s = 'x' %}".to_owned() + &"{% set s %}{{ s }}{{ s }}{% endset %}".repeat(60);
    assert_eq!(refused(&captured), RenderError::TooLong);
}

#[test]
fn repetition_is_bounded_also_where_it_is_constant() {
    for source in [
        "{{ 'x' * 10**9 }}",
        "{{ 'x' * 99999999 }}",
        "{{ [0] * 99999999 }}",
        "{{ 99999999 * 'x' }}",
        "{{ [0] * 99999999 == [0] * 99999999 }}",
        "{{ 'x'|center(10**12) }}",
        "{{ 'x'|indent(10**12) }}",
        "{{ [1]|batch(10**12, 0)|list }}",
        "{{ [1]|slice(10**12) }}",
        "{{ 'a\nb'|indent(width=10**12) }}",
        "{{ ('\n' * 30000)|indent('x' * 30000, blank=true) }}",
        "{{ ('\n' * 30000)|indent(width='x' * 30000, blank=true) }}",
        "{{ [1]|tojson(indent=10**12) }}",
    ] {
        assert_eq!(refused(source), RenderError::Fuel, "{source}");
    }
    let many = "{{ 'x' * 99999999 }}".repeat(1000);
    assert_eq!(check(&many), Ok(()), "reading a body must not repeat texts");
}

#[test]
fn output_is_bounded() {
    let rows = format!("{{% for a in range(900) %}}{}{{% endfor %}}", "x".repeat(4000));
    assert_eq!(refused(&rows), RenderError::TooLong);
    let limits = JinjaLimits { bytes: 3, ..LIMITS };
    assert_eq!(render("1234", &json!({}), Escape::None, &limits), Err(RenderError::TooLong));
    assert_eq!(render("123", &json!({}), Escape::None, &limits).unwrap(), "123");
    assert_eq!(render("{{ '<' }}", &json!({}), Escape::Html, &limits), Err(RenderError::TooLong));
}

#[test]
fn depth_is_bounded() {
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    assert_eq!(render("{{ gathered }}", &deep, Escape::None, &LIMITS), Err(RenderError::Depth));
    let tree = (0..100).fold(json!([]), |inner, _| json!([inner]));
    let walk = "{% for x in gathered recursive %}{{ loop(x) }}{% endfor %}";
    let shallow = JinjaLimits { depth: 50, ..LIMITS };
    assert_eq!(render(walk, &tree, Escape::None, &shallow), Err(RenderError::Depth));
    let nested = format!("{{% set s = [] %}}{}{{{{ s }}}}", "{% set s = [s] %}".repeat(300));
    assert_eq!(refused(&nested), RenderError::Depth);
    let slices = format!("{{% set s = s{} %}}", "[:]".repeat(60));
    let sliced = format!("{{% set s = [1] %}}{}{{{{ s }}}}", slices.repeat(150));
    assert_eq!(render(&sliced, &json!({}), Escape::None, &LIMITS).unwrap(), "[1]");
}

#[test]
fn no_source_is_too_deep_for_a_thread() {
    for source in [
        format!("{{{{ {}1 }}}}", "1+".repeat(20_000)),
        format!("{{{{ x{} }}}}", ".a".repeat(20_000)),
        format!("{{{{ x{} }}}}", "|upper".repeat(10_000)),
        format!("{{{{ {}1 }}}}", "not ".repeat(15_000)),
        format!("{{{{ {}1 }}}}", "-".repeat(50_000)),
        format!("{{{{ {}1{} }}}}", "(".repeat(30_000), ")".repeat(30_000)),
        format!("{{{{ {}1{} }}}}", "[".repeat(300), "]".repeat(90)),
        format!("{{{{ {}1 }}}}", "1 if 1 else ".repeat(300)),
        format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(5000)),
        "{% if 1 %}".repeat(6000),
        "x".repeat(70_000),
    ] {
        assert!(check(&source).is_err(), "{}", &source[..40]);
    }
    // the deepest of each kind that is allowed, on a quarter of the stack that threads have
    #[expect(clippy::disallowed_types, reason = "a thread with a small stack")]
    let deepest = std::thread::Builder::new().stack_size(512 * 1024);
    let run = || {
        for (part, times) in [
            ("1+", 98),
            (".a", 98),
            ("|upper", 98),
            ("[0]", 65),
            ("[:]", 65),
            ("not ", 140),
            ("(", 70),
            ("[", 70),
        ] {
            let (before, after) = match part {
                "(" => (part.repeat(times), ")".repeat(times)),
                "[" => (part.repeat(times), "]".repeat(times)),
                "1+" | "not " => (part.repeat(times), String::new()),
                _ => (String::new(), part.repeat(times)),
            };
            let source = format!("{{{{ {before}x{after} }}}}");
            assert_eq!(check(&source), Ok(()), "{part}");
            let _ = render(&source, &json!({}), Escape::None, &LIMITS);
        }
        let branches = "{% if 0 %}".to_owned() + &"{% elif 0 %}".repeat(100) + "{% endif %}";
        assert_eq!(render(&branches, &json!({}), Escape::None, &LIMITS).unwrap(), "");
    };
    deepest.spawn(run).unwrap().join().unwrap();
    let nested = "{% if 1 %}".repeat(90) + &"{% endif %}".repeat(90);
    assert_eq!(render(&nested, &json!({}), Escape::None, &LIMITS).unwrap(), "");
}

#[test]
fn a_comparison_is_paid_for() {
    let data: Value = json!({"a": (0..5000).collect::<Vec<u32>>()});
    for test in [
        "gathered.a == gathered_data.a",
        "-1 in gathered.a",
        "1 < 2 < gathered.a",
        "gathered.a is eq gathered_data.a",
    ] {
        let source = |times: u32| format!("{{% for i in range({times}) %}}{{{{ {test} }}}}{{% endfor %}}");
        assert_eq!(render(&source(500), &data, Escape::None, &LITTLE), Err(RenderError::Fuel), "{test}");
        assert!(render(&source(5), &data, Escape::None, &LITTLE).is_ok(), "{test}");
    }
}

#[test]
fn a_long_text_is_paid_for_each_time_it_is_counted_through() {
    let data = json!({"t": "x".repeat(100_000)});
    for look in [
        "gathered.t|length",
        "gathered.t[99999]",
        "gathered.t[99998:]",
        "gathered.t|last",
        "gathered.t.endswith('y')",
    ] {
        let source = |times: u32| format!("{{% for i in range({times}) %}}{{{{ {look} }}}}{{% endfor %}}");
        assert_eq!(render(&source(500), &data, Escape::None, &LITTLE), Err(RenderError::Fuel), "{look}");
        assert!(render(&source(5), &data, Escape::None, &LITTLE).is_ok(), "{look}");
    }
}

#[test]
fn large_data_costs_nothing_where_only_a_part_is_looked_at() {
    let data = json!({"items": (0..20_000).map(|at| json!({"at": at})).collect::<Vec<_>>()});
    let body = "{% for i in range(500) %}{% if gathered['items'] is defined and gathered['items']|length > i %}\
        {{ gathered['items'][i].at }}{{ (gathered['items']|first).at }}{% endif %}{% endfor %}";
    assert!(render(body, &data, Escape::None, &LIMITS).unwrap().starts_with("001020"));
}

fn piece() -> impl Strategy<Value = String> {
    let words = "x gathered.a [1,'a'] {'k':1} ( ) 'té' 3 -1 0.5 none true + - * / // % ** ~ == < in not and or if else is \
        |upper |join('-') |sort |length |int |round(2) |default(1) |batch(2) |tojson |replace('a','bb') |indent |title \
        |groupby('k') |map('upper') |select |sum |unique |items |truncate(2) |center(9) |slice(2) |dictsort defined odd \
        .a [0] [1:] [::-1] .items() .get('k') range(3) loop loop.index dict(a=1) , : = ";
    let tags = [
        "{{ ",
        " }}",
        "{% if ",
        " %}",
        "{% endif %}",
        "{% else %}",
        "{% for x in ",
        "{% endfor %}",
        "{% set x = ",
        "{% set x %}",
        "{% endset %}",
        "{%- raw %}",
        "{% endraw -%}",
        "{# ",
        " #}",
        "{% filter upper %}",
        "{% endfilter %}",
        "{% with a = 1 %}",
        "{% endwith %}",
        "{% elif ",
        "recursive %}",
        "{{ loop(",
        "{% autoescape true %}",
        "text<",
    ];
    let all: Vec<String> = words.split_whitespace().chain(tags).map(|it| format!("{it} ")).collect();
    prop::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_source_is_too_odd(pieces in prop::collection::vec(piece(), 0..12), inside in prop::collection::vec(piece(), 0..6)) {
        let data = json!({"a": [{"k": "b"}, {"k": "a"}], "k": "é"});
        for source in [pieces.concat(), format!("{{{{ {} }}}}", inside.concat()), format!("{{{{ gathered.a {} }}}}", inside.concat())] {
            let checked = check(&source);
            let made = render(&source, &data, Escape::Html, &LITTLE);
            if let Err(error) = checked {
                prop_assert_eq!(made, Err(RenderError::Bad(error)));
            }
        }
    }
}

#[test]
fn slices_are_pythons() {
    for (template, wanted) in [
        ("{{ [][::-1]|upper }}", "[]"),
        ("{{ ''[::-1] }}|", "|"),
        ("{{ [1,2,3][::-1] }}", "[3, 2, 1]"),
        ("{{ [1,2,3,4][1:3] }}", "[2, 3]"),
        ("{{ [1,2,3,4][-2:] }}", "[3, 4]"),
        ("{{ [1,2,3,4][:-5:-2] }}", "[4, 2]"),
        ("{{ [1,2,3,4][-9:9:3] }}", "[1, 4]"),
        ("{{ [1,2,3][2:0] }}", "[]"),
        ("{{ 'Größe'[::-2] }}", "eöG"),
        ("{{ 'abc'[5:] }}|", "|"),
        ("{{ [1,2,3][9223372036854775807::-9223372036854775807] }}", "[3]"),
    ] {
        assert_eq!(render(template, &json!({}), Escape::None, &LIMITS).unwrap(), wanted, "{template}");
    }
    for template in ["{{ [1][::0] }}", "{{ 7[1:] }}", "{{ [1]['a':] }}"] {
        assert!(render(template, &json!({}), Escape::None, &LIMITS).is_err(), "{template}");
    }
}

/// What a body costs grows with its steps, with its values, with the data and with its length.
#[test]
fn a_body_is_paid_for() {
    let spent = |source: &str, data: &Value| {
        let fuel = Fuel::new(u64::MAX);
        render_within(source, data, Escape::None, &LIMITS, &fuel).unwrap();
        u64::MAX - fuel.left()
    };
    let (none, much) = (json!({}), json!({"text": "x".repeat(10_000)}));
    let plain = spent("x", &none);
    assert!(plain < 10_000, "{plain}");
    assert!(spent("{% for x in range(1000) %}.{% endfor %}", &none) > plain + 1_000 * JINJA_STEP_FUEL);
    assert!(spent("{{ gathered.text|upper }}", &much) > spent("{{ gathered.text|upper }}", &none) + 20_000);
    assert!(spent("x", &much) > plain + 20_000);
    assert!(spent(&"x".repeat(1_000), &none) > plain + 900 * JINJA_SOURCE_FUEL);
}

/// Nobody knows how far it came: it may have been far.
#[test]
fn a_body_that_fails_costs_as_much_as_the_longest() {
    let fuel = Fuel::new(u64::MAX);
    let endless = "{% for x in range(100000) %}{% for y in range(100000) %}.{% endfor %}{% endfor %}";
    let failed = render_within(endless, &json!({}), Escape::None, &LIMITS, &fuel);
    assert_eq!(failed, Err(RenderError::Fuel));
    assert!(u64::MAX - fuel.left() >= LIMITS.fuel * JINJA_STEP_FUEL);
}
