//! The cases of counters.

use super::{CaseResult, Factory, IDLE, SETTINGS, describe, ids, same, take};
use crate::bus::{Bus, Count, Counter, Counting, Settings};
use crate::error::BusError;
use crate::limits::{COUNTER_BYTES_MAX, COUNTERS_MAX, ID_BYTES_MAX};

/// An id that is counted in the counter `one` alone, which may reach `most`.
pub(super) fn one(id: &str, most: u32) -> Count {
    of(id, &[("one", most)])
}

fn of(id: &str, counters: &[(&str, u32)]) -> Count {
    let counter = |(name, most): &(&str, u32)| Counter { name: (*name).to_owned(), most: *most };
    Count { id: id.to_owned(), counters: counters.iter().map(counter).collect() }
}

async fn count(bus: &dyn Bus, count: Count) -> Result<Counting, String> {
    bus.count(&count).await.map_err(describe)
}

/// An id is counted once, in all counters or in none, until it is removed.
pub(super) async fn counted(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    same("the first id", count(&*bus, one("a", 2)).await?, Counting::Counted)?;
    same("the same again", count(&*bus, one("a", 1)).await?, Counting::Counted)?;
    same("beyond a lower maximum", count(&*bus, one("b", 1)).await?, Counting::Reached(0))?;
    same("the second id", count(&*bus, one("b", 2)).await?, Counting::Counted)?;
    same("beyond the maximum", count(&*bus, one("c", 2)).await?, Counting::Reached(0))?;
    let both = || of("c", &[("other", 1), ("one", 2)]);
    same("one of two is reached", count(&*bus, both()).await?, Counting::Reached(1))?;
    same("the other has nothing", count(&*bus, of("d", &[("other", 1)])).await?, Counting::Counted)?;
    bus.uncount(&of("d", &[("other", 1), ("unknown", 1)])).await.map_err(describe)?;
    bus.uncount(&one("a", 2)).await.map_err(describe)?;
    bus.uncount(&one("a", 2)).await.map_err(describe)?;
    same("after the removal", count(&*bus, both()).await?, Counting::Counted)?;
    same(
        "both are reached",
        count(&*bus, of("e", &[("one", 2), ("other", 1)])).await?,
        Counting::Reached(0),
    )?;
    same("a counter of none", count(&*bus, of("a", &[("none", 0)])).await?, Counting::Reached(0))?;
    same("no counters", count(&*bus, of("a", &[])).await?, Counting::Counted)?;
    sizes(&*bus).await
}

async fn sizes(bus: &dyn Bus) -> CaseResult {
    let (long, name) = ("i".repeat(ID_BYTES_MAX + 1), "n".repeat(COUNTER_BYTES_MAX + 1));
    let many = vec![("one", 9); COUNTERS_MAX + 1];
    for (what, wrong) in [
        ("id", one("", 1)),
        ("id", one(&long, 1)),
        ("counter", of("a", &[("", 1)])),
        ("counter", of("a", &[("one", 9), (&name, 1)])),
        ("counters", of("a", &many)),
    ] {
        match bus.count(&wrong).await {
            Err(BusError::Size { what: part, .. }) => same("the part that is wrong", part, what)?,
            other => return Err(format!("{what}: expected that its size is refused, got {other:?}")),
        }
    }
    Ok(())
}

/// A counter is forgotten after its time, and not before that as long as something is counted in it.
pub(super) async fn counted_for_a_while(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(Settings { counted: IDLE * 2, ..SETTINGS }).await;
    same("the first id", count(&*bus, one("a", 2)).await?, Counting::Counted)?;
    same("nothing else", ids(&take(&*bus, "one", 1, IDLE * 3 / 2).await?), vec![])?;
    same("the second id", count(&*bus, one("b", 2)).await?, Counting::Counted)?;
    same("nothing else", ids(&take(&*bus, "one", 1, IDLE).await?), vec![])?;
    same("the first id is still there", count(&*bus, one("c", 2)).await?, Counting::Reached(0))?;
    same("nothing else", ids(&take(&*bus, "one", 1, IDLE * 3 / 2).await?), vec![])?;
    same("after its time", count(&*bus, one("c", 1)).await?, Counting::Counted)
}
