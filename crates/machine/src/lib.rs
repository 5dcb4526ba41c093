//! The machine: what every definition format compiles to, and the vocabulary that the rest shares.
//!
//! A [`Machine`] is immutable and addressed by the [`Digest`] of its encoded bytes. A [`Node`] is what the
//! author wrote; its body is a few [`Act`]s; its [`Exit`]s say where it may go; [`Policy`] and [`Budget`]s say
//! what may be called meanwhile; every decision that a person owes is one of its [`GateSpec`]s.
//!
//! This crate must never know: a format's source text, a clock, IO, randomness, how state is stored.
//! Entry point: [`Machine::decode`] and the public fields.

mod accept;
mod act;
mod analysis;
mod delivery_reason;
pub mod diff;
mod end_reason;
mod exit;
mod fault_code;
mod gate;
mod guard;
mod ids;
pub mod limits;
mod machine;
mod money;
mod node;
mod op;
mod pattern;
mod policy;
pub mod reserved_keys;
mod time;
mod words;

pub use accept::{Accept, Contract, FieldType, NextRule, ResultUse, Wanted};
pub use act::{
    Act, ActKind, Ask, Decide, FixedChild, Gives, Kids, Mapped, Port, Reads, Sort, Spawn, Wait, WaitOn, Work,
    WorkKind,
};
pub use analysis::{Analysis, analyse};
pub use delivery_reason::DeliveryReason;
pub use end_reason::EndReason;
pub use exit::{Ending, Exit, Outcome, Target, Trigger};
pub use fault_code::FaultCode;
pub use gate::{Decision, GateKind, GateSpec, Inquiry, Resolve, Rounds};
pub use guard::Guard;
pub use ids::{
    ActIx, Bucket, CalleeIx, Digest, ExitIx, GateIx, IdError, NodeIx, OpenId, ParamIx, RunId, SessionId,
    TenantId,
};
pub use machine::{
    BadMachine, Callee, CalleeKind, Field, Input, Machine, Meta, Num, Opening, Param, Templates,
};
pub use money::{Micros, MoneyError};
pub use node::{Attempts, Boundary, NoExit, Node, Writes};
pub use op::{
    Case, Channel, Content, Convert, Dialect, Each, Initial, Message, Next, Op, Recipient, Text, Write,
};
pub use pattern::{AddressPattern, Pattern, PatternError};
pub use policy::{
    ArgRule, Breach, Budget, BudgetUnit, CONTROL_TOOLS, Fallback, Layer, Limit, Otherwise, Period, Policy,
    Rule, SENDING, sends_mail,
};
pub use time::Time;
pub use words::{Status, StatusWords};
