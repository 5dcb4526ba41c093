//! The values of `docs/limits.md`, compared with the constants.

use switchward_delivery::limits as delivery;
use switchward_expr::limits as expr;
use switchward_formats::limits as formats;
use switchward_machine::limits as machine;
use switchward_mail::limits as mail;
use switchward_schema::limits as schema;
use switchward_shard::limits as shard;
use switchward_state::limits as engine;
use switchward_webhook::limits as webhook;

use super::*;

const PAGE: &str = include_str!("../../../../docs/limits.md");
const POLICY_PROTO: &str = include_str!("../../../../proto/switchward/v1/policy.proto");
const KIB: u64 = 1024;
const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;

/// A number with a comma between thousands.
fn number(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or_default().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size in the largest unit in which it is whole.
fn bytes(size: impl TryInto<u64>) -> String {
    let size = size.try_into().unwrap_or_default();
    for (unit, name) in [(KIB * KIB * KIB, "GiB"), (KIB * KIB, "MiB"), (KIB, "KiB")] {
        if size > 0 && size.is_multiple_of(unit) {
            return format!("{} {name}", number(size / unit));
        }
    }
    format!("{} bytes", number(size))
}

/// A time in the largest unit in which it is whole.
fn time(millis: u64) -> String {
    for (unit, name) in [(24 * HOUR, "days"), (HOUR, "h"), (60 * SECOND, "min"), (SECOND, "s")] {
        if millis.is_multiple_of(unit) && millis > unit {
            return format!("{} {name}", number(millis / unit));
        }
    }
    format!("{} ms", number(millis))
}

/// Makes sure that the row of a limit shows these values.
#[track_caller]
fn shows(limit: &str, values: &[String]) {
    let begin = format!("| {limit} | ");
    let row = PAGE.lines().find_map(|line| line.strip_prefix(&begin));
    let row = row.unwrap_or_else(|| panic!("docs/limits.md has no row {begin}"));
    let cell = format!(" {}", row.split(" | ").next().unwrap_or_default());
    for value in values {
        let begin = format!(" {value}");
        let mut ends = cell.split(&begin).skip(1).map(|rest| rest.trim_start_matches(',').chars().next());
        assert!(ends.any(|next| !next.is_some_and(char::is_alphanumeric)), "{limit}:{cell} lacks {value}");
    }
}

#[test]
fn the_page_has_the_limits_of_requests() {
    shows("a request or reply message", &[bytes(MESSAGE_BYTES_MAX)]);
    shows("headers of a request", &[bytes(HEADERS_BYTES_MAX)]);
    shows("path and query of a request", &[bytes(URI_BYTES_MAX)]);
    shows("headers of a request over HTTP/1.1", &[number(HTTP1_HEADERS_MAX)]);
    shows("nesting of a JSON request", &[number(JSON_DEPTH_MAX)]);
    shows("values of a JSON request", &[number(JSON_NODES_MAX)]);
    shows("time in which a request arrives", &[time(BODY_READ_MS_MAX)]);
    let refused = [bytes(REFUSED_BYTES_MAX), time(REFUSED_MS_MAX)];
    shows("body that is still read of a request that is answered without it; time for it", &refused);
    let (rate, burst) = (REQUESTS_PER_SECOND_DEFAULT, REQUESTS_PER_SECOND_DEFAULT * REQUESTS_BURST_SECONDS);
    shows("requests of one tenant per second, at each server", &[number(rate), number(burst)]);
    shows("calls of one tenant that are open, streams included", &[number(CALLS_OF_TENANT_MAX)]);
    shows("calls of one tenant that wait for a core", &[number(CPU_WAITING_MAX)]);
    let lists = "lists of one tenant that are computed at one time; that wait";
    shows(lists, &[number(SCANS_MAX), number(SCANS_WAITING_MAX)]);
    shows("time to compute one page of a list", &[time(SCAN_MS_MAX)]);
    shows("paths of a read mask", &[number(MASK_PATHS_MAX)]);
    shows("violations in one error", &[number(VIOLATIONS_MAX)]);
    shows("a `request_id`, a `call_id`", &[number(engine::REQUEST_ID_CHARS_MAX)]);
    let remembered = "remembered answers of one session, by their `request_id`";
    let kept = [time(engine::REPLIES_KEPT_MS), time(engine::REQUESTS_KEPT_MS)];
    let reserved = [number(engine::REPLIES_RESERVED), bytes(engine::REPLIES_BYTES_RESERVED)];
    shows(remembered, &[number(engine::REPLIES_MAX), bytes(engine::REPLIES_BYTES_MAX)]);
    shows(remembered, &reserved);
    shows("time for which an answer is remembered; after the session's end", &kept);
    shows("connections", &[number(CONNECTIONS_MAX)]);
    shows("connections of one address", &[number(CONNECTIONS_OF_PEER_MAX)]);
    shows("connections of one tenant", &[number(CONNECTIONS_OF_TENANT_MAX)]);
    let window = u64::from(PROXIED_STREAM_WINDOW_BYTES);
    shows("calls that a gateway has passed on", &[bytes(window), number(PROXIED_CALLS_MAX)]);
    shows(
        "time in which a client reads nothing of an answer that a gateway passes on",
        &[time(PROXIED_UNREAD_MS_MAX)],
    );
    let parts = [CREDENTIAL_QUESTIONS_MAX, CREDENTIAL_QUESTIONS_MAX / CREDENTIAL_ADDRESS_PART];
    shows("credentials about which a gateway asks servers at one time", &parts.map(number));
    let kept = "time in which a gateway asks no server again about a key that one has accepted";
    shows(kept, &[time(CREDENTIALS_KEPT_MS)]);
    assert!(u128::from(CREDENTIALS_KEPT_MS) <= CATALOGUE_AGE_MAX.as_millis());
    shows("calls at one time on one HTTP/2 connection", &[number(STREAMS_MAX)]);
    let times = [HANDSHAKE_MS_MAX, FIRST_REQUEST_MS_MAX, IDLE_MS_MAX].map(time);
    shows("TLS handshake; first request; idle connection", &times);
    shows("open calls after the server begins to stop", &[time(DRAIN_MS_MAX)]);
}

/// How long a server that is cut off trusts what may have been revoked elsewhere: its keys, its copies of the directories, and
/// that it leads.
#[test]
fn a_server_that_is_cut_off_trusts_nothing_for_more_than_five_seconds() {
    let election = switchward_shard::RaftSettings::default().election_max_ms;
    let lease = Duration::from_millis(election) * shard::LEADER_LEASES;
    for time in [CATALOGUE_AGE_MAX, shard::TENANCIES_STALE_AFTER, lease] {
        assert!(time <= Duration::from_secs(5), "{time:?}");
    }
    // It asks again in time, as long as it reaches the leader.
    let asks = [shard::CONTACT_INTERVAL, shard::TENANCIES_CONFIRM_INTERVAL];
    for interval in asks {
        assert!(interval * 2 < CATALOGUE_AGE_MAX, "{interval:?}");
    }
}

#[test]
fn the_page_has_the_limits_of_sessions() {
    shows("sessions of one tenant", &[number(SESSIONS_DEFAULT)]);
    shows("bytes of their histories and remembered answers", &[bytes(BYTES_DEFAULT)]);
    shows("input of a start", &[bytes(engine::INPUT_BYTES_MAX)]);
    let labels = [number(engine::LABELS_MAX), bytes(engine::LABEL_BYTES_MAX)];
    shows("labels; a key or value of one", &labels);
    shows("a note, comment or reason", &[bytes(engine::NOTE_BYTES_MAX)]);
    shows("states that a run enters without anything from outside", &[number(engine::ENTRIES_MAX)]);
    shows("open gates", &[number(engine::OPENS_MAX)]);
    shows("runs in the life of a session", &[number(engine::RUNS_MAX)]);
    shows("runs active side by side that a session shows", &[number(engine::ACTIVE_RUNS_SHOWN_MAX)]);
    shows("open items that a session shows beside its gates", &[number(engine::OPEN_SHOWN_MAX)]);
    shows("active runs that a refusal names if several fit", &[number(engine::RUNS_NAMED_MAX)]);
    shows("versions of a definition", &[number(engine::VERSIONS_MAX)]);
    let deletable = [number(engine::DELETABLE_VERSIONS_MAX), bytes(engine::DELETABLE_BYTES_MAX)];
    shows(
        "versions that a definition has had, and bytes of their files, if it or one of them is deleted",
        &deletable,
    );
    shows("users of a definition that a refusal to delete it names", &[number(USES_NAMED_MAX)]);
    let differences = [number(DIFFERENCES_MAX), bytes(machine::DIFFERENCE_TEXT_BYTES_MAX)];
    shows("differences that a comparison of two versions returns; a text of one", &differences);
    let data = [bytes(engine::DATA_BYTES_MAX), number(engine::DATA_KEYS_MAX)];
    shows("the data of a run", &data);
    shows("a message, a rendered text", &[bytes(engine::MESSAGE_BYTES_MAX)]);
    shows("items of a list that a loop goes through", &[number(engine::ITEMS_MAX)]);
    shows("work of one turn, in all states that it enters", &[number(engine::TURN_FUEL)]);
    let effects = [number(engine::EFFECTS_MAX), bytes(engine::EFFECTS_BYTES_MAX)];
    shows("effects of one state's work", &effects);
    let outbox = [number(engine::OUTBOX_MAX), bytes(engine::OUTBOX_BYTES_MAX)];
    shows("effects of one session that have not arrived, dead letters included", &outbox);
    shows("effects of one shard that wait", &[number(shard::OUTBOX_MAX)]);
    let bodies = [bytes(delivery::REQUEST_BODY_BYTES_MAX), bytes(delivery::ANSWER_BODY_BYTES_MAX)];
    shows("body of a request; of its answer", &bodies);
    let lookups = [number(delivery::LOOKUPS_MAX), number(delivery::LOOKUPS_OF_TENANT_MAX)];
    shows("host names that one process looks up at one time; of one tenant", &lookups);
    shows("a capability", &[bytes(machine::CAPABILITY_BYTES_MAX)]);
    let capability = format!("dotted or colon path; 1 to {}.", bytes(machine::CAPABILITY_BYTES_MAX));
    assert!(POLICY_PROTO.contains(&capability), "policy.proto lacks {capability}");
    let arguments = [bytes(engine::ARGS_BYTES_MAX), number(engine::ARGS_DEPTH_MAX)];
    shows("arguments of a call", &arguments);
    shows("approved calls that are not made", &[number(engine::GRANTS_MAX)]);
    let opened = "policies attached to a definition, or set for a tenant";
    shows(opened, &[number(engine::POLICIES_MAX)]);
    shows("participants of a task", &[number(engine::PARTICIPANTS_MAX)]);
    let items = "items of one poll, or leased at one time by one stream";
    shows(items, &[number(POLL_ITEMS_MAX)]);
    shows("result", &[bytes(engine::RESULT_BYTES_MAX)]);
    shows("lost leases of one item", &[number(engine::LEASES_LAPSED_MAX)]);
}

#[test]
fn the_page_has_the_limits_of_mail_webhooks_and_definitions() {
    shows("mails of one session in a day (UTC)", &[number(engine::MAILS_OF_DAY_MAX)]);
    let hourly = "mails of one tenant in an hour, from all servers of a cluster ([Mail and deliveries](cluster.md#mail-and-\
                  deliveries))";
    shows(hourly, &[number(engine::MAILS_OF_TENANT_HOUR_MAX)]);
    shows("of one definition", &[number(engine::MAILS_OF_DEFINITION_HOUR_MAX)]);
    shows("that one key causes", &[number(engine::MAILS_OF_REQUESTER_HOUR_MAX)]);
    shows("to one address", &[number(engine::MAILS_TO_ADDRESS_HOUR_MAX)]);
    let pair = engine::MAILS_OF_REQUESTER_TO_ADDRESS_HOUR_MAX;
    shows("that one key causes to one address", &[number(pair)]);
    let sign_ins = "sign-ins that are completed at one time, at each server; of one tenant";
    shows(sign_ins, &[number(SIGN_INS_MAX), number(SIGN_INS_OF_TENANT_MAX)]);
    shows("inbound mail", &[bytes(mail::MESSAGE_BYTES_MAX)]);
    shows("endpoints of a tenant", &[number(engine::ENDPOINTS_MAX)]);
    shows("a message to an endpoint", &[bytes(webhook::OUT_BODY_BYTES_MAX)]);
    shows("an incoming message", &[bytes(WEBHOOK_BYTES_MAX)]);
    shows("incoming messages of one source in a minute, at each server", &[number(SOURCE_MESSAGES_MAX)]);
    let callbacks = "incoming messages with one reply token in a minute, at each server";
    shows(callbacks, &[number(CALLBACKS_MAX)]);
    let of_session = "incoming messages with all reply tokens of one session in a minute, at each server";
    shows(of_session, &[number(CALLBACKS_OF_SESSION_MAX)]);
    let members = [engine::DIRECTORY_MEMBERS_MAX, engine::DIRECTORY_MEMBERS_TOTAL_MAX];
    let [one, all] = members.map(number);
    let directory = [number(engine::DIRECTORY_ENTRIES_MAX), one, all];
    shows("names of a directory; members of one; members of all its lists", &directory);
    shows("a source file", &[bytes(formats::SOURCE_BYTES_MAX)]);
    shows("nesting; values", &[number(formats::DEPTH_MAX), number(formats::NODES_MAX)]);
    shows("a compiled definition", &[bytes(machine::MACHINE_BYTES_MAX)]);
    let states = [machine::NODES_MAX, machine::EXITS_MAX, formats::TRANSITIONS_MAX].map(number);
    shows("states; transitions or answers of one state; transitions of a workflow", &states);
    let [depth, values] = [expr::LOGIC_DEPTH_MAX, expr::LOGIC_VALUES_MAX].map(number);
    let logic = [bytes(expr::LOGIC_BYTES_MAX), depth, values];
    shows("a JSON Logic expression; its nesting; its operations, lists and literals", &logic);
    let made = [number(expr::LOGIC_FUEL_MAX), number(expr::DATA_DEPTH_MAX)];
    shows("work of one JSON Logic guard; the nesting of a value that it makes", &made);
    shows("findings that are shown", &[number(formats::FINDINGS_MAX)]);
    shows("attempts of a state", &[number(formats::ATTEMPTS_MAX)]);
    let fan = [number(formats::WRITES_MAX), number(formats::CHILDREN_MAX), number(formats::CONCURRENCY_MAX)];
    shows("native: names of `writes`; children of a branch; `max_concurrency`", &fan);
    let form = [formats::FORM_FIELDS_MAX, formats::OPTIONS_MAX].map(number);
    shows("native: fields of a form; options of a field", &form);
    let scripts = [number(formats::SCRIPTS_MAX), number(formats::SCRIPT_SECONDS_MAX)];
    shows("native: scripts, and files and packages of one; seconds of one", &scripts);
    shows("native: processes inside each other", &[number(formats::PROCESS_DEPTH_MAX)]);
    shows("shards", &[number(shard::SHARDS_MAX)]);
}

#[test]
fn the_page_has_the_limits_of_schemas() {
    let size = [bytes(schema::SCHEMA_BYTES_MAX), number(schema::SCHEMA_DEPTH_MAX)];
    shows("a JSON Schema; nesting in it", &size);
    let parts = [schema::SUBSCHEMAS_MAX, schema::REFERENCES_MAX, schema::ADDRESSES_MAX].map(number);
    shows("subschemas, references, `$id` of one schema", &parts);
    shows("an `$id`, a reference, an anchor", &[bytes(schema::REFERENCE_BYTES_MAX)]);
    shows("subschemas that lead into one another", &[number(schema::CHAIN_MAX)]);
    let marked = "parts that `unevaluatedProperties` and `unevaluatedItems` look through";
    shows(marked, &[number(schema::MARKED_PARTS_MAX)]);
    let patterns = [
        number(schema::PATTERNS_MAX),
        bytes(schema::PATTERN_BYTES_MAX),
        bytes(schema::PATTERN_COMPILED_BYTES_MAX),
    ];
    shows("regular expressions of one schema; one as written; one compiled", &patterns);
    shows("findings of one schema", &[number(schema::FLAWS_MAX)]);
    let value = [number(schema::VALUE_DEPTH_MAX), number(schema::OPEN_MAX)];
    shows("nesting of a value that is checked; subschemas that are open for it", &value);
    shows("steps to check a value", &[number(schema::STEPS_MAX)]);
    shows("steps that may report what breaks a schema", &[number(schema::REPORT_STEPS_MAX)]);
    let shown = [
        number(schema::VIOLATIONS_MAX),
        bytes(schema::SHOWN_PATH_BYTES_MAX),
        bytes(schema::SHOWN_VALUE_BYTES_MAX),
        number(schema::SHOWN_NAMES_MAX),
    ];
    shows("violations that an answer says; a path, a value and names in one", &shown);
}
