//! Named maxima of a machine. Units are in the names; bytes are of UTF-8 text.

/// Buckets of the whole cluster.
pub const BUCKETS: u16 = 4096;
/// Nodes of one machine.
pub const NODES_MAX: usize = 10_000;
/// Exits of one node.
pub const EXITS_MAX: usize = 1_000;
/// Children that one act begins side by side.
pub const FIXED_CHILDREN_MAX: usize = 100;
/// Rules of one list of one policy layer.
pub const RULES_MAX: usize = 1_000;
/// A capability or the pattern of one, bytes.
pub const CAPABILITY_BYTES_MAX: usize = 256;
/// A name of a node, an answer or a process, bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// A text shown to an agent (question, prompt), bytes.
pub const TEXT_BYTES_MAX: usize = 256 * 1024;
/// Addresses of one allow-list.
pub const ADDRESSES_MAX: usize = 10_000;
/// An encoded machine, bytes.
pub const MACHINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The largest rolling window, seconds (ten years).
pub const WINDOW_SECONDS_MAX: u64 = 315_360_000;
/// The most calls a rate limit may name: its sliding log is kept in full.
pub const CALLS_MAX: u64 = 100_000;
/// One text of a difference between two machines, bytes.
pub const DIFFERENCE_TEXT_BYTES_MAX: usize = 512;
