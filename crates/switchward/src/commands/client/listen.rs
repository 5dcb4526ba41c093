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
    // From now on, so that a signal never leaves the endpoint behind.
    let stop = crate::node::stopped_or_hung_up();
    let mut receiver = Receiver::listen(listen.port, forward).await.map_err(Exit::failed)?;
    let name = format!("listen-{:08x}", rand::random::<u32>());
    let secret = register(&talk, &name, &listen, &receiver.url).await?;
    receiver.knows(&secret);
    let outcome = tokio::select! {
        outcome = receive(&mut receiver, &name, &secret, output, listen.count) => outcome,
        () = stop => Ok(()),
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

/// Prints the endpoint, and then messages until `count` have arrived.
async fn receive(
    receiver: &mut Receiver,
    name: &str,
    secret: &str,
    output: Output,
    count: Option<u32>,
) -> Result<(), Exit> {
    if !output.json() {
        let receives = cli::client::receives_events(&clean(&receiver.url));
        print(&format!("{STRONG}{name}{STRONG:#} {receives}\n"))?;
        print(&format!("signing secret  {}\n", clean(secret)))?;
    }
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
