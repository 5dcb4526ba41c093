//! What is decided about gates; one file for each command.

pub(crate) mod answer_gate;
pub(crate) mod assign_gate;
pub(crate) mod audience;
pub(crate) mod classify;
pub(crate) mod comments;
pub(crate) mod decide_gate;
pub(crate) mod discuss_gate;
pub(crate) mod discussion;
pub(crate) mod frozen;
pub(crate) mod gates;
pub(crate) mod mails;
pub(crate) mod page_code;
pub(crate) mod public;
pub(crate) mod reach;
pub(crate) mod record_reply;
pub(crate) mod reminders;
pub(crate) mod reply_words;
pub(crate) mod resolve;
pub(crate) mod rounds;
pub(crate) mod settled_people;
pub(crate) mod shown;
pub(crate) mod summary;
pub(crate) mod tasks;
pub(crate) mod view;
pub(crate) mod votes;

use switchward_state::Reply;
use switchward_state::approval::ApprovalCommand;

use crate::approval::assign_gate::Order;
use crate::approval::record_reply::{Taker, vouched};
use crate::turn::{Stop, Turn};

/// What a reply to an open gate can be besides its sender's decision; the first that takes it counts.
pub(crate) const REPLIES: &[Taker] = &[assign_gate::by_reply, vouched::decide];

/// Runs a command of this aggregate.
pub(crate) fn run(turn: &mut Turn<'_, '_>, command: &ApprovalCommand) -> Result<Reply, Stop> {
    match command {
        ApprovalCommand::RecordReply(reply) => record_reply::run(turn, reply),
        ApprovalCommand::DecideGate(decide) => decide_gate::run(turn, decide),
        ApprovalCommand::DiscussGate(discuss) => discuss_gate::run(turn, discuss),
        ApprovalCommand::AnswerGate(answer) => answer_gate::run(turn, answer),
        ApprovalCommand::SendPageCode(send) => page_code::send(turn, send),
        ApprovalCommand::EnterPageCode(enter) => page_code::enter(turn, enter),
        ApprovalCommand::AssignGate { gate, from, to, comment, shown, proof } => {
            let order = Order { from: from.as_deref(), to, comment };
            assign_gate::run(turn, *gate, &order, *shown, proof.as_ref())
        }
    }
}
