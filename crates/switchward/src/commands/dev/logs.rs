//! The logs of several processes on one standard error: each line begins with the name of its process.

use anstyle::{AnsiColor, Style};
use std::io::Write as _;
use switchward_messages::cli::dev::ready;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};

use crate::output::{STRONG, clean};

/// The longest line, bytes; a longer one is printed as several.
const LINE_BYTES_MAX: u64 = 16 * 1024;
/// The width of a name.
const WIDTH: usize = 8;
/// The colours of the servers, in turn.
const COLOURS: [AnsiColor; 5] =
    [AnsiColor::Cyan, AnsiColor::Magenta, AnsiColor::Yellow, AnsiColor::Blue, AnsiColor::Green];

/// Where a line comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// The command itself.
    Dev,
    /// A server, by number.
    Server(u64),
}

impl Source {
    fn name(self) -> String {
        match self {
            Self::Dev => "dev".to_owned(),
            Self::Server(number) => format!("server {number}"),
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Dev => STRONG,
            Self::Server(number) => {
                let at = usize::try_from(number).unwrap_or_default().saturating_sub(1) % COLOURS.len();
                COLOURS[at].on_default()
            }
        }
    }
}

/// Returns true if a line of the log, without colour, says that this server is ready.
pub(super) fn says_ready(line: &str, server: u64) -> bool {
    let from_dev =
        line.strip_prefix(&Source::Dev.name()).and_then(|rest| rest.trim_start().strip_prefix("| "));
    from_dev == Some(ready(server).as_str())
}

/// Prints a line, with colour if the standard error is a terminal.
pub(super) fn say(source: Source, line: &str) {
    // If nobody reads the log any longer, the cluster goes on.
    let _unread = writeln!(anstream::stderr().lock(), "{}", prefixed(source, line));
}

fn prefixed(source: Source, line: &str) -> String {
    let style = source.style();
    format!("{style}{:<WIDTH$} |{style:#} {}", source.name(), clean(line))
}

/// Prints what a process writes, until it ends.
pub(super) async fn follow(source: Source, output: impl AsyncRead + Unpin) {
    let mut lines = Lines::of(output);
    while let Some(line) = lines.next().await {
        say(source, &line);
    }
}

/// The lines of a process, each with a bound.
pub(super) struct Lines<R>(BufReader<R>);

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn of(output: R) -> Self {
        Self(BufReader::new(output))
    }

    /// The next line without its end; `None` if there is none or it cannot be read.
    pub(super) async fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let read = (&mut self.0).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await.ok()?;
        (read > 0).then(|| String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_whole_and_bounded() {
        let long = "x".repeat(usize::try_from(LINE_BYTES_MAX).unwrap() + 5);
        let text = format!("one\ntwo\r\n{long}\nlast");
        let mut lines = Lines::of(text.as_bytes());
        let mut read = Vec::new();
        while let Some(line) = lines.next().await {
            read.push(line);
        }
        let (head, tail) = long.split_at(usize::try_from(LINE_BYTES_MAX).unwrap());
        assert_eq!(read, ["one", "two", head, tail, "last"]);
    }

    #[test]
    fn a_line_begins_with_the_name_of_its_process() {
        let plain = |source, line: &str| anstream::adapter::strip_str(&prefixed(source, line)).to_string();
        assert_eq!(plain(Source::Server(2), "ready"), "server 2 | ready");
        assert_eq!(plain(Source::Dev, "killed\u{1b}[2J"), "dev      | killed\u{fffd}[2J");
        assert!(says_ready(&plain(Source::Dev, &ready(2)), 2));
        assert!(!says_ready(&plain(Source::Dev, &ready(2)), 1));
        assert!(!says_ready(&plain(Source::Server(2), &ready(2)), 2), "a server says it");
        assert_ne!(prefixed(Source::Server(1), ""), prefixed(Source::Server(2), "").replace('2', "1"));
    }
}
