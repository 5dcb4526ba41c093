//! Every scenario of the corpus holds on three voters.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use switchward_machine::{Digest, TenantId, Time};
use switchward_scenario::{Answer, Broken, Scenario, System, Verb, parse, play_on};
use switchward_shard::{Clock, Cluster, Failure, Shard, StateView};
use switchward_state::catalogue::{CatalogueCommand, Settings};
use switchward_state::session::{SessionCommand, Sweep};
use switchward_state::{Actor, Body, Command, Due, IndexKey, RequestId, Scope, View, ViewError};
use tokio::runtime::Runtime;

use crate::limits::carried;
use crate::three_voters::{callers, hand_over};
use crate::trio::{GROUPS, Trio};

/// The server that leads every group, so that one API reaches them all.
const LEADER: u64 = 1;
/// Attempts to get a command answered, in case leadership moves all the same.
const ATTEMPTS: usize = 20;
/// Rows that may fall due in one step of a scenario.
const SWEEPS_MAX: usize = 1_000;

/// Three servers in which scenarios are played one after the other, each as another tenant.
struct Voters {
    trio: Trio,
    runtime: Runtime,
    played: usize,
    submitted: usize,
}

fn unreadable(failure: impl std::fmt::Display) -> Broken {
    Broken(failure.to_string())
}

impl Voters {
    fn open() -> Self {
        let voters = Self { trio: Trio::patient(), runtime: callers(), played: 0, submitted: 0 };
        voters.runtime.block_on(voters.lead());
        voters
    }

    fn cluster(&self) -> &Cluster {
        self.trio.cluster(LEADER)
    }

    async fn lead(&self) {
        for group in 0..usize::try_from(GROUPS).unwrap() {
            hand_over(&self.trio, group, LEADER).await;
        }
    }

    async fn execute(&self, command: Command) -> Result<Answer, Broken> {
        for _ in 0..ATTEMPTS {
            match self.cluster().execute(command.clone()).await {
                Ok(reply) => {
                    for shard in self.cluster().all() {
                        carried(shard).await;
                    }
                    return Ok(Ok(reply));
                }
                Err(Failure::Rejected(rejection)) => return Ok(Err(rejection)),
                Err(Failure::Electing | Failure::OutcomeUnknown) => self.lead().await,
                Err(failure) => return Err(unreadable(failure)),
            }
        }
        Err(Broken(format!("{command:?} was not answered")))
    }

    /// The rows of a shard on its leader.
    async fn look(&self, shard: &Shard) -> Result<StateView, Broken> {
        for _ in 0..ATTEMPTS {
            match shard.read().await {
                Ok(view) => return Ok(view),
                Err(Failure::Electing) => self.lead().await,
                Err(failure) => return Err(unreadable(failure)),
            }
        }
        Err(Broken("failed to read a shard".into()))
    }

    /// The row that falls due first, up to a time, and its shard.
    async fn first_due(&self, by: Time) -> Result<Option<(usize, Due)>, Broken> {
        let mut first: Option<(usize, Due)> = None;
        for (at, shard) in self.cluster().all().enumerate() {
            let view = self.look(shard).await?;
            view.scan(&IndexKey::due(), None, &mut |entry, _| {
                let due = IndexKey::due_of(entry).filter(|due| due.at <= by);
                let sooner = |due: &Due| first.as_ref().is_none_or(|(_, first)| due.at < first.at);
                if let Some(due) = due.filter(sooner) {
                    first = Some((at, due));
                }
                ControlFlow::Break(())
            })?;
        }
        Ok(first)
    }
}

impl System for Voters {
    fn now(&self) -> Time {
        self.trio.clock.now()
    }

    fn submit(&mut self, mut command: Command) -> Result<Answer, Broken> {
        if let Body::Catalogue(CatalogueCommand::CreateTenant(create)) = &mut command.body {
            create.name = format!("{}-{}", create.name, self.played);
        }
        // A command that is repeated after a change of leaders must not conflict with its own first execution.
        self.submitted += 1;
        let id = format!("submitted {}", self.submitted);
        command.request.get_or_insert_with(|| RequestId { body: Digest::of(id.as_bytes()), id });
        self.runtime.block_on(self.execute(command))
    }

    fn read(
        &self,
        tenant: TenantId,
        scope: &Scope,
        look: &mut dyn FnMut(&dyn View) -> Result<(), ViewError>,
    ) -> Result<(), Broken> {
        let cluster = self.cluster();
        let shard = scope.bucket(tenant).map_or(cluster.catalogue(), |bucket| cluster.shard_of(bucket));
        let view = self.runtime.block_on(self.look(shard))?;
        Ok(look(&view)?)
    }

    fn advance(&mut self, to: Time) -> Result<(), Broken> {
        self.runtime.block_on(async {
            for _ in 0..SWEEPS_MAX {
                let Some((at, due)) = self.first_due(to).await? else {
                    self.trio.clock.advance(to.since_ms(self.now()));
                    // The leader fires timers, too: what it swept last may still be on its way to another shard.
                    for shard in self.cluster().all() {
                        carried(shard).await;
                    }
                    return Ok(());
                };
                self.trio.clock.advance(due.at.since_ms(self.now()));
                let sweep = Command {
                    tenant: due.key.tenant_of(),
                    scope: due.scope(),
                    request: None,
                    expected_sequence: None,
                    actor: Actor::server(),
                    settings: Settings::default(),
                    trace: None,
                    address: None,
                    body: Body::Session(SessionCommand::Sweep(Sweep { key: due.key })),
                };
                let shard = self.cluster().all().nth(at).expect("the row was found in this shard");
                match shard.submit(sweep).await {
                    Ok(_) => {}
                    // A row that was not swept is found once more.
                    Err(Failure::Electing) => self.lead().await,
                    Err(failure) => return Err(unreadable(failure)),
                }
                for shard in self.cluster().all() {
                    carried(shard).await;
                }
            }
            Err(Broken(format!("more than {SWEEPS_MAX} rows were swept")))
        })
    }
}

fn scenarios() -> Vec<(PathBuf, Scenario)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let folders = ["checkpoint", "conversation"].map(|format| corpus.join(format).join("scenarios"));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let files = files.map(|file| file.unwrap().path());
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let scenario = parse(&name, &std::fs::read(&path).unwrap());
        (path, scenario.unwrap_or_else(|findings| panic!("{name}: {findings:?}")))
    };
    let mut all: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "yaml")).map(read).collect();
    // Time only runs forward, so scenarios that move it are not followed by one that begins earlier.
    let waits = |scenario: &Scenario| scenario.steps.iter().any(|step| matches!(step.verb, Verb::Wait(_)));
    all.sort_by_key(|(path, scenario)| (waits(scenario), scenario.start.at, path.clone()));
    all
}

#[test]
fn every_scenario_holds_on_three_voters() {
    let mut voters = Voters::open();
    let all = scenarios();
    assert!(all.len() >= 400, "the corpus is there: {}", all.len());
    let mut failed = Vec::new();
    for (path, scenario) in &all {
        if voters.now() > scenario.start.at {
            voters = Voters::open();
        }
        voters.played += 1;
        let folder = path.parent().unwrap();
        let loader = |file: &str| std::fs::read(folder.join(file)).map_err(|error| error.to_string());
        match play_on(scenario, &loader, &mut voters) {
            Ok(report) if report.ok() => {}
            Ok(report) => failed.push(report.text()),
            Err(unplayed) => failed.push(format!("{}: {unplayed}", scenario.file)),
        }
        voters.trio.assert_sound();
    }
    assert!(failed.is_empty(), "{} of {} do not hold\n{}", failed.len(), all.len(), failed.join("\n"));
    for replicas in voters.runtime.block_on(voters.trio.settled()) {
        assert!(replicas.iter().all(|digest| *digest == replicas[0]), "{replicas:?}");
    }
}
