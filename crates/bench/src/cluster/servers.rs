//! Servers of the product, each a process with a folder, ports and a certificate of its own: three that form the cluster, and
//! those that join it later.

use anyhow::{Context as _, ensure};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_api::v1::cluster_service_client::ClusterServiceClient;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};
use tonic::Request;

use crate::load::{bearer, channel_to, deploy_to};
use crate::process::{page_at, send};

/// The tenant's key.
pub(crate) const KEY: &str =
    "swk_0123456789abcdef_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// Servers that form the cluster, their numbers, and the voters of each group.
pub(super) const COUNT: u64 = 3;
/// A start, or a change of leaders, that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks at the cluster.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// The same while the cluster changes by itself: looks are calls, too.
const WATCH: Duration = Duration::from_millis(200);
/// A replica that lacks at most this many entries has caught up: then a learner becomes a voter.
pub(super) const LAG_MAX: u64 = 1_000;

/// The ports of one server.
struct Ports {
    public: u16,
    peers: u16,
    metrics: u16,
}

struct Running {
    process: Child,
    /// Held open, so that the server never gets a broken pipe.
    out: BufReader<ChildStdout>,
}

/// The servers. They end with this value.
pub(super) struct Servers {
    program: PathBuf,
    folder: PathBuf,
    /// `None` for their own choice.
    shards: Option<u32>,
    /// Further variables of the environment of each server, names and values.
    environment: Vec<(&'static str, OsString)>,
    /// By number, from that of server 1 on.
    ports: Vec<Ports>,
    running: BTreeMap<u64, Running>,
}

impl Ports {
    /// Free ones for this many servers.
    fn free(servers: usize) -> anyhow::Result<Vec<Self>> {
        let free = free_ports(3 * servers)?;
        let each = free.chunks_exact(3);
        Ok(each.map(|free| Self { public: free[0], peers: free[1], metrics: free[2] }).collect())
    }
}

/// This many free ports.
pub(super) fn free_ports(count: usize) -> anyhow::Result<Vec<u16>> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let ports = listeners.iter().map(|listener| Ok(listener.local_addr()?.port()));
    ports.collect()
}

impl Servers {
    /// Forms a cluster in this folder and deploys the definition of the load.
    ///
    /// # Errors
    /// A server does not start.
    pub(super) async fn start(program: &Path, folder: &Path, shards: Option<u32>) -> anyhow::Result<Self> {
        Self::start_with(program, folder, shards, Vec::new()).await
    }

    /// The same with further variables in the environment of each server, names and values.
    ///
    /// # Errors
    /// A server does not start.
    pub(super) async fn start_with(
        program: &Path,
        folder: &Path,
        shards: Option<u32>,
        environment: Vec<(&'static str, OsString)>,
    ) -> anyhow::Result<Self> {
        let ports = Ports::free(usize::try_from(COUNT)?)?;
        let (program, folder) = (program.to_owned(), folder.to_owned());
        let mut servers = Self { program, folder, shards, environment, ports, running: BTreeMap::new() };
        servers.prepare().await?;
        servers.command(&["cluster", "init", "--config"], 1).await?;
        servers.run(1).await?;
        for number in 2..=COUNT {
            servers.command(&["cluster", "join", "--config"], number).await?;
            servers.run(number).await?;
        }
        servers.caught_up().await?;
        deploy_to(&servers.address(1), KEY, "deploy-gate.json", crate::load::DEFINITION).await?;
        Ok(servers)
    }

    /// Makes a certificate, a configuration and a folder for one more server, which joins the others once it runs. Returns its
    /// number.
    ///
    /// # Errors
    /// A command of the program fails.
    pub(super) async fn join(&mut self) -> anyhow::Result<u64> {
        self.ports.extend(Ports::free(1)?);
        let number = u64::try_from(self.ports.len())?;
        self.certificates(number, 1).await?;
        std::fs::write(self.config(number), self.configuration(number))?;
        self.command(&["cluster", "join", "--config"], number).await?;
        Ok(number)
    }

    /// Writes the certificates, the key and the configurations.
    async fn prepare(&self) -> anyhow::Result<()> {
        self.certificates(1, COUNT).await?;
        let key = self.path("admin.key");
        std::fs::write(&key, KEY)?;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600))?;
        (1..=COUNT)
            .try_for_each(|number| Ok(std::fs::write(self.config(number), self.configuration(number))?))
    }

    /// Makes the certificates of `count` servers with the numbers from `first` on.
    async fn certificates(&self, first: u64, count: u64) -> anyhow::Result<()> {
        let mut certs = self.program();
        certs.args(["cluster", "certs", "--first", &first.to_string(), "--servers", &count.to_string()]);
        certs.arg("--dir").arg(self.path("certs"));
        finished(certs).await
    }

    fn configuration(&self, number: u64) -> String {
        let ports = self.ports_of(number);
        let peers: Vec<String> = (1..)
            .take(self.ports.len())
            .filter(|other| *other != number)
            .map(|other| format!("\"{other}=127.0.0.1:{}\"", self.ports_of(other).peers))
            .collect();
        format!(
            "{shards}data_dir = {data:?}\nlisten = \"127.0.0.1:{public}\"\n[log]\nlevel = \"info\"\n\
             [quotas]\nrequests_per_second = 0\nsessions = 0\nbytes = 0\n\
             [metrics]\nlisten = \"127.0.0.1:{metrics}\"\n\
             [[tenants]]\nname = \"bench\"\nadmin_key_file = {key:?}\n\
             [cluster]\nserver = {number}\nlisten = \"127.0.0.1:{own}\"\nca_file = {ca:?}\ncert_file = {cert:?}\n\
             key_file = {cert_key:?}\npeers = [{peers}]\n",
            shards = self.shards.map(|shards| format!("shards = {shards}\n")).unwrap_or_default(),
            data = self.path(&format!("data-{number}")),
            public = ports.public,
            metrics = ports.metrics,
            key = self.path("admin.key"),
            own = ports.peers,
            ca = self.path("certs/ca.crt"),
            cert = self.path(&format!("certs/server-{number}.crt")),
            cert_key = self.path(&format!("certs/server-{number}.key")),
            peers = peers.join(", "),
        )
    }

    fn ports_of(&self, number: u64) -> &Ports {
        let at = usize::try_from(number - 1).expect("a number of a server");
        &self.ports[at]
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn config(&self, number: u64) -> PathBuf {
        self.path(&format!("server-{number}.toml"))
    }

    fn log(&self, number: u64) -> PathBuf {
        self.path(&format!("server-{number}.log"))
    }

    /// The program, without settings of the environment.
    fn program(&self) -> Command {
        let mut command = Command::new(&self.program);
        let set = std::env::vars_os().map(|(name, _)| name);
        for name in set.filter(|name| name.to_string_lossy().starts_with("SWITCHWARD_")) {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs a command with the configuration of a server.
    async fn command(&self, words: &[&str], number: u64) -> anyhow::Result<()> {
        let mut command = self.program();
        command.args(words).arg(self.config(number));
        finished(command).await
    }

    /// Starts a server, and waits until it is ready.
    ///
    /// # Errors
    /// It ends, or takes too long: with the end of its log.
    pub(super) async fn run(&mut self, number: u64) -> anyhow::Result<()> {
        self.begin(number)?;
        self.ready(number).await
    }

    /// Starts a server.
    pub(super) fn begin(&mut self, number: u64) -> anyhow::Result<()> {
        let log = File::options().create(true).append(true).open(self.log(number))?;
        let mut command = self.program();
        command.args(["server", "-o", "json", "--config"]).arg(self.config(number));
        command.envs(self.environment.iter().cloned()).stdout(Stdio::piped()).stderr(log);
        let program = self.program.display();
        let mut process =
            command.spawn().with_context(|| format!("failed to start {program}; build it with --release"))?;
        let out = BufReader::new(process.stdout.take().context("the server has no output")?);
        self.running.insert(number, Running { process, out });
        Ok(())
    }

    /// Waits until a server that was started is ready.
    pub(super) async fn ready(&mut self, number: u64) -> anyhow::Result<()> {
        let running = self.running.get_mut(&number).context("the server was not started")?;
        let mut line = String::new();
        let read = timeout(PATIENCE, running.out.read_line(&mut line)).await;
        let ready = matches!(read, Ok(Ok(bytes)) if bytes > 0);
        ensure!(ready, "server {number} does not get ready: {}", self.end_of_log(number));
        Ok(())
    }

    fn end_of_log(&self, number: u64) -> String {
        let said = self.said(number);
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }

    /// All that a server has logged.
    pub(super) fn said(&self, number: u64) -> String {
        std::fs::read_to_string(self.log(number)).unwrap_or_default()
    }

    /// Ends a server by SIGKILL.
    ///
    /// # Errors
    /// It does not run any more: with the end of its log.
    pub(super) async fn kill(&mut self, number: u64) -> anyhow::Result<()> {
        let mut running = self.running.remove(&number).context("the server was not started")?;
        let ended = running.process.try_wait()?;
        ensure!(ended.is_none(), "server {number} ended by itself: {}", self.end_of_log(number));
        running.process.kill().await?;
        Ok(())
    }

    /// Ends all servers by SIGTERM, at one time. A build that records a profile writes it then, and not if it is killed.
    ///
    /// # Errors
    /// One has ended before, or does not end in time and is killed.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        for process in self.processes()?.into_values() {
            send(process, "-TERM")?;
        }
        for (number, running) in &mut self.running {
            let ended = timeout(PATIENCE, running.process.wait()).await;
            ended.with_context(|| format!("server {number} does not end"))??;
        }
        Ok(())
    }

    /// The numbers of the processes, by server.
    pub(super) fn processes(&self) -> anyhow::Result<BTreeMap<u64, u32>> {
        let each = self.running.iter().map(|(number, running)| {
            let process = running.process.id();
            Ok((*number, process.with_context(|| format!("server {number} has ended"))?))
        });
        each.collect()
    }

    /// Where a server listens for clients: `http://127.0.0.1:PORT`.
    pub(super) fn address(&self, number: u64) -> String {
        format!("http://127.0.0.1:{}", self.ports_of(number).public)
    }

    /// The page of metrics of a server.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) async fn metrics(&self, number: u64) -> anyhow::Result<String> {
        page_at(&format!("127.0.0.1:{}", self.ports_of(number).metrics), "/metrics").await
    }

    /// The addresses of the servers that have formed the cluster.
    pub(super) fn addresses(&self) -> Vec<String> {
        (1..=COUNT).map(|number| self.address(number)).collect()
    }

    /// A client of the first server that runs.
    pub(super) async fn client(&self) -> anyhow::Result<ClusterServiceClient<tonic::transport::Channel>> {
        let (number, _) = self.running.first_key_value().context("no server runs")?;
        Ok(ClusterServiceClient::new(channel_to(&self.address(*number)).await?))
    }

    /// The cluster as the first server that runs sees it.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) async fn cluster(&self) -> anyhow::Result<v1::GetClusterResponse> {
        let request = authorized(v1::GetClusterRequest {})?;
        Ok(self.client().await?.get_cluster(request).await?.into_inner())
    }

    /// The server that leads a group; waits until one does.
    ///
    /// # Errors
    /// None does in time.
    pub(super) async fn leader(&self, group: u64) -> anyhow::Result<u64> {
        let begun = Instant::now();
        loop {
            let groups = self.cluster().await?.groups;
            if let Some(leader) = groups.iter().find(|one| one.number == group).and_then(|one| one.leader) {
                return Ok(leader);
            }
            ensure!(begun.elapsed() < PATIENCE, "no server leads group {group}");
            sleep(LOOK).await;
        }
    }

    /// Has the server that `wanted` names lead each group, and waits until it does.
    ///
    /// # Errors
    /// A group is not handed over in time.
    pub(super) async fn lead(&self, wanted: impl Fn(u64) -> u64) -> anyhow::Result<()> {
        let (begun, mut refused) = (Instant::now(), None);
        loop {
            let groups = self.cluster().await?.groups;
            let other = groups.iter().find(|group| group.leader != Some(wanted(group.number)));
            let Some(group) = other else { return Ok(()) };
            if let Some(from) = group.leader {
                refused = self.transfer(group.number, from, wanted(group.number)).await.err().or(refused);
            }
            let why = refused.as_ref().map(|error| format!("{error:#}")).unwrap_or_default();
            ensure!(begun.elapsed() < PATIENCE, "group {} is not handed over: {why}", group.number);
            sleep(LOOK).await;
        }
    }

    /// Has another server lead a group.
    ///
    /// # Errors
    /// The cluster refuses.
    pub(super) async fn transfer(&self, group: u64, from: u64, to: u64) -> anyhow::Result<()> {
        let wanted = v1::TransferLeadersRequest {
            from_server: from,
            groups: vec![group],
            to_server: to,
            ..v1::TransferLeadersRequest::default()
        };
        self.client().await?.transfer_leaders(authorized(wanted)?).await?;
        Ok(())
    }

    /// Waits until each group has a leader and three voters that lack next to nothing.
    ///
    /// # Errors
    /// That takes too long.
    pub(super) async fn caught_up(&self) -> anyhow::Result<()> {
        self.until(PATIENCE, is_whole).await.context("a server does not catch up")
    }

    /// Waits until the cluster is as wanted.
    ///
    /// # Errors
    /// That takes longer than `at_most`.
    pub(super) async fn until(
        &self,
        at_most: Duration,
        wanted: impl Fn(&v1::GetClusterResponse) -> bool,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            // A server that has just started may not answer yet.
            if self.cluster().await.is_ok_and(|cluster| wanted(&cluster)) {
                return Ok(());
            }
            ensure!(begun.elapsed() < at_most, "the cluster is not as wanted within {at_most:?}");
            sleep(WATCH).await;
        }
    }
}

/// Returns true if each group has a leader and three voters that lack at most [`LAG_MAX`] entries.
pub(super) fn is_whole(cluster: &v1::GetClusterResponse) -> bool {
    let whole = |group: &v1::ClusterGroup| {
        let current =
            |one: &&v1::ClusterReplica| one.voter && one.lag_entries.is_some_and(|lag| lag <= LAG_MAX);
        let current = u64::try_from(group.replicas.iter().filter(current).count());
        group.leader.is_some() && current == Ok(COUNT)
    };
    !cluster.groups.is_empty() && cluster.groups.iter().all(whole)
}

/// A request with the tenant's key.
pub(super) fn authorized<T>(message: T) -> anyhow::Result<Request<T>> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", bearer(KEY)?);
    Ok(request)
}

/// Runs a command to its end.
async fn finished(mut command: Command) -> anyhow::Result<()> {
    let done = timeout(PATIENCE, command.output()).await.context("a command does not end")?;
    let done = done.context("failed to start the program; build it with --release")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ensure!(done.status.success(), "a command failed: {}{}", text(&done.stdout), text(&done.stderr));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(leader: Option<u64>, lags: [Option<u64>; 3]) -> v1::GetClusterResponse {
        let replicas = (1..).zip(lags).map(|(server, lag_entries)| v1::ClusterReplica {
            server,
            voter: true,
            lag_entries,
            ..v1::ClusterReplica::default()
        });
        let group = v1::ClusterGroup { leader, replicas: replicas.collect(), ..v1::ClusterGroup::default() };
        v1::GetClusterResponse { groups: vec![group], ..v1::GetClusterResponse::default() }
    }

    #[test]
    fn a_cluster_is_whole_if_all_voters_have_next_to_everything() {
        assert!(is_whole(&group(Some(1), [Some(0), Some(LAG_MAX), Some(3)])));
        assert!(!is_whole(&group(None, [Some(0); 3])));
        assert!(!is_whole(&group(Some(1), [Some(0), Some(LAG_MAX + 1), Some(0)])));
        assert!(!is_whole(&group(Some(1), [Some(0), None, Some(0)])));
        assert!(!is_whole(&v1::GetClusterResponse::default()));
    }

    #[test]
    fn ports_are_different() {
        let ports: std::collections::BTreeSet<u16> = free_ports(9).unwrap().into_iter().collect();
        assert_eq!(ports.len(), 9);
    }
}
