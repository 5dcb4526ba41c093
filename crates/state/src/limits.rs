//! Named maxima of the engine's state and of what comes in. Units are in the names.

/// In whose name the limits of a tenant's policies count: no definition is called so.
pub const TENANT_LEDGER: &str = "tenant/";
/// Policy documents that are attached to one definition, or hold for one tenant.
pub const POLICIES_MAX: usize = 16;
/// Policy documents that one session is pinned to.
pub const POLICIES_PINNED_MAX: usize = 256;
/// Open gates of one session; one more is QUOTA_EXCEEDED.
pub const OPENS_MAX: usize = 100;
/// People who take part in one task: each of them is asked at a gate, and no more may be open.
pub const PARTICIPANTS_MAX: usize = OPENS_MAX;
/// A participant's answer, bytes of JSON.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Nesting of a participant's answer.
pub const ANSWER_DEPTH_MAX: usize = 32;
/// Calls of one session that are permitted and not yet reported, and that the state remembers. Beyond it a call
/// that reserves nothing is not remembered, and one that reserves money takes the position of the oldest that reserves
/// nothing; if all reserve money, it is QUOTA_EXCEEDED.
pub const CALLS_OPEN_MAX: usize = 1_000;
/// Grants of one session that are not yet used; one more is QUOTA_EXCEEDED.
pub const GRANTS_MAX: usize = 1_000;
/// How long a session remembers a reply at least, milliseconds; it is forgotten when others are added later.
pub const REPLIES_KEPT_MS: u64 = 15 * 60_000;
/// Replies that a session remembers; if none of them is old enough to be forgotten, one more is QUOTA_EXCEEDED.
pub const REPLIES_MAX: usize = 65_536;
/// Those of them that each reserve holds, see [`Reserve`](crate::session::Reserve).
pub const REPLIES_RESERVED: usize = 256;
/// What a session's replies take in rows of their own, bytes; one more is QUOTA_EXCEEDED, as beyond [`REPLIES_MAX`]. The last
/// one that fits may go beyond it by its own length.
pub const REPLIES_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Those of them that each reserve holds, bytes.
pub const REPLIES_BYTES_RESERVED: u64 = 1024 * 1024;
/// Replies that are listed in the row of their session; those before them have rows of their own.
pub const REPLIES_LISTED_MAX: usize = 32;
/// Replies that are forgotten when one is added, if their time is over; up to [`REPLIES_SWEPT_MAX`] while their bytes are at
/// what the reserves leave.
pub const REPLIES_FORGOTTEN_MAX: usize = 2;
/// Replies that one step forgets at most, such as a sweep after the end of their session.
pub const REPLIES_SWEPT_MAX: usize = 256;
/// How long a reply is remembered after its session's end, and one outside of sessions after it was given, milliseconds.
pub const REQUESTS_KEPT_MS: u64 = 24 * HOUR_MS;
/// How long an approved call may wait to be made, milliseconds.
pub const GRANT_KEPT_MS: u64 = 24 * HOUR_MS;
/// How long a permitted call may hold its reservation without a report, milliseconds.
pub const CALL_KEPT_MS: u64 = 24 * HOUR_MS;
/// The age up to which a ledger's answer may be decided on, milliseconds. Far below [`RESERVATION_LAPSE_MS`], so that a
/// permit is never given on a reservation that has lapsed.
pub const RESERVATION_USABLE_MS: u64 = 60_000;
/// The age from which a ledger renews a reservation when it is asked for the same call again, milliseconds. Half of
/// [`RESERVATION_USABLE_MS`]: the other half is left to the one who asks.
pub const RESERVATION_RENEWED_MS: u64 = RESERVATION_USABLE_MS / 2;
/// When a reservation that nobody confirmed is given back, milliseconds.
pub const RESERVATION_LAPSE_MS: u64 = 10 * 60_000;
/// Reservations of one ledger row that are neither confirmed nor released.
pub const RESERVATIONS_MAX: usize = 10_000;
/// Nodes that one run may enter without anything from outside.
pub const ENTRIES_MAX: u32 = 1_000;
/// A request id, characters.
pub const REQUEST_ID_CHARS_MAX: usize = 128;
/// A call id, characters.
pub const CALL_ID_CHARS_MAX: usize = 128;
/// The same, bytes: a character is at most four.
pub const CALL_ID_BYTES_MAX: usize = 512;
/// The arguments of a call, bytes of JSON.
pub const ARGS_BYTES_MAX: usize = 256 * 1024;
/// Nesting of the arguments of a call.
pub const ARGS_DEPTH_MAX: usize = 64;
/// A note, a comment or a reason, bytes.
pub const NOTE_BYTES_MAX: usize = 16 * 1024;
/// The input of a start, bytes of JSON.
pub const INPUT_BYTES_MAX: usize = 256 * 1024;
/// Labels of a session.
pub const LABELS_MAX: usize = 64;
/// A label's key or value, bytes.
pub const LABEL_BYTES_MAX: usize = 256;
/// Commands that one log entry contains at most.
pub const BATCH_COMMANDS_MAX: usize = 1_024;
/// Versions of one definition.
pub const VERSIONS_MAX: u32 = 100_000;
/// Numbers of versions that a definition may have had if it, or one of its versions, is to be deleted: all of them are read.
pub const DELETABLE_VERSIONS_MAX: u32 = 1_000;
/// The files of all versions of a definition together, bytes, if it or one of its versions is to be deleted.
pub const DELETABLE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The source of one definition, bytes.
pub const SOURCE_BYTES_MAX: usize = 1024 * 1024;

/// An hour, milliseconds.
pub const HOUR_MS: u64 = 3_600_000;
/// Tools whose calls are noted for one entry of a node; calls of more go unnoted.
pub const TOOLS_NOTED_MAX: usize = 100;
/// Events whose keys are noted for one entry of a node; more go unnoted.
pub const EVENTS_NOTED_MAX: usize = 100;
/// Events of one session that came before anything listened to them; one more is QUOTA_EXCEEDED.
pub const EARLY_MAX: usize = 100;
/// What they hold together, bytes of JSON; more is QUOTA_EXCEEDED.
pub const EARLY_BYTES_MAX: usize = 1024 * 1024;
/// What of an event's texts is sorted by phrases, bytes; the rest is left out.
pub const EVENT_WORDS_BYTES_MAX: usize = 4 * 1024;
/// How long such an event is kept, milliseconds.
pub const EARLY_KEPT_MS: u64 = HOUR_MS;
/// What lists show of a question at an approval, bytes.
pub const QUESTION_LINE_BYTES_MAX: usize = 200;
/// Events and results that wait for an approval of one run to close; one more is QUOTA_EXCEEDED, except for the outcome of
/// work that a server did by itself, of which there is one at most.
pub const PENDING_INPUTS_MAX: usize = 100;
/// What they hold together, bytes of JSON; more is QUOTA_EXCEEDED.
pub const PENDING_INPUT_BYTES_MAX: usize = 1024 * 1024;
/// Workflows that one session may switch between.
pub const WORKFLOWS_MAX: usize = 100;
/// The data of one run, bytes of JSON.
pub const DATA_BYTES_MAX: usize = 1024 * 1024;
/// Keys of one run's data.
pub const DATA_KEYS_MAX: usize = 1_000;
/// A key of a run's data, bytes.
pub const DATA_KEY_BYTES_MAX: usize = 256;
/// Nesting of a value of a run's data.
pub const DATA_DEPTH_MAX: usize = 64;
/// A message in the conversation, bytes.
pub const MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// All that the references of one value are replaced with, bytes of JSON: more than can be stored or handed to a worker.
pub const FILLED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A rendered text, bytes.
pub const TEXT_BYTES_MAX: usize = 256 * 1024;
/// Items of one list that a loop goes through.
pub const ITEMS_MAX: usize = 10_000;
/// Operations that one act may run, loops counted item by item.
pub const OPS_MAX: u32 = 100_000;
/// Bytes that the operations of one act may write, every write counted.
pub const WRITTEN_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The work of one turn, in units of about a nanosecond: about a second, so that no definition keeps the
/// sessions of others waiting for longer. Another run that a session begins in the same turn has at least
/// [`TURN_FUEL_OF_NEXT`].
pub const TURN_FUEL: u64 = 1_000_000_000;
/// What the next run of a session's queue has at least, so that it does not fail because of the one before it.
pub const TURN_FUEL_OF_NEXT: u64 = TURN_FUEL / 100;
/// Fuel for an operation, an item of a loop, a condition or a guard, beside the values that it reads.
pub const STEP_FUEL: u64 = 200;
/// Fuel for an event, beside each byte that it writes.
pub const EVENT_FUEL: u64 = 2_000;
/// Fuel to read one row.
pub const ROW_FUEL: u64 = 500;
/// Fuel to look for one name in the directory, and for each address behind it.
pub const NAME_FUEL: u64 = 1_000;
/// Fuel to read one byte of a text with references.
pub const REFERENCE_FUEL: u64 = 16;
/// Fuel to find the words of one byte of a message or a phrase.
pub const WORD_FUEL: u64 = 32;
/// Fuel to look for one phrase at one byte of a message.
pub const PHRASE_FUEL: u64 = 4;
/// Effects of one act: messages, one for each recipient, and work that is opened. A mail to each of a thousand customers
/// fits twice.
pub const EFFECTS_MAX: usize = 2_000;
/// What the effects of one act hold, bytes: more than all requests of the largest task.
pub const EFFECTS_BYTES_MAX: usize = 12 * 1024 * 1024;
/// Effects of one turn, however many acts it has. Twice what one act may have, so that a node that takes over when
/// another has failed at its limit can still send messages.
pub const EFFECTS_TURN_MAX: usize = 2 * EFFECTS_MAX;
/// What one turn may write down, bytes: effects, gates, data, items of loops, warnings. Well below what the log takes as
/// one entry, so that nothing that a definition does makes a turn too long for it.
pub const TURN_BYTES_MAX: usize = 2 * EFFECTS_BYTES_MAX;
/// Effects of one session that have not arrived, dead letters counted: more than a conversation sends in its life, so
/// that only what cannot be delivered for long, or never ends, gets there. What the server carries itself, and what is
/// said of a tool call, is not limited by it.
pub const OUTBOX_MAX: usize = 10_000;
/// What they hold, bytes.
pub const OUTBOX_BYTES_MAX: usize = 32 * 1024 * 1024;
/// What an effect takes beside its texts, bytes; about what its row has.
pub const EFFECT_BYTES: usize = 128;
/// The code with which a program reports that an effect cannot be delivered, bytes.
pub const FAILURE_CODE_BYTES_MAX: usize = 64;
/// Incidents that a session shows; of more, the oldest.
pub const INCIDENTS_SHOWN_MAX: usize = 20;
/// Names of a tenant's directory.
pub const DIRECTORY_ENTRIES_MAX: usize = 1_000;
/// Bindings of events to their sources in a tenant's directory.
pub const EVENT_BINDINGS_MAX: usize = 1_000;
/// Entries of what one name stands for, and of the default audience.
pub const DIRECTORY_MEMBERS_MAX: usize = 100;
/// Members of all lists of a directory: to follow one name costs up to a look at each of them.
pub const DIRECTORY_MEMBERS_TOTAL_MAX: usize = 10_000;
/// The longest name of a directory entry, bytes: `definition:` and the longest name of a definition, whose letters may take
/// more bytes in lower case.
pub const DIRECTORY_NAME_BYTES_MAX: usize = 400;
/// Names that stand for names, below one another.
pub const DIRECTORY_DEPTH_MAX: usize = 8;
/// Recipients of one message.
pub const RECIPIENTS_MAX: usize = 100;
/// Runs that a start may queue behind the first.
pub const QUEUE_MAX: usize = 100;
/// Definitions that the runs of one session call, directly or through one another.
pub const CALLEES_MAX: usize = 1_000;
/// Runs below one another, the first one not counted.
pub const CALL_DEPTH_MAX: usize = 16;
/// Runs of one session beyond which none calls another any more.
pub const RUNS_MAX: u32 = 10_000;
/// Runs that are active side by side and that a session shows; of more, the first.
pub const ACTIVE_RUNS_SHOWN_MAX: usize = 100;
/// Active runs that the refusal of a command names that several fit; it says that there are more.
pub const RUNS_NAMED_MAX: usize = 10;
/// Open items that a session with several active runs shows beside its gates; of more, the oldest.
pub const OPEN_SHOWN_MAX: usize = 1_000;
/// Runs that a session shows; of more, the newest.
pub const RUNS_SHOWN_MAX: u32 = 1_000;
/// The list of the states in a drain that does not end, bytes: all that a run can enter in one drain, with names of usual
/// length. A longer cycle is cut, and the message says how many states more there are.
pub const TRAIL_BYTES_MAX: usize = 64 * 1024;
/// Steps of a template.
pub const TEMPLATE_FUEL: u64 = 100_000;
/// Nesting of a template's calls and blocks.
pub const TEMPLATE_DEPTH: usize = 64;
/// What one worker is handed, bytes of JSON.
pub const WORK_INPUT_BYTES_MAX: usize = 1024 * 1024;
/// A worker's result, bytes of JSON.
pub const RESULT_BYTES_MAX: usize = 1024 * 1024;
/// How long a worker may have work without another word, milliseconds.
pub const LEASE_MS_MAX: u64 = HOUR_MS;
/// The shortest lease, milliseconds.
pub const LEASE_MS_MIN: u64 = 1_000;
/// Leases of one piece of work that may lapse; after that many its attempt has failed. A lease that is lost is no
/// attempt: a worker that died says nothing about the work. Ten that were lost one after the other do: work that kills
/// its workers would go round for ever, and so it is given up with `lease_limit`, as an error of its state.
pub const LEASES_LAPSED_MAX: u32 = 10;
/// What a worker calls itself, bytes.
pub const WORKER_BYTES_MAX: usize = 256;
/// Closed gates that a session remembers for late replies; beyond it the oldest goes.
pub const ANSWERED_MAX: usize = 100;
/// Comments about a gate that are shown with it; of more, the newest.
pub const COMMENTS_SHOWN_MAX: usize = 20;
/// Events of a session that are looked through for them, from the newest.
pub const COMMENTS_EVENTS_MAX: u64 = 2_000;
/// The arguments of a call, in canonical form, that a mail shows and a reply can approve, bytes; longer ones are approved
/// on a page that shows all of them.
pub const MAIL_ARGS_BYTES_MAX: usize = 4 * 1024;
/// How often one person is written back to about one gate while it is open, as often when it is closed, and as often about
/// replies to the mails of one run.
pub const ANSWERS_MAX: usize = 5;
/// Addresses that a run remembers as written to; beyond it the oldest goes.
pub const MAILED_MAX: usize = 1_000;
/// Names that led to the people whom one gate asks; beyond it the oldest goes.
pub const LISTED_NAMES_MAX: usize = 1_000;
/// People who may decide one gate, escalations included; more are not asked.
pub const ADDRESSEES_MAX: usize = 1_000;
/// Reminders of one gate.
pub const REMINDERS_MAX: u32 = 10;
/// The shortest and the longest time between two reminders, milliseconds.
pub const REMIND_MS_MIN: u64 = 60_000;
/// See [`REMIND_MS_MIN`].
pub const REMIND_MS_MAX: u64 = 90 * 24 * HOUR_MS;
/// How long a code for a decision page is valid, milliseconds.
pub const PAGE_CODE_MS: u64 = 10 * 60_000;
/// Digits of a code for a decision page.
pub const PAGE_CODE_DIGITS: usize = 6;
/// How often a code for a decision page may be entered wrongly; then it is void.
pub const PAGE_CODE_TRIES_MAX: u32 = 5;
/// Codes for one decision page that are mailed to its person within an hour.
pub const PAGE_CODES_HOUR_MAX: usize = 3;
/// How long a sign-in that a decision page began may take, milliseconds.
pub const SIGN_IN_MS: u64 = 10 * 60_000;
/// How long a browser stays known to decision pages if the tenant does not say, milliseconds.
pub const BROWSER_KNOWN_MS: u64 = 30 * 24 * HOUR_MS;
/// The shortest time that a tenant may set for it, milliseconds.
pub const BROWSER_KNOWN_MS_MIN: u64 = 10 * 60_000;
/// The longest time that a tenant may set for it, milliseconds.
pub const BROWSER_KNOWN_MS_MAX: u64 = 365 * 24 * HOUR_MS;
/// Mails that one session sends in a calendar day of UTC, requests, answers and copies counted; one more is an error of its
/// state, or QUOTA_EXCEEDED. As many as may wait to go out: what sends more does not end.
pub const MAILS_OF_DAY_MAX: u32 = 10_000;
/// Mails of one tenant that a server sends in a calendar hour of UTC, over all of its shards.
pub const MAILS_OF_TENANT_HOUR_MAX: u32 = 20_000;
/// Those of all sessions of one definition.
pub const MAILS_OF_DEFINITION_HOUR_MAX: u32 = 10_000;
/// Those that the sessions of one requester cause.
pub const MAILS_OF_REQUESTER_HOUR_MAX: u32 = 5_000;
/// Those to one address: more than a person can read.
pub const MAILS_TO_ADDRESS_HOUR_MAX: u32 = 120;
/// Those of one requester to one address: half of them, so that nobody uses up an address alone.
pub const MAILS_OF_REQUESTER_TO_ADDRESS_HOUR_MAX: u32 = 60;
/// One in this many of each of these caps is kept for gates of which nobody has been notified.
pub const MAILS_UNNOTIFIED_PART: u32 = 5;
/// Mails of one gate whose counts are read when somebody looks at the gate.
pub const MAILS_COUNTED_MAX: usize = 20;
/// Addresses that a warning about mails that wait names; it says how many more there are.
pub const WAITING_NAMED_MAX: usize = 5;
/// Addresses that one mail of an agent goes to, `to`, `cc` and `bcc` together.
pub const MAIL_RECIPIENTS_MAX: usize = 50;
/// The subject of an agent's mail, characters.
pub const MAIL_SUBJECT_CHARS_MAX: usize = 998;
/// The text of an agent's mail, bytes: with every character escaped it fits into the arguments of a call.
pub const MAIL_TEXT_BYTES_MAX: usize = 32 * 1024;
/// A mail that comes in, bytes of its text.
pub const MAIL_BYTES_MAX: usize = 1024 * 1024;
/// What is kept of a mail's own text, bytes; the rest is cut off.
pub const REPLY_BYTES_MAX: usize = 64 * 1024;
/// An address or a URL that a message goes to, bytes; a longer one is an error of the state.
pub const RECIPIENT_BYTES_MAX: usize = 4 * 1024;
/// What the requests to all participants of a task say together, bytes; more is an error of the state.
pub const TASK_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The address of a mail's sender, bytes.
pub const ADDRESS_BYTES_MAX: usize = 512;
/// The part of a result that does not fit which a message shows, bytes.
pub const RESULT_SHOWN_BYTES_MAX: usize = 512;
/// Fuel for each step of a check of data or of a result against a schema.
pub const SCHEMA_STEP_FUEL: u64 = 100;
/// Exits that a message lists for a worker who named another one.
pub const EXITS_SHOWN_MAX: usize = 20;
/// An assistant's name, characters.
pub const ASSISTANT_NAME_CHARS_MAX: usize = 63;
/// An assistant's instructions, bytes.
pub const INSTRUCTIONS_BYTES_MAX: usize = 16 * 1024;
/// The part of a workflow's description that is shown for a choice between workflows, bytes.
pub const DESCRIPTION_SHOWN_BYTES_MAX: usize = 1024;
/// Attempts to find out what a first message means.
pub const INTENT_ATTEMPTS_MAX: u32 = 3;

/// The name of a source of webhooks, characters.
pub const SOURCE_NAME_CHARS_MAX: usize = 63;
/// A secret of a source of webhooks, bytes.
pub const SOURCE_SECRET_BYTES_MAX: usize = 256;
/// How long a message of a source of webhooks is known again by what it signs, if its sender signs no time and the source
/// does not say, milliseconds.
pub const MESSAGE_KNOWN_MS: u64 = 7 * 24 * HOUR_MS;
/// The shortest such time that a source may say, milliseconds.
pub const MESSAGE_KNOWN_MS_MIN: u64 = 60_000;
/// The longest, milliseconds.
pub const MESSAGE_KNOWN_MS_MAX: u64 = 90 * 24 * HOUR_MS;
/// A JSON pointer of a source of webhooks, bytes.
pub const SOURCE_POINTER_BYTES_MAX: usize = 512;
/// How long a secret stays good after another has replaced it, milliseconds.
pub const ROTATION_MS_MAX: u64 = 7 * 24 * HOUR_MS;

/// Endpoints of a tenant.
pub const ENDPOINTS_MAX: usize = 20;
/// The address of an endpoint, bytes.
pub const ENDPOINT_URL_BYTES_MAX: usize = 2_048;
/// Entries of one endpoint's list of event types.
pub const ENDPOINT_FILTERS_MAX: usize = 64;
/// How long after a note of an endpoint's health the beginning of failures is noted at the earliest, milliseconds.
pub const ENDPOINT_NOTED_MS: u64 = 60_000;
/// How long after a note of an endpoint's unchanged health it is noted again, milliseconds.
pub const ENDPOINT_NOTED_AGAIN_MS: u64 = HOUR_MS;
/// What is noted of why a message did not arrive at an endpoint, bytes; the rest is cut off.
pub const ENDPOINT_FAILURE_BYTES_MAX: usize = 512;
/// Messages to endpoints that one turn puts into the outbox. What is beyond is not sent, and the session has a warning.
pub const PUBLISHED_TURN_MAX: usize = 2_000;
/// Messages to endpoints of one session that have not arrived. What is beyond is not sent, and the session has a warning.
pub const PUBLISHED_MAX: usize = 5_000;
/// Messages to endpoints that are about one tenant itself and have not arrived. What is beyond is not sent.
pub const TENANT_OUTBOX_MAX: u32 = 1_000;
/// Messages to an endpoint that one command queues again.
pub const REPUBLISH_MAX: usize = 500;
/// What such a message says of what it is about, bytes.
pub const PUBLISHED_ABOUT_BYTES_MAX: usize = 256;

/// The largest limit that a quota of a tenant can have: 1 PiB, if it counts bytes.
pub const QUOTA_MAX: u64 = 1 << 50;
/// The weight of a tenant for which none is set.
pub const WEIGHT_DEFAULT: u32 = 1;
/// The largest weight of a tenant.
pub const WEIGHT_MAX: u32 = 100;
/// Recorded changes of a tenant's settings that are kept; beyond it, the oldest is removed.
pub const TENANT_CHANGES_MAX: u64 = 100_000;
/// Rows that one step of a removal takes.
pub const REMOVE_ROWS_MAX: usize = 256;
/// Decisions that are kept of one session whose history is removed.
pub const KEPT_DECISIONS_MAX: usize = 10_000;
/// Rules of a tenant about how long what has ended is kept.
pub const RETENTION_RULES_MAX: usize = 200;
/// The shortest time that something is kept after its end, milliseconds.
pub const RETENTION_MS_MIN: u64 = 60_000;
/// Active servers of a cluster.
pub const SERVERS_MAX: usize = 32;
/// Voters of one group.
pub const VOTERS_MAX: u32 = 5;
/// The largest number of a server.
pub const SERVER_NUMBER_MAX: u64 = 9_999;
/// The longest address under which a server joins, bytes.
pub const SERVER_ADDRESS_BYTES_MAX: usize = 256;
/// Secrets that one command seals under another key.
pub const RESEALED_MAX: usize = 256;
