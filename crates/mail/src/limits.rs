//! Named maxima of what this crate reads and makes. Units are in the names; bytes are raw message bytes unless stated
//! otherwise.

use std::time::Duration;

/// A message as it came, bytes.
pub const MESSAGE_BYTES_MAX: usize = 25 * 1024 * 1024;
/// All header fields of a message together, bytes.
pub const HEADER_SECTION_BYTES_MAX: usize = 1024 * 1024;
/// Header fields of a message.
pub const HEADERS_MAX: usize = 1000;
/// One header field with its folded lines, bytes.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;
/// MIME parts of a message, those of messages inside it not counted.
pub const PARTS_MAX: usize = 200;
/// Nested messages that are searched for content to withhold.
pub const NESTED_MESSAGES_MAX: usize = 8;
/// Lines that could begin or end a part, before the message is parsed at all.
pub const BOUNDARY_LINES_MAX: usize = 20_000;
/// Parts inside parts.
pub const NESTING_MAX: usize = 20;
/// The text of a message, decoded, bytes: what the engine takes.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// A part with HTML, decoded, bytes.
pub const HTML_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Elements of HTML open at once; a page with more is not read.
pub const HTML_DEPTH_MAX: usize = 256;
/// Elements, texts and comments of a page of HTML; a page with more is not read.
pub const HTML_NODES_MAX: usize = 200_000;
/// Attributes of one element of HTML; a page with more is not read.
pub const HTML_ATTRIBUTES_MAX: usize = 64;
/// All attributes of a page of HTML, bytes, those of elements that the parser repeats as often as it does.
pub const HTML_ATTRIBUTE_BYTES_MAX: usize = 2 * HTML_BYTES_MAX;
/// How often the bytes of a page of HTML may be looked at for tags in tags, compared to once.
pub const HTML_TAG_SCAN_MAX: usize = 8;
/// Bytes of a page of HTML that are parsed before its limits are checked again.
pub const HTML_CHUNK_BYTES: usize = 1024;
/// All style sheets of a page of HTML, bytes; a page with more is not read.
pub const STYLE_BYTES_MAX: usize = 512 * 1024;
/// Blocks of CSS inside blocks; a page with more is not read.
pub const STYLE_DEPTH_MAX: u8 = 16;
/// Selectors that are kept of the style sheets of a page; a page with more is not read.
pub const STYLE_NAMES_MAX: usize = 1000;
/// How often a rule of a style sheet is compared with an element of a page; a page that needs more is not read.
pub const STYLE_MATCHES_MAX: usize = 1_000_000;
/// Classes of one element of HTML; a page with more is not read.
pub const HTML_CLASSES_MAX: usize = 256;
/// Colours that words or what is behind them may have; with more they are not taken.
pub const COLOURS_MAX: usize = 16;
/// The longest address, bytes; a longer one is not recognised.
pub const ADDRESS_BYTES_MAX: usize = 320;
/// Addresses looked at in all address fields of a message together.
pub const ADDRESSES_MAX: usize = 200;
/// Recipients that the transport may name.
pub const ENVELOPE_RECIPIENTS_MAX: usize = 1000;
/// The longest text that is read as a token, bytes.
pub const TOKEN_BYTES_MAX: usize = 256;
/// Tokens taken from one message.
pub const TOKENS_MAX: usize = 16;
/// Message ids kept of one field.
pub const MESSAGE_IDS_MAX: usize = 50;
/// The longest message id, bytes; a longer one is ignored.
pub const MESSAGE_ID_BYTES_MAX: usize = 998;
/// A subject, decoded, bytes; what is beyond is cut.
pub const SUBJECT_BYTES_MAX: usize = 2000;
/// DKIM signatures of one message that are checked; a message with more is not authenticated.
pub const SIGNATURES_MAX: usize = 10;
/// DKIM signatures of one message whose keys are asked for.
pub const SIGNATURES_CHECKED_MAX: usize = 3;
/// The bits of an RSA key below which its signatures do not count. Source: RFC 8301, 3.2.
pub const RSA_BITS_MIN: usize = 1024;
/// The bits of an RSA key below which the evidence says so. Source: RFC 8301, 3.2.
pub const RSA_BITS_WARNED: usize = 2048;
/// How deep comments may be nested in a field that is read by its grammar.
pub const COMMENT_DEPTH_MAX: usize = 10;
/// All DNS lookups for one message together.
pub const DNS_TIME_MAX: Duration = Duration::from_secs(10);
/// Messages of one domain that the DNS is asked about at once.
pub const DNS_DOMAIN_AT_ONCE_MAX: usize = 4;
/// How long a domain that did not answer is not queried, and how long a missing key is cached.
pub const DNS_AGAIN: Duration = Duration::from_secs(60);
/// How long a key is cached.
pub const DNS_KEY_KEPT: Duration = Duration::from_secs(300);
/// Domains that are remembered as queried, or as not answering.
pub const DNS_DOMAINS_MAX: usize = 10_000;
/// Domains above one that are asked for its policy, itself counted.
pub const DMARC_PARENTS_MAX: usize = 8;
/// Records of the DNS kept for the next message.
pub const DNS_CACHE_RECORDS_MAX: usize = 10_000;
/// Recipients read of one bounce.
pub const BOUNCE_RECIPIENTS_MAX: usize = 100;
/// The text kept of a bounce, bytes.
pub const BOUNCE_TEXT_BYTES_MAX: usize = 4 * 1024;
/// The part of a bounce that is searched for what it is about, bytes.
pub const BOUNCE_SEARCH_BYTES_MAX: usize = 256 * 1024;
/// Lines that an attribution such as `On … wrote:` may be wrapped over.
pub const ATTRIBUTION_LINES_MAX: usize = 4;
/// A line of an attribution, bytes.
pub const ATTRIBUTION_BYTES_MAX: usize = 400;
/// Lines after the sender's line of a quoted mail that are searched for its other headers.
pub const QUOTED_HEADER_LINES_MAX: usize = 6;
/// Conversations over LMTP at once.
pub const LMTP_CONNECTIONS_MAX: usize = 32;
/// A command of LMTP, bytes.
pub const LMTP_LINE_BYTES_MAX: usize = 2048;
/// Recipients of one message over LMTP.
pub const LMTP_RECIPIENTS_MAX: usize = 100;
/// Commands of one conversation that may be wrong.
pub const LMTP_ERRORS_MAX: usize = 20;
/// Messages of one conversation.
pub const LMTP_MESSAGES_MAX: usize = 1000;
/// How long a command may be waited for, or a reply be written.
pub const LMTP_COMMAND_TIME_MAX: Duration = Duration::from_secs(300);
/// How long receiving a message may take.
pub const LMTP_MESSAGE_TIME_MAX: Duration = Duration::from_secs(600);
/// How long setting up an IMAP connection may take, TLS and greeting included.
pub const IMAP_CONNECT_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a command of IMAP may take that carries no message.
pub const IMAP_COMMAND_TIME_MAX: Duration = Duration::from_secs(60);
/// How long fetching a message by IMAP may take.
pub const IMAP_MESSAGE_TIME_MAX: Duration = Duration::from_secs(600);
/// Messages from IMAP that are taken at once.
pub const IMAP_AT_ONCE_MAX: usize = 8;
/// Messages that are taken by IMAP before the folder is searched again.
pub const IMAP_ROUND_MESSAGES_MAX: usize = 100;
/// Attempts at a message that breaks the conversation; then it is moved away unread.
pub const IMAP_ATTEMPTS_MAX: u32 = 3;
/// The interval of polling if the IMAP server announces nothing.
pub const IMAP_POLL: Duration = Duration::from_secs(60);
/// Rounds without a rest because the server announces new messages: some do so at every command.
pub const IMAP_NOTIFIED_ROUNDS_MAX: u32 = 8;
/// The interval of searching for a message that was just sent.
pub const IMAP_FIND_POLL: Duration = Duration::from_millis(500);
/// The first wait after a failure over IMAP.
pub const IMAP_AGAIN_MIN: Duration = Duration::from_secs(1);
/// The longest wait while failures over IMAP go on.
pub const IMAP_AGAIN_MAX: Duration = Duration::from_secs(300);
/// The header section of a message that is shown to a person, bytes; the rest is left out.
pub const LEGIBLE_HEADERS_BYTES_MAX: usize = 64 * 1024;
/// The text of a message that is shown to a person, bytes; the rest is left out.
pub const LEGIBLE_TEXT_BYTES_MAX: usize = 128 * 1024;
