//! One due operation from the taking to the record of what came of it: time ends it, or its service is asked.
//!
//! No answer is waited for longer than the host granted. Nothing is written while the service is asked, and what is written
//! afterwards is one commit under the claim: whoever lost it writes nothing.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use domain::job::CancelAnswer;
use domain::operation::{
    Operation, OperationCommand, POLL_TIMED_OUT, Poll, PollAnswer, PollError, PollFailure, PollHints,
    SPECIALIST_UNREGISTERED,
};
use domain::policy::Hint;
use domain::{Command, Record, Refusal, Timestamp};
use futures::FutureExt;
use futures::future::BoxFuture;
use store::{StoreError, Taken};

use super::Polls;
use super::heard::Heard;
use crate::attempts::{is_about_the_report, is_damage};
use crate::hint_text::hint_text;
use crate::kept::{Kept, storable};
use crate::pulls::BODY_DAMAGED;
use crate::{
    CancelReply, Engine, EngineError, Executor, Failure, Order, Outcome, Outside, Polled, Registered,
    neighbours, sleep_through,
};

/// Who writes down what services say.
pub(super) const ACTOR: &str = "worker:poll_operations";
/// In place of what a service said when it refused to stop the work.
const PRIVATE_REFUSAL: &str = "what it said is kept with the operation as a private text";
/// In place of why no request could be sent to stop the work.
const PRIVATE_REASON: &str = "the reason is kept with the operation as a private text";
/// In place of what a service said of a failure.
const PRIVATE_FAILURE: &str = "what was said is the error of the job's result";
/// How long an operation is left to the nodes that can ask about it.
const LEFT_TO_OTHERS_SECONDS: u64 = 5;
/// How long an answer that could not be written down is forgotten: its question is asked again then.
const AGAIN_AFTER_SECONDS: u64 = 1;

pub(super) struct Question<'a> {
    polls: &'a Polls,
    taken: Taken,
    urgency: Urgency,
    /// What its service has called back with.
    callback: Option<Arc<[u8]>>,
}

/// Whether an operation waits for its time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// It is asked about when it is due.
    WhenDue,
    /// Somebody wants to know now.
    Now,
}

/// What came of looking after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// What was due is done, or was given back.
    Done,
    /// Its service has no place before this time: it was not asked.
    NoPlaceBefore(Timestamp),
}

/// What an operation needs now.
enum Due {
    /// Nothing that a service could say.
    Attention,
    /// That its service stops it.
    Cancel,
    /// That its service says how it is.
    Status,
}

impl<'a> Question<'a> {
    pub(super) fn new(polls: &'a Polls, taken: Taken, urgency: Urgency) -> Self {
        Self { polls, taken, urgency, callback: None }
    }

    /// The same, of which its service has called back with this.
    pub(super) fn hearing(self, callback: Option<Arc<[u8]>>) -> Self {
        Self { callback, ..self }
    }

    /// Does what is due. Nothing is left to the caller.
    pub(super) async fn settle(&self) -> Settled {
        match self.carry_out().await {
            Ok(settled) => settled,
            Err(error) => {
                // Mostly someone was faster; the record says what happened.
                tracing::info!(record = %self.taken.id, code = error.code(), "not asked: {error}");
                self.put_off(self.polls.timer.now().plus_seconds(AGAIN_AFTER_SECONDS)).await;
                Settled::Done
            }
        }
    }

    async fn carry_out(&self) -> Result<Settled, EngineError> {
        let engine = &self.polls.engine;
        let loaded = engine.store().load(&self.taken.id).await?.ok_or(Refusal::UnknownRecord)?;
        // Store time may have jumped since its last change: its life and its polls are as long as the time that passed.
        let record = engine.on_time(&loaded.record, self.polls.timer.now());
        let Record::Operation(operation) = &*record else {
            return Err(Refusal::WrongRecordKind.into());
        };
        let operation = Arc::new((**operation).clone());
        let executor = self.polls.executor_of(&operation);
        if let Some(said) = self.said(&operation, executor).await? {
            let said = self.without_echo(&operation, said).await?;
            return self.record(&operation, self.answer(&operation, said)).await;
        }
        if self.polls.gave_up_lost(&self.taken, &operation).await? {
            return Ok(Settled::Done);
        }
        let due = due(&operation, self.polls.timer.now(), self.urgency);
        // What is forgotten is not asked about first: it could not be put off.
        if matches!(due, Due::Attention) || engine.is_overdue(&loaded.record) {
            engine.attend(&self.taken, Arc::from(ACTOR)).await?;
            return Ok(Settled::Done);
        }
        let Some(executor) = executor else {
            return self.nobody_to_ask(&operation, &due).await;
        };
        // Services of different circles are different services.
        let service = format!("{}/{}", executor.circle.as_deref().unwrap_or_default(), operation.link.kind);
        let place = match self.polls.place(&service, &operation.policy, operation.poll_history()).await {
            Ok(place) => place,
            Err(until) => {
                self.put_off(self.due_again(&operation, until)).await;
                return Ok(Settled::NoPlaceBefore(until));
            }
        };
        let handle = match operation.handle {
            Some(handle) => engine.store().body(&self.taken.id, handle).await?.unwrap_or_default(),
            None => Vec::new(),
        };
        let outside = Outside { operation: operation.clone(), handle };
        let heard = match due {
            Due::Cancel => self.ask_to_stop(executor, outside).await.map(Heard::from),
            Due::Status | Due::Attention => self.ask(executor, outside).await?,
        };
        drop(place);
        match heard {
            Some(heard) => self.record(&operation, heard).await,
            // The daemon stops: whoever comes next asks again.
            None => {
                self.put_off(self.polls.timer.now()).await;
                Ok(Settled::Done)
            }
        }
    }

    /// What the callback says of the work, if its executor takes its word. One that came before the operation is not forgotten.
    async fn said(
        &self,
        operation: &Operation,
        executor: Option<&Registered>,
    ) -> Result<Option<Polled>, EngineError> {
        let Some(Executor { specialist, .. }) = executor.map(|one| &**one) else { return Ok(None) };
        let early = match &self.callback {
            None if operation.polls == 0
                && operation.ended.is_none()
                && specialist.traits().is_called_back =>
            {
                self.polls.engine.early_callback(&operation.id).await?
            }
            Some(_) | None => None,
        };
        Ok(self.callback.as_ref().or(early.as_ref()).and_then(|body| specialist.read_callback(body)))
    }

    /// When it is due again if it cannot be asked about before this time. What is not due now keeps its own time.
    fn due_again(&self, operation: &Operation, until: Timestamp) -> Timestamp {
        match self.urgency {
            Urgency::WhenDue => until,
            Urgency::Now => {
                let stop_at = operation.cancel.as_ref().and_then(|cancel| cancel.next_try_at);
                let own = operation.next_poll_at.min(operation.expires_at);
                stop_at.map_or(own, |stop_at| stop_at.min(own)).max(until)
            }
        }
    }

    async fn ask(&self, executor: &Executor, outside: Outside) -> Result<Option<Heard>, EngineError> {
        let operation = outside.operation.clone();
        let raised = |panic: Box<dyn Any + Send>| {
            let message = format!("specialist raised: {}", crate::attempts::message_of(&*panic));
            Err(poll_error("poll_raised", message))
        };
        let poll = AssertUnwindSafe(executor.specialist.poll(outside)).catch_unwind();
        let Some(answered) = self.in_time(&operation, Box::pin(poll)).await else { return Ok(None) };
        let late = || {
            let granted = operation.policy.status_timeout_ms;
            let message = format!(
                "no answer in time: status_timeout_ms = {granted} (connector policy or host default)"
            );
            Err(poll_error(POLL_TIMED_OUT, message))
        };
        let answered = answered.map_or_else(late, |answer| answer.unwrap_or_else(raised));
        let polled = self.without_echo(&operation, answered.unwrap_or_else(unanswered)).await?;
        Ok(Some(self.answer(&operation, polled)))
    }

    async fn ask_to_stop(&self, executor: &Executor, outside: Outside) -> Option<Order> {
        let operation = outside.operation.clone();
        let cancel = AssertUnwindSafe(executor.specialist.cancel(outside)).catch_unwind();
        let answered = self.in_time(&operation, Box::pin(cancel)).await?;
        let unanswered = |why: &str| CancelReply::told(CancelAnswer::Unreachable, why);
        let CancelReply { answer, told } = match answered {
            Some(Ok(reply)) => reply,
            Some(Err(_)) => unanswered("its executor raised"),
            None => unanswered("no answer in time"),
        };
        let mut kept = Kept::of(operation.id.clone());
        let (answer, said) = match answer {
            // A word of the connector's file: no service was asked.
            CancelAnswer::Refused(why) if told.as_deref() == Some(CancelReply::NOT_ASKED) => {
                (CancelAnswer::Refused(storable(why)), None)
            }
            // It may name what a service has chosen: an address, or a text of the job.
            CancelAnswer::Refused(why) => {
                let said = kept.said(&why);
                let is_ours = told.as_deref().is_some_and(|told| told.starts_with(CancelReply::NOT_ASKED));
                let shown = if is_ours { PRIVATE_REASON } else { PRIVATE_REFUSAL };
                (CancelAnswer::Refused(shown.to_owned()), said)
            }
            other @ (CancelAnswer::Cancelled
            | CancelAnswer::NeverStarted
            | CancelAnswer::Accepted
            | CancelAnswer::Unreachable) => (other, None),
        };
        tracing::info!(operation = %operation.id, job = %operation.link.job_id, ?answer, told, "asked to stop");
        let command = OperationCommand::RecordCancelAnswer {
            answer,
            told,
            said,
            jitter: self.polls.engine.ids().jitter(),
        };
        let mut order = self.order(command);
        order.bodies = kept.into_bodies();
        Some(order)
    }

    /// The answer, or nothing if it took longer than the host grants; nothing at all if the daemon stops.
    async fn in_time<T>(&self, operation: &Operation, asked: BoxFuture<'_, T>) -> Option<Option<T>> {
        let mut stopping = self.polls.stopping.subscribe();
        let granted = i64::from(operation.policy.status_timeout_ms) * 1_000;
        // A question that outlives the lease would be asked by two.
        let renew_at = self.polls.lease.renew_at(self.taken.claim.heartbeat_at);
        let began = self.polls.timer.now();
        let over_at = began.plus_micros(granted).min(renew_at);
        tokio::select! {
            biased;
            answer = asked => Some(Some(answer)),
            () = sleep_through(&*self.polls.timer, began, over_at) => Some(None),
            _ = stopping.wait_for(|stopping| *stopping) => None,
        }
    }

    /// What came of a question, as an order.
    fn answer(&self, operation: &Operation, polled: Polled) -> Heard {
        // What was said with a poll that failed may repeat the work's input: it is kept as a private text, and told by its digest.
        let mut kept = if matches!(polled, Polled::NotNow { .. }) {
            Kept::of(operation.id.clone())
        } else {
            Kept::of(operation.link.job_id.clone())
        };
        let mut handed_over = None;
        let answer = match polled {
            Polled::Open(status, hints) => {
                let progress_hint = hints.progress_hint.as_deref().map(hint_text);
                if let Some(hint) = &progress_hint {
                    tracing::info!(operation = %operation.id, job = %operation.link.job_id, "{hint}");
                }
                PollAnswer::Open(status, PollHints { progress_hint, ..hints })
            }
            Polled::Completed(mut output) => {
                handed_over = Some((output.work_result(), output.state.take()));
                PollAnswer::Completed(kept.output(output))
            }
            Polled::Failed(failure) => PollAnswer::Failed(failed(failure, &mut kept)),
            Polled::TimedOut => PollAnswer::TimedOut,
            Polled::Cancelled => PollAnswer::Cancelled,
            Polled::Expired => PollAnswer::Expired,
            Polled::Unknown => PollAnswer::Unknown,
            Polled::NotNow { error, retry_after } => {
                let said = kept.said(&error.message);
                let error = PollError { message: String::new(), said, ..error };
                tracing::warn!(
                    job = %operation.link.job_id,
                    kind = operation.link.kind,
                    code = error.code,
                    "external_polling_loop.poll_raised: {}",
                    error.shown()
                );
                PollAnswer::NotNow { error, retry_after }
            }
            Polled::NobodyToAsk(failure) => PollAnswer::NobodyToAsk(failed(failure, &mut kept)),
        };
        let jitter = self.polls.engine.ids().jitter();
        let mut order = self.order(OperationCommand::RecordPoll(Box::new(Poll { answer, jitter })));
        order.bodies = kept.into_bodies();
        Heard { order, handed_over }
    }

    async fn nobody_to_ask(&self, operation: &Operation, due: &Due) -> Result<Settled, EngineError> {
        if self.polls.timer.now() < self.polls.strangers_from {
            self.put_off(self.polls.strangers_from).await;
            return Ok(Settled::Done);
        }
        let (polls, now) = (self.polls, self.polls.timer.now());
        let whose = neighbours::Whose::Of(operation.link.circle.as_deref());
        if neighbours::have(&polls.engine, &polls.standing, &operation.link.kind, whose, now).await? {
            self.put_off(now.plus_seconds(LEFT_TO_OTHERS_SECONDS)).await;
            return Ok(Settled::Done);
        }
        let message = format!("no executor is named {:?}", operation.link.kind);
        let heard = match due {
            _ if operation.ended.is_none() => {
                let failure = Failure::unregistered(message, self.polls.grace_seconds);
                self.answer(operation, Polled::NobodyToAsk(failure))
            }
            // It may go on outside, and nobody can ask for that either: it is tried again later, and so often.
            Due::Cancel => Heard::from(self.order(OperationCommand::RecordCancelAnswer {
                answer: CancelAnswer::Unreachable,
                told: Some(SPECIALIST_UNREGISTERED.to_owned()),
                said: None,
                jitter: polls.engine.ids().jitter(),
            })),
            Due::Status | Due::Attention => {
                self.answer(operation, unanswered(poll_error(SPECIALIST_UNREGISTERED, message)))
            }
        };
        self.record(operation, heard).await
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.polls.engine
    }

    async fn record(&self, operation: &Operation, heard: Heard) -> Result<Settled, EngineError> {
        match self.write_down(operation, &heard).await {
            Ok(Outcome::Changed { .. }) => Ok(Settled::Done),
            // Nothing was written, and so the claim is still ours.
            Ok(Outcome::AlreadySo { .. }) => {
                self.polls.engine.attend(&self.taken, Arc::from(ACTOR)).await.map(|_| Settled::Done)
            }
            Err(error) if is_about_the_report(&error) || is_damage(&error) => {
                // The record must say why there is no result.
                let reason = if is_damage(&error) { BODY_DAMAGED } else { "report_refused" };
                let failure = Failure::permanent(reason, error.to_string());
                let failed = self.answer(operation, Polled::Failed(failure));
                self.write_down(operation, &failed).await.map(|_| Settled::Done)
            }
            Err(error) => Err(error),
        }
    }

    /// Gives it back: it is due again then.
    async fn put_off(&self, until: Timestamp) {
        let (store, now) = (self.polls.engine.store(), self.polls.timer.now());
        match store.hand_back(&self.taken.id, self.taken.claim.fence(), now, until).await {
            Ok(()) => self.polls.wakes.operation_due(until),
            // Someone else has it.
            Err(StoreError::Fenced | StoreError::UnknownRecord) => {}
            Err(error) => {
                tracing::debug!(record = %self.taken.id, code = error.code(), "not handed back: {error}");
            }
        }
    }

    fn order(&self, command: OperationCommand) -> Order {
        Order::new(self.taken.id.clone(), Command::Operation(command), Arc::from(ACTOR))
            .under(self.taken.claim.fence())
    }
}

fn due(operation: &Operation, now: Timestamp, urgency: Urgency) -> Due {
    let stop_at = operation.cancel.as_ref().and_then(|cancel| cancel.next_try_at);
    let stop_due = stop_at.is_some_and(|at| at <= now);
    if operation.ended.is_some() {
        // What may still run outside is asked to stop, and asked about.
        return if stop_due && operation.orphan().is_some() {
            Due::Cancel
        } else if operation.late_poll_at().is_some_and(|at| at <= now) {
            Due::Status
        } else {
            Due::Attention
        };
    }
    if operation.expires_at <= now {
        Due::Attention
    } else if stop_due {
        Due::Cancel
    } else if operation.next_poll_at <= now || urgency == Urgency::Now {
        Due::Status
    } else {
        Due::Attention
    }
}

/// What is written down of a failure.
pub(super) fn failed(failure: Failure, kept: &mut Kept) -> PollFailure {
    PollFailure {
        // What was said is in the error object: facts are shown to more people than results, and no purge reaches them.
        failure_detail: format!("{}: {PRIVATE_FAILURE}", failure.reason),
        error_code: Some(failure.reason.clone()),
        retryable: failure.retryable,
        result: kept.failure(failure),
    }
}

fn poll_error(code: &str, message: String) -> PollError {
    PollError { code: code.to_owned(), message, ..PollError::default() }
}

/// A poll that failed says nothing of the work.
fn unanswered(error: PollError) -> Polled {
    Polled::NotNow { error, retry_after: Hint::Absent }
}
