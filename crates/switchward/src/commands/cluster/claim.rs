//! `switchward cluster init` and `join`: bind a data folder to a server of a cluster.

use anyhow::Context as _;
use serde_json::json;
use std::path::Path;
use switchward_messages::cli::cluster as texts;
use switchward_store::{ClusterIdentity, DataDir};

use super::super::offline::{self, Purpose};
use crate::args::{ClusterInit, ClusterJoin, CreateTenant, Output};
use crate::config::{self, Config};
use crate::exit::Exit;
use crate::member::{ClusterConfig, FIRST, identity};
use crate::output::print;
use crate::{private, runtime, tls};

/// Makes a folder that of a cluster's first server.
pub(super) fn init(init: ClusterInit, output: Output) -> Result<(), Exit> {
    tls::install_provider();
    private::begin();
    let config = config::read(init.config.as_ref(), &[])?;
    let (cluster, identity) = of_config(&config)?;
    if cluster.server != FIRST {
        let message = format!(
            "cluster.server is {}, and the first server of a cluster is server {FIRST}",
            cluster.server
        );
        return Err(
            Exit::usage(message).next("switchward cluster join    makes a folder that of a further server")
        );
    }
    free(&config.data_dir)?;
    match init.tenant {
        Some(tenant) => {
            let create = CreateTenant {
                tenant,
                display_name: None,
                default_effect: None,
                allow_foreign_role: false,
                data_dir: None,
                config: init.config,
                shards: None,
            };
            let made =
                runtime::make()?.block_on(offline::create_tenant(create, Purpose::FirstTenant, output));
            made.or_else(Exit::unless_output_closed)?;
        }
        None if !is_used(&config.data_dir) && config.tenants.is_empty() => {
            return Err(Exit::usage(
                "the folder is new, so the cluster would have no tenant, and no key could call it",
            )
            .next("set --tenant NAME"));
        }
        None => {}
    }
    claim(&config, identity, output)
}

/// Makes a new folder that of a further server.
pub(super) fn join(join: &ClusterJoin, output: Output) -> Result<(), Exit> {
    tls::install_provider();
    private::begin();
    let config = config::read(join.config.as_ref(), &[])?;
    let (cluster, identity) = of_config(&config)?;
    // A new folder of this number founds a cluster when its server starts.
    if cluster.server == FIRST {
        let message =
            format!("cluster.server is {FIRST}, and server {FIRST} joins no cluster: it founds one");
        return Err(Exit::usage(message)
            .next("a lost server 1 is replaced by a server with the next number: switchward docs cluster")
            .next("switchward cluster init    founds a new cluster"));
    }
    if cluster.peers()?.is_empty() {
        return Err(Exit::usage("cluster.peers names no other server, so this one would find none"));
    }
    free(&config.data_dir)?;
    if is_used(&config.data_dir) {
        let message = format!("{} is the data folder of a server already", config.data_dir.display());
        return Err(Exit::conflict(message)
            .next("set data_dir to a new folder: a server joins without data of its own"));
    }
    claim(&config, identity, output)
}

fn of_config(config: &Config) -> Result<(&ClusterConfig, ClusterIdentity), Exit> {
    let Some(cluster) = &config.cluster else {
        return Err(Exit::usage("the configuration has no table [cluster]")
            .next("switchward docs cluster    says what it needs"));
    };
    Ok((cluster, identity(cluster)?))
}

fn free(folder: &Path) -> Result<(), Exit> {
    if DataDir::in_use(folder) {
        let message = format!("the data folder {} is in use by a server", folder.display());
        return Err(Exit::conflict(message).next("stop that server"));
    }
    Ok(())
}

/// Returns true if a server has written to the folder.
fn is_used(folder: &Path) -> bool {
    folder.join("FORMAT").is_file()
}

fn claim(config: &Config, identity: ClusterIdentity, output: Output) -> Result<(), Exit> {
    let folder = &config.data_dir;
    let data = DataDir::open(folder).context("data_dir")?;
    data.claim(identity).context("data_dir")?;
    let (server, cluster) = (identity.server, identity.cluster.to_string());
    if output.json() {
        return print(&format!("{}\n", json!({ "server": server, "cluster": cluster, "data_dir": folder })));
    }
    print(&format!("{}\n", texts::folder_claimed(folder, server, &cluster)))
}
