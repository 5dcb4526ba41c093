//! The groups of commands in `switchward --help`.
//!
//! clap has no headings for subcommands, so the help template of the program contains the list.

use clap::Command;

use super::gates::GatesCommand;
use crate::exit::CODES;

/// Every visible command, by group; the names of a group are in several lists if a subject has its own.
pub(crate) const GROUPS: [(&str, &[&[&str]]); 6] = [
    (
        "Definitions",
        &[&[
            "check",
            "simulate",
            "test",
            "graph",
            "deploy",
            "activate",
            "retire",
            "diff",
            "archive",
            "unarchive",
            "delete",
            "policy",
            "assistant",
        ]],
    ),
    (
        "Sessions",
        &[&[
            "start",
            "answer",
            "message",
            "turn",
            "record",
            "signal",
            "event",
            "switch",
            "retry",
            "authorize",
            "report",
            "explain",
            "work",
            "get",
            "list",
            "watch",
            "pause",
            "resume",
            "cancel",
            "raise",
            "session",
        ]],
    ),
    ("People", &[GatesCommand::NAMES, &["reply", "directory"]]),
    ("Delivery", &[&["mail", "effect", "endpoint", "source"]]),
    (
        "Operating",
        &[&[
            "server",
            "doctor",
            "backup",
            "secrets",
            "cluster",
            "tenant",
            "keys",
            "retention",
            "export",
            "context",
        ]],
    ),
    ("Development", &[&["demo", "dev", "clock", "listen", "trigger", "schema", "docs", "man", "completion"]]),
];

/// The widest line of the list, columns.
#[cfg(test)]
const WIDTH_MAX: usize = 80;

/// Returns the command with the list of its subcommands in groups.
pub(crate) fn grouped(command: Command) -> Command {
    let template = template(&command);
    command.help_template(template)
}

fn template(command: &Command) -> String {
    let styles = command.get_styles();
    let (heading, literal) = (styles.get_header(), styles.get_literal());
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, names) in GROUPS {
        text.push_str(&format!("\n{heading}{group}:{heading:#}\n"));
        for name in names.concat() {
            let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            text.push_str(&format!("  {literal}{name:<10}{literal:#}  {}\n", about.unwrap_or_default()));
        }
    }
    text.push_str(&format!("\n{heading}Options:{heading:#}\n{{options}}\n"));
    text.push_str(&format!("\n{heading}Exit codes:{heading:#}\n"));
    for (code, meaning) in CODES {
        text.push_str(&format!("  {literal}{code:<10}{literal:#}  {meaning}\n"));
    }
    text.push_str("\n`switchward COMMAND --help` shows the options and examples of a command.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::CommandFactory as _;

    #[test]
    fn every_visible_command_is_in_exactly_one_group() {
        let command = Args::command();
        let visible = command.get_subcommands().filter(|it| !it.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.concat()).collect();
        visible.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, visible);
    }

    #[test]
    fn the_list_fits_a_narrow_terminal_and_has_no_placeholder() {
        let command = Args::command();
        for one in command.get_subcommands() {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && !about.contains(['{', '\n']), "{}: {about}", one.get_name());
            assert!(about.len() + 14 <= WIDTH_MAX, "{}: {about}", one.get_name());
        }
    }

    #[test]
    fn the_help_has_every_group_and_the_options() {
        let help = grouped(Args::command()).render_long_help().to_string();
        for (group, names) in GROUPS {
            assert!(help.contains(&format!("\n{group}:\n  {}", names[0][0])), "{help}");
        }
        assert!(help.contains("\nOptions:\n") && help.contains("--output <OUTPUT>"), "{help}");
        assert!(help.contains("\n  69          the server cannot be reached"), "{help}");
    }
}
