//! The end of a batch: the facts under the lock of the ledger, and the commit.

use domain::Timestamp;
use store::{Committed, Removal, StoreError, failpoint};

use super::super::columnar::Columnar;
use super::super::failure::PostgresError;
use super::super::session::Session;
use super::super::statements::{
    FORGET_TALLIES, INSERT_FACTS, LOCK_LEDGER, MOVE_TALLIES, REMOVE_FACTS, REMOVE_OLDER_FACTS,
};
use super::super::tally::{Before, Moved};
use super::Undone;
use crate::database::unsigned;
use crate::floor;
use crate::prepare::Prepared;
use crate::request::Answer;
use crate::rows::signed;

/// The facts, and the end: sent together, so that the lock of the ledger is held only for as long as the server needs.
pub(super) async fn end(
    session: &Session,
    fitting: &[(usize, &Prepared)],
    before: &Before,
    answers: &mut [Option<Result<Answer, StoreError>>],
    ledger_lock: i64,
) -> Result<(), Undone> {
    let mut facts = Columnar::<10>::new();
    let mut older = Columnar::<2>::new();
    let mut gone: Vec<&str> = Vec::new();
    let mut gone_at: Option<Timestamp> = None;
    for commit in fitting.iter().map(|(_, prepared)| *prepared) {
        push_facts(&mut facts, commit);
        for change in &commit.commit.changes {
            if change.removal == Removal::Record {
                gone.push(change.id.as_str());
                gone_at = gone_at.max(Some(commit.commit.at));
            } else if let (Removal::OlderFacts, Some(version)) = (change.removal, change.checkpoint_version())
            {
                older.push([change.id.as_str().into(), signed(version).into()]);
            }
        }
    }
    let moved = Moved::by(fitting, before);
    let tallies = moved.rows();
    let [lock_ledger, move_tallies, forget_tallies, insert_facts, remove_facts, remove_older] = [
        session.prepare(LOCK_LEDGER).await?,
        session.prepare(MOVE_TALLIES).await?,
        session.prepare(FORGET_TALLIES).await?,
        session.prepare(INSERT_FACTS).await?,
        session.prepare(REMOVE_FACTS).await?,
        session.prepare(REMOVE_OLDER_FACTS).await?,
    ];
    let columns = facts.parameters();
    let lock = async {
        if facts.is_empty() { Ok(Vec::new()) } else { session.rows(&lock_ledger, &[&ledger_lock]).await }
    };
    let tally = async {
        if tallies.is_empty() { Ok(0) } else { session.execute(&move_tallies, &tallies.parameters()).await }
    };
    let forget = async { if gone.is_empty() { Ok(0) } else { session.execute(&forget_tallies, &[]).await } };
    let insert =
        async { if facts.is_empty() { Ok(Vec::new()) } else { session.rows(&insert_facts, &columns).await } };
    let remove =
        async { if gone.is_empty() { Ok(0) } else { session.execute(&remove_facts, &[&gone]).await } };
    let checkpoint = async {
        if older.is_empty() { Ok(0) } else { session.execute(&remove_older, &older.parameters()).await }
    };
    if let Some(at) = gone_at {
        // Rare, and therefore not worth to be sent with the rest.
        floor::keep_time(session, at).await?;
    }
    failpoint("commit.before");
    let (locked, tallied, forgotten, inserted, removed, checkpointed, ended) =
        futures::join!(lock, tally, forget, insert, remove, checkpoint, session.run("COMMIT"));
    // The first that failed says why; the server refuses what comes after it.
    let written = locked
        .and(tallied)
        .and(forgotten)
        .and(inserted)
        .and_then(|rows| removed.and(checkpointed).and(ended).map(|()| rows));
    let rows = written.map_err(|error| {
        // Once any of them was lost, so was what became of the last.
        let in_doubt = matches!(error, PostgresError::Lost(_));
        Undone { error, in_doubt }
    })?;
    failpoint("commit.after");
    // It is written; a position that cannot be read would be no reason to write it again.
    let positions: Vec<u64> = rows.iter().map(|row| unsigned(row, 0).unwrap_or_default()).collect();
    let mut next = 0;
    for (place, prepared) in fitting {
        let count: usize = prepared.texts.iter().map(|text| text.facts.len()).sum();
        next += count;
        let position = if count == 0 { 0 } else { positions.get(next - 1).copied().unwrap_or_default() };
        answers[*place] = Some(Ok(Answer::Committed(Committed { position })));
    }
    Ok(())
}

fn push_facts<'a>(facts: &mut Columnar<'a, 10>, prepared: &'a Prepared) {
    let commit = &prepared.commit;
    for (change, text) in commit.changes.iter().zip(&prepared.texts) {
        let versions = change.expected.version + 1..;
        for ((new, encoded), version) in change.facts.iter().zip(&text.facts).zip(versions) {
            facts.push([
                change.id.as_str().into(),
                signed(version).into(),
                new.id.0[..].into(),
                encoded.kind.into(),
                commit.at.micros().into(),
                (&*commit.actor).into(),
                commit.causation_id.as_deref().into(),
                commit.correlation_id.as_deref().into(),
                encoded.payload.as_str().into(),
                encoded.checksum.0[..].into(),
            ]);
        }
    }
}
