//! Reads a schema into a [`Graph`]: what each keyword says, where references lead, and what is wrong.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::chain;
use crate::flaw::{Flaw, FlawKind};
use crate::flaws::Flaws;
use crate::graph::{Graph, Sub, Use};
use crate::keyword::{self, Shape};
use crate::limits::{
    ADDRESSES_MAX, BYTES_PER_STEP, CHAIN_MAX, PATTERNS_MAX, REFERENCES_MAX, SCHEMA_BYTES_MAX,
    SCHEMA_DEPTH_MAX, SCHEMA_STORED_BYTES_MAX, SCHEMA_STORED_DEPTH_MAX, SUBSCHEMAS_MAX,
};
use crate::marks;
use crate::pattern;
use crate::reference::{Bases, Target};
use crate::text::{self, kind, step};

/// Who wrote a schema: a derived one may be a little larger than the one that it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Author,
    Stored,
}

/// A schema that was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) graph: Graph,
    /// Without white space, keys in the order of their bytes.
    pub(crate) text: String,
    /// The regular expressions, with their pointers.
    pub(crate) patterns: Vec<(String, String)>,
}

/// Reads a schema, with everything but its regular expressions.
///
/// # Errors
/// What is wrong with it, in the order of pointers.
pub(crate) fn read(value: &Value, origin: Origin) -> Result<Read, Vec<Flaw>> {
    let (depth_max, bytes_max, factor) = match origin {
        Origin::Author => (SCHEMA_DEPTH_MAX, SCHEMA_BYTES_MAX, 1),
        Origin::Stored => (SCHEMA_STORED_DEPTH_MAX, SCHEMA_STORED_BYTES_MAX, 2),
    };
    let mut reader = Reader::new(value, factor);
    if !text::depth_within(value, depth_max) {
        reader.flaws.add("", FlawKind::Limit, format!("nests more than {depth_max} deep"));
        return Err(reader.flaws.sorted());
    }
    let text = text::canonical(value);
    if text.len() > bytes_max {
        reader.flaws.add("", FlawKind::Limit, format!("has more than {bytes_max} bytes"));
        return Err(reader.flaws.sorted());
    }
    reader.walk(value, "", 0, None);
    reader.follow();
    reader.finish(text)
}

struct Reader<'a> {
    root: &'a Value,
    /// What the maxima are multiplied with.
    factor: usize,
    subs: Vec<Sub>,
    pointers: Vec<String>,
    parents: Vec<Option<usize>>,
    /// For each subschema, the base of its references.
    base_of: Vec<usize>,
    is_referenced: Vec<bool>,
    /// The subschema at each pointer.
    at: BTreeMap<String, usize>,
    bases: Bases,
    /// The subschemas with each `$dynamicAnchor`.
    dynamic: BTreeMap<String, Vec<usize>>,
    references: Vec<Reference>,
    /// Each `$ref`, and where it leads.
    links: Vec<(String, usize, usize)>,
    patterns: Vec<(String, String)>,
    flaws: Flaws,
}

/// A `$ref` or `$dynamicRef` whose target is looked for later.
#[derive(Clone)]
struct Reference {
    pointer: String,
    from: usize,
    text: String,
    is_dynamic: bool,
}

impl<'a> Reader<'a> {
    fn new(root: &'a Value, factor: usize) -> Self {
        Self {
            root,
            factor,
            subs: Vec::new(),
            pointers: Vec::new(),
            parents: Vec::new(),
            base_of: Vec::new(),
            is_referenced: Vec::new(),
            at: BTreeMap::new(),
            bases: Bases::new(ADDRESSES_MAX * factor),
            dynamic: BTreeMap::new(),
            references: Vec::new(),
            links: Vec::new(),
            patterns: Vec::new(),
            flaws: Flaws::default(),
        }
    }

    /// Reads the subschema at a pointer, and returns its index.
    fn walk(&mut self, value: &'a Value, pointer: &str, base: usize, parent: Option<usize>) -> usize {
        if let Some(known) = self.at.get(pointer) {
            return *known;
        }
        let index = self.subs.len();
        if index >= SUBSCHEMAS_MAX * self.factor {
            let message = format!("has more than {} subschemas", SUBSCHEMAS_MAX * self.factor);
            self.flaws.add("", FlawKind::Limit, message);
            return 0;
        }
        self.subs.push(Sub::default());
        self.pointers.push(pointer.to_owned());
        self.parents.push(parent);
        self.base_of.push(base);
        self.is_referenced.push(false);
        self.at.insert(pointer.to_owned(), index);
        match value {
            Value::Object(map) => {
                self.identify(map, index);
                self.walk_keywords(map, index);
            }
            Value::Bool(_) => {}
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                let message = format!("is {}, and a schema is a dictionary, true or false", kind(value));
                self.flaws.add(pointer, FlawKind::Keyword, message);
            }
        }
        index
    }

    /// Notes the names under which references find a subschema.
    fn identify(&mut self, map: &Map<String, Value>, index: usize) {
        let pointer = self.pointers[index].clone();
        let sound = |name: &str, shape| {
            map.get(name).filter(|value| keyword::check(name, shape, value).is_ok()).and_then(Value::as_str)
        };
        if let Some(dialect) = map.get("$schema").and_then(Value::as_str)
            && let Err(message) = crate::reference::check_dialect(dialect)
        {
            self.flaws.add(format!("{pointer}/$schema"), FlawKind::Dialect, message);
        }
        if let Some(id) = sound("$id", Shape::Identifier) {
            match self.bases.identify(self.base_of[index], id, &pointer) {
                Ok(base) => self.base_of[index] = base,
                Err(message) => self.flaws.add(format!("{pointer}/$id"), FlawKind::Reference, message),
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            let Some(name) = sound(keyword, Shape::Anchor) else { continue };
            if keyword == "$dynamicAnchor" {
                self.dynamic.entry(name.to_owned()).or_default().push(index);
            }
            if let Err(message) = self.bases.anchor(self.base_of[index], name, &pointer) {
                self.flaws.add(format!("{pointer}/{keyword}"), FlawKind::Reference, message);
            }
        }
    }

    fn walk_keywords(&mut self, map: &'a Map<String, Value>, index: usize) {
        let base = format!("{}/", self.pointers[index]);
        for (keyword, value) in map {
            let Some(shape) = keyword::shape(keyword) else { continue };
            let pointer = format!("{base}{}", step(keyword));
            if let Err(message) = keyword::check(keyword, shape, value) {
                let kind = match shape {
                    Shape::Reference | Shape::Identifier | Shape::Anchor => FlawKind::Reference,
                    Shape::Pattern => FlawKind::Pattern,
                    Shape::Text
                    | Shape::Flag
                    | Shape::Number
                    | Shape::Positive
                    | Shape::Count
                    | Shape::List
                    | Shape::Names
                    | Shape::NamesByName
                    | Shape::Dictionary
                    | Shape::Types
                    | Shape::Schema
                    | Shape::Schemas
                    | Shape::SchemasByName
                    | Shape::Older => FlawKind::Keyword,
                };
                self.flaws.add(pointer, kind, message);
                continue;
            }
            self.walk_keyword(keyword, value, &pointer, index);
        }
        let sub = &mut self.subs[index];
        sub.unique = map.get("uniqueItems") == Some(&Value::Bool(true));
        sub.steps = own_steps(map);
    }

    fn walk_keyword(&mut self, keyword: &str, value: &'a Value, pointer: &str, index: usize) {
        let base = self.base_of[index];
        match keyword::shape(keyword) {
            Some(Shape::Schema) => {
                let to = self.walk(value, pointer, base, Some(index));
                self.subs[index].connect(keyword, to);
            }
            Some(Shape::Schemas) => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    let to = self.walk(item, &format!("{pointer}/{number}"), base, Some(index));
                    self.subs[index].connect(keyword, to);
                }
            }
            Some(Shape::SchemasByName) => {
                for (name, item) in value.as_object().into_iter().flatten() {
                    let pointer = format!("{pointer}/{}", step(name));
                    let to = self.walk(item, &pointer, base, Some(index));
                    if keyword == "patternProperties" {
                        self.note_pattern(name, &pointer);
                    }
                    self.subs[index].connect_named(keyword, name, to);
                }
            }
            Some(Shape::Reference) => {
                let text = value.as_str().unwrap_or_default().to_owned();
                let is_dynamic = keyword == "$dynamicRef";
                self.references.push(Reference {
                    pointer: pointer.to_owned(),
                    from: index,
                    text,
                    is_dynamic,
                });
            }
            Some(Shape::Pattern) => {
                let text = value.as_str().unwrap_or_default();
                self.note_pattern(text, pointer);
                self.subs[index].pattern = Some(pattern::weight(text));
            }
            Some(_) | None => {}
        }
    }

    fn note_pattern(&mut self, pattern: &str, pointer: &str) {
        if let Err(message) = pattern::check(pattern) {
            self.flaws.add(pointer, FlawKind::Pattern, message);
        } else if self.patterns.len() < PATTERNS_MAX * self.factor {
            self.patterns.push((pointer.to_owned(), pattern.to_owned()));
        } else {
            let message = format!("has more than {} regular expressions", PATTERNS_MAX * self.factor);
            self.flaws.add("", FlawKind::Limit, message);
        }
    }

    /// Finds out where references lead. A target that no keyword leads to is read as a schema, which may add
    /// others.
    fn follow(&mut self) {
        let mut next = 0;
        while let Some(reference) = self.references.get(next).cloned() {
            next += 1;
            if next > REFERENCES_MAX * self.factor {
                let message = format!("has more than {} references", REFERENCES_MAX * self.factor);
                self.flaws.add("", FlawKind::Limit, message);
                return;
            }
            match self.bases.target(self.base_of[reference.from], &reference.text) {
                Ok(target) => self.link(&reference, &target),
                Err(message) => self.flaws.add(reference.pointer, FlawKind::Reference, message),
            }
        }
    }

    fn link(&mut self, reference: &Reference, target: &Target) {
        let root = self.root;
        let Some(value) = root.pointer(&target.pointer) else {
            self.flaws.add(&*reference.pointer, FlawKind::Reference, "leads to nothing in the schema");
            return;
        };
        let base = self.base_around(&target.pointer);
        let to = self.walk(value, &target.pointer, base, None);
        self.connect(reference, to);
        if let Some(name) = target.anchor.as_ref().filter(|_| reference.is_dynamic) {
            for to in self.dynamic.get(name).cloned().unwrap_or_default() {
                self.connect(reference, to);
            }
        }
    }

    fn connect(&mut self, reference: &Reference, to: usize) {
        self.subs[reference.from].references.push(to);
        self.is_referenced[to] = true;
        self.links.push((reference.pointer.clone(), reference.from, to));
    }

    /// The base of the nearest subschema around a pointer.
    fn base_around(&self, pointer: &str) -> usize {
        let mut rest = pointer;
        loop {
            if let Some(index) = self.at.get(rest) {
                return self.base_of[*index];
            }
            match rest.rsplit_once('/') {
                Some((before, _)) => rest = before,
                None => return 0,
            }
        }
    }

    fn finish(mut self, text: String) -> Result<Read, Vec<Flaw>> {
        let chain = chain::longest(&self.subs, &self.parents, &self.is_referenced);
        // A derived schema leads to the one that it holds.
        let chain_max = CHAIN_MAX + 8 * (self.factor - 1);
        if chain > chain_max {
            let message = format!("its parts lead into one another for more than {chain_max} steps");
            self.flaws.add("", FlawKind::Limit, message);
        }
        match Graph::new(self.subs) {
            Ok(graph) => {
                if let Err(message) = marks::check(&graph.subs) {
                    self.flaws.add("", FlawKind::Limit, message);
                }
                if self.flaws.is_empty() {
                    Ok(Read { graph, text, patterns: self.patterns })
                } else {
                    Err(self.flaws.sorted())
                }
            }
            Err(loops) => {
                let is_in = |node: &usize| loops.binary_search(node).is_ok();
                let inside = self.links.iter().filter(|(_, from, to)| is_in(from) && is_in(to));
                for (pointer, ..) in inside {
                    let message = "leads back to itself before it looks at a part of the value";
                    self.flaws.add(&**pointer, FlawKind::Reference, message);
                }
                Err(self.flaws.sorted())
            }
        }
    }
}

impl Sub {
    fn connect(&mut self, keyword: &str, to: usize) {
        match keyword {
            "allOf" | "then" | "else" => self.same.push((Use::Plain, to)),
            "anyOf" | "oneOf" => self.same.push((Use::Choice, to)),
            "not" | "if" => self.same.push((Use::Trial, to)),
            "prefixItems" => self.prefix.push(to),
            "items" => self.items = Some(to),
            "contains" => self.contains = Some(to),
            "unevaluatedItems" => self.other_items = Some(to),
            "additionalProperties" => self.additional = Some(to),
            "unevaluatedProperties" => self.other_fields = Some(to),
            "propertyNames" => self.names = Some(to),
            _ => {}
        }
    }

    fn connect_named(&mut self, keyword: &str, name: &str, to: usize) {
        match keyword {
            "properties" => {
                self.fields.insert(name.to_owned(), to);
            }
            "patternProperties" => self.by_pattern.push((pattern::weight(name), to)),
            "dependentSchemas" => self.same.push((Use::Plain, to)),
            _ => {}
        }
    }
}

/// Steps of the checks of one subschema that depend on it alone.
fn own_steps(map: &Map<String, Value>) -> u64 {
    let compared = ["enum", "const", "required", "dependentRequired", "type"];
    let bytes: u64 = compared.iter().filter_map(|name| map.get(*name)).map(text::weight).sum();
    u64::try_from(map.len()).unwrap_or(u64::MAX).saturating_add(bytes / BYTES_PER_STEP)
}
