//! Commands: one file each.

mod answer;
mod answer_gate;
mod assistants;
mod authorize;
mod cancel;
mod classify;
mod decide_gate;
mod definitions;
mod delete_tenant;
mod discuss_gate;
mod effects;
mod end_turn;
mod endpoints;
mod keys;
mod ledger;
mod page_code;
mod pause;
mod policies;
mod post_message;
mod quotas;
mod raise_cap;
mod record_data;
mod record_event;
mod record_reply;
mod remove;
mod report;
mod republish;
mod reseal;
mod retention;
mod retry_node;
mod signal_completion;
mod start;
mod sweep;
mod switch_run;
mod tenancy;
mod tenant_outbox;
mod tenants;
mod timers;
mod webhook_sources;
mod work;

pub(crate) use authorize::well_formed;
pub(crate) use classify::ask_about;
pub(crate) use decide_gate::{entitled, may_decide};
pub use quotas::exceeded;
pub(crate) use record_reply::{decision_of, own_words};
pub(crate) use tenancy::check_quorum;
pub(crate) use work::schema_of;

use switchward_machine::RunId;

use crate::command::{Body, Scope};
use crate::turn::{Stop, Turn};
use crate::{Reason, Rejection, Reply};

/// What belongs to a conversation is refused in a process that is none.
fn conversation(turn: &Turn<'_, '_>, run: RunId) -> Result<(), Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    if machine.node(at.node).is_some_and(|node| node.records) {
        return Ok(());
    }
    Err(Rejection::new(Reason::StateMismatch, "nothing here takes this: the process is no conversation")
        .into())
}

/// Whether it is about what is the tenant's own.
fn of_tenant(turn: &Turn<'_, '_>) -> bool {
    turn.command.scope == Scope::Catalogue
}

/// Runs the command of the turn.
pub(crate) fn dispatch(turn: &mut Turn<'_, '_>) -> Result<Reply, Stop> {
    delete_tenant::check(turn)?;
    carry_out(turn)
}

fn carry_out(turn: &mut Turn<'_, '_>) -> Result<Reply, Stop> {
    match &turn.command.body {
        Body::Start(start) => start::run(turn, start),
        Body::Answer(answer) => answer::run(turn, answer),
        Body::PostMessage(post) => post_message::run(turn, post),
        Body::EndTurn(end) => end_turn::run(turn, end),
        Body::RecordData(record) => record_data::run(turn, record),
        Body::SignalCompletion => signal_completion::run(turn),
        Body::RetryNode => retry_node::run(turn),
        Body::RecordEvent(event) => record_event::run(turn, event),
        Body::RecordReply(reply) => record_reply::run(turn, reply),
        Body::SwitchRun(switch) => switch_run::run(turn, switch),
        Body::LeaseWork(lease) => work::lease(turn, lease),
        Body::ExtendLease(extend) => work::extend(turn, extend),
        Body::CompleteWork(complete) => work::complete(turn, complete),
        Body::FailWork(fail) => work::fail(turn, fail),
        Body::ReleaseWork(release) => work::release(turn, release),
        Body::Authorize(call) => authorize::run(turn, call),
        Body::ReportCall(report) => report::call(turn, report),
        Body::ReportUsage(report) => report::usage(turn, report),
        Body::DecideGate(decide) => decide_gate::run(turn, decide),
        Body::DiscussGate(discuss) => discuss_gate::run(turn, discuss),
        Body::AnswerGate(answer) => answer_gate::run(turn, answer),
        Body::SendPageCode(send) => page_code::send(turn, send),
        Body::EnterPageCode(enter) => page_code::enter(turn, enter),
        Body::RaiseCap(raise) => raise_cap::run(turn, raise),
        Body::Pause(pause) => pause::pause(turn, pause),
        Body::Resume(resume) => pause::resume(turn, resume),
        Body::Cancel(cancel) => cancel::run(turn, cancel),
        Body::AckEffect(ack) if of_tenant(turn) => tenant_outbox::ack(turn, ack),
        Body::DeferEffect(defer) if of_tenant(turn) => tenant_outbox::defer(turn, defer),
        Body::FailEffect(fail) if of_tenant(turn) => tenant_outbox::fail(turn, fail),
        Body::AckEffect(ack) => effects::ack(turn, ack),
        Body::RecordBounce(bounce) => effects::bounced(turn, bounce),
        Body::DeferEffect(defer) => effects::defer(turn, defer),
        Body::FailEffect(fail) => effects::fail(turn, fail),
        Body::RetryEffect(retry) => effects::retry(turn, retry),
        Body::DismissEffect(dismiss) => effects::dismiss(turn, dismiss),
        Body::Sweep(sweep) => sweep::run(turn, sweep),
        Body::Reserve(reserve) => ledger::reserve(turn, reserve),
        Body::Confirm(confirm) => ledger::confirm(turn, confirm),
        Body::Settle(settle) => ledger::settle(turn, settle),
        Body::InstallMachine(install) => definitions::install(turn, install),
        Body::CreateTenant(create) => tenants::create(turn, create),
        Body::UpdateTenant(update) => tenants::update(turn, update),
        Body::PutQuotas(put) => quotas::put(turn, put),
        Body::CreateKey(create) => keys::create(turn, create),
        Body::RevokeKey(revoke) => keys::revoke(turn, revoke),
        Body::Deploy(deploy) => definitions::deploy(turn, deploy),
        Body::ActivateVersion(activate) => definitions::activate(turn, activate),
        Body::AttachPolicy(attach) => policies::attach(turn, attach),
        Body::SetTenantPolicy(set) => policies::set(turn, set),
        Body::RemoveTenantPolicy(remove) => policies::remove(turn, remove),
        Body::RetireVersion(retire) => definitions::retire(turn, retire),
        Body::PutAssistant(put) => assistants::put(turn, put),
        Body::DeleteAssistant(delete) => assistants::delete(turn, delete),
        Body::EnsureTenancy(ensure) => tenancy::ensure(turn, ensure),
        Body::PutDirectory(put) => tenancy::put_directory(turn, put),
        Body::InstallTenancy(install) => tenancy::install(turn, install),
        Body::Endpoint(change) => endpoints::run(turn, change),
        Body::Republish(republish) => republish::run(turn, republish),
        Body::Remove(remove) => remove::begin(turn, remove),
        Body::RemoveStep(step) => remove::step(turn, step),
        Body::PutRetention(put) => retention::put(turn, put),
        Body::HoldEffects(hold) => tenancy::hold(turn, *hold),
        Body::Reseal(secrets) => reseal::run(turn, secrets),
        Body::DeleteTenant(delete) => delete_tenant::begin(turn, delete),
        Body::WebhookSource(change) => webhook_sources::run(turn, change),
    }
}
