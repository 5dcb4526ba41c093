//! `switchward deploy --dry-run`: what would be deployed, compared with what is active.

use serde_json::{Value, json};
use switchward_api::v1;
use tonic::Code;

use super::Mode;
use super::sources::Source;
use crate::commands::client::talk::Talk;
use crate::commands::client::{diff, show};
use crate::exit::{Exit, FINDINGS};
use crate::output::{self, CARE, FAINT, GOOD, PROBLEM, STRONG, clean, print, put};

/// What a deployment would do with a definition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    /// It would be deployed for the first time.
    New,
    /// It would get another version.
    Changed,
    /// A version that exists would be activated.
    Activate,
    /// Nothing.
    Unchanged,
    /// It would be refused.
    Refused,
}

impl Action {
    fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Activate => "activate",
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
        }
    }

    fn style(self) -> anstyle::Style {
        match self {
            Self::New => GOOD,
            Self::Changed | Self::Activate => CARE,
            Self::Unchanged => FAINT,
            Self::Refused => PROBLEM,
        }
    }
}

/// The plan for one definition.
struct Planned {
    file: String,
    action: Action,
    checked: v1::CheckDefinitionResponse,
    /// Compared with the active version, if there is one and something would change.
    diff: Option<v1::DiffVersionsResponse>,
}

/// Prints the plan; nothing is changed.
///
/// # Errors
/// A definition would be refused, or the server cannot be asked.
pub(super) async fn run(talk: &Talk, sources: &[Source], mode: Mode) -> Result<(), Exit> {
    let mut refused = false;
    for source in sources {
        let planned = planned(talk, source, mode).await?;
        refused |= planned.action == Action::Refused;
        if talk.printer.is_json() {
            print(&format!("{}\n", planned.json()?))?;
        } else {
            print(&planned.text())?;
        }
    }
    if refused { Err(Exit::reported(FINDINGS)) } else { Ok(()) }
}

async fn planned(talk: &Talk, source: &Source, mode: Mode) -> Result<Planned, Exit> {
    let request = v1::CheckDefinitionRequest { files: vec![source.bundle()], ..Default::default() };
    let checked = talk
        .client
        .call(request, |mut it, request| async move { it.definitions.check_definition(request).await });
    let checked = checked.await?;
    let file = source.path.display().to_string();
    if !checked.ok {
        return Ok(Planned { file, action: Action::Refused, checked, diff: None });
    }
    let known = known(talk, &checked.definition_id).await?;
    let action = match &known {
        None => Action::New,
        Some(known) if known.archive_time.is_some() => Action::Refused,
        Some(_) if checked.version == 0 => Action::Changed,
        Some(known) if mode == Mode::Store || known.active_version == checked.version => Action::Unchanged,
        Some(_) if checked.retired => Action::Refused,
        Some(_) => Action::Activate,
    };
    let differs = match action {
        Action::Changed | Action::Activate => true,
        Action::New | Action::Unchanged | Action::Refused => false,
    };
    let active = known.filter(|known| differs && known.active_version > 0);
    let diff = match active {
        Some(known) => {
            let name = format!("{}/versions/{}", known.name, known.active_version);
            let files = vec![source.bundle()];
            let request = v1::DiffVersionsRequest { name, files, ..Default::default() };
            Some(diff::compared(talk, request).await?)
        }
        None => None,
    };
    Ok(Planned { file, action, checked, diff })
}

/// The definition of this name, if there is one.
async fn known(talk: &Talk, name: &str) -> Result<Option<v1::Definition>, Exit> {
    let request = v1::GetDefinitionRequest { name: name.to_owned(), ..Default::default() };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.definitions.get_definition(request).await });
    match reply.await {
        Ok(reply) => Ok(reply.definition),
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(status.into()),
    }
}

impl Planned {
    /// The name of the definition, else of its file.
    fn name(&self) -> &str {
        if self.checked.definition_id.is_empty() { &self.file } else { &self.checked.definition_id }
    }

    fn text(&self) -> String {
        let (name, word, style) = (clean(self.name()), self.action.word(), self.action.style());
        let mut text = String::new();
        put(&mut text, format_args!("{STRONG}{name}{STRONG:#}  {style}{word}{style:#}"));
        if self.checked.version > 0 {
            put(&mut text, format_args!("  {FAINT}version {}{FAINT:#}", self.checked.version));
        }
        text.push('\n');
        text.push_str(&show::findings(&self.checked.findings));
        if let Some(reply) = &self.diff {
            text.push_str(&diff::text(reply));
        }
        text
    }

    fn json(&self) -> Result<Value, Exit> {
        let differences = self.diff.iter().flat_map(|reply| &reply.differences);
        let differences = differences.map(|one| value("Difference", one)).collect::<Result<Vec<_>, _>>()?;
        let findings = self.checked.findings.iter().map(|one| value("Finding", one));
        Ok(json!({
            "file": self.file,
            "definition": self.checked.definition_id,
            "action": self.action.word(),
            "version": self.checked.version,
            "differences": differences,
            "findings": findings.collect::<Result<Vec<_>, _>>()?,
        }))
    }
}

fn value<M: prost::Message>(name: &str, message: &M) -> Result<Value, Exit> {
    Ok(serde_json::from_str(&output::json(name, message)?).map_err(anyhow::Error::from)?)
}
