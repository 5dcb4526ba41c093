//! A gate after a command, for the answer to its caller; see [`GateSummary`].

use switchward_machine::OpenId;
use switchward_state::approval::{GateEnding, GateNames, GateSummary, OpenGate};
use switchward_state::{Key, ReadRows as _, Reply};

use crate::approval::reach::Reach;
use crate::turn::{Stop, Turn};

/// Completes a reply about a gate, once the command and all that it leads to is done.
pub(crate) fn complete(turn: &Turn<'_, '_>, reply: &mut Reply) -> Result<(), Stop> {
    if let Reply::Gate { gate, summary, .. } = reply
        && turn.command.body.shows_gate()
    {
        *summary = of(turn, *gate)?.map(Box::new);
    } else if let Reply::Authorized(said) = reply {
        said.sequence = turn.session()?.sequence;
        let (tenant, id) = (turn.tenant(), turn.session_id()?);
        let open = said.gate.map(|gate| turn.rows.gate(tenant, id, gate)).transpose()?.flatten();
        if let Some(open) = open {
            let reach = Reach::of(turn.rows, tenant, id, &open)?;
            (said.unnotified, said.warnings) = (reach.unnotified, reach.warnings);
        }
    }
    Ok(())
}

/// The gate as it is now; `None` if it is gone.
fn of(turn: &Turn<'_, '_>, gate: OpenId) -> Result<Option<GateSummary>, Stop> {
    let (tenant, id) = (turn.tenant(), turn.session_id()?);
    if let Some(open) = turn.rows.gate(tenant, id, gate)? {
        return Ok(Some(GateSummary::of(&open, names(turn, &open)?, None)));
    }
    let Some(closed) = turn.rows.closed_at(&Key::closed(tenant, id, gate))? else { return Ok(None) };
    let names = names(turn, &closed.open)?;
    Ok(Some(GateSummary::of(&closed.open, names, Some(GateEnding::of(&closed)))))
}

fn names(turn: &Turn<'_, '_>, open: &OpenGate) -> Result<GateNames, Stop> {
    let session = turn.session()?;
    let machine = turn.machine(&*turn.run(open.head.run)?)?;
    let node = machine.node(open.head.node);
    let exit = node.zip(open.body.exit).and_then(|(node, exit)| node.exits.get(usize::from(exit.0)));
    Ok(GateNames {
        state: node.map(|node| node.name.clone()).unwrap_or_default(),
        answer: exit.and_then(|exit| exit.answer()).map(str::to_owned),
        definition: session.definition.clone(),
        version: session.version,
    })
}
