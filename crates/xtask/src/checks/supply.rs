//! Libraries are added only after a review: every exception in `.cargo/deny.toml` has a reason and an end, and each
//! library of a lock file is in the record of those that were checked against RustSec's advisories.
//!
//! `tests/scripts/supply.sh` runs cargo-deny itself. The advisories are not in this repository and need a network:
//! `make advisories` fetches them and writes the record, which this check uses instead.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::finding::Finding;
use crate::tree::{Tree, line_where};

const RULE: &str = "supply";
const DENY: &str = ".cargo/deny.toml";
const RECORD: &str = "tests/supply/advisories.toml";
/// The text before an exception's last day.
const UNTIL: &str = "; until ";
/// The beginning of a ban's reason if the ban says which crates a library is for; it is no exception.
const FENCE: &str = "fence: ";
/// How long an exception may last before it must be reviewed again.
const EXCEPTED_DAYS_MAX: i64 = 366;

/// A table of `.cargo/deny.toml`, as its lists of exceptions.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Table {
    ignore: Vec<Spanned<Value>>,
    exceptions: Vec<Spanned<Value>>,
    clarify: Vec<Spanned<Value>>,
    skip: Vec<Spanned<Value>>,
    skip_tree: Vec<Spanned<Value>>,
    exclude: Vec<Spanned<Value>>,
    allow_git: Vec<Spanned<Value>>,
    /// Bans: an exception if it names crates that may use the library all the same, unless it is a fence.
    deny: Vec<Spanned<Value>>,
}

/// The file that `make advisories` writes.
#[derive(Debug, Deserialize)]
struct Record {
    found: BTreeSet<String>,
    libraries: BTreeSet<String>,
}

/// A lock file.
#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    /// `None` for our own crates.
    source: Option<String>,
}

/// Reads `.cargo/deny.toml`, the record and every lock file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    check_on(tree, Timestamp::now().to_zoned(TimeZone::UTC).date())
}

fn check_on(tree: &Tree, today: Date) -> Vec<Finding> {
    let mut findings = Vec::new();
    let tables: Option<BTreeMap<String, Table>> = read(tree, DENY, &mut findings);
    let record: Option<Record> = read(tree, RECORD, &mut findings);
    let (Some(tables), Some(record)) = (tables, record) else { return findings };
    let text = tree.text(DENY).unwrap_or_default();
    for exception in tables.values().flat_map(Table::exceptions) {
        let line = text[..exception.span().start].lines().count().max(1);
        if let Err(message) = excepted(text, line, today) {
            findings.push(Finding::new(DENY, line, RULE, message));
        }
    }
    check_found(text, &tables, &record, &mut findings);
    check_locks(tree, &record, &mut findings);
    findings
}

impl Table {
    fn exceptions(&self) -> impl Iterator<Item = &Spanned<Value>> {
        let wrapped =
            self.deny.iter().filter(|ban| ban.get_ref().get("wrappers").is_some() && !is_fence(ban));
        [&self.ignore, &self.exceptions, &self.clarify, &self.skip, &self.skip_tree, &self.exclude]
            .into_iter()
            .chain([&self.allow_git])
            .flatten()
            .chain(wrapped)
    }
}

fn is_fence(ban: &Spanned<Value>) -> bool {
    ban.get_ref().get("reason").and_then(Value::as_str).is_some_and(|reason| reason.starts_with(FENCE))
}

/// Reads a TOML file, or says why it cannot be read.
fn read<T: for<'de> Deserialize<'de>>(tree: &Tree, path: &str, findings: &mut Vec<Finding>) -> Option<T> {
    let result = tree.text(path).ok_or_else(|| "the file is missing".to_owned());
    match result.and_then(|text| toml::from_str(text).map_err(|error| error.message().to_owned())) {
        Ok(read) => Some(read),
        Err(message) => {
            findings.push(Finding::new(path, 1, RULE, message));
            None
        }
    }
}

/// Fails if the exception on `line` (from 1) has no comment above it with a reason and an end date, or if it has
/// ended.
fn excepted(text: &str, line: usize, today: Date) -> Result<(), String> {
    let above = text.lines().nth(line.saturating_sub(2)).unwrap_or_default().trim();
    let said = above.strip_prefix('#').and_then(|comment| comment.split_once(UNTIL));
    let Some((reason, until)) = said.filter(|(reason, _)| !reason.trim().is_empty()) else {
        return Err(format!(
            "write the reason and the end of this exception above it: `# reason{UNTIL}YYYY-MM-DD`"
        ));
    };
    let until: Date = until.trim().parse().map_err(|_| format!("`{}` is not a day", until.trim()))?;
    if until < today {
        return Err(format!("the exception `{}` ended on {until}: review it", reason.trim()));
    }
    if until > today.saturating_add(EXCEPTED_DAYS_MAX.days()) {
        return Err(format!("the exception ends on {until}, in more than a year: choose an earlier day"));
    }
    Ok(())
}

/// Checks that each found advisory is excepted, and each excepted one was found.
fn check_found(text: &str, tables: &BTreeMap<String, Table>, record: &Record, findings: &mut Vec<Finding>) {
    let ignored = tables.get("advisories").map(|table| table.ignore.as_slice()).unwrap_or_default();
    let ids: BTreeSet<&str> = ignored.iter().filter_map(|row| id(row.get_ref())).collect();
    for missing in record.found.iter().filter(|found| !ids.contains(found.as_str())) {
        let message =
            format!("{missing} was found and has no exception: replace the library, or add an exception");
        findings.push(Finding::new(DENY, line_where(text, |line| line == "[advisories]"), RULE, message));
    }
    for idle in ids.iter().filter(|id| !record.found.contains(**id)) {
        let message = format!("{idle} has an exception, but no library has it any more");
        findings.push(Finding::new(DENY, line_where(text, |line| line.contains(idle)), RULE, message));
    }
}

/// The advisory of an exception: a bare id, or a table with one.
fn id(ignored: &Value) -> Option<&str> {
    ignored.as_str().or_else(|| ignored.get("id")?.as_str())
}

fn check_locks(tree: &Tree, record: &Record, findings: &mut Vec<Finding>) {
    let locks: Vec<&str> =
        tree.files().map(|(path, _)| path).filter(|path| path.ends_with("Cargo.lock")).collect();
    if locks.is_empty() {
        findings.push(Finding::new("Cargo.lock", 1, RULE, "the file is missing"));
    }
    for path in locks {
        let Some(lock) = read::<Lock>(tree, path, findings) else { continue };
        let text = tree.text(path).unwrap_or_default();
        for package in lock.package.iter().filter(|package| package.source.is_some()) {
            let named = format!("{} {}", package.name, package.version);
            if !record.libraries.contains(&named) {
                let line = line_where(text, |line| line == format!("name = \"{}\"", package.name));
                let message = format!("no check for advisories covers {named}: run `make advisories`");
                findings.push(Finding::new(path, line, RULE, message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    const LOCK: &str = "[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"paste\"\nversion = \"1.0.15\"\nsource = \"registry+x\"\n";
    const LOOKED_AT: &str = "found = [\"RUSTSEC-1\"]\nlibraries = [\"paste 1.0.15\"]\n";
    const EXCEPTED: &str =
        "[advisories]\nignore = [\n    # finished; until 2027-05-31\n    \"RUSTSEC-1\",\n]\n";

    fn findings(deny: &str, record: &str, lock: &str) -> Vec<String> {
        let tree = Tree::of(&[(DENY, deny), (RECORD, record), ("a/Cargo.lock", lock)]);
        check_on(&tree, date(2026, 11, 25)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_was_looked_at_and_excepted_in_time_is_well() {
        assert_eq!(findings(EXCEPTED, LOOKED_AT, LOCK), Vec::<String>::new());
    }

    #[test]
    fn every_library_of_a_lock_file_was_looked_at_in_its_version() {
        let newer = LOCK.replace("1.0.15", "1.0.16");
        assert_eq!(
            findings(EXCEPTED, LOOKED_AT, &newer),
            ["a/Cargo.lock:6: supply: no check for advisories covers paste 1.0.16: run `make advisories`"]
        );
    }

    #[test]
    fn a_found_advisory_is_excepted_and_an_excepted_one_was_found() {
        let other = EXCEPTED.replace("RUSTSEC-1", "RUSTSEC-2");
        assert_eq!(
            findings(&other, LOOKED_AT, LOCK),
            [
                ".cargo/deny.toml:1: supply: RUSTSEC-1 was found and has no exception: replace the library, or add an exception",
                ".cargo/deny.toml:4: supply: RUSTSEC-2 has an exception, but no library has it any more",
            ]
        );
    }

    #[test]
    fn an_exception_says_why_and_ends_within_a_year() {
        for (comment, message) in [
            ("", "write the reason and the end of this exception above it: `# reason; until YYYY-MM-DD`"),
            (
                "# finished",
                "write the reason and the end of this exception above it: `# reason; until YYYY-MM-DD`",
            ),
            (
                "# ; until 2027-01-01",
                "write the reason and the end of this exception above it: `# reason; until YYYY-MM-DD`",
            ),
            ("# finished; until spring", "`spring` is not a day"),
            ("# finished; until 2026-11-24", "the exception `finished` ended on 2026-11-24: review it"),
            (
                "# finished; until 2027-11-27",
                "the exception ends on 2027-11-27, in more than a year: choose an earlier day",
            ),
        ] {
            let deny = EXCEPTED.replace("# finished; until 2027-05-31", comment);
            assert_eq!(
                findings(&deny, LOOKED_AT, LOCK),
                [format!(".cargo/deny.toml:4: supply: {message}")],
                "{comment}"
            );
        }
        for last in ["2026-11-25", "2027-11-26"] {
            assert!(findings(&EXCEPTED.replace("2027-05-31", last), LOOKED_AT, LOCK).is_empty(), "{last}");
        }
    }

    #[test]
    fn every_kind_of_exception_is_one_and_a_bare_ban_or_a_fence_is_none() {
        for ban in ["", ", wrappers = [\"x\"], reason = \"fence: x knows it\""] {
            let bans = format!("{EXCEPTED}[bans]\ndeny = [{{ crate = \"rsa\"{ban} }}]\n");
            assert!(findings(&bans, LOOKED_AT, LOCK).is_empty(), "{ban}");
        }
        for more in [
            "[licenses]\nexceptions = [\n{ crate = \"x\", allow = [\"MPL-2.0\"] }]\n",
            "[[licenses.clarify]]\ncrate = \"x\"\n",
            "[bans]\nskip = [\"x\"]\n",
            "[bans]\nskip-tree = [\"x\"]\n",
            "[bans]\ndeny = [{ crate = \"rsa\", wrappers = [\"x\"] }]\n",
            "[graph]\nexclude = [\"x\"]\n",
            "[sources]\nallow-git = [\"x\"]\n",
        ] {
            let found = findings(&format!("{EXCEPTED}{more}"), LOOKED_AT, LOCK);
            assert_eq!(found.len(), 1, "{more}: {found:?}");
            assert!(
                found[0].contains("write the reason and the end of this exception above it"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn nothing_stands_for_a_missing_file() {
        let found = check_on(&Tree::of(&[]), date(2026, 11, 25));
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                ".cargo/deny.toml:1: supply: the file is missing",
                "tests/supply/advisories.toml:1: supply: the file is missing"
            ]
        );
    }
}
