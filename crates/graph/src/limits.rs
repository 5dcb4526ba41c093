//! Named maxima of pictures. Units are in the names.

/// Characters of a name that a vertex shows; its title has the rest.
pub const NAME_CHARS_MAX: usize = 32;
/// Characters of one label that an edge shows; its title has the rest.
pub const LABEL_CHARS_MAX: usize = 36;
/// Labels that one edge shows, each on a line; its title has the others.
pub const LABEL_LINES_MAX: usize = 4;
/// Characters of the title of a vertex or an edge.
pub const TITLE_CHARS_MAX: usize = 1_000;
/// Characters of the description of a whole picture.
pub const DESCRIPTION_CHARS_MAX: usize = 8_000;
/// Nodes that share one mark of an outcome; if more nodes end with it, each has its own mark.
pub const ENDS_SHARED_MAX: usize = 3;

/// Vertices that are laid out.
pub const VERTICES_MAX: usize = 2_000;
/// Edges that are laid out.
pub const EDGES_MAX: usize = 5_000;
/// Slots in all layers: the vertices, and one in each layer that an edge passes.
pub const SLOTS_MAX: usize = 100_000;
/// Passes that balance the ranks.
pub const BALANCE_PASSES_MAX: usize = 4;
/// Sweeps over the layers that look for fewer crossings.
pub const SWEEPS_MAX: usize = 24;
/// Sweeps without fewer crossings after which the search ends.
pub const IDLE_SWEEPS_MAX: usize = 6;
/// Slots up to which swaps of neighbours are tried, too.
pub const SWAPPED_SLOTS_MAX: usize = 3_000;
/// Rounds of such swaps in one sweep.
pub const SWAP_ROUNDS_MAX: usize = 4;
