//! The acts of the demo in which an integrator receives signed webhooks.

use anyhow::Context as _;
use std::time::Duration;
use switchward_api::v1;
use switchward_messages::cli::demo as texts;

use super::story::{Story, ensure};
use crate::exit::Exit;
use crate::output::{GOOD, STRONG};
use crate::receiver::{Received, Receiver};

const INTEGRATOR: &str = "pipeline";
const NAME: &str = "pipeline";
/// The time limit from an event to the arrival of its webhook.
const ARRIVAL_MAX: Duration = Duration::from_secs(30);

impl Story {
    /// Creates an endpoint and pings it.
    pub(super) async fn integrator(&mut self) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_ENDPOINT)?;
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
        self.narrator.line(INTEGRATOR, texts::SUBSCRIBES, STRONG, texts::GETS_SECRET)?;
        let receiver = self.receiver.insert(receiver);
        let request = v1::PingWebhookEndpointRequest { name: NAME.into(), ..Default::default() };
        let ping = self.person.call_once(request, |mut it, request| async move {
            it.endpoints.ping_webhook_endpoint(request).await
        });
        ensure!(ping.await?.http_status == 204, "the endpoint did not accept a ping");
        let came = arrived(receiver).await?;
        ensure!(came.kind() == "ping", "another message than a ping arrived");
        self.narrator.line(INTEGRATOR, texts::RECEIVES_PING, GOOD, texts::SIGNATURE_VALID)
    }

    /// Receives the events that happened meanwhile.
    pub(super) async fn notified_by_webhook(&mut self) -> Result<(), Exit> {
        self.narrator.act(texts::ACT_WEBHOOKS)?;
        let session = self.session.clone();
        let receiver = self.receiver.as_mut().context("there is no receiver")?;
        let mut seen = std::collections::BTreeMap::new();
        while !seen.contains_key("session.completed") {
            let came = arrived(receiver).await?;
            let of = came.body["data"]["session"].as_str().unwrap_or_default();
            ensure!(of.ends_with(&format!("/{session}")), "a webhook is about another session");
            *seen.entry(came.kind().to_owned()).or_insert(0) += 1;
        }
        for (kind, count) in &seen {
            let did = if *count == 1 { kind.clone() } else { texts::several_times(kind, *count) };
            self.narrator.line(INTEGRATOR, &did, GOOD, texts::SIGNATURE_VALID)?;
        }
        self.narrator.why(&texts::WHY_RELIABLE)
    }
}

async fn arrived(receiver: &mut Receiver) -> Result<Received, Exit> {
    let came = tokio::time::timeout(ARRIVAL_MAX, receiver.next()).await.context("no webhook arrived")?;
    let came = came.map_err(Exit::failed)?;
    match &came.refused {
        None => Ok(came),
        Some(why) => Err(anyhow::anyhow!("a webhook was refused: {why}").into()),
    }
}
