//! What a development server or cluster prints for a person.

use std::io::{self, Write};
use switchward_messages::cli::dev as texts;

use super::contexts::Written;
use crate::args::Output;
use crate::outbound::DeliveryConfig;
use crate::ready::Ready;

/// The next commands for a definition named deploy-gate, and whether each needs the person's key.
const NEXT: [(&str, bool); 8] = [
    ("switchward deploy deploy-gate.json", true),
    ("switchward start deploy-gate --key release-42", false),
    ("switchward authorize release-42 bash", false),
    ("switchward authorize release-42 mcp:filesystem:write_file", false),
    ("switchward list gates", true),
    ("switchward decide GATE approve", true),
    ("switchward answer release-42 yes", false),
    ("switchward watch release-42", false),
];

/// Prints the keys.
pub(super) fn keys(out: &mut impl Write, ready: &Ready) -> io::Result<()> {
    let Some(keys) = &ready.keys else { return Ok(()) };
    writeln!(out, "  agent key   {}", keys.agent_key)?;
    writeln!(out, "  person key  {}", keys.person_key)?;
    writeln!(out, "  worker key  {}", keys.worker_key)
}

/// Prints what else one wants to know.
pub(super) fn facts(
    out: &mut impl Write,
    ready: &Ready,
    contexts: &Written,
    delivery: &DeliveryConfig,
) -> io::Result<()> {
    let survival =
        if ready.durable { texts::data_stays(&ready.data_dir) } else { texts::DATA_TEMPORARY.to_owned() };
    writeln!(out, "  clock       {}", ready.clock)?;
    writeln!(out, "  data        {survival}")?;
    writeln!(out, "  model       {}", delivery.model_in_words())?;
    writeln!(out, "  contexts    {}", contexts.names())?;
    writeln!(out, "              {}", texts::contexts_in(contexts.folder()))?;
    if contexts.beside_another() {
        writeln!(out, "              {}", texts::USUAL_CONTEXTS_IN_USE)?;
    }
    Ok(())
}

/// Prints the next commands.
pub(super) fn next(out: &mut impl Write, contexts: &Written) -> io::Result<()> {
    let (bold, reset) = (anstyle::Style::new().bold(), anstyle::Reset);
    writeln!(out, "{bold}{}{reset}, {}", texts::NEXT, texts::NEXT_WHERE)?;
    writeln!(out)?;
    writeln!(out, "  switchward check deploy-gate.json")?;
    for (line, is_persons) in NEXT {
        let line = if is_persons { contexts.of_person(line) } else { contexts.of_agent(line) };
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// Says that everything has ended.
pub(super) fn stopped(output: Output) {
    if !output.json() {
        // The reader may be gone.
        let _unread = writeln!(anstream::stdout().lock(), "{}", texts::STOPPED);
    }
}
