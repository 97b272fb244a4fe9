//! Which schema and views the database has now: another longhaul may change them while this one runs. Every batch and every
//! heartbeat looks; a node that finds others than its own writes nothing more, and says what to do.

use store::VIEW_FORMAT;

use super::failure::PostgresError;
use crate::database::{Columns, Unfit, integer};
use crate::migrate::SCHEMA_VERSION;

/// What the database has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Versions {
    schema: i64,
    views: i64,
}

impl Versions {
    /// From two columns, beginning with this one.
    pub(super) fn read(row: &dyn Columns, column: usize) -> Result<Self, Unfit> {
        Ok(Self { schema: integer(row, column)?, views: integer(row, column + 1)? })
    }

    /// Refuses others than our own.
    pub(super) fn check(self) -> Result<(), PostgresError> {
        if self == (Self { schema: SCHEMA_VERSION, views: VIEW_FORMAT }) {
            return Ok(());
        }
        let newer = self.schema > SCHEMA_VERSION || self.views > VIEW_FORMAT;
        Err(PostgresError::Skewed(format!(
            "the database has schema {} and views of format {} now, this longhaul works with {SCHEMA_VERSION} and {VIEW_FORMAT}; {}",
            self.schema,
            self.views,
            if newer { "start this node with the newer longhaul" } else { "start this node again" },
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_versions_are_worked_with_and_the_message_says_what_to_do() {
        let ours = Versions { schema: SCHEMA_VERSION, views: VIEW_FORMAT };
        assert!(ours.check().is_ok());
        for (other, told) in [
            (Versions { schema: SCHEMA_VERSION + 1, ..ours }, "the newer longhaul"),
            (Versions { views: VIEW_FORMAT + 1, ..ours }, "the newer longhaul"),
            (Versions { schema: SCHEMA_VERSION - 1, ..ours }, "start this node again"),
        ] {
            let refused = other.check().unwrap_err().to_string();
            assert!(refused.contains(told), "{refused}");
        }
    }
}
