use super::*;

fn read(html: &str) -> (String, bool) {
    let own = shown(html);
    (own.text.trim().to_owned(), own.suspicious)
}

#[test]
fn words_are_read_from_the_tree_that_browsers_make() {
    let cases = [
        ("<p>one<p>two", "one\n\ntwo"),
        ("one<br>two<hr>three", "one\ntwo\nthree"),
        ("<ul><li>one<li>two</ul>", "one\ntwo"),
        ("<table><tr><td>a<td>b<tr><td>c</table>", "a b\nc"),
        ("<table>first<tr><td>a</table>", "first\na"),
        ("<b>a<i>b</b>c</i>d", "abcd"),
        ("<pre>\none\ntwo</pre>", "one\ntwo"),
        ("one\ntwo &lt;&amp;&gt; &notit;", "one two <&> \u{ac}it;"),
        ("a<o:p></o:p> b<wbr>c", "a bc"),
        ("<table><caption>a</caption><thead><tr><th>b<tbody><tr><td>c</table>", "a\nb\nc"),
        (
            "<p style='margin-left:36pt;text-indent:-18pt'>a<table style='margin-left:-5.4pt'><tr><td>b</table>",
            "a\nb",
        ),
        ("<q>a</q>", "\"a\""),
        ("<head><title>x</title></head><body>a</body></html>b", "ab"),
        ("a<script>x</script><style>y{}</style><!-- z -->b", "ab"),
        // The paragraph ends where the other block begins.
        ("<p style='display:none'><div>a</div>", "a"),
        ("<blockquote>x</blockquote>a", ">\na"),
        ("a<div class=gmail_quote>x</div>", "a\n>"),
        ("a<div id=appendonsend></div>b", "a"),
        ("a<hr tabindex=-1>b", "a"),
        ("<s>x</s>a<img src=b>", "\u{fffc}a\u{fffc}"),
        ("a<img width=1 src=b><input type=hidden>", "a"),
    ];
    for (html, text) in cases {
        assert_eq!(read(html).0, text, "{html}");
    }
    assert!(!read("<p style='color:#333;margin:0'>a</p><style>p{margin:0}</style>").1);
}

#[test]
fn what_is_hidden_is_left_out_and_flagged() {
    let cases = [
        ("<p style='display:none'>x</p>a", "a"),
        ("<p hidden>x</p>a", "a"),
        ("<p style='opacity:0'>x</p>a", "\u{fffc}a"),
        ("<p style='position:absolute'><br></p>a", "a"),
        ("<style>.x{font-size:0}</style><i class=x>x</i>a", "\u{fffc}a"),
        ("<svg><text>x</text></svg>a", "\u{fffc}a"),
    ];
    for (html, text) in cases {
        assert_eq!(read(html), (text.to_owned(), true), "{html}");
    }
}

#[test]
fn a_page_is_not_read_if_it_is_unclear_what_is_seen() {
    let deep = format!("a{}", "<div>".repeat(300));
    let many = format!("a{}", "<br>".repeat(300_000));
    let wide = format!("a<p {}>", (0..100).map(|n| format!("b{n} ")).collect::<String>());
    let rules = format!("<style>{}</style>a", "a{color:red}".repeat(2000));
    let nested = format!("<style>{}</style>a", "@media(a){".repeat(20));
    let cases = [
        "<link rel=stylesheet href=x>a",
        "<style>@import 'x'</style>a",
        "<style>@unknown{}</style>a",
        "<noscript></noscript>a",
        "<p style='direction:rtl'>a</p>",
        "<p style='margin-top:-20px'>a</p>",
        "<style>b c{display:none}</style>a",
        "<style>@media(a){b{display:none}}</style>a",
        &deep,
        &many,
        &wide,
        &rules,
        &nested,
    ];
    for html in cases {
        assert_eq!(read(html), (String::new(), true), "{html:.80}");
    }
    // A quoted element moves nothing outside of itself.
    assert_eq!(read("a<blockquote><p style='direction:rtl'>x</p></blockquote>"), ("a\n>".to_owned(), false));
}
