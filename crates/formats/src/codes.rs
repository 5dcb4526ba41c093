//! Every code that a finding can have. A code keeps its meaning for ever; a removed one is not used again.
//!
//! 10xx: the text of a source. 11xx: detecting the format, and the shape of maps in all formats. 12xx: checkpoint
//! processes, and codes that other formats share with them. 13xx: conversation workflows. 14xx: native processes.
//! 19xx: scenarios, which are not of this crate.

use crate::Severity;

/// A kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// `SW` and four digits.
    pub id: &'static str,
    /// Whether the definition can be deployed all the same.
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
    SOURCE_TOO_LARGE "SW1001" Error "the file is larger than the limit for a source"
    NOT_UTF8 "SW1002" Error "the file is not UTF-8 text"
    JSON_SYNTAX "SW1003" Error "the text is not JSON; comments and trailing commas are not JSON either"
    YAML_SYNTAX "SW1004" Error "the text is not YAML 1.2"
    SEVERAL_DOCUMENTS "SW1005" Error "the file holds more than one document; only one is read"
    TOO_DEEP "SW1006" Error "lists and maps are nested too deep"
    TOO_MANY_NODES "SW1007" Error "the document holds too many values"
    DUPLICATE_KEY "SW1008" Error "the same key appears twice in one map"
    KEY_NOT_TEXT "SW1009" Error "a key of a map is a list, a map or an alias; keys are text"
    NUMBER_TOO_LARGE "SW1010" Error "a number is not finite, or too large to be read exactly by other programs"
    NUMBER_FORM "SW1011" Error "a YAML number has a form that JSON does not have; programs read it differently"
    YAML_TAG "SW1012" Error "a YAML tag is not in the core schema, or does not fit its value"
    ALIAS "SW1013" Error "a YAML alias refers to too much, to a value around it, or to an anchor beyond the limit"
    CONTROL_CHARACTER "SW1014" Error "the text has a control character where none is allowed"
    EMPTY_DOCUMENT "SW1015" Error "the file holds no document"
    MORE_FINDINGS "SW1099" Warning "there are more findings than are shown; fix these first"

    FORMAT_UNKNOWN "SW1101" Error "the file matches none of the formats"
    FORMAT_AMBIGUOUS "SW1102" Error "the file matches more than one format; name the format"
    FORMAT_UNSUPPORTED "SW1103" Error "the format is recognised, but this build does not support it"
    FILE_COUNT "SW1104" Error "the definition has more or fewer files than its format allows"
    UNKNOWN_KEY "SW1110" Error "a key that the format does not have here"
    MISSING_KEY "SW1111" Error "a key that the format requires is missing; the finding points to the map that lacks it"
    WRONG_TYPE "SW1112" Error "a value has another type than the format requires here"
    TEXT_BOUNDS "SW1113" Error "a text is empty, too long, or is a name with control characters"
    NUMBER_BOUNDS "SW1114" Error "a number is not whole, or outside its bounds"
    MONEY "SW1115" Error "an amount of money is negative, too large, or finer than a millionth of a dollar"
    NOT_LISTED "SW1116" Error "a value is not one of those that the format lists"
    TOO_MANY_ENTRIES "SW1117" Error "a list or map has too many entries"

    NAME "SW1201" Error "the name of a definition has a character that its format does not allow there"
    NO_STATES "SW1202" Error "a process needs at least one state"
    INITIAL_DANGLING "SW1203" Error "initial names a state that does not exist"
    NEXT_DANGLING "SW1204" Error "next names a state that does not exist"
    NEXT_IGNORED "SW1205" Warning "block and complete end the session, so next is ignored"
    UNREACHABLE_STATE "SW1206" Warning "no path leads from the initial state to this one"
    ENDLESS_STATE "SW1207" Warning "no path leads from this state to an end"
    PATTERN "SW1208" Error "a capability must be a path with dots or colons, and may have * only at its end"
    RULE_IDLE "SW1209" Warning "a rule never decides, because an earlier list does, or because its tool is exempt"
    ADDRESS "SW1210" Error "an address must be name@domain or *@domain"
    TOOL_DROPPED "SW1211" Warning "a name in allowed_tools is not one of the endpoint's tools and is ignored"
    MACHINE_TOO_LARGE "SW1212" Error "the compiled definition is too large to be stored"
    APPROVER_CHOSEN "SW1220" Warning "an approver or an escalation contact comes from data or from the start, and counts only if the directory holds them"

    CHANGED_SINCE_SHOWN "SW1225" Warning "a value that an approval showed is used after an agent may have changed it"
    POLICY_OPEN "SW1230" Notice "no rule of the policy covers everything, and the policy has no default: a call that it does not name is allowed, unless the default effect of the tenant or the server is another"
    MAIL_DENIED "SW1231" Warning "email_config limits mail that the policy denies anyway, because no rule allows resend-email"
    CALLEE_ABSENT "SW1250" Warning "a called definition is neither among the definitions that are checked together nor in the catalogue, or it is archived there"

    NOT_RUN "SW1301" Error "the format has this, but this build does not run it"
    DUPLICATE_NAME "SW1302" Error "the name of a state, of a field or of a classification port is used twice"
    STATE_DANGLING "SW1303" Error "a transition or a branch names a state that does not exist"
    PORT_TWICE "SW1304" Error "two transitions leave one port of a state"
    EMPTY_LIST "SW1305" Error "a list that must have entries is empty"
    DATA_KEY "SW1306" Error "a key of the data must be a name without dots and braces; a path is such names with dots between them"
    RECIPIENT "SW1307" Error "a recipient must be an address (a URL for a webhook), a reference to the data, or a word of the format"
    TEMPLATE "SW1308" Error "a template is not valid"
    REGEX "SW1309" Error "a pattern is not a regular expression"
    REDUCER_TYPE "SW1310" Error "a reducer cannot merge values of this type"
    TOO_NESTED "SW1311" Error "loops or composite guards are nested too deep"
    PORT_RESERVED "SW1312" Error "a classification port has the name of another port of the state"
    LOOP_NAME "SW1313" Error "the item of a loop has the name of its position or of an outer item, or is written to"
    TWO_SOURCES "SW1314" Error "participants are both listed and taken from the data"
    OWN_CHILD "SW1315" Error "a workflow calls itself"
    KEPT_KEY "SW1316" Error "the definition writes to a key of the data that only the engine writes"
    CALL_CYCLE "SW1317" Error "workflows that are checked together call each other in a cycle"
    NO_GUARDS "SW1351" Warning "a transition has no guards, or guards without a condition, and always fires"
    GUARDS_IGNORED "SW1352" Warning "a transition from a port has guards, which are ignored"
    PORT_UNCONNECTED "SW1353" Warning "a port has no transition; a run that leaves through it fails"
    AFTER_BRANCH "SW1354" Warning "operations after a conditional branch do not run if it matches"
    TIMER_PORT "SW1355" Warning "a timer without a transition at the port received ends with timeout"
    SEND_RETRIED "SW1356" Warning "a message is sent again if a later operation of its state fails and is retried"
    DRAIN_LOOP "SW1357" Warning "states that wait for nobody lead to each other in an endless loop"
    KEY_UNSET "SW1358" Warning "a key of the data is read, but no reachable state sets it"
    KEY_IDLE "SW1359" Warning "a key has no effect here"
    TOOL_CLOSED "SW1360" Warning "a guard waits for a tool that its state does not allow"
    ONLY_ERROR "SW1361" Warning "the only connected port of a state is its error port"
    NEVER_TRIED "SW1362" Warning "a transition is never tried: one before it always fires"
    REDUCER_WRITES "SW1363" Warning "a value is written to a key whose type or reducer never accepts it"
    NAME_UNKNOWN "SW1370" Error "a text uses an unknown name: a root, a filter, a test, a function, a method or a tag"
    TEXT_BRACES "SW1371" Warning "a text has braces that look like a reference but are output unchanged"
    NO_PARTICIPANTS "SW1372" Warning "a task has no participants and is complete at once"

    FORMAT_VERSION "SW1401" Error "format_version is not the version that this build reads"
    NODE_DANGLING "SW1402" Error "a transition or a branch leads to a node that does not exist"
    NO_EXITS "SW1403" Error "a node that is not final has no transitions and no branches"
    FINAL_EXITS "SW1404" Error "a final node has transitions or branches"
    DEFAULT_BRANCH "SW1405" Error "a condition has no default branch, or several"
    BRANCH_WHEN "SW1406" Error "a branch of a condition has neither when nor default: true, or both"
    AGENT_TRIGGER "SW1407" Error "a transition with the trigger agent leaves a node that is no agent"
    CHILD_TYPE "SW1408" Error "the child of a branch or a foreach is not a tool, an interaction, an agent or a process"
    CHILD_ROUTES "SW1409" Error "the child of a branch or a foreach has transitions or branches of its own"
    WRITES_SHARED "SW1410" Error "two children of a branch write the same field"
    WRITES_OF_CHILD "SW1411" Error "a child of a branch writes a field that writes of the branch lacks"
    COLLECT_INTO "SW1412" Error "collect puts the results into a field that writes of the node lacks"
    WRITES_ABSENT "SW1413" Error "an agent or an interaction writes a field that the schema does not have"
    RESERVED_NAME "SW1414" Error "a name that begins with _ is reserved for the engine"
    CONTEXT_PREFIX "SW1415" Error "a path begins with context., which only returns.from has"
    GUARD_FORM "SW1416" Error "a guard is neither an object nor a boolean"
    LOGIC "SW1417" Error "a guard is not valid JSON Logic"
    NATIVE_PATH "SW1418" Error "a path into the data is not valid"
    TOOL_ABSENT "SW1419" Error "a tool node has neither a tool nor a context_update"
    ASSIGNEE "SW1420" Error "an assignee must be a user, group: and a group, or absent"
    NAME_TWICE "SW1421" Error "a name is used twice: of a field, of a branch, in writes, or in a list of names"
    FIELD_OPTIONS "SW1422" Error "a field of the type select has no options, or one of another type has some"
    FIELD_DEFAULT "SW1423" Error "the default of a field does not have the type of the field, or is none of its options"
    SCRIPT_DANGLING "SW1424" Error "a node names a script that resources.scripts does not have"
    ENTRYPOINT "SW1425" Error "the entrypoint of a script is not one of its files"
    PROCESS_SOURCE "SW1426" Error "a process node must have exactly one of process and process_definition"
    SCHEMA "SW1427" Error "a schema is not valid JSON Schema 2020-12, or refers to something outside of itself"
    UPDATE_ABSENT "SW1428" Error "a context_update sets a field that writes of its node lacks"
    FIELD_ABSENT "SW1429" Error "a field of a form is not in writes of its node"
    PROCESS_NESTED "SW1430" Error "processes are written inside each other too deep"
    FILE_NAME "SW1431" Error "a file of a script must have a relative path without . and .. in it"
    WRITES_UNKNOWN "SW1451" Warning "writes, or the first data, name a field that the schema does not have"
    ROUTE_IDLE "SW1452" Warning "a transition is never tried: one before it always holds"
    NODE_KEY_IDLE "SW1453" Warning "a key has no effect on this node"
    FIELD_UNKNOWN "SW1454" Warning "a template, a guard or a path reads a field that the schema does not have"
    BRACES "SW1455" Warning "a text has double braces that hold no path and are output unchanged"
}

/// Returns the code of this id; `None` if no finding has it.
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

    #[test]
    fn every_code_is_in_the_page_of_findings() {
        let page = include_str!("../../../docs/findings.md");
        // Those of scenarios, SW19, are not this crate's.
        let is_own = |line: &&str| line.starts_with("| `SW") && !line.starts_with("| `SW19");
        let listed = page.lines().filter(is_own).count();
        for code in ALL {
            let begin = format!("| `{}` | {} |", code.id, code.severity.word());
            assert!(page.lines().any(|line| line.starts_with(&begin)), "docs/findings.md has no row {begin}");
        }
        assert_eq!(listed, ALL.len(), "docs/findings.md lists codes that do not exist");
    }
}
