//! Configuration of `server`: a file, over it `SWITCHWARD_*` from the environment, over that the flags.

mod environment;
#[cfg(test)]
mod pages_tests;
#[cfg(test)]
mod reference_tests;
mod roles;

use anyhow::Context as _;
use environment::{FROM_ENVIRONMENT, OF_OTHERS};
use figment::{
    Figment, Metadata, Profile, Provider,
    providers::{Env, Format as _, Serialized, Toml},
    value::{Dict, Map},
};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;
use switchward_gateway::limits::MEMORY_BYTES_DEFAULT;

use crate::args::Unnamed;
use crate::connections::ConnectionsConfig;
use crate::cors::Cors;
use crate::disk_config::DiskConfig;
use crate::mail_config::MailConfig;
use crate::member::{ClusterConfig, ProcessKind, ProcessRole};
use crate::outbound::{DeliveryConfig, RedisConfig};
use crate::quota_config::QuotaConfig;

/// The configuration of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Everything that must survive; empty for a process of a cluster that keeps nothing.
    #[serde(default)]
    pub(crate) data_dir: PathBuf,
    /// The key ring that secrets are sealed under; absent: see [`key_ring`](crate::key_ring).
    #[serde(default)]
    pub(crate) keys_file: Option<PathBuf>,
    /// Where to listen.
    #[serde(default = "listen_default")]
    pub(crate) listen: SocketAddr,
    /// Whether anything but loopback may be listened on without TLS.
    #[serde(default)]
    pub(crate) insecure_listen: bool,
    /// Shards of a new data folder.
    #[serde(default)]
    pub(crate) shards: Option<u32>,
    /// The memory limit of the server, MiB.
    #[serde(default)]
    pub(crate) memory_mib: Option<usize>,
    /// Clean rows in memory, MiB.
    #[serde(default)]
    pub(crate) cache_mib: Option<usize>,
    /// What holds for a tool call that no rule of a policy names, unless its tenant sets it.
    #[serde(default)]
    pub(crate) default_effect: Option<Unnamed>,
    /// TLS of the port.
    #[serde(default)]
    pub(crate) tls: Option<Tls>,
    /// Where `/metrics` is.
    #[serde(default)]
    pub(crate) metrics: Metrics,
    /// Which pages of other origins may call the API.
    #[serde(default)]
    pub(crate) cors: Cors,
    /// How many connections there may be.
    #[serde(default)]
    pub(crate) connections: ConnectionsConfig,
    /// What happens when the disk runs low.
    #[serde(default)]
    pub(crate) disk: DiskConfig,
    /// The quotas of a tenant that has none of its own.
    #[serde(default)]
    pub(crate) quotas: QuotaConfig,
    /// The level of the server's log.
    #[serde(default)]
    pub(crate) log: Log,
    /// Tenants that exist from the first start.
    #[serde(default)]
    pub(crate) tenants: Vec<Tenant>,
    /// What the server does by itself outside.
    #[serde(default)]
    pub(crate) delivery: DeliveryConfig,
    /// How mail goes out; absent: it waits in the outbox.
    #[serde(default)]
    pub(crate) mail: Option<MailConfig>,
    /// The Redis that it goes out over; absent: this process alone.
    #[serde(default)]
    pub(crate) redis: Option<RedisConfig>,
    /// The cluster that the server belongs to; absent: it is alone.
    #[serde(default)]
    pub(crate) cluster: Option<ClusterConfig>,
}

/// TLS of the port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    /// The certificate chain, PEM.
    pub(crate) cert_file: PathBuf,
    /// The private key, PEM.
    pub(crate) key_file: PathBuf,
}

/// Where `/metrics` is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Metrics {
    /// Where to listen for it; absent: on loopback at [`METRICS_PORT`].
    #[serde(default)]
    pub(crate) listen: Option<SocketAddr>,
}

/// The default port of `/metrics`: the port that exporters of OpenTelemetry use.
pub(crate) const METRICS_PORT: u16 = 9464;

impl Config {
    /// The address of `/metrics`, and whether it was configured. A server on any free port has its metrics on
    /// another one.
    pub(crate) fn metrics_at(&self) -> (SocketAddr, bool) {
        let port = if self.listen.port() == 0 { 0 } else { METRICS_PORT };
        let usual = SocketAddr::from(([127, 0, 0, 1], port));
        (self.metrics.listen.unwrap_or(usual), self.metrics.listen.is_some())
    }
}

/// The section `log` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Log {
    /// A level, or a filter.
    pub(crate) level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: "info".into() }
    }
}

/// A tenant that exists from the first start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tenant {
    /// `[a-z0-9-]`, 1 to 63 characters.
    pub(crate) name: String,
    /// A file that holds its first key.
    pub(crate) admin_key_file: PathBuf,
}

fn listen_default() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7400))
}

/// The smallest memory limit of a server, MiB: less is not enough for the largest requests.
const MEMORY_MIB_MIN: usize = 256;
/// The prefix of this program's environment variables.
const PREFIX: &str = "SWITCHWARD_";

/// A key that the command line said.
struct Flag(Serialized<serde_json::Value>);

impl Provider for Flag {
    fn metadata(&self) -> Metadata {
        Metadata::named("the flags").interpolater(|_, keys| keys.join("."))
    }

    fn data(&self) -> figment::Result<Map<Profile, Dict>> {
        self.0.data()
    }
}

/// Reads the configuration. `flags` holds what the command line said, by dotted key.
///
/// # Errors
/// An unknown or malformed key, named with its source.
pub(crate) fn read(file: Option<&PathBuf>, flags: &[(&str, serde_json::Value)]) -> anyhow::Result<Config> {
    let mut figment = Figment::new();
    if let Some(file) = file {
        anyhow::ensure!(
            file.is_file(),
            "the configuration file {} does not exist or is not a file",
            file.display()
        );
        figment = figment.merge(Toml::file_exact(file));
    }
    let environment = Env::prefixed(PREFIX).map(|name| name.as_str().replace("__", ".").into());
    figment = figment.merge(environment.only(&FROM_ENVIRONMENT));
    for (name, value) in flags {
        figment = figment.merge(Flag(Serialized::default(name, value.clone())));
    }
    let config: Config = figment.extract().context("the configuration is invalid")?;
    check(&config)?;
    Ok(config)
}

/// The delivery settings of a development server, from the environment. Definitions may call this machine itself.
///
/// # Errors
/// A malformed key, named with its source.
pub(crate) fn delivery_of_dev() -> anyhow::Result<DeliveryConfig> {
    #[derive(Serialize, Deserialize)]
    struct Dev {
        delivery: DeliveryConfig,
    }
    let default = DeliveryConfig {
        allow_http: true,
        allow_loopback: true,
        ports: (1..=u16::MAX).collect(),
        ..DeliveryConfig::default()
    };
    let keys: Vec<&str> = FROM_ENVIRONMENT.into_iter().filter(|key| key.starts_with("delivery.")).collect();
    let environment = Env::prefixed(PREFIX).map(|name| name.as_str().replace("__", ".").into());
    let figment =
        Figment::from(Serialized::defaults(Dev { delivery: default })).merge(environment.only(&keys));
    Ok(figment.extract::<Dev>().context("the environment is invalid")?.delivery)
}

/// The disk and CORS settings of a development server, from the environment.
///
/// # Errors
/// A malformed key, named with its source.
pub(crate) fn disk_and_cors_of_dev() -> anyhow::Result<(DiskConfig, Cors)> {
    #[derive(Serialize, Deserialize)]
    struct Dev {
        disk: DiskConfig,
        cors: Cors,
    }
    // No space is reserved in advance that may be gone in an hour.
    let default = Dev { disk: DiskConfig { min_free_mib: 32, reserve_mib: 0 }, cors: Cors::default() };
    let keys: Vec<&str> = FROM_ENVIRONMENT
        .into_iter()
        .filter(|key| key.starts_with("disk.") || key.starts_with("cors."))
        .collect();
    let environment = Env::prefixed(PREFIX).map(|name| name.as_str().replace("__", ".").into());
    let figment = Figment::from(Serialized::defaults(default)).merge(environment.only(&keys));
    let Dev { disk, cors } = figment.extract().context("the environment is invalid")?;
    Ok((disk, cors))
}

/// Those of the environment's names that begin like this program's and that nothing reads, each with the one that was
/// probably meant. They are no error: linked containers make such names of a service's own name.
pub(crate) fn unread(names: impl Iterator<Item = String>) -> Vec<String> {
    unread_beside(&FROM_ENVIRONMENT, names)
}

/// The same for a development server, which reads less.
pub(crate) fn unread_by_dev(names: impl Iterator<Item = String>) -> Vec<String> {
    let read = |key: &&str| {
        ["log.level", "keys_file"].contains(key)
            || ["delivery.", "disk.", "cors."].iter().any(|part| key.starts_with(part))
    };
    unread_beside(&FROM_ENVIRONMENT.into_iter().filter(read).collect::<Vec<_>>(), names)
}

fn unread_beside(keys: &[&str], names: impl Iterator<Item = String>) -> Vec<String> {
    let of_server: Vec<String> = keys.iter().map(|key| key.replace('.', "__").to_uppercase()).collect();
    let known: Vec<&str> = of_server.iter().map(String::as_str).chain(OF_OTHERS).collect();
    let rest = |name: &String| name.to_uppercase().strip_prefix(PREFIX).map(str::to_owned);
    let mut unread: Vec<String> =
        names.filter(|name| rest(name).is_some_and(|rest| !known.contains(&rest.as_str()))).collect();
    unread.sort_unstable();
    let mut report = switchward_formats::Report::new("");
    // What all of them begin with would make all of them alike.
    let mut meant = |name: &String| report.nearest(&rest(name)?, known.iter().copied());
    let described = |name: String| match meant(&name) {
        Some(meant) => format!("{name} (did you mean {PREFIX}{meant}?)"),
        None => name,
    };
    unread.into_iter().map(described).collect()
}

impl Config {
    /// What kind of process it is; a server alone is a server.
    pub(crate) fn kind(&self) -> ProcessKind {
        self.cluster.as_ref().map_or(ProcessKind::Server, ClusterConfig::kind)
    }

    /// Returns true if this process has the role; a server alone has all.
    pub(crate) fn has(&self, role: ProcessRole) -> bool {
        self.cluster.as_ref().is_none_or(|cluster| cluster.has(role))
    }

    /// The memory limit of the server, bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_mib.map_or(MEMORY_BYTES_DEFAULT, |mib| mib.saturating_mul(1024 * 1024))
    }
}

fn check(config: &Config) -> anyhow::Result<()> {
    if config.tls.is_none() && !config.listen.ip().is_loopback() && !config.insecure_listen {
        anyhow::bail!(
            "listen: {} can be reached from outside and has no TLS; set tls.cert_file and tls.key_file, or pass \
             --insecure-listen if a proxy in front of the server handles TLS",
            config.listen
        );
    }
    if config.shards.is_some_and(|shards| !(1..=64).contains(&shards)) {
        anyhow::bail!("shards: must be from 1 to 64");
    }
    if config.memory_mib.is_some_and(|mib| mib < MEMORY_MIB_MIN) {
        anyhow::bail!("memory_mib: must be at least {MEMORY_MIB_MIN}");
    }
    anyhow::ensure!(
        !config.data_dir.as_os_str().is_empty() || config.kind() != ProcessKind::Server,
        "data_dir: set the folder of everything that must survive"
    );
    roles::check(config)?;
    config.connections.check()?;
    config.quotas.check()?;
    config.cluster.as_ref().map_or(Ok(()), ClusterConfig::check)?;
    config.mail.as_ref().map_or(Ok(()), MailConfig::check)?;
    config.cors.origins().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("switchward.toml");
        std::fs::write(&file, text).unwrap();
        (folder, file)
    }

    #[test]
    fn a_flag_beats_the_file() {
        let (_folder, file) =
            written("data_dir = \"/tmp/a\"\nlisten = \"127.0.0.1:1\"\n[log]\nlevel = \"warn\"\n");
        let config = read(Some(&file), &[("listen", "127.0.0.1:2".into())]).unwrap();
        assert_eq!((config.listen.port(), config.log.level.as_str()), (2, "warn"));
    }

    #[test]
    fn a_gateway_needs_no_data_folder_and_a_server_does() {
        let files = "ca_file = \"a\"\ncert_file = \"b\"\nkey_file = \"c\"\npeers = [\"1=a:1\"]\n";
        let (_folder, file) = written(&format!("[cluster]\nroles = [\"gateway\"]\n{files}"));
        assert_eq!(read(Some(&file), &[]).unwrap().kind(), ProcessKind::Gateway);
        let (_folder, file) =
            written(&format!("[redis]\nurl = \"redis://a\"\n[cluster]\nroles = [\"gateway\"]\n{files}"));
        assert!(read(Some(&file), &[]).unwrap_err().to_string().starts_with("cluster.roles"));
        let (_folder, file) = written("listen = \"127.0.0.1:1\"\n");
        assert!(read(Some(&file), &[]).unwrap_err().to_string().starts_with("data_dir"));
    }

    #[test]
    fn only_origins_are_allowed_as_origins() {
        let config = |origin: &str| {
            let (_folder, file) =
                written(&format!("data_dir = \"/tmp/a\"\n[cors]\nallowed_origins = [{origin:?}]\n"));
            read(Some(&file), &[])
        };
        assert!(config("https://console.acme.example:8443").is_ok());
        for wrong in
            ["*", "https://*.acme.example", "acme.example", "https://acme.example/", "https://", "null"]
        {
            assert!(config(wrong).unwrap_err().to_string().contains("is not an origin"), "{wrong}");
        }
    }

    #[test]
    fn connections_are_limited_as_the_file_says() {
        let config = |said: &str| {
            let (_folder, file) = written(&format!("data_dir = \"/tmp/a\"\n[connections]\n{said}\n"));
            read(Some(&file), &[])
        };
        let connections = config("max = 20\nproxies = [\"10.0.0.5\"]").unwrap().connections;
        assert_eq!((connections.max, connections.max_of_peer), (20, 2_000));
        assert_eq!(connections.proxies, ["10.0.0.5".parse::<std::net::IpAddr>().unwrap()]);
        let error = config("max_of_peer = 0").unwrap_err().to_string();
        assert!(error.starts_with("connections.max_of_peer:"), "{error}");
    }

    #[test]
    fn what_holds_for_calls_that_no_rule_names_is_one_of_three_words() {
        let (_folder, file) = written("data_dir = \"/tmp/a\"\ndefault_effect = \"deny\"\n");
        assert_eq!(read(Some(&file), &[]).unwrap().default_effect, Some(Unnamed::Deny));
        let (_folder, file) = written("data_dir = \"/tmp/a\"\ndefault_effect = \"forbid\"\n");
        let error = format!("{:#}", read(Some(&file), &[]).unwrap_err());
        assert!(error.contains("default_effect") && error.contains("forbid"), "{error}");
    }

    #[test]
    fn an_unknown_key_is_named() {
        let (_folder, file) = written("data_dir = \"/tmp/a\"\nlitsen = \"127.0.0.1:1\"\n");
        let error = format!("{:#}", read(Some(&file), &[]).unwrap_err());
        assert!(error.contains("litsen"), "{error}");
    }

    #[test]
    fn what_can_be_reached_from_outside_needs_tls_or_a_word() {
        let (_folder, file) = written("data_dir = \"/tmp/a\"\nlisten = \"0.0.0.0:7400\"\n");
        assert!(read(Some(&file), &[]).unwrap_err().to_string().contains("TLS"));
        assert!(read(Some(&file), &[("insecure_listen", true.into())]).is_ok());
    }

    #[test]
    fn an_incomplete_flag_is_reported_as_a_flag() {
        let error = read(None, &[("data_dir", "/tmp/a".into()), ("tls.cert_file", "a".into())]).unwrap_err();
        assert!(
            format!("{error:#}").ends_with("missing field `key_file` for key \"tls\" in the flags"),
            "{error:#}"
        );
    }

    #[test]
    fn unread_environment_names_are_reported() {
        let names = ["SWITCHWARD_TLS__CERT_FILE", "switchward_shards", "SWITCHWARD_API_KEY", "PATH"];
        let wrong = ["SWITCHWARD_TENANTS", "SWITCHWARD_LISTN", "SWITCHWARD_TLS_CERT_FILE"];
        let names = names.into_iter().chain(wrong).map(str::to_owned);
        let expected = [
            "SWITCHWARD_LISTN (did you mean SWITCHWARD_LISTEN?)",
            "SWITCHWARD_TENANTS",
            "SWITCHWARD_TLS_CERT_FILE (did you mean SWITCHWARD_TLS__CERT_FILE?)",
        ];
        assert_eq!(unread(names), expected);
    }

    /// What people and programs get wrong, and what neither would write.
    const JUNK: [&str; 12] = [
        "",
        "=",
        "[",
        "[[tenants]]",
        "\"",
        "\u{0}",
        "-1",
        "99999999999999999999",
        "listen = 7400",
        "tls = true",
        "\u{1f600}",
        "log.level = [\"\"]",
    ];

    #[test]
    fn damaged_configurations_are_reported_in_words() {
        use rand::{Rng as _, SeedableRng as _};
        let sample = include_str!("../../../deploy/switchward.toml");
        let mut refused = 0;
        for seed in 0..2_000 {
            let mut dice = rand::rngs::StdRng::seed_from_u64(seed);
            let mut lines: Vec<String> = sample.lines().map(str::to_owned).collect();
            for _ in 0..dice.random_range(1..4) {
                let at = dice.random_range(0..lines.len());
                match dice.random_range(0..4) {
                    0 => drop(lines.remove(at)),
                    1 => lines.insert(at, JUNK[dice.random_range(0..JUNK.len())].to_owned()),
                    2 => lines[at] = lines[at].chars().rev().collect(),
                    _ => lines[at].push_str(JUNK[dice.random_range(0..JUNK.len())]),
                }
            }
            let (_folder, file) = written(&lines.join("\n"));
            if let Err(error) = read(Some(&file), &[]) {
                assert!(format!("{error:#}").len() > 20, "seed {seed}: {error:#}");
                refused += 1;
            }
        }
        assert!((500..2_000).contains(&refused), "{refused}");
    }
}
