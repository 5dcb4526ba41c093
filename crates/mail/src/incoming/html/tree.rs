//! The tree that a browser makes of HTML, by the parser of the HTML standard.
//!
//! The nodes are in one list and refer to each other by their positions in it, so that no operation recurses.

use std::borrow::Cow;
use std::cell::RefCell;

use html5ever::interface::tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{Attribute, ExpandedName, ParseOpts, QualName, local_name, ns, parse_document};

use super::tags;
use crate::limits::{
    HTML_ATTRIBUTE_BYTES_MAX, HTML_ATTRIBUTES_MAX, HTML_CHUNK_BYTES, HTML_DEPTH_MAX, HTML_NODES_MAX,
};

/// The position of a node in the list.
type Id = usize;

const DOCUMENT: Id = 0;

/// An element with its attributes, without what is in it.
#[derive(Debug)]
pub(super) struct Element {
    name: QualName,
    attributes: Vec<Attribute>,
    /// The node that holds the contents of a `template`, which are no part of the page.
    contents: Option<Id>,
    /// Whether this is MathML that holds HTML.
    holds_html: bool,
}

impl Element {
    /// The name, in lower case if it is HTML.
    pub(super) fn name(&self) -> &str {
        &self.name.local
    }

    /// The value of an attribute; empty if the element does not have it.
    pub(super) fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|it| &*it.name.local == name).map_or("", |it| &it.value)
    }

    /// Returns true if the element has the attribute, whatever its value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.attributes.iter().any(|it| &*it.name.local == name)
    }
}

#[derive(Debug)]
enum Kind {
    Element(Element),
    Text(String),
    /// The document, a comment, the contents of a template.
    Other,
}

#[derive(Debug)]
struct Node {
    kind: Kind,
    parent: Option<Id>,
    previous: Option<Id>,
    next: Option<Id>,
    first: Option<Id>,
    last: Option<Id>,
}

/// A page as a tree.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    attribute_bytes: usize,
    /// Whether the page is larger or deeper than it may be.
    exceeded: bool,
}

/// One step through a tree, in the order of the page.
#[derive(Debug)]
pub(super) enum Step<'t> {
    /// An element begins.
    Open(&'t Element),
    /// All text between two elements' tags.
    Text(&'t str),
    /// The element that was opened last and not closed ends.
    Close,
}

impl Tree {
    /// Parses a page; `None` if it exceeds a limit, as it is not known what browsers show then.
    pub(super) fn parse(html: &str) -> Option<Self> {
        if !tags::are_small(html) {
            return None;
        }
        let tree_builder =
            TreeBuilderOpts { scripting_enabled: false, drop_doctype: true, ..TreeBuilderOpts::default() };
        let mut parser = parse_document(Sink::default(), ParseOpts { tree_builder, ..ParseOpts::default() });
        let mut rest = html;
        while !rest.is_empty() {
            // A few bytes can make many nodes, so the limits are checked again and again.
            let chunk = if rest.len() > HTML_CHUNK_BYTES {
                rest.floor_char_boundary(HTML_CHUNK_BYTES)
            } else {
                rest.len()
            };
            let (chunk, behind) = rest.split_at(chunk);
            parser.process(StrTendril::from_slice(chunk));
            if parser.tokenizer.sink.sink.0.borrow().exceeded {
                return None;
            }
            rest = behind;
        }
        let tree = parser.finish();
        (!tree.exceeded).then_some(tree)
    }

    /// The page from its beginning to its end.
    pub(super) fn steps(&self) -> Steps<'_> {
        Steps { tree: self, next: self.nodes[DOCUMENT].first.map(|id| (id, true)) }
    }

    fn push(&mut self, kind: Kind) -> Id {
        self.nodes.push(Node { kind, parent: None, previous: None, next: None, first: None, last: None });
        self.exceeded |= self.nodes.len() > HTML_NODES_MAX;
        self.nodes.len() - 1
    }

    /// Detaches a node with its children from its parent.
    fn detach(&mut self, id: Id) {
        let node = &mut self.nodes[id];
        let (parent, previous, next) = (node.parent.take(), node.previous.take(), node.next.take());
        match (previous, parent) {
            (Some(previous), _) => self.nodes[previous].next = next,
            (None, Some(parent)) => self.nodes[parent].first = next,
            (None, None) => {}
        }
        match (next, parent) {
            (Some(next), _) => self.nodes[next].previous = previous,
            (None, Some(parent)) => self.nodes[parent].last = previous,
            (None, None) => {}
        }
    }

    /// Inserts a node into another, before one of its children, or last.
    fn attach(&mut self, id: Id, parent: Id, before: Option<Id>) {
        self.detach(id);
        let (mut above, mut depth) = (Some(parent), 0);
        while let Some(at) = above {
            depth += 1;
            if at == id {
                self.exceeded = true;
                return;
            }
            above = self.nodes[at].parent;
        }
        self.exceeded |= depth > HTML_DEPTH_MAX && matches!(self.nodes[id].kind, Kind::Element(_));
        let previous = match before {
            Some(before) => self.nodes[before].previous.replace(id),
            None => self.nodes[parent].last.replace(id),
        };
        match previous {
            Some(previous) => self.nodes[previous].next = Some(id),
            None => self.nodes[parent].first = Some(id),
        }
        let node = &mut self.nodes[id];
        (node.parent, node.previous, node.next) = (Some(parent), previous, before);
    }

    fn insert(&mut self, child: NodeOrText<Handle>, parent: Id, before: Option<Id>) {
        let text = match child {
            NodeOrText::AppendNode(node) => return self.attach(node.id, parent, before),
            NodeOrText::AppendText(text) => text,
        };
        let previous = before.map_or(self.nodes[parent].last, |before| self.nodes[before].previous);
        if let Some(Node { kind: Kind::Text(known), .. }) = previous.map(|id| &mut self.nodes[id]) {
            known.push_str(&text);
            return;
        }
        let id = self.push(Kind::Text(text.to_string()));
        self.attach(id, parent, before);
    }

    fn insert_before(&mut self, child: NodeOrText<Handle>, sibling: Id) {
        if let Some(parent) = self.nodes[sibling].parent {
            self.insert(child, parent, Some(sibling));
        }
    }

    fn count_attributes(&mut self, attributes: &[Attribute]) {
        let bytes: usize = attributes.iter().map(|it| it.name.local.len() + it.value.len()).sum();
        self.attribute_bytes += bytes;
        self.exceeded |= self.attribute_bytes > HTML_ATTRIBUTE_BYTES_MAX;
    }
}

/// A walk through a tree.
#[derive(Debug)]
pub(super) struct Steps<'t> {
    tree: &'t Tree,
    /// The next node, and whether it begins there.
    next: Option<(Id, bool)>,
}

impl<'t> Iterator for Steps<'t> {
    type Item = Step<'t>;

    fn next(&mut self) -> Option<Step<'t>> {
        loop {
            let (id, begins) = self.next?;
            let node = &self.tree.nodes[id];
            let behind = node.next.map(|next| (next, true));
            let behind = behind
                .or_else(|| node.parent.filter(|parent| *parent != DOCUMENT).map(|parent| (parent, false)));
            match &node.kind {
                Kind::Element(element) if begins => {
                    self.next = Some(node.first.map_or((id, false), |first| (first, true)));
                    return Some(Step::Open(element));
                }
                Kind::Element(_) => {
                    self.next = behind;
                    return Some(Step::Close);
                }
                Kind::Text(text) => {
                    self.next = behind;
                    return Some(Step::Text(text));
                }
                Kind::Other => self.next = behind,
            }
        }
    }
}

/// What the parser knows of a node.
#[derive(Debug, Clone)]
struct Handle {
    id: Id,
    name: QualName,
}

impl Handle {
    /// A node other than an element.
    fn nameless(id: Id) -> Self {
        Self { id, name: QualName::new(None, ns!(), local_name!("")) }
    }
}

/// Builds the tree for the parser.
#[derive(Debug)]
struct Sink(RefCell<Tree>);

impl Default for Sink {
    fn default() -> Self {
        let mut tree = Tree { nodes: Vec::new(), attribute_bytes: 0, exceeded: false };
        tree.push(Kind::Other);
        Self(RefCell::new(tree))
    }
}

impl TreeSink for Sink {
    type Handle = Handle;
    type Output = Tree;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Tree {
        self.0.into_inner()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_document(&self) -> Handle {
        Handle::nameless(DOCUMENT)
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn same_node(&self, x: &Handle, y: &Handle) -> bool {
        x.id == y.id
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, flags: ElementFlags) -> Handle {
        let mut tree = self.0.borrow_mut();
        tree.count_attributes(&attributes);
        let contents = flags.template.then(|| tree.push(Kind::Other));
        let holds_html = flags.mathml_annotation_xml_integration_point;
        let element = Element { name: name.clone(), attributes, contents, holds_html };
        Handle { id: tree.push(Kind::Element(element)), name }
    }

    fn create_comment(&self, _: StrTendril) -> Handle {
        Handle::nameless(self.0.borrow_mut().push(Kind::Other))
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Handle {
        Handle::nameless(self.0.borrow_mut().push(Kind::Other))
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.0.borrow_mut().insert(child, parent.id, None);
    }

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        self.0.borrow_mut().insert_before(child, sibling.id);
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        let mut tree = self.0.borrow_mut();
        if tree.nodes[element.id].parent.is_some() {
            tree.insert_before(child, element.id);
        } else {
            tree.insert(child, previous.id, None);
        }
    }

    fn get_template_contents(&self, target: &Handle) -> Handle {
        let contents = match &self.0.borrow().nodes[target.id].kind {
            Kind::Element(element) => element.contents,
            Kind::Text(_) | Kind::Other => None,
        };
        contents.map_or_else(|| target.clone(), Handle::nameless)
    }

    fn add_attrs_if_missing(&self, target: &Handle, attributes: Vec<Attribute>) {
        let mut tree = self.0.borrow_mut();
        tree.count_attributes(&attributes);
        let Kind::Element(element) = &mut tree.nodes[target.id].kind else { return };
        for attribute in attributes {
            if !element.attributes.iter().any(|known| known.name == attribute.name) {
                element.attributes.push(attribute);
            }
        }
        let exceeded = element.attributes.len() > HTML_ATTRIBUTES_MAX;
        tree.exceeded |= exceeded;
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.0.borrow_mut().detach(target.id);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        let mut tree = self.0.borrow_mut();
        while let Some(child) = tree.nodes[node.id].first {
            tree.attach(child, new_parent.id, None);
        }
    }

    fn is_mathml_annotation_xml_integration_point(&self, handle: &Handle) -> bool {
        matches!(&self.0.borrow().nodes[handle.id].kind, Kind::Element(element) if element.holds_html)
    }

    fn allow_declarative_shadow_roots(&self, _: &Handle) -> bool {
        false
    }
}
