//! A command in a terminal: what it prints as it prints it, and how it ended. None outlives the test.

use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The longest time that a command may take, or be silent if it runs on.
const COMMAND_MAX: Duration = Duration::from_secs(240);

/// What a command printed, and its exit code; `None` if it was stopped or still runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Printed {
    pub(super) out: String,
    pub(super) err: String,
    pub(super) code: Option<i32>,
}

impl Printed {
    /// Both outputs, one after the other.
    pub(super) fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

/// A running command, with all processes that it starts. Dropping it kills them.
pub(super) struct Running {
    child: Child,
    lines: Receiver<Line>,
    pub(super) printed: Printed,
}

enum Line {
    Out(String),
    Err(String),
}

impl Running {
    /// Starts a command.
    pub(super) fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn().expect("a shell starts");
        let (sender, lines) = channel();
        forward(child.stdout.take().expect("it has an output"), sender.clone(), Line::Out);
        forward(child.stderr.take().expect("it has an error output"), sender, Line::Err);
        Self { child, lines, printed: Printed::default() }
    }

    /// Reads until this is so, or until the command has ended.
    ///
    /// # Errors
    /// It takes too long.
    pub(super) fn until(&mut self, so: impl Fn(&Printed) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + COMMAND_MAX;
        while !so(&self.printed) {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Line::Out(line)) => self.printed.out.push_str(&line),
                Ok(Line::Err(line)) => self.printed.err.push_str(&line),
                Err(RecvTimeoutError::Disconnected) => {
                    self.printed.code = self.child.wait().expect("it ends").code();
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!(
                        "still runs after {COMMAND_MAX:?}; it printed:\n{}",
                        self.printed.all()
                    ));
                }
            }
        }
        Ok(())
    }

    /// Asks it to stop, as ctrl-c does, and waits until it has.
    pub(super) fn stop(mut self) -> Printed {
        self.signal("TERM");
        // What has not ended in time is killed when this is dropped.
        let _late = self.until(|_| false);
        std::mem::take(&mut self.printed)
    }

    fn signal(&self, name: &str) {
        // A group that has ended needs no signal.
        let group = format!("-{}", self.child.id());
        let kill = Command::new("kill").args(["-s", name, "--", &group]).stderr(Stdio::null()).status();
        let _gone = kill.expect("there is a kill");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal("KILL");
        let _reaped = self.child.wait();
    }
}

/// Sends what a command prints, line by line.
fn forward(from: impl Read + Send + 'static, to: Sender<Line>, of: fn(String) -> Line) {
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        loop {
            let mut bytes = Vec::new();
            match from.read_until(b'\n', &mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(_) if to.send(of(String::from_utf8_lossy(&bytes).into_owned())).is_err() => return,
                Ok(_) => {}
            }
        }
    });
}
