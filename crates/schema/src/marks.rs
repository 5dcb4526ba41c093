//! What `unevaluatedProperties` and `unevaluatedItems` cost when a schema is compiled. The library compiles
//! for each of them what the same value is looked at by, through all references, so that references which
//! meet again would multiply it.

use crate::graph::{Sub, ordered};
use crate::limits::{MARKED_PARTS_MAX, PATTERN_WEIGHT_PER_STEP};

/// How a subschema is compiled for such a keyword.
#[derive(Clone, Copy)]
enum How {
    /// As a part of the schema with the keyword: what is inside has been compiled before.
    Inside,
    /// Behind a reference: what is inside is compiled once more.
    Referenced,
    /// With all that is inside, for what stands behind a reference.
    Whole,
}

const HOWS: [How; 3] = [How::Inside, How::Referenced, How::Whole];

/// Checks that little enough is compiled.
///
/// # Errors
/// A sentence, if it is too much, or has no end.
pub(crate) fn check(subs: &[Sub]) -> Result<(), String> {
    let starts: Vec<usize> =
        (0..subs.len()).filter(|sub| subs[*sub].marks()).map(|sub| node(sub, How::Inside)).collect();
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); subs.len() * HOWS.len()];
    let mut is_open = vec![false; edges.len()];
    let mut open = starts.clone();
    while let Some(next) = open.pop() {
        if !std::mem::replace(&mut is_open[next], true) {
            edges[next] = steps(&subs[next / HOWS.len()], next / HOWS.len(), HOWS[next % HOWS.len()]);
            open.extend(&edges[next]);
        }
    }
    let order = ordered(&edges);
    if order.len() < edges.len() {
        return Err("`unevaluatedProperties` or `unevaluatedItems` lead back to themselves".to_owned());
    }
    let mut parts = vec![0_u64; edges.len()];
    for next in order.into_iter().rev() {
        let patterns: u64 = subs[next / HOWS.len()]
            .by_pattern
            .iter()
            .map(|(weight, _)| weight / PATTERN_WEIGHT_PER_STEP + 1)
            .sum();
        let inner = edges[next].iter().fold(0_u64, |sum, to| sum.saturating_add(parts[*to]));
        parts[next] = inner.saturating_add(patterns).saturating_add(1);
    }
    let all = starts.iter().fold(0_u64, |sum, start| sum.saturating_add(parts[*start]));
    if all > MARKED_PARTS_MAX {
        return Err(format!(
            "`unevaluatedProperties` and `unevaluatedItems` look through more than {MARKED_PARTS_MAX} parts"
        ));
    }
    Ok(())
}

fn node(sub: usize, how: How) -> usize {
    sub * HOWS.len() + how as usize
}

/// What is compiled for a subschema.
fn steps(sub: &Sub, index: usize, how: How) -> Vec<usize> {
    let same = sub.same.iter().map(|(_, to)| *to);
    let behind = sub.references.iter().map(|to| node(*to, How::Referenced));
    match how {
        How::Inside => same.map(|to| node(to, How::Inside)).chain(behind).collect(),
        How::Referenced => {
            // Of `properties` the names alone are looked at.
            let is_field = |to: &usize| sub.fields.values().any(|field| field == to);
            let whole = sub.inner().filter(|to| !is_field(to)).map(|to| node(to, How::Whole));
            same.map(|to| node(to, How::Referenced)).chain(behind).chain(whole).collect()
        }
        How::Whole => {
            let marked = sub.marks().then(|| node(index, How::Referenced));
            sub.inner().map(|to| node(to, How::Whole)).chain(marked).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::read::{Origin, read};

    fn is_sound(schema: &Value) -> bool {
        read(schema, Origin::Author).is_ok()
    }

    fn doubled(count: usize) -> Value {
        let definitions: Value = (0..count)
            .map(|number| {
                let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
                (format!("d{number}"), json!({"allOf": [next.clone(), next]}))
            })
            .chain([(format!("d{count}"), json!({}))])
            .collect();
        json!({"$ref": "#/$defs/d0", "unevaluatedProperties": false, "$defs": definitions})
    }

    #[test]
    fn references_that_meet_again_are_counted() {
        assert!(is_sound(&doubled(8)));
        assert!(!is_sound(&doubled(30)));
    }

    #[test]
    fn what_leads_back_to_itself_is_refused() {
        let schema = json!({
            "$ref": "#/$defs/n",
            "$defs": {
                "n": {"$ref": "#/$defs/t", "unevaluatedProperties": false},
                "t": {"additionalProperties": {"$ref": "#/$defs/n", "unevaluatedProperties": false}},
            },
        });
        assert!(!is_sound(&schema));
    }

    #[test]
    fn a_closed_tree_is_sound() {
        let schema = json!({
            "$ref": "#/$defs/base",
            "properties": {"children": {"additionalProperties": {"$ref": "#"}}},
            "unevaluatedProperties": false,
            "$defs": {"base": {"properties": {"value": {}}}},
        });
        assert!(is_sound(&schema));
        let nested = (0..30)
            .fold(json!({}), |inner, _| json!({"anyOf": [inner], "unevaluatedProperties": {"type": "null"}}));
        assert!(is_sound(&nested));
    }
}
