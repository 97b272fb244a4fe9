//! What a fact leaves behind on a run.

use super::fact::RunFact;
use super::state::{Run, RunCancel, VisitState};
use crate::{Misfold, Timestamp};

/// Folds one fact, recorded at this time, into the run.
pub fn apply(run: &mut Run, fact: &RunFact, at: Timestamp) -> Result<(), Misfold> {
    match fact {
        RunFact::Started(_) => return Err(Misfold("the run began twice")),
        RunFact::StepStarted { visit, job_id } => {
            let visit = run.visits.get_mut(usize::from(*visit)).ok_or(NO_VISIT)?;
            visit.state = VisitState::Open(job_id.clone());
        }
        RunFact::GroupEntered { visit } => run.enter(*visit),
        RunFact::StepEnded { visit, end } => run.end_visit(*visit, end),
        RunFact::StepReopened { visit, job_id } => run.reopen(*visit, job_id),
        RunFact::CancelRequested { by, reason, next } => {
            let (by, reason) = (by.clone(), reason.clone());
            run.cancel = Some(RunCancel { requested_at: at, by, reason, next: *next });
            run.give_up_waiting();
        }
        RunFact::CancelContinued { next } => {
            run.cancel.as_mut().ok_or(NO_CANCEL)?.next = *next;
        }
        RunFact::Condemned { reason } => {
            run.condemned = Some(reason.clone());
            run.give_up_waiting();
        }
        RunFact::Ended(end) => {
            run.end = Some(*end);
            run.ended_at = Some(at);
        }
        RunFact::TimersMoved { .. } | RunFact::Retired => {}
    }
    run.updated_at = at;
    Ok(())
}

const NO_CANCEL: Misfold = Misfold("nobody asked to stop the run");
const NO_VISIT: Misfold = Misfold("the run has not come to that node");
