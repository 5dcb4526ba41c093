//! Whom the tenant's directory led to when a gate asked. They decide as long as it still does: an admin who removes somebody
//! from it, or from the group that was asked, takes the open gates from them, too.
//!
//! Addresses that the directory did not hold when the gate asked are not affected, so that a tenant without a directory can
//! work with addresses alone.

use minicbor::{CborLen, Decode, Encode};

use crate::catalogue::Directory;
use crate::limits::LISTED_NAMES_MAX;

/// The people whom the directory led to when a gate asked them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Listed {
    /// Their addresses, each once.
    #[n(0)]
    pub to: Vec<String>,
    /// What led to them, each once and in the order in which it was asked: names of entries, addresses by which they were
    /// named themselves, or an empty text for the directory's default audience.
    #[n(1)]
    pub names: Vec<String>,
}

impl Listed {
    /// Returns true if the directory led to nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.to.is_empty() && self.names.is_empty()
    }

    /// Adds people who are asked now. Of more than [`LISTED_NAMES_MAX`] names the oldest go.
    pub fn add(&mut self, more: &Self) {
        for one in &more.to {
            push(&mut self.to, one);
        }
        for name in &more.names {
            push(&mut self.names, name);
        }
        self.names.drain(..self.names.len().saturating_sub(LISTED_NAMES_MAX));
    }

    /// Forgets everybody who is not asked any more; the names stay if anybody does.
    pub fn retain(&mut self, asked: &[String]) {
        self.to.retain(|one| has(asked, one));
        if self.to.is_empty() {
            self.names.clear();
        }
    }

    /// Returns true if the directory led to this address when it was asked, and none of the names leads to it now.
    #[must_use]
    pub fn has_lost(&self, address: &str, people: &Directory) -> bool {
        has(&self.to, address) && !self.names.iter().any(|name| has(&people.leads_to(name), address))
    }

    /// The addresses that it has lost, see [`has_lost`](Self::has_lost).
    #[must_use]
    pub fn lost(&self, people: &Directory) -> Vec<String> {
        let now: Vec<&str> = self.names.iter().flat_map(|name| people.leads_to(name)).collect();
        self.to.iter().filter(|one| !has(&now, one)).cloned().collect()
    }
}

impl Directory {
    /// Those of these addresses that the directory leads to now by these names, and the names that do so.
    #[must_use]
    pub fn listed(&self, names: &[String], asked: &[String]) -> Listed {
        let mut listed = Listed::default();
        for name in names {
            if has(&listed.names, name) {
                continue;
            }
            let led = self.leads_to(name);
            let to: Vec<String> = asked.iter().filter(|one| has(&led, one)).cloned().collect();
            if !to.is_empty() {
                listed.add(&Listed { to, names: vec![name.clone()] });
            }
        }
        listed
    }

    /// The addresses to which a name of [`Listed`] leads now: an entry's members and those whom its settings name, an address
    /// that the directory holds, or the default audience.
    fn leads_to<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        if name.is_empty() {
            return self.all_led(&self.audience);
        }
        let Some(entry) = self.entry(name) else {
            return if self.holds(name) { vec![name] } else { Vec::new() };
        };
        let mut led: Vec<&str> = self.led(name).collect();
        for list in [&entry.settings.audience, &entry.settings.escalation] {
            led.extend(self.all_led(list));
        }
        led
    }
}

fn push(list: &mut Vec<String>, one: &str) {
    if !has(list, one) {
        list.push(one.to_owned());
    }
}

fn has(list: &[impl AsRef<str>], one: &str) -> bool {
    list.iter().any(|known| known.as_ref().eq_ignore_ascii_case(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::GateSettings;
    use crate::catalogue::DirectoryEntry;
    use crate::catalogue::directory::tests::directory;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn people_are_lost_if_no_name_that_was_asked_leads_to_them() {
        let before = directory(&[
            ("kim", &["kim@a.example"]),
            ("sam", &["sam@a.example"]),
            ("group:release", &["kim", "sam"]),
        ]);
        let asked = texts(&["kim@a.example", "SAM@a.example", "eve@b.example"]);
        let listed = before.listed(&texts(&["Group:release", "sam", "eve@b.example", "sam"]), &asked);
        let expected = Listed {
            to: texts(&["kim@a.example", "SAM@a.example"]),
            names: texts(&["Group:release", "sam"]),
        };
        assert_eq!(listed, expected);
        assert!(listed.lost(&before).is_empty());
        // Sam is asked by name, too; Kim only as one of the group.
        let after = directory(&[
            ("kim", &["kim@a.example"]),
            ("sam", &["sam@a.example"]),
            ("group:release", &["ops@a.example"]),
        ]);
        assert_eq!(listed.lost(&after), texts(&["kim@a.example"]));
        assert!(listed.has_lost("KIM@a.example", &after));
        for other in ["sam@a.example", "eve@b.example", "kim"] {
            assert!(!listed.has_lost(other, &after), "{other}");
        }
        assert_eq!(listed.lost(&Directory::default()), texts(&["kim@a.example", "SAM@a.example"]));
    }

    #[test]
    fn an_address_that_was_named_itself_is_lost_with_the_last_entry_that_holds_it() {
        let before = directory(&[("kim", &["kim@a.example"])]);
        let asked = texts(&["kim@a.example", "eve@b.example"]);
        let listed = before.listed(&asked, &asked);
        assert_eq!(listed, Listed { to: texts(&["kim@a.example"]), names: texts(&["kim@a.example"]) });
        assert!(listed.lost(&directory(&[("group:other", &["KIM@a.example"])])).is_empty());
        assert_eq!(listed.lost(&Directory::default()), texts(&["kim@a.example"]));
        assert_eq!(Directory::default().listed(&asked, &asked), Listed::default());
    }

    #[test]
    fn settings_and_the_default_audience_lead_to_people() {
        let settings = GateSettings {
            audience: texts(&["ann@a.example"]),
            escalation: texts(&["head@a.example"]),
            ..GateSettings::default()
        };
        let entry = DirectoryEntry { name: "owner:gate".into(), members: Vec::new(), settings };
        let audience = texts(&["ops@a.example"]);
        let people = Directory { entries: vec![entry], audience, ..Directory::default() };
        let asked = texts(&["ann@a.example", "head@a.example", "ops@a.example"]);
        let listed = people.listed(&texts(&["owner:gate", ""]), &asked);
        assert_eq!(listed.to, asked);
        let people = Directory { audience: Vec::new(), ..people };
        assert_eq!(listed.lost(&people), texts(&["ops@a.example"]));
    }

    #[test]
    fn who_is_not_asked_any_more_is_forgotten_and_the_oldest_names_go() {
        let mut listed = Listed { to: texts(&["a@a.example", "b@a.example"]), names: texts(&["a", "b"]) };
        listed.retain(&texts(&["B@a.example"]));
        assert_eq!(listed, Listed { to: texts(&["b@a.example"]), names: texts(&["a", "b"]) });
        let names = (0..LISTED_NAMES_MAX - 1).map(|at| format!("n{at}")).collect();
        listed.add(&Listed { to: Vec::new(), names });
        assert_eq!((listed.names.len(), listed.names[0].as_str()), (LISTED_NAMES_MAX, "b"));
        listed.retain(&[]);
        assert!(listed.is_empty());
    }
}
