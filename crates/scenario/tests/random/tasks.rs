//! Properties of tasks and of work for other assistants: a state that owes them is left when they are done, by its
//! own error, or with its run; each part is answered once, by its participant; the answers are stored completely.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use switchward_machine::{ActKind, ExitIx, GateKind, Machine, NodeIx, OpenId, RunId, Trigger, WorkKind};
use switchward_state::Event;
use switchward_state::approval::ApprovalEvent;
use switchward_state::run::{Json, RunEvent, Writer};
use switchward_state::work::{OpenItemBody, WorkEvent, WorkItem};

/// One entry of a run's node.
struct Entry {
    node: NodeIx,
    /// The parts of its task, with their participants and their answers.
    parts: Vec<(OpenId, String, Option<Value>)>,
    /// The open work for other assistants.
    asked: Vec<OpenId>,
    /// True if some of it became void.
    voided: bool,
}

impl Entry {
    fn of(node: NodeIx) -> Self {
        Self { node, parts: Vec::new(), asked: Vec::new(), voided: false }
    }

    /// The parts and the work that become void with these.
    fn void(&mut self, gates: &[OpenId], items: &[OpenId]) {
        let parts = self.parts.iter().filter(|(_, _, answer)| answer.is_none());
        self.voided |= parts.map(|(gate, ..)| gate).any(|gate| gates.contains(gate));
        self.voided |= self.asked.iter().any(|item| items.contains(item));
        self.asked.retain(|item| !items.contains(item));
    }

    fn answered(&mut self, gate: OpenId, by: &str, answer: &Value) -> Result<(), String> {
        let part = self.parts.iter_mut().find(|(known, ..)| *known == gate);
        match part {
            Some((_, person, none @ None)) if person.eq_ignore_ascii_case(by) => *none = Some(answer.clone()),
            other => return Err(format!("{by} answered {gate:?}, but it is {other:?}")),
        }
        Ok(())
    }

    /// The stored result of a task holds the answers of all participants, in order.
    fn kept(&self, tasks: &Value, machine: &Machine) -> Result<(), String> {
        let shown = |(_, participant, answer): &(OpenId, String, Option<Value>)| {
            let answer = answer.as_ref().ok_or_else(|| format!("{participant} has not answered"))?;
            Ok(json!({ "participant": participant, "answer": answer }))
        };
        let all = self.parts.iter().map(shown).collect::<Result<Vec<Value>, String>>()?;
        let state = &machine.node(self.node).unwrap().name;
        let kept = &tasks[state.as_str()];
        if *kept == Value::Array(all) {
            Ok(())
        } else {
            Err(format!("the answers of {state} are stored as {kept}"))
        }
    }

    fn left(&self, exit: ExitIx, machine: &Machine) -> Result<(), String> {
        let node = machine.node(self.node).unwrap();
        let owes = node.acts.iter().any(|act| match &act.kind {
            ActKind::Decide(decide) => decide.each,
            ActKind::Work(work) => work.kind == WorkKind::Delegate,
            ActKind::Ask(_) | ActKind::Do(_) | ActKind::Wait(_) | ActKind::Spawn(_) => false,
        });
        let guarded = matches!(node.exits[usize::from(exit.0)].on, Trigger::Auto { .. });
        if owes && guarded && self.voided {
            return Err(format!("{} is left before all its parts are done", node.name));
        }
        Ok(())
    }
}

fn at(entries: &mut BTreeMap<u32, Entry>, run: u32) -> Result<&mut Entry, String> {
    entries.get_mut(&run).ok_or_else(|| format!("run {run} is at no state"))
}

/// Checks a whole history.
pub(crate) fn check<'m>(events: &[Event], machine: impl Fn(RunId) -> &'m Machine) -> Result<(), String> {
    let mut entries: BTreeMap<u32, Entry> = BTreeMap::new();
    let mut parts: BTreeMap<OpenId, u32> = BTreeMap::new();
    for event in events {
        if let Event::Run(RunEvent::Entered { run, node }) = event {
            entries.insert(run.0, Entry::of(*node));
        } else if let Event::Run(RunEvent::Restarted { run, .. }) = event {
            let entry = at(&mut entries, run.0)?;
            *entry = Entry::of(entry.node);
        } else if let Event::Approval(ApprovalEvent::Opened { gate, run, body }) = event
            && body.kind == GateKind::Task
        {
            let person = body.asked.as_ref().and_then(|asked| asked.to.first()).cloned();
            let person = person.ok_or_else(|| format!("{event:?} asks nobody"))?;
            at(&mut entries, run.0)?.parts.push((*gate, person, None));
            parts.insert(*gate, run.0);
        } else if let Event::Approval(ApprovalEvent::Answered { gate, by, answer: Json(answer), .. }) = event
        {
            let run = parts.remove(gate).ok_or_else(|| format!("{event:?}, but its gate is not open"))?;
            at(&mut entries, run)?.answered(*gate, by, answer)?;
        } else if let Event::Approval(ApprovalEvent::Closed { gate, .. }) = event
            && parts.contains_key(gate)
        {
            return Err(format!("{event:?}, but its gate takes no decision"));
        } else if let Event::Run(RunEvent::Wrote { run, key, value: Json(value), by, .. }) = event
            && key == "tasks"
            && *by == Writer::Person
        {
            at(&mut entries, run.0)?.kept(value, machine(*run))?;
        } else if let Event::Work(WorkEvent::Opened {
            item,
            run,
            body: OpenItemBody::Work(WorkItem { kind, .. }),
            ..
        }) = event
            && *kind == WorkKind::Delegate
        {
            at(&mut entries, run.0)?.asked.push(*item);
        } else if let Event::Work(WorkEvent::Done { item, run, .. }) = event {
            at(&mut entries, run.0)?.asked.retain(|known| known != item);
        } else if let Event::Approval(ApprovalEvent::Voided { gates, items, .. }) = event {
            parts.retain(|gate, _| !gates.contains(gate));
            entries.values_mut().for_each(|entry| entry.void(gates, items));
        } else if let Event::Run(RunEvent::Left { run, exit, .. }) = event {
            at(&mut entries, run.0)?.left(*exit, machine(*run))?;
        }
    }
    Ok(())
}
