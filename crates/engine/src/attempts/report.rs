//! The end of an attempt, in one commit with its bodies. A result is not thrown away because the store cannot take it just now.

use std::sync::Arc;

use domain::job::{CancelAnswer, Details, JobCommand, JobStateName, ResultRefs, Retryable};
use domain::{AttemptId, BodyName, BodyRef, Refusal};
use store::{NewBody, StoreError, body_ref};

use super::run::Attempt;
use crate::{EngineError, Failure, Order, OrderBody, Output, Produced, Stop};

/// How long to wait before a report is given again.
const AGAIN_AFTER_SECONDS: u64 = 1;

impl Attempt {
    /// Reports what came of the attempt, again and again while the store is busy, full or away and the lease is ours.
    pub(super) async fn report(
        &mut self,
        attempt_id: &AttemptId,
        produced: Produced,
    ) -> Result<(), EngineError> {
        let Some(mut order) = self.closing_order(attempt_id, produced) else {
            // Nobody may say how it ended: the next owner decides by the lost lease.
            self.hand_back().await;
            return Ok(());
        };
        let mut refused = false;
        loop {
            match self.attempts.engine.execute(order.clone()).await {
                Ok(_) => return Ok(()),
                Err(error) if may_pass(&error) => {
                    tracing::warn!(record = %self.id, code = error.code(), "report not written down yet: {error}");
                }
                // Taken from a live attempt by its own process: see `adopt.rs`.
                Err(EngineError::Store(StoreError::Fenced)) if self.adopt(attempt_id).await => {
                    order.fence = Some(self.fence.clone());
                    continue;
                }
                // The record must say why there is no result.
                Err(error) if !refused && is_about_the_report(&error) => {
                    refused = true;
                    let failure = Failure::permanent("report_refused", error.to_string());
                    let failed = self.closing_order(attempt_id, Produced::Failed(failure));
                    order = failed.expect("a failure is always reported");
                    continue;
                }
                Err(error) => return Err(error),
            }
            let now = self.attempts.timer.now();
            self.attempts.timer.sleep_until(now.plus_seconds(AGAIN_AFTER_SECONDS)).await;
            if self.renew_at <= self.attempts.timer.now() && !self.renew().await {
                return Ok(());
            }
            order.fence = Some(self.fence.clone());
        }
    }

    /// The order that ends the attempt; none if nobody may say how it ended.
    fn closing_order(&self, attempt_id: &AttemptId, produced: Produced) -> Option<Order> {
        let stop = *self.stopper.borrow();
        let mut bodies = Vec::new();
        let command = match produced {
            Produced::Completed(output) => {
                let details = completed(output, &mut bodies);
                self.report_of(attempt_id, JobStateName::Completed, details, Retryable::Yes)
            }
            Produced::Failed(failure) => {
                let retryable = failure.retryable;
                let details = failed(failure, &mut bodies);
                self.report_of(attempt_id, JobStateName::Failed, details, retryable)
            }
            Produced::Unavailable(failure) => {
                let details = failed(failure, &mut bodies);
                self.report_of(attempt_id, JobStateName::Unavailable, details, Retryable::No)
            }
            Produced::Delivered => JobCommand::Deliver { attempt_id: attempt_id.clone() },
            Produced::AwaitingInput { question } => {
                let question = keep(&mut bodies, BodyName::Question, question);
                let details = Details { question: Some(question), ..Details::because("input_awaited") };
                self.report_of(attempt_id, JobStateName::AwaitingInput, details, Retryable::No)
            }
            Produced::Stopped => match stop {
                Stop::Cancelled => JobCommand::RecordCancelAnswer {
                    attempt_id: attempt_id.clone(),
                    answer: CancelAnswer::Cancelled,
                },
                Stop::TimeOver => {
                    let failure = Failure::transient("timed_out", "the attempt ran out of its time limit");
                    let details = failed(failure, &mut bodies);
                    self.report_of(attempt_id, JobStateName::Failed, details, Retryable::Yes)
                }
                Stop::Shutdown | Stop::LeaseLost | Stop::GoOn => return None,
            },
            Produced::StoppedWith(failure) => {
                let state = match stop {
                    Stop::Cancelled => JobStateName::Cancelled,
                    Stop::TimeOver => JobStateName::Failed,
                    Stop::Shutdown | Stop::LeaseLost | Stop::GoOn => return None,
                };
                let retryable = failure.retryable;
                let details = failed(failure, &mut bodies);
                self.report_of(attempt_id, state, details, retryable)
            }
        };
        let mut order = self.order(command);
        order.bodies = bodies.into_iter().map(|body| OrderBody { record: self.id.clone(), body }).collect();
        Some(order)
    }
}

/// Whether the store may take the same report later.
fn may_pass(error: &EngineError) -> bool {
    match error {
        EngineError::Contended => true,
        EngineError::Store(error) => match error {
            StoreError::Busy | StoreError::Full | StoreError::OutcomeUnknown | StoreError::Unavailable(_) => {
                true
            }
            StoreError::Conflict
            | StoreError::Fenced
            | StoreError::ClaimHeld
            | StoreError::UnknownRecord
            | StoreError::KeyTaken(_)
            | StoreError::TooLarge { .. }
            | StoreError::Broken(_) => false,
        },
        EngineError::Refused(_) | EngineError::KeyTaken(_) | EngineError::TooManyConsequences => false,
    }
}

/// Whether it is the report itself that cannot be: too large, or a move that the state does not have.
fn is_about_the_report(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Refused(
            Refusal::TooLarge { .. } | Refusal::WrongBody { .. } | Refusal::TransitionRefused { .. }
        ) | EngineError::Store(StoreError::TooLarge { .. })
    )
}

fn completed(output: Output, bodies: &mut Vec<NewBody>) -> Details {
    let result = ResultRefs {
        summary: output.summary,
        data: output.data.map(|data| keep(bodies, BodyName::Result, data)),
        error: None,
        artifacts: output.artifacts.map(|list| keep(bodies, BodyName::Artifacts, list)),
    };
    Details { result, ..Details::default() }
}

fn failed(failure: Failure, bodies: &mut Vec<NewBody>) -> Details {
    let mut error = serde_json::json!({ "code": failure.reason, "message": failure.message });
    if let Some(details) = failure.details {
        error["details"] = details;
    }
    let result = ResultRefs {
        error: Some(keep(bodies, BodyName::Error, error.to_string().into_bytes())),
        artifacts: failure.artifacts.map(|list| keep(bodies, BodyName::Artifacts, list)),
        ..ResultRefs::default()
    };
    Details { reason: Some(failure.reason), result, ..Details::default() }
}

fn keep(bodies: &mut Vec<NewBody>, name: BodyName, bytes: Vec<u8>) -> BodyRef {
    let body = body_ref(name, &bytes);
    bodies.push(NewBody { body, bytes: Arc::from(bytes) });
    body
}
