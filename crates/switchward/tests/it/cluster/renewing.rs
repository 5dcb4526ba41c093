//! The certificates of a cluster are replaced while its servers run: new connections get the new ones, for other servers and
//! for clients, and callers notice nothing.

use anyhow::{Context as _, ensure};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsConnector;

use super::operating::{Calls, GROUPS, all_there, server, until, voters};
use super::servers::Servers;

const DEPLOY_GATE: &str = include_str!("../../../../../tests/corpus/checkpoint/definitions/deploy-gate.json");
/// Servers of the cluster.
const COUNT: usize = 3;
/// The server whose public port shows its certificate, too.
const SECURE: usize = 3;
/// The longest wait for what a server does by itself.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);

const RELOADED: &str = "reloaded the certificates of the cluster";
const RELOADED_PUBLIC: &str = "reloaded the certificate ";

/// The certificate that a server shows to a new connection to one of its ports.
async fn shown_at(servers: &Servers, number: usize, port: u16) -> anyhow::Result<CertificateDer<'static>> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_file_iter(servers.path("certs/ca.crt"))? {
        roots.add(authority?)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config =
        config.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth();
    let cluster = fs::read_to_string(servers.path("certs/cluster-id"))?;
    let name = ServerName::try_from(format!("server-{number}.{}.switchward", cluster.trim()))?;
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    // Other servers must show a certificate of their own as well, but this one comes before that.
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let (_, session) = stream.get_ref();
    let shown = session.peer_certificates().and_then(<[_]>::first).context("it shows a certificate")?;
    Ok(shown.clone())
}

/// Returns true if a server shows the certificate of its file at all its ports that have one.
async fn shows_its_file(servers: &Servers, number: usize) -> anyhow::Result<bool> {
    let file = CertificateDer::from_pem_file(servers.path(&format!("certs/server-{number}.crt")))?;
    let mut ports = vec![servers.peer_port(number)];
    ports.extend((number == SECURE).then(|| servers.public_port(number)));
    for port in ports {
        if shown_at(servers, number, port).await? != file {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Waits until a server shows the certificate of its file.
async fn until_shown(servers: &Servers, number: usize) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !shows_its_file(servers, number).await? {
        ensure!(Instant::now() < deadline, "server {number} does not: {}", servers.said(number));
        sleep(LOOK).await;
    }
    Ok(())
}

/// How often a server has logged this.
fn logged(servers: &Servers, number: usize, words: &str) -> usize {
    servers.said(number).lines().filter(|line| format!("{line} ").contains(words)).count()
}

/// Waits until a server has logged this once more, or more often, than `before`.
async fn until_logged(servers: &Servers, number: usize, words: &str, before: usize) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while logged(servers, number, words) <= before {
        ensure!(
            Instant::now() < deadline,
            "server {number} does not log {words:?}: {}",
            servers.said(number)
        );
        sleep(LOOK).await;
    }
    Ok(())
}

/// Sends SIGHUP to a server, and waits until it has read its certificates again.
async fn hang_up(servers: &Servers, number: usize) -> anyhow::Result<()> {
    let before = logged(servers, number, RELOADED);
    servers.signal(number, "HUP").await?;
    until_logged(servers, number, RELOADED, before).await
}

/// Replaces the certificate of a server by one that is valid for this many days. The authority of the folder signs it.
async fn replace(servers: &Servers, number: usize, days: u32) -> anyhow::Result<()> {
    for ending in ["crt", "key"] {
        fs::remove_file(servers.path(&format!("certs/server-{number}.{ending}")))?;
    }
    let (certs, first, days) = (servers.path("certs"), number.to_string(), days.to_string());
    servers
        .program(&["cluster", "certs", "--dir", &certs, "--first", &first, "--servers", "1", "--days", &days])
        .await
        .map(drop)
}

/// Until when the certificate of a server is valid, as another one says; seconds since 1970.
async fn expires(servers: &Servers, number: usize) -> anyhow::Result<i64> {
    let seen = servers.status(1).await?;
    let known = server(&seen, number.try_into()?);
    let text = known["certificateExpireTime"].as_str().with_context(|| format!("its certificate: {seen}"))?;
    Ok(text.parse::<jiff::Timestamp>()?.as_second())
}

/// One authority signs a new certificate, which is taken without a signal. Its end is seen in the status and the metrics.
async fn renewed(servers: &Servers) -> anyhow::Result<()> {
    let before = expires(servers, SECURE).await?;
    replace(servers, SECURE, 30).await?;
    until_shown(servers, SECURE).await?;
    let deadline = Instant::now() + PATIENCE;
    let after = loop {
        let after = expires(servers, SECURE).await?;
        if after != before {
            break after;
        }
        ensure!(Instant::now() < deadline, "the status has the old end");
        sleep(LOOK).await;
    };
    let days = (before - after) / (24 * 60 * 60);
    ensure!((699..=701).contains(&days), "730 days became 30: {before}, {after}");
    let metric = servers.metric(SECURE, "switchward_certificate_expire_seconds").await?;
    ensure!((metric - f64::from(u32::try_from(after)?)).abs() < 1.0, "{metric}, {after}");
    Ok(())
}

/// A file without a certificate, and a key of another certificate, change nothing, and the log says so.
async fn unusable(servers: &Servers) -> anyhow::Result<()> {
    let [cert, key] = ["crt", "key"].map(|ending| servers.path(&format!("certs/server-{SECURE}.{ending}")));
    let good = [fs::read(&cert)?, fs::read(&key)?];
    let other_key = fs::read(servers.path("certs/server-2.key"))?;
    let good_one = CertificateDer::from_pem_file(&cert)?;
    for (file, bad) in [(&cert, b"no certificate".to_vec()), (&key, other_key)] {
        let words = ["the previous ones stay in use", "the previous one stays in use"];
        let before = words.map(|words| logged(servers, SECURE, words));
        fs::write(file, bad)?;
        servers.signal(SECURE, "HUP").await?;
        for (words, before) in words.into_iter().zip(before) {
            until_logged(servers, SECURE, words, before).await?;
        }
        for port in [servers.peer_port(SECURE), servers.public_port(SECURE)] {
            ensure!(shown_at(servers, SECURE, port).await? == good_one, "port {port} shows another one");
        }
        fs::write(&cert, &good[0])?;
        fs::write(&key, &good[1])?;
        hang_up(servers, SECURE).await?;
    }
    Ok(())
}

/// Another authority takes over, step by step: both are believed, then all servers have certificates of the new one, and at
/// last only the new one is believed. After each step a server starts again, so that all its connections are new.
async fn another_authority(servers: &mut Servers, calls: &Calls) -> anyhow::Result<()> {
    let (next, cluster) = (servers.path("next"), fs::read_to_string(servers.path("certs/cluster-id"))?);
    servers
        .program(&["cluster", "certs", "--dir", &next, "--cluster", cluster.trim(), "--servers", "3"])
        .await?;
    let authority = servers.path("certs/ca.crt");
    let [old, new] = [fs::read_to_string(&authority)?, fs::read_to_string(servers.path("next/ca.crt"))?];
    fs::write(&authority, format!("{old}{new}"))?;
    all_reload(servers).await?;
    for number in 1..=COUNT {
        for ending in ["crt", "key"] {
            let file = format!("server-{number}.{ending}");
            fs::copy(servers.path(&format!("next/{file}")), servers.path(&format!("certs/{file}")))?;
        }
        hang_up(servers, number).await?;
        ensure!(shows_its_file(servers, number).await?, "server {number} shows its old certificate");
        calls.go_on(5).await?;
    }
    again(servers, calls).await?;
    fs::write(&authority, new)?;
    all_reload(servers).await?;
    again(servers, calls).await
}

/// All servers read their certificates again.
async fn all_reload(servers: &Servers) -> anyhow::Result<()> {
    for number in 1..=COUNT {
        hang_up(servers, number).await?;
    }
    Ok(())
}

/// A server starts again, and the others reach it.
async fn again(servers: &mut Servers, calls: &Calls) -> anyhow::Result<()> {
    servers.stop(SECURE).await?;
    servers.run(SECURE).await?;
    for at in [1, 2] {
        until(servers, at, "all servers are reached", |seen| {
            (1..=3).all(|number| server(seen, number)["reachable"] == true)
        })
        .await?;
    }
    calls.go_on(10).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_replaced_while_the_servers_run() -> anyhow::Result<()> {
    let mut servers = Servers::prepare(COUNT).await?;
    let [cert, key] = ["crt", "key"].map(|ending| servers.path(&format!("certs/server-{SECURE}.{ending}")));
    let tls = format!("[tls]\ncert_file = {cert:?}\nkey_file = {key:?}\n[log]\n");
    servers.configure(SECURE, &[("[log]\n", &tls)])?;
    servers = servers.founded(COUNT).await?;
    servers.insist(|caller| async move { caller.deploy(DEPLOY_GATE.to_owned()).await }).await?;
    until(&servers, 1, "all three vote", |seen| voters(seen) == vec![vec![1, 2, 3]; GROUPS]).await?;
    let calls = Calls::begin("renewed", vec![servers.caller(1)?, servers.caller(2)?]);
    calls.go_on(10).await?;

    // Nothing has changed, so only the signal can be the reason.
    let words = [RELOADED, RELOADED_PUBLIC];
    ensure!(words.iter().all(|words| logged(&servers, SECURE, words) == 0), "{}", servers.said(SECURE));
    hang_up(&servers, SECURE).await?;
    until_logged(&servers, SECURE, RELOADED_PUBLIC, 0).await?;
    ensure!(shows_its_file(&servers, SECURE).await?, "another certificate is shown");

    renewed(&servers).await?;
    calls.go_on(10).await?;
    unusable(&servers).await?;
    another_authority(&mut servers, &calls).await?;
    let keys = calls.end().await?;
    all_there(&servers, &[1, 2], &keys).await?;
    for number in 1..=COUNT {
        servers.stop(number).await?;
    }
    Ok(())
}
