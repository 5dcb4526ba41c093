//! What a server answers about its own replica.

use std::collections::BTreeSet;
use tokio::time::timeout;

use super::judge::is_majority;
use crate::blocking::blocking;
use crate::limits::DIGEST_ANSWER_WAIT;
use crate::marks::Digested;
use crate::members::{DigestAnswer, Outvoted};
use crate::shard::Shard;

/// The digest of the rows at a mark. If it is not there yet, waits for it for [`DIGEST_ANSWER_WAIT`] at most.
pub(crate) async fn digest(shard: &Shard, index: u64) -> DigestAnswer {
    let waits = async {
        let mut taken = shard.group().shared.marks.watch();
        let mut applied = shard.group().shared.applied();
        loop {
            match now(shard, index) {
                DigestAnswer::UnderWay | DigestAnswer::Behind => {}
                answer @ (DigestAnswer::Digest(_) | DigestAnswer::NoDigest(_)) => return answer,
            }
            // Both may be cancelled: the next look sees what has changed.
            let changed = tokio::select! {
                changed = taken.changed() => changed,
                changed = applied.changed() => changed,
            };
            if changed.is_err() {
                return now(shard, index);
            }
        }
    };
    timeout(DIGEST_ANSWER_WAIT, waits).await.unwrap_or_else(|_| now(shard, index))
}

fn now(shard: &Shard, index: u64) -> DigestAnswer {
    let group = shard.group();
    if let Some(why) = group.failed() {
        return DigestAnswer::NoDigest(why.to_owned());
    }
    // Before the digest is looked for: a mark is applied before its digest is begun.
    let is_behind = group.applied().is_none_or(|applied| applied <= index);
    match group.shared.marks.digest(index) {
        Some(Digested::Done(digest)) => DigestAnswer::Digest(digest),
        Some(Digested::UnderWay) => DigestAnswer::UnderWay,
        Some(Digested::Failed(why)) => DigestAnswer::NoDigest(why),
        None if is_behind => DigestAnswer::Behind,
        None => {
            DigestAnswer::NoDigest("its rows are newer: it got a snapshot, or was started again".to_owned())
        }
    }
}

/// Compares the own digest with that of a majority. If it differs, this server's replica fails, also after the next starts:
/// its log is as the others' and leads to other rows, so nothing here can mend it.
///
/// # Errors
/// This replica has no digest at the mark, or the servers named are no majority of the voters.
pub(crate) async fn outvoted(shard: &Shard, verdict: &Outvoted) -> Result<(), String> {
    let group = shard.group();
    let Some(Digested::Done(own)) = group.shared.marks.digest(verdict.index) else {
        return Err("this replica has no digest at that entry".to_owned());
    };
    if own == verdict.digest {
        return Ok(());
    }
    let voters: BTreeSet<u64> = group.raft().voter_ids().collect();
    let agree = verdict.servers.iter().collect::<BTreeSet<_>>();
    if !is_majority(agree.iter().filter(|server| voters.contains(server)).count(), voters.len()) {
        return Err("the servers that agree are no majority of the voters".to_owned());
    }
    let why = reason(&own, verdict);
    let (state, text) = (group.shared.state.clone(), why.clone());
    let recorded = blocking(move || state.set_wrong(&text)).await;
    if !matches!(&recorded, Ok(Ok(()))) {
        tracing::warn!(?recorded, "failed to record that a replica has failed; a restart forgets it");
    }
    group.fail(why);
    Ok(())
}

fn reason(own: &[u8; 32], verdict: &Outvoted) -> String {
    let Outvoted { index, digest, servers } = verdict;
    let short =
        |digest: &[u8; 32]| digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>();
    let servers = servers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    format!(
        "its rows are wrong: at entry {index} their digest is {}, and that of the servers {servers} is {}; replace this \
         server",
        short(own),
        short(digest)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_names_the_entry_and_those_who_agree() {
        let verdict = Outvoted { index: 41, digest: [0xab; 32], servers: vec![1, 3] };
        assert_eq!(
            reason(&[1; 32], &verdict),
            "its rows are wrong: at entry 41 their digest is 0101010101010101, and that of the servers 1, 3 is \
             abababababababab; replace this server"
        );
    }
}
