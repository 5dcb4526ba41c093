//! What a run does next: acts and commands say it, and the driver does it.

use switchward_machine::{ActIx, Ending, ExitIx, NodeIx, Port, RunId};
use switchward_state::run::{Deferral, EndComment, Fault};

/// What a command or an act has left to the driver: what one run does next.
pub(crate) struct Move {
    /// The run that moves.
    pub(crate) run: RunId,
    /// The entry of the run that it is for; nothing happens if the run has left it or has ended by then. `None` if nothing
    /// comes before it.
    pub(crate) entry: Option<u32>,
    /// What the run does.
    pub(crate) next: Next,
    /// Who asks for what follows, if it is not the one who has asked for the moves before it.
    pub(crate) asker: Option<String>,
}

/// What a run does next.
pub(crate) enum Next {
    /// The run moves to this node.
    Enter(NodeIx),
    /// A part of the node's body begins.
    Begin(ActIx),
    /// The current part has ended with this port.
    Ended(Port),
    /// The body has ended with this port.
    Settle(Port),
    /// An event has come while the node rests or waits: the exits that listen to events are tried.
    Event,
    /// The body begins again.
    Again,
    /// A judgement has come that the choice of an exit waits for.
    Judged,
    /// An exit is tried: if it is held, a person is asked before it is taken.
    Try(ExitIx),
    /// The run leaves its node by this exit.
    Take(ExitIx),
    /// Something has gone wrong.
    Fault(Fault),
    /// A child begins, and this run waits for it.
    Descend(RunId),
    /// The run is over.
    End(Ending, EndComment),
    /// It is known which workflows are meant; none of them means that somebody is asked.
    Chosen(Vec<String>),
    /// Nothing moves without somebody or something outside.
    Rest,
}

impl From<Deferral> for Next {
    fn from(due: Deferral) -> Self {
        match due {
            Deferral::Take(exit) => Self::Take(exit),
            Deferral::End(ending) => Self::End(ending, EndComment::default()),
            Deferral::Ended(port) => Self::Ended(port),
            Deferral::Again => Self::Again,
            Deferral::Judged => Self::Judged,
            Deferral::Fault(fault) => Self::Fault(fault),
            Deferral::Chosen(names) => Self::Chosen(names),
            Deferral::Begin => Self::Begin(ActIx(0)),
            Deferral::Try(exit) => Self::Try(exit),
        }
    }
}
