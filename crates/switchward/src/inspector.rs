//! The webhook inspector of a development server: `/webhooks` receives events, as any endpoint does, and
//! shows what came, with whether its signature is good.

use anyhow::Context as _;
use axum::{
    Form, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use maud::{Markup, html};
use parking_lot::Mutex;
use serde::Deserialize;
use std::collections::VecDeque;
use std::sync::Arc;
use switchward_gateway::sealing;
use switchward_machine::{TenantId, Time};
use switchward_messages::server_pages::inspector as words;
use switchward_query::{Evaluate as _, GetTenant};
use switchward_shard::Cluster;
use switchward_state::delivery::{ChangeEndpoint, DeliveryCommand};
use switchward_state::policy::time_text;
use switchward_state::seal::SecretOf;
use switchward_state::{Body, Command};
use switchward_webhook::{SigningSecret, limits::IN_BODY_BYTES_MAX};

use crate::mailbox::{guarded, whole, worded};
use crate::page_guard::{Token, stale_form};
use crate::receiver::{Received, verified};

/// Messages that are kept; beyond it the oldest goes.
const KEPT_MAX: usize = 500;
/// The endpoint's name.
const NAME: &str = "inspector";

/// What came, and what it is signed with.
#[derive(Default)]
struct InspectorState {
    secret: Option<String>,
    came: VecDeque<(Time, Received)>,
}

/// See the module. Cheap to clone.
#[derive(Clone)]
struct Inspector {
    cluster: Cluster,
    tenant: String,
    /// Where this server is.
    at: String,
    /// The last part of the path at which messages come in.
    hook: Arc<Token>,
    /// What the form of the page holds.
    form: Arc<Token>,
    kept: Arc<Mutex<InspectorState>>,
}

/// What the form of the page sends.
#[derive(Deserialize)]
struct Typed {
    #[serde(default)]
    token: String,
}

/// The pages of an inspector of this tenant, on a server that is at this address.
pub(crate) fn pages(cluster: Cluster, tenant: &str, at: &str) -> Router {
    let (tenant, at) = (tenant.to_owned(), at.to_owned());
    let [hook, form] = [Token::draw(), Token::draw()].map(Arc::new);
    Router::new()
        .route("/webhooks", get(list))
        .route("/webhooks/listen", post(listen))
        .route("/webhooks/in/{hook}", post(take))
        .layer(DefaultBodyLimit::max(IN_BODY_BYTES_MAX))
        .with_state(Inspector { cluster, tenant, at, hook, form, kept: Arc::default() })
}

async fn list(State(inspector): State<Inspector>) -> Response {
    let kept = inspector.kept.lock();
    let body = html! {
        h1 { (words::TITLE) }
        p.hint { (words::ABOUT) }
        @if kept.secret.is_none() {
            form method="post" action="/webhooks/listen" {
                input type="hidden" name="token" value=(inspector.form.text());
                p { (worded(&words::not_listening(&inspector.tenant))) }
                button type="submit" { (words::LISTEN) }
            }
        } @else if kept.came.is_empty() {
            p { (words::NO_EVENTS) }
        }
        @for (at, message) in kept.came.iter().rev() { (shown(*at, message)) }
    };
    guarded(whole(words::TITLE, &body))
}

fn shown(at: Time, message: &Received) -> Markup {
    html! {
        section.reply {
            h2 { (message.kind()) @if message.kind().is_empty() { (words::NO_EVENT_TYPE) } }
            table.heads {
                tr { th scope="row" { (words::RECEIVED) } td.time { (time_text(at)) } }
                tr { th scope="row" { (words::ID) } td { code { (message.id) } } }
                tr { th scope="row" { (words::SIGNATURE) } td { @match &message.refused { None => (words::GOOD), Some(why) => (why) } } }
            }
            pre { (format!("{:#}", message.body)) }
        }
    }
}

async fn listen(State(inspector): State<Inspector>, Form(typed): Form<Typed>) -> Response {
    if !inspector.form.is(&typed.token) {
        return stale_form();
    }
    match register(&inspector).await {
        Ok(secret) => {
            inspector.kept.lock().secret = Some(secret);
            Redirect::to("/webhooks").into_response()
        }
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "failed to start the inspector");
            let body = html! { h1 { (words::NOT_STARTED) } p { (format!("{error:#}")) } };
            (StatusCode::INTERNAL_SERVER_ERROR, guarded(whole(words::TITLE, &body))).into_response()
        }
    }
}

/// Makes the endpoint; one from before gets a new secret.
async fn register(inspector: &Inspector) -> anyhow::Result<String> {
    let tenant = GetTenant { name: inspector.tenant.clone() };
    let tenant = tenant.evaluate(&inspector.cluster.catalogue().read().await?)?;
    let tenant = tenant.context("the tenant does not exist")?;
    let secret =
        SigningSecret::of(&rand::random::<[u8; 32]>()).expect("32 bytes are enough for a secret").text();
    let ring = &inspector.cluster.ring();
    let sealed = sealing::text(ring, tenant.id, SecretOf::Endpoint(NAME), &secret);
    let sealed = sealed.context("the server has no key ring")?;
    let put = ChangeEndpoint::Put {
        id: NAME.to_owned(),
        url: format!("{}/webhooks/in/{}", inspector.at, inspector.hook.text()),
        filters: Vec::new(),
        secret: sealed.clone(),
        key: sealing::mail_key(ring, tenant.id),
        etag: String::new(),
    };
    let (id, etag) = (NAME.to_owned(), String::new());
    let rotate = ChangeEndpoint::Rotate { id, secret: sealed, overlap_ms: 0, etag };
    for change in [put, rotate] {
        command(inspector, tenant.id, change).await?;
    }
    Ok(secret)
}

async fn command(inspector: &Inspector, tenant: TenantId, change: ChangeEndpoint) -> anyhow::Result<()> {
    let command = Command::in_own_scope(tenant, Body::Delivery(DeliveryCommand::Endpoint(change)));
    inspector.cluster.execute(command).await.map(drop).map_err(Into::into)
}

async fn take(
    State(inspector): State<Inspector>,
    Path(hook): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    if !inspector.hook.is(&hook) {
        return StatusCode::NOT_FOUND;
    }
    let mut kept = inspector.kept.lock();
    // A server that was restarted knows no secret until somebody looks.
    let Some(secret) = &kept.secret else { return StatusCode::SERVICE_UNAVAILABLE };
    let received = verified(secret, &headers, &body);
    let status = if received.refused.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::NO_CONTENT };
    kept.came.push_back((inspector.cluster.now(), received));
    if kept.came.len() > KEPT_MAX {
        kept.came.pop_front();
    }
    status
}
