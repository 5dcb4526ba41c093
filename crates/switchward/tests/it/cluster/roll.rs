//! The servers of a cluster are replaced one by one by those of another version while callers go on, and back; then the
//! cluster's feature level rises. Without `ROLL_OLD` or `ROLL_NEW` both versions are this one.

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::operating::{Calls, GROUPS, all_there, until, voters};
use super::servers::{PROGRAM, Servers};
use crate::setting;

const DEPLOY_GATE: &str = include_str!("../../../../../tests/corpus/checkpoint/definitions/deploy-gate.json");
/// Servers of the cluster.
const COUNT: usize = 3;
/// Calls after each replacement.
const CALLS: usize = 20;

/// Stops one server after the other, and starts it with this program.
async fn roll(servers: &mut Servers, program: &str, calls: &Calls) -> anyhow::Result<()> {
    servers.use_program(program);
    for number in 1..=COUNT {
        servers.stop(number).await?;
        servers.run(number).await?;
        let seen = |cluster: &Value| {
            let groups = cluster["groups"].as_array().cloned().unwrap_or_default();
            let replicas: Vec<Value> = groups
                .iter()
                .flat_map(|group| group["replicas"].as_array().cloned().unwrap_or_default())
                .collect();
            replicas.len() == COUNT * GROUPS
                && replicas.iter().all(|one| one["failure"].as_str().unwrap_or_default().is_empty())
                && replicas.iter().all(|one| one["lagEntries"].as_str().is_some_and(|lag| lag.len() <= 2))
        };
        until(servers, number, "no replica has failed or lags", seen).await?;
        calls.go_on(CALLS).await?;
    }
    Ok(())
}

/// The feature level that the cluster writes.
async fn level(servers: &Servers) -> anyhow::Result<u64> {
    let cluster = servers.status(1).await?;
    cluster["level"].as_u64().with_context(|| format!("no level: {cluster}"))
}

/// A version that does not know the level cannot start again: it could not read what was written since.
async fn refuses(servers: &mut Servers, program: &str) -> anyhow::Result<()> {
    servers.stop(COUNT).await?;
    servers.use_program(program);
    ensure!(
        servers.run(COUNT).await.is_err(),
        "a server of the old version starts after the level has risen"
    );
    let said = servers.said(COUNT);
    ensure!(said.contains("feature level"), "it does not say why: {said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_upgraded_server_by_server_and_goes_back() -> anyhow::Result<()> {
    let [old, new] = ["ROLL_OLD", "ROLL_NEW"].map(|name| {
        let program = std::env::var(name).ok().filter(|path| !path.is_empty());
        program.unwrap_or_else(|| PROGRAM.to_owned())
    });
    let mut servers = Servers::start_with(&old, COUNT).await?;
    servers.insist(|caller| async move { caller.deploy(DEPLOY_GATE.to_owned()).await }).await?;
    until(&servers, 1, "all three vote", |seen| voters(seen) == vec![vec![1, 2, 3]; GROUPS]).await?;
    let callers = (1..=COUNT).map(|number| servers.caller(number)).collect::<Result<Vec<_>, _>>()?;
    let calls = Calls::begin("roll", callers);
    calls.go_on(CALLS).await?;
    for program in [&new, &old, &new] {
        roll(&mut servers, program, &calls).await?;
    }
    let before = level(&servers).await?;
    servers.operate(1, &["level", "--raise", "--yes"]).await?;
    calls.go_on(CALLS).await?;
    let (after, expected) = (level(&servers).await?, setting("ROLL_LEVEL", before));
    eprintln!("the feature level was {before}, and is {after}");
    ensure!(after == expected, "the feature level is {after}, and should be {expected}");
    if after > before {
        refuses(&mut servers, &old).await?;
        servers.use_program(&new);
        servers.run(COUNT).await?;
        calls.go_on(CALLS).await?;
    }
    let keys = calls.end().await?;
    all_there(&servers, &[1, 2, 3], &keys).await?;
    for number in 1..=COUNT {
        servers.stop(number).await?;
    }
    Ok(())
}
