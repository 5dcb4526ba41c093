//! What a command does to the load of a shard; decides which commands are admitted when capacity is short.

/// A command's class for admission control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionClass {
    /// Starts or continues work on a session and may wait: a caller's step.
    Begins,
    /// Ends work that is under way, or is the server's own.
    Ends,
    /// Neither begins nor ends a caller's step, such as a change of the catalogue.
    Neither,
}
