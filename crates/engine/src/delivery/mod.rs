//! What is decided about what goes out; one file for each command.

pub(crate) mod capacity;
pub(crate) mod effects;
pub(crate) mod endpoints;
pub(crate) mod held;
pub(crate) mod messages;
pub(crate) mod public;
pub(crate) mod publish;
pub(crate) mod republish;
pub(crate) mod tenant_outbox;
pub(crate) mod view;
pub(crate) mod webhook_sources;

use switchward_state::Reply;
use switchward_state::delivery::DeliveryCommand;

use crate::turn::{Stop, Turn};

/// Runs a command of this aggregate.
pub(crate) fn run(turn: &mut Turn<'_, '_>, command: &DeliveryCommand) -> Result<Reply, Stop> {
    match command {
        DeliveryCommand::AckEffect(ack) => effects::ack(turn, ack),
        DeliveryCommand::RecordBounce(bounce) => effects::bounced(turn, bounce),
        DeliveryCommand::DeferEffect(defer) => effects::defer(turn, defer),
        DeliveryCommand::FailEffect(fail) => effects::fail(turn, fail),
        DeliveryCommand::RetryEffect(retry) => effects::retry(turn, retry),
        DeliveryCommand::DismissEffect(dismiss) => effects::dismiss(turn, dismiss),
        DeliveryCommand::Endpoint(change) => endpoints::run(turn, change),
        DeliveryCommand::Republish(republish) => republish::run(turn, republish),
        DeliveryCommand::HoldEffects(hold) => crate::catalogue::tenancy::hold(turn, *hold),
        DeliveryCommand::WebhookSource(change) => webhook_sources::run(turn, change),
    }
}
