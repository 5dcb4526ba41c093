//! Named maxima of what this crate reads, computes and makes. Units are in the names; bytes are of UTF-8 text.

/// A dotted path, bytes.
pub const PATH_BYTES_MAX: usize = 1024;
/// Segments of one dotted path.
pub const PATH_SEGMENTS_MAX: usize = 32;
/// Nesting of lists and dictionaries in data that a body is rendered over, or that it makes.
pub const DATA_DEPTH_MAX: usize = 128;
/// The longest template that compiles, bytes.
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;
/// Tokens between the two ends of one tag of a body: an expression nests no deeper than it is long.
pub const JINJA_TAG_TOKENS_MAX: usize = 200;
/// `elif` branches of one body: each nests in the one before.
pub const JINJA_ELIFS_MAX: usize = 100;
/// Units of work that come with one unit of fuel. A unit is a value looked at, or four bytes of text.
pub const JINJA_WORK_PER_FUEL: u64 = 64;
/// How often the largest output may be written: the content of a `set` block is written into it and out of it again.
pub const JINJA_CAPTURE_FACTOR: u64 = 4;
/// Known names listed beside an unknown one.
pub const KNOWN_NAMES_MAX: usize = 100;
/// The longest name in such a list, bytes.
pub const KNOWN_NAME_BYTES_MAX: usize = 256;
/// Values of one `range(...)`.
pub const JINJA_RANGE_MAX: usize = 100_000;
/// Digits of a rounded number, before or after the point.
pub const ROUND_DIGITS_MAX: u8 = 15;
/// A compiled regular expression, bytes.
pub const REGEX_COMPILED_BYTES_MAX: usize = 1024 * 1024;
/// What a regular expression counts for at least among those that are compiled together, bytes.
pub const REGEX_COMPILED_BYTES_MIN: usize = 4 * 1024;
/// Regular expressions of one workflow, or those that one step compiles, bytes: about half a second of work.
pub const REGEXES_COMPILED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a compiled regular expression that cost one unit of fuel for each byte of a text: in the worst case each of its
/// states is looked at for each of them.
pub const REGEX_BYTES_PER_FUEL: usize = 32;
/// A regular expression as written, bytes.
pub const REGEX_BYTES_MAX: usize = 4096;
/// Groups nested in a regular expression.
pub const REGEX_NEST_MAX: u32 = 64;
/// How many words from a confirmation a negation still cancels it.
pub const NEGATION_WORDS_MAX: usize = 3;
/// A list that a reducer or a transform makes, items.
pub const LIST_ITEMS_MAX: usize = 10_000;
/// A text that a transform makes, bytes.
pub const TEXT_BYTES_MAX: usize = 256 * 1024;
/// Markdown as written, bytes.
pub const MARKDOWN_BYTES_MAX: usize = 256 * 1024;
/// HTML made of markdown, bytes.
pub const HTML_BYTES_MAX: usize = 1024 * 1024;
/// A mail body whose own text is looked for, bytes; the rest is not read.
pub const MAIL_BYTES_MAX: usize = 1024 * 1024;
/// Fuel to read one value, or one key of a dictionary.
pub const VALUE_FUEL: u64 = 16;
/// Fuel for the memory of one text, list or dictionary.
pub const ALLOCATION_FUEL: u64 = 16;
/// Fuel for one step of a body.
pub const JINJA_STEP_FUEL: u64 = 100;
/// Fuel for one unit of work of a body.
pub const JINJA_WORK_FUEL: u64 = 4;
/// Fuel to compile one byte of a body.
pub const JINJA_SOURCE_FUEL: u64 = 64;
/// A JSON Logic expression as compact JSON, bytes.
pub const LOGIC_BYTES_MAX: usize = 64 * 1024;
/// Lists and objects of a JSON Logic expression inside each other.
pub const LOGIC_DEPTH_MAX: usize = 64;
/// Operations, lists and literals of one JSON Logic expression.
pub const LOGIC_VALUES_MAX: usize = 10_000;
/// Fuel for one operation, list or literal of a JSON Logic expression, each time that it is evaluated.
pub const LOGIC_STEP_FUEL: u64 = 100;
/// Fuel that one evaluation of a JSON Logic expression may spend. What it makes is paid for by its size, so
/// this also limits its memory, to about as many bytes.
pub const LOGIC_FUEL_MAX: u64 = 16_000_000;
/// Characters of an operator, as an error shows it.
pub const LOGIC_WORD_CHARS_MAX: usize = 64;
