//! What every shard must know of a tenant: its people, and what its mail tokens are made with. The catalogue has the
//! record, and each shard is given it.

use switchward_state::approval::{OF_DEFINITION, OF_OWNER, Quorum, Reminders};
use switchward_state::catalogue::{
    CatalogueEvent, Directory, DirectoryEntry, EnsureTenancy, EventBinding, InstallTenancy, PutDirectory,
    Tenancy, TenantChange, TenantFact, changed,
};
use switchward_state::delivery::HoldEffects;
use switchward_state::limits::{
    ADDRESS_BYTES_MAX, ADDRESSEES_MAX, DATA_KEY_BYTES_MAX, DIRECTORY_ENTRIES_MAX, DIRECTORY_MEMBERS_MAX,
    DIRECTORY_MEMBERS_TOTAL_MAX, DIRECTORY_NAME_BYTES_MAX, EVENT_BINDINGS_MAX, REMIND_MS_MAX, REMIND_MS_MIN,
    REMINDERS_MAX,
};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::turn::{Stop, Turn, check_etag, check_size};

pub(crate) fn ensure(turn: &mut Turn<'_, '_>, ensure: &EnsureTenancy) -> Result<Reply, Stop> {
    let known = turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?;
    match known.as_deref() {
        None => {
            let (any_approver_address, link_auth) = (ensure.any_approver_address, ensure.link_auth);
            let tenancy = Tenancy { any_approver_address, link_auth, ..Tenancy::first(ensure.key.clone()) };
            turn.emit(CatalogueEvent::TenancyPut(tenancy))?;
        }
        // It was made by a server without a key ring.
        Some(known) if known.keys.is_empty() && known.deletion.is_none() && ensure.key.is_some() => {
            let (revision, keys) = (known.revision + 1, ensure.key.iter().cloned().collect());
            let tenancy = Tenancy { revision, keys, ..known.clone() };
            turn.emit(CatalogueEvent::TenancyPut(tenancy))?;
        }
        Some(_) => {}
    }
    Ok(Reply::Done)
}

/// What is the same as before changes nothing.
pub(crate) fn put_directory(turn: &mut Turn<'_, '_>, put: &PutDirectory) -> Result<Reply, Stop> {
    let known = turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?;
    check_etag("directory", &put.etag, known.as_ref().map(|known| known.directory.etag()))?;
    let directory = checked(&put.directory)?;
    if known.as_ref().is_some_and(|known| known.directory == directory) {
        return Ok(Reply::Directory(Box::new(directory)));
    }
    let reply = Reply::Directory(Box::new(directory.clone()));
    let tenancy = match known {
        Some(known) => Tenancy { revision: known.revision + 1, directory, ..Tenancy::clone(&known) },
        None => Tenancy { directory, ..Tenancy::first(put.key.clone()) },
    };
    record(turn, tenancy)?;
    Ok(reply)
}

/// Replaces the catalogue's record, and notes who changed what.
pub(crate) fn record(turn: &mut Turn<'_, '_>, mut tenancy: Tenancy) -> Result<(), Stop> {
    let known = turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?;
    let parts = changed(known.as_deref(), &tenancy);
    drop(known);
    tenancy.changes += u64::from(!parts.is_empty());
    let number = tenancy.changes;
    turn.emit(CatalogueEvent::TenancyPut(tenancy))?;
    if !parts.is_empty() {
        let change = TenantChange { at: turn.now(), by: turn.command.actor.clone(), parts };
        turn.emit(TenantFact::Changed { number, change })?;
    }
    Ok(())
}

/// Nothing of the tenant goes out from now on, or what waits goes out again.
pub(crate) fn hold(turn: &mut Turn<'_, '_>, hold: HoldEffects) -> Result<Reply, Stop> {
    let known = turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?;
    let none = || Rejection::new(Reason::NotFound, "there is no such tenant");
    let known = known.map(|known| Tenancy::clone(&known)).ok_or_else(none)?;
    if known.held.is_some() == hold.held {
        return Ok(Reply::Done);
    }
    let held = hold.held.then(|| turn.now());
    turn.emit(CatalogueEvent::TenancyPut(Tenancy { revision: known.revision + 1, held, ..known }))?;
    Ok(Reply::Done)
}

pub(crate) fn install(turn: &mut Turn<'_, '_>, install: &InstallTenancy) -> Result<Reply, Stop> {
    let known = turn.rows.tenancy_at(&Key::tenancy(turn.tenant()))?.map(|known| known.revision);
    if known.is_none_or(|known| known < install.tenancy.revision) {
        turn.emit(CatalogueEvent::TenancyPut(install.tenancy.clone()))?;
    }
    Ok(Reply::Done)
}

/// The directory in its order, if it is valid.
fn checked(directory: &Directory) -> Result<Directory, Rejection> {
    check_size("directory.entries", directory.entries.len(), DIRECTORY_ENTRIES_MAX, "names")?;
    check_members("directory.audience", &directory.audience)?;
    check_total(directory)?;
    let mut sorted = directory.clone();
    for (at, entry) in sorted.entries.iter_mut().enumerate() {
        let field = format!("directory.entries[{at}].name");
        entry.name = entry.name.trim().to_lowercase();
        if entry.name.is_empty() || entry.name.len() > DIRECTORY_NAME_BYTES_MAX {
            let message = format!("a name has 1 to {DIRECTORY_NAME_BYTES_MAX} bytes");
            return Err(bad(&field, message));
        }
        if entry.name.contains('@') || entry.name.chars().any(char::is_control) {
            let message = format!("{:?} is no name: it would be an address", entry.name);
            return Err(bad(&field, message));
        }
        check_members(&format!("directory.entries[{at}].members"), &entry.members)?;
        check_settings(&format!("directory.entries[{at}].settings"), entry)?;
    }
    check_bindings(&sorted.event_bindings)?;
    let sorted = sorted.in_order();
    check_twice(&sorted.event_bindings)?;
    if let Some([twice, _]) = sorted.entries.array_windows().find(|[one, next]| one.name == next.name) {
        let message = format!("{:?} stands in it twice", twice.name);
        return Err(bad("directory.entries", message));
    }
    Ok(sorted)
}

/// Refuses a directory whose lists hold too many members together; names the entry that is too much.
fn check_total(directory: &Directory) -> Result<(), Rejection> {
    let mut total = directory.audience.len();
    for (at, entry) in directory.entries.iter().enumerate() {
        total += entry.members.len() + entry.settings.audience.len() + entry.settings.escalation.len();
        if total > DIRECTORY_MEMBERS_TOTAL_MAX {
            let max = DIRECTORY_MEMBERS_TOTAL_MAX;
            let message = format!("with this entry the lists hold more than {max} members together");
            return Err(bad(&format!("directory.entries[{at}]"), message).fact("max", max));
        }
    }
    Ok(())
}

/// Refuses bindings of events that name no source.
fn check_bindings(bindings: &[EventBinding]) -> Result<(), Rejection> {
    check_size("directory.event_bindings", bindings.len(), EVENT_BINDINGS_MAX, "bindings")?;
    for (at, binding) in bindings.iter().enumerate() {
        let field = |name: &str| format!("directory.event_bindings[{at}].{name}");
        let texts = [("definition", &binding.definition), ("event_key", &binding.event_key)];
        for (name, text) in texts {
            if text.is_empty() || text.len() > DATA_KEY_BYTES_MAX {
                let message = format!("has 1 to {DATA_KEY_BYTES_MAX} bytes");
                return Err(bad(&field(name), message));
            }
        }
        if binding.sources.len() > DIRECTORY_MEMBERS_MAX {
            let message = format!("must hold at most {DIRECTORY_MEMBERS_MAX}");
            return Err(bad(&field("sources"), message));
        }
        for (nth, source) in binding.sources.iter().enumerate() {
            if !EventBinding::is_source(source) || source.len() > ADDRESS_BYTES_MAX {
                let message = format!(
                    "{source:?} is no source: name `webhook:NAME`, `reply_token`, `integration` or `integration:SUBJECT`"
                );
                return Err(bad(&field(&format!("sources[{nth}]")), message));
            }
        }
    }
    Ok(())
}

/// Refuses two bindings of one event; they are in order.
fn check_twice(bindings: &[EventBinding]) -> Result<(), Rejection> {
    let event = |one: &EventBinding| (one.definition.clone(), one.event_key.clone());
    if let Some([twice, _]) = bindings.array_windows().find(|[one, next]| event(one) == event(next)) {
        let message = format!("the event {:?} of {} is bound twice", twice.event_key, twice.definition);
        return Err(bad("directory.event_bindings", message));
    }
    Ok(())
}

/// What an entry says of the gates of a definition.
fn check_settings(field: &str, entry: &DirectoryEntry) -> Result<(), Rejection> {
    let settings = &entry.settings;
    let named = [OF_DEFINITION, OF_OWNER].iter().find_map(|kind| entry.name.strip_prefix(kind));
    if !settings.is_empty() && named.is_none_or(str::is_empty) {
        let message = format!("{} has settings; definition:NAME and owner:NAME alone may", entry.name);
        return Err(bad(field, message));
    }
    check_members(&format!("{field}.audience"), &settings.audience)?;
    check_members(&format!("{field}.escalation"), &settings.escalation)?;
    if let Some(reminders) = settings.reminders {
        check_reminders(&format!("{field}.reminders"), reminders)?;
    }
    match settings.quorum {
        Some(Quorum::AtLeast(least)) => check_quorum(&format!("{field}.quorum"), least),
        Some(Quorum::All) | None => Ok(()),
    }
}

/// How often those who have not decided may be reminded.
pub(crate) fn check_reminders(field: &str, reminders: Reminders) -> Result<(), Rejection> {
    let fits = (REMIND_MS_MIN..=REMIND_MS_MAX).contains(&reminders.every_ms)
        && (1..=REMINDERS_MAX).contains(&reminders.max);
    let (every, days) = (REMIND_MS_MIN / 1_000, REMIND_MS_MAX / 86_400_000);
    let message = || format!("1 to {REMINDERS_MAX} reminders, {every} s to {days} days after one another");
    if fits { Ok(()) } else { Err(bad(field, message())) }
}

/// How many people may be made to approve.
pub(crate) fn check_quorum(field: &str, least: u32) -> Result<(), Rejection> {
    let fits = (1..=ADDRESSEES_MAX).contains(&usize::try_from(least).unwrap_or(usize::MAX));
    let message = || format!("a quorum is 1 to {ADDRESSEES_MAX} approvals");
    if fits { Ok(()) } else { Err(bad(field, message())) }
}

pub(crate) fn check_members(field: &str, members: &[String]) -> Result<(), Rejection> {
    if members.len() > DIRECTORY_MEMBERS_MAX {
        let message = format!("must hold at most {DIRECTORY_MEMBERS_MAX}");
        return Err(bad(field, message));
    }
    for (at, member) in members.iter().enumerate() {
        let plain = !member.trim().is_empty() && !member.chars().any(char::is_control);
        if !plain || member.len() > ADDRESS_BYTES_MAX {
            let message = format!("{member:?} is neither an address nor a name");
            return Err(bad(&format!("{field}[{at}]"), message));
        }
    }
    Ok(())
}

fn bad(field: &str, message: String) -> Rejection {
    Rejection::new(Reason::FieldInvalid, message).fact("field", field)
}
