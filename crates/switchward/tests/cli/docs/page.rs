//! A page as a list of fenced blocks, by the conventions of `docs/contributing.md`.

/// What a fence's info string says about its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// `yaml refund.yaml`: written to this file.
    File { language: String, name: String },
    /// `yaml fragment`: only parsed.
    Fragment { language: String },
    /// `sh`: lines to type.
    Shell,
    /// `text output`: what the last command printed.
    Output,
    /// `json request POST /switchward.v1.X/Y as dev-agent`.
    Request { path: String, context: String },
    /// `json answer`: a part of the answer to the request before.
    Answer,
    /// `sh stopped`, only in `page-needs.md`: lines to type when the page's servers have stopped.
    Stopped,
    /// `sh by:python-client`: lines that this step of `make test` runs, or `by:make`.
    By { step: String },
    /// `text mail kim@acme.example`: a mail of the page's server to this address.
    Mail { to: String },
    /// `sh manual`: nothing runs it. `docs/contributing.md` says why.
    Manual,
    /// `text`, `mermaid`: only for readers.
    Shown,
}

impl Kind {
    /// Reads an info string.
    fn of(info: &str) -> Result<Self, String> {
        let words: Vec<&str> = info.split_whitespace().collect();
        Ok(match words[..] {
            ["sh"] => Self::Shell,
            ["sh", "stopped"] => Self::Stopped,
            ["sh", "manual"] => Self::Manual,
            ["sh", by] if by.starts_with("by:") => Self::By { step: by.trim_start_matches("by:").to_owned() },
            ["text"] | ["mermaid"] => Self::Shown,
            ["text", "mail", to] => Self::Mail { to: to.to_owned() },
            ["text", "output"] => Self::Output,
            ["json", "answer"] => Self::Answer,
            ["json", "request", "POST", path] => Self::request(path, "dev-person"),
            ["json", "request", "POST", path, "as", context] => Self::request(path, context),
            ["yaml" | "json" | "toml" | "python", "fragment"] => {
                Self::Fragment { language: words[0].to_owned() }
            }
            ["yaml" | "json" | "toml" | "python", name] if name.contains('.') => {
                Self::File { language: words[0].to_owned(), name: name.to_owned() }
            }
            _ => return Err(format!("no convention for the fence ```{info}")),
        })
    }

    /// Returns true if the block's lines are typed.
    pub(super) fn is_typed(&self) -> bool {
        matches!(self, Self::Shell | Self::Stopped)
    }

    fn request(path: &str, context: &str) -> Self {
        Self::Request { path: path.to_owned(), context: context.to_owned() }
    }
}

/// A fenced block of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) kind: Kind,
    /// The line of its fence, from 1.
    pub(super) at: usize,
    pub(super) text: String,
}

/// The blocks of a page in their order.
///
/// # Errors
/// The line and the message, if a fence follows no convention or has no end.
pub(super) fn blocks(page: &str) -> Result<Vec<Block>, (usize, String)> {
    let (mut found, mut open) = (Vec::new(), None::<Block>);
    for (line, at) in page.lines().zip(1..) {
        match (line.strip_prefix("```"), &mut open) {
            (Some(info), None) => {
                let kind = Kind::of(info).map_err(|message| (at, message))?;
                open = Some(Block { kind, at, text: String::new() });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    match open {
        Some(block) => Err((block.at, "the fence has no end".to_owned())),
        None => Ok(found),
    }
}

/// A line of a `sh` block, with the lines that continue it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Typed {
    /// The line of the page, from 1.
    pub(super) at: usize,
    pub(super) text: String,
    /// The exit code that its comment gives, or else 0.
    pub(super) code: i32,
}

/// The commands of a `sh` block.
pub(super) fn typed(block: &Block) -> Vec<Typed> {
    let (mut found, mut begun) = (Vec::new(), None::<Typed>);
    for (line, at) in block.text.lines().zip(block.at + 1..) {
        let line = line.trim();
        let mut one = begun.take().unwrap_or(Typed { at, text: String::new(), code: 0 });
        if let Some(part) = line.strip_suffix(" \\") {
            one.text.extend([part.trim(), " "]);
            begun = Some(one);
            continue;
        }
        let (command, comment) = parts(line);
        one.text.push_str(command);
        if let Some(code) = comment.strip_prefix("exits ") {
            let digits = code.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            one.code = digits.parse().unwrap_or(0);
        }
        if !one.text.is_empty() {
            found.push(one);
        }
    }
    found.extend(begun);
    found
}

/// A line's command and its comment.
fn parts(line: &str) -> (&str, &str) {
    if let Some(comment) = line.strip_prefix('#') {
        return ("", comment.trim());
    }
    // A number sign in quotes begins no comment.
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            ('#', None) if line[..at].ends_with(' ') => return (line[..at].trim(), line[at + 1..].trim()),
            _ => {}
        }
    }
    (line, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_says_what_its_block_is() {
        let file = |language: &str, name: &str| Kind::File { language: language.into(), name: name.into() };
        for (info, kind) in [
            ("sh", Kind::Shell),
            ("sh manual", Kind::Manual),
            ("sh stopped", Kind::Stopped),
            ("sh by:make", Kind::By { step: "make".into() }),
            ("text", Kind::Shown),
            ("text mail kim@acme.example", Kind::Mail { to: "kim@acme.example".into() }),
            ("text output", Kind::Output),
            ("yaml sub/refund.yaml", file("yaml", "sub/refund.yaml")),
            ("toml server.toml", file("toml", "server.toml")),
            ("json fragment", Kind::Fragment { language: "json".into() }),
            ("json request POST /switchward.v1.A/B", Kind::request("/switchward.v1.A/B", "dev-person")),
            (
                "json request POST /switchward.v1.A/B as dev-agent",
                Kind::request("/switchward.v1.A/B", "dev-agent"),
            ),
        ] {
            assert_eq!(Kind::of(info), Ok(kind), "{info}");
        }
        for info in ["", "json", "yaml", "rust", "sh output", "json request GET /a", "yaml refund"] {
            assert_eq!(Kind::of(info), Err(format!("no convention for the fence ```{info}")));
        }
    }

    #[test]
    fn a_page_is_its_blocks() {
        let page = "# A\n\n```sh\na\n```\nb\n```text output\nc\n\nd\n```\n";
        let found = blocks(page).expect("two blocks");
        let block = |kind, at, text: &str| Block { kind, at, text: text.to_owned() };
        assert_eq!(found, [block(Kind::Shell, 3, "a\n"), block(Kind::Output, 7, "c\n\nd\n")]);
        assert_eq!(blocks("\n```sh\na\n"), Err((2, "the fence has no end".to_owned())));
        assert_eq!(blocks("\n```\na\n```\n"), Err((2, "no convention for the fence ```".to_owned())));
    }

    #[test]
    fn a_command_has_its_line_its_continuations_and_its_exit_code() {
        let text = "# prose\n\na b   # why\nc \"#d\" \\\n  e '# f' # exits 7: nobody decided\ng#h\n";
        let found = typed(&Block { kind: Kind::Shell, at: 10, text: text.to_owned() });
        let line = |at, text: &str, code| Typed { at, text: text.to_owned(), code };
        assert_eq!(found, [line(13, "a b", 0), line(14, "c \"#d\" e '# f'", 7), line(16, "g#h", 0)]);
    }
}
