//! The cases of answers to callers that wait.

use super::{CaseResult, Factory, IDLE, NONE, SETTINGS, SOON, describe, ids, same, take};
use crate::bus::{Bus, Settings};
use crate::error::BusError;
use crate::limits::{ANSWER_BYTES_MAX, ID_BYTES_MAX};

/// An answer reaches who waits for it, before or after it was given, once, and nobody else.
pub(super) async fn answered(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    same("no answer", bus.answered("a", NONE).await, Ok(None))?;
    for answer in [b"one".to_vec(), vec![0, 255, 10, 13], Vec::new()] {
        bus.answer("a", answer).await.map_err(describe)?;
    }
    same("under another name", bus.answered("b", NONE).await, Ok(None))?;
    same("the first", bus.answered("a", NONE).await, Ok(Some(b"one".to_vec())))?;
    same("the second", bus.answered("a", SOON).await, Ok(Some(vec![0, 255, 10, 13])))?;
    same("the third", bus.answered("a", SOON).await, Ok(Some(Vec::new())))?;
    same("each is taken once", bus.answered("a", NONE).await, Ok(None))?;
    let (waiting, others) = (bus.answered("a", SOON), bus.answered("b", IDLE));
    let giving = async {
        tokio::task::yield_now().await;
        bus.answer("a", b"late".to_vec()).await
    };
    let (taken, other, given) = tokio::join!(waiting, others, giving);
    given.map_err(describe)?;
    same("who waits", taken, Ok(Some(b"late".to_vec())))?;
    same("who waits under another name", other, Ok(None))?;
    sizes(&*bus).await
}

async fn sizes(bus: &dyn Bus) -> CaseResult {
    let (long, most) = ("n".repeat(ID_BYTES_MAX + 1), vec![b'x'; ANSWER_BYTES_MAX]);
    bus.answer("most", most.clone()).await.map_err(describe)?;
    same("the longest answer", bus.answered("most", SOON).await, Ok(Some(most.clone())))?;
    let larger = [most, vec![b'x']].concat();
    for (part, refused) in [
        ("name", bus.answer("", Vec::new()).await),
        ("name", bus.answer(&long, Vec::new()).await),
        ("answer", bus.answer("a", larger).await),
        ("name", bus.answered("", NONE).await.map(drop)),
        ("name", bus.answered(&long, NONE).await.map(drop)),
    ] {
        match refused {
            Err(BusError::Size { what, .. }) => same("the part that is wrong", what, part)?,
            other => return Err(format!("{part}: expected that its size is refused, got {other:?}")),
        }
    }
    Ok(())
}

/// An answer that nobody takes is forgotten after its time, and not before.
pub(super) async fn kept_for_a_while(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(Settings { answer_kept: IDLE * 2, ..SETTINGS }).await;
    for name in ["a", "b"] {
        bus.answer(name, name.into()).await.map_err(describe)?;
    }
    same("nothing else", ids(&take(&*bus, "one", 1, IDLE).await?), vec![])?;
    same("within its time", bus.answered("a", NONE).await, Ok(Some(b"a".to_vec())))?;
    same("nothing else", ids(&take(&*bus, "one", 1, IDLE * 3 / 2).await?), vec![])?;
    same("after its time", bus.answered("b", NONE).await, Ok(None))
}
