//! The health of endpoints. It is recorded in the catalogue, so that one which fails for days is disabled after the same
//! time, whichever server has tried and however often servers were restarted.

use std::time::Duration;
use switchward_delivery::{DeliveryReason, Failed, worker::Outcome};
use switchward_machine::TenantId;
use switchward_query::outgoing::ShardView;
use switchward_shard::Cluster;
use switchward_state::delivery::{ChangeEndpoint, DeliveryCommand, DisabledReason, Endpoint, FailureCode};
use switchward_state::limits::ENDPOINT_FAILURE_BYTES_MAX;
use switchward_state::{Body, Command};
use switchward_webhook::retry::{AttemptOutcome, Disabled, EndpointHealth};

/// Records an endpoint's health after an attempt, and disables one that is gone or has failed for long. An attempt that was
/// not begun says nothing of it.
pub(super) async fn watch(cluster: &Cluster, tenant: TenantId, id: &str, outcome: &Outcome) {
    if matches!(outcome, Err(Failed { reason: DeliveryReason::NotBegun, .. })) {
        return;
    }
    // Rows that cannot be read end the server elsewhere.
    let Some(endpoint) = endpoint(cluster, tenant, id) else { return };
    let (verdict, failure) = match outcome {
        Ok(_) => (AttemptOutcome::Delivered, None),
        Err(Failed { reason, detail, .. }) => {
            let verdict = if *reason == DeliveryReason::ReceiverGone {
                AttemptOutcome::Gone
            } else {
                AttemptOutcome::Failed
            };
            let code = FailureCode::Attempt(*reason);
            (verdict, Some((code, detail.clone().within(ENDPOINT_FAILURE_BYTES_MAX))))
        }
    };
    let (health, now) = (endpoint.health.unwrap_or_default(), cluster.now());
    if health.after(failure.as_ref(), now).is_some() {
        change(cluster, tenant, ChangeEndpoint::Note { id: id.to_owned(), failure }).await;
    }
    let time = |time: switchward_machine::Time| Duration::from_millis(time.0);
    let before = EndpointHealth { failing_since: health.failing_since.map(time), disabled: None };
    if endpoint.disabled.is_none()
        && let Some(why) = before.after(verdict, time(now)).disabled
    {
        let reason = disabled_reason(why);
        change(cluster, tenant, ChangeEndpoint::Disable { id: id.to_owned(), reason }).await;
        tracing::warn!(tenant = tenant.0, endpoint = id, why = reason.word(), "disabled an endpoint");
    }
}

/// The reason as it is stored.
fn disabled_reason(why: Disabled) -> DisabledReason {
    match why {
        Disabled::Gone => DisabledReason::Gone,
        Disabled::Failing => DisabledReason::Failing,
    }
}

/// The endpoint as the catalogue's record has it here.
fn endpoint(cluster: &Cluster, tenant: TenantId, id: &str) -> Option<Endpoint> {
    let tenancy = ShardView::stale(cluster.catalogue()).tenancy_record(tenant).ok()??;
    tenancy.endpoint(id).cloned()
}

/// What cannot be written now is written after a later attempt.
async fn change(cluster: &Cluster, tenant: TenantId, change: ChangeEndpoint) {
    let command = Command::in_own_scope(tenant, Body::Delivery(DeliveryCommand::Endpoint(change)));
    if let Err(error) = cluster.execute(command).await {
        tracing::warn!(tenant = tenant.0, %error, "failed to record the health of an endpoint");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use switchward_delivery::worker::Delivered;
    use switchward_machine::Time;
    use switchward_shard::{ClusterOptions, ManualClock};
    use switchward_state::delivery::ExchangeProblem;
    use switchward_state::limits::{ENDPOINT_NOTED_AGAIN_MS, ENDPOINT_NOTED_MS};
    use switchward_state::seal::{KeyRing, RingKey, SecretOf};
    use switchward_store::{DataDir, StoreError};
    use switchward_webhook::limits::FAILING_MAX;

    use super::*;

    const BEGUN: Time = Time(1_782_000_000_000);

    async fn open(data: &Path, clock: &ManualClock) -> Cluster {
        // Tasks of the cluster before it may end a little later.
        let opening = async {
            loop {
                match DataDir::open(data) {
                    Ok(data) => break data,
                    Err(StoreError::InUse { .. }) => tokio::task::yield_now().await,
                    Err(error) => panic!("{error}"),
                }
            }
        };
        let data =
            tokio::time::timeout(Duration::from_secs(60), opening).await.expect("the folder is released");
        let options = ClusterOptions {
            data,
            shards: 1,
            cache_bytes: 4 * 1024 * 1024,
            clock: Arc::new(clock.clone()),
            ring: KeyRing::of(vec![RingKey::of([1; 32])]),
            on_fatal: Box::new(|why| panic!("{why}")),
            member: None,
        };
        Cluster::open(options).await.unwrap()
    }

    async fn put(cluster: &Cluster) {
        let put = ChangeEndpoint::Put {
            id: "ops".to_owned(),
            url: "https://ops.example/in".to_owned(),
            filters: Vec::new(),
            secret: cluster.ring().seal([0; 24], TenantId(1), SecretOf::Endpoint("ops"), b"whsec_x").unwrap(),
            key: None,
            etag: String::new(),
        };
        cluster
            .execute(Command::in_own_scope(TenantId(1), Body::Delivery(DeliveryCommand::Endpoint(put))))
            .await
            .unwrap();
    }

    async fn attempt(cluster: &Cluster, failure: Option<DeliveryReason>) -> Endpoint {
        let outcome = match failure {
            None => Ok(Delivered::Webhook { status: 204 }),
            Some(reason) => Err(Failed::new(reason, ExchangeProblem::EndpointStatus { status: 500 })),
        };
        watch(cluster, TenantId(1), "ops", &outcome).await;
        endpoint(cluster, TenantId(1), "ops").unwrap()
    }

    #[tokio::test]
    async fn one_that_fails_is_disabled_after_the_same_time_though_the_server_was_started_again() {
        let (data, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(BEGUN));
        let long = u64::try_from(FAILING_MAX.as_millis()).unwrap();
        let cluster = open(data.path(), &clock).await;
        put(&cluster).await;
        attempt(&cluster, Some(DeliveryReason::ReceiverRefused)).await;
        clock.advance(long - 1);
        let failing = attempt(&cluster, Some(DeliveryReason::ReceiverRefused)).await;
        assert_eq!((failing.disabled, failing.health.unwrap().failing_since), (None, Some(BEGUN)));
        cluster.shutdown().await.unwrap();
        drop(cluster);
        let cluster = open(data.path(), &clock).await;
        clock.advance(1);
        let over = attempt(&cluster, Some(DeliveryReason::Timeout)).await;
        assert_eq!(over.disabled, Some(DisabledReason::Failing));
        // Put again it has all of the time before it.
        put(&cluster).await;
        let again = attempt(&cluster, Some(DeliveryReason::Timeout)).await;
        assert_eq!((again.disabled, again.health.unwrap().failing_since), (None, Some(cluster.now())));
        cluster.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn not_every_attempt_is_written_down_and_the_end_of_failing_always_is() {
        let (data, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(BEGUN));
        let cluster = open(data.path(), &clock).await;
        put(&cluster).await;
        let health = attempt(&cluster, None).await.health.unwrap();
        assert_eq!((health.succeeded, health.failing_since), (Some(BEGUN), None));
        clock.advance(ENDPOINT_NOTED_MS - 1);
        assert_eq!(
            attempt(&cluster, Some(DeliveryReason::Timeout)).await.health.unwrap(),
            health,
            "too soon"
        );
        clock.advance(1);
        let failing = attempt(&cluster, Some(DeliveryReason::Timeout)).await.health.unwrap();
        assert_eq!(failing.failing_since, Some(cluster.now()));
        assert_eq!(failing.failed.as_ref().map(|failed| failed.code.word()), Some("timeout"));
        clock.advance(ENDPOINT_NOTED_AGAIN_MS - 1);
        assert_eq!(
            attempt(&cluster, Some(DeliveryReason::ConnectFailed)).await.health.unwrap(),
            failing,
            "too soon to record it again"
        );
        clock.advance(1);
        let later = attempt(&cluster, Some(DeliveryReason::ConnectFailed)).await.health.unwrap();
        assert_eq!(later.failing_since, failing.failing_since);
        assert_eq!(later.failed.as_ref().map(|failed| failed.code.word()), Some("connect_failed"));
        let well = attempt(&cluster, None).await.health.unwrap();
        assert_eq!((well.failing_since, well.succeeded), (None, Some(cluster.now())));
        let gone = attempt(&cluster, Some(DeliveryReason::ReceiverGone)).await;
        assert_eq!(gone.disabled, Some(DisabledReason::Gone));
        cluster.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn an_attempt_that_was_not_begun_says_nothing_of_its_endpoint() {
        let (data, clock) = (tempfile::tempdir().unwrap(), ManualClock::new(BEGUN));
        let cluster = open(data.path(), &clock).await;
        put(&cluster).await;
        let late = attempt(&cluster, Some(DeliveryReason::NotBegun)).await;
        assert_eq!(late.health.unwrap_or_default().failing_since, None);
        cluster.shutdown().await.unwrap();
    }
}
