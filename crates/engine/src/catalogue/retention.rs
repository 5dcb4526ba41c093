//! How long what has ended is kept.

use switchward_state::catalogue::{PutRetention, Tenancy};
use switchward_state::limits::{RETENTION_MS_MIN, RETENTION_RULES_MAX};
use switchward_state::session::{Retention, RetentionRule};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::catalogue::tenancy::record;
use crate::turn::{Stop, Turn, check_etag, check_size};

/// What is the same as before changes nothing.
pub(crate) fn put(turn: &mut Turn<'_, '_>, put: &PutRetention) -> Result<Reply, Stop> {
    let known = turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?;
    check_etag("retention", &put.etag, known.as_ref().map(|known| known.retention.etag()))?;
    let retention = checked(&put.retention)?;
    if known.as_ref().is_some_and(|known| known.retention == retention) {
        return Ok(Reply::Retention(retention));
    }
    let reply = Reply::Retention(retention.clone());
    let tenancy = match known {
        Some(known) => Tenancy { revision: known.revision + 1, retention, ..Tenancy::clone(&known) },
        None => Tenancy { retention, ..Tenancy::first(put.key.clone()) },
    };
    record(turn, tenancy)?;
    Ok(reply)
}

/// The rules in their order, if they are valid.
fn checked(retention: &Retention) -> Result<Retention, Rejection> {
    check_size("rules", retention.rules.len(), RETENTION_RULES_MAX, "rules")?;
    let bad = |at: usize, field: &str, message: String| {
        let field = format!("retention.rules[{at}].{field}");
        Rejection::new(Reason::FieldInvalid, format!("{field} {message}")).fact("field", field)
    };
    for (at, rule) in retention.rules.iter().enumerate() {
        let RetentionRule { definition, sessions_ms, history_ms, decisions_ms, quarantine_ms } = rule;
        let times = [
            ("ended_sessions", sessions_ms),
            ("history", history_ms),
            ("decisions", decisions_ms),
            ("quarantine", quarantine_ms),
        ];
        if quarantine_ms.is_some() && !definition.is_empty() {
            let message = "belongs to no definition: set it in the rule without one";
            return Err(bad(at, "quarantine", message.to_owned()));
        }
        for (field, time) in times {
            if time.is_some_and(|time| time < RETENTION_MS_MIN) {
                let least = RETENTION_MS_MIN / 1_000;
                let message = format!("is less than {least} s");
                return Err(bad(at, field, message));
            }
        }
    }
    let sorted = retention.clone().in_order();
    if let Some([twice, _]) =
        sorted.rules.array_windows().find(|[one, next]| one.definition == next.definition)
    {
        let message = format!("{:?} has two rules", twice.definition);
        return Err(bad(0, "definition", message));
    }
    Ok(sorted)
}
