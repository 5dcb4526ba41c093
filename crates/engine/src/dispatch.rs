//! Commands go to their aggregate.

use switchward_state::{Body, Reply};

use crate::catalogue::delete_tenant;
use crate::turn::{Stop, Turn};
use crate::{approval, catalogue, delivery, driver, policy, run, session, work};

/// Runs the command of the turn, and then what it leaves to the driver.
pub(crate) fn dispatch(turn: &mut Turn<'_, '_>) -> Result<Reply, Stop> {
    delete_tenant::check(turn)?;
    let mut reply = carry_out(turn)?;
    if turn.next.is_some() {
        driver::run(turn)?;
        reply.moved_to(turn.session()?.sequence);
    }
    Ok(reply)
}

fn carry_out(turn: &mut Turn<'_, '_>) -> Result<Reply, Stop> {
    match &turn.command.body {
        Body::Session(command) => session::run(turn, command),
        Body::Run(command) => run::run(turn, command),
        Body::Approval(command) => approval::run(turn, command),
        Body::Work(command) => work::run(turn, command),
        Body::Delivery(command) => delivery::run(turn, command),
        Body::Policy(command) => policy::run_command(turn, command),
        Body::Catalogue(command) => catalogue::run(turn, command),
    }
}
