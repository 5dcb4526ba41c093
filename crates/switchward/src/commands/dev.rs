//! `switchward dev`: a development server on one port, with keys for the agent, the person and a worker.

mod contexts;

use anyhow::Context as _;
use contexts::Written;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use switchward_delivery::mail::Sender;
use switchward_gateway::{
    ConnectionLimits, PageSettings, QuotaDefaults, auth::NewKey, limits::MEMORY_BYTES_DEFAULT,
};
use switchward_machine::Time;
use switchward_shard::{Clock, MachineClocks, ManualClock, MonotonicClock, RawClocks};
use switchward_state::catalogue::{LinkAuth, Role};
use switchward_state::seal::KeyRing;
use switchward_store::write_secret;
use tokio::net::TcpListener;

use crate::args::{ClockKind, DevArgs, Output};
use crate::exit::Exit;
use crate::key_ring::KeyRingLocation;
use crate::mailbox::{HOST, Mailbox};
use crate::node::{CACHE_BYTES_DEFAULT, Mail, Node, Opening, hangups, shards_default, stopped};
use crate::outbound::DeliveryConfig;
use crate::ready::Ready;
use crate::{config, private, ready, runtime, telemetry, tls};

/// The tenant of a development server.
const TENANT: &str = "dev";
/// The person who is notified of gates that address nobody, unless there is a directory.
pub(crate) const PERSON: &str = "person@switchward.localhost";
/// The default log level.
const LEVEL: &str = "warn";
/// The file of a data folder that holds the development keys.
const KEYS_FILE: &str = "dev-keys.json";

/// The next commands for a definition named deploy-gate, and whether each needs the person's key.
const NEXT: [(&str, bool); 8] = [
    ("switchward deploy deploy-gate.json", true),
    ("switchward start deploy-gate --key release-42", false),
    ("switchward authorize release-42 bash", false),
    ("switchward authorize release-42 mcp:filesystem:write_file", false),
    ("switchward list gates", true),
    ("switchward decide GATE approve", true),
    ("switchward answer release-42 yes", false),
    ("switchward watch release-42", false),
];

/// The secrets of a development server.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Keys {
    agent: String,
    person: String,
    worker: String,
}

/// The secrets in a data folder; older folders have no worker key.
#[derive(Deserialize)]
struct Kept {
    agent: String,
    person: String,
    worker: Option<String>,
}

/// Serves until it is stopped.
pub(crate) fn run(args: DevArgs, output: Output) -> Result<(), Exit> {
    tls::install_provider();
    private::begin();
    let scratch = match &args.data_dir {
        None => Some(tempfile::Builder::new().prefix("switchward-dev-").tempdir()?),
        Some(_) => None,
    };
    // The key ring is beside the data folder, and is deleted with it.
    let folder = args.data_dir.clone().or_else(|| scratch.as_ref().map(|dir| dir.path().join("data")));
    let folder = folder.context("no data folder is given")?;
    let runtime = runtime::make()?;
    let served = runtime.block_on(serve(args, folder, output));
    // The store closes when the last task is gone, and its files must be there until then.
    drop(runtime);
    drop(scratch);
    served.map_err(|error| Exit::failed(error).in_format(output))
}

async fn serve(args: DevArgs, folder: PathBuf, output: Output) -> anyhow::Result<()> {
    let level = std::env::var("SWITCHWARD_LOG__LEVEL").unwrap_or_else(|_| LEVEL.into());
    let _telemetry = telemetry::start(&level)?;
    // A terminal that closes does not end the server.
    let following = tokio::spawn(tls::follow(None, hangups()));
    let delivery = delivery()?;
    let listener = listen(args.port).await?;
    let (manual, clock) = clocks(&args);
    let shards = args.shards.unwrap_or_else(shards_default);
    let at = format!("http://{}", listener.local_addr()?);
    let mail = Mail::Mailbox(
        Box::new(sender(&at)),
        Mailbox::open(&folder, Arc::clone(&clock))?,
        TENANT,
        args.allowed_hosts,
    );
    let (disk, cors) = config::disk_and_cors_of_dev()?;
    let opening = Opening {
        shards,
        memory_bytes: MEMORY_BYTES_DEFAULT,
        cache_bytes: CACHE_BYTES_DEFAULT,
        clock,
        manual,
        delivery: &delivery,
        redis: None,
        keys: ring(&folder)?,
        mail,
        disk: disk.options(),
        origins: cors.origins()?,
        default_effect: args.default_effect.map(Into::into),
        // A development server has no quotas, unless they are set for a tenant.
        quotas: QuotaDefaults::default(),
        // Everybody who can open its pages can read its mails as well.
        pages: PageSettings { link_auth: LinkAuth::Link, secure: false },
        sign_in: None,
        restoring: None,
        cluster: None,
    };
    let node = Node::open(&folder, opening).await;
    let node = node.with_context(|| format!("failed to open {}", folder.display()))?;
    let keys = keys(&folder)?;
    people(&node, &keys).await?;
    let metrics = listen(0).await?;
    let contexts = Written::write(&at, listener.local_addr()?.port(), &keys)?;
    let ready = Ready {
        address: at,
        metrics: Some(format!("http://{}/metrics", metrics.local_addr()?)),
        keys: Some(ready::Keys { agent_key: keys.agent, person_key: keys.person, worker_key: keys.worker }),
        data_dir: folder,
        durable: args.data_dir.is_some(),
        clock: match args.clock {
            ClockKind::Manual => "manual",
            ClockKind::System => "system",
        },
    };
    let stopped = stopped();
    if output.json() {
        ready.print()?;
    } else {
        announce(&ready, &contexts, &delivery)?;
    }
    let served = node.serve(listener, Some(metrics), None, ConnectionLimits::default(), stopped).await;
    following.abort();
    served?;
    if !output.json() {
        // The reader may be gone.
        let _unread = writeln!(anstream::stdout().lock(), "stopped");
    }
    Ok(())
}

/// The manual clock, if calls can advance it, and the clock.
fn clocks(args: &DevArgs) -> (Option<ManualClock>, Arc<dyn Clock>) {
    match (args.clock, &args.clock_off) {
        (ClockKind::Manual, _) => {
            let clock = ManualClock::new(Time(0));
            (Some(clock.clone()), Arc::new(clock))
        }
        (ClockKind::System, Some(file)) => {
            (None, Arc::new(MonotonicClock::over(Box::new(Off(file.clone())))))
        }
        (ClockKind::System, None) => (None, Arc::new(MonotonicClock::new())),
    }
}

async fn listen(port: u16) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    TcpListener::bind(address).await.with_context(|| {
        format!("failed to listen on {address}; set --port 0 for any free port, or --port N for another")
    })
}

/// The key ring of a data folder; it is created if there is none.
fn ring(data: &Path) -> anyhow::Result<(KeyRing, KeyRingLocation)> {
    let location = KeyRingLocation::find(None, data);
    // A folder whose key ring was lost does not get a new one.
    let keys =
        if data.join("FORMAT").exists() { location.read_if_there()? } else { location.read_or_create()? };
    Ok((KeyRing::of(keys), location))
}

/// The delivery settings of the environment. Unread names are reported.
fn delivery() -> anyhow::Result<DeliveryConfig> {
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    for name in config::unread_by_dev(names) {
        tracing::warn!("{name} is not a setting of `switchward dev`, which ignores it");
    }
    let delivery = config::delivery_of_dev()?;
    if let Some(file) = delivery.model.as_ref().and_then(|model| model.key_file.as_ref()) {
        private::refuse_open_file(file)?;
    }
    delivery.check()?;
    Ok(delivery)
}

/// Makes sure that the tenant and its keys exist, and that gates notify the person.
async fn people(node: &Node, keys: &Keys) -> anyhow::Result<()> {
    for (secret, role, subject) in [
        (&keys.agent, Role::Agent, "agent"),
        (&keys.person, Role::Admin, "person"),
        (&keys.worker, Role::Worker, "worker"),
    ] {
        let key = NewKey::given(secret).with_context(|| format!("{KEYS_FILE} contains no keys"))?;
        node.ensure(TENANT, &key, role, subject).await?;
    }
    node.ensure_audience(TENANT, PERSON).await
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

/// The keys of a data folder: the existing ones, and new ones for those that are missing.
fn keys(folder: &Path) -> anyhow::Result<Keys> {
    let file = folder.join(KEYS_FILE);
    let no_keys =
        || format!("{} contains no keys; if you delete it, the next start creates new keys", file.display());
    let drawn = || NewKey::draw().secret;
    private::refuse_open_file(&file)?;
    let keys = match fs::read(&file) {
        Ok(bytes) => match serde_json::from_slice(&bytes).with_context(no_keys)? {
            Kept { agent, person, worker: Some(worker) } => return Ok(Keys { agent, person, worker }),
            Kept { agent, person, worker: None } => Keys { agent, person, worker: drawn() },
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Keys { agent: drawn(), person: drawn(), worker: drawn() }
        }
        Err(error) => return Err(error).with_context(|| format!("failed to read {}", file.display())),
    };
    write_secret(&file, &serde_json::to_vec(&keys)?)?;
    Ok(keys)
}

/// Prints the address, the keys and the next commands.
fn announce(ready: &Ready, contexts: &Written, delivery: &DeliveryConfig) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    let (bold, reset) = (anstyle::Style::new().bold(), anstyle::Reset);
    let survival = if ready.durable {
        format!("kept in {}", ready.data_dir.display())
    } else {
        "temporary, deleted when the server stops; set --data-dir DIR to keep it".to_owned()
    };
    writeln!(out, "{bold}Switchward{reset} development server: gRPC, JSON and gRPC-Web on one port")?;
    writeln!(out)?;
    writeln!(out, "  address     {bold}{}{reset}", ready.address)?;
    if let Some(keys) = &ready.keys {
        writeln!(out, "  agent key   {}", keys.agent_key)?;
        writeln!(out, "  person key  {}", keys.person_key)?;
        writeln!(out, "  worker key  {}", keys.worker_key)?;
    }
    writeln!(out, "  mail        {bold}{}/mail{reset}", ready.address)?;
    writeln!(out, "  webhooks    {bold}{}/webhooks{reset}", ready.address)?;
    if let Some(metrics) = &ready.metrics {
        writeln!(out, "  metrics     {metrics}")?;
    }
    writeln!(out, "  clock       {}", ready.clock)?;
    writeln!(out, "  data        {survival}")?;
    writeln!(out, "  model       {}", delivery.model_in_words())?;
    writeln!(out, "  contexts    {}", contexts.names())?;
    writeln!(out, "              in {}", contexts.folder().display())?;
    if contexts.beside_another() {
        writeln!(out, "              another development server uses the contexts dev-*")?;
    }
    writeln!(out)?;
    writeln!(out, "{bold}Next{reset}, in another terminal, in a folder with a deploy-gate.json:")?;
    writeln!(out)?;
    writeln!(out, "  switchward check deploy-gate.json")?;
    for (line, is_persons) in NEXT {
        let line = if is_persons { contexts.of_person(line) } else { contexts.of_agent(line) };
        writeln!(out, "  {line}")?;
    }
    writeln!(out)?;
    writeln!(out, "ctrl-c stops the server.")?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// After a start that was killed while it wrote the keys, the file is whole or absent.
    #[test]
    fn keys_that_were_not_written_to_their_end_are_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let half = folder.path().join("dev-keys.tmp");
        fs::write(&half, "{\"agent\":\"sw").unwrap();
        let made = keys(folder.path()).unwrap();
        assert_eq!(keys(folder.path()).unwrap(), made, "the next start has the same");
        assert!(!half.exists(), "the keys were written elsewhere than to their final place, and renamed");
        let mode = fs::metadata(folder.path().join(KEYS_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_folder_from_before_there_were_workers_keeps_its_keys_and_gets_one_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(KEYS_FILE);
        write_secret(&file, br#"{"agent":"swk_a","person":"swk_p"}"#).unwrap();
        let made = keys(folder.path()).unwrap();
        assert_eq!((made.agent.as_str(), made.person.as_str()), ("swk_a", "swk_p"));
        assert!(NewKey::given(&made.worker).is_some(), "{made:?}");
        assert_eq!(keys(folder.path()).unwrap(), made, "the next start has the same");
    }

    #[test]
    fn keys_that_cannot_be_read_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(KEYS_FILE);
        write_secret(&file, b"").unwrap();
        let error = keys(folder.path()).unwrap_err().to_string();
        assert!(error.contains("dev-keys.json contains no keys; if you delete it"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(keys(folder.path()).unwrap_err().to_string().starts_with("failed to read"));
    }
}
