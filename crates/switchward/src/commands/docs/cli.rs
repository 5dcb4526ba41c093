//! `docs/cli.md`, generated from the description of the command line.

use clap::{Arg, Command, CommandFactory as _};
use switchward_messages::cli::docs as texts;

use crate::args::Args;
use crate::args::groups::GROUPS;
use crate::commands::notes::{Part, parts};
use crate::exit::CODES;
use crate::output::put;

/// The heading of the options for the connection to a server.
const SERVER: &str = "Server";
/// A command with these options; their section describes them.
const SAMPLE: &str = "start";
/// The maximum length of a line of prose, characters.
const WIDTH_MAX: usize = 120;

/// Returns the page.
pub(super) fn markdown() -> String {
    let mut program = Args::command().disable_help_subcommand(true);
    program.build();
    let mut page = texts::CLI_INTRODUCTION.to_owned();
    common(&mut page, &program);
    for (group, names) in GROUPS {
        put(&mut page, format_args!("\n## {group}\n"));
        for command in names.concat().iter().filter_map(|name| program.find_subcommand(name)) {
            section(&mut page, command);
        }
    }
    page
}

/// What all commands have in common.
fn common(page: &mut String, program: &Command) {
    put(page, format_args!("\n## {}\n\n", texts::OPTIONS_OF_ALL));
    let options = program.get_arguments().filter(|arg| arg.get_id() != "version");
    options.for_each(|arg| argument(page, arg));
    put(page, format_args!("\n## {}\n\n", texts::OPTIONS_OF_CALLS));
    if let Some(sample) = program.find_subcommand(SAMPLE) {
        sample.get_arguments().filter(|arg| of_server(arg)).for_each(|arg| argument(page, arg));
    }
    paragraph(page, texts::PRECEDENCE);
    page.push_str("\n## Exit codes\n\n| Code | Meaning |\n|---|---|\n");
    for (code, meaning) in CODES {
        put(page, format_args!("| {code} | {meaning} |\n"));
    }
}

fn of_server(arg: &Arg) -> bool {
    arg.get_help_heading() == Some(SERVER)
}

/// The section of a command, and those of its subcommands.
fn section(page: &mut String, command: &Command) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    put(page, format_args!("\n### {name}\n"));
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string);
    for part in sentence(&about.unwrap_or_default()).split("\n\n") {
        paragraph(page, part);
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim().trim_start_matches("Usage:").trim();
    let lines: Vec<&str> = usage.lines().map(str::trim).collect();
    put(page, format_args!("\n```text\n{}\n```\n", lines.join("\n")));
    let own = |arg: &&Arg| !of_server(arg) && !arg.is_hide_set() && !is_common(arg);
    let (positional, options): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(own).partition(|arg| arg.is_positional());
    if !positional.is_empty() || !options.is_empty() {
        page.push('\n');
    }
    positional.into_iter().chain(options).for_each(|arg| argument(page, arg));
    let subcommands = || command.get_subcommands().filter(|it| !it.is_hide_set());
    if subcommands().next().is_none() && command.get_arguments().any(of_server) {
        paragraph(page, texts::CALLS_SERVER);
    }
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    notes(page, &after.map(ToString::to_string).unwrap_or_default());
    subcommands().for_each(|it| section(page, it));
}

fn is_common(arg: &Arg) -> bool {
    ["help", "version", "output"].contains(&arg.get_id().as_str())
}

/// An argument or option, as an item of a list.
fn argument(page: &mut String, arg: &Arg) {
    let takes = arg.get_action().takes_values();
    let values = arg.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>"));
    let values = if takes { values.collect::<Vec<_>>().join(" ") } else { String::new() };
    let name = match (arg.get_short(), arg.get_long()) {
        (None, None) => format!("`{values}`"),
        (short, long) => {
            let short = short.map(|short| format!("`-{short}`"));
            let long =
                long.map(|long| format!("`--{long}{}{values}`", if values.is_empty() { "" } else { " " }));
            short.into_iter().chain(long).collect::<Vec<_>>().join(", ")
        }
    };
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{name}: {}", sentence(&escaped(&help)));
    if arg.is_required_set() {
        text.push_str(" Required.");
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if takes && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        text.push_str(&format!(" Default: {}.", defaults.join(", ")));
    }
    if let Some(variable) = arg.get_env() {
        text.push_str(&format!(" Environment: `{}`.", variable.to_string_lossy()));
    }
    wrapped(page, "- ", &text);
    let possible = if takes { arg.get_possible_values() } else { Vec::new() };
    for value in possible.iter().filter(|value| !value.is_hide_set()) {
        let help = value.get_help().map(|help| format!(": {}", escaped(&help.to_string())));
        wrapped(page, "  - ", &format!("`{}`{}", value.get_name(), help.unwrap_or_default()));
    }
}

/// The text after the help.
fn notes(page: &mut String, text: &str) {
    for part in parts(text) {
        match part {
            Part::Prose(text) => paragraph(page, &escaped(&text)),
            Part::Block(lines) => {
                let commands = lines.iter().any(|line| line.contains("switchward "));
                let fence = if commands { "sh manual" } else { "text" };
                put(page, format_args!("\n```{fence}\n{}\n```\n", lines.join("\n")));
            }
        }
    }
}

fn paragraph(page: &mut String, text: &str) {
    page.push('\n');
    wrapped(page, "", text);
}

/// Appends a text in lines. `first` begins the first line, and the others are indented as much.
fn wrapped(page: &mut String, first: &str, text: &str) {
    let indent = " ".repeat(first.len());
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH_MAX {
            put(page, format_args!("{line}\n"));
            line.clone_from(&indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    put(page, format_args!("{line}\n"));
}

/// A text with a full stop at its end, which clap removes from help texts.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', '?', '!', ':']) { text.to_owned() } else { format!("{text}.") }
}

/// A text for Markdown: outside of code spans, stars and angle brackets are not markup.
fn escaped(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(at, part)| {
        if at % 2 == 1 { part.to_owned() } else { part.replace('*', "\\*").replace('<', "\\<") }
    });
    parts.collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_and_option_is_on_the_page() {
        let page = markdown();
        for name in GROUPS.iter().flat_map(|(_, names)| names.concat()) {
            assert!(page.contains(&format!("\n### switchward {name}\n")), "{name}");
        }
        for part in
            ["### switchward endpoint put\n", "`--api-key <KEY>`", "`SWITCHWARD_API_KEY`", "Default: `30s`."]
        {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("generate-cli <") && !page.contains("--clock-off"), "hidden options");
    }

    #[test]
    fn lines_are_wrapped_and_markup_is_escaped() {
        let mut page = String::new();
        wrapped(&mut page, "- ", &"word ".repeat(40));
        assert!(page.lines().all(|line| line.len() <= WIDTH_MAX) && page.contains("\n  word"), "{page}");
        assert_eq!(escaped("*.json and `*.yaml` <X>"), "\\*.json and `*.yaml` \\<X>");
    }
}
