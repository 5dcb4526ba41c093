//! `switchward context`: the addresses and keys that commands use. Keys are never printed.

use serde_json::json;

use crate::args::{ContextCommand, Output, SetContext, files};
use crate::context::{Context, Contexts};
use crate::exit::Exit;
use crate::output::{Table, card, clean, print};

/// Runs the command. Errors are in the output's format.
pub(crate) fn run(command: ContextCommand, output: Output) -> Result<(), Exit> {
    act(command, output).map_err(|exit| exit.in_format(output))
}

fn act(command: ContextCommand, output: Output) -> Result<(), Exit> {
    let contexts = Contexts::of_user()?;
    match command {
        ContextCommand::List => list(&contexts, output),
        ContextCommand::Use(it) => {
            let context = found(&contexts, &it.name)?;
            contexts.select(&it.name)?;
            show(&contexts, &it.name, &context, output)
        }
        ContextCommand::Show(it) => {
            let name = match it.name {
                Some(name) => name,
                None => contexts.current()?.ok_or_else(|| {
                    Exit::missing("no context is in use")
                        .next("switchward context list    lists the contexts")
                })?,
            };
            show(&contexts, &name, &found(&contexts, &name)?, output)
        }
        ContextCommand::Set(it) => set(&contexts, it, output),
        ContextCommand::Delete(it) => {
            if contexts.delete(&it.name)? {
                Ok(())
            } else {
                Err(missing(&it.name))
            }
        }
    }
}

/// The error that there is no context of this name.
pub(crate) fn missing(name: &str) -> Exit {
    Exit::missing(format!("there is no context {name:?}"))
        .next("switchward context list    lists the contexts")
}

fn found(contexts: &Contexts, name: &str) -> Result<Context, Exit> {
    contexts.load(name)?.ok_or_else(|| missing(name))
}

fn set(contexts: &Contexts, it: SetContext, output: Output) -> Result<(), Exit> {
    let key = String::from_utf8(files::read(&it.api_key_file)?).unwrap_or_default().trim().to_owned();
    if key.is_empty() {
        return Err(Exit::usage(format!("{} contains no API key", it.api_key_file.display())));
    }
    let ca = it.ca.map(std::path::absolute).transpose()?;
    let context = Context { address: it.address, api_key: key, role: it.role, ca };
    contexts.save(&it.name, &context).map_err(|error| Exit::usage(format!("{error:#}")))?;
    show(contexts, &it.name, &context, output)
}

fn list(contexts: &Contexts, output: Output) -> Result<(), Exit> {
    let current = contexts.current()?;
    let mut all = Vec::new();
    for name in contexts.names()? {
        let context = found(contexts, &name)?;
        all.push((Some(&name) == current.as_ref(), name, context));
    }
    if output.json() {
        let one = |(used, name, context): &(bool, String, Context)| object(name, context, *used);
        return print(&format!("{}\n", json!({ "contexts": all.iter().map(one).collect::<Vec<_>>() })));
    }
    let mut table = Table::new(&["CONTEXT", "ROLE", "ADDRESS", "STATUS"]);
    for (used, name, context) in &all {
        let status = if *used { "in use" } else { "" };
        table.row([name.clone(), context.role.clone(), context.address.clone(), status.to_owned()]);
    }
    print(&table.text("no contexts"))
}

fn show(contexts: &Contexts, name: &str, context: &Context, output: Output) -> Result<(), Exit> {
    let used = contexts.current()?.as_deref() == Some(name);
    if output.json() {
        return print(&format!("{}\n", object(name, context, used)));
    }
    print(&card(&[
        ("context", clean(name)),
        ("status", if used { "in use".to_owned() } else { String::new() }),
        ("address", clean(&context.address)),
        ("role", clean(&context.role)),
        ("ca", context.ca.as_ref().map(|ca| clean(&ca.display().to_string())).unwrap_or_default()),
        ("file", clean(&contexts.file(name).display().to_string())),
    ]))
}

fn object(name: &str, context: &Context, used: bool) -> serde_json::Value {
    json!({
        "name": name, "address": context.address, "role": context.role, "ca": context.ca, "current": used,
    })
}
