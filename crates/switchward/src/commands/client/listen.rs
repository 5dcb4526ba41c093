//! `switchward listen`: receives the tenant's webhooks on this machine while it runs.

use switchward_api::v1;
use switchward_messages::cli;

use super::show;
use super::talk::Talk;
use crate::args::{Listen, On, Output};
use crate::exit::Exit;
use crate::output::{CARE, GOOD, PROBLEM, STRONG, clean, print};
use crate::receiver::{Received, Receiver};

pub(super) async fn run(on: On<Listen>, output: Output) -> Result<(), Exit> {
    let listen = on.what;
    if let Some(to) = &listen.forward {
        crate::receiver::near(to).map_err(|why| Exit::usage(format!("--forward {why}")))?;
    }
    let talk = Talk::open(&on.connection, output).await?;
    let forward = listen.forward.clone();
    let mut receiver = Receiver::listen(listen.port, forward).await.map_err(Exit::failed)?;
    let name = format!("listen-{:08x}", rand::random::<u32>());
    // From now on: a signal must not leave the endpoint behind.
    let stopped = crate::node::stopped();
    let secret = register(&talk, &name, &listen, &receiver.url).await?;
    receiver.knows(&secret);
    // Nor must an output that is closed.
    let outcome = match begin(&talk, &name, &secret, &receiver.url) {
        Ok(()) => tokio::select! {
            outcome = receive(&mut receiver, output, listen.count) => outcome,
            () = stopped => Ok(()),
        },
        Err(exit) => Err(exit),
    };
    let request = v1::DeleteWebhookEndpointRequest { name, ..Default::default() };
    talk.client
        .call(request, |mut it, request| async move { it.endpoints.delete_webhook_endpoint(request).await })
        .await?;
    outcome
}

async fn register(talk: &Talk, name: &str, listen: &Listen, url: &str) -> Result<String, Exit> {
    let endpoint = v1::WebhookEndpoint {
        name: name.to_owned(),
        url: url.to_owned(),
        event_types: listen.events.clone(),
        ..v1::WebhookEndpoint::default()
    };
    let request = v1::PutWebhookEndpointRequest { endpoint: Some(endpoint), request_id: talk.request_id() };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.endpoints.put_webhook_endpoint(request).await });
    Ok(reply.await?.secret)
}

/// Prints where messages come in, and the secret that signs them.
fn begin(talk: &Talk, name: &str, secret: &str, url: &str) -> Result<(), Exit> {
    if talk.printer.is_json() {
        return Ok(());
    }
    print(&format!("{STRONG}{name}{STRONG:#} {}\n", cli::client::receives_events(&clean(url))))?;
    print(&format!("signing secret  {}\n", clean(secret)))
}

/// Prints messages until `count` have arrived.
async fn receive(receiver: &mut Receiver, output: Output, count: Option<u32>) -> Result<(), Exit> {
    let mut left = count;
    while left != Some(0) {
        let message = receiver.next().await.map_err(Exit::failed)?;
        if output.json() {
            print(&format!("{}\n", object(&message)))?;
        } else {
            print(&render(&message))?;
        }
        left = left.map(|left| left.saturating_sub(1));
    }
    Ok(())
}

fn object(message: &Received) -> serde_json::Value {
    let handed = message.forwarded.as_ref().map(|handed| match handed {
        Ok(status) => serde_json::json!({ "status": status }),
        Err(why) => serde_json::json!({ "error": why }),
    });
    serde_json::json!({
        "id": message.id, "message": message.body, "refused": message.refused, "forwarded": handed
    })
}

fn render(message: &Received) -> String {
    if let Some(why) = &message.refused {
        return format!("{PROBLEM}refused{PROBLEM:#}  {}\n", clean(why));
    }
    let data = &message.body["data"];
    let text = |name: &str| data[name].as_str().map(|text| clean(show::id(text))).unwrap_or_default();
    let facts: Vec<String> =
        ["session", "state", "approval", "task", "capability", "budget", "delivery", "definition"]
            .iter()
            .map(|name| (name, text(name)))
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| format!("{name}={text}"))
            .collect();
    let handed = match &message.forwarded {
        None => String::new(),
        Some(Ok(status)) if *status < 300 => format!("  {GOOD}forwarded: {status}{GOOD:#}"),
        Some(Ok(status)) => format!("  {PROBLEM}forwarded: {status}{PROBLEM:#}"),
        Some(Err(why)) => format!("  {PROBLEM}not forwarded: {}{PROBLEM:#}", clean(why)),
    };
    let at = message.body["timestamp"].as_str().map(clean).unwrap_or_default();
    format!(
        "{at}  {STRONG}{:<24}{STRONG:#}  {}  {CARE}{}{CARE:#}{handed}\n",
        clean(message.kind()),
        facts.join(" "),
        clean(&message.id)
    )
}
