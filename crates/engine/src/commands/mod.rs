//! Commands: one file each.

mod answer;
mod authorize;
mod cancel;
mod decide_gate;
mod definitions;
mod discuss_gate;
mod effects;
mod keys;
mod ledger;
mod pause;
mod raise_cap;
mod report;
mod start;
mod sweep;
mod tenants;

pub(crate) use authorize::well_formed;
pub(crate) use decide_gate::entitled;

use crate::Reply;
use crate::command::Body;
use crate::turn::{Stop, Turn};

/// Runs the command of the turn.
pub(crate) fn dispatch(turn: &mut Turn<'_, '_>) -> Result<Reply, Stop> {
    match &turn.command.body {
        Body::Start(start) => start::run(turn, start),
        Body::Answer(answer) => answer::run(turn, answer),
        Body::Authorize(call) => authorize::run(turn, call),
        Body::ReportCall(report) => report::call(turn, report),
        Body::ReportUsage(report) => report::usage(turn, report),
        Body::DecideGate(decide) => decide_gate::run(turn, decide),
        Body::DiscussGate(discuss) => discuss_gate::run(turn, discuss),
        Body::RaiseCap(raise) => raise_cap::run(turn, raise),
        Body::Pause(pause) => pause::pause(turn, pause),
        Body::Resume(resume) => pause::resume(turn, resume),
        Body::Cancel(cancel) => cancel::run(turn, cancel),
        Body::AckEffect(ack) => effects::ack(turn, ack),
        Body::Sweep(sweep) => sweep::run(turn, sweep),
        Body::Reserve(reserve) => ledger::reserve(turn, reserve),
        Body::Confirm(confirm) => ledger::confirm(turn, confirm),
        Body::Settle(settle) => ledger::settle(turn, settle),
        Body::InstallMachine(install) => definitions::install(turn, install),
        Body::CreateTenant(create) => tenants::create(turn, create),
        Body::UpdateTenant(update) => tenants::update(turn, update),
        Body::CreateKey(create) => keys::create(turn, create),
        Body::RevokeKey(revoke) => keys::revoke(turn, revoke),
        Body::Deploy(deploy) => definitions::deploy(turn, deploy),
        Body::ActivateVersion(activate) => definitions::activate(turn, activate),
    }
}
