//! Circles of states that nobody is needed in and nothing leads out of. Heading *Technical Details*, "deterministic state
//! draining": such a run goes round until the bound of draining ends it.
//!
//! Told is only what is certain. A state belongs to a circle where each of its ways leads into it, whatever guards and
//! branches say, and where it can neither rest nor be held. That an operation fails is no way, but to the port that
//! takes the error.

use std::mem::replace;

use switchward_machine::{
    ActKind, Boundary, Exit, Guard, Machine, Node as Vertex, NodeIx, Port, Target, Trigger,
};

/// The circles, each from its first node in the author's order on.
pub(super) fn circles(machine: &Machine) -> Vec<Vec<NodeIx>> {
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
    // States that lead to each other are one part; where no way leaves it, nothing in it rests either.
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
    let circle = |first: usize| {
        let mut circle = Vec::new();
        walk(first, &ways, &mut seen, &mut circle);
        circle.into_iter().rev().filter_map(|at| u32::try_from(at).ok().map(NodeIx)).collect()
    };
    firsts.into_iter().map(circle).collect()
}

/// What is reached from a node and was not seen before. Each stands behind what it leads to.
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

/// Where a node leads at once, whatever happens; nothing where it may rest, end or wait for somebody.
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
            Trigger::Answer(_) => return None,
        };
        if taken {
            found.push(leads(exit)?);
            sure |= matches!(exit.on, Trigger::Auto { .. }) && exit.guard.is_open();
        }
    }
    sure.then_some(found)
}

/// The node that an exit leads to without anybody's help.
fn leads(exit: &Exit) -> Option<usize> {
    match exit.to {
        Target::Node(to) if exit.hold.is_none() && !asks(&exit.guard) => usize::try_from(to.0).ok(),
        Target::Node(_) | Target::End(_) => None,
    }
}

/// Whether somebody outside may be asked whether a guard holds.
fn asks(guard: &Guard) -> bool {
    match guard {
        Guard::Judge { .. } => true,
        Guard::All(guards) | Guard::Any(guards) => guards.iter().any(asks),
        Guard::Always
        | Guard::Present(_)
        | Guard::Compare { .. }
        | Guard::Called { .. }
        | Guard::Said(_)
        | Guard::Seen(_) => false,
    }
}
