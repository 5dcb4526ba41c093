//! The `switchward` binary: command line, configuration, roles, telemetry. The only crate that sees all others.

mod args;
mod backup;
mod client;
mod commands;
mod config;
mod connections;
mod context;
mod control;
mod cors;
mod delivery_process;
mod disk_config;
mod exit;
mod gateway;
mod health;
mod home;
mod inspector;
mod key_ring;
mod mail_config;
mod mail_in;
mod mailbox;
mod member;
mod metrics;
mod metrics_port;
mod node;
mod outbound;
mod output;
mod page_guard;
mod private;
mod program;
mod quarantine;
mod quota_config;
mod ready;
mod receiver;
mod reload;
mod runtime;
mod sign_in;
mod start_checks;
mod telemetry;
mod tls;
mod whole_file;

use std::process::ExitCode;

use args::{Args, Command};
use exit::Exit;

/// Requests are made on one thread and die on another, many times a step, and what a load has freed must go back to the
/// system.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let args = Args::of_process();
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => exit.report(),
    }
}

fn run(args: Args) -> Result<(), Exit> {
    let output = args.output;
    match args.command {
        Command::Check(check) => commands::check::run(&check, output),
        Command::Graph(graph) => commands::graph::run(&graph, output),
        Command::Simulate(simulate) => commands::simulate::run(&simulate, output),
        Command::Test(test) => commands::test::run(&test, output),
        Command::Dev(dev) => commands::dev::run(dev, output),
        Command::Doctor(doctor) => commands::doctor::run(&doctor, output),
        Command::Server(server) => commands::server::run(server, output),
        Command::Backup(backup) => commands::backup::run(backup, output),
        Command::Secrets(secrets) => commands::secrets::run(secrets, output),
        Command::Cluster(cluster) => commands::cluster::run(cluster, output),
        Command::Context(context) => commands::context::run(context.what, output),
        Command::Docs(docs) => commands::docs::run(&docs, output),
        Command::Man(man) => commands::man::run(&man, output),
        Command::Completion(completion) => commands::completion::run(&completion),
        Command::Schema(schema) => commands::schema::run(&schema),
        Command::Demo(demo) => commands::demo::run(&demo, output),
        Command::Client(command) => commands::client::run(command, output),
    }
}
