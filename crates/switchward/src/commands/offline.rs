//! Commands on the data folder of a stopped server: the first tenant and keys are created in this process through the
//! server's log, as the running server would create them.

use anyhow::Context as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switchward_api::v1;
use switchward_gateway::{Api, Refusal, services::first};
use switchward_messages::cli::secrets::keep_copy;
use switchward_shard::{Cluster, ClusterOptions, MonotonicClock};
use switchward_state::seal::KeyRing;
use switchward_store::{ClusterIdentity, DataDir};
use tonic::Status;

use super::client::{admin, tenant};
use crate::args::{BootstrapKey, CreateTenant, Output};
use crate::config;
use crate::exit::{Exit, end_process};
use crate::key_ring::{KeyRingLocation, explained};
use crate::member::ProcessKind;
use crate::node::{CACHE_BYTES_DEFAULT, shards_default};
use crate::output::Printer;
use crate::private;

/// Creates a tenant and its first admin key.
pub(super) async fn create_tenant(
    create: CreateTenant,
    purpose: Purpose,
    output: Output,
) -> Result<(), Exit> {
    let folder = ServerFolder::find(create.data_dir, create.config.as_ref())?;
    let server = Stopped::open(&folder, purpose, create.shards.or(folder.shards)).await?;
    server.have_keys(output)?;
    let wanted = v1::Tenant {
        display_name: create.display_name.unwrap_or_default(),
        default_effect: tenant::effect(create.default_effect).into(),
        allow_foreign_role: create.allow_foreign_role,
        ..v1::Tenant::default()
    };
    let request =
        v1::CreateTenantRequest { tenant_id: create.tenant, tenant: Some(wanted), request_id: String::new() };
    let made = first::create_tenant(&server.api, request).await;
    server.close().await?;
    let reply = made.map_err(|refusal| refused(refusal).calling("tenant_id", "TENANT"))?;
    Printer::new(output).message("CreateTenantResponse", &reply, || tenant::created(&reply))
}

/// Creates an admin key of an existing tenant.
pub(super) async fn bootstrap(bootstrap: BootstrapKey, output: Output) -> Result<(), Exit> {
    let folder = ServerFolder::find(bootstrap.data_dir.clone(), bootstrap.config.as_ref())?;
    folder.is_there()?;
    let server = Stopped::open(&folder, Purpose::NewKey, None).await?;
    server.have_keys(output)?;
    let made = server.admin_key(&bootstrap).await;
    server.close().await?;
    let reply = made?;
    Printer::new(output).message("CreateApiKeyResponse", &reply, || admin::created(&reply))
}

/// The data folder of a server, and what its configuration says of it.
pub(super) struct ServerFolder {
    /// The data folder.
    pub(super) data: PathBuf,
    /// Where the key ring is that the server uses.
    pub(super) keys: KeyRingLocation,
    /// The shards of a new data folder, if the configuration sets them.
    shards: Option<u32>,
}

impl ServerFolder {
    /// The named data folder, or the one of a server's configuration, with the key ring that the server uses.
    ///
    /// # Errors
    /// Neither is given, or the configuration cannot be read or is that of a process without data.
    pub(super) fn find(named: Option<PathBuf>, file: Option<&PathBuf>) -> Result<Self, Exit> {
        if let Some(data) = named {
            let keys = KeyRingLocation::find(None, &data);
            return Ok(Self { data, keys, shards: None });
        }
        if file.is_none() && std::env::var_os("SWITCHWARD_DATA_DIR").is_none() {
            return Err(Exit::usage("no data folder is given")
                .next("set --data-dir DIR, or --config FILE of the server"));
        }
        let config = config::read(file, &[])?;
        if config.kind() != ProcessKind::Server {
            let message = "cluster.roles: a process without the role engine has no data folder";
            return Err(Exit::usage(message).next("set --config FILE of a server, or --data-dir DIR"));
        }
        let keys = KeyRingLocation::find(config.keys_file.as_deref(), &config.data_dir);
        Ok(Self { data: config.data_dir, keys, shards: config.shards })
    }

    /// Checks that a server has used the folder before.
    ///
    /// # Errors
    /// It is not a data folder, or this user may not enter it.
    pub(super) fn is_there(&self) -> Result<(), Exit> {
        match std::fs::metadata(self.data.join("FORMAT")) {
            Ok(format) if format.is_file() => Ok(()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(closed(&self.data, error)),
            Ok(_) | Err(_) => {
                Err(Exit::missing(format!("{} is not a server's data folder", self.data.display())))
            }
        }
    }
}

/// The error of a data folder that this user may not enter.
fn closed(data: &Path, error: std::io::Error) -> Exit {
    let error = anyhow::Error::from(error).context(format!("failed to enter {}", data.display()));
    Exit::failed(error).next("run this command as the server's user")
}

/// What a command wants of the data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The first tenant of a new cluster is created, before the folder becomes that of its first server.
    FirstTenant,
    /// A tenant is created.
    NewTenant,
    /// An admin key is created.
    NewKey,
    /// The rows are backed up.
    Backup,
    /// The use of the keys of the ring is counted.
    Secrets,
}

/// An open data folder without a serving server.
pub(super) struct Stopped {
    pub(super) cluster: Cluster,
    pub(super) data: DataDir,
    keys: KeyRingLocation,
    api: Api,
}

impl Stopped {
    /// Opens the folder of a server that stands alone.
    ///
    /// # Errors
    /// A server uses it, it belongs to another user or to a server of a cluster, or it cannot be opened.
    pub(super) async fn open(of: &ServerFolder, purpose: Purpose, shards: Option<u32>) -> Result<Self, Exit> {
        let (folder, location) = (of.data.as_path(), &of.keys);
        if DataDir::in_use(folder) {
            let message = format!("the data folder {} is in use by a server", folder.display());
            return Err(Exit::conflict(message)
                .next("stop that server, or call it with an admin key of its first tenant"));
        }
        if let Some(owner) = private::foreign_owner(folder) {
            let message = format!("the data folder {} belongs to the user {owner}", folder.display());
            return Err(Exit::conflict(message)
                .next("run this command as that user, else the server cannot write the new files"));
        }
        private::begin();
        let data = DataDir::open(folder).context("--data-dir")?;
        if let Some(member) = data.identity().cluster {
            return Err(of_member(&data, &member, purpose));
        }
        let options = ClusterOptions {
            data: data.clone(),
            shards: shards.unwrap_or_else(shards_default),
            cache_bytes: CACHE_BYTES_DEFAULT,
            clock: Arc::new(MonotonicClock::new()),
            ring: KeyRing::of(location.read_if_there()?),
            member: None,
            on_fatal: Box::new(|why: &str| {
                end_process(why);
            }),
        };
        let cluster = Cluster::open(options)
            .await
            .map_err(|error| explained(error, location))
            .with_context(|| format!("failed to open the data folder {}", folder.display()))?;
        let api = Api::new(cluster.clone(), None);
        Ok(Self { cluster, data, keys: location.clone(), api })
    }

    /// Creates a key ring if there is none. No secret can be encrypted yet, because that needs a key ring.
    fn have_keys(&self, output: Output) -> anyhow::Result<()> {
        if self.cluster.ring().current().is_none() {
            self.cluster.replace_ring(&KeyRing::of(self.keys.read_or_create()?));
            if let Some(file) = self.keys.file() {
                Printer::new(output).advice(&keep_copy(file));
            }
        }
        Ok(())
    }

    async fn admin_key(&self, bootstrap: &BootstrapKey) -> Result<v1::CreateApiKeyResponse, Exit> {
        let names = first::tenant_names(&self.api).map_err(refused)?;
        let tenant = match (&bootstrap.tenant, names.as_slice()) {
            (Some(tenant), _) => tenant,
            (None, [only]) => only,
            (None, []) => {
                return Err(Exit::conflict("this server has no tenant").next(
                    "switchward tenant create NAME --data-dir DIR    creates a tenant and its first key",
                ));
            }
            (None, several) => {
                let message = format!("there are several tenants: {}", several.join(", "));
                return Err(Exit::usage(message).next("set --tenant TENANT"));
            }
        };
        let request = v1::CreateApiKeyRequest {
            role: v1::KeyRole::Admin.into(),
            display_name: "bootstrap".into(),
            subject: bootstrap.subject.clone().unwrap_or_default(),
            ..v1::CreateApiKeyRequest::default()
        };
        first::create_api_key(&self.api, tenant, request).await.map_err(refused)
    }

    pub(super) async fn close(self) -> Result<(), Exit> {
        drop(self.api);
        Ok(self.cluster.shutdown().await.context("failed to write down the state")?)
    }
}

/// The error of a folder of a server of a cluster, which may never have started. What a majority of the other servers has
/// acknowledged may be missing in it, even if the server voted, and nothing that is written into one folder alone is agreed on.
fn of_member(data: &DataDir, member: &ClusterIdentity, purpose: Purpose) -> Exit {
    let folder = data.path().display();
    let message = match purpose {
        Purpose::FirstTenant => format!("the data folder {folder} belongs to {member} already"),
        Purpose::NewTenant | Purpose::NewKey | Purpose::Backup | Purpose::Secrets => format!(
            "the data folder {folder} belongs to {member}: a stopped server of a cluster may lack steps that were acknowledged"
        ),
    };
    Exit::conflict(message).next(match purpose {
        Purpose::FirstTenant | Purpose::NewTenant => {
            "start the server, and run `switchward tenant create NAME` with an admin key of its first tenant"
        }
        Purpose::NewKey => {
            "name the tenant and a new key under [[tenants]] in its configuration, and start it: it creates that admin key"
        }
        Purpose::Backup => {
            "run this command on a server of the cluster that runs, while a majority of the servers runs"
        }
        Purpose::Secrets => "start the server, and run this command again: it asks the running server",
    })
}

fn refused(refusal: Refusal) -> Exit {
    Exit::refused(&Status::from(refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_at(data: PathBuf) -> Result<(), String> {
        let keys = KeyRingLocation::find(None, &data);
        let folder = ServerFolder { data, keys, shards: None };
        folder.is_there().map_err(|exit| exit.message().to_owned())
    }

    #[test]
    fn a_process_without_data_has_no_folder() {
        let at = tempfile::tempdir().unwrap();
        let file = at.path().join("gateway.toml");
        let files = "ca_file = \"a\"\ncert_file = \"b\"\nkey_file = \"c\"\npeers = [\"1=a:1\"]\n";
        std::fs::write(&file, format!("[cluster]\nroles = [\"gateway\"]\n{files}")).unwrap();
        let refused = ServerFolder::find(None, Some(&file)).err().expect("a gateway has none");
        assert!(refused.message().starts_with("cluster.roles: "), "{refused:?}");
    }

    #[test]
    fn a_folder_that_may_not_be_entered_is_not_called_one_of_no_server() {
        let folder = tempfile::tempdir().unwrap();
        let none = looked_at(folder.path().to_owned()).unwrap_err();
        assert!(none.ends_with("is not a server's data folder"), "{none}");
        std::fs::write(folder.path().join("FORMAT"), "1").unwrap();
        assert_eq!(looked_at(folder.path().to_owned()), Ok(()));
        let refused = closed(folder.path(), std::io::Error::from(ErrorKind::PermissionDenied));
        assert!(refused.message().starts_with("failed to enter "), "{refused:?}");
    }
}
