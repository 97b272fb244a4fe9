//! One attempt from the taking to its report: dispatch, work, renewals and progress meanwhile, and the end in one commit.
//!
//! Whoever loses the lease stops and writes nothing: the fence in every commit makes sure of it. Whoever cannot renew it stops before
//! it ends: see `tenure.rs`.

use std::sync::Arc;

use domain::job::{
    CancelRecipient, CancelTry, Details, Job, JobCommand, JobState, JobStateName, Release, Report, Reporter,
    Retryable, Trigger,
};
use domain::{AttemptId, BodyName, Command, Fence, Record, RecordId, Refusal, Timestamp};
use store::{StoreError, Taken};
use tokio::sync::{mpsc, oneshot, watch};

use super::asked::Origin;
use super::tenure::Tenure;
use super::work::Worked;
use super::{Attempts, replace};
use crate::kept::storable;
use crate::link::{Asked, AttemptControl};
use crate::pulls::BODY_DAMAGED;
use crate::{
    Admission, Assignment, EngineError, Failure, Intended, Link, Order, Produced, Progress, Stop,
    sleep_through,
};

/// Words of progress that may wait; more are dropped.
pub(super) const PROGRESS_WAITING: usize = 64;
/// Progress is written down at most this often.
const PROGRESS_EVERY_SECONDS: u64 = 1;
/// How long work may take to stop when its time is over.
const STOPS_WITHIN_SECONDS: u64 = 30;
/// How long a job whose executor is left alone is put off at most before it is looked at again: a reset must not wait for long.
const PUT_OFF_SECONDS: u64 = 60;
/// Work that takes longer than this is shown as running.
const SHOWN_AS_RUNNING_AFTER_SECONDS: u64 = 1;

pub(super) struct Attempt {
    pub(super) attempts: Arc<Attempts>,
    pub(super) id: RecordId,
    pub(super) fence: Fence,
    pub(super) renew_at: Timestamp,
    link: Link,
    told: mpsc::Receiver<Progress>,
    intents: mpsc::Receiver<Asked>,
    /// What this attempt is about to ask of a service, or has asked.
    pub(super) intended: Option<Intended>,
    pub(super) stopper: watch::Sender<Stop>,
    /// Whether whoever does the work was sent a cancel.
    cancel_sent: watch::Receiver<Option<CancelRecipient>>,
    /// Whether the record says so.
    cancel_recorded: bool,
    /// What was seen to become of its executor. One that has begun nothing is as good as ended.
    pub(super) release: Option<Release>,
    pub(super) tenure: Arc<Tenure>,
    /// Kept to the end of the attempt.
    admission: Admission,
}

/// How an attempt begins.
enum Beginning {
    Begun(Arc<Job>, AttemptId),
    /// Not at all: its executor is left alone until then.
    LeftAlone(Timestamp),
}

impl Attempt {
    pub(super) fn new(attempts: Arc<Attempts>, taken: Taken, link: Link, far_end: AttemptControl) -> Self {
        let renew_at = attempts.lease.renew_at(taken.claim.heartbeat_at);
        let AttemptControl { told, intents, stopper, cancel_sent } = far_end;
        let tenure = Tenure::until(attempts.stops_at(taken.claim.heartbeat_at));
        let (fence, id) = (taken.claim.fence(), taken.id);
        let admission = Admission::default();
        Self {
            attempts,
            id,
            fence,
            renew_at,
            link,
            told,
            intents,
            intended: None,
            stopper,
            cancel_sent,
            cancel_recorded: false,
            release: Some(Release::Ended),
            tenure,
            admission,
        }
    }

    /// Runs it to its end. Nothing is left to the caller.
    pub(super) async fn run(mut self, origin: Origin) {
        let (tenure, timer) = (self.tenure.clone(), self.attempts.timer.clone());
        let (stopper, id) = (self.stopper.clone(), self.id.clone());
        tokio::select! {
            biased;
            // Whatever it waits for: a store that does not answer must not keep it from stopping.
            () = tenure.over(&*timer) => {
                tracing::warn!(record = %id, "lease not renewed in time: the attempt is stopped before it ends");
                stopper.send_if_modified(|stop| replace(stop, Stop::LeaseLost));
                tenure.end_work(&*timer).await;
            }
            () = self.run_within_its_lease(origin) => {}
        }
    }

    async fn run_within_its_lease(&mut self, origin: Origin) {
        if let Err(error) = self.carry_out(origin).await {
            // Mostly someone was faster: the record says what happened, and its next owner goes on from there.
            tracing::info!(record = %self.id, code = error.code(), "attempt not carried out: {error}");
            self.hand_back().await;
        }
    }

    async fn carry_out(&mut self, origin: Origin) -> Result<(), EngineError> {
        let (job, attempt_id) = match self.begin(origin).await? {
            Beginning::Begun(job, attempt_id) => (job, attempt_id),
            Beginning::LeftAlone(until) => {
                let soon = self.attempts.timer.now().plus_seconds(PUT_OFF_SECONDS);
                self.hand_back_until(until.min(soon)).await;
                return Ok(());
            }
        };
        self.attempts.dispatched(&job.id, &attempt_id, &self.stopper);
        let Some(executor) = &job.spec.executor else {
            return self.report(&job, &attempt_id, Produced::Unavailable(nobody_to_do(&job))).await;
        };
        let (executors, circle) = (&self.attempts.executors, job.spec.circle.as_deref());
        let Some(executor) = executors.find(circle, executor).cloned() else {
            let message = format!("no executor is named {executor:?}{}", executors.near(circle, executor));
            let failure = Failure::unregistered(message, self.attempts.grace_seconds);
            return self.report(&job, &attempt_id, Produced::Failed(failure)).await;
        };
        let assignment = match self.assignment(&job, &attempt_id).await {
            // Nobody works with another input than the one that was given, and no other attempt finds it whole.
            Err(EngineError::Store(StoreError::BodyDamaged(damage))) => {
                let failure = Failure::permanent(BODY_DAMAGED, damage.to_string());
                return self.report(&job, &attempt_id, Produced::Failed(failure)).await;
            }
            assignment => assignment?,
        };
        let link = self.link.clone();
        let called_back = executor.specialist.traits().is_called_back;
        self.release = None;
        let (produced, abort) = self.produce(executor, assignment, link);
        let produced = self.stay_with(&job, &attempt_id, produced).await;
        // Work that is over takes no notice; work that must be over is dropped.
        abort.abort();
        match produced {
            Some(produced @ Produced::Deferred(_)) if called_back => {
                self.report(&job, &attempt_id, produced).await?;
                self.look_for_callback().await
            }
            Some(produced) => self.report(&job, &attempt_id, produced).await,
            None => Ok(()),
        }
    }

    /// Renews, writes down progress and watches the time until the work ends; nothing if the lease was lost.
    async fn stay_with(
        &mut self,
        job: &Job,
        attempt_id: &AttemptId,
        mut work: oneshot::Receiver<Worked>,
    ) -> Option<Produced> {
        let timer = self.attempts.timer.clone();
        let began = timer.now();
        let time_over = job.spec.timeout_seconds.map(|seconds| (began, began.plus_seconds(seconds)));
        let renew_every = self.attempts.lease.renew_at(Timestamp::default()).micros();
        let mut deaf_after: Option<(Timestamp, Timestamp)> = None;
        let mut tell_at = began.plus_seconds(SHOWN_AS_RUNNING_AFTER_SECONDS);
        let mut shown = false;
        let mut newest: Option<Progress> = None;
        // A label stays until it is replaced; a report without one would take it away.
        let mut phase = None;
        loop {
            let renewed_at = self.renew_at.plus_micros(-renew_every);
            // Also after the clock was set back.
            tell_at = tell_at.min(timer.now().plus_seconds(PROGRESS_EVERY_SECONDS));
            let wants_to_tell = newest.is_some() || !shown || self.has_unrecorded_cancel();
            tokio::select! {
                biased;
                ended = &mut work => {
                    self.record_cancel_sent(attempt_id).await;
                    if let Some(progress) = newest.take() {
                        self.tell(attempt_id, Progress { phase: progress.phase.clone().or(phase), ..progress }).await;
                    }
                    let gone = || Failure::transient("executor_gone", "the work ended without a word");
                    let Ok(Worked { produced, release }) = ended else {
                        return Some(Produced::SubmitUnknown(gone()));
                    };
                    self.release = release;
                    return Some(produced);
                }
                Some(progress) = self.told.recv() => {
                    newest = Some(newest.map_or_else(|| progress.clone(), |older| merge(older, progress.clone())));
                }
                Some(asked) = self.intents.recv() => {
                    let answer = self.intend(job, attempt_id, asked.intent).await;
                    // Whoever asked may have been dropped.
                    let _ = asked.answer.send(answer);
                }
                Ok(()) = self.cancel_sent.changed() => self.record_cancel_sent(attempt_id).await,
                () = sleep_through(&*timer, renewed_at, self.renew_at) => {
                    if !self.renew().await && !self.adopt(attempt_id).await {
                        self.stopper.send_if_modified(|stop| replace(stop, Stop::LeaseLost));
                        return None;
                    }
                }
                () = timer.sleep_until(tell_at), if wants_to_tell => {
                    tell_at = timer.now().plus_seconds(PROGRESS_EVERY_SECONDS);
                    self.record_cancel_sent(attempt_id).await;
                    // Its own process has ended the job: what we would say of it now is late.
                    let is_over = *self.stopper.borrow() == Stop::Reported;
                    if is_over || shown && newest.is_none() {
                        continue;
                    }
                    shown = true;
                    let progress = newest.take().unwrap_or_default();
                    phase = progress.phase.clone().or(phase);
                    self.tell(attempt_id, Progress { phase: phase.clone(), ..progress }).await;
                }
                () = passes(&*timer, time_over), if *self.stopper.borrow() == Stop::GoOn => {
                    self.stopper.send_if_modified(|stop| replace(stop, Stop::TimeOver));
                    let told_at = timer.now();
                    deaf_after = Some((told_at, told_at.plus_seconds(STOPS_WITHIN_SECONDS)));
                }
                // It was told and goes on: its time is over all the same.
                () = passes(&*timer, deaf_after) => return Some(Produced::Stopped),
            }
        }
    }

    /// A new attempt, or the same one again after an answer. Whoever asked for it is told.
    async fn begin(&mut self, origin: Origin) -> Result<Beginning, EngineError> {
        match origin {
            Origin::Found => {
                let (admission, command) = self.next_command().await?;
                match admission {
                    Ok(admission) => self.admission = admission,
                    Err(until) => return Ok(Beginning::LeftAlone(until)),
                }
                begun(&*self.dispatch(self.order(command)).await?)
            }
            Origin::Asked { trigger, order, told } => {
                let command = self.attempts.dispatch_command(trigger);
                let order = Order { actor: order.actor, keys: order.keys, ..self.order(command) };
                let answer = self.dispatch(order).await;
                // The asker may have gone; the attempt goes on.
                let _ = told.send(answer.clone());
                begun(&*answer?)
            }
        }
    }

    /// What begins an attempt of a job that was found, and whether its executor lets it in. Whoever asks for one by hand is let in.
    async fn next_command(&self) -> Result<(Result<Admission, Timestamp>, Command), EngineError> {
        let store = self.attempts.engine.store();
        // The commit of the dispatch finds out whether it is still so.
        let record = match store.remembered(&self.id) {
            Some(remembered) => remembered.record,
            None => store.load(&self.id).await?.ok_or(Refusal::UnknownRecord)?.record,
        };
        let Record::Job(job) = &*record else { return Err(Refusal::WrongRecordKind.into()) };
        let executors = &self.attempts.executors;
        let executor =
            job.spec.executor.as_deref().and_then(|name| executors.find(job.spec.circle.as_deref(), name));
        let now = self.attempts.timer.now();
        let admission =
            executor.map_or_else(|| Ok(Admission::default()), |executor| executor.specialist.let_in(now));
        let command = match (&job.state, job.last_attempt()) {
            (JobState::Running, Some(attempt)) if job.resume_pending => {
                Command::Job(JobCommand::Resume { attempt_id: attempt.id.clone() })
            }
            _ => self.attempts.dispatch_command(Trigger::Automatic),
        };
        Ok((admission, command))
    }

    async fn dispatch(&self, order: Order) -> Result<Arc<Record>, EngineError> {
        Ok(self.attempts.engine.execute(order).await?.record().clone())
    }

    async fn assignment(&self, job: &Arc<Job>, attempt_id: &AttemptId) -> Result<Assignment, EngineError> {
        let input = self.body(job, BodyName::Input).await?.unwrap_or_else(|| b"null".to_vec());
        let mut answers = Vec::with_capacity(job.answers.len());
        for answer in &job.answers {
            answers.extend(self.attempts.engine.store().body(&self.id, *answer).await?);
        }
        let arrived = match job.result.data {
            Some(result) => self.attempts.engine.store().body(&self.id, result).await?,
            None => None,
        };
        Ok(Assignment {
            arrived,
            attempt_number: job.attempt_count,
            attempt_id: attempt_id.clone(),
            input,
            prompt: self.body(job, BodyName::Prompt).await?,
            answers,
            job: job.clone(),
        })
    }

    async fn body(&self, job: &Job, name: BodyName) -> Result<Option<Vec<u8>>, EngineError> {
        match job.bodies.iter().find(|body| body.name == name) {
            None => Ok(None),
            Some(body) => {
                let store = self.attempts.engine.store();
                let at_hand = store.remembered(&self.id).into_iter().flat_map(|remembered| remembered.bodies);
                match at_hand.into_iter().find(|kept| kept.body == *body) {
                    Some(kept) => Ok(Some(kept.bytes.to_vec())),
                    None => Ok(store.body(&self.id, *body).await?),
                }
            }
        }
    }

    pub(super) async fn renew(&mut self) -> bool {
        let (store, now) = (self.attempts.engine.store(), self.attempts.timer.now());
        match store.renew(&self.id, self.fence.clone(), now, self.attempts.lease).await {
            Ok(taken) => {
                self.fence = taken.claim.fence();
                self.renew_at = self.attempts.lease.renew_at(now);
                self.tenure.moved_to(self.attempts.stops_at(now));
                true
            }
            Err(store::StoreError::Fenced | store::StoreError::UnknownRecord) => false,
            Err(error) => {
                // The lease has time left: try again soon rather than give up the work.
                tracing::warn!(record = %self.id, code = error.code(), "lease not renewed: {error}");
                self.renew_at = now.plus_seconds(1);
                true
            }
        }
    }

    fn has_unrecorded_cancel(&self) -> bool {
        !self.cancel_recorded && self.was_sent_cancel()
    }

    /// Whether whoever does the work was sent a cancel.
    pub(super) fn was_sent_cancel(&self) -> bool {
        self.cancel_sent.borrow().is_some()
    }

    /// Writes down that whoever does the work was sent a cancel. While that cannot be written it is tried again.
    async fn record_cancel_sent(&mut self, attempt_id: &AttemptId) {
        let recipient = *self.cancel_sent.borrow_and_update();
        let Some(recipient) = recipient.filter(|_| !self.cancel_recorded) else { return };
        let tried = CancelTry::sent_to(recipient);
        let command = JobCommand::RecordCancelTry { attempt_id: attempt_id.clone(), tried };
        match self.attempts.engine.execute(self.order(command)).await {
            Ok(_) | Err(EngineError::Refused(_)) => self.cancel_recorded = true,
            Err(error) => {
                tracing::warn!(record = %self.id, code = error.code(), "sent cancel not written down: {error}");
            }
        }
    }

    async fn tell(&self, attempt_id: &AttemptId, progress: Progress) {
        let details = Details {
            progress: progress.progress,
            note: progress.note.map(storable),
            phase: progress.phase.map(storable),
            ..Details::default()
        };
        let report = self.report_of(attempt_id, JobStateName::Running, details, Retryable::Yes);
        if let Err(error) = self.attempts.engine.execute(self.order(report)).await {
            tracing::debug!(record = %self.id, code = error.code(), "progress not written down: {error}");
        }
    }

    pub(super) fn report_of(
        &self,
        attempt_id: &AttemptId,
        state: JobStateName,
        details: Details,
        retryable: Retryable,
    ) -> JobCommand {
        JobCommand::Report(Box::new(Report {
            attempt_id: Some(attempt_id.clone()),
            state,
            details,
            retryable,
            jitter: self.attempts.engine.ids().jitter(),
            submit: self.submit_word(state),
            by: Reporter::Daemon,
        }))
    }

    pub(super) fn order(&self, command: impl Into<Command>) -> Order {
        Order::new(self.id.clone(), command, Arc::from("worker:dispatch_jobs")).under(self.fence.clone())
    }

    pub(super) async fn hand_back(&self) {
        self.hand_back_until(self.attempts.timer.now()).await;
    }

    /// Gives the claim back; the record is due then.
    async fn hand_back_until(&self, due_at: Timestamp) {
        let now = self.attempts.timer.now();
        match self.attempts.engine.store().hand_back(&self.id, self.fence.clone(), now, due_at).await {
            Ok(()) => self.attempts.wakes.due(due_at),
            Err(error) => {
                tracing::debug!(record = %self.id, code = error.code(), "not handed back: {error}");
            }
        }
    }
}

/// The job and its current attempt.
fn begun(record: &Record) -> Result<Beginning, EngineError> {
    let Record::Job(job) = record else { return Err(Refusal::WrongRecordKind.into()) };
    let attempt = job.last_attempt().ok_or(Refusal::StaleAttempt)?;
    Ok(Beginning::Begun(Arc::new((**job).clone()), attempt.id.clone()))
}

/// Why a job that names no executor cannot be run by us.
fn nobody_to_do(job: &Job) -> Failure {
    match (&job.spec.assigned_peer_id, &job.spec.path) {
        (Some(peer), _) => Failure::permanent(
            "assigned_peer_offline",
            format!("the peer {peer:?} pulls its work; none was handed over"),
        ),
        (None, Some(path)) => Failure::permanent(
            "capability_missing",
            format!("nothing here starts a worker in the folder {path:?}"),
        ),
        (None, None) => {
            Failure::permanent("missing_target", "the job names no executor, peer or folder".to_owned())
        }
    }
}

/// The newer word wins; what it leaves out stays.
fn merge(older: Progress, newer: Progress) -> Progress {
    Progress {
        progress: newer.progress.or(older.progress),
        note: newer.note.or(older.note),
        phase: newer.phase.or(older.phase),
    }
}

/// Ends when the time between two times has passed, whatever the clock does meanwhile.
async fn passes(timer: &dyn crate::Timer, span: Option<(Timestamp, Timestamp)>) {
    match span {
        Some((began, ends_at)) => sleep_through(timer, began, ends_at).await,
        None => std::future::pending().await,
    }
}
