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
  generate | switchward graph - --format checkpoint -o json

Without --as, the ending of --to says what is drawn: .svg, .mmd or .mermaid, .dot or .gv. On the standard output it is
Mermaid, which many pages and editors show as a picture. Ends with 5 where the definition has errors; they are told on
the standard error, so that they never end in a picture. With -o json, the graph as one object:
  {\"file\",\"format\",\"ok\",\"findings\",\"graph\":{\"name\",\"vertices\",\"edges\"}}")]
pub(crate) struct GraphArgs {
    /// A file, or `-` for the standard input.
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// What is drawn.
    #[arg(long = "as", value_enum, value_name = "PICTURE")]
    pub(crate) picture: Option<Picture>,
    /// Write it here, and not to the standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// The format, where it shall not be told from the file.
    #[arg(long, value_name = "FORMAT", value_parser = super::formats())]
    pub(crate) format: Option<String>,
}

/// The kinds of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Picture {
    /// A picture for every browser, light or dark as its reader likes it.
    Svg,
    /// A flowchart for pages in Markdown.
    Mermaid,
    /// For Graphviz.
    Dot,
}
