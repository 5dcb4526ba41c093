//! The acts of the demo in which an integrator receives signed webhooks.

use std::time::Duration;

use anyhow::Context as _;
use switchward_api::v1;

use super::story::{Story, ensure};
use crate::exit::Exit;
use crate::output::{GOOD, STRONG};
use crate::receiver::{Received, Receiver};

const INTEGRATOR: &str = "pipeline";
const NAME: &str = "pipeline";
/// How long a webhook may take from what happened to its arrival.
const ARRIVAL_MAX: Duration = Duration::from_secs(30);

impl Story {
    /// An endpoint is made, and proves itself.
    pub(super) async fn integrator(&mut self) -> Result<(), Exit> {
        self.narrator.act("A pipeline asks to be told")?;
        let receiver = Receiver::listen(0, None).await.map_err(Exit::failed)?;
        let endpoint = v1::WebhookEndpoint {
            name: NAME.into(),
            url: receiver.url.clone(),
            event_types: vec!["session.*".into()],
            ..v1::WebhookEndpoint::default()
        };
        let request = v1::PutWebhookEndpointRequest { endpoint: Some(endpoint), ..Default::default() };
        let put = self
            .person
            .call(request, |mut it, request| async move { it.endpoints.put_webhook_endpoint(request).await });
        let secret = put.await?.secret;
        receiver.knows(&secret);
        self.narrator.line(INTEGRATOR, "wants session.*", STRONG, "gets a secret, shown this once")?;
        let receiver = self.receiver.insert(receiver);
        let request = v1::PingWebhookEndpointRequest { name: NAME.into(), ..Default::default() };
        let ping = self.person.call(request, |mut it, request| async move {
            it.endpoints.ping_webhook_endpoint(request).await
        });
        ensure(ping.await?.http_status == 204, "the endpoint did not take a ping")?;
        let came = arrived(receiver).await?;
        ensure(came.kind() == "ping", "something else than a ping came")?;
        self.narrator.line(INTEGRATOR, "is sent a ping", GOOD, "the signature is good")
    }

    /// What happened meanwhile has come, signed.
    pub(super) async fn notified_by_webhook(&mut self) -> Result<(), Exit> {
        self.narrator.act("And is told, by signed webhooks")?;
        let session = self.session.clone();
        let receiver = self.receiver.as_mut().context("there is no receiver")?;
        let mut seen = std::collections::BTreeMap::new();
        while !seen.contains_key("session.completed") {
            let came = arrived(receiver).await?;
            let of = came.body["data"]["session"].as_str().unwrap_or_default();
            ensure(of.ends_with(&format!("/{session}")), "a webhook is about another session")?;
            *seen.entry(came.kind().to_owned()).or_insert(0) += 1;
        }
        for (kind, count) in &seen {
            let did = if *count == 1 { kind.clone() } else { format!("{kind}, {count} times") };
            self.narrator.line(INTEGRATOR, &did, GOOD, "the signature is good")?;
        }
        self.narrator.why(&[
            "Each message is queued in the same entry of the log as what it tells of, signed after Standard",
            "Webhooks, and sent until it is taken, under one id however often.",
        ])
    }
}

async fn arrived(receiver: &mut Receiver) -> Result<Received, Exit> {
    let came = tokio::time::timeout(ARRIVAL_MAX, receiver.next()).await.context("no webhook came")?;
    let came = came.map_err(Exit::failed)?;
    match &came.refused {
        None => Ok(came),
        Some(why) => Err(anyhow::anyhow!("a webhook is not believed: {why}").into()),
    }
}
