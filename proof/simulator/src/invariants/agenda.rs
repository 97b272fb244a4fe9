//! After a commit: the view is the fold, the agenda says what the fold asks for, and what is retired is gone.

use domain::attention::Holding;
use domain::{Claim, RecordId, Timestamp};
use store::{Change, FactId, Tables};

use super::{Checker, Violation, broken, is_open, must};

impl Checker {
    /// The view is the fold, and the agenda says what the fold asks for.
    pub(super) fn view_and_agenda(
        &mut self,
        tables: &Tables,
        id: &RecordId,
        at: Timestamp,
        repeated: bool,
    ) -> Result<(), Violation> {
        let (Some(view), Some(row)) = (tables.views.get(id), tables.agenda.get(id)) else {
            return broken("I1", || format!("{id} has no view or no agenda row"));
        };
        let Some(stream) = self.streams.get_mut(id) else {
            return broken("I1", || format!("{id} has a view and no facts"));
        };
        let Some(record) = &stream.record else { return Ok(()) };
        must(**view == *record, "I1", || format!("the view of {id} is {view:?}, its facts say {record:?}"))?;
        must(row.head.version == stream.version, "I1", || format!("the agenda of {id} has another version"))?;
        if !repeated {
            let entry = record.schedule(self.retention).entry(at);
            let right = match entry.holding {
                Holding::Claimable if row.held => {
                    let holder = row.claim.as_ref().filter(|claim| claim.is_live(at));
                    holder.is_some_and(|claim| claim.owner.outside_name().is_some()) && !row.ready
                }
                Holding::Free | Holding::Claimable => {
                    !row.held
                        && !row.claim.as_ref().is_some_and(|claim| claim.is_live(at))
                        && (row.due_at, row.ready) == (entry.due_at, entry.ready)
                        && row.place == entry.place
                }
                Holding::LeaseBound => {
                    let limit = entry.limit_at.filter(|limit| *limit > at);
                    let in_time = row.due_at.is_some_and(|due_at| limit.is_none_or(|limit| due_at <= limit));
                    in_time && !row.ready
                }
            };
            must(right && row.limit_at == entry.limit_at, "agenda", || {
                format!("the agenda of {id} is {row:?}, its state asks for {entry:?}")
            })?;
        }
        let version = |claim: &Option<Claim>| claim.as_ref().map(|claim| claim.claim_version);
        must(version(&row.claim) == version(&stream.claim), "I6", || {
            format!("a commit on {id} changed its claim from {:?} to {:?}", stream.claim, row.claim)
        })?;
        stream.copy_row(row);
        Ok(())
    }

    /// A record that was kept long enough is gone, with everything that belongs to it but keys that must live longer.
    pub(super) fn retired(
        &mut self,
        tables: &Tables,
        change: &Change,
        at: Timestamp,
    ) -> Result<Option<FactId>, Violation> {
        let id = &change.id;
        let left = tables.views.contains_key(id)
            || tables.agenda.contains_key(id)
            || tables.streams.contains_key(id)
            || tables.keys.values().any(|kept| kept.record == *id && kept.keep_until <= at)
            || tables.bodies.keys().any(|(record, ..)| record == id);
        must(!left, "retired", || format!("something is left of {id}"))?;
        let was = self.streams.remove(id).and_then(|stream| stream.record);
        let kept_until =
            was.and_then(|was| if is_open(&was) { None } else { was.schedule(self.retention).due_at });
        must(kept_until.is_some_and(|until| until <= at), "retired", || {
            format!("{id} went before its time")
        })?;
        self.retired.insert(id.clone());
        self.routing.forget(id);
        let lost = self.keys.iter().find(|(key, (record, keep_until))| {
            record == id && *keep_until > at && !tables.keys.contains_key(key)
        });
        must(lost.is_none(), "I5", || format!("{lost:?} went with its record and was to be kept"))?;
        self.keys.retain(|_, (record, _)| record != id);
        self.acknowledged.retain(|_, acknowledged| acknowledged.record != *id);
        // From here on "there is no such record" is the truth, also for whoever retired it.
        Ok(None)
    }
}
