//! The rows that are attached to a reply come to another server with all that is shown of them.

use switchward_engine::{SentRows, encode_loaded};
use switchward_scenario::{Answer, Broken};
use switchward_state::work::WorkCommand;
use switchward_state::{Body, Command};

use super::CarefulMemory;
use crate::rows::Rows;

/// The rows of a reply are read again as they were sent, with the machines that are installed there; without the machines
/// they are not completed. A reply that shows where an existing session stands, and one that leases work, has rows.
pub(super) fn attached(memory: &CarefulMemory, command: &Command, answer: &Answer) -> Result<(), Broken> {
    let Ok(reply) = answer else { return Ok(()) };
    let mut reply = reply.clone();
    let leases = matches!(command.body, Body::Work(WorkCommand::Lease(_)));
    let needed = leases || reply.position_mut().is_some();
    let rows = reply.take_loaded();
    let Some(sent) = encode_loaded(&rows) else {
        return if needed { Err(Broken(format!("{reply:?} has no rows"))) } else { Ok(()) };
    };
    let broken = |problem: &str| Broken(format!("the rows of {reply:?}: {problem}"));
    let read = SentRows::decode(&sent).map_err(|error| broken(&error.to_string()))?;
    let shard = &memory.shards()[memory.home(command.tenant, &command.scope)];
    let completed = read.complete(shard, command.tenant)?;
    if completed.and_then(|rows| encode_loaded(&rows)) != Some(sent) {
        return Err(broken("they differ after they were sent"));
    }
    match read.complete(&Rows::default(), command.tenant)? {
        None => Ok(()),
        Some(_) => Err(broken("they are completed without a machine")),
    }
}
