//! `switchward graph`: draws a definition.

use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use switchward_formats::{Compiled, Format, compile_file, render_json};
use switchward_graph::{Graph, Kind, dot, mermaid, svg};

use crate::args::{GraphArgs, Output, Picture, files};
use crate::exit::{Exit, FINDINGS, unwritten};
use crate::output::{findings, print, print_bytes, shell};

/// Draws a definition.
pub(crate) fn run(args: &GraphArgs, output: Output) -> Result<(), Exit> {
    draw(args, output).map_err(|exit| exit.in_format(output))
}

fn draw(args: &GraphArgs, output: Output) -> Result<(), Exit> {
    // Usage errors are reported before the file is read.
    let picture = picture(args, output)?;
    let bytes = files::read(&args.path)?;
    let name = args.path.to_string_lossy();
    let compiled = compile_file(&name, &bytes, args.format.as_deref().and_then(Format::named));
    let Some(definition) = &compiled.definition else { return unsound(&name, &compiled, &bytes, output) };
    let graph = Graph::of(&definition.machine);
    if let Some(picture) = picture {
        let text = match picture {
            Picture::Svg => svg(&graph).map_err(|large| too_large(&large.to_string(), &args.path))?,
            Picture::Mermaid => mermaid(&graph),
            Picture::Dot => dot(&graph),
        };
        match &args.to {
            Some(to) => fs::write(to, text).map_err(|error| unwritten_file(to, &error))?,
            None => return print_bytes(text.as_bytes()),
        }
    }
    if output.json() { print_json(&name, &compiled, &graph) } else { Ok(()) }
}

/// The picture to draw; `None` if only JSON is printed.
fn picture(args: &GraphArgs, output: Output) -> Result<Option<Picture>, Exit> {
    match (args.picture, &args.to) {
        (Some(_), None) if output.json() => Err(Exit::usage("with -o json, --as requires --to FILE")),
        (Some(picture), _) => Ok(Some(picture)),
        (None, Some(to)) => by_ending(to).map(Some),
        (None, None) => Ok((!output.json()).then_some(Picture::Mermaid)),
    }
}

fn by_ending(to: &Path) -> Result<Picture, Exit> {
    let ending = to.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        Some("svg") => Ok(Picture::Svg),
        Some("mmd" | "mermaid") => Ok(Picture::Mermaid),
        Some("dot" | "gv") => Ok(Picture::Dot),
        Some(_) | None => Err(Exit::usage(format!(
            "the extension of {} is not known; use .svg, .mmd, .mermaid, .dot or .gv, or set the format with --as",
            to.display()
        ))),
    }
}

/// Prints the findings of a definition with errors, as JSON or on the standard error.
fn unsound(name: &str, compiled: &Compiled, bytes: &[u8], output: Output) -> Result<(), Exit> {
    let printed = if output.json() {
        print(&format!("{}\n", render_json(name, compiled.format, &compiled.findings)))
    } else {
        let found = findings(&compiled.findings, bytes);
        anstream::stderr().lock().write_all(found.as_bytes()).map_err(|error| unwritten(error).into())
    };
    printed.or_else(Exit::unless_output_closed)?;
    Err(Exit::reported(FINDINGS))
}

fn too_large(message: &str, path: &Path) -> Exit {
    let path = shell(&path.to_string_lossy());
    Exit::failed(anyhow::anyhow!("failed to lay out the graph: {message}"))
        .next(format!("switchward graph {path} --as dot"))
}

fn unwritten_file(path: &Path, error: &std::io::Error) -> Exit {
    Exit::failed(anyhow::anyhow!("failed to write {}: {error}", path.display()))
}

/// Prints the graph as JSON, together with the findings.
fn print_json(name: &str, compiled: &Compiled, graph: &Graph) -> Result<(), Exit> {
    let mut report: Value = serde_json::from_str(&render_json(name, compiled.format, &compiled.findings))
        .map_err(anyhow::Error::from)?;
    let vertices: Vec<Value> = graph
        .vertices
        .iter()
        .map(|vertex| {
            let kind = match vertex.kind {
                Kind::Node => "node",
                Kind::End(_) => "end",
            };
            json!({
                "name": vertex.name,
                "kind": kind,
                "acts": vertex.acts,
                "start": vertex.start,
                "final": vertex.last,
                "reached": vertex.reached,
            })
        })
        .collect();
    let edges: Vec<Value> = graph
        .edges
        .iter()
        .map(|edge| {
            let labels: Vec<&str> = edge.labels.iter().map(|label| label.whole.as_str()).collect();
            json!({ "from": edge.from, "to": edge.to, "kind": edge.kind.word(), "labels": labels })
        })
        .collect();
    report["graph"] = json!({ "name": graph.name, "vertices": vertices, "edges": edges });
    print(&format!("{report}\n"))
}
