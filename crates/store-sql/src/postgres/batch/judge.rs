//! Which commits of a batch fit what is there; the others are answered here: in conflict, fenced, taken before, or there already.

use std::collections::{HashMap, HashSet};

use domain::RecordId;
use store::{AgendaRow, IdempotencyKey, KeptKey, StoreError};

use super::super::columnar::Columnar;
use super::super::session::Session;
use super::super::statements::FACT_IDS;
use super::{Rows, Undone};
use crate::checks::{Doubt, fits, is_repeated};
use crate::database::{Unfit, digest, text, unsigned};
use crate::plugin_state;
use crate::prepare::Prepared;
use crate::request::{Answer, Request};
use crate::rows::signed;

/// Answers the commits that do not fit, or are there already; the others, by their places in the batch.
pub(super) async fn judge<'a>(
    session: &Session,
    requests: &[&'a Request],
    rows: &Rows,
    kept: &HashMap<IdempotencyKey, KeptKey>,
    answers: &mut [Option<Result<Answer, StoreError>>],
) -> Result<Vec<(usize, &'a Prepared)>, Undone> {
    let mut fitting = Vec::new();
    let mut doubted: Vec<(usize, &Prepared)> = Vec::new();
    let mut touched: HashSet<&RecordId> = HashSet::new();
    let mut used: HashMap<&IdempotencyKey, &KeptKey> = HashMap::new();
    let mut plugins: HashSet<&str> = HashSet::new();
    let states = requests.iter().flat_map(|request| match request {
        Request::Commit(prepared) => &prepared.commit.plugin_states[..],
        Request::Claim(_) | Request::Write(_) => &[],
    });
    let versions = plugin_state::versions(session, states).await?;
    for (place, request) in requests.iter().enumerate() {
        let Request::Commit(prepared) = *request else { continue };
        let keys = &prepared.commit.keys;
        let taken = |kept: &KeptKey| Some(Err(StoreError::KeyTaken(Box::new(kept.clone()))));
        if prepared.records().any(|id| touched.contains(id))
            || prepared.plugins().any(|plugin| plugins.contains(plugin))
        {
            answers[place] = Some(Err(StoreError::Conflict));
            continue;
        }
        if let Some(first) = keys.iter().find_map(|key| used.get(&key.key)) {
            answers[place] = taken(first);
            continue;
        }
        let stand: Vec<Option<AgendaRow>> =
            prepared.records().map(|id| rows.get(id).and_then(|held| held.row.clone())).collect();
        match fits(&prepared.commit.changes, &stand) {
            Err(Doubt::OtherHead) => doubted.push((place, prepared)),
            Err(Doubt::Fenced) => answers[place] = Some(Err(StoreError::Fenced)),
            Ok(()) if !plugin_state::fit(&prepared.commit.plugin_states, &versions) => {
                answers[place] = Some(Err(StoreError::Conflict));
            }
            Ok(()) => {
                if let Some(kept) = keys.iter().find_map(|key| kept.get(&key.key)) {
                    answers[place] = taken(kept);
                    continue;
                }
                touched.extend(prepared.records());
                plugins.extend(prepared.plugins());
                used.extend(keys.iter().map(|key| (&key.key, key)));
                fitting.push((place, prepared));
            }
        }
    }
    if !doubted.is_empty() {
        let known = known_facts(session, &doubted).await?;
        for (place, prepared) in doubted {
            let found = is_repeated(&prepared.commit.changes, |stream, version| {
                Ok::<_, std::convert::Infallible>(known.get(&(stream.as_str().to_owned(), version)).copied())
            });
            let repeated = found.unwrap_or_else(|never| match never {});
            answers[place] = Some(repeated.map(Answer::Committed).ok_or(StoreError::Conflict));
        }
    }
    Ok(fitting)
}

/// The facts that stand where those of these commits would stand: their ids and positions.
async fn known_facts(
    session: &Session,
    doubted: &[(usize, &Prepared)],
) -> Result<HashMap<(String, u64), ([u8; 16], u64)>, Undone> {
    let mut places = Columnar::<2>::new();
    for change in doubted.iter().flat_map(|(_, prepared)| &prepared.commit.changes) {
        for (version, _) in (change.expected.version + 1..).zip(&change.facts) {
            places.push([change.id.as_str().into(), signed(version).into()]);
        }
    }
    let statement = session.prepare(FACT_IDS).await?;
    let rows = session.rows(&statement, &places.parameters()).await?;
    let known =
        rows.iter().map(|row| Ok(((text(row, 0)?, unsigned(row, 1)?), (digest(row, 2)?, unsigned(row, 3)?))));
    Ok(known.collect::<Result<_, Unfit>>()?)
}
