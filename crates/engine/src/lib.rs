//! The engine: [`decide`] turns commands into events; [`evolve`] turns events into rows, as `switchward_state` applies them.
//!
//! The leader of a shard calls [`decide`] on a batch of `Command`s and the state as it stands, and replicates the
//! `Decision`; every replica, the leader too, calls [`evolve`] with it and keeps the rows that come back. Nothing
//! is read but the rows of the `View` and the time stamped on the batch, so two replicas cannot disagree.
//!
//! This crate must never know: formats, a clock, IO, threads, Raft, how rows are stored.

#[macro_use]
mod is_planted;

mod acts;
mod approval;
mod budget;
mod catalogue;
mod decide;
mod delivery;
mod driver;
mod fault;
mod loaded;
mod next;
pub mod policy;
mod public;
mod remembered;
mod run;
mod session;
mod stamp;
mod turn;
mod work;
mod working;

pub use approval::comments::{Comment, comments};
pub use approval::reach::Reach;
pub use approval::view::{GateView, gate_view};
pub use catalogue::delete_definition::check_out_of_use;
pub use catalogue::quotas::exceeded as quota_exceeded;
pub use decide::{Decided, decide, decide_while};
pub use delivery::held::holds_effects;
pub use delivery::publish::{Missed, Republished, missed};
pub use delivery::view::{EffectView, effect_view};
pub use loaded::{SentRows, encode_loaded};
pub use policy::attached::pin_policies;
pub use public::{Machines, RunMachine, machines_of, machines_of_runs, public_events};
pub use remembered::{answered, is_remembered};
pub use run::callees::pin_callees;
pub use run::view::{RunView, run_views};
pub use session::position::PositionView;
pub use session::shown::ShownSession;
pub use session::view::{Below, NodeName, SessionView, session_view};
pub use stamp::Stamp;
pub use work::view::{NamedExit, WorkView, work_view};
pub use working::{RowBefore, evolve, evolve_with_before};
