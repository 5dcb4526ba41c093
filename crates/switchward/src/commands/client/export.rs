//! `switchward export`: a tenant's records page by page, to the standard output or to a file that can be resumed.

mod file;

use file::Resumable;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use switchward_api::v1;

use super::show;
use super::talk::Talk;
use crate::args::Export;
use crate::exit::Exit;
use crate::output::{card, clean, json, print, put};

/// Records that one page has at most.
const PAGE_RECORDS: u32 = 1_000;

pub(super) async fn run(talk: &Talk, export: Export) -> Result<(), Exit> {
    match &export.to {
        None => to_stdout(talk, export.at).await,
        Some(path) => to_file(talk, path, export.at).await,
    }
}

/// The progress of an export.
#[derive(Debug, Clone, Default)]
struct Progress {
    /// The token of the next page; empty before the first one.
    token: String,
    /// The time of the records; `None` for now, before the first page.
    time: Option<prost_types::Timestamp>,
    records: u64,
}

impl Progress {
    /// Fetches the next page and returns its lines; the token is then empty if it was the last page.
    async fn page(&mut self, talk: &Talk) -> Result<String, Exit> {
        let request = v1::ExportRecordsRequest {
            parent: String::new(),
            export_time: self.time,
            page_size: PAGE_RECORDS,
            page_token: self.token.clone(),
        };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.export.export_records(request).await });
        let reply = reply.await.map_err(|status| Exit::refused(&status).calling("export_time", "--at"))?;
        let mut lines = String::new();
        for record in &reply.records {
            put(&mut lines, format_args!("{}\n", json("ExportRecord", record)?));
        }
        self.records += u64::try_from(reply.records.len()).unwrap_or(u64::MAX);
        self.token = reply.next_page_token;
        self.time = reply.export_time;
        Ok(lines)
    }

    /// The last line, which proves to a reader that the export is complete.
    fn end(&self) -> String {
        let time = self.time.map(|time| time.to_string()).unwrap_or_default();
        let end = serde_json::json!({ "end": { "exportTime": time, "records": self.records } });
        format!("{end}\n")
    }
}

async fn to_stdout(talk: &Talk, at: Option<prost_types::Timestamp>) -> Result<(), Exit> {
    let mut progress = Progress { time: at, ..Progress::default() };
    loop {
        print(&progress.page(talk).await?)?;
        if progress.token.is_empty() {
            return print(&progress.end());
        }
    }
}

async fn to_file(talk: &Talk, path: &Path, at: Option<prost_types::Timestamp>) -> Result<(), Exit> {
    let (mut file, mut progress) = Resumable::open(path, at)?;
    let shows = !talk.printer.is_json() && std::io::stderr().is_terminal();
    loop {
        let page = progress.page(talk).await;
        let lines = page.map_err(|exit| file.interrupted(exit))?;
        file.append(&lines)?;
        if shows {
            // Progress that cannot be printed is not an error.
            let _lost = write!(anstream::stderr().lock(), "\r{} records", progress.records);
        }
        if progress.token.is_empty() {
            break;
        }
        file.keep(&progress)?;
    }
    if shows {
        let _lost = writeln!(anstream::stderr().lock());
    }
    let end = progress.end();
    file.end(&end)?;
    if talk.printer.is_json() {
        return print(&end);
    }
    let time = show::time(progress.time.as_ref());
    print(&card(&[
        ("records", progress.records.to_string()),
        ("export_time", time),
        ("file", clean(&path.display().to_string())),
    ]))
}
