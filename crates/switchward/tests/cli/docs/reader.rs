//! A reader who plays a page in an empty folder: writes its files, types its commands, sends its requests.

use figment::{
    Figment,
    providers::{Format as _, Toml},
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fmt, fs};
use switchward_formats::{
    Report, SourceFile, detect,
    document::{Syntax, read},
    has_errors, render_segments,
};

use super::compare;
use super::page::{Block, Kind, Typed, blocks, typed};
use super::terminal::{Printed, Running};
use crate::support::{Ended, exchange, program};

/// The words that stand for ids, and what those begin with.
const IDS: [(&str, &str); 4] = [("SESSION", "ses_"), ("GATE", "gat_"), ("WORK", "wrk_"), ("EFFECT", "eff_")];
/// Where the server of a page is, as pages write it. The test uses another port.
const SHOWN: &str = "127.0.0.1:7400";
/// What starts a development server, alone or with options.
const SERVING: &str = "switchward dev";
/// What ends the announcement of a development server, and of several.
const ANNOUNCED: [&str; 2] = ["ctrl-c stops the server.\n", "ctrl-c stops the servers.\n"];
/// Commands that run until they are stopped.
const FOLLOWING: [&str; 2] = ["switchward watch", "switchward listen"];
/// Commands that only read, unless they send data. Their output may need a moment, so they are repeated until it is there.
const READING: [&str; 3] = ["switchward get ", "switchward list ", "curl -s http"];
/// How long they are repeated.
const READING_MAX: Duration = Duration::from_secs(60);

/// What did not go as a page says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    page: String,
    line: usize,
    /// The command, or the fence.
    of: String,
    what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}\n{}", self.page, self.line, self.of, self.what)
    }
}

/// Plays a page from its first block to its last.
///
/// # Errors
/// The first failure.
pub(super) fn play(page: &str, text: &str) -> Result<(), Failure> {
    let failure = |line, of: &str, what| Failure { page: page.to_owned(), line, of: of.to_owned(), what };
    let blocks = blocks(text).map_err(|(line, what)| failure(line, "fence", what))?;
    let mut reader = Reader::new(&blocks);
    for (at, block) in blocks.iter().enumerate() {
        let next = blocks.get(at + 1).filter(|next| next.kind == Kind::Output).map(|next| next.text.as_str());
        if block.kind == Kind::Shell {
            let lines = typed(block);
            for (index, line) in lines.iter().enumerate() {
                let shown = next.filter(|_| index + 1 == lines.len());
                reader.types(line, shown).map_err(|what| failure(line.at, &line.text, what))?;
            }
        } else {
            let before = at.checked_sub(1).map(|at| &blocks[at].kind);
            let of = text.lines().nth(block.at - 1).unwrap_or_default();
            reader.reads(block, before).map_err(|what| failure(block.at, of, what))?;
            let compared = blocks.get(at + 1).is_some_and(|next| next.kind == Kind::Answer);
            if let Some(refused) = reader.refused.take().filter(|_| !compared) {
                return Err(failure(block.at, of, refused));
            }
        }
    }
    Ok(())
}

/// The reader of a page.
struct Reader {
    home: tempfile::TempDir,
    /// The folder of the terminal.
    at: PathBuf,
    server: Option<Server>,
    exported: Vec<(String, String)>,
    /// The last ids, by the words that stand for them.
    ids: BTreeMap<&'static str, String>,
    /// Names that occur in commands which must fail: such files may be wrong.
    wrong: String,
    /// The last answer to a request.
    answer: Option<Value>,
    /// The last answer, if it is an error.
    refused: Option<String>,
}

/// A development server.
struct Server {
    running: Running,
    /// `127.0.0.1:41234`.
    address: String,
}

impl Reader {
    fn new(blocks: &[Block]) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let at = home.path().join("page");
        fs::create_dir(&at).expect("a folder");
        let shell = blocks.iter().filter(|block| block.kind == Kind::Shell);
        let wrong =
            shell.flat_map(typed).filter(|line| line.code != 0).map(|line| line.text).collect::<Vec<_>>();
        let (exported, ids, wrong) = (Vec::new(), BTreeMap::new(), wrong.join("\n"));
        Self { home, at, server: None, exported, ids, wrong, answer: None, refused: None }
    }

    /// Does what a block that is not for the terminal asks for.
    fn reads(&mut self, block: &Block, before: Option<&Kind>) -> Result<(), String> {
        match &block.kind {
            Kind::File { language, name } => self.writes(language, name, &block.text),
            Kind::Fragment { language } => self.parses(language, "fragment", &block.text),
            Kind::Request { path, context } => self.asks(path, context, &block.text),
            Kind::Answer if !matches!(before, Some(Kind::Request { .. })) => {
                Err("no request is directly before this answer".to_owned())
            }
            Kind::Answer => {
                let shown = serde_json::from_str(&block.text).map_err(|error| error.to_string())?;
                let got = self.answer.take().unwrap_or_default();
                compare::answer(&shown, &got).map_err(|what| format!("{what}\nthe answer: {got:#}"))
            }
            Kind::Output if before != Some(&Kind::Shell) => {
                Err("no commands are directly before this output".to_owned())
            }
            // Compared with the command before.
            Kind::Output | Kind::Shown | Kind::Shell => Ok(()),
        }
    }

    /// Writes a file and checks it.
    fn writes(&mut self, language: &str, name: &str, text: &str) -> Result<(), String> {
        let path = self.at.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).map_err(|error| error.to_string())?;
        fs::write(&path, text).map_err(|error| error.to_string())?;
        self.parses(language, name, text)?;
        let source = SourceFile { path: name, bytes: text.as_bytes() };
        let is_definition = matches!(language, "yaml" | "json") && detect(&[source]).is_ok();
        if is_definition && !has_word(&self.wrong, name) {
            return self.succeeds(&["switchward", "check", name]);
        }
        let options = Ended::of(program().args(["server", "--help"])).out;
        if language == "toml" && options.contains("--check-config") {
            return self.succeeds(&["switchward", "server", "--config", name, "--check-config"]);
        }
        Ok(())
    }

    /// Parses a text.
    fn parses(&self, language: &str, name: &str, text: &str) -> Result<(), String> {
        match language {
            "yaml" => parse(name, text, Syntax::Yaml),
            // Fields of an object that is not shown parse, too.
            "json" => parse(name, text, Syntax::Json)
                .or_else(|error| parse(name, &format!("{{{text}}}"), Syntax::Json).map_err(|_| error)),
            "toml" => {
                let figment = Figment::from(Toml::string(text));
                figment.extract::<BTreeMap<String, Value>>().map(drop).map_err(|error| error.to_string())
            }
            "python" => {
                let file = self.home.path().join("parsed.py");
                fs::write(&file, text).map_err(|error| error.to_string())?;
                let parse = "import ast, sys; ast.parse(open(sys.argv[1]).read())";
                self.succeeds(&["python3", "-c", parse, &file.display().to_string()])
            }
            other => Err(format!("{other} is not parsed")),
        }
    }

    /// Sends a request to the page's server.
    fn asks(&mut self, path: &str, context: &str, body: &str) -> Result<(), String> {
        let file = self.home.path().join("contexts").join(format!("{context}.json"));
        let context = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let context: Value = serde_json::from_slice(&context).map_err(|error| error.to_string())?;
        let host = context["address"].as_str().and_then(|it| it.strip_prefix("http://")).expect("an address");
        let key = format!("Bearer {}", context["api_key"].as_str().expect("a key"));
        let headers = [("authorization", key.as_str()), ("content-type", "application/json")];
        let body = self.with_ids(body)?;
        let (head, answer) = exchange(host, host, &format!("POST {path}"), &headers, &body);
        let answer = serde_json::from_str(&answer).map_err(|error| format!("{error}: {head}\n{answer}"))?;
        self.notes(&format!("{answer}"));
        self.refused = (!head.starts_with("HTTP/1.1 200")).then(|| format!("refused: {answer:#}"));
        self.answer = Some(answer);
        Ok(())
    }

    /// Types a line. `shown` is what the page says that it prints.
    fn types(&mut self, line: &Typed, shown: Option<&str>) -> Result<(), String> {
        let text = self.with_ids(&line.text)?;
        if let Some(export) = text.strip_prefix("export ") {
            let (name, value) = export.split_once('=').ok_or("this exports no variable")?;
            let value = self.runs(&format!("printf %s {value}"))?.out;
            self.exported.push((name.to_owned(), value));
            return Ok(());
        }
        if let Some(folder) = text.strip_prefix("cd ") {
            self.at = self.at.join(folder).canonicalize().map_err(|error| error.to_string())?;
            return Ok(());
        }
        let mut printed = if serves(&text) && line.code == 0 {
            self.serves(&text)?
        } else if FOLLOWING.iter().any(|it| text.starts_with(it)) {
            self.follows(&text, shown)?
        } else {
            self.runs(&text)?
        };
        let reads = READING.iter().any(|it| text.starts_with(it)) && !text.contains(" -d ");
        let deadline = Instant::now() + READING_MAX;
        while reads && shown.is_some_and(|shown| compare::lines(shown, &self.seen(&printed)).is_err()) {
            if Instant::now() > deadline {
                break;
            }
            printed = self.runs(&text)?;
        }
        self.notes(&printed.all());
        let seen = self.seen(&printed);
        if printed.code.is_some_and(|code| code != line.code) {
            let code = printed.code.unwrap_or_default();
            return Err(format!("exit code {code}, the page says {}; it printed:\n{seen}", line.code));
        }
        let compared = shown.map_or(Ok(()), |shown| compare::lines(shown, &seen));
        compared.map_err(|missing| format!("it did not print: {missing}\nit printed:\n{seen}"))
    }

    /// What a reader sees, whose server has the usual port.
    fn seen(&self, printed: &Printed) -> String {
        match &self.server {
            Some(server) => printed.all().replace(&server.address, SHOWN),
            None => printed.all(),
        }
    }

    /// Starts a server instead of the one before, on any port.
    fn serves(&mut self, line: &str) -> Result<Printed, String> {
        if let Some(before) = self.server.take() {
            before.running.stop();
        }
        let mut running = Running::start(&mut self.shell(&format!("{line} --port 0")));
        let announced = |printed: &Printed| ANNOUNCED.iter().any(|it| printed.out.ends_with(it));
        running.until(|printed| announced(printed) || printed.out.starts_with('{'))?;
        let printed = running.printed.clone();
        let address = printed.out.split("http://").nth(1).unwrap_or_default();
        let end =
            address.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':').unwrap_or(address.len());
        let address = address[..end].to_owned();
        self.server = Some(Server { running, address });
        Ok(printed)
    }

    /// Runs a command that goes on, until it has printed this, or, without that, anything.
    fn follows(&self, line: &str, shown: Option<&str>) -> Result<Printed, String> {
        let mut running = Running::start(&mut self.shell(line));
        let enough = |printed: &Printed| match shown {
            Some(shown) => compare::lines(shown, &self.seen(printed)).is_ok(),
            None => !printed.out.is_empty(),
        };
        running.until(enough)?;
        // It may have ended by itself.
        let code = running.printed.code;
        Ok(Printed { code, ..running.stop() })
    }

    /// Runs a command to its end.
    fn runs(&self, line: &str) -> Result<Printed, String> {
        let mut running = Running::start(&mut self.shell(line));
        running.until(|printed| printed.code.is_some())?;
        Ok(running.printed.clone())
    }

    /// Runs a program, which must succeed.
    fn succeeds(&self, words: &[&str]) -> Result<(), String> {
        let mut running = Running::start(self.shell("exec \"$@\"").arg("sh").args(words));
        running.until(|printed| printed.code.is_some())?;
        if running.printed.code == Some(0) { Ok(()) } else { Err(running.printed.all()) }
    }

    /// A line of a shell, with the program on its path.
    fn shell(&self, line: &str) -> Command {
        let this = program();
        let bin = Path::new(this.get_program()).parent().expect("a folder");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(&self.at);
        for (name, value) in this.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("PATH", path).env("HOME", self.home.path());
        command.env("SWITCHWARD_CONTEXTS", self.home.path().join("contexts"));
        command.envs(self.exported.iter().map(|(name, value)| (name, value)));
        command
    }

    /// A text with ids and the server's address instead of what stands for them.
    fn with_ids(&self, text: &str) -> Result<String, String> {
        let mut text = text.to_owned();
        for (word, prefix) in IDS {
            if has_word(&text, word) {
                let id = self.ids.get(word).ok_or_else(|| format!("no command has printed {prefix}..."))?;
                text = replace_word(&text, word, id);
            }
        }
        Ok(match &self.server {
            Some(server) => text.replace(SHOWN, &server.address),
            None => text,
        })
    }

    /// Remembers the last id of each kind.
    fn notes(&mut self, printed: &str) {
        for word in printed.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            for (name, prefix) in IDS {
                if word.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()) {
                    self.ids.insert(name, word.to_owned());
                }
            }
        }
    }
}

/// Returns true for a command that starts a server, and not for one about the servers that run.
fn serves(line: &str) -> bool {
    line.strip_prefix(SERVING).is_some_and(|rest| rest.is_empty() || rest.starts_with(" --"))
}

/// Parses a document as `switchward check` does.
fn parse(name: &str, text: &str, syntax: Syntax) -> Result<(), String> {
    let mut report = Report::new(name);
    let _tree = read(text.as_bytes(), syntax, &mut report);
    let findings = report.finish();
    let shown = || render_segments(&findings, text.as_bytes()).into_iter().map(|segment| segment.text);
    if has_errors(&findings) { Err(shown().collect()) } else { Ok(()) }
}

/// Where a word is, without a letter, digit or underscore next to it.
fn word_at(text: &str, word: &str) -> Option<usize> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let alone = |at: &usize| !text[..*at].ends_with(part) && !text[at + word.len()..].starts_with(part);
    text.match_indices(word).map(|(at, _)| at).find(alone)
}

fn has_word(text: &str, word: &str) -> bool {
    word_at(text, word).is_some()
}

fn replace_word(text: &str, word: &str, by: &str) -> String {
    match word_at(text, word) {
        Some(at) => format!("{}{by}{}", &text[..at], replace_word(&text[at + word.len()..], word, by)),
        None => text.to_owned(),
    }
}
