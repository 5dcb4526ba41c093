//! The codes by which decision pages recognise people.

use crate::approval::{PageCodeFact, PageCodeStep, PageCodes};
use crate::limits::HOUR_MS;
use crate::{Key, Site, ViewError, WriteRows};

pub(crate) fn apply(rows: &mut dyn WriteRows, site: &Site<'_>, fact: &PageCodeFact) -> Result<(), ViewError> {
    let open = rows.gate_at_mut(&Key::item(site.tenant, site.session()?, fact.gate))?;
    let Some(asked) = &mut open.body.asked else { return Ok(()) };
    let known = asked.codes.iter().position(|codes| codes.to.eq_ignore_ascii_case(&fact.to));
    let at = known.unwrap_or_else(|| {
        asked.codes.push(PageCodes { to: fact.to.clone(), sent: Vec::new(), wrong: 0, used: false });
        asked.codes.len() - 1
    });
    let Some(codes) = asked.codes.get_mut(at) else { return Ok(()) };
    match fact.step {
        PageCodeStep::Sent => {
            codes.sent.retain(|sent| site.at.since_ms(*sent) < HOUR_MS);
            codes.sent.push(site.at);
            (codes.wrong, codes.used) = (0, false);
        }
        PageCodeStep::Refused => codes.wrong += 1,
        PageCodeStep::Accepted => codes.used = true,
    }
    Ok(())
}
