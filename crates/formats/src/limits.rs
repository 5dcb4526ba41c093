//! Named maxima of sources and of what is said about them. Units are in the names; bytes are of UTF-8 text.
//!
//! The maxima of what a source compiles to stand in `switchward_machine::limits`.

/// One source file, bytes.
pub const SOURCE_BYTES_MAX: usize = 1024 * 1024;
/// Lists and maps inside each other.
pub const DEPTH_MAX: usize = 64;
/// Values of one document; a list or a map is one value beside what it holds.
pub const NODES_MAX: usize = 100_000;
/// Signs of a YAML source that may part its values. The scanner keeps what stands in brackets whole before it gives
/// the first of it away, so this bounds its memory before it starts.
pub const YAML_SIGNS_MAX: usize = 150_000;
/// Anchors of one YAML document that aliases can name.
pub const ANCHORS_MAX: usize = 100;
/// Values that all aliases of a YAML document may add together.
pub const ALIAS_NODES_MAX: usize = 1_000;
/// Bytes of text that all aliases of a YAML document may add together.
pub const ALIAS_BYTES_MAX: usize = 64 * 1024;
/// Findings told of one source; one more then says how many are left.
pub const FINDINGS_MAX: usize = 200;
/// Names listed as allowed in one finding.
pub const ALLOWED_MAX: usize = 20;
/// Characters of a name of the author's that a message repeats.
pub const QUOTED_CHARS_MAX: usize = 60;
/// Characters of a source line that a rendered finding shows.
pub const LINE_CHARS_MAX: usize = 120;
/// Comparisons of names spent on one source in search of the nearest ones.
pub const COMPARISONS_MAX: usize = 10_000;
/// Characters of a name up to which a nearest one is searched for.
pub const COMPARED_CHARS_MAX: usize = 64;

/// A process name, bytes.
pub const PROCESS_NAME_BYTES_MAX: usize = 63;
/// The largest `max_emails_per_session`.
pub const EMAILS_MAX: u64 = 1_000_000;
