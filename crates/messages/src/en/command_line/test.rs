//! What `switchward test` writes into the report of scenarios.

/// A scenario that was played, with another result than it expects.
pub const MISSED: &str = "an expectation does not hold";
/// A file that could not be played.
pub const NO_SCENARIO: &str = "the file is not a scenario";
