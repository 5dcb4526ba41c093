//! The commands of `sh manual` blocks and of code spans, which the tests of the pages do not run as they stand: the parser of
//! the command line accepts each of them.

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::fs;
use std::path::{Path, PathBuf};

use crate::args::Args;

const FENCE: &str = "```";
const MANUAL: &str = "```sh manual";
const PROGRAM: &str = "switchward";
/// Commands that the pages show at least: fewer means that they are not found any more.
const COMMANDS_MIN: usize = 150;
/// Pages that show commands at least: that of the command line.
const PAGES_MIN: usize = 1;
/// Code spans that begin with the program's name, at least.
const SPANS_MIN: usize = 150;
/// The value that replaces a placeholder: a number is a valid value of most options.
const STAND_IN: &str = "1";
/// The placeholder that stands for the words of any command.
const ANY_COMMAND: &str = "COMMAND";

/// What separates the words of a line, apart from spaces.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// `|`, `||`, `&`, `&&` or `;`: a command ends.
    End,
    /// `<`, `>` or `>>`: the next word is a file of the shell.
    File,
}

/// A line of a shell as its tokens, without its comment. Only what the pages use: quotes, but no escapes.
fn tokens(line: &str) -> Vec<Token> {
    let (mut found, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars().chain([' ']) {
        match (c, quote) {
            (_, Some(open)) if c == open => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(c),
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#', None) if word.is_none() => break,
            (' ' | '|' | '&' | ';' | '<' | '>', None) => {
                found.extend(word.take().map(Token::Word));
                match c {
                    ' ' => {}
                    '<' | '>' => found.push(Token::File),
                    _ => found.push(Token::End),
                }
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    found
}

/// True for `NAME=value`, which sets a variable of the command's environment.
fn sets(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}

/// The calls of the program in a line of a shell, each with the program's name as its first word.
fn calls(line: &str) -> Vec<Vec<String>> {
    let (mut found, mut words, mut file) = (Vec::new(), Vec::new(), false);
    for token in tokens(line).into_iter().chain([Token::End]) {
        match token {
            Token::Word(_) if file => file = false,
            Token::Word(word) if words.is_empty() && sets(&word) => {}
            Token::Word(word) => words.push(word),
            Token::File => file = true,
            Token::End => {
                let call = std::mem::take(&mut words);
                if call.first().is_some_and(|program| program == PROGRAM) {
                    found.push(call);
                }
            }
        }
    }
    found
}

/// The lines of a page's `sh manual` blocks, each with its number from 1 and the lines that continue it.
fn lines(page: &str) -> Vec<(usize, String)> {
    let (mut found, mut manual, mut continues) = (Vec::<(usize, String)>::new(), false, false);
    for (line, at) in page.lines().zip(1..) {
        if line.starts_with(FENCE) {
            (manual, continues) = (line == MANUAL, false);
        } else if manual {
            let (part, more) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
            match found.last_mut() {
                Some((_, before)) if continues => before.push_str(part),
                _ => found.push((at, part.to_owned())),
            }
            continues = more;
        }
    }
    found
}

/// The code spans of a page outside its blocks, each on one line, with the number of the line where it begins.
fn spans(page: &str) -> Vec<(usize, String)> {
    let (mut found, mut fenced) = (Vec::new(), false);
    let (mut paragraph, mut first) = (String::new(), 1_usize);
    for (line, at) in page.lines().chain([""]).zip(1..) {
        let fence = line.trim_start().starts_with(FENCE);
        if !fence && !fenced && !line.trim().is_empty() {
            if paragraph.is_empty() {
                first = at;
            }
            paragraph.extend([line, "\n"]);
            continue;
        }
        fenced ^= fence;
        let mut number = first;
        for (index, part) in std::mem::take(&mut paragraph).split('`').enumerate() {
            if index % 2 == 1 {
                found.push((number, part.split_whitespace().collect::<Vec<_>>().join(" ")));
            }
            number += part.matches('\n').count();
        }
    }
    found
}

/// The word that is parsed for a word of a code span: `N`, `FILE...` and other words in capitals stand for a value.
fn value(word: String) -> String {
    let name = word.trim_end_matches('.');
    let capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_' || c == '-';
    let stands_for = name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(capital);
    if stands_for { STAND_IN.to_owned() } else { word }
}

/// What the parser refuses in a call of a code span; arguments and values may be missing.
fn wrong_in_span(call: Vec<String>) -> Option<clap::Error> {
    let words = call.into_iter().filter(|word| word != ANY_COMMAND).map(value);
    let error = Args::try_parse_from(words).err().filter(clap::Error::use_stderr)?;
    let missing = [
        ErrorKind::MissingRequiredArgument,
        ErrorKind::MissingSubcommand,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    let of_value = [ErrorKind::InvalidValue, ErrorKind::ValueValidation].contains(&error.kind());
    let open = matches!(
        error.get(ContextKind::InvalidValue),
        Some(ContextValue::String(value)) if value.is_empty() || value == STAND_IN
    );
    let tolerated = missing.contains(&error.kind()) || of_value && open;
    (!tolerated).then_some(error)
}

/// `README.md`, `SECURITY.md`, and the pages of `docs/` and `deploy/`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = fs::read_dir(root.join("docs")).expect("a folder").map(|file| file.expect("a file").path());
    let page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let others = ["README.md", "SECURITY.md", "deploy/README.md"].map(|path| root.join(path));
    files.filter(page).chain(others).collect()
}

#[test]
fn every_command_that_the_pages_only_show_is_one_of_the_program() {
    let (mut commands, mut showing, mut refused) = (0, 0, Vec::new());
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a page");
        let before = commands;
        for (at, line) in lines(&page) {
            for call in calls(&line) {
                commands += 1;
                if let Err(error) = Args::try_parse_from(&call)
                    && error.use_stderr()
                {
                    refused.push(format!("{}:{at}: {line}\n{error}", path.display()));
                }
            }
        }
        showing += usize::from(commands > before);
    }
    assert!(refused.is_empty(), "{} of {commands}:\n{}", refused.len(), refused.join("\n"));
    assert!(commands >= COMMANDS_MIN && showing >= PAGES_MIN, "{commands} commands on {showing} pages");
}

#[test]
fn every_command_that_a_sentence_names_is_one_of_the_program() {
    let (mut named, mut refused) = (0, Vec::new());
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a page");
        for (at, span) in spans(&page) {
            for call in calls(&span).into_iter().filter(|call| call.len() > 1) {
                named += 1;
                let error = wrong_in_span(call);
                refused.extend(error.map(|error| format!("{}:{at}: {span}\n{error}", path.display())));
            }
        }
    }
    assert!(refused.is_empty(), "{} of {named}:\n{}", refused.len(), refused.join("\n"));
    assert!(named >= SPANS_MIN, "{named} commands in sentences");
}

#[test]
fn code_spans_are_read_outside_of_blocks_and_over_line_ends() {
    let page = "a `b` c `d\n  e`\n\n`f\n\n| `g` |\n```sh\n`h`\n```\n`i`";
    let expected = [(1_usize, "b"), (1, "d e"), (4, "f"), (6, "g"), (10, "i")];
    assert_eq!(spans(page), expected.map(|(at, span)| (at, span.to_owned())));
}

#[test]
fn a_sentence_may_leave_out_arguments_and_values_and_nothing_else() {
    let wrong = |line: &str| {
        let found = calls(line);
        let [call] = &found[..] else { panic!("{line}") };
        wrong_in_span(call.clone()).is_some()
    };
    for line in [
        "switchward COMMAND --help",
        "switchward cluster",
        "switchward cluster drain N --wait",
        "switchward dev link 1 2 MODE",
        "switchward dev --data-dir",
        "switchward decide",
        "switchward simulate FILE...",
    ] {
        assert!(!wrong(line), "{line}");
    }
    for line in [
        "switchward clusters",
        "switchward cluster drain N --wait-for",
        "switchward dev kill one",
        "switchward tenant set --defaults deny",
        "switchward decide GATE approved",
        "switchward pause SESSION SESSION",
    ] {
        assert!(wrong(line), "{line}");
    }
}

#[test]
fn a_line_is_its_calls_of_the_program() {
    for (line, expected) in [
        ("switchward get a", &["switchward get a"][..]),
        ("A=1 B_2='x y' switchward get a", &["switchward get a"]),
        ("read | switchward check - -o json | less", &["switchward check - -o json"]),
        ("switchward a > b.txt && switchward c 'd' < e; f", &["switchward a", "switchward c d"]),
        ("switchward a --to b>c   # d | switchward e", &["switchward a --to b"]),
        ("switchward a b#c \"d | e\" ''", &["switchward a b#c d | e "]),
        ("# switchward a", &[]),
        ("make switchward", &[]),
        ("a=b", &[]),
    ] {
        let found: Vec<String> = calls(line).iter().map(|call| call.join(" ")).collect();
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn only_manual_blocks_are_read_and_their_lines_are_joined() {
    let page = "a\n```sh\nb\n```\n```sh manual\nc \\\n  d\ne\n```\nf\n```sh manual\ng\n```\n";
    let expected = [(6_usize, "c   d"), (8, "e"), (12, "g")].map(|(at, line)| (at, line.to_owned()));
    assert_eq!(lines(page), expected);
}

#[test]
fn a_renamed_command_or_option_would_be_found() {
    for line in ["switchward lists sessions", "switchward cluster drain 2 --wait-for", "switchward dev kill"]
    {
        let found = calls(line);
        let [call] = &found[..] else { panic!("{line}") };
        assert!(Args::try_parse_from(call).is_err_and(|error| error.use_stderr()), "{line}");
    }
}
