//! Reads of the model: one arm each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::job::JobStateName;
use domain::planted::{Bug, planted};
use domain::{BodyRef, JobId, Record, RecordId};

use super::Tables;
use crate::commit::limits::MAX_PAGE;
use crate::{
    BodyDamage, Loaded, OpenJobs, OrphanCursor, ReadAnswer, ReadRequest, StoreError, StoredFact, check_body,
};

impl Tables {
    pub(super) fn answer(&self, request: &ReadRequest) -> Result<ReadAnswer, StoreError> {
        Ok(match request {
            ReadRequest::Load { id } => ReadAnswer::Load(self.load(id)),
            ReadRequest::Body { id, body } => ReadAnswer::Body(self.body(id, *body)?),
            ReadRequest::Key { key } => ReadAnswer::Key(self.keys.get(key).cloned()),
            ReadRequest::Jobs { query } => ReadAnswer::Jobs(self.jobs(query)),
            ReadRequest::JobCounts {} => ReadAnswer::JobCounts(self.job_counts()),
            ReadRequest::OpenJobs { executor } => ReadAnswer::OpenJobs(self.open_jobs(executor)),
            ReadRequest::OperationsOf { job, limit } => {
                ReadAnswer::OperationsOf(self.operations_of(job, *limit))
            }
            ReadRequest::JobsKnownAs { external_job_id, query } => {
                ReadAnswer::JobsKnownAs(self.jobs_known_as(external_job_id, query))
            }
            ReadRequest::Orphans { after, limit } => {
                ReadAnswer::Orphans(self.orphans(after.as_ref(), *limit))
            }
            ReadRequest::OrphanCount {} => {
                let orphans = self.operations().filter(|(operation, _)| operation.orphan().is_some());
                ReadAnswer::OrphanCount(orphans.count() as u64)
            }
            ReadRequest::Records { query } => ReadAnswer::Records(self.records(query)),
            ReadRequest::NewestRecord { kind, name, key } => {
                ReadAnswer::NewestRecord(self.newest_record(*kind, name, key))
            }
            ReadRequest::FactsOf { id, after_version, limit } => {
                ReadAnswer::FactsOf(self.facts_of(id, *after_version, *limit))
            }
            ReadRequest::FactsAfter { position, limit } => {
                let after = self.facts.range(position.saturating_add(1)..);
                let page = after.take((*limit).min(MAX_PAGE)).map(|(_, fact)| fact.clone());
                ReadAnswer::FactsAfter(page.collect())
            }
            ReadRequest::ReadyLanes {} => ReadAnswer::ReadyLanes(self.ready_lanes()),
            ReadRequest::EarliestDue { kind } => {
                ReadAnswer::EarliestDue(self.due(*kind).map(|(due_at, _)| due_at).min())
            }
            ReadRequest::DueBetween { kind, after, until, limit } => {
                ReadAnswer::DueBetween(self.due_between(*kind, after, *until, *limit))
            }
            ReadRequest::Token { sha256 } => ReadAnswer::Token(self.token(sha256)),
            ReadRequest::Tokens {} => ReadAnswer::Tokens(self.tokens.clone()),
            ReadRequest::Nodes {} => ReadAnswer::Nodes(self.nodes()),
            ReadRequest::Peer { key } => ReadAnswer::Peer(self.peers.get(key).cloned()),
            ReadRequest::Peers { query } => ReadAnswer::Peers(self.peers(query)),
            ReadRequest::Ask { id } => ReadAnswer::Ask(self.asks.get(id).map(|kept| kept.ask.clone())),
            ReadRequest::Asks { query } => ReadAnswer::Asks(self.asks(query)),
            ReadRequest::PluginState { plugin } => {
                ReadAnswer::PluginState(self.plugins.get(plugin).map(|kept| kept.state.clone()))
            }
            ReadRequest::PluginFacts { plugin, after, limit } => {
                ReadAnswer::PluginFacts(self.plugin_facts(plugin, *after, *limit))
            }
            ReadRequest::Clock {} => ReadAnswer::Clock(self.clock.clone()),
            ReadRequest::Sights {} => ReadAnswer::Sights(Vec::new()),
        })
    }

    fn load(&self, id: &RecordId) -> Option<Loaded> {
        self.views.get(id).zip(self.agenda.get(id)).map(|(record, row)| Loaded {
            record: record.clone(),
            head: row.head,
            claim: row.claim.clone(),
        })
    }

    fn body(&self, id: &RecordId, body: BodyRef) -> Result<Option<Vec<u8>>, StoreError> {
        let place = (id.clone(), body.name.as_str(), body.sha256);
        let bytes = self.bodies.get(&place).map(|bytes| bytes.to_vec());
        let stored = self.views.get(id).is_some_and(|record| record.stores_body(body));
        match bytes {
            Some(bytes) if planted(Bug::BodyNotChecked) => Ok(Some(bytes)),
            Some(bytes) => check_body(id, body, bytes).map(Some),
            None if stored => Err(BodyDamage::missing(id, body)),
            None => Ok(None),
        }
    }

    fn job_counts(&self) -> Vec<(JobStateName, u64)> {
        let mut counts = BTreeMap::new();
        for record in self.views.values() {
            if let Record::Job(job) = record.as_ref() {
                *counts.entry(job.state.name()).or_insert(0) += 1;
            }
        }
        counts.into_iter().collect()
    }

    fn open_jobs(&self, executor: &str) -> OpenJobs {
        let mut open = OpenJobs::default();
        for record in self.views.values() {
            let Record::Job(job) = record.as_ref() else { continue };
            let Some(named) = job.spec.executor.as_deref().filter(|_| !job.state.name().is_terminal()) else {
                continue;
            };
            open.total += 1;
            open.of_executor += u64::from(named == executor);
        }
        open
    }

    fn operations_of(&self, job: &JobId, limit: usize) -> Vec<Arc<Record>> {
        let mut of_job: Vec<_> =
            self.operations().filter(|(operation, _)| operation.link.job_id == *job).collect();
        of_job.sort_by_key(|(operation, _)| std::cmp::Reverse((operation.updated_at, &operation.id)));
        of_job.into_iter().take(limit.min(MAX_PAGE)).map(|(_, record)| record.clone()).collect()
    }

    fn orphans(&self, after: Option<&OrphanCursor>, limit: usize) -> Vec<Arc<Record>> {
        let mut orphans: Vec<_> = self
            .operations()
            .filter_map(|(operation, record)| Some((OrphanCursor::of(operation)?, record.clone())))
            .filter(|(cursor, _)| after.is_none_or(|after| cursor > after))
            .collect();
        orphans.sort_by(|(a, _), (b, _)| a.cmp(b));
        orphans.truncate(limit.min(MAX_PAGE));
        orphans.into_iter().map(|(_, record)| record).collect()
    }

    fn facts_of(&self, id: &RecordId, after_version: u64, limit: usize) -> Vec<StoredFact> {
        let positions = self.streams.get(id).into_iter().flatten();
        positions
            .filter(|(version, _)| **version > after_version)
            .take(limit.min(MAX_PAGE))
            .map(|(_, position)| self.facts[position].clone())
            .collect()
    }

    fn ready_lanes(&self) -> Vec<Arc<str>> {
        let ready = self.agenda.values().filter(|row| row.ready);
        let lanes: BTreeSet<_> = ready.filter_map(|row| Some(row.place.as_ref()?.lane.clone())).collect();
        lanes.into_iter().collect()
    }
}
