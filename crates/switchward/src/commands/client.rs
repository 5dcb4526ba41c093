//! The commands that call a server and print the response as a table, a card or JSON.

pub(super) mod admin;
mod assistant;
mod cluster;
mod conversation;
mod converse;
mod definitions;
mod deploy;
mod diff;
mod directory;
mod drive;
mod effect;
mod endpoint;
mod explain;
mod export;
mod gates;
mod get;
mod list;
mod listen;
mod mail;
mod person;
mod policy;
mod quarantine;
mod retention;
mod show;
mod source;
mod talk;
pub(super) mod tenant;
mod values;
mod watch;
mod work;

use talk::Talk;

use super::offline::{self, Purpose};
use crate::args::{
    ClientCommand, ClockCommand, ClusterCall, Keys, KeysCommand, On, Output, TenantArgs, TenantCommand,
    WorkCommand,
};
use crate::exit::Exit;

/// Runs the command and blocks until it has ended. Errors are in the output's format.
pub(crate) fn run(command: ClientCommand, output: Output) -> Result<(), Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(act(command, output)).map_err(|exit| exit.in_format(output))
}

/// Runs a command about the servers of a cluster.
pub(crate) fn cluster(call: ClusterCall, output: Output) -> Result<(), Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        match call {
            ClusterCall::Status(on) => cluster::status(&talk(&on, output).await?).await,
            ClusterCall::Verify(on) => cluster::verify(&talk(&on, output).await?, on.what).await,
            ClusterCall::Drain(on) => cluster::drain(&talk(&on, output).await?, on.what).await,
            ClusterCall::Activate(on) => cluster::activate(&talk(&on, output).await?, on.what.server).await,
            ClusterCall::Remove(on) => cluster::remove(&talk(&on, output).await?, on.what).await,
            ClusterCall::Replace(on) => cluster::replace(&talk(&on, output).await?, on.what).await,
            ClusterCall::Transfer(on) => cluster::transfer(&talk(&on, output).await?, on.what).await,
            ClusterCall::Level(on) => cluster::level(&talk(&on, output).await?, on.what).await,
        }
    });
    done.map_err(|exit| exit.in_format(output))
}

async fn act(command: ClientCommand, output: Output) -> Result<(), Exit> {
    match command {
        ClientCommand::Deploy(on) => deploy::run(&talk(&on, output).await?, on.what).await,
        ClientCommand::Activate(on) => definitions::activate(&talk(&on, output).await?, on.what).await,
        ClientCommand::Retire(on) => definitions::retire(&talk(&on, output).await?, on.what).await,
        ClientCommand::Diff(on) => diff::run(&talk(&on, output).await?, on.what).await,
        ClientCommand::Archive(on) => definitions::archive(&talk(&on, output).await?, on.what).await,
        ClientCommand::Unarchive(on) => definitions::unarchive(&talk(&on, output).await?, on.what).await,
        ClientCommand::Delete(on) => definitions::delete(&talk(&on, output).await?, on.what).await,
        ClientCommand::Start(on) => drive::start(&talk(&on, output).await?, on.what).await,
        ClientCommand::Answer(on) => drive::answer(&talk(&on, output).await?, on.what).await,
        ClientCommand::Message(on) => converse::message(&talk(&on, output).await?, on.what).await,
        ClientCommand::Turn(on) => converse::turn(&talk(&on, output).await?, on.what).await,
        ClientCommand::Record(on) => converse::record(&talk(&on, output).await?, on.what).await,
        ClientCommand::Signal(on) => converse::signal(&talk(&on, output).await?, on.what).await,
        ClientCommand::Event(on) => converse::event(&talk(&on, output).await?, on.what).await,
        ClientCommand::Reply(on) => converse::reply(&talk(&on, output).await?, on.what).await,
        ClientCommand::Switch(on) => converse::switch(&talk(&on, output).await?, on.what).await,
        ClientCommand::Retry(on) => converse::retry(&talk(&on, output).await?, on.what).await,
        ClientCommand::Authorize(on) => drive::authorize(&talk(&on, output).await?, on.what).await,
        ClientCommand::Report(on) => drive::report(&talk(&on, output).await?, on.what).await,
        ClientCommand::Gates(command) => gates::run(command, output).await,
        ClientCommand::Raise(on) => person::raise(&talk(&on, output).await?, on.what).await,
        ClientCommand::Pause(on) => person::pause(&talk(&on, output).await?, on.what).await,
        ClientCommand::Resume(on) => person::resume(&talk(&on, output).await?, on.what).await,
        ClientCommand::Cancel(on) => person::cancel(&talk(&on, output).await?, on.what).await,
        ClientCommand::Get(on) => get::run(&talk(&on, output).await?, on.what).await,
        ClientCommand::List(on) => list::run(&talk(&on, output).await?, on.what).await,
        ClientCommand::Watch(on) => watch::run(&talk(&on, output).await?, on.what).await,
        ClientCommand::Explain(on) => explain::run(&talk(&on, output).await?, on.what).await,
        ClientCommand::Clock(on) => {
            let talk = talk(&on, output).await?;
            match on.what.what {
                None => admin::clock(&talk).await,
                Some(ClockCommand::Advance(by)) => admin::advance(&talk, by).await,
            }
        }
        ClientCommand::Session(on) => retention::session(&talk(&on, output).await?, on.what.what).await,
        ClientCommand::Export(on) => export::run(&talk(&on, output).await?, on.what).await,
        ClientCommand::Retention(on) => retention::rules(&talk(&on, output).await?, on.what.what).await,
        ClientCommand::Assistant(on) => assistant::run(&talk(&on, output).await?, on.what.what).await,
        ClientCommand::Directory(on) => directory::run(&talk(&on, output).await?, on.what.what).await,
        ClientCommand::Policy(on) => policy::run(&talk(&on, output).await?, on.what.what).await,
        ClientCommand::Endpoint(on) => endpoint::run(&talk(&on, output).await?, on.what.what).await,
        ClientCommand::Source(on) => source::run(&talk(&on, output).await?, on.what.what).await,
        ClientCommand::Listen(on) => listen::run(on, output).await,
        ClientCommand::Trigger(on) => endpoint::trigger(&talk(&on, output).await?, on.what).await,
        ClientCommand::Mail(on) => mail::run(on, output).await,
        ClientCommand::Effect(on) => effect::run(&talk(&on, output).await?, on.what.what).await,
        ClientCommand::Keys(on) => keys(on, output).await,
        ClientCommand::Tenant(on) => tenants(on, output).await,
        ClientCommand::Work(on) => {
            let talk = talk(&on, output).await?;
            match on.what.what {
                WorkCommand::Poll(poll) => work::poll(&talk, poll).await,
                WorkCommand::Complete(complete) => work::complete(&talk, complete).await,
                WorkCommand::Fail(fail) => work::fail(&talk, fail).await,
                WorkCommand::Release(release) => work::release(&talk, release).await,
                WorkCommand::Extend(extend) => work::extend(&talk, extend).await,
            }
        }
    }
}

async fn keys(on: On<Keys>, output: Output) -> Result<(), Exit> {
    match on.what.what {
        KeysCommand::Bootstrap(bootstrap) => offline::bootstrap(bootstrap, output).await,
        KeysCommand::Create(create) => {
            admin::create_key(&Talk::open(&on.connection, output).await?, create).await
        }
        KeysCommand::Revoke(revoke) => {
            admin::revoke_key(&Talk::open(&on.connection, output).await?, revoke).await
        }
    }
}

async fn tenants(on: On<TenantArgs>, output: Output) -> Result<(), Exit> {
    match on.what.what {
        TenantCommand::Create(create) if create.data_dir.is_some() || create.config.is_some() => {
            offline::create_tenant(create, Purpose::NewTenant, output).await
        }
        what @ (TenantCommand::Create(_)
        | TenantCommand::Get(_)
        | TenantCommand::List(_)
        | TenantCommand::Set(_)
        | TenantCommand::Quotas(_)
        | TenantCommand::Delete(_)) => tenant::run(&Talk::open(&on.connection, output).await?, what).await,
    }
}

/// Connects as the command says.
async fn talk<T: clap::Args>(on: &On<T>, output: Output) -> Result<Talk, Exit> {
    Talk::open(&on.connection, output).await
}
