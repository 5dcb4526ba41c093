//! Which settings hold for the gates of a run, and where each comes from. A start comes before the directory's entry
//! `definition:NAME`, that before `owner:NAME`, and that before the directory's default audience; each setting by itself.

use minicbor::{Decode, Encode};

use crate::approval::{GateSettings, OF_DEFINITION, OF_OWNER, Quorum, Reminders};
use crate::catalogue::{Directory, DirectoryEntry};

/// Where a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub enum SettingSource {
    /// Nothing says anything of it.
    #[default]
    #[n(0)]
    Unset,
    /// The start of the session.
    #[n(1)]
    Start,
    /// The directory's entry `definition:NAME`.
    #[n(2)]
    DefinitionEntry,
    /// The directory's entry `owner:NAME`.
    #[n(3)]
    OwnerEntry,
    /// The directory's default audience.
    #[n(4)]
    Directory,
    /// The definition itself.
    #[n(5)]
    Definition,
}

/// A setting, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct Setting<T> {
    /// What holds.
    #[n(0)]
    pub value: T,
    /// Who says so.
    #[n(1)]
    pub source: SettingSource,
}

/// What holds for the gates of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct Settled {
    /// Who is notified of gates that address nobody: addresses and names.
    #[n(0)]
    pub audience: Setting<Vec<String>>,
    /// How many of those whom a gate asks must approve; `None`: one is enough.
    #[n(1)]
    pub quorum: Setting<Option<Quorum>>,
    /// How those who have not decided are reminded; `None`: not at all.
    #[n(2)]
    pub reminders: Setting<Option<Reminders>>,
    /// Who is asked, too, if those who were asked do not decide: addresses and names.
    #[n(3)]
    pub escalation: Setting<Vec<String>>,
}

impl Settled {
    /// Returns what holds for a run of the first of `definitions`, each of which was called by the next one, in a session
    /// whose start said `start`.
    pub fn of(start: &GateSettings, definitions: &[String], directory: &Directory) -> Self {
        let kinds = [(OF_DEFINITION, SettingSource::DefinitionEntry), (OF_OWNER, SettingSource::OwnerEntry)];
        let names = definitions.iter().flat_map(|name| kinds.map(|(kind, of)| (format!("{kind}{name}"), of)));
        let entries: Vec<(&DirectoryEntry, SettingSource)> =
            names.filter_map(|(name, of)| Some((directory.entry(&name)?, of))).collect();
        let leads = |names: &[String]| !directory.all(names).is_empty();
        let first = |of: &dyn Fn(&DirectoryEntry) -> Vec<String>| {
            let mut lists = entries.iter().map(|(entry, source)| (of(entry), *source));
            lists.find(|(names, _)| leads(names)).map(|(value, source)| Setting { value, source })
        };
        let audience_of = |entry: &DirectoryEntry| match entry.settings.audience.as_slice() {
            [] => entry.members.clone(),
            audience => audience.to_vec(),
        };
        let rest = Setting { value: directory.audience.clone(), source: SettingSource::Directory };
        let rest = if rest.value.is_empty() { Setting::default() } else { rest };
        Self {
            audience: given(&start.audience).or_else(|| first(&audience_of)).unwrap_or(rest),
            escalation: given(&start.escalation)
                .or_else(|| first(&|entry| entry.settings.escalation.clone()))
                .unwrap_or_default(),
            quorum: chosen(start.quorum, &entries, |entry| entry.settings.quorum),
            reminders: chosen(start.reminders, &entries, |entry| entry.settings.reminders),
        }
    }
}

/// A list that the start gives.
fn given(names: &[String]) -> Option<Setting<Vec<String>>> {
    (!names.is_empty()).then(|| Setting { value: names.to_vec(), source: SettingSource::Start })
}

/// The start's value, else that of the first entry that has one.
fn chosen<T: Copy>(
    start: Option<T>,
    entries: &[(&DirectoryEntry, SettingSource)],
    of: impl Fn(&DirectoryEntry) -> Option<T>,
) -> Setting<Option<T>> {
    let start = start.map(|value| (value, SettingSource::Start));
    let entry = || entries.iter().find_map(|(entry, source)| Some((of(entry)?, *source)));
    let (value, source) = start.or_else(entry).unzip();
    Setting { value, source: source.unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, members: &[&str], settings: GateSettings) -> DirectoryEntry {
        let members = members.iter().map(|one| (*one).to_owned()).collect();
        DirectoryEntry { name: name.into(), members, settings }
    }

    #[test]
    fn the_nearest_entry_wins_for_each_setting_by_itself() {
        let owner = GateSettings {
            quorum: Some(Quorum::All),
            reminders: Some(Reminders { every_ms: 60_000, max: 2 }),
            escalation: vec!["head@a.example".into()],
            ..GateSettings::default()
        };
        let own = GateSettings { quorum: Some(Quorum::AtLeast(2)), ..GateSettings::default() };
        let directory = Directory {
            entries: vec![
                entry("definition:gate", &[], own),
                entry("owner:caller", &["dana@a.example"], GateSettings::default()),
                entry("owner:gate", &["kim@a.example"], owner),
            ],
            audience: vec!["ops@a.example".into()],
            ..Directory::default()
        };
        let mut session = GateSettings::default();
        let settled = Settled::of(&session, &["gate".into()], &directory);
        assert_eq!(
            settled.audience,
            Setting { value: vec!["kim@a.example".into()], source: SettingSource::OwnerEntry }
        );
        assert_eq!(
            settled.quorum,
            Setting { value: Some(Quorum::AtLeast(2)), source: SettingSource::DefinitionEntry }
        );
        assert_eq!(settled.reminders.source, SettingSource::OwnerEntry);
        assert_eq!(settled.escalation.value, ["head@a.example"]);
        // What a definition calls goes by its caller if nothing is said of it.
        let settled = Settled::of(&session, &["called".into(), "caller".into()], &directory);
        assert_eq!(settled.audience.value, ["dana@a.example"]);
        assert_eq!((settled.quorum.source, settled.quorum.value), (SettingSource::Unset, None));
        let settled = Settled::of(&session, &["other".into()], &directory);
        assert_eq!(
            (settled.audience.source, settled.escalation.source),
            (SettingSource::Directory, SettingSource::Unset)
        );
        (session.audience, session.quorum) = (vec!["nobody".into()], Some(Quorum::AtLeast(1)));
        let settled = Settled::of(&session, &["gate".into()], &directory);
        assert_eq!(
            (settled.audience.value.as_slice(), settled.audience.source),
            (["nobody".to_owned()].as_slice(), SettingSource::Start)
        );
        assert_eq!(
            (settled.quorum.value, settled.quorum.source),
            (Some(Quorum::AtLeast(1)), SettingSource::Start)
        );
    }
}
