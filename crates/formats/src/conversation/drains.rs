//! Cycles of states that need no person and that no transition leaves. Such a run takes
//! transition after transition until the limit of draining ends it.
//!
//! Only certain cycles are reported. A state belongs to a cycle if all of its exits lead into the cycle, whatever guards
//! and branches decide, and if it can neither rest nor be held. A failing operation counts as an exit only if a port
//! takes the error.

use std::mem::replace;

use switchward_machine::{
    ActKind, Boundary, Exit, Guard, Machine, Node as Vertex, NodeIx, Port, Target, Trigger,
};

/// The cycles, each beginning with its first node in the author's order.
pub(super) fn cycles(machine: &Machine) -> Vec<Vec<NodeIx>> {
    let ways: Vec<Vec<usize>> = machine.nodes.iter().map(|vertex| ways(vertex).unwrap_or_default()).collect();
    let mut back = vec![Vec::new(); ways.len()];
    for (from, ways) in ways.iter().enumerate() {
        ways.iter().for_each(|to| back[*to].push(from));
    }
    let mut ended = Vec::new();
    let mut seen = vec![false; ways.len()];
    for at in 0..ways.len() {
        walk(at, &ways, &mut seen, &mut ended);
    }
    // States that lead to each other are one component; if no exit leaves it, none of its states rests either.
    let mut part_of = vec![usize::MAX; ways.len()];
    let mut parts = Vec::new();
    let mut seen = vec![false; ways.len()];
    for at in ended.into_iter().rev() {
        let mut part = Vec::new();
        walk(at, &back, &mut seen, &mut part);
        part.iter().for_each(|node| part_of[*node] = parts.len());
        parts.push(part);
    }
    let closed = |part: &Vec<usize>| {
        let stays = |at: &usize| ways[*at].iter().all(|to| part_of[*to] == part_of[*at]);
        part.iter().all(|at| !ways[*at].is_empty() && stays(at))
    };
    let mut firsts: Vec<usize> =
        parts.iter().filter(|part| closed(part)).filter_map(|it| it.iter().min().copied()).collect();
    firsts.sort_unstable();
    let mut seen = vec![false; ways.len()];
    let cycle = |first: usize| {
        let mut cycle = Vec::new();
        walk(first, &ways, &mut seen, &mut cycle);
        cycle.into_iter().rev().filter_map(|at| u32::try_from(at).ok().map(NodeIx)).collect()
    };
    firsts.into_iter().map(cycle).collect()
}

/// The unseen nodes that a node reaches, in postorder: each after the nodes that it leads to.
fn walk(from: usize, edges: &[Vec<usize>], seen: &mut [bool], ended: &mut Vec<usize>) {
    if replace(&mut seen[from], true) {
        return;
    }
    let mut path = vec![(from, 0)];
    while let Some((at, next)) = path.last_mut() {
        let to = edges[*at].get(*next).copied();
        *next += 1;
        match to {
            Some(to) if !replace(&mut seen[to], true) => path.push((to, 0)),
            Some(_) => {}
            None => ended.extend(path.pop().map(|(at, _)| at)),
        }
    }
}

/// The nodes to which a node certainly leads at once. `None` if it may rest, end or wait for somebody.
fn ways(vertex: &Vertex) -> Option<Vec<usize>> {
    let mut works = false;
    for act in &vertex.acts {
        match &act.kind {
            ActKind::Do(ops) => works |= !ops.is_empty(),
            ActKind::Ask(_)
            | ActKind::Work(_)
            | ActKind::Wait(_)
            | ActKind::Decide(_)
            | ActKind::Spawn(_) => return None,
        }
    }
    let error = match &vertex.boundary {
        Boundary::Port(port) if works => Some(port),
        Boundary::Port(_) | Boundary::Fail | Boundary::Ignore(_) => None,
    };
    // It waits before it is tried again.
    if error.is_some() && vertex.attempts.max > 1 {
        return None;
    }
    let mut found = Vec::new();
    let mut sure = false;
    for exit in &vertex.exits {
        let taken = match &exit.on {
            Trigger::Port(Port::Branch(_)) => true,
            Trigger::Port(port) => Some(port) == error,
            Trigger::Auto { .. } => !sure,
            Trigger::Answer(_) | Trigger::Agent(_) => return None,
        };
        if taken {
            found.push(leads(exit)?);
            sure |= matches!(exit.on, Trigger::Auto { .. }) && exit.guard.is_open();
        }
    }
    sure.then_some(found)
}

/// The node that an exit leads to without a person.
fn leads(exit: &Exit) -> Option<usize> {
    match exit.to {
        Target::Node(to) if exit.hold.is_none() && !asks(&exit.guard) => usize::try_from(to.0).ok(),
        Target::Node(_) | Target::End(_) => None,
    }
}

/// Returns true if evaluating the guard may need somebody outside.
fn asks(guard: &Guard) -> bool {
    match guard {
        Guard::Judge { .. } => true,
        Guard::All(guards) | Guard::Any(guards) => guards.iter().any(asks),
        Guard::Always
        | Guard::Present(_)
        | Guard::Compare { .. }
        | Guard::Called { .. }
        | Guard::Confirmed(_)
        | Guard::Seen(_)
        | Guard::Logic(_) => false,
    }
}
