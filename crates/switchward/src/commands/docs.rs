//! `switchward docs`: the documentation pages, which are part of the program.

mod cli;
mod pages;

use pages::{PAGES, Page};
use serde_json::json;
use switchward_formats::Report;

use crate::args::{DocsArgs, Output};
use crate::exit::Exit;
use crate::output::{FAINT, Printer, STRONG, print, put};

/// Lists the pages or prints one.
pub(crate) fn run(args: &DocsArgs, output: Output) -> Result<(), Exit> {
    if args.generate_cli {
        return print(&cli::markdown());
    }
    let done = match &args.page {
        None => list(output),
        Some(name) => find(name).and_then(|page| show(page, output)),
    };
    done.map_err(|exit| exit.in_format(output))
}

fn list(output: Output) -> Result<(), Exit> {
    if output.json() {
        let pages: Vec<_> =
            PAGES.iter().map(|page| json!({ "name": page.name, "title": page.title() })).collect();
        return print(&format!("{}\n", json!({ "pages": pages })));
    }
    let width = PAGES.iter().map(|page| page.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for page in PAGES {
        put(&mut text, format_args!("{STRONG}{:<width$}{STRONG:#}  {}\n", page.name, page.title()));
    }
    print(&text)?;
    Printer::new(output).advice("switchward docs PAGE");
    Ok(())
}

/// Finds a page by its name, or by its name with the extension.
fn find(name: &str) -> Result<&'static Page, Exit> {
    let wanted = name.strip_suffix(".md").unwrap_or(name);
    if let Some(page) = PAGES.iter().find(|page| page.name.eq_ignore_ascii_case(wanted)) {
        return Ok(page);
    }
    let exit = Exit::missing(format!("there is no page {name:?}"));
    let nearest = Report::new("").nearest(wanted, PAGES.iter().map(|page| page.name));
    Err(match nearest {
        Some(nearest) => exit.next(format!("switchward docs {nearest}    is the nearest page")),
        None => exit.next("switchward docs    lists the pages"),
    })
}

fn show(page: &Page, output: Output) -> Result<(), Exit> {
    if output.json() {
        let page = json!({ "name": page.name, "title": page.title(), "text": page.text });
        return print(&format!("{page}\n"));
    }
    print(&styled(page.text))
}

/// The page with styles for a terminal; without them, its text is unchanged.
fn styled(text: &str) -> String {
    let mut styled = String::with_capacity(text.len());
    let mut fenced = false;
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        let style = if fence {
            FAINT
        } else if line.starts_with('#') && !fenced {
            STRONG
        } else {
            anstyle::Style::new()
        };
        put(&mut styled, format_args!("{style}{line}{style:#}{end}"));
    }
    styled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_do_not_change_the_text() {
        for page in PAGES {
            assert_eq!(
                anstream::adapter::strip_str(&styled(page.text)).to_string(),
                page.text,
                "{}",
                page.name
            );
        }
    }

    #[test]
    fn a_page_is_found_by_its_name_and_a_wrong_name_gets_the_nearest() {
        assert_eq!(find("glossary").unwrap().name, "glossary");
        assert_eq!(find("Glossary.md").unwrap().name, "glossary");
        let error = find("glosary").unwrap_err();
        assert_eq!(error.message(), "there is no page \"glosary\"");
    }
}
