//! The commands about a development cluster that runs: each sends one request to the process that has started it.

use serde_json::json;
use std::path::Path;
use switchward_messages::cli::dev::NO_SERVERS;

use super::control::{Answer, Request, ServerStatus, call};
use super::running::{find, none_runs};
use crate::args::{DevCommand, Output};
use crate::exit::Exit;
use crate::output::{Table, print};

/// Carries out a command.
///
/// # Errors
/// No cluster runs, it refuses, or not every server followed.
pub(super) fn run(command: DevCommand, output: Output) -> Result<(), Exit> {
    let (request, named) = request(command)?;
    let folder = find(named.as_deref())?;
    show(answered(&folder, &request)?, output)
}

fn answered(folder: &Path, request: &Request) -> Result<Answer, Exit> {
    call(folder, request)?.ok_or_else(none_runs)
}

/// The request of a command, and the folder that it names.
fn request(command: DevCommand) -> Result<(Request, Option<std::path::PathBuf>), Exit> {
    Ok(match command {
        DevCommand::Status(of) => (Request::Status {}, of.data_dir),
        DevCommand::Kill(one) => (Request::Kill { server: one.server }, one.of.data_dir),
        DevCommand::Start(one) => (Request::Start { server: one.server, at_once: false }, one.of.data_dir),
        DevCommand::Pause(one) => (Request::Pause { server: one.server }, one.of.data_dir),
        DevCommand::Resume(one) => (Request::Resume { server: one.server }, one.of.data_dir),
        DevCommand::Partition(one) => (Request::Partition { server: one.server }, one.of.data_dir),
        DevCommand::Heal(heal) => (Request::Heal { server: heal.server }, heal.of.data_dir),
        DevCommand::Link(set) => {
            (Request::Link { from: set.from, to: set.to, mode: set.mode }, set.of.data_dir)
        }
        DevCommand::Advance(all) => {
            let by_ms = u64::try_from(all.by.as_millis());
            let by_ms = by_ms.map_err(|_| Exit::usage("the duration is too long"))?;
            (Request::Advance { by_ms }, all.of.data_dir)
        }
        DevCommand::Member(_) | DevCommand::Bus(_) => {
            return Err(Exit::usage("this command is for the processes of a development cluster"));
        }
    })
}

fn show(answer: Answer, output: Output) -> Result<(), Exit> {
    match answer {
        Answer::Refused { message } => Err(Exit::conflict(message)),
        Answer::Status { servers } if output.json() => print(&format!("{}\n", json!({ "servers": servers }))),
        Answer::Status { servers } => print(&table(servers)),
        Answer::Done { done, missed } => {
            let line =
                if output.json() { json!({ "done": done, "missed": missed }).to_string() } else { done };
            end(print(&format!("{line}\n")), &missed)
        }
    }
}

/// Ends with what was missed, also if nobody reads what was done.
fn end(printed: Result<(), Exit>, missed: &[String]) -> Result<(), Exit> {
    printed.or_else(Exit::unless_output_closed)?;
    if missed.is_empty() { Ok(()) } else { Err(Exit::conflict(missed.join("; "))) }
}

fn table(servers: Vec<ServerStatus>) -> String {
    let mut table = Table::new(&["SERVER", "PROCESS", "ADDRESS", "LINKS"]);
    for one in servers {
        table.row([one.server.to_string(), one.process, one.address, one.links]);
    }
    table.text(NO_SERVERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_a_table() {
        let status = |server, process: &str, links: &str| ServerStatus {
            server,
            process: process.to_owned(),
            pid: None,
            address: format!("http://127.0.0.1:{}", 7_399 + server),
            metrics: None,
            links: links.to_owned(),
        };
        let text = table(vec![status(1, "running", "2 cut"), status(2, "paused", "1 cut, 3 cut")]);
        let text = anstream::adapter::strip_str(&text).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("SERVER  PROCESS  ADDRESS") && lines[0].ends_with("LINKS"), "{text}");
        assert!(lines[1].starts_with("1       running  http://127.0.0.1:7400"), "{text}");
        assert!(lines[2].ends_with("1 cut, 3 cut"), "{text}");
    }

    #[test]
    fn a_server_that_did_not_follow_is_a_conflict() {
        let answer = |missed: &[&str]| Answer::Done {
            done: "the time is 2026-01-05T09:00:00Z".to_owned(),
            missed: missed.iter().map(|&one| one.to_owned()).collect(),
        };
        assert!(show(answer(&[]), Output::Text).is_ok());
        let exit = show(answer(&["a", "b"]), Output::Text).unwrap_err();
        assert_eq!(exit.message(), "a; b");
        let closed = Err(crate::exit::unwritten(std::io::ErrorKind::BrokenPipe.into()).into());
        assert_eq!(end(closed, &["a".to_owned()]).unwrap_err().message(), "a", "nobody reads what was done");
        let refused = show(Answer::Refused { message: "no".to_owned() }, Output::Json).unwrap_err();
        assert_eq!(refused.message(), "no");
    }
}
