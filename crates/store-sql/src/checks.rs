//! Whether a commit fits what is there: the same rule for every database, on rows that were read and are locked.

use domain::RecordId;
use store::{AgendaRow, Change, Committed, Head};

/// Why a commit does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// A record stands elsewhere: another commit was first, or this one was.
    OtherHead,
    /// A claim went to another owner.
    Fenced,
}

/// Compares heads and fences with the agenda rows, one per change, none for a record that is not there.
pub(crate) fn fits(changes: &[Change], rows: &[Option<AgendaRow>]) -> Result<(), Doubt> {
    for (change, row) in changes.iter().zip(rows) {
        // The checksum too: a record that was retired and made anew may stand at the same version.
        if row.as_ref().map_or(Head::default(), |row| row.head) != change.expected {
            return Err(Doubt::OtherHead);
        }
    }
    for (change, row) in changes.iter().zip(rows) {
        if let Some(fence) = &change.fence {
            let admitted = row.as_ref().is_some_and(|row| row.admit(fence).is_ok());
            if !admitted {
                return Err(Doubt::Fenced);
            }
        }
    }
    Ok(())
}

/// A commit whose facts are there already, under its own ids, is done. `fact_at` finds the fact of a stream at a version: its
/// id and its position.
pub(crate) fn is_repeated<E>(
    changes: &[Change],
    mut fact_at: impl FnMut(&RecordId, u64) -> Result<Option<([u8; 16], u64)>, E>,
) -> Result<Option<Committed>, E> {
    let mut position = 0;
    for change in changes {
        for (version, fact) in (change.expected.version + 1..).zip(&change.facts) {
            match fact_at(&change.id, version)? {
                Some((id, found_at)) if id == fact.id.0 => position = found_at,
                Some(_) | None => return Ok(None),
            }
        }
    }
    Ok((position > 0).then_some(Committed { position }))
}
