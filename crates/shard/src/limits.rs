//! Named maxima of a shard. Units are in the names.

use std::time::Duration;

/// Commands that wait for a shard; one more is refused, or replaces one of a longer line.
pub const QUEUE_COMMANDS_MAX: usize = 4_096;
/// Commands that get in beyond that, because they end work that is under way.
pub const QUEUE_ESSENTIAL_MAX: usize = 4_096;
/// What a tenant may take of a shard before the next one has its turn: commands, and more for long ones.
pub const TURN_COST: usize = 64;
/// Bytes that a command may carry for the cost of another command.
pub const COST_BYTES: usize = 4_096;
/// The time that a command may take to decide for the cost of another command.
pub const COST_TIME: Duration = Duration::from_micros(25);
/// What a tenant owes at most for commands that took longer than was thought: the cost of eight turns.
pub const DEBT_MAX: usize = 8 * TURN_COST;
/// Tenants with nothing waiting whose debts are remembered; beyond it all of these are forgiven.
pub const DEBTORS_MAX: usize = 4_096;
/// What each KiB of a decision costs the disk after it was written: it is written again as rows, and with the tables that these
/// are merged into.
pub const WRITTEN_LATER: Duration = Duration::from_micros(20);
/// A command is late that takes longer than this and [`LATE_WRITES`] quick writes to the disk. Then the tenant that uses
/// most of the shard rests.
pub const LATE: Duration = Duration::from_millis(3);
/// See [`LATE`].
pub const LATE_WRITES: u32 = 3;
/// The parts of a rest that is as long as what the tenant's commands took. Each command in time makes rests a part shorter.
pub const REST_PARTS: u32 = 64;
/// How many parts longer each command that took too long makes the rests. Since each command in time makes them one part
/// shorter, rests settle where about one command in 128 takes too long.
pub const REST_MORE: u32 = 128;
/// The parts of the longest rests, which leave the tenant a quarter of its time.
pub const REST_PARTS_MAX: u32 = 3 * REST_PARTS;
/// The shortest rest: timers are not much finer.
pub const REST_MIN: Duration = Duration::from_millis(2);
/// The longest rest after one use.
pub const REST_MAX: Duration = Duration::from_millis(100);
/// What a tenant used so long ago counts for half.
pub const USE_WINDOW: Duration = Duration::from_secs(1);
/// Tenants whose use is counted; beyond it counting begins again.
pub const USE_TENANTS_MAX: usize = 4_096;
/// For how long a shard or the cores count as shared after two tenants have asked for something, one after the other.
pub const SHARED_FOR: Duration = Duration::from_secs(1);
/// How long the commands of one batch are decided where the shard is shared: no further one is begun then.
pub const BATCH_SHARED_TIME: Duration = Duration::from_millis(1);
/// What the decision on a batch comes to when no further command is begun, where the shard is shared, bytes: others wait until
/// it is written and synced.
pub const BATCH_SHARED_BYTES: usize = 128 * 1024;
/// The same where it is not, bytes.
pub const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Sessions that a tenant may lack of its quota, as far as this server knows, for a start to ask the leaders of all shards how
/// many it has: a server that is not that far behind counts exactly.
pub const QUOTA_SESSIONS_NEAR: u64 = 1_024;
/// The same of the quota of bytes, bytes.
pub const QUOTA_BYTES_NEAR: u64 = 64 * 1024 * 1024;
/// The leaders are asked, too, if less than this part of a quota is left: for large quotas it is more than the above.
pub const QUOTA_NEAR_DIVISOR: u64 = 16;
/// How long what a tenant holds is not read again while it is not near its quota of bytes: too short to come from there to the
/// quota itself, as long as all servers together take less than 640 MiB a second from one tenant.
pub const QUOTA_LOOK: Duration = Duration::from_millis(100);
/// Commands of one log entry.
pub const BATCH_COMMANDS_MAX: usize = 1_024;
/// A decision that is written as one entry even though a smaller batch would have made a shorter one, bytes.
pub const DECISION_BYTES_WANTED: usize = 8 * 1024 * 1024;
/// The largest decision of one command, bytes; below what the log takes as one record.
pub const DECISION_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How often a shard with several voters looks whether it still leads, while it waits for an entry.
pub const LEADER_LOOK: Duration = Duration::from_millis(100);
/// How long an entry's callers wait for a majority, before they are answered that the outcome is unknown.
pub const COMMIT_WAIT: Duration = Duration::from_secs(2);
/// A leader that no majority has acknowledged for this multiple of the longest wait before an election does not lead.
pub const LEADER_LEASES: u32 = 2;
/// What one read of the log returns at most, bytes.
pub const LOG_READ_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Changed rows in memory that start a write to the state store, bytes.
pub const DIRTY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The log of one group that starts a purge, bytes.
pub const LOG_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// The log of one group at which its leader writes no further entry before a purge has shortened it, bytes.
pub const LOG_BYTES_FULL: u64 = LOG_BYTES_MAX + LOG_BYTES_MAX / 2;
/// The log of one group that starts a purge, entries.
pub const LOG_ENTRIES_MAX: u64 = 200_000;
/// Entries that a purge leaves at most, if no replica lacks more, for those that lag a little.
pub const LOG_ENTRIES_KEPT: u64 = 1_000;
/// The same, bytes.
pub const LOG_BYTES_KEPT: u64 = 16 * 1024 * 1024;
/// What a group's log keeps for replicas that lack it, bytes; one that lacks more gets a snapshot. A minute of a group's
/// highest load is about a third of it.
pub const LOG_AWAY_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// The same, entries: some 30 bytes of memory each.
pub const LOG_AWAY_ENTRIES_MAX: u64 = 1_000_000;
/// A purge of a log that exceeds these leaves `1/LOG_AWAY_SPARE` less of it.
pub const LOG_AWAY_SPARE: u64 = 16;
/// How long after the last contact with a replica the log keeps what it lacks.
pub const LOG_AWAY_MAX: Duration = Duration::from_secs(10 * 60);
/// How often a replica looks at how much of its rows is not on disk, and how long its log is.
pub const MAINTENANCE_TICK: Duration = Duration::from_millis(250);
/// Looks at a shard at rest, one after the other, until its rows are written to the state store.
pub const PARKED_TICKS: u32 = 8;
/// The longest wait for rows to be on disk, before the log behind them is purged at a later tick.
pub const FLUSH_WAIT: Duration = Duration::from_secs(5);
/// Effects of one shard that wait to go out, unless somebody says otherwise.
pub const OUTBOX_MAX: usize = 100_000;
/// `1/OUTBOX_RESERVED` of that capacity is kept for completions, decisions, events, acknowledgements, cancels and timers;
/// commands that begin something new are refused before it. The others are never refused for it; each session has a bound
/// of its own.
pub const OUTBOX_RESERVED: usize = 5;
/// When a caller that was refused for lack of that capacity may try again, milliseconds.
pub const OUTBOX_RETRY_MS: u64 = 5_000;
/// Effects of one shard that are on their way to other shards at one time.
pub const RELAY_IN_FLIGHT_MAX: usize = 64;
/// The same to one of these shards, so that a shard that does not answer leaves capacity to the others.
pub const RELAY_TARGET_IN_FLIGHT_MAX: usize = RELAY_IN_FLIGHT_MAX / 2;
/// How long nothing is relayed to a shard that had no leader or no capacity, or that did not say what it did.
pub const RELAY_TARGET_REST: Duration = Duration::from_millis(250);
/// Effects of one shard whose target shards are remembered; of more, the targets are read again. Some 100 bytes each.
pub const RELAY_TARGETS_MAX: usize = OUTBOX_MAX;
/// Effects of one round whose target shards are read.
pub const RELAY_READ_MAX: usize = 4_096;
/// Timers, the first that fall due, that a leader keeps in memory: some 100 bytes each.
pub const TIMERS_HEAD_MAX: usize = 16_384;
/// Fewer than these, and the next are read from the index.
pub const TIMERS_HEAD_LOW: usize = 8_192;
/// Entries of the index that one read takes.
pub const TIMERS_READ_MAX: usize = 4_096;
/// Timers of one shard that were handed out and are not done.
pub const TIMERS_IN_FLIGHT_MAX: usize = 2_048;
/// Timers that one log entry fires at most.
pub const TIMER_BATCH_MAX: usize = 512;
/// The keys of one batch, bytes; a batch has one timer at least, whatever its length.
pub const TIMER_BATCH_BYTES_MAX: usize = 64 * 1024;
/// Batches of one shard that are being handed to the transport or fired at one time; what falls due meanwhile goes together.
pub const TIMER_BATCHES_MAX: usize = 8;
/// How long a transport may take to accept a batch.
pub const TRANSPORT_ACCEPT_WAIT: Duration = Duration::from_millis(100);
/// How long an accepted batch may take to come back, before its leader fires it itself.
pub const TRANSPORT_WAIT: Duration = Duration::from_secs(1);
/// How long a transport that refused or lost a batch is not used; twice as long each time, until a batch has come back.
pub const TRANSPORT_REST: Duration = Duration::from_secs(1);
/// The longest time that a transport is not used.
pub const TRANSPORT_REST_MAX: Duration = Duration::from_secs(60);
/// How long a timer may take from its command to its end, before it is fired again.
pub const FIRE_WAIT: Duration = Duration::from_secs(10);
/// How long a timer waits if its shard's queue was full or had no leader.
pub const FIRE_AGAIN: Duration = Duration::from_millis(100);
/// How long until an index is read again that could not be read, or of which some entries were dropped.
pub const TIMERS_READ_AGAIN: Duration = Duration::from_secs(30);
/// The longest sleep of somebody who waits for a time, before the clock is looked at again.
pub const CLOCK_LOOK: Duration = Duration::from_secs(30);
/// How long the machine's clock must stand apart until it is believed.
pub const CLOCK_BELIEVED: Duration = Duration::from_secs(15 * 60);
/// The longest time between two looks for a clock that is taken to have stood apart in between.
pub const CLOCK_UNSEEN_MAX: Duration = Duration::from_secs(2 * 60);
/// Clocks that are no further apart agree.
pub const CLOCK_AGREES: Duration = Duration::from_millis(10);
/// A difference of clocks that has changed by no more is still the same.
pub const CLOCK_SAME: Duration = Duration::from_millis(100);
/// How far a server's clock may be from the median of all servers' clocks, milliseconds; beyond it the server leads nothing.
pub const CLOCK_APART_MAX_MS: u64 = 2_000;
/// How close the clock of a server that leads nothing must come to the median before the server leads again, milliseconds.
pub const CLOCK_CLOSE_MS: u64 = 1_500;
/// For how many comparisons in a row.
pub const CLOCK_CLOSE_COMPARISONS: u32 = 5;
/// How often a server compares its clock with the others'.
pub const CLOCK_COMPARE_INTERVAL: Duration = Duration::from_secs(1);
/// The same until it is known for the first time.
pub const CLOCK_FIRST_INTERVAL: Duration = Duration::from_millis(100);
/// How long a server that starts waits for the comparison of its clock before it founds or updates its cluster.
pub const CLOCK_FIRST_WAIT: Duration = Duration::from_secs(5);
/// How far a log may move a member's clock beyond what the servers agree on.
pub const CLOCK_AHEAD_MAX: Duration = Duration::from_secs(60 * 60);
/// How long a leader leaves a row alone whose sweep was refused; twice as long after each further refusal.
pub const REFUSED_WAIT: Duration = Duration::from_secs(1);
/// The longest that it leaves one alone.
pub const REFUSED_WAIT_MAX: Duration = Duration::from_secs(5 * 60);
/// Refused rows that a leader remembers; of more, those whose time comes first are tried again sooner.
pub const REFUSED_MAX: usize = 10_000;
/// The shortest time between two reports of a leader that rows are refused.
pub const REFUSED_REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// How often a leader tries again to carry what it could not carry, and a server to lead in a term that is not settled.
pub const LEADER_TICK: Duration = Duration::from_millis(250);
/// How often a stale answer of a ledger is asked for again before the caller is sent away.
pub const LIMITS_ASKED_MAX: usize = 4;
/// Shards of one server beside the catalogue.
pub const SHARDS_MAX: u32 = 64;
/// A piece of a snapshot on its way to another server, bytes.
pub const SNAPSHOT_PIECE_BYTES: usize = 1024 * 1024;
/// How long a write to the state store waits that found a full disk.
pub const DISK_WAIT: Duration = Duration::from_millis(100);
/// How long a timer waits that a full disk cannot store.
pub const DISK_AGAIN: Duration = Duration::from_secs(1);
/// Sessions whose data a shard removes at one time.
pub const REMOVALS_AT_ONCE: usize = 32;
/// Removals under way that are counted.
pub const REMOVALS_COUNTED_MAX: usize = 10_000;
/// Rows of one step of a removal.
pub const REMOVE_STEP_ROWS: usize = 128;
/// Rows of one step of a removal, bytes in memory; a step has one row at least.
pub const REMOVE_STEP_BYTES: usize = 4 * 1024 * 1024;
/// Steps of one session before the others have their turn.
pub const REMOVE_STEPS: usize = 64;
/// Sessions of one look whose time is over.
pub const EXPIRE_AT_ONCE: usize = 64;
/// The shortest rest between two rounds of removals: callers come first.
pub const REMOVE_REST: Duration = Duration::from_millis(20);
/// The longest rest between two rounds.
pub const REMOVE_REST_MAX: Duration = Duration::from_secs(5);
/// The rest after a round, as a multiple of the round's length times the number of shards of the server.
pub const REMOVE_RESTS: u32 = 2;
/// Definitions whose backlog a shard works off in turn; those beyond it have their turn at the next look.
pub const EXPIRY_QUEUES_MAX: usize = 10_000;
/// How often a server looks whether what was erased has to leave its files; some 140 MB are written each time that it has.
pub const SCRUB_LOOK: Duration = Duration::from_secs(60);
/// The fewest removed rows for which a server merges its tables to give disk back. The database drops removed rows by itself
/// only where newer rows are written beside them.
pub const RECLAIM_ROWS_MIN: usize = 100_000;
/// The tables are merged when the removed rows are at least this fraction, `1/RECLAIM_PART`, of all rows.
pub const RECLAIM_PART: usize = 4;
/// How often a leader looks whether something was kept long enough.
pub const EXPIRY_LOOK: Duration = Duration::from_secs(30);
/// Permits for the commands of all shards that are under way from one server to leaders on others. The transport takes more
/// requests and bytes, so that Raft's long messages always find some.
pub const FORWARDS_MAX: usize = 4_096;
/// The same for the commands of one tenant.
pub const FORWARDS_OF_TENANT_MAX: usize = 2_048;
/// The bytes of a command, as it is sent, for which it needs one permit. No command needs more than its tenant may have.
pub const FORWARD_PERMIT_BYTES: usize = 12 * 1024;
/// How long a forwarded command may take, from the moment that it is sent.
pub const FORWARD_WAIT: Duration = Duration::from_secs(60);
/// How long a caller waits where no leader is known.
pub const LEADER_WAIT: Duration = Duration::from_millis(1_500);
/// Servers that a server whose own replica of a shard has failed asks for the leader, one after the other, in one attempt.
pub const FORWARD_SERVERS_MAX: usize = 32;
/// How often somebody who waits for a leader looks again.
pub const FORWARD_AGAIN: Duration = Duration::from_millis(20);
/// The first pause of a caller before it tries again, if this server has learned of no other leader meanwhile; twice as long
/// each time, up to [`FORWARD_AGAIN`].
pub const FORWARD_AGAIN_FIRST: Duration = Duration::from_millis(2);
/// How long the leader may take to confirm a read.
pub const READ_INDEX_WAIT: Duration = Duration::from_secs(1);
/// How long a server may take to apply an entry that its leader has applied: a read fails then, and the reply to a command comes
/// before its rows.
pub const APPLIED_WAIT: Duration = Duration::from_secs(2);
/// How often a server asks the leader of the catalogue, and of each shard that somebody watches, whether it has everything.
pub const CONTACT_INTERVAL: Duration = Duration::from_millis(500);
/// How long no leader may have confirmed that this server has everything, until streams of the shard end: longer than an
/// election.
pub const CONTACT_LOST: Duration = Duration::from_secs(2);
/// How long a server waits for a map of the cluster that another process has already. A read must not take longer than
/// [`READ_INDEX_WAIT`] for it.
pub const MAP_WAIT: Duration = Duration::from_millis(500);
/// How often a request is routed, if each time its bucket has moved meanwhile.
pub const MAP_TRIES_MAX: usize = 3;
/// Readers of one shard who wait for a confirmation.
pub const READS_WAITING_MAX: usize = 16_384;
/// Entries of one append to another server.
pub const APPEND_ENTRIES_MAX: usize = 1_024;
/// The entries of one append, bytes; an append has one entry at least, whatever its length.
pub const APPEND_BYTES_WANTED: usize = 8 * 1024 * 1024;
/// A message of another server that is read, bytes: the largest entry and what an append has around it.
pub const RAFT_MESSAGE_BYTES_MAX: usize = DECISION_BYTES_MAX + 64 * 1024;
/// An answer of another server that is read, bytes.
pub const RAFT_ANSWER_BYTES_MAX: usize = 4 * 1024;
/// The longest reason for a refusal that is sent, bytes.
pub const REFUSAL_BYTES_MAX: usize = 1_024;
/// Messages up to this length take the connection for short ones, bytes.
pub const CONTROL_BYTES_MAX: usize = 64 * 1024;
/// A chunk of a stream between servers, bytes: a piece of a snapshot and what is around it.
pub const STREAM_CHUNK_BYTES_MAX: usize = SNAPSHOT_PIECE_BYTES + 4 * 1024;
/// Appends up to this length are sent before those ahead of them are answered, bytes.
pub const PIPELINED_BYTES_MAX: usize = 512 * 1024;
/// Appends of one group to one server that wait for an answer.
pub const PIPELINE_APPENDS_MAX: usize = 16;
/// The same, bytes.
pub const PIPELINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Streams of appends to one server, of all groups. The appends of further groups are sent one by one.
pub const APPEND_STREAMS_MAX: usize = 6;
/// How long appends are sent one by one after no stream could be opened.
pub const APPEND_STREAM_AGAIN: Duration = Duration::from_secs(30);
/// How long an append may take until it is answered, and longer by what [`APPEND_BYTES_PER_SECOND`] says.
pub const APPEND_WAIT: Duration = Duration::from_secs(1);
/// The slowest link that an append is waited for on, bytes per second.
pub const APPEND_BYTES_PER_SECOND: u64 = 4 * 1024 * 1024;
/// How long a stream of appends stays open without an append.
pub const APPEND_STREAM_IDLE: Duration = Duration::from_secs(60);
/// How long a notice that entries are committed waits for the next entries, which carry it: longer than it takes to decide
/// and encode a batch on busy cores. Readers do not wait for it, because a leader that confirms a read says with a heartbeat
/// what is committed. Streams of changes at a server that does not lead do, and callers there whose reply brings no rows.
pub const COMMIT_NOTICE_WAIT: Duration = Duration::from_millis(5);
/// How many notices do not wait, at most, after one that has waited in vain. It is one after the first, and doubles each time
/// until entries follow one that waits.
pub const COMMIT_NOTICES_UNHELD: u32 = 16;
/// How long a stream may take to open.
pub const STREAM_OPEN_WAIT: Duration = Duration::from_secs(2);
/// The first wait before a server is tried again that could not be reached; twice as long each time.
pub const PEER_BACKOFF_MIN: Duration = Duration::from_millis(20);
/// The longest of these waits.
pub const PEER_BACKOFF_MAX: Duration = Duration::from_millis(200);
/// Snapshots that a server sends at one time, and that it receives at one time.
pub const SNAPSHOTS_AT_ONCE: usize = 1;
/// The bandwidth of the snapshots that a server sends, bytes per second.
pub const SNAPSHOT_BYTES_PER_SECOND: u64 = 64 * 1024 * 1024;
/// Pieces of a snapshot that are read ahead of the connection.
pub const SNAPSHOT_PIECES_AHEAD: usize = 2;
/// How long a snapshot may stand still before it is given up.
pub const SNAPSHOT_IDLE: Duration = Duration::from_secs(30);
/// How long a received snapshot may take to be installed.
pub const SNAPSHOT_INSTALL_WAIT: Duration = Duration::from_secs(10 * 60);
/// How long it is not logged again that snapshots are refused because the disk has too little space.
pub const NO_SPACE_REPORT: Duration = Duration::from_secs(60);
/// How often a reader of a snapshot that waits for the connection checks whether it must give up.
pub const SNAPSHOT_LOOK: Duration = Duration::from_millis(100);
/// The largest snapshot that is received, bytes.
pub const SNAPSHOT_BYTES_MAX: u64 = 1024 * 1024 * 1024 * 1024;
/// How long one server may take to answer another one that wants to join.
pub const JOIN_WAIT: Duration = Duration::from_secs(5);
/// How long a server that wants to join waits before it asks again.
pub const JOIN_AGAIN: Duration = Duration::from_millis(500);
/// How long a server that was admitted waits until it has all rows.
pub const JOIN_READY_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the first server of a cluster waits until it leads.
pub const FOUND_READY_WAIT: Duration = Duration::from_secs(60);
/// How long a server that starts again waits for leaders; then it opens without them.
pub const RESUME_READY_WAIT: Duration = Duration::from_secs(30);
/// How long a group may take to read its members at the start.
pub const MEMBERSHIP_READ_WAIT: Duration = Duration::from_secs(30);
/// How often a server that waits at its start says so.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// How often the leader of a group compares its members with the map, if the catalogue does not change.
pub const MEMBERS_LOOK: Duration = Duration::from_secs(1);
/// How long one change of the members may take before the leader looks again.
pub const MEMBER_CHANGE_WAIT: Duration = Duration::from_secs(10);
/// Entries that a replica may lack to become a voter.
pub const MEMBER_LAG_MAX: u64 = 1_000;
/// How long ago the last contact with a replica may be for it to become a voter or a leader.
pub const MEMBER_CONTACT_MAX: Duration = Duration::from_secs(2);
/// How long a leader decides nothing while its successor gets the last entries; then it goes on leading.
pub const HAND_OVER_WAIT: Duration = Duration::from_secs(2);
/// How long a leader goes on deciding before that, until its successor lacks at most [`HAND_OVER_LAG_MAX`] entries.
pub const HAND_OVER_NEAR_WAIT: Duration = Duration::from_millis(500);
/// Entries that a successor may lack when its leader stops deciding.
pub const HAND_OVER_LAG_MAX: u64 = 16;
/// How long a leader that has handed over waits until another server leads.
pub const HAND_OVER_TAKEN_WAIT: Duration = Duration::from_millis(1_500);
/// How long another server's leader may take to hand over on request.
pub const HAND_OVER_ASK_WAIT: Duration = Duration::from_secs(6);
/// How long a server may take to report its replicas.
pub const STATUS_WAIT: Duration = Duration::from_secs(1);
/// How long no leader has had contact with a server that counts as lost.
pub const SERVER_LOST_AFTER: Duration = Duration::from_secs(10);
/// Voters that a group keeps that has as many: a server is not drained if fewer would be left.
pub const VOTERS_KEPT: usize = 3;
/// How often the leader of the catalogue looks whether leaders are spread over the servers.
pub const BALANCE_LOOK: Duration = Duration::from_secs(5);
/// The same, while the voters of a group change.
pub const PLACEMENT_LOOK: Duration = Duration::from_secs(1);
/// How long a group must have had its leader before it is moved so that leaders are spread.
pub const BALANCE_STABLE_FOR: Duration = Duration::from_secs(20);
/// Entries that a server may lack to get a leader so that leaders are spread.
pub const BALANCE_LAG_MAX: u64 = 100;
/// How often a voter asks for an election after its leader's server was lost: it is refused until the leader's lease has
/// ended.
pub const LOST_LEADER_TRY: Duration = Duration::from_millis(20);
/// How long a voter leaves the election to the one before it, once that lease has ended.
pub const LOST_LEADER_TURN: Duration = Duration::from_millis(80);
/// How often a leader that hands over looks whether it still leads.
pub const HAND_OVER_LOOK: Duration = Duration::from_millis(50);
/// How often the leader of a shard compares its copies of the tenants' records with the catalogue, and tries again to bring
/// those up to date that are behind.
pub const TENANCIES_CONFIRM_INTERVAL: Duration = Duration::from_secs(1);
/// How long one such comparison may take, before the next one begins.
pub const TENANCIES_CONFIRM_WAIT: Duration = Duration::from_secs(2);
/// Tenants whose records are compared before others may run on the thread.
pub const TENANCIES_COMPARED_AT_ONCE: usize = 256;
/// How long a shard takes decisions about gates after it last asked the catalogue.
pub const TENANCIES_STALE_AFTER: Duration = Duration::from_secs(5);
/// Threads of a runtime that a member has for Raft's tasks alone, if it was given none for them.
pub const RAFT_THREADS: usize = 1;
/// How long a replica applies entries at a stretch, until the other tasks have a turn that run where Raft's do.
pub const APPLY_STRETCH: Duration = Duration::from_millis(5);
/// Entries that a replica applies at a stretch at most.
pub const APPLY_READY_MAX: usize = 256;
/// A replica takes no further entry for a stretch once those that it has hold this many bytes.
pub const APPLY_READY_BYTES_MAX: usize = 1024 * 1024;
/// How long the end of a server waits for Raft's tasks.
pub const RAFT_END_WAIT: Duration = Duration::from_secs(5);
/// How often all groups of a cluster are verified, unless somebody says otherwise.
pub const VERIFY_INTERVAL: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The shortest of these intervals that can be configured.
pub const VERIFY_INTERVAL_MIN: Duration = Duration::from_secs(60);
/// How often a server looks whether it is time to verify.
pub const VERIFY_LOOK: Duration = Duration::from_secs(10);
/// Digests that a replica keeps, the newest ones.
pub const DIGESTS_KEPT: usize = 8;
/// How long another server's leader may take to write a mark on request.
pub const MARK_ASK_WAIT: Duration = Duration::from_secs(4);
/// How long a server waits for its own digest before it answers that it has none yet.
pub const DIGEST_ANSWER_WAIT: Duration = Duration::from_secs(1);
/// How long a server may take to answer such a question.
pub const DIGEST_CALL_WAIT: Duration = Duration::from_secs(3);
/// How long a server may be silent until a verification goes on without it.
pub const DIGEST_SILENT_MAX: Duration = Duration::from_secs(5);
/// How long a replica may take to apply the entry that is verified, until the verification goes on without it.
pub const DIGEST_BEHIND_MAX: Duration = Duration::from_secs(30);
/// How long a replica may take to compute its digest.
pub const DIGEST_MAX: Duration = Duration::from_secs(30 * 60);
/// How often taking a backup is tried: it begins again if a leader is lost meanwhile.
pub const BACKUP_TRIES: usize = 5;
/// How long a leader may take to stop to decide for a backup.
pub const BACKUP_STOP_WAIT: Duration = Duration::from_millis(2_500);
/// How long a leader decides nothing for a backup; then it goes on.
pub const BACKUP_PAUSE_MAX: Duration = Duration::from_secs(6);
/// How long another server's leader may take to stop for a backup, or to write its mark.
pub const BACKUP_ASK_WAIT: Duration = Duration::from_secs(6);
/// How long the replica that is backed up may take to apply its mark.
pub const BACKUP_BEHIND_MAX: Duration = Duration::from_secs(30);
