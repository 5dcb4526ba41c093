//! Checks of what a worker may do while it holds work.

use switchward_machine::OpenId;
use switchward_scenario::{Answer, Broken, ShardIx, System};
use switchward_state::limits::{LEASE_MS_MAX, LEASE_MS_MIN};
use switchward_state::work::{ExtendLease, LeaseWork, WorkCommand};
use switchward_state::{Actor, Body, Command, Key, Loaded, OpenItem, Reason, Reply, Row, Scope, View};

use super::CarefulMemory;
use super::rows::unchanged;

/// Before work is leased: a lease of no length must be refused and change nothing.
pub(super) fn lease_of_nothing(memory: &mut CarefulMemory, command: &Command) -> Result<(), Broken> {
    let Body::Work(WorkCommand::Lease(lease)) = &command.body else { return Ok(()) };
    let body = Body::Work(WorkCommand::Lease(LeaseWork { lease_ms: 0, ..lease.clone() }));
    let answer = unchanged(memory, &Command { request: None, body, ..command.clone() })?;
    match answer {
        Err(refusal) if refusal.reason == Reason::FieldInvalid => Ok(()),
        answer => Err(Broken(format!("a lease of zero length got the answer {answer:?}"))),
    }
}

/// When a lease has expired and before it is swept: another worker can lease the work.
pub(super) fn taken_over(memory: &CarefulMemory, at: ShardIx, key: &Key) -> Result<(), Broken> {
    let row = memory.shards()[at].row(key)?;
    let Some(Row::OpenItem(OpenItem::Work(work))) = row.as_deref() else { return Ok(()) };
    let number = key.rest().get(16..24).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
    let (Some(id), Some(number)) = (key.session_of(), number) else { return Ok(()) };
    let lease = LeaseWork { item: OpenId(number), worker: "another".into(), lease_ms: LEASE_MS_MIN };
    let body = Body::Work(WorkCommand::Lease(lease));
    let lease = Command::of_server(key.tenant_of(), Scope::Session(id), body);
    let answer = memory.clone().decide(at, &lease)?;
    match &answer {
        Ok(Reply::Leased { fence, .. }) if *fence == work.body.owed.fence + 1 => Ok(()),
        Ok(_) | Err(_) => {
            Err(Broken(format!("a lease has expired, but another worker got the answer {answer:?}")))
        }
    }
}

/// After work was leased: a heartbeat in the first half of the lease writes nothing, one that requests
/// twice the time moves the end, and no other worker may send one, nor a key of another subject.
pub(super) fn leased(memory: &mut CarefulMemory, command: &Command, reply: &Reply) -> Result<(), Broken> {
    let (Body::Work(WorkCommand::Lease(lease)), Reply::Leased { item, fence, until, .. }) =
        (&command.body, reply)
    else {
        return Ok(());
    };
    let say = |fence: u64, lease_ms: u64| {
        let body = Body::Work(WorkCommand::Extend(ExtendLease { item: *item, fence, lease_ms }));
        Command { request: None, body, ..command.clone() }
    };
    let again = unchanged(memory, &say(*fence, lease.lease_ms))?;
    let other = unchanged(memory, &say(*fence + 1, lease.lease_ms))?;
    let actor = Actor { subject: "another".into(), ..command.actor.clone() };
    let stranger = unchanged(memory, &Command { actor, ..say(*fence, lease.lease_ms) })?;
    // Twice the time, if a lease may be that long: then its worker gets it.
    let twice = lease.lease_ms.min(LEASE_MS_MAX / 2) * 2;
    let whole = if twice < lease.lease_ms * 2 { *until } else { memory.now().after_ms(twice) };
    let longer = memory.clone().execute(say(*fence, twice))?;
    let loaded = Loaded::default();
    let leased_until =
        |until| Ok(Reply::Leased { item: *item, fence: *fence, until, loaded: loaded.clone() });
    let lost = |answer: &Answer| answer.as_ref().is_err_and(|refusal| refusal.reason == Reason::LeaseLost);
    if again == leased_until(*until) && longer == leased_until(whole) && lost(&other) && lost(&stranger) {
        return Ok(());
    }
    Err(Broken(format!(
        "heartbeats for a lease until {until:?} got {again:?}, {longer:?}, {other:?} and {stranger:?}"
    )))
}
