//! Waiting for what a process prints and for its end: never longer than [`PROCESS_MAX`].

use std::process::{Child, Command, Output};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The longest wait of a test for what a process prints, or for its end, also on a busy machine.
pub const PROCESS_MAX: Duration = Duration::from_secs(120);

/// Calls `wait`, which blocks until a process prints something or ends. If that takes longer than [`PROCESS_MAX`], the
/// process is killed, so that `wait` returns.
///
/// # Panics
/// It took longer; the message says `what` the test waited for.
#[track_caller]
pub fn within<T>(process: u32, what: &str, wait: impl FnOnce() -> T) -> T {
    within_time(PROCESS_MAX, process, what, wait)
}

#[track_caller]
fn within_time<T>(longest: Duration, process: u32, what: &str, wait: impl FnOnce() -> T) -> T {
    let (done, watched) = channel::<()>();
    let watchdog = thread::spawn(move || {
        let late = watched.recv_timeout(longest) == Err(RecvTimeoutError::Timeout);
        if late {
            // A process that has just ended needs no kill.
            let _gone = Command::new("kill").args(["-KILL", &process.to_string()]).status();
        }
        late
    });
    let waited = wait();
    drop(done);
    assert!(!watchdog.join().unwrap(), "not so within {longest:?}, and process {process} was killed: {what}");
    waited
}

/// Waits until a process has ended, and returns what it printed to the pipes that it was started with.
///
/// # Panics
/// As [`within`].
#[track_caller]
pub fn finished(child: Child) -> Output {
    within(child.id(), "the process ends", || child.wait_with_output()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::within_time;
    use std::io::{Read as _, Write as _};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    /// Starts `cat`, and reads what it prints until it ends. Without an input it prints nothing, and its input stays open.
    fn read_from_cat(longest: Duration, input: Option<&str>) -> String {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdin, mut stdout) = (cat.stdin.take(), cat.stdout.take().unwrap());
        if let Some(input) = input {
            stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        }
        let mut printed = String::new();
        within_time(longest, cat.id(), "cat prints", || stdout.read_to_string(&mut printed)).unwrap();
        cat.wait().unwrap();
        printed
    }

    #[test]
    fn what_comes_in_time_is_returned() {
        assert_eq!(read_from_cat(Duration::from_secs(60), Some("hello")), "hello");
    }

    #[test]
    #[should_panic(expected = "was killed: cat prints")]
    fn a_process_that_prints_nothing_is_killed() {
        read_from_cat(Duration::from_millis(1), None);
    }
}
