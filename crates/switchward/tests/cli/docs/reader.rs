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

use super::hosts::Hosts;
use super::needs::Needs;
use super::page::{Block, Kind, Typed, blocks, typed};
use super::terminal::{Printed, Running};
use super::{compare, steps};
use crate::support::{exchange, program};

/// The words that stand for ids and keys, and what those begin with.
const IDS: [(&str, &str); 5] =
    [("SESSION", "ses_"), ("GATE", "gat_"), ("WORK", "wrk_"), ("EFFECT", "eff_"), ("swk_...", "swk_")];
/// Where the server of a page is, as pages write it. The test uses another port.
const SHOWN: &str = "127.0.0.1:7400";
/// What starts a development server, alone or with options.
const SERVING: &str = "switchward dev";
/// What starts a process of a server by its configuration.
const SERVER: &str = "switchward server ";
/// What starts the Redis that it needs, and what this says when it answers.
const REDIS: &str = "redis-server ";
const REDIS_ANSWERS: &str = "Ready to accept connections";
/// Any free port of this machine.
const ANY_PORT: &str = "127.0.0.1:0";
/// What ends the announcement of a development server, and of several.
const ANNOUNCED: [&str; 2] = ["ctrl-c stops the server.\n", "ctrl-c stops the servers.\n"];
/// Commands that run until they are stopped.
const FOLLOWING: [&str; 2] = ["switchward watch", "switchward listen"];
/// Commands that only read, unless they send data. Their output may need a moment, so they are repeated until it is there.
const READING: [&str; 4] =
    ["switchward get ", "switchward list ", "switchward cluster status", "curl -s http"];
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

/// A page that is played, or a part of what one needs.
struct Page<'a> {
    name: String,
    text: &'a str,
    blocks: &'a [Block],
}

/// Plays a page from its first block to its last.
///
/// # Errors
/// The first failure.
pub(super) fn play(page: &str, text: &str) -> Result<(), Failure> {
    let name = page.to_owned();
    let fence = |(line, what)| Failure { page: name.clone(), line, of: "fence".to_owned(), what };
    let blocks = blocks(text).map_err(fence)?;
    let (needs, mut reader) = (Needs::of(page), Reader::new(&blocks));
    let page = Page { name, text, blocks: &blocks };
    for (at, block) in blocks.iter().enumerate() {
        if let Some(before) = needs.before(block) {
            let name = format!("page-needs.md, before {}", before.command);
            let before = Page { name, text: &before.text, blocks: &before.blocks };
            (0..before.blocks.len()).try_for_each(|at| reader.plays(&before, at, &needs))?;
        }
        reader.plays(&page, at, &needs)?;
    }
    Ok(())
}

/// The reader of a page.
struct Reader {
    home: tempfile::TempDir,
    /// The folder of the terminal.
    at: PathBuf,
    /// The servers that run, in the order of their starts.
    servers: Vec<Running>,
    /// Where the newest of them is that has an address for clients, such as `127.0.0.1:41234`.
    address: Option<String>,
    hosts: Hosts,
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

impl Reader {
    fn new(blocks: &[Block]) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let at = home.path().join("page");
        fs::create_dir(&at).expect("a folder");
        let shell = blocks.iter().filter(|block| block.kind.is_typed());
        let wrong =
            shell.flat_map(typed).filter(|line| line.code != 0).map(|line| line.text).collect::<Vec<_>>();
        Self {
            home,
            at,
            servers: Vec::new(),
            address: None,
            hosts: Hosts::default(),
            exported: Vec::new(),
            ids: BTreeMap::new(),
            wrong: wrong.join("\n"),
            answer: None,
            refused: None,
        }
    }

    /// Plays one block of a page.
    fn plays(&mut self, page: &Page<'_>, at: usize, needs: &Needs) -> Result<(), Failure> {
        let failure =
            |line, of: &str, what| Failure { page: page.name.clone(), line, of: of.to_owned(), what };
        let (block, next) = (&page.blocks[at], page.blocks.get(at + 1));
        let fence = page.text.lines().nth(block.at - 1).unwrap_or_default();
        if block.kind.is_typed() {
            if block.kind == Kind::Stopped {
                self.stops();
            }
            let shown = next.filter(|next| next.kind == Kind::Output).map(|next| next.text.as_str());
            let lines = typed(block);
            for (index, line) in lines.iter().enumerate() {
                let shown = shown.filter(|_| index + 1 == lines.len());
                let done = self.types(line, &needs.confirm(&line.text), shown);
                done.map_err(|what| failure(line.at, &line.text, what))?;
            }
            return Ok(());
        }
        let before = at.checked_sub(1).map(|at| &page.blocks[at].kind);
        let read = if let Kind::By { step } = &block.kind {
            steps::is_run(&page.name, step, block)
        } else {
            self.reads(block, before)
        };
        read.map_err(|what| failure(block.at, fence, what))?;
        let compared = next.is_some_and(|next| next.kind == Kind::Answer);
        match self.refused.take().filter(|_| !compared) {
            Some(refused) => Err(failure(block.at, fence, refused)),
            None => Ok(()),
        }
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
            Kind::Mail { to } => self.finds_mail(to, &block.text),
            Kind::Output if !before.is_some_and(Kind::is_typed) => {
                Err("no commands are directly before this output".to_owned())
            }
            // An output is compared with the command before it; commands and steps are no reading.
            Kind::Output | Kind::Shown | Kind::Manual | Kind::Shell | Kind::Stopped | Kind::By { .. } => {
                Ok(())
            }
        }
    }

    /// Writes a file and checks it.
    fn writes(&mut self, language: &str, name: &str, text: &str) -> Result<(), String> {
        let path = self.at.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).map_err(|error| error.to_string())?;
        fs::write(&path, self.hosts.here(text)).map_err(|error| error.to_string())?;
        self.parses(language, name, text)?;
        let source = SourceFile { path: name, bytes: text.as_bytes() };
        let is_definition = matches!(language, "yaml" | "json") && detect(&[source]).is_ok();
        if is_definition && !has_word(&self.wrong, name) {
            return self.succeeds(&["switchward", "check", name]);
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

    /// Looks for a mail of the page's server to this address that has these lines.
    fn finds_mail(&self, to: &str, shown: &str) -> Result<(), String> {
        let host = self.address.as_deref().ok_or("the page has no server")?;
        let (head, body) = exchange(host, host, "GET /mail.json", &[], "");
        let mails: Vec<Value> =
            serde_json::from_str(&body).map_err(|error| format!("{error}: {head}\n{body}"))?;
        let of_person = mails.iter().filter(|mail| mail["to"] == to);
        let texts: Vec<String> =
            of_person.map(|mail| self.as_shown(mail["text"].as_str().unwrap_or_default())).collect();
        // Mails are wrapped at other widths than pages.
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let has = |text: &String| {
            compare::lines(shown, text).or_else(|_| compare::lines(&flat(shown), &flat(text))).is_ok()
        };
        if texts.iter().any(has) {
            return Ok(());
        }
        Err(format!("no mail to {to} has these lines; the mails to them:\n{}", texts.join("\n\n")))
    }

    /// Does what a line changes in the terminal itself. Returns false if it is another command.
    fn changes(&mut self, line: &str) -> Result<bool, String> {
        if let Some(export) = line.strip_prefix("export ") {
            let (name, value) = export.split_once('=').ok_or("this exports no variable")?;
            let value = self.runs(&format!("printf %s {value}"))?.out;
            self.exported.push((name.to_owned(), value));
        } else if let Some(names) = line.strip_prefix("unset ") {
            self.exported.retain(|(name, _)| !names.split_whitespace().any(|it| it == name));
        } else if let Some(folder) = line.strip_prefix("cd ") {
            self.at = self.at.join(folder).canonicalize().map_err(|error| error.to_string())?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Types a line, with `text` as its command. `shown` is what the page says that it prints.
    fn types(&mut self, line: &Typed, text: &str, shown: Option<&str>) -> Result<(), String> {
        let text = self.with_ids(text)?;
        if self.changes(&text)? {
            return Ok(());
        }
        let mut printed = if serves(&text) && line.code == 0 {
            self.serves(&text)?
        } else if begins_server(&text) && line.code == 0 {
            self.begins(&text)?
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
        self.as_shown(&printed.all())
    }

    /// A text with the address that pages write.
    fn as_shown(&self, text: &str) -> String {
        match &self.address {
            Some(address) => text.replace(address, SHOWN),
            None => text.to_owned(),
        }
    }

    /// Starts a development server instead of the servers before, on any port.
    fn serves(&mut self, line: &str) -> Result<Printed, String> {
        self.stops();
        let port = if line.contains(" --port ") { "" } else { " --port 0" };
        let mut running = Running::start(&mut self.shell(&format!("{line}{port}")));
        let announced = |printed: &Printed| ANNOUNCED.iter().any(|it| printed.out.ends_with(it));
        running.until(|printed| announced(printed) || printed.out.starts_with('{'))?;
        Ok(self.adds(running))
    }

    /// Starts a process that serves until the page ends: a server on any port, or its Redis.
    fn begins(&mut self, line: &str) -> Result<Printed, String> {
        let line = if line.starts_with(REDIS) {
            line.to_owned()
        } else if line.contains(" --listen ") {
            format!("{} -o json", line.replace(SHOWN, ANY_PORT))
        } else {
            format!("{line} --listen {ANY_PORT} -o json")
        };
        let mut running = Running::start(&mut self.shell(&line));
        running.until(|printed| printed.out.starts_with('{') || printed.out.contains(REDIS_ANSWERS))?;
        if running.printed.code == Some(0) {
            return Err(format!("it ended before it was ready; it printed:\n{}", running.printed.all()));
        }
        Ok(self.adds(running))
    }

    /// Keeps a server that runs. Returns what it has printed.
    fn adds(&mut self, running: Running) -> Printed {
        let printed = running.printed.clone();
        if printed.code.is_none() {
            self.servers.push(running);
            self.address = address_in(&printed.out).or(self.address.take());
        }
        printed
    }

    /// Stops all servers, the newest first.
    fn stops(&mut self) {
        while let Some(running) = self.servers.pop() {
            running.stop();
        }
        self.address = None;
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
    fn with_ids(&mut self, text: &str) -> Result<String, String> {
        let mut text = self.hosts.here(text);
        for (word, prefix) in IDS {
            if has_word(&text, word) {
                let id = self.ids.get(word).ok_or_else(|| format!("no command has printed {prefix}..."))?;
                text = replace_word(&text, word, id);
            }
        }
        Ok(match &self.address {
            Some(address) if !begins_server(&text) => text.replace(SHOWN, address),
            _ => text,
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

/// Returns true for a command that starts a server by its configuration, or its Redis.
fn begins_server(line: &str) -> bool {
    line.starts_with(SERVER) || line.starts_with(REDIS)
}

/// The address for clients in a server's announcement: `127.0.0.1:41234`.
fn address_in(announced: &str) -> Option<String> {
    let metrics = announced.find("\"metrics\"").unwrap_or(announced.len());
    let (_, address) = announced[..metrics].split_once("://")?;
    let end = address.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':').unwrap_or(address.len());
    (end > 0).then(|| address[..end].to_owned())
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
