//! What the test does between the blocks of a page, because the page leaves it to its reader: `page-needs.md`.

use super::page::{Block, blocks, typed};

const NEEDS: &str = include_str!("page-needs.md");
const CONFIRMED: &str = "- Confirmed: ";

/// What one page needs.
#[derive(Debug, Default)]
pub(super) struct Needs {
    before: Vec<Before>,
    /// The beginnings of commands that a person confirms at a terminal.
    confirmed: Vec<String>,
}

/// What is played before a block of a page.
#[derive(Debug)]
pub(super) struct Before {
    /// How the block's first command begins.
    pub(super) command: String,
    pub(super) text: String,
    pub(super) blocks: Vec<Block>,
}

impl Needs {
    /// What a page needs; most need nothing.
    ///
    /// # Panics
    /// A block of `page-needs.md` follows no convention.
    pub(super) fn of(page: &str) -> Self {
        Self::read(NEEDS, page)
    }

    fn read(needs: &str, page: &str) -> Self {
        let mut sections = needs.split("\n## ").skip(1);
        let of_page = |section: &&str| section.lines().next() == Some(page);
        let Some(section) = sections.find(of_page) else { return Self::default() };
        let mut parts = section.split("\n### ");
        let notes = parts.next().unwrap_or_default().lines();
        let confirmed = notes.filter_map(|line| line.strip_prefix(CONFIRMED));
        let confirmed = confirmed.map(|command| command.trim_matches('`').to_owned()).collect();
        Self { before: parts.map(Before::read).collect(), confirmed }
    }

    /// What is played before this block.
    pub(super) fn before(&self, block: &Block) -> Option<&Before> {
        let lines = if block.kind.is_typed() { typed(block) } else { Vec::new() };
        let first = &lines.first()?.text;
        self.before.iter().find(|before| first.starts_with(&before.command))
    }

    /// A command as the test types it, which has no terminal to confirm it at.
    pub(super) fn confirm(&self, command: &str) -> String {
        let is_confirmed = self.confirmed.iter().any(|it| command.starts_with(it));
        if is_confirmed { format!("{command} --yes") } else { command.to_owned() }
    }

    /// Returns the commands of these needs that begin no block of the page, and no line of it.
    pub(super) fn unused(&self, page: &[Block]) -> Vec<&str> {
        let shell = || page.iter().filter(|block| block.kind.is_typed());
        let begins = |before: &&Before| !shell().any(|block| self.is_before(before, block));
        let unplayed = self.before.iter().filter(begins).map(|before| before.command.as_str());
        let is_typed =
            |command: &&String| shell().flat_map(typed).any(|line| line.text.starts_with(command.as_str()));
        let unconfirmed = self.confirmed.iter().filter(|command| !is_typed(command)).map(String::as_str);
        unplayed.chain(unconfirmed).collect()
    }

    fn is_before(&self, before: &Before, block: &Block) -> bool {
        self.before(block).is_some_and(|found| std::ptr::eq(found, before))
    }
}

impl Before {
    fn read(part: &str) -> Self {
        let (command, text) = part.split_once('\n').unwrap_or((part, ""));
        let blocks = blocks(text).unwrap_or_else(|(line, what)| panic!("before {command}: {line}: {what}"));
        let command = command.trim_matches('`').to_owned();
        Self { command, text: text.to_owned(), blocks }
    }
}

/// The pages that need something.
pub(super) fn pages() -> Vec<&'static str> {
    NEEDS.split("\n## ").skip(1).filter_map(|section| section.lines().next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: &str = "# Needs\n\n## a.md\n\n- Confirmed: `b`\n- Confirmed: `x`\n\n### `b c`\n\n\
                        ```sh stopped\nd\n```\n\n### `y`\n\n## e.md\n";

    #[test]
    fn what_a_page_needs_is_played_before_the_block() {
        let page = blocks("```sh\nb c d\n```\n```sh\nc\nb c\n```\n").expect("blocks");
        let needs = Needs::read(READ, "a.md");
        let before = needs.before(&page[0]).expect("something");
        assert_eq!((before.command.as_str(), before.blocks.len()), ("b c", 1));
        assert!(needs.before(&page[1]).is_none());
        assert_eq!([needs.confirm("b c"), needs.confirm("c")], ["b c --yes", "c"]);
        assert_eq!(needs.unused(&page), ["y", "x"]);
        assert!(Needs::read(READ, "e.md").before(&page[0]).is_none());
        assert!(Needs::read(READ, "f.md").before.is_empty());
    }
}
