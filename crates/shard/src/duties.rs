//! A leader's duties: carry inner effects to their shards, sweep what has lapsed.

use futures::future::join_all;
use std::ops::ControlFlow;
use std::sync::Weak;
use switchward_engine::{
    AckEffect, Actor, Body, Command, Confirm, Due, Effect, EffectBody, IndexKey, Key, RequestId, Row, Scope,
    Settings, Settle, Sweep, View,
};
use switchward_machine::{Digest, SessionId, Time};

use crate::cluster::Inner;
use crate::failure::Failure;
use crate::limits::{DUTY_TICK, RELAY_IN_FLIGHT_MAX, SWEEP_ROWS_MAX};
use crate::shard::Shard;

/// Works for one shard until the cluster or the shard is gone.
pub(crate) async fn work(shard: Shard, cluster: Weak<Inner>) {
    let told = shard.group().shared.duties.clone();
    loop {
        // Either side may be dropped while it waits: a notification is kept, a tick comes again.
        let _tick = tokio::time::timeout(DUTY_TICK, told.notified()).await;
        let Some(cluster) = cluster.upgrade() else { return };
        let done = round(&shard, &cluster).await;
        if shard.draining() {
            return;
        }
        if let Err(error) = done {
            cluster.halt(&error);
            return;
        }
    }
}

/// Does what is to be done now; the error is the one line that a server ends with.
async fn round(shard: &Shard, cluster: &Inner) -> Result<(), String> {
    shard.group().running()?;
    if !shard.leads() {
        return Ok(());
    }
    for done in [carry(shard, cluster).await, sweep(shard).await] {
        // Where another server leads, or there is too much to do just now, the next round comes.
        if done == Err(Failure::Stopped) {
            return Err("a shard has stopped".into());
        }
    }
    Ok(())
}

/// The first entries of an index that are due.
fn due(shard: &Shard, prefix: &[u8], max: usize, now: Time) -> Vec<Due> {
    let mut found = Vec::new();
    let read = shard.read_stale().scan(prefix, None, &mut |entry, _| match IndexKey::due_of(entry) {
        Some(due) if due.at <= now && found.len() < max => {
            found.push(due);
            ControlFlow::Continue(())
        }
        Some(_) | None => ControlFlow::Break(()),
    });
    if let Err(error) = read {
        tracing::warn!(%error, "failed to read what is due");
    }
    found
}

/// Carries effects to the shards that they are for, and says so when they have arrived. What is due is in flight
/// once: the next round begins when this one has ended.
async fn carry(shard: &Shard, cluster: &Inner) -> Result<(), Failure> {
    loop {
        let found = due(shard, &IndexKey::relay(), RELAY_IN_FLIGHT_MAX, shard.now());
        if found.is_empty() {
            return Ok(());
        }
        let view = shard.read().await?;
        let all = found.iter().map(|due| async {
            let Some(id) = due.key.session_of() else { return Ok(false) };
            match view.row(&due.key) {
                Ok(row) => {
                    let Some(Row::Outbox(effect)) = row.as_deref() else { return Ok(false) };
                    deliver(shard, cluster, &due.key, id, effect).await
                }
                Err(error) => {
                    tracing::error!(%error, "failed to read an effect");
                    Err(Failure::Stopped)
                }
            }
        });
        let mut carried = false;
        for result in join_all(all).await {
            carried |= result?;
        }
        // What is due and cannot be carried would be found again and again.
        if !carried {
            return Ok(());
        }
    }
}

/// Brings one effect to its shard, and says there that it has arrived. False for one that is not for a shard.
async fn deliver(
    shard: &Shard,
    cluster: &Inner,
    key: &Key,
    id: SessionId,
    effect: &Effect,
) -> Result<bool, Failure> {
    let tenant = key.tenant_of();
    let command = |scope: Scope, request: Option<RequestId>, body: Body| Command {
        tenant,
        scope,
        request,
        expected_sequence: None,
        actor: Actor::server(),
        settings: Settings::default(),
        trace: effect.trace.clone(),
        body,
    };
    let inner = match &effect.body {
        EffectBody::Notice { .. } | EffectBody::Message { .. } => return Ok(false),
        EffectBody::Confirm { process, call, rules, estimate, at } => {
            let body = Confirm { call: *call, rules: rules.clone(), estimate: *estimate, at: *at };
            command(Scope::Ledger(process.clone()), Some(body.request()), Body::Confirm(body))
        }
        EffectBody::Settle { process, call, rules, cost, at, release } => {
            let (cost, at, release) = (*cost, *at, *release);
            let body = Settle { call: *call, rules: rules.clone(), cost, at, release };
            // The effect's own name, so that a second delivery of it is seen.
            let name = Digest::of_parts(&[b"settle", &id.0, &effect.number.to_be_bytes()]);
            let request = RequestId { id: format!("settle:{name}"), body: name };
            command(Scope::Ledger(process.clone()), Some(request), Body::Settle(body))
        }
    };
    cluster.submit(inner).await?;
    let ack = command(Scope::Session(id), None, Body::AckEffect(AckEffect { number: effect.number }));
    shard.submit(ack).await.map(|_| true)
}

/// Looks at rows that may hold something that has lapsed.
async fn sweep(shard: &Shard) -> Result<(), Failure> {
    let found = due(shard, &IndexKey::due(), SWEEP_ROWS_MAX, shard.now());
    let all = found.into_iter().map(|due| {
        let command = Command {
            tenant: due.key.tenant_of(),
            scope: due.scope(),
            request: None,
            expected_sequence: None,
            actor: Actor::server(),
            settings: Settings::default(),
            trace: None,
            body: Body::Sweep(Sweep { key: due.key }),
        };
        shard.submit(command)
    });
    for result in join_all(all).await {
        result?;
    }
    Ok(())
}
