//! Lists of jobs in the model: the same pages as in a database.

use std::collections::BTreeSet;

use domain::{JobId, Record, RecordId};

use super::Tables;
use crate::limits::MAX_PAGE;
use crate::{Cursor, JobQuery, Leading, Page, PageWalk};

impl Tables {
    pub(super) fn jobs(&self, query: &JobQuery) -> Page {
        let mut examined: Vec<(Cursor, bool)> = Vec::new();
        for record in self.views.values() {
            let Record::Job(job) = record.as_ref() else { continue };
            let fits = query.filter.fits(job);
            let is_led = match query.filter.leading() {
                Leading::Session(id) => job.spec.session_id.as_deref() == Some(id),
                Leading::Owner(id) => job.owner_peer() == Some(id),
                Leading::Creator(id) => job.spec.created_by_peer_id.as_deref() == Some(id),
                Leading::Circle(circle) => job.spec.circle.as_deref() == Some(circle),
                // Every job of the state is looked at for its tags.
                Leading::States => query.filter.state.is_none_or(|state| state == job.state.name()),
            };
            let cursor = Cursor::of(job);
            if is_led && query.after.as_ref().is_none_or(|after| cursor < *after) {
                examined.push((cursor, fits));
            }
        }
        examined.sort_by(|(a, _), (b, _)| b.cmp(a));
        let mut walk = PageWalk::new(query.limit);
        for (cursor, fits) in examined {
            if !walk.look_at(cursor.clone(), fits.then_some(cursor)) {
                break;
            }
        }
        let (found, next) = walk.finish();
        let jobs = found.into_iter().map(|cursor| self.views[&RecordId::Job(cursor.id)].clone()).collect();
        Page { jobs, next }
    }

    pub(super) fn jobs_known_as(&self, external_job_id: &str, query: &JobQuery) -> Page {
        let known = self.operations().map(|(operation, _)| operation);
        let ids: BTreeSet<&JobId> = known
            .filter(|operation| operation.external_job_id.as_deref() == Some(external_job_id))
            .map(|operation| &operation.link.job_id)
            .collect();
        let mut found = Vec::new();
        for record in self.views.values() {
            let Record::Job(job) = record.as_ref() else { continue };
            let of_circle = query.filter.circle.is_none() || query.filter.circle == job.spec.circle;
            let cursor = Cursor::of(job);
            let follows = query.after.as_ref().is_none_or(|after| cursor < *after);
            if ids.contains(&job.id) && of_circle && follows {
                found.push((cursor, record.clone()));
            }
        }
        found.sort_by(|(a, _), (b, _)| b.cmp(a));
        // One more, to know whether there is another page.
        let found = found.into_iter().take(query.limit.min(MAX_PAGE) + 1).map(|(_, record)| record);
        Page::of_sorted(found.collect(), query)
    }
}
