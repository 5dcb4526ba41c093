//! What a worker may say while it has work.

use switchward_engine::limits::{LEASE_MS_MAX, LEASE_MS_MIN};
use switchward_engine::{
    Body, Command, ExtendLease, Key, LeaseWork, Reason, Reply, Row, Scope, Thing, ThingBody, View,
};
use switchward_machine::OpenId;

use super::hops::inner;
use super::{Care, Memory, ShardIx};
use crate::world::Broken;

impl Memory {
    /// With care, before work is leased: a lease of no length must be refused and change nothing.
    pub(super) fn lease_of_nothing(&mut self, command: &Command) -> Result<(), Broken> {
        let (Body::LeaseWork(lease), Care::Restart) = (&command.body, self.care) else { return Ok(()) };
        let body = Body::LeaseWork(LeaseWork { lease_ms: 0, ..lease.clone() });
        let answer = self.unchanged(&Command { request: None, body, ..command.clone() })?;
        match answer {
            Err(refusal) if refusal.reason == Reason::FieldInvalid => Ok(()),
            answer => Err(Broken(format!("a lease of no length was answered {answer:?}"))),
        }
    }

    /// With care, when a lease is over and before that is swept: the work is another's, who asks for it.
    pub(super) fn taken_over(&self, at: ShardIx, key: &Key) -> Result<(), Broken> {
        let row = self.shards[at].row(key)?.filter(|_| self.care == Care::Restart);
        let Some(Row::Thing(Thing { body: ThingBody::Work { owed, .. }, .. })) = row.as_deref() else {
            return Ok(());
        };
        let number = key.rest().get(16..24).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
        let (Some(id), Some(number)) = (key.session_of(), number) else { return Ok(()) };
        let lease = LeaseWork { thing: OpenId(number), worker: "another".into(), lease_ms: LEASE_MS_MIN };
        let lease = inner(key.tenant_of(), Scope::Session(id), Body::LeaseWork(lease));
        let answer = self.clone().decide(at, &lease)?;
        match &answer {
            Ok(Reply::Leased { fence, .. }) if *fence == owed.fence + 1 => Ok(()),
            Ok(_) | Err(_) => Err(Broken(format!("a lease is over, and another was answered {answer:?}"))),
        }
    }

    /// With care, after work was leased: the worker's next word comes in the first half of its lease and writes nothing,
    /// one that asks for twice the time moves the end, and nobody else has a word to say.
    pub(super) fn leased(&mut self, command: &Command, reply: &Reply) -> Result<(), Broken> {
        let (Body::LeaseWork(lease), Reply::Leased { thing, fence, until }) = (&command.body, reply) else {
            return Ok(());
        };
        let say = |fence: u64, lease_ms: u64| {
            let body = Body::ExtendLease(ExtendLease { thing: *thing, fence, lease_ms });
            Command { request: None, body, ..command.clone() }
        };
        let again = self.unchanged(&say(*fence, lease.lease_ms))?;
        let other = self.unchanged(&say(*fence + 1, lease.lease_ms))?;
        // Twice the time, where a lease may be that long: then its worker gets it.
        let twice = lease.lease_ms.min(LEASE_MS_MAX / 2) * 2;
        let whole = if twice < lease.lease_ms * 2 { *until } else { self.now.after_ms(twice) };
        let longer = self.clone().hop(say(*fence, twice))?;
        let told = |until| Ok(Reply::Leased { thing: *thing, fence: *fence, until });
        let lost = other.as_ref().is_err_and(|refusal| refusal.reason == Reason::LeaseLost);
        if again == told(*until) && longer == told(whole) && lost {
            return Ok(());
        }
        Err(Broken(format!("of a lease until {until:?} came {again:?}, {longer:?} and {other:?}")))
    }
}
