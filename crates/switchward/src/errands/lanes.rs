//! Where the effects of each place begin in the index of deliveries. What has arrived leaves the index, but whoever looks
//! from the beginning still passes over it for a while: a busy place would cost more with each effect that has arrived.

use std::collections::BTreeMap;
use std::time::Duration;

use switchward_engine::{IndexKey, Key, ViewError};
use switchward_machine::Time;
use switchward_shard::StateView;
use tokio::time::Instant;

/// Places of which one relay knows the beginning; the others are looked for from where the known ones end.
const KNOWN_MAX: usize = 256;
/// How far behind the present a beginning may stand, milliseconds: what was queued by then may be written a little later.
const SLACK_MS: u64 = 250;
/// How often everything is looked through all the same: what was written later still is found then.
const AGAIN: Duration = Duration::from_secs(5);

/// Where entries are looked for.
pub(super) trait Entries {
    /// The first entry behind one key and before another.
    ///
    /// # Errors
    /// A row cannot be read.
    fn first_between(&self, after: &[u8], before: &[u8]) -> Result<Option<Key>, ViewError>;
}

impl Entries for StateView {
    fn first_between(&self, after: &[u8], before: &[u8]) -> Result<Option<Key>, ViewError> {
        Self::first_between(self, after, before)
    }
}

/// The beginnings that are known, by the index's keys for all of a place.
#[derive(Default)]
pub(super) struct Lanes {
    begin: BTreeMap<Vec<u8>, Vec<u8>>,
    /// When they are forgotten.
    until: Option<Instant>,
}

impl Lanes {
    /// Forgets everything from time to time.
    pub(super) fn age(&mut self, now: Instant) {
        if self.until.is_none_or(|until| until <= now) {
            self.begin.clear();
            self.until = Some(now + AGAIN);
        }
    }

    /// Behind what the effects of the place of this entry begin.
    pub(super) fn begin(&self, entry: &Key) -> Option<&[u8]> {
        self.begin.get(&IndexKey::lane(entry)).map(Vec::as_slice)
    }

    /// The first entry of the next place that has one, behind this place in the index.
    pub(super) fn next(
        &mut self,
        view: &impl Entries,
        after: Option<&[u8]>,
        now: Time,
    ) -> Result<Option<Key>, ViewError> {
        let all = IndexKey::deliveries();
        let mut after = after.unwrap_or(&all).to_vec();
        loop {
            let known =
                self.begin.range(after.clone()..).next().map(|(lane, from)| (lane.clone(), from.clone()));
            let found = match &known {
                None => view.first_between(&after, &behind(&all))?,
                Some((lane, from)) => match view.first_between(&after, lane)? {
                    None => view.first_between(from, &behind(lane))?,
                    between => between,
                },
            };
            match (found, known) {
                (Some(entry), _) => {
                    self.learn(&entry, now);
                    return Ok(Some(entry));
                }
                (None, None) => return Ok(None),
                (None, Some((lane, _))) => after = behind(&lane),
            }
        }
    }

    /// Nothing of the place of this entry stands before it, and what comes later is due later than now.
    fn learn(&mut self, first: &Key, now: Time) {
        let lane = IndexKey::lane(first);
        if self.begin.len() >= KNOWN_MAX && !self.begin.contains_key(&lane) {
            return;
        }
        let latest = Time(now.0.saturating_sub(SLACK_MS));
        let at = IndexKey::queued_of(first).map_or(Time(0), |due| due.at.min(latest));
        self.begin.insert(lane, IndexKey::lane_from(first, at));
    }
}

/// Behind all entries with this beginning: they go on with a time or the number of a tenant, and neither reaches so far.
pub(super) fn behind(beginning: &[u8]) -> Vec<u8> {
    [beginning, &[u8::MAX; 64]].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};
    use switchward_engine::{Effect, EffectBody, Purpose, Row, index_keys};
    use switchward_machine::{Channel, Content, NodeIx, RunId, SessionId, TenantId};

    use super::*;

    /// Entries alone; nobody looks at what is behind them.
    #[derive(Default)]
    struct Index(BTreeSet<Vec<u8>>);

    impl Entries for Index {
        fn first_between(&self, after: &[u8], before: &[u8]) -> Result<Option<Key>, ViewError> {
            let found = self.0.range(after.to_vec()..before.to_vec()).find(|entry| **entry != after);
            Ok(found.and_then(|entry| Key::from_bytes(entry)))
        }
    }

    /// The entry of an effect of this number that is due at this time.
    fn entry(number: u64, place: u32, at: u64) -> Vec<u8> {
        let (tenant, session) = (TenantId(1 + place / 3), SessionId([7; 16]));
        let body = EffectBody::Message {
            channel: Channel::Webhook,
            to: format!("https://{place}.example/"),
            subject: None,
            body: String::new(),
            content: Content::Text,
            gate: None,
            purpose: Purpose::Say,
            head: None,
        };
        let (run, node, deliver_at) = (RunId(1), NodeIx(1), Time(at));
        let effect = Effect { run, node, entry: 1, number, deliver_at, trace: None, body, fate: None };
        let keys = index_keys(&Key::outbox(tenant, session, number), &Row::Outbox(effect));
        let deliveries = IndexKey::deliveries();
        let key =
            keys.into_iter().find(|key| key.as_bytes().starts_with(&deliveries)).expect("it is to go out");
        key.as_bytes().to_vec()
    }

    /// The first entry of each place, as whoever looks at everything finds them.
    fn firsts(index: &Index) -> Vec<Vec<u8>> {
        let mut seen = BTreeSet::new();
        let lane =
            |entry: &&Vec<u8>| seen.insert(IndexKey::lane(&Key::from_bytes(entry).expect("it is a key")));
        index.0.iter().filter(lane).cloned().collect()
    }

    fn found(lanes: &mut Lanes, index: &Index, now: Time) -> Vec<Vec<u8>> {
        let (mut after, mut found) = (None, Vec::new());
        while let Some(entry) = lanes.next(index, after.as_deref(), now).expect("it can be read") {
            let from = lanes.begin(&entry).expect("there are few places");
            assert!(from < entry.as_bytes(), "a look from there finds it");
            found.push(entry.as_bytes().to_vec());
            after = Some(IndexKey::behind_lane(&entry));
        }
        found
    }

    /// What is queued is due when it is written, or later; what is put off is due later.
    #[test]
    fn the_first_of_each_place_is_found_whatever_came_and_went() {
        for seed in 0..40 {
            let mut chance = StdRng::seed_from_u64(seed);
            let (mut lanes, mut index, mut now) = (Lanes::default(), Index::default(), 1_000_000);
            for number in 0..400 {
                match chance.random_range(0..4) {
                    0 => now += chance.random_range(0..2_000),
                    1 => drop(index.0.insert(entry(number, chance.random_range(0..8), now))),
                    2 => {
                        let later = now + chance.random_range(0..100_000);
                        index.0.insert(entry(number, chance.random_range(0..8), later));
                    }
                    _ => drop(index.0.pop_first()),
                }
                assert_eq!(
                    found(&mut lanes, &index, Time(now)),
                    firsts(&index),
                    "seed {seed}, step {number}"
                );
            }
        }
    }
}
