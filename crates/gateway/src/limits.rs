//! Named maxima of what comes in and of what is answered. Units are in the names.

use std::time::Duration;

/// One request or reply message.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How much of a body that is refused for its size is still read, so that the caller gets to read the answer.
pub const DISCARDED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How much of the body of a request is read and discarded that is answered without it.
pub const REFUSED_BYTES_MAX: usize = 64 * 1024;
/// How long such a body is waited for.
pub const REFUSED_MS_MAX: u64 = 1_000;
/// How long a request may take to arrive.
pub const BODY_READ_MS_MAX: u64 = 30_000;
/// A request's headers, names and values together, with its method and its URI. Beyond it the call is refused.
pub const HEADERS_BYTES_MAX: usize = 16 * 1024;
/// A request's path and query. Beyond it the request is refused: a URI has bytes that HTTP/2 sends as almost four.
pub const URI_BYTES_MAX: usize = 8 * 1024;
/// The most bytes of headers that the transport accepts. Above [`HEADERS_BYTES_MAX`], so that the guard can refuse the
/// call with a message.
pub const TRANSPORT_HEADERS_BYTES_MAX: u32 = 64 * 1024;
/// Headers of one HTTP/1.1 request.
pub const HTTP1_HEADERS_MAX: usize = 100;
/// Nesting of a JSON request. One level of a `google.protobuf.Struct` is three of protobuf, which stops at 100.
pub const JSON_DEPTH_MAX: usize = 32;
/// Paths of one `read_mask`.
pub const MASK_PATHS_MAX: usize = 100;

/// How long ago the leader of the catalogue may have confirmed the keys, tenants and webhook sources that a server knows;
/// beyond it calls end with UNAVAILABLE.
pub const CATALOGUE_AGE_MAX: Duration = Duration::from_secs(5);
/// How far the clocks of two servers may be apart that follow the same median, milliseconds: one is ahead, the other behind.
pub const CLOCKS_APART_MS_MAX: u64 = 2 * switchward_shard::limits::CLOCK_APART_MAX_MS;
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
/// The highest rate of requests per second that is limited; a higher one counts as this one.
pub(crate) const RATE_MAX: u64 = 1_000_000_000;
/// How far the server's time may go back without being taken for a jump, milliseconds.
pub(crate) const RATE_CLOCK_BACK_MS_MAX: u64 = 1_000;
/// Tenants whose requests are counted; beyond it those at rest are forgotten.
pub const RATES_TENANTS_MAX: usize = 10_000;
/// Sessions of one tenant, unless its quota or the server's configuration says otherwise.
pub const SESSIONS_DEFAULT: u64 = 1_000_000;
/// Bytes of the histories of one tenant's sessions, unless its quota or the server's configuration says otherwise.
pub const BYTES_DEFAULT: u64 = 20 * 1024 * 1024 * 1024;

/// Lists of one tenant that are computed at one time; beyond it they wait.
pub const SCANS_MAX: usize = 4;
/// Lists of one tenant that wait; beyond it they are refused.
pub const SCANS_WAITING_MAX: usize = 64;
/// How long one page of a list may take to compute; beyond it the page is shorter, and its token continues from there.
pub const SCAN_MS_MAX: u64 = 400;
/// How long a list is computed before waiting calls have their turn.
pub const SCAN_SLICE_MS: u64 = 2;
/// Calls of one tenant that wait for a core; beyond it they are refused.
pub const CPU_WAITING_MAX: usize = 1_024;
/// Tenants whose use of cores is remembered while any of them waits.
pub const CPU_TENANTS_MAX: usize = 10_000;
/// The longest rests from the cores, in `1/REST_PARTS` of the time used: they leave the tenant a third of its time.
pub(crate) const CPU_REST_PARTS_MAX: u32 = 2 * switchward_shard::limits::REST_PARTS;
/// How often the server's delay is measured while several tenants call and permits for the cores are in use.
pub const LATE_LOOK_MS: u64 = 5;
/// A task that runs more than this after it was due is late, so that the tenant that uses most rests. Timers alone are up to
/// one millisecond late.
pub const LATE_MS: u64 = 2;

/// Connections at one time. Beyond it the one without a credential that has been silent longest is closed.
pub const CONNECTIONS_MAX: usize = 10_000;
/// Connections of one address at one time, unless it is a proxy's.
pub const CONNECTIONS_OF_PEER_MAX: usize = 2_000;
/// Connections of one tenant at one time, but for those of proxies.
pub const CONNECTIONS_OF_TENANT_MAX: usize = 5_000;
/// Calls of one tenant that are open at one time, streams among them.
pub(crate) const CALLS_OF_TENANT_MAX: usize = 10_000;
/// The bits of an IPv6 address that connections are counted by.
pub(crate) const IPV6_PEER_BITS: u32 = 64;
/// How long a new connection may take to its first request.
pub const FIRST_REQUEST_MS_MAX: u64 = 10_000;
/// How long an idle connection stays open.
pub const IDLE_MS_MAX: u64 = 600_000;
/// Memory that a server stays within unless configured otherwise, bytes.
pub const MEMORY_BYTES_DEFAULT: usize = 1024 * 1024 * 1024;
/// Divisor of it: the share that bodies being read or answered may take.
pub const BODIES_PART: usize = 4;
/// The first bytes of each body, which its tenant's budget does not count: a full budget keeps nobody from deciding or
/// pausing.
pub const BODY_FREE_BYTES: usize = 4 * 1024;
/// After how long it is worth resending a body that exceeded a budget.
pub const BODIES_AGAIN_MS: u64 = 1_000;
/// A body of a call that needs no credential.
pub const OPEN_BYTES_MAX: usize = 1024;
/// A body above it is decoded as blocking work, so that it does not delay other calls.
pub const LARGE_BYTES: usize = 64 * 1024;
/// Values of a JSON request, nested ones counted. Each takes hundreds of bytes once it is read.
pub const JSON_NODES_MAX: usize = 100_000;
/// Calls at one time on one HTTP/2 connection. Beyond it the client waits.
pub const STREAMS_MAX: u32 = 1_024;
/// HTTP/2 flow control: bytes that one call may send ahead.
pub const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
/// HTTP/2 flow control: bytes that one connection may send ahead.
pub const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// How often an HTTP/2 connection is pinged.
pub const KEEPALIVE_INTERVAL_MS: u64 = 60_000;
/// How long the answer to a ping may take.
pub const KEEPALIVE_TIMEOUT_MS: u64 = 20_000;
/// How long a TLS handshake, and the headers of an HTTP/1.1 request, may take.
pub const HANDSHAKE_MS_MAX: u64 = 10_000;
/// How long open calls may go on after the server begins to stop.
pub const DRAIN_MS_MAX: u64 = 10_000;
/// Items that one poll takes, or one stream has out at one time.
pub(crate) const POLL_ITEMS_MAX: usize = 100;
/// Queues that one poll names.
pub(crate) const POLL_QUEUES_MAX: usize = 20;
/// How long a poll waits, milliseconds.
pub(crate) const POLL_WAIT_MS_MAX: u64 = 60_000;
/// The longest lifetime that a stream of work may request, milliseconds.
pub(crate) const STREAM_LIFETIME_MS_MAX: u64 = 24 * 3_600_000;
/// Bytes of items after which a poll takes no more; the last one may add as much as one item can be.
pub(crate) const POLL_BYTES_MAX: usize = 1024 * 1024;

/// What a form of a page may hold, bytes.
pub const PAGE_BODY_BYTES_MAX: usize = 64 * 1024;
/// The name of a form of a decision page, characters.
pub const FORM_ID_CHARS: usize = 32;
/// The code with which an OpenID provider sends a browser back, bytes.
pub const SIGN_IN_CODE_BYTES_MAX: usize = 4 * 1024;
/// Sign-ins whose codes are exchanged at one time; beyond it, people try again.
pub const SIGN_INS_MAX: usize = 16;
/// The same for one tenant, so that no tenant takes all of them.
pub const SIGN_INS_OF_TENANT_MAX: usize = 4;
/// People whom the decision pages of a tenant know in one browser; of more, those recognised last.
pub const BROWSER_COOKIES_MAX: usize = 16;
/// Messages that came by mail and are remembered for people who look after them; of more, the newest.
pub const MAIL_SEEN_MAX: usize = 500;
/// How long a message is deferred because the DNS does not answer about its sender, milliseconds: an hour.
pub const MAIL_WAIT_MS: u64 = 3_600_000;
/// How much of a mail that was not accepted is kept, bytes: its beginning.
pub const MAIL_KEPT_BYTES_MAX: usize = 256 * 1024;
/// The mails that one server lists for another, bytes: the newest of them.
pub const QUARANTINE_LIST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a server may take to answer another one about its quarantine, milliseconds.
pub const QUARANTINE_ASK_MS: u64 = 2_000;
/// How long such a mail is kept, milliseconds: 30 days, or as long as a rule of its tenant says that is shorter.
pub const MAIL_KEPT_MS_MAX: u64 = 30 * 24 * 3_600_000;
/// Deleted mails that are remembered; of more, the newest.
pub const MAIL_DELETED_MAX: usize = 1_000;
/// Messages that wait for the DNS at one time; beyond it such a message is treated as one that proves nothing.
pub const MAIL_WAITING_MAX: usize = 10_000;
/// Messages delivered by HTTP at one time; beyond it they must be delivered again later.
pub const MAIL_POSTS_MAX: usize = 16;
/// The same for one tenant, so that no tenant takes all of them.
pub const MAIL_POSTS_OF_TENANT_MAX: usize = 4;
/// The `retry-after` of such messages, seconds.
pub const MAIL_AGAIN_S: u64 = 30;
/// The body of an incoming webhook.
pub const WEBHOOK_BYTES_MAX: usize = 256 * 1024;
/// Proven messages of one source of webhooks per minute, and at once after a pause.
pub const SOURCE_MESSAGES_MAX: u32 = 1_200;
/// Messages and calls with one reply token per minute, and at once after a pause.
pub const CALLBACKS_MAX: u32 = 1_200;
/// The same with all reply tokens of one session.
pub const CALLBACKS_OF_SESSION_MAX: u32 = 5 * CALLBACKS_MAX;
/// Sources of webhooks whose messages are counted at one time; as many reply tokens, and as many of their sessions.
pub const SOURCES_COUNTED_MAX: usize = 10_000;
/// Calls and pages that one process passes on at one time, as far as a gateway's memory allows it; one more is refused.
pub const PROXIED_CALLS_MAX: usize = 10_000;
/// The same of a gateway with little memory.
pub const PROXIED_CALLS_MIN: usize = 64;
/// Divisor of a gateway's memory: the share that answers may take which their clients have not read.
pub const PROXIED_PART: usize = 4;
/// Divisor of the calls that are passed on: the share of those over connections without an accepted API key.
pub const PROXIED_UNPROVEN_PART: usize = 4;
/// Divisor of the calls that are passed on: the share of those of one client address among them.
pub const PROXIED_ADDRESS_PART: usize = 8;
/// Divisor of the calls that are passed on: the share of those with the API keys of one tenant.
pub const PROXIED_TENANT_PART: usize = 2;
/// Accepted API keys that are remembered, so that calls with them are not unproven.
pub const PROXIED_KEYS_MAX: usize = 10_000;
/// How long a gateway reads bodies of calls with a credential that a server has accepted, before it asks again,
/// milliseconds. A server's keys may be as old as [`CATALOGUE_AGE_MAX`], which this may not exceed. The server that gets the
/// call authenticates it in any case.
pub const CREDENTIALS_KEPT_MS: u64 = 5_000;
/// Credentials that a gateway remembers as accepted; of more, one is forgotten.
pub const CREDENTIALS_KEPT_MAX: usize = 10_000;
/// Credentials about which a gateway asks servers at one time; one more is refused.
pub const CREDENTIAL_QUESTIONS_MAX: usize = 1_024;
/// Divisor of them: the share of those that no server has accepted before.
pub const CREDENTIAL_UNPROVEN_PART: usize = 4;
/// Divisor of them: the share of those of one client address among them.
pub const CREDENTIAL_ADDRESS_PART: usize = 32;
/// How long one server may take to answer such a question, milliseconds; then another one is asked.
pub const CREDENTIAL_WAIT_MS: u64 = 2_000;
/// The answer to such a question, bytes.
pub const CREDENTIAL_ANSWER_BYTES_MAX: usize = 4 * 1024;
/// How long a client may read nothing of an answer that is passed on, milliseconds. It ends at the latest after twice as long.
pub const PROXIED_UNREAD_MS_MAX: u64 = 30_000;
/// HTTP/2 flow control of calls that are passed on: bytes that one of them may send ahead.
pub(crate) const PROXIED_STREAM_WINDOW_BYTES: u32 = 64 * 1024;
/// The same of all calls on one connection together, at a server: all of them may be full, so a reader that is slow stops no
/// other one. A gateway has one of as many calls as it passes on.
pub(crate) const PROXIED_CONNECTION_WINDOW_BYTES: u32 = 640 * 1024 * 1024;
/// Servers to which one call is offered, one after the other, as long as none of them has begun it.
pub const PROXY_TRIES_MAX: usize = 5;
/// How long a server that could not be reached is not dialled again, milliseconds.
pub const PROXY_REST_MS: u64 = 200;
/// What a server says of itself to another process of the cluster, bytes.
pub const FACTS_BYTES_MAX: usize = 64 * 1024;
/// How long a server may take to say it, milliseconds: it asks its Redis before.
pub const FACTS_WAIT_MS: u64 = 4_000;
/// A question of a delivery process, bytes: an answer of 1 MiB whose every byte is escaped, and more than all else of it.
pub const DELIVERY_QUESTION_BYTES_MAX: usize = 7 * 1024 * 1024;
/// Questions of one connection of a delivery process at one time; more wait there.
pub const DELIVERY_QUESTIONS_MAX: usize = 32;
/// The answer to such a question, bytes.
pub const DELIVERY_ANSWER_BYTES_MAX: usize = 4 * 1024;
/// How long a server may take to answer it, milliseconds; then another server is asked.
pub const DELIVERY_ANSWER_MS_MAX: u64 = 10_000;
/// How long a dial may take, milliseconds. It is shorter than what the transport allows it.
pub const PROXY_DIAL_MS_MAX: u64 = 2_500;
/// How long a call waits for a dial before another server gets the call, milliseconds.
pub const PROXY_DIAL_WAIT_MS: u64 = 250;
/// How long a server whose dial has taken too long is not dialled again, milliseconds.
pub const PROXY_TIMED_OUT_REST_MS: u64 = 3_000;
/// How often a connection on which calls are passed on is pinged, milliseconds.
pub const PROXY_PING_MS: u64 = 2_000;
/// How long the answer to such a ping may take, milliseconds; then the server counts as lost.
pub const PROXY_PING_WAIT_MS: u64 = 3_000;
/// How often a gateway asks for the map of the cluster, milliseconds.
pub const ROUTE_MAP_MS: u64 = 2_000;
/// After how many rounds of questions without a first map the log says so.
pub const ROUTE_MAP_FIRST_TURNS: usize = 5;
/// The shortest time between two such questions, milliseconds.
pub const ROUTE_MAP_PAUSE_MS: u64 = 100;
/// How long a server may take to answer such a question, milliseconds.
pub const ROUTE_MAP_WAIT_MS: u64 = 2_000;
/// The map of a cluster as it is sent, bytes.
pub const ROUTE_MAP_BYTES_MAX: usize = 1024 * 1024;
/// How long a call waits for a newer map of the cluster that a server has already, milliseconds.
pub const ROUTE_MAP_REACH_MS: u64 = 2_000;
/// How often one call is routed, if each time a server has refused it because of a newer map.
pub const ROUTED_MAX: usize = 3;
/// For how long a server takes the epoch of its map for the current one when it answers calls of gateways, milliseconds.
pub const EPOCH_KEPT_MS: u64 = 1_000;
/// The longest time from an erasure until its bytes are in no file of a server that runs, milliseconds.
pub const ERASED_WITHIN_MS: u64 = 10 * 60_000;
/// How long one page of an export may take to compute; beyond it the page is shorter.
pub const EXPORT_MS_MAX: u64 = 20;
/// Bytes of records after which a page of an export takes no more; a record that is larger is a page of its own.
pub(crate) const EXPORT_PAGE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of what a change of a tenant was about in one record of an export; of more, there are more records.
pub(crate) const EXPORT_PART_BYTES_MAX: usize = 512 * 1024;
/// Calls of one definition about which its author is informed if the catalogue lacks what they call; the first ones.
pub const CALLEE_FINDINGS_MAX: usize = 200;
/// Users of a definition that a refusal to delete it names.
pub const USES_NAMED_MAX: usize = 10;
/// Definitions or assistants that are looked at in one step of a search for users of a definition.
pub(crate) const USES_PAGE_SIZE: u32 = 100;
/// Differences that one comparison of two versions returns.
pub const DIFFERENCES_MAX: usize = 1_000;
/// Groups that one transfer of leaders names.
pub const GROUPS_MAX: usize = 65;
/// How often a change of a server of the cluster is checked again because another change came in between.
pub(crate) const CLUSTER_CHECKS_MAX: usize = 4;
/// How often a change of a tenant's settings is tried because other changes of them came in between.
pub(crate) const TENANT_TRIES_MAX: usize = 10;
/// How often a change of the servers of the cluster looks at it while a group elects its leader, before it is refused.
pub(crate) const ELECTING_LOOKS_MAX: usize = 10;

#[cfg(test)]
mod tests;
