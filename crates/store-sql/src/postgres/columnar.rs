//! Rows turned into columns: one array per column, so that one statement writes them all (`UNNEST`).

use crate::database::Given;

use super::session::Parameter;

/// Rows of so many columns.
pub(super) struct Columnar<'a, const N: usize> {
    columns: [Vec<Given<'a>>; N],
}

impl<'a, const N: usize> Columnar<'a, N> {
    pub(super) fn new() -> Self {
        Self { columns: std::array::from_fn(|_| Vec::new()) }
    }

    pub(super) fn push(&mut self, row: [Given<'a>; N]) {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// The columns, as `$1`, `$2`, ...
    pub(super) fn parameters(&self) -> Vec<Parameter<'_>> {
        self.columns.iter().map(|column| column as Parameter<'_>).collect()
    }
}
