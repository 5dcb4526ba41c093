//! The suite on the bus in memory, and on buses that are each wrong in one way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::bus::{Bus, Count, Counting, Delivery, Envelope, Published, Receipt, Settings, Stream};
use crate::conformance::{CASES, Factory, run};
use crate::error::BusError;
use crate::limits::{BODY_BYTES_MAX, ID_BYTES_MAX};
use crate::memory::Memory;

struct Right;

#[async_trait]
impl Factory for Right {
    async fn bus(&self, settings: Settings) -> Arc<dyn Bus> {
        Arc::new(Memory::new(settings))
    }
}

#[tokio::test(start_paused = true)]
async fn the_bus_in_memory_passes_the_suite() {
    assert_eq!(run(&Right).await, []);
}

/// What is wrong with a bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Reversed,
    Lost,
    NeverAgain,
    KeepsNothing,
    ReleasesNothing,
    ForgetsAcks,
    TakesTwice,
    KnowsForEver,
    ForgetsStored,
    Ageless,
    GivesToBoth,
    NotWoken,
    OneStream,
    NoSizes,
    NeverFull,
    OneTenant,
    DoesNotWait,
    CountsEachTime,
    CountsForEver,
    AnswersTwice,
    KeepsAnswers,
    StaysOpen,
}

/// Each fault, and the case that must find it.
const FAULTS: &[(Fault, &str)] = &[
    (Fault::Reversed, "order"),
    (Fault::Lost, "at least once"),
    (Fault::NeverAgain, "redelivery"),
    (Fault::KeepsNothing, "keep"),
    (Fault::ReleasesNothing, "release"),
    (Fault::ForgetsAcks, "acknowledged"),
    (Fault::TakesTwice, "one id"),
    (Fault::KnowsForEver, "known for a while"),
    (Fault::ForgetsStored, "kept ids"),
    (Fault::Ageless, "age"),
    (Fault::GivesToBoth, "shared"),
    (Fault::NotWoken, "woken"),
    (Fault::OneStream, "streams apart"),
    (Fault::NoSizes, "sizes"),
    (Fault::NeverFull, "full"),
    (Fault::OneTenant, "carried"),
    (Fault::DoesNotWait, "empty wait"),
    (Fault::CountsEachTime, "counted"),
    (Fault::CountsForEver, "counted for a while"),
    (Fault::AnswersTwice, "answered"),
    (Fault::KeepsAnswers, "answers for a while"),
    (Fault::StaysOpen, "close"),
];

struct Wrong(Fault);

#[async_trait]
impl Factory for Wrong {
    async fn bus(&self, mut settings: Settings) -> Arc<dyn Bus> {
        if self.0 == Fault::NeverAgain {
            settings.idle = Duration::from_secs(86_400);
        }
        if self.0 == Fault::KnowsForEver {
            settings.id_known = Duration::from_secs(86_400);
        }
        if self.0 == Fault::CountsForEver {
            settings.counted = Duration::from_secs(86_400);
        }
        if self.0 == Fault::KeepsAnswers {
            settings.answer_kept = Duration::from_secs(86_400);
        }
        Arc::new(Faulty { inner: Memory::new(settings), fault: self.0, times: AtomicUsize::new(0) })
    }
}

struct Faulty {
    inner: Memory,
    fault: Fault,
    /// Calls of `count`.
    times: AtomicUsize,
}

impl Faulty {
    fn stream(&self, stream: Stream) -> Stream {
        if self.fault == Fault::OneStream { Stream::Http } else { stream }
    }
}

#[async_trait]
impl Bus for Faulty {
    async fn publish(&self, stream: Stream, mut envelope: Envelope) -> Result<Published, BusError> {
        if self.fault == Fault::Lost {
            return Ok(Published::Added);
        }
        if self.fault == Fault::OneTenant {
            envelope.tenant = 1;
        }
        if self.fault == Fault::NoSizes {
            envelope.body.truncate(BODY_BYTES_MAX);
            envelope.id.truncate(ID_BYTES_MAX);
        }
        match self.inner.publish(self.stream(stream), envelope.clone()).await {
            Err(BusError::Full { .. }) if self.fault == Fault::NeverFull => Ok(Published::Added),
            Ok(Published::Already) if self.fault == Fault::TakesTwice => {
                envelope.id.push('2');
                self.inner.publish(self.stream(stream), envelope).await
            }
            other => other,
        }
    }

    async fn ready(&self, stream: Stream) -> Result<(), BusError> {
        self.inner.ready(self.stream(stream)).await
    }

    async fn take(
        &self,
        stream: Stream,
        consumer: &str,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        let stream = self.stream(stream);
        let first = if self.fault == Fault::DoesNotWait { Duration::ZERO } else { wait };
        if self.fault == Fault::NotWoken {
            let taken = self.inner.take(stream, consumer, max, Duration::ZERO).await?;
            if taken.is_empty() && max > 0 {
                tokio::time::advance(wait).await;
            }
            return if taken.is_empty() {
                self.inner.take(stream, consumer, max, Duration::ZERO).await
            } else {
                Ok(taken)
            };
        }
        let mut taken = self.inner.take(stream, consumer, max, first).await?;
        if self.fault == Fault::Reversed {
            taken.reverse();
        }
        if self.fault == Fault::Ageless {
            taken.iter_mut().for_each(|delivery| delivery.age = Duration::ZERO);
        }
        if self.fault == Fault::GivesToBoth {
            let receipts: Vec<Receipt> = taken.iter().map(|delivery| delivery.receipt.clone()).collect();
            self.inner.release(stream, consumer, &receipts).await?;
        }
        Ok(taken)
    }

    async fn ack(&self, stream: Stream, receipts: &[Receipt]) -> Result<(), BusError> {
        let receipts = if self.fault == Fault::ForgetsAcks { &[] } else { receipts };
        self.inner.ack(self.stream(stream), receipts).await
    }

    async fn keep(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError> {
        let keeps_nothing = [Fault::KeepsNothing, Fault::ForgetsStored].contains(&self.fault);
        let receipts = if keeps_nothing { &[] } else { receipts };
        self.inner.keep(self.stream(stream), consumer, receipts).await
    }

    async fn release(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError> {
        let receipts = if self.fault == Fault::ReleasesNothing { &[] } else { receipts };
        self.inner.release(self.stream(stream), consumer, receipts).await
    }

    async fn count(&self, count: &Count) -> Result<Counting, BusError> {
        let mut count = count.clone();
        // An id that no call before had.
        if self.fault == Fault::CountsEachTime && !count.id.is_empty() && count.id.len() < ID_BYTES_MAX {
            self.times.fetch_add(1, Ordering::Relaxed);
            count.id = self.times.load(Ordering::Relaxed).to_string();
        }
        self.inner.count(&count).await
    }

    async fn uncount(&self, count: &Count) -> Result<(), BusError> {
        self.inner.uncount(count).await
    }

    async fn answer(&self, name: &str, answer: Vec<u8>) -> Result<(), BusError> {
        self.inner.answer(name, answer).await
    }

    async fn answered(&self, name: &str, wait: Duration) -> Result<Option<Vec<u8>>, BusError> {
        let answered = self.inner.answered(name, wait).await?;
        if let Some(answer) = &answered
            && self.fault == Fault::AnswersTwice
        {
            self.inner.answer(name, answer.clone()).await?;
        }
        Ok(answered)
    }

    async fn close(&self) {
        if self.fault != Fault::StaysOpen {
            self.inner.close().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_case_finds_the_bus_that_breaks_it() {
    for (fault, case) in FAULTS {
        let failures = run(&Wrong(*fault)).await;
        assert!(failures.iter().any(|failure| failure.case == *case), "{fault:?}: {failures:?}");
    }
}

#[test]
fn every_case_has_a_bus_that_breaks_it() {
    let broken: Vec<&str> = FAULTS.iter().map(|(_, case)| *case).collect();
    assert_eq!(broken, CASES);
}

#[tokio::test(start_paused = true)]
async fn several_waiting_takers_share_what_comes_at_once() {
    let bus = Arc::new(Memory::default());
    let takers: Vec<_> = (0..4)
        .map(|taker| {
            let bus = Arc::clone(&bus);
            tokio::spawn(async move {
                bus.take(Stream::Model, &format!("taker {taker}"), 1, Duration::from_secs(9)).await
            })
        })
        .collect();
    tokio::task::yield_now().await;
    for id in ["a", "b", "c", "d"] {
        let envelope = Envelope { tenant: 1, id: id.to_owned(), body: Vec::new() };
        let published = bus.publish(Stream::Model, envelope).await.expect("the stream has capacity");
        assert_eq!(published, Published::Added);
    }
    let mut ids = Vec::new();
    for taker in takers {
        let taken = taker.await.expect("the taker does not panic").expect("the bus is open");
        ids.extend(taken.into_iter().map(|delivery| delivery.envelope.id));
    }
    ids.sort();
    assert_eq!(ids, ["a", "b", "c", "d"]);
}
