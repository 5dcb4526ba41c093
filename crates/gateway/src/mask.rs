//! `read_mask`: which fields of a resource are sent.

use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, MessageDescriptor, ReflectMessage, Value};
use prost_types::FieldMask;
use switchward_api::{PACKAGE, descriptor_pool};

use crate::error::Refusal;
use crate::limits::MASK_PATHS_MAX;

/// The fields of a resource that a call wants to see.
pub(crate) struct Mask {
    /// The resource's message, and the paths; `None` if all fields are wanted.
    wanted: Option<(MessageDescriptor, Vec<String>)>,
}

impl Mask {
    /// Reads `read_mask` for a resource whose message is called `resource`.
    ///
    /// # Errors
    /// FIELD_INVALID for a path that the resource does not have, and for more than [`MASK_PATHS_MAX`] paths.
    pub(crate) fn read(resource: &str, mask: Option<FieldMask>) -> Result<Self, Refusal> {
        let paths = mask.map(|mask| mask.paths).unwrap_or_default();
        if paths.len() > MASK_PATHS_MAX {
            return Err(Refusal::field("read_mask", format!("must hold at most {MASK_PATHS_MAX} paths")));
        }
        let name = format!("{PACKAGE}.{resource}");
        let message = descriptor_pool().get_message_by_name(&name);
        let message = message.unwrap_or_else(|| unreachable!("{name} is a message of the API"));
        let all = paths.is_empty() || paths.iter().any(|path| path == "*");
        for path in paths.iter().filter(|path| *path != "*") {
            check(&message, path)?;
        }
        Ok(Self { wanted: (!all).then_some((message, paths)) })
    }

    /// Returns true if this field of the resource is wanted as a whole.
    pub(crate) fn wants(&self, field: &str) -> bool {
        self.wanted.as_ref().is_none_or(|(_, paths)| paths.iter().any(|path| path == field))
    }

    /// The resource with only the fields that are wanted.
    pub(crate) fn keep<T: Message + Default>(&self, resource: T) -> T {
        let Some((descriptor, paths)) = &self.wanted else { return resource };
        let mut message = DynamicMessage::new(descriptor.clone());
        let read = message.transcode_from(&resource);
        read.unwrap_or_else(|error| unreachable!("a resource is of its own message: {error}"));
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        clear_others(&mut message, &paths);
        let kept = message.transcode_to();
        kept.unwrap_or_else(|error| unreachable!("a resource with fewer fields is of its message: {error}"))
    }

    /// The same for each of a page.
    pub(crate) fn keep_each<T: Message + Default>(&self, resources: Vec<T>) -> Vec<T> {
        if self.wanted.is_none() {
            return resources;
        }
        resources.into_iter().map(|resource| self.keep(resource)).collect()
    }
}

/// A path leads through single messages, from field to field by their names in the proto files.
fn check(message: &MessageDescriptor, path: &str) -> Result<(), Refusal> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let fields = || {
        let names: Vec<String> = message.fields().map(|field| field.name().to_owned()).collect();
        names.join(", ")
    };
    let field = message.get_field_by_name(first).ok_or_else(|| {
        Refusal::field(
            "read_mask",
            format!("has the unknown path {path}; the fields of {} are {}", message.name(), fields()),
        )
    })?;
    let Some(rest) = rest else { return Ok(()) };
    match inner(&field) {
        Some(message) => check(&message, rest),
        None => {
            Err(Refusal::field("read_mask", format!("must end at {first}, which has no fields of its own")))
        }
    }
}

/// The message of a field that holds one of our own.
fn inner(field: &FieldDescriptor) -> Option<MessageDescriptor> {
    let message = field.kind().as_message().cloned();
    message.filter(|message| {
        !field.is_list() && !field.is_map() && message.parent_file().package_name() == PACKAGE
    })
}

fn clear_others(message: &mut DynamicMessage, paths: &[&str]) {
    for field in message.descriptor().fields() {
        let mut below = Vec::new();
        let mut whole = false;
        for path in paths {
            match path.strip_prefix(field.name()) {
                Some("") => whole = true,
                Some(rest) => below.extend(rest.strip_prefix('.')),
                None => {}
            }
        }
        if whole {
            continue;
        }
        if below.is_empty() || !message.has_field(&field) {
            message.clear_field(&field);
        } else if let Value::Message(part) = message.get_field_mut(&field) {
            clear_others(part, &below);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_api::v1;

    fn mask(paths: &[&str]) -> Result<Mask, Refusal> {
        Mask::read(
            "Session",
            Some(FieldMask { paths: paths.iter().map(|path| (*path).to_owned()).collect() }),
        )
    }

    fn session() -> v1::Session {
        v1::Session {
            name: "tenants/t/sessions/s".into(),
            definition: "tenants/t/definitions/d".into(),
            labels: [("team".to_owned(), "core".to_owned())].into(),
            budget: Some(v1::Budget { used_tokens: 5, used_usd: "0.1".into(), ..Default::default() }),
            ..v1::Session::default()
        }
    }

    #[test]
    fn what_is_not_named_is_left_out() {
        let kept = mask(&["name", "labels"]).unwrap().keep(session());
        let wanted = v1::Session { name: session().name, labels: session().labels, ..v1::Session::default() };
        assert_eq!(kept, wanted);
    }

    #[test]
    fn a_path_may_lead_into_a_message_and_the_whole_of_it_wins() {
        let kept = mask(&["budget.used_tokens"]).unwrap().keep(session());
        let budget = v1::Budget { used_tokens: 5, ..v1::Budget::default() };
        assert_eq!(kept, v1::Session { budget: Some(budget), ..v1::Session::default() });
        let kept = mask(&["budget.used_tokens", "budget"]).unwrap().keep(session());
        assert_eq!(kept.budget, session().budget);
    }

    #[test]
    fn nothing_and_a_star_mean_all() {
        assert_eq!(mask(&[]).unwrap().keep(session()), session());
        assert_eq!(mask(&["*"]).unwrap().keep(session()), session());
        assert_eq!(Mask::read("Session", None).unwrap().keep(session()), session());
    }

    #[test]
    fn paths_that_lead_nowhere_are_refused() {
        for path in ["", "nme", "labels.team", "name.x", "start_time.seconds", "budget.", ".name", "budget.x"]
        {
            let refused = mask(&[path]).map(|_| ());
            assert!(refused.is_err(), "{path:?}");
        }
        assert!(mask(&vec!["name"; MASK_PATHS_MAX + 1]).is_err());
        assert!(mask(&["*", "nme"]).is_err());
    }
}
