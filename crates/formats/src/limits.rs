//! Named maxima of sources and of their findings. Units are in the names; bytes are of UTF-8 text.
//!
//! The maxima of compiled machines are in `switchward_machine::limits`.

/// One source file, bytes.
pub const SOURCE_BYTES_MAX: usize = 1024 * 1024;
/// Nesting of lists and maps.
pub const DEPTH_MAX: usize = 64;
/// Values of one document; a list or a map is one value beside what it holds.
pub const NODES_MAX: usize = 100_000;
/// Characters of a YAML source that may separate values. The scanner buffers everything in brackets before it returns
/// the first of it, so this bounds its memory before it starts.
pub const YAML_INDICATORS_MAX: usize = 150_000;
/// Anchors of one YAML document that aliases can name.
pub const ANCHORS_MAX: usize = 100;
/// Values that all aliases of a YAML document may add together.
pub const ALIAS_NODES_MAX: usize = 1_000;
/// Bytes of text that all aliases of a YAML document may add together.
pub const ALIAS_BYTES_MAX: usize = 64 * 1024;
/// Findings reported for one source; one more then says how many are left out.
pub const FINDINGS_MAX: usize = 200;
/// Names listed as allowed in one finding.
pub const ALLOWED_MAX: usize = 20;
/// The longest name listed as allowed, bytes; no name that is allowed anywhere is longer.
pub const ALLOWED_BYTES_MAX: usize = 256;
/// Characters of an author's name that a message repeats.
pub const QUOTED_CHARS_MAX: usize = 60;
/// Characters of a source line that a rendered finding shows.
pub const LINE_CHARS_MAX: usize = 120;
/// Comparisons of names spent on one source in search of the nearest ones.
pub const COMPARISONS_MAX: usize = 10_000;
/// Characters of a name up to which a nearest one is searched for.
pub const COMPARED_CHARS_MAX: usize = 64;

/// The longest name of a process, bytes.
pub const PROCESS_NAME_BYTES_MAX: usize = 63;
/// The largest `max_emails_per_session`.
pub const EMAILS_MAX: u64 = 1_000_000;

/// Transitions of one workflow.
pub const TRANSITIONS_MAX: usize = 10_000;
/// Keys that a `state_schema` lists.
pub const SCHEMA_KEYS_MAX: usize = 1_000;
/// The longest key that a session stores a value under, bytes.
pub const DATA_KEY_BYTES_MAX: usize = 256;
/// A dotted path into the data, bytes.
pub const DATA_PATH_BYTES_MAX: usize = 1024;
/// Values of one request whose uses are followed; the others are not.
pub const SHOWN_TRACED_MAX: usize = 64;
/// States and paths that are looked at to follow the values of all requests of a workflow; after that none is followed.
pub const SHOWN_STEPS_MAX: usize = 10_000_000;
/// Names of one dotted path.
pub const DATA_PATH_NAMES_MAX: usize = 32;
/// Names in `required_fields`, in `keys` of a guard, and fields of a parse state.
pub const REQUIRED_FIELDS_MAX: usize = 200;
/// Operations of one list.
pub const OPERATIONS_MAX: usize = 200;
/// Nesting of loops.
pub const LOOP_DEPTH_MAX: usize = 8;
/// Conditions of one `conditional_branch`.
pub const CONDITIONS_MAX: usize = 100;
/// Guards of one transition, or of one composite.
pub const GUARDS_MAX: usize = 100;
/// Nesting of composite guards.
pub const GUARD_DEPTH_MAX: usize = 8;
/// Values of `data_in_list`, phrases of `user_confirmed`, and ports of a classified wait.
pub const VALUES_MAX: usize = 1_000;
/// Recipients, approvers, contacts and participants of one list.
pub const RECIPIENTS_MAX: usize = 100;
/// A template, and a value with references in it, bytes.
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;
/// A subject, an address, a URL or a phrase as written, bytes.
pub const LINE_BYTES_MAX: usize = 4 * 1024;
/// A regular expression, bytes.
pub const REGEX_BYTES_MAX: usize = 4 * 1024;
/// Attempts of a state.
pub const ATTEMPTS_MAX: u64 = 1_000;
/// Digits that `round` keeps.
pub const ROUND_DIGITS_MAX: u64 = 15;
/// The longest wait, milliseconds (ten years).
pub const WAIT_MS_MAX: u64 = 315_360_000_000;
/// Rounds of an escalation.
pub const ESCALATIONS_MAX: u64 = 100;
/// Rules of all layers that the tools of one workflow compile to: each state's layer repeats those of the workflow.
pub const TOOL_RULES_MAX: usize = 100_000;
/// Workflows that are named in a finding about a cycle of calls.
pub const CYCLE_NAMES_MAX: usize = 100;
/// Fields that all guards of one workflow take over from their states' `required_fields`.
pub const REQUIRED_COPIES_MAX: usize = 100_000;

/// Names of one `writes`, of one `context_update`, and of one list of field names.
pub const WRITES_MAX: usize = 1_000;
/// Children of one branch.
pub const CHILDREN_MAX: usize = 100;
/// Children of one `foreach` that run at the same time.
pub const CONCURRENCY_MAX: u64 = 1_000;
/// How much a person can be asked for at once.
pub const FORM_FIELDS_MAX: usize = 100;
/// Options of one field.
pub const OPTIONS_MAX: usize = 1_000;
/// Scripts of one process, files of one script, and packages of one script.
pub const SCRIPTS_MAX: usize = 100;
/// The longest time of a script, seconds.
pub const SCRIPT_SECONDS_MAX: u64 = 600;
/// Nesting of processes that are written inside process nodes.
pub const PROCESS_DEPTH_MAX: usize = 4;
