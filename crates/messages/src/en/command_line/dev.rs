//! What `switchward dev` says: about a development server, and about the servers of a development cluster.

use std::fmt::Display;
use std::path::Path;

/// After the name of the program: a development server is ready.
pub const SERVER_READY: &str = "development server: gRPC, JSON and gRPC-Web on one port";
/// Beside the data: it does not outlive the server.
pub const DATA_TEMPORARY: &str = "temporary, deleted when the server stops; set --data-dir DIR to keep it";
/// Beside the contexts: why their names contain a port.
pub const USUAL_CONTEXTS_IN_USE: &str = "another development server uses the contexts dev-*";
/// Beside the model: there is none.
pub const NO_MODEL: &str = "none: extraction and judging wait for workers";
/// Beside the mail: where the mails of a cluster are shown.
pub const MAIL_OF_EACH_SERVER: &str = "/mail of each server, which shows what that server has sent";
/// The first word above the next commands.
pub const NEXT: &str = "Next";
/// After the first word above the next commands: where they can be run.
pub const NEXT_WHERE: &str = "in another terminal, in a folder with a deploy-gate.json:";
/// At the end of what a development server prints.
pub const HOW_TO_STOP: &str = "ctrl-c stops the server.";
/// At the end of what a development cluster prints.
pub const HOW_TO_STOP_ALL: &str = "ctrl-c stops the servers.";
/// The last line: everything has ended.
pub const STOPPED: &str = "stopped";

/// The answer to a command that has opened the links between all servers.
pub const ALL_LINKS_OPENED: &str = "opened all links";
/// In the log: ctrl-c was typed again while servers stopped.
pub const KILLED_REMAINING: &str = "killed the servers that had not stopped";
/// Instead of an empty table of servers.
pub const NO_SERVERS: &str = "no servers";
/// The end of a process whose status the system does not know.
pub const ENDED: &str = "ended";

/// After the name of the program: a development cluster is ready.
#[must_use]
pub fn cluster_ready(servers: usize) -> String {
    format!("development cluster of {servers} servers")
}

/// Beside the data: the next start continues with it.
#[must_use]
pub fn data_stays(folder: &Path) -> String {
    format!("kept in {}", folder.display())
}

/// Beside the contexts: the folder of their files.
#[must_use]
pub fn contexts_in(folder: &Path) -> String {
    format!("in {}", folder.display())
}

/// Beside the model: which one reads and judges, and the address of its provider.
#[must_use]
pub fn model_at(name: &str, url: &str) -> String {
    format!("{name}, at {url}")
}

/// Beside the contexts of a cluster: one of those for its further servers.
#[must_use]
pub fn further_contexts(sample: &str) -> String {
    format!("and one for each key of a further server, such as {sample}")
}

/// The answer to a command that has ended a server.
#[must_use]
pub fn killed(server: u64) -> String {
    format!("killed server {server}")
}

/// The answer to a command that does not wait until the server is ready.
#[must_use]
pub fn started(server: u64) -> String {
    format!("started server {server}")
}

/// In the log, and the answer to a command that waits: the server takes calls.
#[must_use]
pub fn ready(server: u64) -> String {
    format!("server {server} is ready")
}

/// The answer to a command that has stopped a server for a while.
#[must_use]
pub fn paused(server: u64) -> String {
    format!("paused server {server}")
}

/// The answer to a command that has continued a server.
#[must_use]
pub fn resumed(server: u64) -> String {
    format!("server {server} runs again")
}

/// The answer to a command that has cut all links of a server.
#[must_use]
pub fn cut_off(server: u64) -> String {
    format!("cut the links between server {server} and the others")
}

/// The answer to a command that has opened all links of a server.
#[must_use]
pub fn links_opened(server: u64) -> String {
    format!("opened the links of server {server}")
}

/// The answer to a command that has changed one link.
#[must_use]
pub fn link_changed(from: u64, to: u64, mode: &impl Display) -> String {
    format!("the link from server {from} to server {to} is {mode}")
}

/// The answer to a command that has moved the clocks.
#[must_use]
pub fn time_is(time: &str) -> String {
    format!("the time is {time}")
}

/// The clock of a server that runs was not moved.
#[must_use]
pub fn clock_not_moved(server: u64, why: &str) -> String {
    format!("the clock of server {server} did not follow: {why}")
}

/// The clock of a server was not moved because the server does not serve now.
#[must_use]
pub fn clock_absent(server: u64, state: &str) -> String {
    format!("the clock of server {server} did not follow: it is {state}")
}

/// In the log: a server has ended because it was asked to.
#[must_use]
pub fn server_stopped(server: u64) -> String {
    format!("server {server} has stopped")
}

/// In the log: a server has ended by itself.
#[must_use]
pub fn server_ended(server: u64, how: &str) -> String {
    format!("server {server} has ended: {how}")
}

/// In the log: the Redis of the servers has ended by itself.
#[must_use]
pub fn redis_ended(how: &str) -> String {
    format!("Redis has ended ({how}); what the servers send waits until the cluster is started again")
}

/// The end of a process that ended by itself.
#[must_use]
pub fn exited(code: i32) -> String {
    format!("exited with {code}")
}

/// The end of a process that a signal has ended.
#[must_use]
pub fn killed_by(signal: i32) -> String {
    format!("killed by signal {signal}")
}

/// The end of a process that the system does not let anybody wait for.
#[must_use]
pub fn lost(error: &impl Display) -> String {
    format!("lost: {error}")
}

/// A process of a development cluster may live longer than the cluster.
#[must_use]
pub fn outlives_cluster(error: &impl Display) -> String {
    format!("this process will not end with the one that started it: {error}")
}
