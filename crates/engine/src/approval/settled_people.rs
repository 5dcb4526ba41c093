//! The people whom the settings of a run name: its audience, and those who are asked if nobody decides.

use switchward_machine::RunId;
use switchward_state::approval::{OF_DEFINITION, OF_OWNER, Setting, SettingSource};

use crate::turn::{Stop, Turn};

/// People whom a setting names, as the start and the directory say now; maybe nobody.
pub(crate) struct SettledPeople {
    /// Addresses, each once.
    pub(crate) to: Vec<String>,
    /// What leads to them, as in [`Listed`](switchward_state::approval::Listed).
    pub(crate) names: Vec<String>,
}

impl SettledPeople {
    /// Those who are notified of gates of a run that address nobody.
    pub(crate) fn audience(turn: &Turn<'_, '_>, run: RunId) -> Result<Self, Stop> {
        Self::of(turn, run, turn.settled(run)?.audience)
    }

    /// Those who are asked at a gate of a run, too, if nobody decides.
    pub(crate) fn escalation(turn: &Turn<'_, '_>, run: RunId) -> Result<Self, Stop> {
        Self::of(turn, run, turn.settled(run)?.escalation)
    }

    /// What leads to the people of an entry's setting is the entry: somebody who is removed from its list is lost, although
    /// the directory still has them.
    fn of(turn: &Turn<'_, '_>, run: RunId, setting: Setting<Vec<String>>) -> Result<Self, Stop> {
        let to = turn.directory()?.all(&setting.value);
        let names = match setting.source {
            SettingSource::DefinitionEntry => entries(turn, run, OF_DEFINITION)?,
            SettingSource::OwnerEntry => entries(turn, run, OF_OWNER)?,
            SettingSource::Directory => vec![String::new()],
            SettingSource::Start | SettingSource::Definition | SettingSource::Unset => setting.value,
        };
        Ok(Self { to, names })
    }
}

/// The names of the entries of this kind that have settings for a run.
fn entries(turn: &Turn<'_, '_>, run: RunId, kind: &str) -> Result<Vec<String>, Stop> {
    Ok(turn.definitions(run)?.into_iter().map(|name| format!("{kind}{name}")).collect())
}
