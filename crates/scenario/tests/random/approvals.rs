//! Properties of approvals: a gate is only left by the decision that leads to its exit, and every decider was a
//! recipient.

use std::collections::BTreeMap;
use switchward_machine::{Decision, ExitIx, Machine, OpenId, Port, RunId, Trigger};
use switchward_state::Event;
use switchward_state::approval::{ApprovalEvent, Gate};
use switchward_state::run::RunEvent;

/// The events at the gates of one entry of a run's node.
#[derive(Default)]
struct Entry {
    /// The port that its body ended with, if a person or their silence chose it.
    port: Option<&'static str>,
    /// The exit that a person has approved.
    free: Option<ExitIx>,
}

/// Checks a whole history.
pub(crate) fn check<'m>(events: &[Event], machine: impl Fn(RunId) -> &'m Machine) -> Result<(), String> {
    let mut gates: BTreeMap<OpenId, (u32, Gate)> = BTreeMap::new();
    let mut entries: BTreeMap<u32, Entry> = BTreeMap::new();
    for event in events {
        if let Event::Approval(ApprovalEvent::Opened { gate, run, body }) = event {
            gates.insert(*gate, (run.0, Gate::clone(body)));
        } else if let Event::Approval(ApprovalEvent::Escalated { gate, to, .. }) = event {
            let known = gates.get_mut(gate).and_then(|(_, gate)| gate.asked.as_mut());
            known.ok_or_else(|| format!("{event:?}, but nobody was asked"))?.to.extend(to.iter().cloned());
        } else if let Event::Approval(ApprovalEvent::Closed { gate, decision, by, .. }) = event {
            let (run, gate) =
                gates.remove(gate).ok_or_else(|| format!("{event:?}, but its gate is not open"))?;
            if !gate.addresses(by) || by == &gate.requester {
                return Err(format!("{event:?}, but {:?} were asked", gate.asked));
            }
            let entry = entries.entry(run).or_default();
            match (gate.exit, decision) {
                (Some(exit), Decision::Approve) => entry.free = Some(exit),
                (Some(_), Decision::Refuse) => {}
                (Some(_), Decision::Discuss) => return Err(format!("{event:?} at a gate without one")),
                (None, Decision::Approve) => entry.port = Some("approved"),
                (None, Decision::Refuse) => entry.port = Some("rejected"),
                (None, Decision::Discuss) => entry.port = Some("discussion"),
                (_, Decision::Answer) => return Err(format!("{event:?} is not a decision")),
            }
        } else if let Event::Approval(ApprovalEvent::Lapsed { gate }) = event {
            let (run, _) =
                gates.remove(gate).ok_or_else(|| format!("{event:?}, but its gate is not open"))?;
            entries.entry(run).or_default().port = Some("timeout");
        } else if let Event::Approval(ApprovalEvent::Voided { gates: voided, .. }) = event {
            gates.retain(|gate, _| !voided.contains(gate));
        } else if let Event::Run(RunEvent::Entered { run, .. }) = event {
            entries.insert(run.0, Entry::default());
        } else if let Event::Run(RunEvent::Left { run, node, exit }) = event {
            let entry = entries.entry(run.0).or_default();
            let found = &machine(*run).node(*node).unwrap().exits[usize::from(exit.0)];
            if found.hold.is_some() && entry.free != Some(*exit) {
                return Err(format!("{event:?}, but nobody has approved it"));
            }
            let decided = ["approved", "rejected", "discussion"];
            if let Trigger::Port(Port::Named(port)) = &found.on
                && decided.contains(&port.as_str())
                && entry.port != Some(port.as_str())
            {
                return Err(format!("{event:?}, but the decision is {:?}", entry.port));
            }
        }
    }
    Ok(())
}
