//! Runs the README: its commands in the order of the page, in the folders that it names. Only the port differs, and SESSION
//! and GATE are the ids that earlier commands have printed.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use crate::support::{Ended, Process, folder, program, repository};

/// What ends the announcement of a development server.
const LAST: &str = "ctrl-c stops it.";
/// The exit codes other than 0: the approver has not decided, and the host ops.example does not exist.
const CODES: [(&str, i32); 3] = [
    ("mcp:filesystem:write_file", 7),
    ("switchward endpoint ping ops", 1),
    ("switchward trigger session.completed ops", 1),
];
/// What the page promises of single commands.
const PROMISES: [(&str, &str); 12] = [
    ("switchward check deploy-gate.json", "deploy-gate.json: ok"),
    ("switchward deploy deploy-gate.json", "version     1, "),
    ("switchward authorize SESSION bash", "left  49 calls"),
    ("switchward authorize SESSION mcp:filesystem:write_file", "a person is asked"),
    ("switchward decide GATE approve", "approved by person"),
    ("switchward watch SESSION", "session.started"),
    ("switchward turn refund-7 \"250", "review"),
    ("switchward turn refund-7  ", "wait (time) at settle until "),
    ("switchward get refund-7", "completed"),
    ("switchward turn refund-8", "work ("),
    ("switchward work poll", "switchward work complete"),
    ("switchward listen", "is told of what happens"),
];

/// A block of the page, with the prose before it.
struct Block {
    before: String,
    language: String,
    lines: Vec<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let (mut found, mut before, mut open) = (Vec::new(), String::new(), None::<Block>);
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                let (before, language) = (std::mem::take(&mut before), language.to_owned());
                open = Some(Block { before, language, lines: Vec::new() });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(block)) => block.lines.push(line.to_owned()),
            (None, None) => {
                before.push_str(line);
                before.push(' ');
            }
        }
    }
    found
}

/// A server in the first terminal.
struct First {
    _process: Process,
    _stdout: BufReader<ChildStdout>,
    announced: String,
}

/// A reader at two terminals.
struct Reader {
    home: tempfile::TempDir,
    /// The folder of the second terminal.
    at: PathBuf,
    first: Option<First>,
    exported: Vec<(String, String)>,
    session: String,
    gate: String,
}

impl Reader {
    fn new() -> Self {
        let home = folder(&[("empty/.keep", "")]);
        fs::remove_file(home.path().join("empty/.keep")).expect("a file");
        let at = home.path().join("empty");
        Self { home, at, first: None, exported: Vec::new(), session: "SESSION".into(), gate: "GATE".into() }
    }

    /// A line of a shell, with the program on its path.
    fn shell(&self, line: &str) -> Command {
        let this = program();
        let bin = Path::new(this.get_program()).parent().expect("a folder");
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec {line}")]).current_dir(&self.at).stdin(Stdio::null());
        for (name, value) in this.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("PATH", path).env("SWITCHWARD_CONTEXTS", self.home.path().join("contexts"));
        command.envs(self.exported.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Changes to the folder that the prose names, and writes the file that it shows.
    fn goes(&mut self, prose: &str, sample: &str) {
        let folder = self.home.path().join("empty");
        if prose.contains("in an empty folder") {
            assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 0);
            self.at = folder;
        } else if prose.contains("eside the `deploy-gate.json`") {
            self.at = folder;
        } else if prose.contains("in the root of this repository") {
            self.at = repository(".");
        }
        if let Some((_, name)) = prose.split_once("the lines above as `") {
            let name = name.split('`').next().expect("a name");
            fs::write(self.at.join(name), sample).expect("a file");
        }
    }

    /// Starts a server instead of the one before, on any port.
    fn serves(&mut self, line: &str) {
        self.first = None;
        let mut process = Process(
            self.shell(&format!("{line} --port 0")).stdout(Stdio::piped()).spawn().expect("it starts"),
        );
        let mut stdout = BufReader::new(process.0.stdout.take().expect("it has an output"));
        let mut announced = String::new();
        while !announced.ends_with(&format!("{LAST}\n")) {
            assert!(stdout.read_line(&mut announced).expect("UTF-8") > 0, "{line}: {announced}");
        }
        self.first = Some(First { _process: process, _stdout: stdout, announced });
    }

    /// What a command prints that goes on until it is stopped, up to this.
    fn follows(&self, line: &str, promised: &str) {
        let mut process = Process(self.shell(line).stdout(Stdio::piped()).spawn().expect("it starts"));
        let mut lines = BufReader::new(process.0.stdout.take().expect("it has an output")).lines();
        assert!(lines.any(|line| line.expect("UTF-8").contains(promised)), "{line}: {promised}");
        process.stop();
    }

    /// Types a line.
    fn types(&mut self, typed: &str) {
        let line = typed.replace("SESSION", &self.session).replace("GATE", &self.gate);
        let bare = line.split(" #").next().unwrap_or_default().trim().to_owned();
        let promised = PROMISES.iter().find(|(start, _)| typed.starts_with(start)).map(|(_, it)| *it);
        if bare.starts_with("switchward dev") {
            return self.serves(&bare);
        }
        if let Some(export) = bare.strip_prefix("export ") {
            let (name, value) = export.split_once('=').expect("a variable");
            return self.exported.push((name.to_owned(), value.to_owned()));
        }
        if bare.starts_with("switchward watch") || bare.starts_with("switchward listen") {
            return self.follows(&bare, promised.expect("it prints something"));
        }
        let code = CODES.iter().find(|(part, _)| bare.contains(part)).map_or(0, |(_, code)| *code);
        let ended = Ended::of(&mut self.shell(&line)).with_code(code);
        if let Some(promised) = promised {
            assert!(
                format!("{}{}", ended.out, ended.err).contains(promised),
                "{line}: {promised}: {ended:?}"
            );
        }
        for word in ended.out.split_whitespace() {
            match word.split_once('_') {
                Some(("ses", _)) => word.clone_into(&mut self.session),
                Some(("gat", _)) => word.clone_into(&mut self.gate),
                Some(_) | None => {}
            }
        }
    }
}

#[test]
fn the_page_can_be_typed_from_its_first_line_to_its_last() {
    let page = fs::read_to_string(repository("README.md")).expect("a page");
    let (_, page) = page.split_once("\n## A deploy gate\n").expect("the page shows a process");
    let mut reader = Reader::new();
    let (mut sample, mut prose, mut typed) = (String::new(), String::new(), 0);
    for block in blocks(page) {
        prose.push_str(&block.before);
        match block.language.as_str() {
            "json" | "yaml" => sample = block.lines.join("\n"),
            "" => {
                reader.goes(&prose, &sample);
                prose.clear();
                for line in &block.lines {
                    reader.types(line);
                    typed += 1;
                }
            }
            // The worker in Python is played by tests of its own.
            "python" => {}
            other => panic!("nobody plays {other}"),
        }
    }
    assert!(typed >= 40, "{typed} lines");
    let first = reader.first.expect("a server runs");
    assert!(first.announced.contains("claude-haiku-4-5"), "it says which model it asks: {}", first.announced);
}
