//! Named maxima of a scenario and of playing one. Units are in the names.
//!
//! The maxima of a scenario's text are those of every source: `switchward_formats::limits`.

/// Steps of one scenario.
pub const STEPS_MAX: usize = 10_000;
/// Entries of one list in an expectation.
pub const LIST_MAX: usize = 1_000;
/// Further definitions of one scenario.
pub const ALSO_MAX: usize = 100;
/// How often a call is planned again because its limits have changed meanwhile.
pub const PLANS_MAX: usize = 4;
/// Effects that are relayed after one command.
pub const RELAYS_MAX: usize = 10_000;
/// Workers of one step that take work and do not come back.
pub const LOST_MAX: u64 = 100;
/// Rows that are swept while the clock moves once.
pub const SWEEPS_MAX: usize = 100_000;
/// The latest time of the virtual clock, milliseconds since 1970: the end of the year 9999.
pub const TIME_MS_MAX: u64 = 253_402_300_799_999;
