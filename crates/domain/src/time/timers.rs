//! Which times of a record measure time that passed, and are moved when store time jumps by a step of the clock.
//!
//! Moved: the end of an operation's life, its next poll and its next try to cancel; the time limit of an attempt and of a cancel; the wait
//! before another attempt. Not moved: what a caller gave as a time of day (a deadline, an expiry, a due time), which means the wall clock,
//! and what has happened.

use crate::job::{Job, JobState, Phase};
use crate::operation::Operation;
use crate::planted::{Bug, planted};
use crate::timeline::Steps;
use crate::{Command, Record, Timestamp};

/// The command that moves the timers of a record over the steps since its last change; none if it needs none.
///
/// After a step back every record whose last change lies ahead is moved, whether it has timers or not: time goes back in its stream here
/// and nowhere else. One that is over is moved when somebody does something with it; of itself it needs nothing (`is_to_be_moved_at_once`).
pub fn to_move(record: &Record, steps: &Steps, now: Timestamp) -> Option<Command> {
    let by_micros = steps.since(record.updated_at(), now);
    let goes_back = by_micros < 0 && record.updated_at() > now;
    let moves = goes_back || by_micros != 0 && record.has_timers();
    moves.then(|| record.move_timers(by_micros))
}

/// Whether a record is moved as soon as store time has jumped back: nobody would come to it before. What is over has nothing to be late with,
/// but for what goes on after its end.
pub fn is_to_be_moved_at_once(record: &Record) -> bool {
    !planted(Bug::TimersNotMovedBack) && record.waits_for_time()
}

impl Job {
    /// A job under a lease always has some: its agenda row, whose limits move with its lease, is written anew with the fact. So has one
    /// that waits in the middle of an attempt: the time limit of the attempt runs on.
    pub(crate) fn has_timers(&self) -> bool {
        match self.state.phase() {
            Phase::Queued { due_at } => self.waits_to_try_again(due_at) || self.cancel.is_some(),
            Phase::Held(_) => true,
            Phase::Waiting(_) => {
                self.cancel.is_some() || self.attempts.last().is_some_and(|attempt| attempt.end.is_none())
            }
            Phase::Ended(_) => false,
        }
    }

    /// Whether a queued job waits because an attempt was made, and not because its caller said so.
    fn waits_to_try_again(&self, due_at: Timestamp) -> bool {
        !self.attempts.is_empty() && due_at > self.updated_at
    }

    pub(crate) fn move_timers(&mut self, by_micros: i64) {
        if let JobState::Queued { due_at } = self.state {
            // After a step back what was due already lies ahead.
            let was_due = due_at <= self.updated_at && by_micros < 0;
            if was_due || self.waits_to_try_again(due_at) || planted(Bug::TimeOfDayMoved) {
                self.state = JobState::Queued { due_at: due_at.plus_micros(by_micros) };
            }
        }
        if let Some(cancel) = &mut self.cancel {
            cancel.limit_at = cancel.limit_at.map(|limit| limit.plus_micros(by_micros));
        }
        if let Some(attempt) = self.attempts.last_mut().filter(|attempt| attempt.end.is_none()) {
            attempt.moved_micros = attempt.moved_micros.saturating_add(by_micros);
        }
    }
}

impl Operation {
    pub(crate) fn has_timers(&self) -> bool {
        let asks_to_stop = self.cancel.as_ref().is_some_and(|cancel| cancel.next_try_at.is_some());
        self.ended.is_none() || asks_to_stop || self.late_poll_at().is_some()
    }

    pub(crate) fn move_timers(&mut self, by_micros: i64) {
        let moved = |at: Timestamp| at.plus_micros(by_micros);
        if self.ended.is_none() {
            if !planted(Bug::LivesNotMoved) {
                self.expires_at = moved(self.expires_at);
            }
            self.next_poll_at = moved(self.next_poll_at);
        }
        if let Some(cancel) = &mut self.cancel {
            cancel.next_try_at = cancel.next_try_at.map(moved);
        }
        if let Some(aftermath) = &mut self.aftermath {
            aftermath.next_poll_at = aftermath.next_poll_at.map(moved);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Details, Holder, JobCommand, JobFact, JobSpec, NewJob, Trigger, apply};
    use crate::timeline::Step;
    use crate::{AttemptId, JobId, OwnerId, RetryPolicy};

    const SECOND: i64 = 1_000_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    /// Work that someone outside has pulled at 1000 s, and what came then.
    fn pulled(facts: &[JobFact]) -> Job {
        let new = NewJob { spec: JobSpec::plain(None, RetryPolicy::ONCE), due_at: None, bodies: Vec::new() };
        let mut job = Job::new(JobId::new("work-1"), &new, at(1_000));
        let dispatched = JobFact::Dispatched {
            attempt_id: AttemptId::new("attempt-1"),
            number: 1,
            owner: OwnerId::new("node-1"),
            trigger: Trigger::Automatic,
            holder: Holder::Daemon,
        };
        for fact in [dispatched].iter().chain(facts) {
            apply(&mut job, fact, at(1_000)).expect("it fits");
        }
        job
    }

    fn moved_by(job: &Job, steps: &Steps, now: Timestamp) -> Option<i64> {
        let command = to_move(&Record::Job(Box::new(job.clone())), steps, now)?;
        let Command::Job(JobCommand::MoveTimers { by_micros }) = command else {
            panic!("{command:?}");
        };
        Some(by_micros)
    }

    #[test]
    fn time_of_an_attempt_is_moved_while_its_job_waits_in_the_middle_of_it() {
        let ahead = Steps::new([Step { from: at(1_100), to: at(4_700) }]);
        let back = Steps::new([Step { from: at(1_300), to: at(1_100) }]);
        for waits in [JobFact::Blocked(Details::default()), JobFact::InputAwaited(Details::default())] {
            let mut job = pulled(std::slice::from_ref(&waits));
            assert_eq!(moved_by(&job, &ahead, at(4_700)), Some(3_600 * SECOND), "{waits:?}");
            assert_eq!(moved_by(&job, &back, at(1_100)), Some(-200 * SECOND), "{waits:?}");
            apply(&mut job, &JobFact::TimersMoved { by_micros: 3_600 * SECOND }, at(4_700)).expect("it fits");
            assert_eq!(job.attempts[0].moved_micros, 3_600 * SECOND);
            assert_eq!(moved_by(&job, &ahead, at(4_700)), None, "once");
        }
    }

    #[test]
    fn job_without_timers_is_moved_only_if_its_last_change_lies_ahead() {
        let new = NewJob { spec: JobSpec::plain(None, RetryPolicy::ONCE), due_at: None, bodies: Vec::new() };
        let job = Job::new(JobId::new("work-1"), &new, at(1_000));
        let back_to = |seconds: i64| Steps::new([Step { from: at(1_300), to: at(seconds) }]);
        assert_eq!(moved_by(&job, &back_to(1_100), at(1_100)), None);
        assert_eq!(moved_by(&job, &back_to(900), at(900)), Some(-400 * SECOND));
    }
}
