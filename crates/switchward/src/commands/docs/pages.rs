//! The pages of the folder `docs` of the repository. A new page needs its line here.

/// A file of `docs/`, built into the program.
#[derive(Debug)]
pub(super) struct Page {
    /// The file's name without its extension.
    pub(super) name: &'static str,
    /// Markdown.
    pub(super) text: &'static str,
}

impl Page {
    /// The first line without its number sign.
    pub(super) fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }
}

macro_rules! pages {
    ($($name:literal,)*) => {
        &[$(Page {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/", $name, ".md")),
        },)*]
    };
}

/// Every page, by name.
pub(super) const PAGES: &[Page] = pages![
    "README",
    "api",
    "approvals-by-mail",
    "cli",
    "cluster",
    "concepts",
    "configuration",
    "contributing",
    "conversations",
    "errors",
    "features",
    "findings",
    "first-process",
    "formats-checkpoint",
    "formats-conversation",
    "formats-conversation-operations",
    "formats-native",
    "glossary",
    "limits",
    "operating",
    "policies",
    "scenarios",
    "webhooks",
    "workers",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_equals_the_files() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
        let mut files: Vec<String> =
            files.filter_map(|name| name.to_string_lossy().strip_suffix(".md").map(str::to_owned)).collect();
        files.sort_unstable();
        let names: Vec<&str> = PAGES.iter().map(|page| page.name).collect();
        assert_eq!(names, files, "correct the list in commands/docs/pages.rs");
    }

    #[test]
    fn every_page_has_a_title() {
        for page in PAGES {
            assert!(page.text.starts_with("# ") && !page.title().is_empty(), "{}", page.name);
        }
    }
}
