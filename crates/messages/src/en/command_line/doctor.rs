//! The findings of `switchward doctor`, and what to do about them: a file for each topic.
//!
//! What a check found and its remedy are printed on one line, with a semicolon between them.

pub mod certificate;
pub mod cluster;
pub mod machine;
pub mod mail;
pub mod redis;
pub mod secrets;
pub mod shared;
pub mod test_mail;

use std::path::Path;

/// Below the findings: none needs attention.
pub const ALL_PASSED: &str = "All checks passed.";
/// The remedy for a configuration that cannot be read.
pub const SEE_ALL_SETTINGS: &str = "see deploy/switchward.toml for all settings; no other checks were run";
/// The remedy for variables of the environment that are no settings.
pub const CORRECT_VARIABLE: &str = "remove the variable, or correct its name";
/// The server has no configuration file.
pub const VALID_WITHOUT_FILE: &str = "no file; options and environment are valid";
/// The remedy for the first keys of tenants that cannot be read.
pub const SEE_TENANTS: &str = "the server does not start; see [[tenants]] in deploy/switchward.toml";

/// Variables of the environment look like settings, and are none.
#[must_use]
pub fn ignored_variables(names: &[String]) -> String {
    format!("not a setting, and ignored by the server: {}", names.join(", "))
}

/// The configuration file has no error.
#[must_use]
pub fn valid_file(file: &Path) -> String {
    format!("{} is valid", file.display())
}

/// The first keys of tenants, given as their count with a noun, can be read.
#[must_use]
pub fn readable_keys(tenants: &str) -> String {
    format!("the first keys of {tenants} are readable")
}

/// Below the findings: some need attention, given as their count with a noun.
#[must_use]
pub fn none_failed(warnings: &str) -> String {
    format!("No check failed; {warnings}.")
}

/// Below the findings: the count of checks that failed, of all with a noun, and of those that need attention.
#[must_use]
pub fn some_failed(failed: usize, checks: &str, warnings: &str) -> String {
    format!("{failed} of {checks} failed; {warnings}.")
}
