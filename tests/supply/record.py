"""Writes the record of a look at the advisories: record.py DATABASE MANIFEST..., with cargo-deny's reports as input.

A report is one JSON object for each workspace, in the form of cargo-audit. It lists excepted advisories too.
"""

import datetime
import json
import pathlib
import subprocess
import sys
import tomllib

HEAD = """\
# Written by `make advisories`: which libraries were looked at, with which advisories of RustSec, and what was found.
# `cargo xtask check` refuses a library of a lock file that is not listed, and a found advisory without an exception.
"""


def reports(text: str) -> list[dict]:
    """Every JSON object of a text that holds one after the other."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        report, at = decoder.raw_decode(text, at)
        found.append(report)
    return found


def advisories(report: dict) -> list[str]:
    rows = report["vulnerabilities"] + [row for rows in report["warnings"].values() for row in rows]
    return [row["advisory"]["id"] for row in rows]


def libraries(manifest: str) -> list[str]:
    lock = tomllib.loads(pathlib.Path(manifest).with_name("Cargo.lock").read_text())
    return [f"{row['name']} {row['version']}" for row in lock["package"] if "source" in row]


def git(database: str, form: str) -> str:
    command = ["git", "-C", database, "log", "-1", f"--format={form}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def listed(name: str, rows: set[str]) -> str:
    return f"{name} = [\n" + "".join(f'    "{row}",\n' for row in sorted(rows)) + "]\n"


def main() -> None:
    database, *manifests = sys.argv[1:]
    found = [report for report in reports(sys.stdin.read()) if "vulnerabilities" in report]
    if len(found) != len(manifests):
        sys.exit(f"{len(found)} reports for {len(manifests)} workspaces")
    print(HEAD, end="")
    print(f'looked_at = "{datetime.datetime.now(datetime.UTC).date()}"')
    print(f'newest = "{git(database, "%cs")}"')
    print(f'commit = "{git(database, "%H")}"')
    print(listed("found", {row for report in found for row in advisories(report)}), end="")
    print(listed("libraries", {row for manifest in manifests for row in libraries(manifest)}), end="")


main()
