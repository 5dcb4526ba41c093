//! The leader of a group stops to decide, writes its mark and goes on.

use std::sync::Arc;
use tokio::time::{sleep, timeout};

use super::paused::Pause;
use crate::limits::{BACKUP_PAUSE_MAX, BACKUP_STOP_WAIT};
use crate::mark::{ID_BYTES, Mark, Takes};
use crate::members::Marked;
use crate::shard::Shard;
use crate::verify::write_mark;

/// Stops to decide, until [`mark`] or [`resume`], [`BACKUP_PAUSE_MAX`] at most.
///
/// # Errors
/// This server does not lead, or a batch takes too long.
pub(crate) async fn pause(shard: &Shard, id: [u8; ID_BYTES]) -> Result<(), String> {
    let shared = &shard.group().shared;
    let deciding = timeout(BACKUP_STOP_WAIT, Arc::clone(&shared.deciding).lock_owned()).await;
    let deciding = deciding.map_err(|_| "the leader is busy".to_owned())?;
    let term = timeout(BACKUP_STOP_WAIT, shard.term()).await;
    let term = term.map_err(|_| "no majority answers".to_owned())?.map_err(|failure| failure.to_string())?;
    *shared.pause.lock() = Some(Pause { id, term, _deciding: deciding });
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        sleep(BACKUP_PAUSE_MAX).await;
        drop(taken(&shared.pause, id));
    });
    Ok(())
}

/// Writes the mark in the term in which this server has stopped, and goes on.
///
/// # Errors
/// It has gone on before, leads no longer, or no majority has the entry in time.
pub(crate) async fn mark(shard: &Shard, id: [u8; ID_BYTES]) -> Result<Marked, String> {
    let paused = taken(&shard.group().shared.pause, id);
    let paused = paused.ok_or_else(|| "the leader has gone on".to_owned())?;
    write_mark(shard, paused.term, Mark { id, takes: Takes::Rows }).await
}

/// Goes on without a mark.
pub(crate) fn resume(shard: &Shard, id: [u8; ID_BYTES]) {
    drop(taken(&shard.group().shared.pause, id));
}

fn taken(pause: &parking_lot::Mutex<Option<Pause>>, id: [u8; ID_BYTES]) -> Option<Pause> {
    let mut pause = pause.lock();
    if pause.as_ref().is_some_and(|pause| pause.id == id) { pause.take() } else { None }
}
