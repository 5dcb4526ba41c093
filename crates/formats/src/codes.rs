//! Every code that a finding can have. A code keeps its meaning for ever; a removed one is not used again.
//!
//! 10xx: the text of a source. 11xx: detecting the format, and the shape of maps in all formats. 12xx: checkpoint
//! processes, and codes that other formats share with them. 13xx: conversation workflows.

use crate::Severity;

/// A kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// `SW` and four digits.
    pub id: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// One line for `explain`.
    pub about: &'static str,
}

macro_rules! codes {
    ($($name:ident $id:literal $severity:ident $about:literal)*) => {
        $(#[doc = $about] pub const $name: Code =
            Code { id: $id, severity: Severity::$severity, about: $about };)*

        /// All codes, in order.
        pub const ALL: &[Code] = &[$($name),*];
    };
}

codes! {
    SOURCE_TOO_LARGE "SW1001" Error "the file is larger than a source may be"
    NOT_UTF8 "SW1002" Error "the file is not UTF-8 text"
    JSON_SYNTAX "SW1003" Error "the text is not JSON; comments and trailing commas are not JSON either"
    YAML_SYNTAX "SW1004" Error "the text is not YAML 1.2"
    SEVERAL_DOCUMENTS "SW1005" Error "the file holds more than one document; only one is read"
    TOO_DEEP "SW1006" Error "lists and maps stand inside each other too deep"
    TOO_MANY_NODES "SW1007" Error "the document holds too many values"
    DUPLICATE_KEY "SW1008" Error "the same key stands twice in one map"
    KEY_NOT_TEXT "SW1009" Error "a key of a map is a list, a map or an alias; keys are text"
    NUMBER_TOO_LARGE "SW1010" Error "a number is not finite, or larger than any program can be expected to read"
    NUMBER_FORM "SW1011" Error "a YAML number is written in a way that JSON does not have, so that programs differ in reading it"
    YAML_TAG "SW1012" Error "a YAML tag is not one of the core schema's, or does not fit its value"
    ALIAS "SW1013" Error "a YAML alias stands for too much, for what holds it, or for what is not kept"
    CONTROL_CHARACTER "SW1014" Error "the text holds a control character where none may stand"
    EMPTY_DOCUMENT "SW1015" Error "the file holds no document"
    MORE_FINDINGS "SW1099" Warning "there are more findings than are told; fix these first"

    FORMAT_UNKNOWN "SW1101" Error "the file fits none of the formats"
    FORMAT_AMBIGUOUS "SW1102" Error "the file fits more than one format; name the one that is meant"
    FORMAT_UNSUPPORTED "SW1103" Error "the format is recognised, and not supported by this build"
    FILE_COUNT "SW1104" Error "the definition has more or fewer files than its format takes"
    UNKNOWN_KEY "SW1110" Error "a key that the format does not have here"
    MISSING_KEY "SW1111" Error "a key that the format requires is missing; told at the map that lacks it"
    WRONG_TYPE "SW1112" Error "a value has another type than the format wants here"
    TEXT_BOUNDS "SW1113" Error "a text is empty, too long, or holds control characters where it names something"
    NUMBER_BOUNDS "SW1114" Error "a number is not whole, or outside its bounds"
    MONEY "SW1115" Error "an amount of money is negative, too large, or finer than a millionth of a dollar"
    NOT_LISTED "SW1116" Error "a value is none of those that the format lists"
    TOO_MANY_ENTRIES "SW1117" Error "a list or map holds more than it may"

    NAME "SW1201" Error "a process name is lower-case letters, digits and hyphens"
    NO_STATES "SW1202" Error "a process has at least one state"
    INITIAL_DANGLING "SW1203" Error "initial names a state that does not exist"
    NEXT_DANGLING "SW1204" Error "next names a state that does not exist"
    NEXT_IGNORED "SW1205" Warning "block and complete end the session, so that next is ignored"
    UNREACHABLE_STATE "SW1206" Warning "no path leads from the initial state to this one"
    ENDLESS_STATE "SW1207" Warning "no path leads from this state to an end"
    PATTERN "SW1208" Error "a capability is a dot or colon path, with * at most at its end"
    RULE_IDLE "SW1209" Warning "a rule never decides, because an earlier list does, or because its tool is exempt"
    ADDRESS "SW1210" Error "an address is name@domain or *@domain"
    TOOL_DROPPED "SW1211" Warning "a name in allowed_tools is none of the endpoint's tools and is dropped"
    MACHINE_TOO_LARGE "SW1212" Error "the definition compiles to more than may be stored"
    APPROVER_CHOSEN "SW1220" Warning "an approver or an escalation contact comes from data or from the start, and counts only if the directory holds them"

    CHANGED_SINCE_SHOWN "SW1225" Warning "a value that an approval showed is sent on where an agent may have changed it since"
    POLICY_OPEN "SW1230" Notice "no rule of the policy covers everything, and it states no default: what it does not name is allowed, unless the tenant's or the server's default effect is another"
    CALLEE_ABSENT "SW1250" Warning "a definition that is called is neither among those that are checked together nor in the catalogue"

    NOT_RUN "SW1301" Error "the format has this, and this build does not run it"
    DUPLICATE_NAME "SW1302" Error "the name of a state, of a field or of a classification port stands twice"
    STATE_DANGLING "SW1303" Error "a transition or a branch names a state that does not exist"
    PORT_TWICE "SW1304" Error "two transitions stand at one port of a state"
    EMPTY_LIST "SW1305" Error "a list that must hold something holds nothing"
    DATA_KEY "SW1306" Error "a key of the data is a name without dots and braces; a path is such names with dots between them"
    RECIPIENT "SW1307" Error "a recipient is an address (a URL for a webhook), a reference to the data, or a word that the format has"
    TEMPLATE "SW1308" Error "a template cannot be read"
    REGEX "SW1309" Error "a pattern is no regular expression"
    REDUCER_TYPE "SW1310" Error "a reducer cannot merge values of this type"
    TOO_NESTED "SW1311" Error "loops or composite guards stand inside each other too deep"
    PORT_RESERVED "SW1312" Error "a classification port is called like a port that the state has beside it"
    LOOP_NAME "SW1313" Error "the item of a loop is called like its position or like an outer item, or is written to"
    TWO_SOURCES "SW1314" Error "participants are listed, or taken from the data, not both"
    OWN_CHILD "SW1315" Error "a workflow is its own child"
    KEPT_KEY "SW1316" Error "the definition writes to a key of the data that only the engine writes"
    CALL_CYCLE "SW1317" Error "workflows that are checked together call each other in a circle"
    NO_GUARDS "SW1351" Warning "a transition has no guards, or guards that ask for nothing, and always fires"
    GUARDS_IGNORED "SW1352" Warning "guards stand at a port, where nothing asks for them"
    PORT_UNCONNECTED "SW1353" Warning "no transition stands at a port; a run that leaves through it fails"
    AFTER_BRANCH "SW1354" Warning "operations after a conditional branch do not run where it matches"
    TIMER_PORT "SW1355" Warning "a timer whose received is not connected ends with timeout"
    SEND_RETRIED "SW1356" Warning "a message is sent again where a later operation of its state fails and is retried"
    DRAIN_LOOP "SW1357" Warning "states that need nobody lead to each other for ever"
    KEY_UNSET "SW1358" Warning "a key of the data is read, and nothing that a path leads to sets it"
    KEY_IDLE "SW1359" Warning "a key that means nothing here"
    TOOL_CLOSED "SW1360" Warning "a guard waits for a tool that its state does not let anybody call"
    ONLY_ERROR "SW1361" Warning "the only way on from a state is its error port"
    NEVER_TRIED "SW1362" Warning "a transition stands behind one that always fires"
    REDUCER_WRITES "SW1363" Warning "a value is written to a key whose type or reducer never takes such a value"
    NAME_UNKNOWN "SW1370" Error "a text names something that is not offered there: a root, a filter, a test, a function, a method or a tag"
    TEXT_BRACES "SW1371" Warning "a text holds braces that look like a reference and are written as they stand"
    NO_PARTICIPANTS "SW1372" Warning "nobody takes part in a task, which is complete at once"
}

/// The code of this id.
#[must_use]
pub fn explain(id: &str) -> Option<&'static Code> {
    ALL.iter().find(|code| code.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_order_and_none_stands_twice() {
        assert!(ALL.is_sorted_by(|one, next| one.id < next.id));
        assert!(ALL.iter().all(|code| code.id.len() == 6 && code.id.starts_with("SW")));
        assert_eq!(explain("SW1204"), Some(&NEXT_DANGLING));
        assert_eq!(explain("SW0000"), None);
    }
}
