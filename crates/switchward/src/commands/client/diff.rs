//! `switchward diff`: what differs between two versions, and what got weaker.

use switchward_api::v1;
use switchward_messages::cli;

use super::show;
use super::talk::Talk;
use crate::args::{Diff, files};
use crate::exit::{Exit, FINDINGS};
use crate::output::{CARE, FAINT, GOOD, PROBLEM, STRONG, clean, put};

pub(super) async fn run(talk: &Talk, diff: Diff) -> Result<(), Exit> {
    let version = |version: &str| format!("{}/versions/{version}", diff.definition);
    let name = version(&diff.before);
    let request = match &diff.file {
        Some(path) => {
            let content = files::read(path)?.into();
            let file = path.file_name().map_or_else(|| "definition".into(), |name| name.to_string_lossy());
            let bundle = v1::DefinitionFile { path: clean(&file).replace('\n', "_"), content };
            v1::DiffVersionsRequest { name, files: vec![bundle], ..Default::default() }
        }
        None => v1::DiffVersionsRequest { name, other: version(&diff.after), ..Default::default() },
    };
    let reply = compared(talk, request).await?;
    talk.printer.message("DiffVersionsResponse", &reply, || titled(&reply))?;
    if diff.strict && reply.weaker > 0 { Err(Exit::reported(FINDINGS)) } else { Ok(()) }
}

/// Asks the server to compare.
pub(super) async fn compared(
    talk: &Talk,
    request: v1::DiffVersionsRequest,
) -> Result<v1::DiffVersionsResponse, Exit> {
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.definitions.diff_versions(request).await });
    Ok(reply.await?)
}

/// The differences below a line that says what is compared.
fn titled(reply: &v1::DiffVersionsResponse) -> String {
    let side = |version: Option<&v1::Version>| match version {
        Some(version) => format!("{} {}", clean(show::definition_of(&version.name)), version.number),
        None => "file".to_owned(),
    };
    let (before, after) = (side(reply.before.as_ref()), side(reply.after.as_ref()));
    format!("{STRONG}{before} -> {after}{STRONG:#}\n{}", text(reply))
}

/// The differences by part, and how many there are.
pub(super) fn text(reply: &v1::DiffVersionsResponse) -> String {
    let mut text = String::new();
    let mut part = None;
    for one in &reply.differences {
        if part != Some(one.part()) {
            part = Some(one.part());
            let word = show::word(one.part().as_str_name(), "DIFFERENCE_PART_");
            put(&mut text, format_args!("{STRONG}{word}{STRONG:#}\n"));
        }
        put_difference(&mut text, one);
    }
    let shown = u32::try_from(reply.differences.len()).unwrap_or(u32::MAX);
    let line = cli::client::differences(shown.saturating_add(reply.omitted), reply.weaker);
    let style = if reply.weaker > 0 { PROBLEM } else { FAINT };
    put(&mut text, format_args!("{style}{line}{style:#}\n"));
    text
}

fn put_difference(text: &mut String, one: &v1::Difference) {
    let (sign, style) = match one.change() {
        v1::DifferenceChange::Added => ("+", GOOD),
        v1::DifferenceChange::Removed => ("-", PROBLEM),
        v1::DifferenceChange::Changed | v1::DifferenceChange::Unspecified => ("~", CARE),
    };
    let state = if one.state.is_empty() { String::new() } else { format!("{}: ", clean(&one.state)) };
    put(text, format_args!("  {style}{sign}{style:#} {state}{}", clean(&one.subject)));
    if one.weaker {
        put(text, format_args!("  {PROBLEM}weaker{PROBLEM:#}"));
    }
    text.push('\n');
    for (sign, side) in [("-", &one.before), ("+", &one.after)] {
        for line in clean(side).lines() {
            put(text, format_args!("      {FAINT}{sign}{FAINT:#} {line}\n"));
        }
    }
}
