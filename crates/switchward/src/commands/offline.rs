//! Commands on the data folder of a stopped server: the first tenant and keys are created in this process through the
//! server's log, as the running server would create them.

use anyhow::Context as _;
use std::path::Path;
use std::sync::Arc;
use switchward_api::v1;
use switchward_gateway::{Api, Refusal, services::first};
use switchward_shard::{Cluster, ClusterOptions, MonotonicClock};
use switchward_state::seal::KeyRing;
use switchward_store::DataDir;
use tonic::Status;

use super::client::{admin, tenant};
use crate::args::{BootstrapKey, CreateTenant, Output};
use crate::exit::Exit;
use crate::key_ring::{KeyRingLocation, explained};
use crate::node::{CACHE_BYTES_DEFAULT, shards_default};
use crate::output::Printer;
use crate::private;

/// Creates a tenant and its first admin key.
pub(super) async fn create_tenant(create: CreateTenant, output: Output) -> Result<(), Exit> {
    let folder = create.data_dir.context("no data folder is given")?;
    let server = Stopped::open(&folder, create.shards).await?;
    server.have_keys(&folder)?;
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
    Printer::new(output, false).message("CreateTenantResponse", &reply, || tenant::created(&reply))
}

/// Creates an admin key of an existing tenant.
pub(super) async fn bootstrap(bootstrap: BootstrapKey, output: Output) -> Result<(), Exit> {
    let folder = &bootstrap.data_dir;
    if !folder.join("FORMAT").is_file() {
        return Err(Exit::missing(format!("{} is not a server's data folder", folder.display())));
    }
    let server = Stopped::open(folder, None).await?;
    server.have_keys(folder)?;
    let made = server.admin_key(&bootstrap).await;
    server.close().await?;
    let reply = made?;
    Printer::new(output, false).message("CreateApiKeyResponse", &reply, || admin::created(&reply))
}

/// An open data folder without a serving server.
pub(super) struct Stopped {
    pub(super) cluster: Cluster,
    pub(super) data: DataDir,
    api: Api,
}

impl Stopped {
    pub(super) async fn open(folder: &Path, shards: Option<u32>) -> Result<Self, Exit> {
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
        let location = KeyRingLocation::find(None, folder);
        let data = DataDir::open(folder).context("--data-dir")?;
        let options = ClusterOptions {
            data: data.clone(),
            shards: shards.unwrap_or_else(shards_default),
            cache_bytes: CACHE_BYTES_DEFAULT,
            clock: Arc::new(MonotonicClock::new()),
            ring: KeyRing::of(location.read_if_there()?),
            on_fatal: Box::new(|why: &str| {
                eprintln!("switchward: {why}");
                std::process::exit(1);
            }),
        };
        let cluster = Cluster::open(options)
            .await
            .map_err(|error| explained(error, &location))
            .with_context(|| format!("failed to open the data folder {}", folder.display()))?;
        let api = Api::new(cluster.clone(), None);
        Ok(Self { cluster, data, api })
    }

    /// Creates a key ring if there is none. No secret can be encrypted yet, because that needs a key ring.
    fn have_keys(&self, folder: &Path) -> anyhow::Result<()> {
        if self.cluster.ring().current().is_none() {
            let keys = KeyRingLocation::find(None, folder).read_or_create()?;
            self.cluster.replace_ring(&KeyRing::of(keys));
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

fn refused(refusal: Refusal) -> Exit {
    Exit::refused(&Status::from(refusal))
}
