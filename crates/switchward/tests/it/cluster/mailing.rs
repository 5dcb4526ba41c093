//! Replies come to a cluster by LMTP at any of its servers, whichever leads what they decide.

use anyhow::{Context as _, ensure};
use std::net::SocketAddr;
use switchward_testkit::{free_port, until};
use tokio::task::block_in_place;

use super::delivering::configuration;
use super::operating::{self, GROUPS, leads, voters};
use super::servers::{KEY, Servers};
use crate::mail_server::{ASKS, Sink, field, hand_over, reply};

/// Servers of the cluster.
const COUNT: usize = 3;
/// The server that leads nothing.
const FOLLOWER: usize = 3;
/// What LMTP answers to a recipient, to `DATA`, to the message and to `QUIT`, if the message is taken.
const TAKEN: [&str; 4] = ["250", "354", "250", "221"];

/// The configuration of mail: it goes out to the sink, and replies come in there.
fn mail(sink: &Sink, lmtp: SocketAddr) -> String {
    format!(
        "[mail]\nfrom = \"Acme <approvals@acme.example>\"\nreply = \"r+{{token}}@reply.acme.example\"\n\
         [mail.smtp]\nhost = \"127.0.0.1\"\nport = {port}\ntls = \"plain\"\nhello = \"acme.example\"\n\
         [mail.in]\ntrusted_hosts = [\"mx.acme.example\"]\ndns = [\"127.0.0.1:9\"]\nlmtp = \"{lmtp}\"\n",
        port = sink.address.port()
    )
}

/// Three servers that write mail, and where each takes replies.
async fn started(sink: &Sink) -> anyhow::Result<(Servers, Vec<SocketAddr>)> {
    let servers = Servers::prepare(COUNT).await?;
    let ring = servers.path("switchward-keys");
    servers.program(&["secrets", "create", &ring]).await?;
    let listeners: Vec<SocketAddr> =
        (0..COUNT).map(|_| SocketAddr::from(([127, 0, 0, 1], free_port()))).collect();
    for (number, lmtp) in (1..).zip(&listeners) {
        let more = format!("{}[log]\n", mail(sink, *lmtp));
        servers.configure(number, &[("[log]\n", &more)])?;
        servers.configure(number, &[("data_dir =", &format!("keys_file = {ring:?}\ndata_dir ="))])?;
    }
    let servers = servers.founded(COUNT).await?;
    operating::until(&servers, 1, "all three vote", |seen| voters(seen) == vec![vec![1, 2, 3]; GROUPS])
        .await?;
    Ok((servers, listeners))
}

/// Starts a session that asks for an approval, and returns the mail to the approver.
async fn asked(servers: &Servers, sink: &Sink, key: &str) -> anyhow::Result<String> {
    servers.client(1, KEY, &["start", "asks", "--key", key]).await?;
    Ok(block_in_place(|| sink.next()))
}

/// Hands a message over until it is taken. While a shard chooses a leader, the mail server in front is told to come again.
async fn taken(lmtp: SocketAddr, mail: &str, message: &str) {
    let to = field(mail, "Reply-To");
    until("the message is taken", async || block_in_place(|| hand_over(lmtp, &[&to], message)) == TAKEN)
        .await;
}

/// The session is at this state, as every server says.
async fn is_at(servers: &Servers, key: &str, state: &str) -> anyhow::Result<()> {
    for number in 1..=COUNT {
        let at = servers.caller(number)?.get(key).await?.at;
        ensure!(at == [state], "server {number} says {at:?}, not {state}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_by_lmtp_decides_at_a_server_that_does_not_lead_the_gate() -> anyhow::Result<()> {
    let sink = Sink::start();
    let (mut servers, listeners) = started(&sink).await?;
    let definition = servers.path("asks.yaml");
    std::fs::write(&definition, ASKS)?;
    servers.client(1, KEY, &["deploy", &definition]).await?;
    // A server that drains leads nothing, and gets no lead as long as it does.
    servers.operate(1, &["drain", "3", "--wait"]).await?;
    let seen = servers.status(1).await?;
    ensure!(leads(&seen, FOLLOWER.try_into()?) == 0, "{seen}");
    let at = listeners[FOLLOWER - 1];

    // Both before the first reply: more mails may go out after it.
    let mail = asked(&servers, &sink, "asked-1").await?;
    let other = asked(&servers, &sink, "asked-2").await?;
    taken(at, &mail, &reply(&mail, "fail", "approve")).await;
    is_at(&servers, "asked-1", "decide").await?;
    let approval = reply(&mail, "pass", "approve");
    taken(at, &mail, &approval).await;
    is_at(&servers, "asked-1", "go").await?;
    // The mail server in front sends it again, to another server: it is one reply.
    taken(listeners[0], &mail, &approval).await;
    is_at(&servers, "asked-1", "go").await?;

    taken(at, &other, &reply(&other, "pass", "reject\r\n\r\nToo dear.")).await;
    is_at(&servers, "asked-2", "stop").await?;
    delivery_process_refuses(&servers, &mail_in(&sink)).await?;
    for number in 1..=COUNT {
        servers.stop(number).await?;
    }
    Ok(())
}

/// The tables of a delivery process that wants to take replies.
fn mail_in(sink: &Sink) -> String {
    let lmtp = SocketAddr::from(([127, 0, 0, 1], free_port()));
    format!("[redis]\nurl = \"redis://127.0.0.1:9\"\n{}", mail(sink, lmtp))
}

/// A delivery process has no data and takes no replies: it does not start with a listener for them.
async fn delivery_process_refuses(servers: &Servers, more: &str) -> anyhow::Result<()> {
    servers.program(&["cluster", "certs", "--dir", &servers.path("certs"), "--delivery", "out"]).await?;
    let file = configuration(servers, "out", "[\"delivery\"]", more)?;
    let refused = servers.program(&["server", "--config", &file]).await;
    let refused = refused.err().context("a delivery process takes no replies")?.to_string();
    let why = "mail.in: a delivery process receives no mail";
    ensure!(refused.contains(why) && refused.contains("configure mail.in on the servers"), "{refused}");
    Ok(())
}
