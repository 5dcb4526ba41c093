//! Arguments of `clock`.

use clap::{Args, Subcommand};
use std::time::Duration;

use super::values::duration;

/// Arguments of `clock`.
#[derive(Debug, Args)]
pub(crate) struct Clock {
    /// What to do; without it, the clock is read.
    #[command(subcommand)]
    pub(crate) what: Option<ClockCommand>,
}

/// What can be done with a clock.
#[derive(Debug, Subcommand)]
pub(crate) enum ClockCommand {
    /// Advance the clock; timers fire in order, each at its own time.
    Advance(AdvanceClock),
}

/// Arguments of `clock advance`.
#[derive(Debug, Args)]
pub(crate) struct AdvanceClock {
    /// The duration, such as 90s, 5m, 1h30m or 3d.
    #[arg(value_parser = duration)]
    pub(crate) by: Duration,
}
