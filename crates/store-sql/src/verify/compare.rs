//! One record compared: what its facts give, and what is stored of it.

use std::collections::BTreeSet;

use domain::attention::{Attention, Holding, Retention};
use domain::timeline::Steps;
use domain::{Record, Summary, Timestamp};
use store::{AgendaRow, JobColumns, OperationColumns, encode_view, seal_view};

use super::pages::{StoredAgenda, StoredView};
use crate::database::Value;
use crate::walk::Stream;

/// The names and digests of the bodies of one record.
pub(super) type Bodies = BTreeSet<(String, [u8; 32])>;

/// Says what is not as the facts say.
pub(super) type Tell<'a> = &'a mut dyn FnMut(String);

pub(super) fn view(stream: &Stream, record: &Record, found: &StoredView, differs: Tell<'_>) {
    let columns = columns(record);
    if found.columns != columns {
        differs(format!("its columns are {:?}, the facts give {columns:?}", found.columns));
    }
    let folded = seal_view(&stream.id, stream.head, encode_view(record));
    if found.view != folded {
        differs(format!("its view is {}, the facts give {folded}", found.view));
    }
}

fn columns(record: &Record) -> Vec<Value> {
    let text = |text: Option<&str>| text.map_or(Value::Null, |text| Value::Text(text.to_owned()));
    if let Some(job) = record.as_job() {
        let columns = JobColumns::from(job);
        return vec![
            text(Some(columns.state.as_str())),
            Value::Integer(columns.updated_at.micros()),
            text(columns.owner_peer_id),
            text(columns.created_by_peer_id),
            text(columns.session_id),
            text(columns.circle),
        ];
    }
    if let Some(operation) = record.as_operation() {
        let columns = OperationColumns::from(operation);
        return vec![
            text(Some(columns.job_id)),
            text(Some(columns.status.as_str())),
            Value::Integer(columns.updated_at.micros()),
            columns.orphaned_at.map(Timestamp::micros).map_or(Value::Null, Value::Integer),
        ];
    }
    let Summary { status, name, circle, key, began_at, updated_at } = record.summary();
    vec![
        text(Some(record.kind().as_str())),
        text(Some(status)),
        text(Some(name)),
        text(circle),
        text(key),
        Value::Integer(began_at.micros()),
        Value::Integer(updated_at.micros()),
    ]
}

/// The bodies that the state names, newest of each name. A purge takes the names away too.
pub(super) fn bodies(record: &Record, found: &Bodies, differs: Tell<'_>) {
    for body in record.named_bodies() {
        if !found.contains(&(body.name.as_str().to_owned(), body.sha256.0)) {
            differs(format!("its {} is missing", body.name.as_str()));
        }
    }
}

pub(super) fn agenda(
    stream: &Stream,
    record: &Record,
    found: &StoredAgenda,
    steps: &Steps,
    differs: Tell<'_>,
) {
    let row = &found.row;
    if found.kind != stream.id.kind().as_str() {
        differs(format!("its agenda row is of the kind {:?}", found.kind));
    }
    if row.head != stream.head {
        differs(format!("its agenda stands at {:?}, the facts at {:?}", row.head, stream.head));
    }
    let asked = record.schedule(Retention::DEFAULT);
    if row.place != asked.place {
        differs(format!("it queues at {:?}, the facts say {:?}", row.place, asked.place));
    }
    if row.ready && row.place.is_none() {
        differs("it is ready and queues nowhere".to_owned());
    }
    // How long ended records are kept is a setting, not a fact.
    if !record.is_over() && row.limit_at != asked.limit_at && !is_moved(row.limit_at, asked.limit_at, steps) {
        differs(format!("its limit is {:?}, the facts say {:?}", row.limit_at, asked.limit_at));
    }
    due(record, &asked, row, differs);
}

/// Whether a limit has moved with the lease over the last steps of the clock (`AgendaRow::move_lease`): it stays so until the record is
/// written again.
fn is_moved(limit: Option<Timestamp>, asked: Option<Timestamp>, steps: &Steps) -> bool {
    let (Some(limit), Some(asked)) = (limit, asked) else { return false };
    let steps = steps.as_slice();
    (0..steps.len()).any(|first| {
        let moved = steps[first..]
            .iter()
            .fold(asked, |at, step| if at > step.from { at.plus_micros(step.by_micros()) } else { at });
        moved == limit
    })
}

fn due(record: &Record, asked: &Attention, row: &AgendaRow, differs: Tell<'_>) {
    let queued_until = asked.queues_until().filter(|_| !row.ready);
    let own = [asked.due_at, queued_until].into_iter().flatten().min();
    let Some(due_at) = row.due_at else {
        if row.held || asked.holding == Holding::LeaseBound || own.is_some() {
            differs("nothing would ever bring it back".to_owned());
        }
        return;
    };
    // A held record is due when its lease ends, and leases are not in the facts.
    if row.held || record.is_over() {
        return;
    }
    let explained = match (asked.holding, &row.claim) {
        (Holding::Free | Holding::Claimable, _) if own == Some(due_at) => true,
        (_, None) => false,
        (Holding::Free | Holding::Claimable, Some(_)) if row.ready => false,
        // Handed back: when the lease ended, or later if the lease had run out. A lease that ended with the last change or
        // before was ended by that change.
        (Holding::Free | Holding::Claimable, Some(claim)) => {
            let ended_at = claim.lease_expires_at;
            due_at == ended_at || (ended_at > record.updated_at() && due_at > ended_at)
        }
        (Holding::LeaseBound, Some(claim)) => due_at >= claim.lease_expires_at,
    };
    if !explained {
        differs(format!("it is due at {due_at:?}, the facts say {own:?}"));
    }
}
