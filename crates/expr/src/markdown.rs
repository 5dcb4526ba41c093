//! Markdown of bodies, as HTML.

use std::fmt;

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, html};

use crate::limits::{HTML_BYTES_MAX, MARKDOWN_BYTES_MAX};

/// The HTML of a markdown text, for content type `markdown`: CommonMark, tables and ~~strikethrough~~.
///
/// HTML in the source is escaped, so that it is read as text. The destination of a link or an image is kept if its scheme
/// is `http`, `https`, `mailto` or `tel`, or if it has none, and is otherwise empty. Only the first [`MARKDOWN_BYTES_MAX`]
/// bytes are read. If the HTML would be longer than [`HTML_BYTES_MAX`], the result is the escaped text in one `<pre>`,
/// cut to that size.
#[must_use]
pub fn to_html(markdown: &str) -> String {
    let markdown = cut(markdown, MARKDOWN_BYTES_MAX);
    let parser = Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let mut made = Bounded { text: String::new() };
    match html::write_html_fmt(&mut made, parser.map(harmless)) {
        Ok(()) => made.text,
        Err(fmt::Error) => as_it_is(markdown),
    }
}

/// The event without anything that a mail reader or browser would execute.
fn harmless(event: Event<'_>) -> Event<'_> {
    if let Event::Html(text) | Event::InlineHtml(text) = event {
        return Event::Text(text);
    }
    if let Event::Start(Tag::Link { link_type, dest_url, title, id }) = event {
        return Event::Start(Tag::Link { link_type, dest_url: destination(dest_url), title, id });
    }
    if let Event::Start(Tag::Image { link_type, dest_url, title, id }) = event {
        return Event::Start(Tag::Image { link_type, dest_url: destination(dest_url), title, id });
    }
    event
}

/// The destination if its scheme is allowed, or the empty one.
fn destination(url: CowStr<'_>) -> CowStr<'_> {
    let before = url.split(['/', '?', '#']).next().unwrap_or("");
    let allowed = match before.split_once(':') {
        None => true,
        Some((scheme, _)) => {
            ["http", "https", "mailto", "tel"].iter().any(|it| scheme.eq_ignore_ascii_case(it))
        }
    };
    if allowed { url } else { CowStr::Borrowed("") }
}

/// The text in one `<pre>`. It is escaped here because `pulldown-cmark` exports no function for it, and because a text that
/// is cut must not end within an entity.
fn as_it_is(text: &str) -> String {
    let mut made = String::from("<pre>");
    for c in text.chars() {
        if made.len() + ENTITY_BYTES_MAX + END.len() > HTML_BYTES_MAX {
            break;
        }
        match c {
            '&' => made.push_str("&amp;"),
            '<' => made.push_str("&lt;"),
            '>' => made.push_str("&gt;"),
            '"' => made.push_str("&quot;"),
            c => made.push(c),
        }
    }
    made + END
}

const END: &str = "</pre>\n";
const ENTITY_BYTES_MAX: usize = 6;

/// At most this many bytes of a text, cut between characters.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

struct Bounded {
    text: String,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.text.len() + more.len() > HTML_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.text.push_str(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markdown_becomes_html() {
        assert_eq!(
            to_html("# Hi\n\n*a* **b** `c`"),
            "<h1>Hi</h1>\n<p><em>a</em> <strong>b</strong> <code>c</code></p>\n"
        );
        assert_eq!(
            to_html("[x](https://example.org/a?b=c)"),
            "<p><a href=\"https://example.org/a?b=c\">x</a></p>\n"
        );
        assert!(to_html("|a|\n|-|\n|~~b~~|").contains("<td><del>b</del></td>"));
    }

    #[test]
    fn html_in_it_is_text() {
        assert_eq!(to_html("a <b onclick=\"x\">c</b>"), "<p>a &lt;b onclick=\"x\"&gt;c&lt;/b&gt;</p>\n");
        assert_eq!(to_html("<script>\nalert(1)\n</script>"), "&lt;script&gt;\nalert(1)\n&lt;/script&gt;");
        assert!(!to_html("`<b>` <!-- x --> <?x?> <![CDATA[x]]>").contains("<b>"));
    }

    #[test]
    fn links_run_nothing() {
        for source in [
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "![x](data:text/html,x)",
            "<vbscript:x>",
            "[x](java&#115;cript:x)",
            "[x][1]\n\n[1]: javascript:x",
        ] {
            let html = to_html(source);
            assert!(html.contains("href=\"\"") || html.contains("src=\"\""), "{html}");
        }
        for destination in ["mailto:a@b.c", "tel:1", "/a:b", "#a", "a/b", "?x=a:b"] {
            assert_eq!(
                to_html(&format!("[x]({destination})")),
                format!("<p><a href=\"{destination}\">x</a></p>\n")
            );
        }
    }

    #[test]
    fn the_html_is_bounded() {
        let bomb = to_html(&">".repeat(MARKDOWN_BYTES_MAX * 2));
        assert!(bomb.starts_with("<pre>&gt;") && bomb.ends_with("</pre>\n") && bomb.len() <= HTML_BYTES_MAX);
        let cut = to_html(&"é".repeat(MARKDOWN_BYTES_MAX));
        assert!(cut.len() <= MARKDOWN_BYTES_MAX + 16);
        for bomb in ["[", "![", "*a_", "`", "<", "| ", "- ", "[a](", "**"] {
            assert!(to_html(&bomb.repeat(20_000)).len() <= HTML_BYTES_MAX);
        }
    }

    proptest! {
        #[test]
        fn no_tag_of_the_source_survives(source in "[ \n#*`<>/a-c\"=-]{0,80}") {
            let html = to_html(&source);
            for tag in ["<a ", "<b>", "<c>", "<b ", "<a>"] {
                prop_assert!(!html.contains(tag), "{html}");
            }
        }
    }
}
