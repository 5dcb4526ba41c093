//! The bus of several processes, over Redis streams. Requires Redis 7.0 or newer.
//!
//! `<space>` is the prefix, followed by a colon and the owner if one is given.
//!
//! | Key | What it is |
//! |---|---|
//! | `<space>:<stream>` | a stream; its entries have the fields `tenant`, `id` and `body`, and its one group is [`GROUP`] |
//! | `{<space>:<stream>}:bytes` | the bytes of the bodies in it |
//! | `{<space>:<stream>}:ids` | the envelopes' ids in it, each with the time until which it is taken and its entry |
//! | `{<space>:counters}:<name>` | a counter: the set of the ids that are counted in it; it expires |
//! | `<space>:answer:<name>` | a list of the answers under a name that nobody has taken; it expires |
//!
//! Acknowledged entries are deleted, so the length of a stream counts the unacknowledged ones. All data may vanish at any
//! time: the group is created again, counter and ids begin again with an empty stream, and the owner of the record publishes
//! again.
//!
//! All times are those of the server: the scripts ask its clock, and the id of an entry begins with the time at which it was
//! added. So the clocks of publishers and consumers do not matter.
//!
//! Every command but one goes over one connection that all callers share, which pipelines the commands of concurrent
//! callers. A blocking read has a connection of its own.

mod answers;
mod config;
mod entry;
mod fault;
mod link;
mod probe;
mod scripts;
#[cfg(test)]
mod tests;

use std::time::Duration;

use ::redis::{RedisResult, ScriptInvocation, Value, cmd, pipe};
use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

pub use config::{OpenError, RedisConfig};
pub use probe::{Probe, probe};

use crate::bus::{
    Bus, Count, Counting, Delivery, Envelope, Published, Receipt, Stream, check_answer, check_answer_name,
    check_consumer,
};
use crate::error::BusError;
use crate::limits::{BLOCK_MS_MAX, FULL_RETRY_MS, RECEIPTS_MAX, REGROUP_MS, SWEEP_MS, TAKE_MAX, WAIT_MS_MAX};
use entry::{Entry, Receipted, of_receipt};
use fault::{Fault, What};
use link::{Link, Own};
use scripts::Scripts;

/// The consumer group of every stream.
const GROUP: &str = "consumers";

/// The answers of a read that blocks, and of `TIME`: seconds and microseconds.
type ReadAndTime = (RedisResult<Value>, RedisResult<(u64, u64)>);

/// A [`Bus`] over Redis streams. All that have the same server, prefix and owner are ends of the same bus.
pub struct Redis {
    config: RedisConfig,
    link: Link,
    scripts: Scripts,
    keys: [Keys; Stream::ALL.len()],
    /// When the consumers of each stream were last swept.
    swept: Mutex<[Option<Instant>; Stream::ALL.len()]>,
    closed: watch::Sender<bool>,
}

/// The keys of one stream. They differ only after the braces, so that they are on one server.
struct Keys {
    stream: String,
    bytes: String,
    ids: String,
}

impl Redis {
    /// Opens a bus and tries once to reach its server. If that fails, it is logged, and later calls try again.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: the address or the prefix cannot be used, or the server refuses the password.
    pub async fn open(config: RedisConfig) -> Result<Self, OpenError> {
        let (client, address) = config.client()?;
        // TLS uses the provider of the process; an error means that one is installed already.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let keys = Stream::ALL.map(|stream| {
            let stream = format!("{}:{stream}", config.space());
            Keys { bytes: format!("{{{stream}}}:bytes"), ids: format!("{{{stream}}}:ids"), stream }
        });
        let link = Link::new(client, address, config.response);
        if let Err(fault) = link.dial(config.response).await
            && fault.what == What::Password
        {
            return Err(OpenError::Password { address: link.address().to_owned(), message: fault.message });
        }
        let (swept, closed) = (Mutex::default(), watch::Sender::new(false));
        Ok(Self { config, link, scripts: Scripts::new(), keys, swept, closed })
    }

    fn keys(&self, stream: Stream) -> &Keys {
        // In the order of `Stream::ALL`, which is that of the enum.
        &self.keys[stream as usize]
    }

    /// The keys of the counters of a count.
    fn counters(&self, count: &Count) -> Vec<String> {
        let space = self.config.space();
        count.counters.iter().map(|it| format!("{{{space}:counters}}:{}", it.name)).collect()
    }

    fn check_open(&self) -> Result<(), BusError> {
        if *self.closed.borrow() { Err(BusError::Closed) } else { Ok(()) }
    }

    /// Runs a script on the shared connection.
    async fn run(&self, script: &ScriptInvocation<'_>) -> Result<Value, BusError> {
        let mut shared = self.link.shared().await?;
        let answer = script.invoke_async(&mut shared.connection).await;
        answer.map_err(|error| self.link.failed(&shared, &error))
    }

    /// The idle time, in milliseconds.
    fn idle_ms(&self) -> u64 {
        ms(self.config.settings.idle).max(1)
    }

    async fn take_until(
        &self,
        stream: Stream,
        consumer: &str,
        max: usize,
        end: Instant,
    ) -> Result<Vec<Delivery>, BusError> {
        self.sweep(stream).await;
        loop {
            let found = self.look(stream, consumer, max).await?;
            let nothing = found.is_empty();
            let deliveries = self.sort_out(stream, found).await;
            let left = end.saturating_duration_since(Instant::now());
            if !deliveries.is_empty() || (nothing && left.is_zero()) {
                return Ok(deliveries);
            }
            // After foreign entries there may be more; each round removes some.
            if nothing {
                let found = self.wait(stream, consumer, max, left).await?;
                let deliveries = self.sort_out(stream, found).await;
                if !deliveries.is_empty() {
                    return Ok(deliveries);
                }
            }
        }
    }

    /// Takes what is available now.
    async fn look(&self, stream: Stream, consumer: &str, max: usize) -> Result<Vec<Entry>, BusError> {
        let mut script = self.scripts.take.key(self.keys(stream).stream.as_str());
        script.arg(GROUP).arg(consumer).arg(self.idle_ms()).arg(max);
        self.run(&script).await.map(Entry::of_script)
    }

    /// Waits for new entries, on a connection of its own. Ends early from time to time, as redeliveries become due without a
    /// notification.
    async fn wait(
        &self,
        stream: Stream,
        consumer: &str,
        max: usize,
        left: Duration,
    ) -> Result<Vec<Entry>, BusError> {
        // 0 would block for ever.
        let block = ms(left).min(BLOCK_MS_MAX).min(self.idle_ms() / 8).max(1);
        let mut own = self.link.own().await?;
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(consumer).arg("COUNT").arg(max).arg("BLOCK").arg(block);
        read.arg("STREAMS").arg(&self.keys(stream).stream).arg(">");
        // One round trip: the server answers TIME as soon as the read before it has ended.
        let mut both = pipe();
        both.add_command(read).cmd("TIME").ignore_errors();
        let answers: RedisResult<ReadAndTime> = both.query_async(&mut own.connection).await;
        match answers.and_then(|(entries, time)| Ok((entries?, time?))) {
            Ok((entries, (seconds, micros))) => {
                self.link.spare(own);
                let now_ms = seconds.saturating_mul(1_000).saturating_add(micros / 1_000);
                Ok(Entry::of_read(entries, now_ms))
            }
            // The next look creates the group again. The pause is for a group that is destroyed repeatedly.
            Err(error) if Fault::read(&error).what == What::Group => {
                self.link.spare(own);
                sleep(Duration::from_millis(REGROUP_MS)).await;
                Ok(Vec::new())
            }
            Err(error) => self.wait_failed(&own, &error).map(|()| Vec::new()),
        }
    }

    /// A spare connection may have ended meanwhile, and the other spares with it: then the caller tries with a new one.
    fn wait_failed(&self, own: &Own, error: &::redis::RedisError) -> Result<(), BusError> {
        self.link.drop_spare();
        if own.fresh { Err(self.link.failed_waiting(error)) } else { Ok(()) }
    }

    /// Returns the deliveries among these entries, and acknowledges foreign entries to remove them.
    async fn sort_out(&self, stream: Stream, entries: Vec<Entry>) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        let mut foreign = Vec::new();
        for entry in entries {
            let id = entry.id.clone();
            match entry.read() {
                Some(delivery) => deliveries.push(delivery),
                None => foreign.push(Receipt::new(format!("{id}/0/"))),
            }
        }
        if !foreign.is_empty() {
            let (first, number) = (foreign[0].as_str(), foreign.len());
            tracing::warn!(%stream, first, number, "dropped entries of a stream that this bus did not write");
            if let Err(error) = self.ack(stream, &foreign).await {
                tracing::warn!(%stream, %error, "failed to drop entries that this bus did not write; they come again");
            }
        }
        deliveries
    }

    /// Deletes consumers that are gone, unless that was done recently.
    async fn sweep(&self, stream: Stream) {
        let (now, gone) = (Instant::now(), self.config.consumer_gone);
        let every = gone.min(Duration::from_millis(SWEEP_MS));
        {
            let mut swept = self.swept.lock();
            let last = &mut swept[stream as usize];
            if last.is_some_and(|at| now.duration_since(at) < every) {
                return;
            }
            *last = Some(now);
        }
        let mut script = self.scripts.sweep.key(self.keys(stream).stream.as_str());
        script.arg(GROUP).arg(ms(gone));
        if let Err(error) = self.run(&script).await {
            tracing::debug!(%stream, %error, "failed to look for consumers that are gone");
        }
    }

    /// Sets the idle time of deliveries that a consumer holds, and with `known_ms` above 0 the time for which their ids are
    /// taken.
    async fn age(
        &self,
        stream: Stream,
        consumer: &str,
        receipts: &[Receipt],
        idle_ms: u64,
        known_ms: u64,
    ) -> Result<(), BusError> {
        self.check_open()?;
        let keys = self.keys(stream);
        let known: Vec<Receipted<'_>> = receipts.iter().filter_map(of_receipt).collect();
        for known in known.chunks(RECEIPTS_MAX) {
            let mut script = self.scripts.age.key(keys.stream.as_str());
            script.key(keys.ids.as_str()).arg(GROUP).arg(consumer).arg(idle_ms).arg(known_ms);
            for receipted in known {
                script.arg(receipted.entry).arg(receipted.id);
            }
            self.run(&script).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Bus for Redis {
    async fn publish(&self, stream: Stream, envelope: Envelope) -> Result<Published, BusError> {
        envelope.check()?;
        self.check_open()?;
        let (keys, settings) = (self.keys(stream), &self.config.settings);
        let mut script = self.scripts.publish.key(keys.stream.as_str());
        script.key(keys.bytes.as_str()).key(keys.ids.as_str());
        script.arg(settings.envelopes_max).arg(settings.bytes_max).arg(ms(settings.id_known));
        script.arg(envelope.tenant).arg(envelope.id).arg(envelope.body);
        let answer = self.run(&script).await?;
        if answer == Value::Int(0) {
            return Err(BusError::Full { stream, retry_after: Duration::from_millis(FULL_RETRY_MS) });
        }
        Ok(if answer == Value::Int(2) { Published::Already } else { Published::Added })
    }

    async fn ready(&self, stream: Stream) -> Result<(), BusError> {
        self.check_open()?;
        let (keys, settings) = (self.keys(stream), &self.config.settings);
        let mut script = self.scripts.ready.key(keys.stream.as_str());
        script.key(keys.bytes.as_str()).arg(settings.envelopes_max).arg(settings.bytes_max);
        if self.run(&script).await? == Value::Int(0) {
            return Err(BusError::Full { stream, retry_after: Duration::from_millis(FULL_RETRY_MS) });
        }
        Ok(())
    }

    async fn take(
        &self,
        stream: Stream,
        consumer: &str,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        check_consumer(consumer)?;
        self.check_open()?;
        if max == 0 {
            return Ok(Vec::new());
        }
        let end = Instant::now() + wait.min(Duration::from_millis(WAIT_MS_MAX));
        let mut closed = self.closed.subscribe();
        // Either may be dropped: deliveries that were taken by then come again after the idle time.
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => Err(BusError::Closed),
            taken = self.take_until(stream, consumer, max.min(TAKE_MAX), end) => taken,
        }
    }

    async fn ack(&self, stream: Stream, receipts: &[Receipt]) -> Result<(), BusError> {
        self.check_open()?;
        let keys = self.keys(stream);
        let known: Vec<Receipted<'_>> = receipts.iter().filter_map(of_receipt).collect();
        for known in known.chunks(RECEIPTS_MAX) {
            let mut script = self.scripts.ack.key(keys.stream.as_str());
            script.key(keys.bytes.as_str()).key(keys.ids.as_str()).arg(GROUP);
            for receipted in known {
                script.arg(receipted.entry).arg(receipted.bytes).arg(receipted.id);
            }
            self.run(&script).await?;
        }
        Ok(())
    }

    async fn keep(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError> {
        self.age(stream, consumer, receipts, 0, ms(self.config.settings.id_known)).await
    }

    async fn release(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError> {
        self.age(stream, consumer, receipts, self.idle_ms(), 0).await
    }

    async fn count(&self, count: &Count) -> Result<Counting, BusError> {
        count.check()?;
        self.check_open()?;
        let mut script = self.scripts.count.prepare_invoke();
        script.arg(&count.id).arg(ms(self.config.settings.counted).max(1));
        for (key, counter) in self.counters(count).iter().zip(&count.counters) {
            script.key(key).arg(counter.most);
        }
        // Positions begin with 1.
        let reached = if let Value::Int(position) = self.run(&script).await? { position - 1 } else { -1 };
        Ok(usize::try_from(reached).map_or(Counting::Counted, Counting::Reached))
    }

    async fn uncount(&self, count: &Count) -> Result<(), BusError> {
        self.check_open()?;
        let mut script = self.scripts.uncount.prepare_invoke();
        script.arg(&count.id);
        for key in self.counters(count) {
            script.key(key);
        }
        self.run(&script).await.map(drop)
    }

    async fn answer(&self, name: &str, answer: Vec<u8>) -> Result<(), BusError> {
        check_answer(name, &answer)?;
        self.check_open()?;
        self.give_answer(name, answer).await
    }

    async fn answered(&self, name: &str, wait: Duration) -> Result<Option<Vec<u8>>, BusError> {
        check_answer_name(name)?;
        self.check_open()?;
        let end = Instant::now() + wait.min(Duration::from_millis(WAIT_MS_MAX));
        let mut closed = self.closed.subscribe();
        // Dropped only when the bus is closed, or its caller has gone.
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => Err(BusError::Closed),
            taken = self.take_answer(name, end) => taken,
        }
    }

    async fn close(&self) {
        self.closed.send_replace(true);
        self.link.close();
    }
}

/// Whole milliseconds, rounded up so that a wait is never too short.
fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
