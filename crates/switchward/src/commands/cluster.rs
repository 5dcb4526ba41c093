//! `switchward cluster`: what concerns several servers together.

mod certs;
mod claim;

pub(super) use certs::{AUTHORITY_FILES, make as make_certificates};

use super::client;
use crate::args::{ClusterArgs, ClusterCommand, Output};
use crate::exit::Exit;

/// Carries out a command about a cluster.
pub(crate) fn run(args: ClusterArgs, output: Output) -> Result<(), Exit> {
    let done = match args.what {
        ClusterCommand::Certs(certs) => certs::run(&certs, output),
        ClusterCommand::Init(init) => claim::init(init, output),
        ClusterCommand::Join(join) => claim::join(&join, output),
        ClusterCommand::Doctor(doctor) => return super::doctor::run(&doctor, output),
        ClusterCommand::Call(call) => return client::cluster(call, output),
    };
    done.map_err(|exit| exit.in_format(output))
}
