//! How a development server is opened: alone, or as one of a cluster.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use switchward_delivery::mail::Sender;
use switchward_gateway::{PageSettings, QuotaDefaults, limits::MEMORY_BYTES_DEFAULT};
use switchward_machine::Time;
use switchward_shard::{Clock, MachineClocks, ManualClock, MonotonicClock, RawClocks};
use switchward_state::catalogue::LinkAuth;
use switchward_state::seal::KeyRing;
use tokio::net::TcpListener;

use super::TENANT;
use crate::args::{ClockKind, Unnamed};
use crate::key_ring::KeyRingLocation;
use crate::mailbox::{HOST, Mailbox};
use crate::member::ClusterConfig;
use crate::node::{CACHE_BYTES_DEFAULT, Mail, Node, Opening};
use crate::outbound::{DeliveryConfig, RedisConfig};
use crate::{config, private};

/// What differs between development servers.
pub(super) struct Site<'a> {
    /// The data folder.
    pub(super) folder: &'a Path,
    /// Its address, such as `http://127.0.0.1:7400`.
    pub(super) address: &'a str,
    /// Shards of a new data folder.
    pub(super) shards: u32,
    pub(super) clock: ClockKind,
    /// A file with an offset of the machine's clock.
    pub(super) clock_off: Option<&'a Path>,
    pub(super) allowed_hosts: Vec<String>,
    pub(super) default_effect: Option<Unnamed>,
    pub(super) delivery: &'a DeliveryConfig,
    /// `None`: deliveries stay within the process.
    pub(super) redis: Option<&'a RedisConfig>,
    pub(super) keys: (KeyRing, KeyRingLocation),
    /// `None`: the server is alone.
    pub(super) cluster: Option<&'a ClusterConfig>,
}

impl Site<'_> {
    /// Opens the server.
    ///
    /// # Errors
    /// A setting of the environment is wrong, or the folder cannot be opened.
    pub(super) async fn open(self) -> anyhow::Result<Node> {
        let (manual, clock) = clocks(self.clock, self.clock_off);
        let mail = Mail::Mailbox(
            Box::new(sender(self.address)),
            Mailbox::open(self.folder, Arc::clone(&clock))?,
            TENANT,
            self.allowed_hosts,
        );
        let (disk, cors) = config::disk_and_cors_of_dev()?;
        let opening = Opening {
            shards: self.shards,
            memory_bytes: MEMORY_BYTES_DEFAULT,
            cache_bytes: CACHE_BYTES_DEFAULT,
            clock,
            manual,
            delivery: self.delivery,
            redis: self.redis,
            keys: self.keys,
            mail,
            disk: disk.options(),
            origins: cors.origins()?,
            default_effect: self.default_effect.map(Into::into),
            // A development server has no quotas, unless they are set for a tenant.
            quotas: QuotaDefaults::default(),
            // Everybody who can open its pages can read its mails as well.
            pages: PageSettings { link_auth: LinkAuth::Link, secure: false },
            sign_in: None,
            restoring: None,
            cluster: self.cluster,
        };
        let node = Node::open(self.folder, opening).await;
        node.with_context(|| format!("failed to open {}", self.folder.display()))
    }
}

/// The manual clock, if calls can advance it, and the clock.
fn clocks(kind: ClockKind, off: Option<&Path>) -> (Option<ManualClock>, Arc<dyn Clock>) {
    match (kind, off) {
        (ClockKind::Manual, _) => {
            let clock = ManualClock::new(Time(0));
            (Some(clock.clone()), Arc::new(clock))
        }
        (ClockKind::System, Some(file)) => {
            (None, Arc::new(MonotonicClock::over(Box::new(Off(file.to_owned())))))
        }
        (ClockKind::System, None) => (None, Arc::new(MonotonicClock::new())),
    }
}

/// The machine's clocks with an offset from a file.
struct Off(PathBuf);

impl RawClocks for Off {
    fn wall(&self) -> Duration {
        let off: i64 =
            fs::read_to_string(&self.0).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let by = Duration::from_millis(off.unsigned_abs());
        let wall = MachineClocks.wall();
        if off < 0 { wall.saturating_sub(by) } else { wall.saturating_add(by) }
    }

    fn counted(&self) -> Duration {
        MachineClocks.counted()
    }
}

/// The sender of a development server, which sends no mail to the outside.
fn sender(at: &str) -> Sender {
    Sender {
        from: format!("Switchward dev <switchward@{HOST}>"),
        reply: Some(format!("r+{{token}}@{HOST}")),
        pages: Some(at.to_owned()),
        authors: vec!["*".to_owned()],
        dkim: None,
    }
}

/// Listens on a port of this machine; on any free one if it is 0.
///
/// # Errors
/// The port is in use.
pub(super) async fn listen(port: u16) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    TcpListener::bind(address).await.with_context(|| {
        format!("failed to listen on {address}; set --port 0 for any free port, or --port N for another")
    })
}

/// The key ring beside a folder. It is created if there is none and `data`, a data folder that it is for, is new.
///
/// # Errors
/// The ring cannot be read or written.
pub(super) fn ring(folder: &Path, data: &Path) -> anyhow::Result<(KeyRing, KeyRingLocation)> {
    let location = KeyRingLocation::find(None, folder);
    // A folder whose key ring was lost does not get a new one.
    let keys = if is_used(data) {
        location.read_if_there()?
    } else {
        // Parents of the data folder that are missing are made, and the ring is made before it.
        if let KeyRingLocation::Beside(file) = &location
            && let Some(parent) = file.parent()
        {
            fs::create_dir_all(parent).with_context(|| format!("failed to create {}", parent.display()))?;
        }
        location.read_or_create()?
    };
    Ok((KeyRing::of(keys), location))
}

/// Returns true if a server has written to the folder.
pub(super) fn is_used(data: &Path) -> bool {
    data.join("FORMAT").exists()
}

/// The delivery settings of the environment. Unread names are reported.
///
/// # Errors
/// A setting is wrong, or a file with a secret is open to others.
pub(super) fn delivery() -> anyhow::Result<DeliveryConfig> {
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    for name in config::unread_by_dev(names) {
        tracing::warn!("{name} is not a setting of `switchward dev`, which ignores it");
    }
    let delivery = config::delivery_of_dev()?;
    if let Some(file) = delivery.model.as_ref().and_then(|model| model.key_file.as_ref()) {
        private::refuse_open_file(file)?;
    }
    delivery.waits_ms()?;
    delivery.check_worker()?;
    Ok(delivery)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_whose_parents_are_missing_gets_a_key_ring_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("a/b/data");
        let (keys, location) = ring(&data, &data).unwrap();
        assert!(keys.current().is_some());
        let file = location.file().unwrap();
        assert!(file.is_file() && file.parent() == data.parent(), "{file:?}");
    }
}
