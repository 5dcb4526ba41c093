//! Named maxima of what comes in and of what is answered. Units are in the names.

/// One request or reply message.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How much of a body that is refused for its size is still read, so that the caller gets to read the answer.
pub const DISCARDED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long a request may take to arrive.
pub const BODY_READ_MS_MAX: u64 = 30_000;
/// A request's headers, names and values together. Beyond it the call is refused.
pub const HEADERS_BYTES_MAX: usize = 16 * 1024;
/// What the transport accepts of headers at all. Above [`HEADERS_BYTES_MAX`], so that there is somebody to refuse the
/// call in words.
pub const TRANSPORT_HEADERS_BYTES_MAX: u32 = 64 * 1024;
/// Headers of one HTTP/1.1 request.
pub const HTTP1_HEADERS_MAX: usize = 100;
/// Nesting of a JSON request. One level of a `google.protobuf.Struct` is three of protobuf, which stops at 100.
pub const JSON_DEPTH_MAX: usize = 32;
/// Paths of one `read_mask`.
pub const MASK_PATHS_MAX: usize = 100;

/// Field violations in one error.
pub const VIOLATIONS_MAX: usize = 50;
/// One text of an error's details, such as the field or the description of a violation.
pub const DETAIL_TEXT_BYTES_MAX: usize = 512;
/// An error's message.
pub const STATUS_MESSAGE_BYTES_MAX: usize = 512;
/// An error's details before base64. Clients of the C core refuse trailers from 8 KiB on.
pub const STATUS_DETAILS_BYTES_MAX: usize = 4_500;
/// The value of one metadata entry of an error.
pub const META_VALUE_BYTES_MAX: usize = 1_024;

/// Requests per second of one tenant, unless its quota or the server's configuration says otherwise.
pub const REQUESTS_PER_SECOND_DEFAULT: u64 = 2_000;
/// Requests that come through at once after a rest, as many as the quota allows in this time, seconds.
pub const REQUESTS_BURST_SECONDS: u64 = 2;
/// Tenants whose requests are counted; beyond it those at rest are forgotten.
pub const RATES_TENANTS_MAX: usize = 10_000;
/// Sessions of one tenant, unless its quota or the server's configuration says otherwise.
pub const SESSIONS_DEFAULT: u64 = 1_000_000;
/// Bytes of the histories of one tenant's sessions, unless its quota or the server's configuration says otherwise.
pub const BYTES_DEFAULT: u64 = 20 * 1024 * 1024 * 1024;

/// Lists of one tenant that are looked for at one time; beyond it they wait.
pub const SCANS_MAX: usize = 4;
/// Lists of one tenant that wait; beyond it they are refused.
pub const SCANS_WAITING_MAX: usize = 64;
/// How long one page of a list is looked for; then it is shorter, and its token goes on from there.
pub const SCAN_MS_MAX: u64 = 400;
/// How long a list is looked for before somebody else has their turn, if anybody waits.
pub const SCAN_SLICE_MS: u64 = 2;
/// Calls of one tenant that wait for a core; beyond it they are refused.
pub const SHARES_WAITING_MAX: usize = 1_024;
/// Tenants whose use of cores is remembered while any of them waits.
pub const SHARES_TENANTS_MAX: usize = 10_000;
/// The longest rests from the cores, in `1/REST_PARTS` of the time used: they leave the tenant a third of its time.
pub(crate) const CPU_REST_PARTS_MAX: u32 = 2 * switchward_shard::limits::REST_PARTS;
/// How often it is looked at how late the server is, while several tenants call and one of them waits for a core.
pub const LATE_LOOK_MS: u64 = 5;
/// A task that runs more than this after it was due is late, so that the tenant that uses most rests. Timers alone are up to
/// one millisecond late.
pub const LATE_MS: u64 = 2;

/// Connections at one time. Beyond it the one without a credential that has been silent longest makes room.
pub const CONNECTIONS_MAX: usize = 10_000;
/// Connections of one address at one time, where it is no proxy's.
pub const CONNECTIONS_OF_PEER_MAX: usize = 2_000;
/// Connections of one tenant at one time, but for those of proxies.
pub const CONNECTIONS_OF_TENANT_MAX: usize = 5_000;
/// Calls of one tenant that are open at one time, streams among them.
pub(crate) const CALLS_OF_TENANT_MAX: usize = 10_000;
/// The bits of an IPv6 address that connections are counted by.
pub(crate) const IPV6_PEER_BITS: u32 = 64;
/// How long a new connection may take to its first request.
pub const FIRST_REQUEST_MS_MAX: u64 = 10_000;
/// How long a connection stays open on which nothing is asked.
pub const IDLE_MS_MAX: u64 = 600_000;
/// What a server is to stay within that says nothing else, bytes.
pub const MEMORY_BYTES_DEFAULT: usize = 1024 * 1024 * 1024;
/// Which part of it bodies may take that are being read or answered.
pub const BODIES_PART: usize = 4;
/// The first bytes of each body that its tenant's budget does not count: who fills it up keeps nobody from deciding or pausing.
pub const BODY_FREE_BYTES: usize = 4 * 1024;
/// After how long it is worth to send a body again for which there was no room.
pub const BODIES_AGAIN_MS: u64 = 1_000;
/// A body of whoever needs no credential.
pub const OPEN_BYTES_MAX: usize = 1024;
/// A body above it is decoded where others do not wait for it.
pub const LARGE_BYTES: usize = 64 * 1024;
/// Values of a JSON request, nested ones counted. Each takes hundreds of bytes once it is read.
pub const JSON_NODES_MAX: usize = 100_000;
/// Calls at one time on one HTTP/2 connection. Beyond it the client waits.
pub const STREAMS_MAX: u32 = 1_024;
/// HTTP/2 flow control: bytes that one call may send ahead.
pub const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
/// HTTP/2 flow control: bytes that one connection may send ahead.
pub const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// How often an HTTP/2 connection is asked for a sign of life.
pub const KEEPALIVE_INTERVAL_MS: u64 = 60_000;
/// How long it may take to give one.
pub const KEEPALIVE_TIMEOUT_MS: u64 = 20_000;
/// How long a TLS handshake, and the headers of an HTTP/1.1 request, may take.
pub const HANDSHAKE_MS_MAX: u64 = 10_000;
/// How long open calls may go on after the server was told to stop.
pub const DRAIN_MS_MAX: u64 = 15_000;
/// Items that one poll takes, or one stream has out at one time.
pub(crate) const POLL_ITEMS_MAX: usize = 100;
/// Queues that one poll names.
pub(crate) const POLL_QUEUES_MAX: usize = 20;
/// How long a poll waits, milliseconds.
pub(crate) const POLL_WAIT_MS_MAX: u64 = 60_000;
/// How long a stream of work may be asked to last, milliseconds.
pub(crate) const STREAM_LIFETIME_MS_MAX: u64 = 24 * 3_600_000;
/// Bytes of items after which a poll takes no more; the last one may add as much as one item can be.
pub(crate) const POLL_BYTES_MAX: usize = 1024 * 1024;

/// What a form of a page may hold, bytes.
pub const PAGE_BODY_BYTES_MAX: usize = 64 * 1024;
/// The name of a form of a decision page, characters.
pub const FORM_ID_CHARS: usize = 32;
/// The code with which an OpenID provider sends a browser back, bytes.
pub const SIGN_IN_CODE_BYTES_MAX: usize = 4 * 1024;
/// Cookies of decision pages that are read of one request.
pub const BROWSER_COOKIES_MAX: usize = 16;
/// Messages that came by mail and are remembered for people who look after them; of more, the newest.
pub const MAIL_SEEN_MAX: usize = 500;
/// How long a message is brought again because the DNS says nothing of its sender, milliseconds: an hour.
pub const MAIL_WAIT_MS: u64 = 3_600_000;
/// What is kept of a mail that was not taken, bytes: its beginning.
pub const MAIL_KEPT_BYTES_MAX: usize = 256 * 1024;
/// How long such a mail is kept, milliseconds: 30 days, or as long as a rule of its tenant says that is shorter.
pub const MAIL_KEPT_MS_MAX: u64 = 30 * 24 * 3_600_000;
/// Mails of which it is remembered that somebody has deleted them; of more, the newest.
pub const MAIL_DELETED_MAX: usize = 1_000;
/// Messages for which the DNS is waited at one time; beyond it such a message is taken as one that proves nothing.
pub const MAIL_WAITING_MAX: usize = 10_000;
/// Messages that are brought by HTTP at one time; beyond it they are to be brought later.
pub const MAIL_POSTS_MAX: usize = 16;
/// Those of one tenant.
pub const MAIL_POSTS_OF_TENANT_MAX: usize = 4;
/// How many seconds later.
pub const MAIL_AGAIN_S: u64 = 30;
/// The body of a webhook that comes in.
pub const WEBHOOK_BYTES_MAX: usize = 256 * 1024;
/// Proven messages of one source of webhooks in one minute.
pub const SOURCE_MESSAGES_MAX: u32 = 1_200;
/// Sources of webhooks whose messages are counted at one time.
pub const SOURCES_COUNTED_MAX: usize = 10_000;
/// The longest time from an erasure until its bytes are in no file of a server that runs, milliseconds.
pub const ERASED_WITHIN_MS: u64 = 10 * 60_000;
/// How long one page of an export is looked for, beyond which it is shorter.
pub const EXPORT_MS_MAX: u64 = 20;
/// Bytes of records after which a page of an export takes no more; a record that is larger is a page of its own.
pub(crate) const EXPORT_PAGE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of what a change of a tenant was about in one record of an export; of more, there are more records.
pub(crate) const EXPORT_PART_BYTES_MAX: usize = 512 * 1024;
