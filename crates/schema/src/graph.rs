//! The subschemas of a schema, and how they lead into one another.

use std::collections::BTreeMap;

/// The subschemas, each after all that apply it to the same value.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) subs: Vec<Sub>,
    /// The whole schema.
    pub(crate) root: usize,
}

/// One subschema: which others it applies to what, as indexes of [`Graph::subs`], and what its own checks
/// cost.
#[derive(Debug, Default)]
pub(crate) struct Sub {
    /// Those inside it that look at the same value.
    pub(crate) same: Vec<(Use, usize)>,
    /// Those that `$ref` and `$dynamicRef` lead to, which look at the same value too.
    pub(crate) references: Vec<usize>,
    /// `properties`.
    pub(crate) fields: BTreeMap<String, usize>,
    /// `patternProperties`, each with the weight of its pattern.
    pub(crate) by_pattern: Vec<(u64, usize)>,
    /// `additionalProperties`.
    pub(crate) additional: Option<usize>,
    /// `unevaluatedProperties`.
    pub(crate) other_fields: Option<usize>,
    /// `propertyNames`.
    pub(crate) names: Option<usize>,
    /// `prefixItems`.
    pub(crate) prefix: Vec<usize>,
    /// What applies to the items after those.
    pub(crate) items: Option<usize>,
    /// What applies to every item, to find out whether it does.
    pub(crate) contains: Option<usize>,
    /// `unevaluatedItems`.
    pub(crate) other_items: Option<usize>,
    /// The weight of `pattern`.
    pub(crate) pattern: Option<u64>,
    /// True if items must differ.
    pub(crate) unique: bool,
    /// Steps of its other checks, whatever the value.
    pub(crate) steps: u64,
}

/// How a subschema applies another one to the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It must hold: `allOf`, `$ref` and the like.
    Plain,
    /// It is tried first, and reported if no choice holds: `anyOf`, `oneOf`.
    Choice,
    /// It is only tried: `if`, `not`.
    Trial,
}

impl Sub {
    /// True if it needs to know what others have looked at.
    pub(crate) fn marks(&self) -> bool {
        self.other_fields.is_some() || self.other_items.is_some()
    }

    /// Those for the same value, with how they are used.
    pub(crate) fn for_same(&self) -> impl Iterator<Item = (Use, usize)> + '_ {
        self.same.iter().copied().chain(self.references.iter().map(|to| (Use::Plain, *to)))
    }

    /// Every subschema that it leads to, those of references last.
    pub(crate) fn targets(&self) -> impl Iterator<Item = usize> + '_ {
        self.inner().chain(self.references.iter().copied())
    }

    /// Every subschema inside it.
    pub(crate) fn inner(&self) -> impl Iterator<Item = usize> + '_ {
        let lists = self.same.iter().map(|(_, to)| to).chain(self.fields.values()).chain(&self.prefix);
        let single = [self.additional, self.other_fields, self.names, self.items, self.contains]
            .into_iter()
            .chain([self.other_items])
            .flatten();
        lists.copied().chain(self.by_pattern.iter().map(|(_, to)| *to)).chain(single)
    }

    fn targets_mut(&mut self) -> impl Iterator<Item = &mut usize> {
        let single = [
            &mut self.additional,
            &mut self.other_fields,
            &mut self.names,
            &mut self.items,
            &mut self.contains,
            &mut self.other_items,
        ];
        let lists = self.same.iter_mut().map(|(_, to)| to).chain(self.fields.values_mut());
        lists
            .chain(&mut self.prefix)
            .chain(&mut self.references)
            .chain(self.by_pattern.iter_mut().map(|(_, to)| to))
            .chain(single.into_iter().flatten())
    }
}

impl Graph {
    /// Orders subschemas, of which the first is the whole schema.
    ///
    /// # Errors
    /// The subschemas of the loops, if some lead back to themselves without going on to a part of the value.
    pub(crate) fn new(mut subs: Vec<Sub>) -> Result<Self, Vec<usize>> {
        let same: Vec<Vec<usize>> =
            subs.iter().map(|sub| sub.for_same().map(|(_, to)| to).collect()).collect();
        let order = ordered(&same);
        if order.len() < subs.len() {
            return Err(loops(&same, &order));
        }
        let mut ranks = vec![0; subs.len()];
        for (rank, index) in order.iter().enumerate() {
            ranks[*index] = rank;
        }
        for sub in &mut subs {
            for target in sub.targets_mut() {
                *target = ranks[*target];
            }
        }
        let root = ranks.first().copied().unwrap_or_default();
        let mut ranked: Vec<(usize, Sub)> = ranks.into_iter().zip(subs).collect();
        ranked.sort_unstable_by_key(|(rank, _)| *rank);
        Ok(Self { subs: ranked.into_iter().map(|(_, sub)| sub).collect(), root })
    }
}

/// The nodes from which each comes after all that lead to it; those of loops, and behind them, are missing.
pub(crate) fn ordered(edges: &[Vec<usize>]) -> Vec<usize> {
    let mut open = vec![0_usize; edges.len()];
    for to in edges.iter().flatten() {
        open[*to] += 1;
    }
    let mut order: Vec<usize> = (0..edges.len()).filter(|node| open[*node] == 0).collect();
    let mut next = 0;
    while let Some(node) = order.get(next).copied() {
        next += 1;
        for to in &edges[node] {
            open[*to] -= 1;
            if open[*to] == 0 {
                order.push(*to);
            }
        }
    }
    order
}

/// The same edges the other direction.
pub(crate) fn reversed(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut reversed = vec![Vec::new(); edges.len()];
    for (from, to) in edges.iter().enumerate().flat_map(|(from, to)| to.iter().map(move |to| (from, *to))) {
        reversed[to].push(from);
    }
    reversed
}

/// The nodes on loops and between them, in order.
fn loops(edges: &[Vec<usize>], order: &[usize]) -> Vec<usize> {
    let mut is_free = vec![false; edges.len()];
    for node in order.iter().copied().chain(ordered(&reversed(edges))) {
        is_free[node] = true;
    }
    (0..edges.len()).filter(|node| !is_free[*node]).collect()
}
