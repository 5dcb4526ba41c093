//! Named limits of requests and answers. Units are in the names.

/// An address as written.
pub const URL_BYTES_MAX: usize = 4_096;
/// A host name after its conversion to ASCII.
pub const HOST_BYTES_MAX: usize = 253;
/// Addresses of one name. More is refused, as all would have to be checked and tried.
pub const ADDRESSES_MAX: usize = 32;
/// Lookups of names at one time. Beyond it a request waits, within its deadline.
pub const LOOKUPS_MAX: usize = 64;
/// Of these, lookups of one tenant. Beyond it a request of that tenant waits.
pub const LOOKUPS_OF_TENANT_MAX: usize = 16;
/// Tenants whose lookups are counted, before those without any are forgotten.
pub const LOOKUPS_TENANTS_MAX: usize = 1_024;
/// Ports of a default policy: those of the web, and their usual alternatives.
pub const PORTS: [u16; 4] = [443, 80, 8080, 8443];

/// A method's name.
pub const METHOD_BYTES_MAX: usize = 16;
/// Headers of a request that its sender named.
pub const REQUEST_HEADERS_MAX: usize = 64;
/// Headers of a request, names and values together.
pub const REQUEST_HEADERS_BYTES_MAX: usize = 16 * 1024;
/// The largest body of a request that is sent, bytes.
pub const REQUEST_BODY_BYTES_MAX: usize = 1024 * 1024;
/// Headers of an answer. The transport also reads no more than about 400 KiB of them.
pub const ANSWER_HEADERS_MAX: usize = 100;
/// The body of an answer. Reading stops there and the answer is refused.
pub const ANSWER_BODY_BYTES_MAX: usize = 1024 * 1024;
/// The part of a body that nobody needs which is read, so that its connection can be used again, bytes.
pub const ANSWER_REST_BYTES_MAX: usize = 16 * 1024;
/// How long reading such a body may take, milliseconds.
pub const ANSWER_REST_MS: u64 = 500;
/// How long it may take to connect, TLS included.
pub const CONNECT_MS_MAX: u64 = 10_000;
/// How long an idle connection is kept for another request to the same destination, milliseconds. Shorter than servers keep
/// it, so that a connection hardly ever ends just as it is used.
pub const CONNECTION_KEPT_MS: u64 = 1_000;
/// Idle connections of one tenant to one destination.
pub const CONNECTIONS_KEPT_MAX: usize = 16;
/// Pairs of tenant and destination with idle connections.
pub const TRANSPORTS_MAX: usize = 128;
/// How long a request may take from the lookup of its name to the last byte of its answer.
pub const DEADLINE_MS_MAX: u64 = 600_000;
/// The longest wait that is accepted from a receiver.
pub const RETRY_AFTER_MS_MAX: u64 = 24 * 3_600_000;

/// Questions to one model endpoint at one time, unless its configuration says less.
pub const MODEL_CALLS_MAX: usize = 64;
/// Tokens that a model may answer with, unless its configuration says less.
pub const MODEL_OUTPUT_TOKENS_MAX: u32 = 32_000;
/// The text, data or conversation that one question holds, as JSON.
pub const MODEL_DATA_BYTES_MAX: usize = 512 * 1024;
/// A rubric, or the instructions of a question.
pub const MODEL_INSTRUCTIONS_BYTES_MAX: usize = 32 * 1024;
/// Fields, ports or workflows of one question.
pub const MODEL_CHOICES_MAX: usize = 200;
/// The name of a field, a port, a workflow or a model.
pub const MODEL_NAME_BYTES_MAX: usize = 256;
/// Nesting of a schema, and of a value that is checked against it.
pub const SCHEMA_DEPTH_MAX: usize = 32;

/// Jobs of one stream that a delivery worker performs at one time, unless its configuration says less.
pub const JOBS_MAX: usize = 256;
/// A result as JSON. A larger one is refused as an answer that is too large.
pub const RESULT_BYTES_MAX: usize = 1024 * 1024;
/// How long one take from the bus waits for a delivery.
pub const WORKER_WAIT_MS: u64 = 5_000;
/// How often a worker reports to the bus that it still works on its deliveries. The bus derives its idle time from it, so a job
/// may take longer than that.
pub const WORKER_KEEP_MS: u64 = switchward_bus::limits::SILENCE_MS;
/// How long a worker waits after the bus could not be reached, unless the bus says otherwise.
pub const WORKER_RETRY_MS: u64 = 1_000;
/// How long a stopping worker waits for jobs that it has begun. The rest is released to the bus.
pub const WORKER_DRAIN_MS: u64 = 10_000;

/// An address for mail. Source: RFC 5321, 4.5.3.1.3.
pub const MAIL_ADDRESS_BYTES_MAX: usize = 254;
/// Addresses in the headers of one mail.
pub const MAIL_HEAD_MAX: usize = 128;
/// A subject, characters.
pub const MAIL_SUBJECT_CHARS_MAX: usize = 998;
/// A mail's body and facts.
pub const MAIL_BODY_BYTES_MAX: usize = 1024 * 1024;
/// The part of a mail server's answer that is kept.
pub const MAIL_ANSWER_BYTES_MAX: usize = 1024;
/// Connections that are kept to one mail server.
pub const MAIL_CONNECTIONS_MAX: u32 = 16;
/// How long one step of an SMTP conversation may take, seconds.
pub const MAIL_SECONDS_MAX: u64 = 30;

/// How long an endpoint may take to answer a message, milliseconds.
pub const HOOK_MS_MAX: u64 = 20_000;

/// How long an OpenID provider may take for one answer, milliseconds.
pub const OPENID_MS_MAX: u64 = 10_000;
/// An answer of an OpenID provider, bytes.
pub const OPENID_ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Keys that an OpenID provider may sign with.
pub const OPENID_KEYS_MAX: usize = 64;
/// How long an OpenID provider's metadata is cached, milliseconds: an hour.
pub const OPENID_KEPT_MS: u64 = 3_600_000;
/// How soon the metadata is requested again because an ID token is signed with an unknown key, milliseconds.
pub const OPENID_ASKED_AGAIN_MS: u64 = 60_000;
/// How long after a failure the metadata is not requested again, milliseconds.
pub const OPENID_FAILED_MS: u64 = 5_000;
