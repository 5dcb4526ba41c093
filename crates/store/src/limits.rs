//! Named maxima of this crate. Sizes are in bytes unless the name says otherwise.

use backon::ExponentialBuilder;
use std::{num::NonZeroUsize, time::Duration};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The format of a data folder that this program writes and reads.
pub const FORMAT_VERSION: u32 = 2;

/// How often an opening tries to lock a data folder while others only look whether it is in use.
pub const LOCK_TRIES_MAX: u32 = 200;
/// The pause after such a try: a look takes much less, unless its process has to wait for a core.
pub const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Other servers whose folders a data folder remembers.
pub const PEERS_MAX: usize = 1024;

/// Operations that may wait for the log's writer; a caller beyond it waits for the next sync.
pub const LOG_QUEUE_OPS_MAX: usize = 4096;
/// Bytes that may wait for the log's writer; a caller beyond it waits for the next sync.
pub const LOG_QUEUE_BYTES_MAX: usize = 64 * MIB;
/// Bytes after which the log's writer stops adding operations to one sync.
pub const LOG_BATCH_BYTES_MAX: usize = 8 * MIB;
/// The largest log record.
pub const LOG_RECORD_BYTES_MAX: usize = 64 * MIB;
/// The part of its log's end that a group keeps in memory; older records are read from disk.
pub const LOG_TAIL_BYTES_MAX: usize = 2 * MIB;
/// The first segment of the log after a start, and each one on a disk with little space. All others are a multiple of
/// it.
pub const LOG_SEGMENT_BYTES_MIN: u64 = 256 * KIB as u64;
/// The largest segment of the log that is made ahead; only a batch that is larger has a larger one.
pub const LOG_SEGMENT_BYTES_MAX: u64 = 16 * MIB as u64;
/// How much of a new segment is written and synced at once.
pub const LOG_PREWRITE_BYTES: usize = MIB;
/// A log that grows faster than this, bytes a second, has its next segment allocated and not written in advance: the
/// disk has enough to write.
pub const LOG_PREWRITE_RATE_MAX: u64 = 32 * MIB as u64;
/// What the segments of the log may take beyond twice the size of their live records, before records are moved to
/// free the oldest ones.
pub const LOG_GARBAGE_BYTES: u64 = 64 * MIB as u64;
/// How much is moved with one batch.
pub const LOG_MOVE_BYTES: u64 = MIB as u64;
/// The buffer that the log's writer keeps between two batches.
pub const LOG_BUFFER_BYTES_KEPT: usize = MIB;
/// Records of a group that may be missing while a log is read, because they follow in a later segment.
pub const LOG_GAP_RECORDS_MAX: u64 = 4_000_000;

/// fjall's block cache for the state of all groups.
pub const STATE_CACHE_BYTES: u64 = 16 * MIB as u64;
/// fjall's write buffer per group.
pub const STATE_MEMTABLE_BYTES: u64 = 16 * MIB as u64;
/// Size of the rows in memory from which a flush makes them into a table of its own, bytes; fewer go through the
/// journal.
pub const INGESTED_BYTES_MIN: usize = 4 * MIB;
/// Number of a group's unmerged tables from which rows go through the journal all the same: fjall delays writes from
/// 20 such tables on, until it has merged some.
pub const INGESTED_TABLES_MAX: usize = 16;
/// Size of a resting group's rows in the write buffer from which they are made into tables.
pub const SETTLED_BYTES_MIN: usize = MIB;
/// fjall's journal files for the state of all groups, together.
pub const STATE_JOURNAL_BYTES_MAX: u64 = 64 * MIB as u64;
/// How much fjall's threads give way to others, as a niceness: 5 is a third of the share of a thread of niceness 0.
pub const WORKERS_NICE: i32 = 5;
/// How often the folders are checked for tables that are new or gone.
pub const REMOVED_LOOK: Duration = Duration::from_millis(50);
/// The pause after a check is at least this many times as long as the check took.
pub const REMOVED_LOOK_PART: u32 = 50;
/// Checks in a row that cannot free a removed table, before that is reported: some five seconds.
pub const REMOVED_FAILURES_MAX: u32 = 100;
/// A folder that changed longer ago than this has another time of its last change after the next change.
pub const FOLDER_SETTLED: Duration = Duration::from_millis(20);
/// How often a growing file is checked for new data while it grows fast.
pub const WRITEBACK_LOOK: Duration = Duration::from_millis(4);
/// How often it is checked while it grows slowly.
pub const WRITEBACK_LOOK_MAX: Duration = Duration::from_millis(32);
/// How much of a file must be new before the file system is asked to write it, bytes.
pub const WRITEBACK_BYTES: u64 = MIB as u64;
/// A file that has not grown for this long is complete.
pub const WRITEBACK_QUIET: Duration = Duration::from_secs(2);
/// Open table files per database.
pub const DATABASE_FILES_MAX: usize = 256;

/// The largest key of a row.
pub const KEY_BYTES_MAX: usize = 4 * KIB;
/// The largest encoded row.
pub const ROW_BYTES_MAX: usize = 64 * MIB;
/// The largest applied blob.
pub const APPLIED_BYTES_MAX: usize = MIB;
/// The assumed memory of a row beyond its key and its own weight.
pub const ROW_OVERHEAD_BYTES: usize = 128;
/// What a changed row takes beyond that until it is written: its key and its position, in the order of the keys. A node of the
/// tree is filled to two thirds.
pub const ROW_ORDER_BYTES: usize = 96;
/// The clean cache of a group, unless configured.
pub const CLEAN_BYTES_DEFAULT: usize = 64 * MIB;
/// Keys of a group that are known to have no row, so that the disk is not asked again; about 150 bytes of memory each.
pub const ABSENT_KEYS_MAX: NonZeroUsize = NonZeroUsize::new(4096).expect("it is not zero");
/// Rows of memory that a scan copies in one go.
pub const SCAN_CHUNK_ROWS_MAX: usize = 1024;
/// How many rows a scan copies in its first go; each further one doubles, up to the maximum.
pub const SCAN_CHUNK_ROWS_MIN: usize = 32;

/// Files that one manifest lists at most; a backup of more fails.
pub const BACKUP_FILES_MAX: usize = 20_000;
/// The manifest of a backup: its files, some 200 bytes each.
pub const MANIFEST_BYTES_MAX: usize = 8 * MIB;

/// Rows are gathered into chunks of a snapshot file until one reaches this size.
pub const SNAPSHOT_CHUNK_BYTES: usize = 256 * KIB;
/// The largest chunk that is read back: one row more than a full chunk.
pub const SNAPSHOT_CHUNK_BYTES_MAX: usize = SNAPSHOT_CHUNK_BYTES + KEY_BYTES_MAX + ROW_BYTES_MAX + KIB;

/// How often the free space of the disk is checked.
pub const DISK_LOOK: Duration = Duration::from_millis(250);
/// The same while there is little, or not much more than the minimum.
pub const DISK_LOOK_LOW: Duration = Duration::from_millis(50);
/// How long a disk that was full counts as the cause of a database that gave up.
pub const DISK_REMEMBERED: Duration = Duration::from_secs(60);
/// What stays free of a disk without a reserve, at most, bytes.
pub const DISK_FLOOR_BYTES: u64 = 4 * MIB as u64;
/// How long to wait before what failed on a full disk is tried again: a write to the log, or opening the database. It
/// doubles each time.
pub const SPACE_WAIT: Duration = Duration::from_millis(20);
/// The longest such wait.
pub const SPACE_WAIT_MAX: Duration = Duration::from_secs(2);
/// These waits, without an end.
pub(crate) const SPACE_WAITS: ExponentialBuilder =
    ExponentialBuilder::new().with_min_delay(SPACE_WAIT).with_max_delay(SPACE_WAIT_MAX).without_max_times();
/// How often in a row a write is refused for lack of space, by a file system that has some, until it is an error: what lies
/// below the file system is full, and nothing says when that ends. With the waits in between it is some three seconds.
pub const SPACE_REFUSALS_MAX: u32 = 8;
/// Free space below which a disk counts as full, bytes.
pub const DISK_STARVED_BYTES: u64 = MIB as u64;
/// How long it must be full before the reserve is given up.
pub const DISK_STARVED: Duration = Duration::from_millis(100);
/// Free space below which a failed write may have come from a full disk, bytes: a table that found no space is
/// removed.
pub const DISK_NEARLY_FULL_BYTES: u64 = 16 * MIB as u64;
