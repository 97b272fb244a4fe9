//! How much a template may cost: the budgets, their defaults, and the one ceiling that no caller can lift.
//! Every budget counts work or size, never time, so a slow machine gives the same answer as a fast one.

use std::fmt;

/// No depth limit reaches further than this, whatever the caller asks for.
///
/// Depth is the one budget that also guards the thread's stack: parsing and rendering recurse once per level.
/// The tests show that this many levels of everything at once fit into 1.5 MiB of stack, also unoptimised.
pub const DEPTH_CEILING: usize = 256;

/// One step pays for this many bytes of text that are read or written.
pub const BYTES_PER_STEP: usize = 64;

/// What one template may cost, at the most.
///
/// A template keeps the limits that it was parsed with. A value equal to its limit is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Length of the template as compact JSON.
    pub template_bytes: usize,
    /// Length of the context as compact JSON.
    pub context_bytes: usize,
    /// Steps of one render: a step is a template node or an instruction of an expression, an element or an
    /// entry that is handled, a comparison that finds a name or a key or puts something in order, or
    /// [`BYTES_PER_STEP`] bytes of text in any of these.
    pub steps: u64,
    /// Nesting of the template, of an expression, of the context, of every value that is built, and of the
    /// result; at most [`DEPTH_CEILING`].
    pub depth: usize,
    /// Length of the result as compact JSON.
    pub output_bytes: usize,
    /// Elements or entries of one array or object that is built or returned.
    pub collection_size: usize,
    /// Bytes of one string that is built or returned.
    pub string_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            template_bytes: 256 * 1024,
            context_bytes: 1024 * 1024,
            steps: 1_000_000,
            depth: 128,
            output_bytes: 1024 * 1024,
            collection_size: 10_000,
            string_bytes: 256 * 1024,
        }
    }
}

impl Limits {
    /// The depth limit that is in force.
    pub(crate) fn levels(&self) -> usize {
        self.depth.min(DEPTH_CEILING)
    }
}

/// Which of the [`Limits`] was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Budget {
    /// [`Limits::template_bytes`]
    TemplateBytes,
    /// [`Limits::context_bytes`]
    ContextBytes,
    /// [`Limits::steps`]
    Steps,
    /// [`Limits::depth`]
    Depth,
    /// [`Limits::output_bytes`]
    OutputBytes,
    /// [`Limits::collection_size`]
    CollectionSize,
    /// [`Limits::string_bytes`]
    StringBytes,
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Budget::TemplateBytes => "template bytes",
            Budget::ContextBytes => "context bytes",
            Budget::Steps => "steps",
            Budget::Depth => "levels of depth",
            Budget::OutputBytes => "output bytes",
            Budget::CollectionSize => "elements in a collection",
            Budget::StringBytes => "bytes in a string",
        })
    }
}
