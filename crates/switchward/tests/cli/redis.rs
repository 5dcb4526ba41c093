//! A Redis of the test's own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use switchward_testkit::{PATIENCE, free_port, within};
use tempfile::TempDir;

use crate::support::{folder, private};

/// The password of every Redis here.
pub(crate) const PASSWORD: &str = "correct-horse";

/// A Redis with a password on a free port of this machine. Dropping it kills it.
pub(crate) struct Redis {
    folder: TempDir,
    port: u16,
    process: Option<Child>,
}

impl Redis {
    /// One that does not run yet.
    pub(crate) fn absent() -> Self {
        let folder = folder(&[]);
        for (name, text) in [("password", "correct-horse\n"), ("wrong", "incorrect\n"), ("empty", "\n")] {
            private(folder.path().join(name), text);
        }
        Self { folder, port: free_port(), process: None }
    }

    /// One that runs.
    pub(crate) fn start() -> Self {
        let mut redis = Self::absent();
        redis.run();
        redis
    }

    /// Starts it again, and waits until it is ready.
    pub(crate) fn run(&mut self) {
        let mut command = Command::new("redis-server");
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--requirepass", PASSWORD]).arg("--dir").arg(self.folder.path());
        self.run_as(&mut command);
    }

    /// The same by this command, which must lead to its port.
    pub(crate) fn run_as(&mut self, command: &mut Command) {
        self.kill();
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut process = spawned.expect("redis-server is missing: tests/scripts/need.sh redis gets it");
        let mut lines = BufReader::new(process.stdout.take().expect("it has an output")).lines();
        let mut ready =
            || lines.any(|line| line.is_ok_and(|line| line.contains("Ready to accept connections")));
        let ready = within(process.id(), "Redis is ready", &mut ready);
        self.process = Some(process);
        assert!(ready, "it is ready");
        // What it says later is of no interest, but it must be able to say it.
        std::thread::spawn(move || lines.count());
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it can be killed");
            process.wait().expect("it ends");
        }
    }

    /// Asks it something that has an answer of one line.
    pub(crate) fn ask(&self, words: &str) -> String {
        self.lines(words, 1).remove(0)
    }

    /// The first lines of its answer.
    pub(crate) fn lines(&self, words: &str, number: usize) -> Vec<String> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines();
        let asked = format!("AUTH {PASSWORD}\r\n{words}\r\n");
        (&stream).write_all(asked.as_bytes()).expect("it reads");
        assert_eq!(lines.next().expect("an answer").expect("a line"), "+OK");
        lines.take(number).map(|line| line.expect("a line")).collect()
    }

    /// A file of its folder: `password`, and `wrong` and `empty`, which are no passwords.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("a plain path").to_owned()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}
