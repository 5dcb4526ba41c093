//! fjall's threads, which make and merge tables, run at a lower priority than the threads that answer requests.

use rustix::process::{getpriority_process, setpriority_process};
use std::{panic::resume_unwind, thread};

use crate::limits::WORKERS_NICE;

/// Opens a database on a thread of lower priority, which the threads that it starts inherit: on Linux niceness is per
/// thread and inherited. On a system that does not allow it, all threads run at the same priority.
pub(crate) fn giving_way<T: Send>(open: impl FnOnce() -> T + Send) -> T {
    let opening = || {
        let less = getpriority_process(None).and_then(|own| setpriority_process(None, own + WORKERS_NICE));
        if let Err(error) = less {
            tracing::debug!(%error, "failed to lower the priority of a thread");
        }
        open()
    };
    thread::scope(|scope| scope.spawn(opening).join()).unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fjall::{Database, KeyspaceCreateOptions};
    use rustix::process::Pid;
    use std::fs;

    #[test]
    fn threads_of_a_database_give_way_and_others_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let database = giving_way(|| Database::builder(folder.path()).worker_threads(1).open()).unwrap();
        let rows = database.keyspace("rows", KeyspaceCreateOptions::default).unwrap();
        rows.insert("a", "b").unwrap();
        // The thread has made a table, and so it runs.
        rows.rotate_memtable_and_wait().unwrap();
        let own = getpriority_process(None).unwrap();
        let mut found = 0;
        for thread in fs::read_dir("/proc/self/task").unwrap() {
            let thread = thread.unwrap();
            let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
            if name.trim_end() == "fjall:worker" {
                let id = thread.file_name().to_str().and_then(|id| id.parse().ok()).and_then(Pid::from_raw);
                assert_eq!(getpriority_process(id).unwrap(), own + WORKERS_NICE);
                found += 1;
            }
        }
        assert!(found > 0);
    }
}
