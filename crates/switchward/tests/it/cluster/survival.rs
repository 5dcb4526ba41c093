//! What is acknowledged is there, whichever servers die.

use super::servers::Servers;

/// Servers of the cluster.
const COUNT: usize = 3;
/// Sessions of one round.
const ROUND: usize = 20;

const DEPLOY_GATE: &str = include_str!("../../../../../tests/corpus/checkpoint/definitions/deploy-gate.json");

/// Starts sessions at all servers that run, and returns their keys.
async fn round(servers: &Servers, name: &str) -> anyhow::Result<Vec<String>> {
    let mut keys = Vec::new();
    for number in 0..ROUND {
        let key = format!("{name}-{number}");
        let wanted = key.clone();
        servers
            .insist(move |caller| {
                let key = wanted.clone();
                async move { caller.start("deploy-gate", &key).await }
            })
            .await?;
        keys.push(key);
    }
    Ok(keys)
}

/// Reads each session at one of the servers that run.
async fn all_there(servers: &Servers, keys: &[String]) -> anyhow::Result<()> {
    for key in keys {
        let wanted = key.clone();
        let session = servers
            .insist(move |caller| {
                let key = wanted.clone();
                async move { caller.get(&key).await }
            })
            .await?;
        assert!(session.name.contains("sessions/"), "{session:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_three_outlives_any_one_of_its_servers() -> anyhow::Result<()> {
    let mut servers = Servers::start(COUNT).await?;
    servers.insist(|caller| async move { caller.deploy(DEPLOY_GATE.to_owned()).await }).await?;
    let mut keys = round(&servers, "all").await?;
    for number in 1..=COUNT {
        servers.kill(number).await?;
        keys.extend(round(&servers, &format!("without-{number}")).await?);
        all_there(&servers, &keys).await?;
        servers.run(number).await?;
        keys.extend(round(&servers, &format!("with-{number}")).await?);
    }
    for number in 1..=COUNT {
        servers.kill(number).await?;
    }
    for number in 2..=COUNT {
        servers.begin(number)?;
    }
    servers.run(1).await?;
    for number in 2..=COUNT {
        servers.ready(number).await?;
    }
    all_there(&servers, &keys).await?;
    for number in 1..=COUNT {
        servers.stop(number).await?;
    }
    Ok(())
}
