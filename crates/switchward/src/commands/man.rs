//! `switchward man`: man pages, generated from the description of the command line.

use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};
use std::fs;
use std::path::Path;

use super::notes::{Part, parts};
use crate::args::{Args, ManArgs, Output};
use crate::exit::{CODES, Exit};
use crate::output::{count, print, print_bytes};

/// The program and its version, at the foot of each page.
const SOURCE: &str = concat!("switchward ", env!("CARGO_PKG_VERSION"));

/// Prints the page of the program, or writes all pages.
pub(crate) fn run(args: &ManArgs, output: Output) -> Result<(), Exit> {
    let mut program = Args::command().disable_help_subcommand(true);
    program.build();
    match &args.dir {
        None => print_bytes(&page(&program)?),
        Some(dir) => write(&program, dir, output).map_err(|exit| exit.in_format(output)),
    }
}

fn write(program: &Command, dir: &Path, output: Output) -> Result<(), Exit> {
    fs::create_dir_all(dir).with_context(|| format!("failed to create {}", dir.display()))?;
    let mut files = Vec::new();
    write_below(program, dir, &mut files)?;
    if output.json() {
        return print(&format!("{}\n", serde_json::json!({ "dir": dir.to_string_lossy(), "files": files })));
    }
    print(&format!(
        "wrote {} to {}\n",
        count(files.len(), "page"),
        crate::output::clean(&dir.to_string_lossy())
    ))
}

/// Writes the pages of a command and of its visible subcommands.
fn write_below(command: &Command, dir: &Path, files: &mut Vec<String>) -> Result<(), Exit> {
    let name = Man::new(command.clone()).get_filename();
    let path = dir.join(&name);
    fs::write(&path, page(command)?).with_context(|| format!("failed to write {}", path.display()))?;
    files.push(name);
    let mut visible = command.get_subcommands().filter(|it| !it.is_hide_set());
    visible.try_for_each(|it| write_below(it, dir, files))
}

/// Writes the page of a command in roff, which `man` reads.
fn page(command: &Command) -> Result<Vec<u8>, Exit> {
    let man = Man::new(command.clone()).manual("Switchward").source(SOURCE);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|it| !it.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    if let Some(after) = after {
        notes(&after.to_string()).to_writer(&mut page)?;
    }
    codes().to_writer(&mut page)?;
    Ok(page)
}

/// The text after the help; its blocks are not filled.
fn notes(text: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["NOTES"]);
    for part in parts(text) {
        match part {
            Part::Prose(text) => {
                roff.control("PP", []).text([roman(text)]);
            }
            Part::Block(lines) => {
                roff.control("RS", ["4"]).control("nf", []);
                for line in lines {
                    roff.text([roman(line)]);
                }
                roff.control("fi", []).control("RE", []);
            }
        }
    }
    roff
}

fn codes() -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in CODES {
        roff.control("TP", []).text([bold(code.to_string())]).text([roman(meaning)]);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let mut program = Args::command().disable_help_subcommand(true);
        program.build();
        write(&program, &folder.path().join("man1"), Output::Json).unwrap();
        for name in
            ["switchward", "switchward-check", "switchward-endpoint", "switchward-mail-quarantine-show"]
        {
            let page = fs::read_to_string(folder.path().join("man1").join(format!("{name}.1"))).unwrap();
            for part in [".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", ".SH \"EXIT STATUS\""] {
                assert!(page.contains(part), "{name}: {part}: {page}");
            }
        }
        let check = fs::read_to_string(folder.path().join("man1/switchward-check.1")).unwrap();
        assert!(check.contains("switchward check deploy\\-gate.json"), "{check}");
    }
}
