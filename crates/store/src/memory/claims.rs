//! Claims of the model: who takes what. The rules are the row's own.

use domain::job::anywhere;
use domain::planted::{Bug, planted};
use domain::{RecordId, RecordKind};

use super::Tables;
use crate::commit::limits::MAX_PAGE;
use crate::{AgendaRow, ClaimOutcome, ClaimRequest, StoreError, Take, Taken};

impl Tables {
    pub(super) fn claim(&mut self, request: &ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        match request {
            ClaimRequest::TakeDue { kind, take } => Ok(ClaimOutcome::Taken(self.take_due(*kind, take))),
            ClaimRequest::TakeReady { lane, limit, take } => {
                Ok(ClaimOutcome::Taken(self.take_ready(lane, *limit, take)))
            }
            ClaimRequest::Take { id, take } => {
                let now = self.carried(take.now);
                let row = self.row(id)?;
                let heard_at = row.heard_at();
                let claim = row.take(&take.owner, now, take.lease)?;
                Ok(ClaimOutcome::Taken(vec![Taken { id: id.clone(), claim, heard_at }]))
            }
            ClaimRequest::Renew { id, fence, now, lease } => {
                let now = self.carried(*now);
                let claim = self.row(id)?.renew(fence, now, *lease)?;
                Ok(ClaimOutcome::Taken(vec![Taken::of(id.clone(), claim)]))
            }
            ClaimRequest::HandBack { id, fence, now, due_at } => {
                let (now, due_at) = self.carried_together(*now, *due_at);
                self.row(id)?.hand_back(fence, now, due_at)?;
                Ok(ClaimOutcome::Released)
            }
            ClaimRequest::EndLeases { owners, now } => {
                for row in self.agenda.values_mut() {
                    if row.claim.as_ref().is_some_and(|claim| claim.owner.as_str().starts_with(owners)) {
                        row.end_lease(*now);
                    }
                }
                Ok(ClaimOutcome::Released)
            }
        }
    }

    fn row(&mut self, id: &RecordId) -> Result<&mut AgendaRow, StoreError> {
        self.agenda.get_mut(id).ok_or(StoreError::UnknownRecord)
    }

    fn take_due(&mut self, kind: RecordKind, take: &Take) -> Vec<Taken> {
        let now = self.carried(take.now);
        let mut due: Vec<_> = self.due(kind).filter(|(due_at, _)| *due_at <= now).collect();
        due.sort();
        due.truncate(take.limit.min(MAX_PAGE));
        let ids: Vec<RecordId> = due.into_iter().map(|(_, id)| id.clone()).collect();
        self.take(ids, take)
    }

    fn take_ready(&mut self, lane: &str, limit: Option<usize>, take: &Take) -> Vec<Taken> {
        let usual = anywhere(lane);
        let counts =
            |row: &&AgendaRow| row.place.as_ref().is_some_and(|place| anywhere(&place.lane) == usual);
        let held = self.agenda.values().filter(counts).filter(|row| row.held).count();
        let free = limit.map_or(usize::MAX, |limit| limit.saturating_sub(held));
        let mut waiting: Vec<_> = self
            .agenda
            .iter()
            .filter(|(_, row)| row.ready)
            .filter_map(|(id, row)| row.place.as_ref().map(|place| (place, id)))
            .filter(|(place, _)| &*place.lane == lane)
            .map(|(place, id)| ((-place.priority, place.sequence), id.clone()))
            .collect();
        waiting.sort();
        if planted(Bug::YoungestFirst) {
            waiting.reverse();
        }
        waiting.truncate(take.limit.min(MAX_PAGE).min(free));
        self.take(waiting.into_iter().map(|(_, id)| id), take)
    }

    fn take(&mut self, ids: impl IntoIterator<Item = RecordId>, take: &Take) -> Vec<Taken> {
        let mut taken = Vec::new();
        let now = self.carried(take.now);
        for id in ids {
            let Some(row) = self.agenda.get_mut(&id) else { continue };
            // A record that someone else holds is skipped, never waited for.
            let heard_at = row.heard_at();
            if let Ok(claim) = row.take(take.owner_after(taken.len()), now, take.lease) {
                taken.push(Taken { id, claim, heard_at });
            }
        }
        taken
    }
}
