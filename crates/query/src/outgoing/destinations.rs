//! Where the effects of each destination begin in the index of deliveries. Delivered effects leave the index, but a scan
//! from the beginning still passes over them for a while: a busy destination would cost more with each delivered effect.

use std::collections::BTreeMap;
use std::time::Duration;
use switchward_machine::Time;
use switchward_state::{IndexKey, Key, ViewError};
use tokio::time::Instant;

use super::ShardView;
use super::queues::{Queue, behind};

/// Destinations whose beginning one relay knows; the others are searched from where the known ones end.
const KNOWN_MAX: usize = 256;
/// How far behind the present a beginning may stand, milliseconds: what was queued by then may be written a little later.
const SLACK_MS: u64 = 250;
/// How often everything is scanned again: entries that were written even later are found then.
const AGAIN: Duration = Duration::from_secs(5);

/// Where entries are looked for.
pub trait Entries {
    /// The first entry behind one key and before another.
    ///
    /// # Errors
    /// A row cannot be read.
    fn first_between(&self, after: &[u8], before: &[u8]) -> Result<Option<Key>, ViewError>;
}

impl Entries for ShardView {
    fn first_between(&self, after: &[u8], before: &[u8]) -> Result<Option<Key>, ViewError> {
        self.0.first_between(after, before)
    }
}

/// The known beginnings, by the index's prefix of a destination.
#[derive(Default)]
pub struct Destinations {
    begin: BTreeMap<Vec<u8>, Vec<u8>>,
    /// When they are forgotten.
    until: Option<Instant>,
}

impl Destinations {
    /// Forgets everything from time to time.
    pub fn age(&mut self, now: Instant) {
        if self.until.is_none_or(|until| until <= now) {
            self.begin.clear();
            self.until = Some(now + AGAIN);
        }
    }

    /// Behind what the effects of a queue begin.
    pub fn begin(&self, queue: &Queue) -> Option<&[u8]> {
        self.begin.get(&IndexKey::destination(&queue.0)).map(Vec::as_slice)
    }

    /// Returns the next queue of effects behind `after`, the end of another one, if it is given; `None` behind the last one.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn next(
        &mut self,
        view: &impl Entries,
        after: Option<&[u8]>,
        now: Time,
    ) -> Result<Option<Queue>, ViewError> {
        let all = IndexKey::deliveries();
        let mut after = after.unwrap_or(&all).to_vec();
        loop {
            let known = self
                .begin
                .range(after.clone()..)
                .next()
                .map(|(destination, from)| (destination.clone(), from.clone()));
            let found = match &known {
                None => view.first_between(&after, &behind(&all))?,
                Some((destination, from)) => match view.first_between(&after, destination)? {
                    None => view.first_between(from, &behind(destination))?,
                    between => between,
                },
            };
            match (found, known) {
                (Some(entry), _) => {
                    self.learn(&entry, now);
                    return Ok(Some(Queue(entry)));
                }
                (None, None) => return Ok(None),
                (None, Some((destination, _))) => after = behind(&destination),
            }
        }
    }

    /// Notes that this entry is the first of its destination; what comes later is due later than now.
    fn learn(&mut self, first: &Key, now: Time) {
        let destination = IndexKey::destination(first);
        if self.begin.len() >= KNOWN_MAX && !self.begin.contains_key(&destination) {
            return;
        }
        let latest = Time(now.0.saturating_sub(SLACK_MS));
        let at = IndexKey::queued_of(first).map_or(Time(0), |due| due.at.min(latest));
        self.begin.insert(destination, IndexKey::destination_from(first, at));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};
    use switchward_machine::{Channel, Content, NodeIx, RunId, SessionId, TenantId};
    use switchward_state::{
        Row,
        delivery::{Effect, EffectBody, EffectSource, MessageText, Purpose},
        index_keys,
    };

    use super::*;

    /// Entries without their rows.
    #[derive(Default)]
    struct Index(BTreeSet<Vec<u8>>);

    impl Entries for Index {
        fn first_between(&self, after: &[u8], before: &[u8]) -> Result<Option<Key>, ViewError> {
            let found = self.0.range(after.to_vec()..before.to_vec()).find(|entry| **entry != after);
            Ok(found.and_then(|entry| Key::from_bytes(entry)))
        }
    }

    /// The entry of an effect of this number that is due at this time.
    fn entry(number: u64, destination: u32, at: u64) -> Vec<u8> {
        let (tenant, session) = (TenantId(1 + destination / 3), SessionId([7; 16]));
        let body = EffectBody::Message {
            channel: Channel::Webhook,
            to: format!("https://{destination}.example/"),
            text: MessageText::Written { subject: None, body: String::new(), content: Content::Text },
            gate: None,
            purpose: Purpose::Say,
            head: None,
        };
        let source = EffectSource::Run { run: RunId(1), node: NodeIx(1), entry: 1 };
        let effect = Effect { source, number, deliver_at: Time(at), trace: None, body, progress: None };
        let keys = index_keys(&Key::outbox(tenant, session, number), &Row::Outbox(effect));
        let deliveries = IndexKey::deliveries();
        let key = keys
            .into_iter()
            .find(|key| key.as_bytes().starts_with(&deliveries))
            .expect("the effect is queued");
        key.as_bytes().to_vec()
    }

    /// The first entry of each destination, found by a full scan.
    fn firsts(index: &Index) -> Vec<Vec<u8>> {
        let mut seen = BTreeSet::new();
        let destination = |entry: &&Vec<u8>| {
            seen.insert(IndexKey::destination(&Key::from_bytes(entry).expect("the entry is a key")))
        };
        index.0.iter().filter(destination).cloned().collect()
    }

    fn found(destinations: &mut Destinations, index: &Index, now: Time) -> Vec<Vec<u8>> {
        let (mut after, mut found) = (None, Vec::new());
        while let Some(queue) =
            destinations.next(index, after.as_deref(), now).expect("the index can be read")
        {
            let from = destinations.begin(&queue).expect("there are few destinations");
            assert!(from < queue.0.as_bytes(), "a scan from there finds the entry");
            found.push(queue.0.as_bytes().to_vec());
            after = Some(queue.end());
        }
        found
    }

    /// What is queued is due when it is written, or later; what is put off is due later.
    #[test]
    fn the_first_entry_of_each_destination_is_found_whatever_came_and_went() {
        for seed in 0..40 {
            let mut rng = StdRng::seed_from_u64(seed);
            let (mut destinations, mut index, mut now) =
                (Destinations::default(), Index::default(), 1_000_000);
            for number in 0..400 {
                match rng.random_range(0..4) {
                    0 => now += rng.random_range(0..2_000),
                    1 => drop(index.0.insert(entry(number, rng.random_range(0..8), now))),
                    2 => {
                        let later = now + rng.random_range(0..100_000);
                        index.0.insert(entry(number, rng.random_range(0..8), later));
                    }
                    _ => drop(index.0.pop_first()),
                }
                assert_eq!(
                    found(&mut destinations, &index, Time(now)),
                    firsts(&index),
                    "seed {seed}, step {number}"
                );
            }
        }
    }
}
