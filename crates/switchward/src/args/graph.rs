//! Arguments of `graph`.

use clap::ValueEnum;
use std::path::PathBuf;

/// Arguments of `graph`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  switchward graph deploy-gate.json
  switchward graph deploy-gate.json --to deploy-gate.svg
  switchward graph deploy-gate.json --as dot | dot -Tpdf > deploy-gate.pdf
  generate | switchward graph - -o json

Without --as, the file extension of --to sets the format: .svg, .mmd or .mermaid, .dot or .gv. The standard output \
gets Mermaid, which many pages and editors render. Exits with 5 if the definition has errors, which are printed on \
the standard error. With -o json, prints the graph as one object:
  {\"file\",\"format\",\"ok\",\"findings\",\"graph\":{\"name\",\"vertices\",\"edges\"}}")]
pub(crate) struct GraphArgs {
    /// The definition's file, or `-` for the standard input.
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// The output format.
    #[arg(long = "as", value_enum, value_name = "PICTURE")]
    pub(crate) picture: Option<Picture>,
    /// Write to this file instead of the standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// The format of the definition [default: detected from the content].
    #[arg(long, value_name = "FORMAT", value_parser = super::formats())]
    pub(crate) format: Option<String>,
}

/// The formats of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Picture {
    /// An SVG image for browsers; follows the reader's light or dark mode.
    Svg,
    /// A Mermaid flowchart for Markdown pages.
    Mermaid,
    /// A Graphviz graph.
    Dot,
}
