//! I15 and I16: what an event starts and how a run goes on, fact by fact. Which step follows which is in `walks.rs`.

use std::collections::{BTreeMap, BTreeSet};

use domain::event::{Disposition, EventFact, NewEvent, Origin, Routed, Settlement, Settler};
use domain::job::{JobFact, JobState};
use domain::run::{NewRun, RunEnd, RunFact, StepEnd, VisitIndex};
use domain::{EventId, JobId, OwnerId, Record, RecordId, Timestamp};
use store::{Commit, Committed, StoreError};

use super::walks::{After, RULES, Seen, Walk};
use super::{Checker, Stream, Violation, broken, is_open, must};
use crate::counters::{Counters, Sometimes};
use crate::routed::WINDOW_SECONDS;

/// Who listens to an event of this type.
fn listeners(event: &NewEvent) -> Vec<&str> {
    match (&event.origin, event.kind.as_str()) {
        (Origin::Asked { pipeline, .. }, _) => vec![pipeline],
        (_, "tide.changed") => vec!["survey", "watch"],
        (_, "tide.high") => vec!["alarm"],
        (_, "job.expired") => vec!["inquest"],
        _ => Vec::new(),
    }
}

/// What the checker knows of events and runs.
#[derive(Default)]
pub(super) struct Routing {
    /// Whether there are pipelines.
    listens: bool,
    /// Events to which `watch` does not listen.
    low_tides: BTreeSet<EventId>,
    accepted_by: BTreeMap<EventId, usize>,
    /// The run that an event started in a pipeline.
    started: BTreeMap<(EventId, String), RecordId>,
    /// The newest run of a pipeline under a key.
    newest: BTreeMap<(String, String), RecordId>,
    walks: BTreeMap<RecordId, Walk>,
    /// Which step of which run a job is.
    steps: BTreeMap<RecordId, (RecordId, VisitIndex)>,
    /// The event that a job emitted as the how manieth.
    emitted: BTreeMap<(JobId, u32), EventId>,
    /// The event of the end of a job.
    ends: BTreeMap<JobId, EventId>,
    here: Here,
}

/// What the commit that is looked at says, to be held against itself when all of it is known.
#[derive(Default)]
struct Here {
    node: usize,
    by_worker: bool,
    /// Events that were published.
    published: BTreeSet<EventId>,
    /// Runs that an event says it started.
    said: BTreeSet<(EventId, String, RecordId)>,
    /// Runs that began.
    begun: BTreeSet<(EventId, String, RecordId)>,
    /// Steps that a run says it began.
    stepped: BTreeSet<(RecordId, VisitIndex, RecordId)>,
    /// Jobs that say that they are steps.
    made: BTreeSet<(RecordId, VisitIndex, RecordId)>,
    /// Steps that are over, and how their run says they ended.
    over: Vec<(RecordId, StepEnd)>,
    /// Runs that ended.
    ended: Vec<(RecordId, RunEnd)>,
    /// Jobs that expired and are no steps.
    expired: BTreeSet<JobId>,
    /// Jobs of whose end an event tells.
    told: BTreeSet<JobId>,
}

impl Routing {
    /// Another commit is looked at.
    pub(super) fn begin(&mut self, node: usize, actor: &str) {
        self.here = Here { node, by_worker: actor == "worker:route_events", ..Here::default() };
    }

    /// A record was retired.
    pub(super) fn forget(&mut self, id: &RecordId) {
        self.walks.remove(id);
        self.newest.retain(|_, run| run != id);
    }
}

impl Checker {
    /// There are pipelines in this run.
    pub fn listens(&mut self) {
        self.routing.listens = true;
    }

    /// The pipeline `watch` will not listen to this event.
    pub fn low_tide(&mut self, id: EventId) {
        self.routing.low_tides.insert(id);
    }

    /// Whether an owner has an event or a run in its hands that it took to route.
    pub fn holds_unrouted(&self, owner: &OwnerId) -> bool {
        self.streams.values().any(|stream| {
            let waits = stream.record.as_ref().is_some_and(|record| {
                record.as_event().is_some_and(|event| event.settled.is_none())
                    || record.as_run().is_some_and(|run| run.waiting().next().is_some())
            });
            waits && stream.held && stream.claim.as_ref().is_some_and(|claim| claim.owner == *owner)
        })
    }

    /// A commit that was refused because somebody had started the same run.
    pub(super) fn count_refused(
        &self,
        commit: &Commit,
        answer: &Result<Committed, StoreError>,
        counters: &mut Counters,
    ) {
        let is_there = |id: &RecordId| self.routing.walks.contains_key(id);
        let mut begun = commit.changes.iter().filter(|change| change.expected.version == 0);
        if *answer == Err(StoreError::Conflict) && begun.any(|change| is_there(&change.id)) {
            counters.saw(Sometimes::SameRunAtOnce);
        }
    }

    pub(super) fn event_fact(
        &mut self,
        id: &RecordId,
        stream: &Stream,
        fact: &EventFact,
        counters: &mut Counters,
    ) -> Result<(), Violation> {
        let RecordId::Event(event_id) = id else { return broken("I1", || format!("{id} is no event")) };
        match (fact, &stream.record) {
            (EventFact::Published(new), None) => self.published(event_id, new, counters),
            (EventFact::Settled(settlement), Some(Record::Event(event))) => {
                must(event.settled.is_none(), "I15", || format!("{id} is settled twice"))?;
                let claimants = event.said.settled_by == Settler::Claimants;
                must(claimants == settlement.processed.is_some(), "claimants", || {
                    format!("{id} is left to {:?}, and is settled by {settlement:?}", event.said.settled_by)
                })?;
                if claimants {
                    return Ok(());
                }
                if self.routing.accepted_by.get(event_id) != Some(&self.routing.here.node) {
                    counters.saw(Sometimes::EventRoutedElsewhere);
                }
                let waited = !self.routing.here.published.contains(event_id);
                if waited && matches!(event.said.origin, Origin::Emitted { .. }) {
                    counters.saw(Sometimes::EventWaited);
                }
                self.settled(event_id, &event.said, settlement, counters)
            }
            (EventFact::TimersMoved { .. } | EventFact::Retired, Some(_)) => Ok(()),
            _ => broken("I11", || format!("{id} is {:?}, and then {fact:?}", stream.record)),
        }
    }

    fn published(&mut self, id: &EventId, new: &NewEvent, counters: &mut Counters) -> Result<(), Violation> {
        self.routing.accepted_by.insert(id.clone(), self.routing.here.node);
        self.routing.here.published.insert(id.clone());
        let earlier = match &new.origin {
            Origin::Emitted { job_id, ordinal } => {
                counters.saw(Sometimes::EventEmitted);
                self.routing.emitted.insert((job_id.clone(), *ordinal), id.clone())
            }
            Origin::JobEnded { job_id } => {
                counters.saw(Sometimes::EndPublished);
                self.routing.here.told.insert(job_id.clone());
                self.routing.ends.insert(job_id.clone(), id.clone())
            }
            Origin::Published { .. } | Origin::Asked { .. } | Origin::Webhook { .. } => None,
        };
        must(earlier.is_none(), "I15", || format!("{id} is what {earlier:?} was: {:?}", new.origin))
    }

    /// Whoever listens has its word, and the word is true.
    fn settled(
        &mut self,
        id: &EventId,
        event: &NewEvent,
        settlement: &Settlement,
        counters: &mut Counters,
    ) -> Result<(), Violation> {
        let asked: Vec<&str> = settlement.routes.iter().map(|routed| routed.pipeline.as_str()).collect();
        must(asked == listeners(event), "I15", || format!("{id} was routed to {asked:?}: {event:?}"))?;
        for Routed { pipeline, disposition } in &settlement.routes {
            let by_name = matches!(event.origin, Origin::Asked { .. });
            let is_low = pipeline == "watch" && !by_name && self.routing.low_tides.contains(id);
            let fits = match disposition {
                Disposition::Started(run_id) => {
                    let run = RecordId::from(run_id.clone());
                    self.routing.here.said.insert((id.clone(), pipeline.clone(), run));
                    !is_low
                }
                Disposition::DuplicateOf(run_id) => {
                    counters.saw(Sometimes::DuplicateCollapsed);
                    let run = RecordId::from(run_id.clone());
                    let same = |walk: &Walk| walk.pipeline == *pipeline && walk.key == event.dedupe_key;
                    let known = self.routing.walks.get(&run).is_some_and(same);
                    let begins_here = self.routing.here.said.iter().any(|(_, _, said)| *said == run);
                    let is_there = known || begins_here || self.retired.contains(&run);
                    !is_low && event.dedupe_key.is_some() && is_there
                }
                Disposition::PredicateFalse => is_low,
                Disposition::OtherSource
                | Disposition::PredicateInvalid(_)
                | Disposition::DepthExceeded(_)
                | Disposition::Invalid(_) => false,
            };
            must(fits, "I15", || format!("{id} for {pipeline}: {disposition:?}, {event:?}"))?;
        }
        Ok(())
    }

    pub(super) fn run_fact(
        &mut self,
        id: &RecordId,
        fact: &RunFact,
        at: Timestamp,
        counters: &mut Counters,
    ) -> Result<(), Violation> {
        if let RunFact::Started(new) = fact {
            return self.begun(id, new, at);
        }
        let routing = &mut self.routing;
        let Some(walk) = routing.walks.get_mut(id) else {
            return broken("I16", || format!("{id} never began, and then {fact:?}"));
        };
        match fact {
            RunFact::StepStarted { visit, job_id } => {
                let job = RecordId::from(job_id.clone());
                must(walk.end.is_none() && !walk.is_cancelled, "I16", || {
                    format!("{id} is over or was stopped, and visit {visit} begins as {job}")
                })?;
                let earlier = walk.visits.get(visit).map(|seen| seen.job.clone());
                must(earlier.is_none(), "I16", || {
                    format!("visit {visit} of {id} began as {earlier:?} and again as {job}")
                })?;
                if *visit > 0 {
                    counters.saw(if routing.here.by_worker {
                        Sometimes::StepBegunByWorker
                    } else {
                        Sometimes::StepBegunWithReport
                    });
                }
                // Its name is the job's to say.
                let seen = Seen { name: String::new(), job: job.clone(), end: None };
                walk.visits.insert(*visit, seen);
                routing.here.stepped.insert((id.clone(), *visit, job.clone()));
                let earlier = routing.steps.insert(job.clone(), (id.clone(), *visit));
                must(earlier.is_none(), "I16", || format!("{job} is two steps"))
            }
            RunFact::StepEnded { visit, end } => {
                let Some(seen) = walk.visits.get_mut(visit) else {
                    return broken("I16", || format!("visit {visit} of {id} never began and ended {end:?}"));
                };
                must(seen.end.is_none(), "I16", || {
                    format!("{} ended as {:?} and again as {end:?}", seen.job, seen.end)
                })?;
                seen.end = Some(end.clone());
                routing.here.over.push((seen.job.clone(), end.clone()));
                Ok(())
            }
            RunFact::StepReopened { visit, .. } => {
                counters.saw(Sometimes::StepReopened);
                walk.reopen(id, *visit)
            }
            RunFact::CancelRequested { .. } => {
                walk.is_cancelled = true;
                Ok(())
            }
            RunFact::CancelContinued { .. } => {
                counters.saw(Sometimes::CancelContinued);
                must(walk.is_cancelled, "I16", || format!("nobody asked to stop {id}, and {fact:?}"))
            }
            RunFact::Ended(end) => {
                counters.saw(match end {
                    RunEnd::Completed => Sometimes::RunCompleted,
                    RunEnd::Failed => Sometimes::RunFailed,
                    RunEnd::Cancelled => Sometimes::RunCancelled,
                });
                must(walk.end.is_none(), "I16", || format!("{id} ended twice"))?;
                walk.end = Some((*end, at));
                routing.here.ended.push((id.clone(), *end));
                Ok(())
            }
            RunFact::Condemned { reason } => broken("I16", || format!("{id} was given up: {reason}")),
            RunFact::GroupEntered { .. } => broken("I16", || format!("{id} has no condition, and {fact:?}")),
            RunFact::Started(_) | RunFact::TimersMoved { .. } | RunFact::Retired => Ok(()),
        }
    }

    /// One run for an event in a pipeline, and one at a time under a key.
    fn begun(&mut self, id: &RecordId, new: &NewRun, at: Timestamp) -> Result<(), Violation> {
        let routing = &mut self.routing;
        let cause = (new.event_id.clone(), new.pipeline.clone());
        routing.here.begun.insert((new.event_id.clone(), new.pipeline.clone(), id.clone()));
        let earlier = routing.started.insert(cause, id.clone());
        must(earlier.is_none(), "I15", || {
            format!("{} started {earlier:?} and then {id} in {}", new.event_id, new.pipeline)
        })?;
        if let Some(key) = &new.dedupe_key {
            let earlier = routing.newest.insert((new.pipeline.clone(), key.clone()), id.clone());
            let stands =
                earlier.as_ref().and_then(|earlier| routing.walks.get(earlier)).is_some_and(|earlier| {
                    match earlier.end {
                        // Whoever tries a run again that stood for nothing any more may have two of them.
                        _ if earlier.was_reopened => false,
                        None => true,
                        Some((RunEnd::Completed, ended_at)) => ended_at.plus_seconds(WINDOW_SECONDS) > at,
                        Some((RunEnd::Failed | RunEnd::Cancelled, _)) => false,
                    }
                });
            must(!stands, "I15", || {
                format!("{id} began under {key} in {}, which {earlier:?} stands for", new.pipeline)
            })?;
        }
        let (pipeline, key) = (new.pipeline.clone(), new.dedupe_key.clone());
        let visits = BTreeMap::new();
        let walk = Walk { pipeline, key, visits, is_cancelled: false, was_reopened: false, end: None };
        let earlier = routing.walks.insert(id.clone(), walk);
        must(earlier.is_none(), "I15", || format!("{id} began twice"))
    }

    /// What a job says of itself that its run must know.
    pub(super) fn step_fact(&mut self, id: &RecordId, stream: &Stream, fact: &JobFact) {
        let RecordId::Job(job_id) = id else { return };
        if let JobFact::Created(new) = fact
            && let Some(step) = &new.spec.step
        {
            let run = RecordId::from(step.run_id.clone());
            self.routing.here.made.insert((run, step.visit, id.clone()));
        }
        let is_step = matches!(&stream.record, Some(Record::Job(job)) if job.spec.step.is_some());
        if matches!(fact, JobFact::Expired(_)) && !is_step {
            self.routing.here.expired.insert(job_id.clone());
        }
    }

    /// A whole commit: what its records say of each other is the same.
    pub(super) fn routed(&mut self, commit: &Commit, counters: &mut Counters) -> Result<(), Violation> {
        let here = std::mem::take(&mut self.routing.here);
        must(here.said == here.begun, "I15", || {
            format!("events say that they started {:?}, and {:?} began", here.said, here.begun)
        })?;
        must(here.stepped == here.made, "I16", || {
            format!("runs began the steps {:?}, and {:?} were made", here.stepped, here.made)
        })?;
        must(!self.routing.listens || here.expired == here.told, "I15", || {
            format!("{:?} expired, and events tell of {:?}", here.expired, here.told)
        })?;
        for (run, visit, job) in &here.made {
            self.begins_in_turn(run, *visit, job, counters)?;
        }
        for (job, end) in &here.over {
            self.ended_so(job, end)?;
        }
        for (run, end) in &here.ended {
            self.ends_as_its_steps(run, *end)?;
        }
        commit.changes.iter().try_for_each(|change| self.is_told(&change.id))?;
        commit.changes.iter().try_for_each(|change| self.cancel_has_reached(&change.id))
    }

    /// Every job that a run says it has asked to stop knows it.
    fn cancel_has_reached(&self, id: &RecordId) -> Result<(), Violation> {
        let Some(Record::Run(run)) = self.record(id) else { return Ok(()) };
        let Some(cancel) = &run.cancel else { return Ok(()) };
        let asked = run.open_jobs().filter(|(at, _)| cancel.next.is_none_or(|next| *at < next));
        for (_, job_id) in asked {
            let job = self.record(&job_id.clone().into()).and_then(Record::as_job);
            must(job.is_none_or(|job| job.cancel.is_some()), "I16", || {
                format!("{id} was stopped, and {job_id} was not asked to")
            })?;
        }
        Ok(())
    }

    /// A step begins when what it waits for is over, and no more often than that.
    fn begins_in_turn(
        &mut self,
        run: &RecordId,
        visit: VisitIndex,
        job: &RecordId,
        counters: &mut Counters,
    ) -> Result<(), Violation> {
        let step = self.record(job).and_then(Record::as_job).and_then(|job| job.spec.step.as_ref());
        let name = step.map(|step| step.step.clone());
        let Some(walk) = self.routing.walks.get_mut(run) else {
            return broken("I16", || format!("{job} is a step of {run}, which is not there"));
        };
        if let (Some(seen), Some(name)) = (walk.visits.get_mut(&visit), name.clone()) {
            seen.name = name;
        }
        let name = name.unwrap_or_default();
        let Some(rule) = walk.rule(&name) else {
            return broken("I16", || format!("{run} has no step {name}"));
        };
        if let After::Failed(_) = rule.after {
            counters.saw(Sometimes::FailureMended);
        }
        let (began, may) = (walk.count(&name), walk.may_begin(rule));
        must(began <= may, "I16", || {
            format!("{name} of {run} began {began} times, what came before it allows {may}")
        })
    }

    /// A step ended as its job did.
    fn ended_so(&self, job: &RecordId, end: &StepEnd) -> Result<(), Violation> {
        let Some(Record::Job(record)) = self.record(job) else { return Ok(()) };
        let fits = match (&record.state, end) {
            (JobState::Completed, StepEnd::Completed { emitted, .. }) => {
                let RecordId::Job(id) = job else { return Ok(()) };
                let known = self.routing.emitted.range((id.clone(), 0)..=(id.clone(), u32::MAX)).count();
                usize::try_from(*emitted) == Ok(known)
            }
            (JobState::Failed | JobState::Expired | JobState::Unavailable { .. }, StepEnd::Failed { .. })
            | (JobState::Cancelled, StepEnd::Cancelled) => true,
            _ => false,
        };
        must(fits, "I16", || format!("{job} is {:?}, and its run says {end:?}", record.state))
    }

    /// A run ends when all its steps are over, and as they are.
    fn ends_as_its_steps(&self, run: &RecordId, end: RunEnd) -> Result<(), Violation> {
        let Some(walk) = self.routing.walks.get(run) else { return Ok(()) };
        let open = walk.visits.values().find(|seen| self.record(&seen.job).is_some_and(is_open));
        must(open.is_none(), "I16", || {
            format!("{run} is over, and its job {:?} is not", open.map(|seen| &seen.job))
        })?;
        let expected = walk.expected_end();
        must(end == expected, "I16", || format!("{run} ended {end:?}, its steps say {expected:?}"))?;
        let undone = RULES
            .iter()
            .filter(|rule| rule.pipeline == walk.pipeline && end == RunEnd::Completed)
            .find(|rule| walk.count(rule.step) != walk.may_begin(rule));
        must(undone.is_none(), "I16", || {
            let step = undone.map_or("", |rule| rule.step);
            format!("{run} is done, and {step} began {} times", walk.count(step))
        })
    }

    /// A job that is over is known to be over to its run.
    fn is_told(&self, id: &RecordId) -> Result<(), Violation> {
        let Some((run, visit)) = self.routing.steps.get(id) else { return Ok(()) };
        let (Some(walk), Some(job)) = (self.routing.walks.get(run), self.record(id)) else { return Ok(()) };
        let knows = walk.visits.get(visit).is_some_and(|seen| seen.end.is_some());
        must(knows != is_open(job), "I16", || {
            format!("{id} is open: {}, and {run} says otherwise", is_open(job))
        })
    }
}
