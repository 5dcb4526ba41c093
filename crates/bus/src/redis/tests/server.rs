//! A server of Redis of the test's own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use ::redis::{Client, Cmd, FromRedisValue};
use switchward_testkit::{free_port, within};
use tempfile::TempDir;

/// Ports that a server is started on, one after the other, until one of them is free.
const PORTS_MAX: usize = 20;

/// A server on a free port of this machine, with a folder of its own. Dropping it kills it.
pub(super) struct Server {
    folder: TempDir,
    port: u16,
    options: Vec<String>,
    process: Child,
}

impl Server {
    /// Starts a server with these options beside the usual ones, and waits until it is ready.
    pub(super) fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options: Vec<String> = options.iter().map(|it| (*it).to_owned()).collect();
        for _ in 0..PORTS_MAX {
            let port = free_port();
            // Somebody else may have taken the port in between.
            if let Some(process) = run(&folder, port, &options) {
                return Self { folder, port, options, process };
            }
        }
        panic!("no server starts on any of {PORTS_MAX} ports");
    }

    /// One that is not there yet.
    pub(super) fn absent() -> Self {
        let mut server = Self::start(&[]);
        server.kill();
        server
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Ends it as a power cut does.
    pub(super) fn kill(&mut self) {
        let _gone = self.process.kill();
        let _reaped = self.process.wait();
    }

    /// Starts it again with the same folder and port.
    pub(super) fn restart(&mut self) {
        self.kill();
        self.process = run(&self.folder, self.port, &self.options).expect("its port is still free");
    }

    /// Sends it a signal: `STOP` or `CONT`.
    pub(super) fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([format!("-{name}"), pid]).status().unwrap().success());
    }

    /// Asks it something, on a connection of its own.
    pub(super) async fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let client = Client::open(self.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut command = Cmd::new();
        command.arg(words);
        command.query_async(&mut connection).await.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts a server and waits until it is ready; `None` if it ended before.
fn run(folder: &TempDir, port: u16, options: &[String]) -> Option<Child> {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"]);
    command.arg("--dir").arg(folder.path()).args(options);
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut process = spawned.expect("redis-server is missing: tests/scripts/need.sh redis gets it");
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    loop {
        match within(process.id(), "Redis is ready", || lines.next()) {
            Some(Ok(line)) if line.contains("Ready to accept connections") => break,
            Some(Ok(_)) => {}
            Some(Err(_)) | None => {
                process.wait().unwrap();
                return None;
            }
        }
    }
    // What it says later is of no interest, but it must be able to say it.
    std::thread::spawn(move || lines.count());
    Some(process)
}
