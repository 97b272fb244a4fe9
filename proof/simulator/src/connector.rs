//! Scripted services: honest ones, and a zoo of others. The host must hold its bounds whatever they say.

use domain::JobId;
use domain::job::{CancelAnswer, ResultRefs, Retryable};
use domain::operation::{PollAnswer, PollError, PollFailure, PollHints, ReportedStatus};
use domain::policy::Hint;
use store::NewBody;

use crate::counters::Struck;
use crate::heap::SECOND;
use crate::invariants::{Effect, Produced};
use crate::rng::Rng;
use crate::world::World;

/// The service behind one operation.
pub struct Connector {
    manner: Manner,
    ends_at: i64,
    ending: Ending,
    job: JobId,
    result: NewBody,
    stopped: bool,
    forgotten: bool,
    /// Whether it never answers a poll.
    pub(crate) hangs: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Says how it is.
    Honest,
    /// Says anything, and goes back on it.
    Lying,
    /// After its end says that it ended otherwise.
    Flipping,
    /// Does not know the work any more, now and then.
    Forgetting,
    /// Is never done.
    NeverEnding,
    /// Asks to be polled at absurd times.
    Hostile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Completed,
    Failed(Retryable),
    TimedOut,
}

impl Connector {
    /// A service that took some work.
    pub fn draw(world: &mut World, effect: Effect) -> Self {
        let job = effect.job.clone();
        let Produced(result) = world.check.produce(effect);
        let now = world.heap.now();
        let hangs = world.rare.chance(world.faults.hangs);
        let rng = &mut world.rng;
        let misbehaves = rng.chance(world.faults.connector);
        if misbehaves {
            world.counters.struck(Struck::Connector);
        }
        let manner = if misbehaves {
            rng.pick(&[
                Manner::Lying,
                Manner::Flipping,
                Manner::Flipping,
                Manner::Forgetting,
                Manner::NeverEnding,
                Manner::Hostile,
            ])
        } else {
            Manner::Honest
        };
        let ending = rng.pick(&[
            Ending::Completed,
            Ending::Completed,
            Ending::Completed,
            Ending::Failed(Retryable::Yes),
            Ending::Failed(Retryable::No),
            Ending::TimedOut,
        ]);
        let life =
            i64::try_from(world.setting.policy().max_ttl_seconds).expect("a drawn life is short") * SECOND;
        // Some are done about when their life is over.
        let takes =
            if rng.chance(200) { rng.within(life - SECOND, life + SECOND) } else { rng.within(0, life) };
        Self { manner, ends_at: now + takes, ending, job, result, stopped: false, forgotten: false, hangs }
    }

    /// What it says about the work.
    pub fn poll(&mut self, now: i64, rng: &mut Rng) -> Result<PollAnswer, PollError> {
        if rng.chance(50) {
            return Err(PollError {
                code: "status_timeout".to_owned(),
                message: String::new(),
                ..PollError::default()
            });
        }
        if self.manner == Manner::Forgetting && (self.forgotten || rng.chance(150)) {
            self.forgotten = rng.chance(500);
            return Ok(PollAnswer::Unknown);
        }
        if self.stopped {
            return Ok(PollAnswer::Cancelled);
        }
        if self.manner == Manner::Lying && rng.chance(100) {
            return Ok(self.ended(rng.pick(&[Ending::Completed, Ending::TimedOut])));
        }
        if now < self.ends_at || self.manner == Manner::NeverEnding {
            let status = rng.pick(&[ReportedStatus::Pending, ReportedStatus::Running]);
            let fail_after = if rng.chance(100) { self.hint(rng) } else { Hint::Absent };
            let hints = PollHints { retry_after: self.hint(rng), fail_after, ..PollHints::default() };
            return Ok(PollAnswer::Open(status, hints));
        }
        Ok(self.end(rng))
    }

    /// Its own word that the work is over, as a poll answers it or as it calls back with it.
    pub fn end(&self, rng: &mut Rng) -> PollAnswer {
        let flips = matches!(self.manner, Manner::Flipping | Manner::Lying) && rng.chance(500);
        match (flips, self.ending) {
            (false, ending) => self.ended(ending),
            (true, Ending::Completed) => self.ended(Ending::Failed(Retryable::Yes)),
            (true, Ending::Failed(_) | Ending::TimedOut) => self.ended(Ending::Completed),
        }
    }

    /// When it calls back, if it does: about when it is done, and some say it again and again.
    pub fn callbacks(&self, now: i64, rng: &mut Rng) -> Vec<i64> {
        let copies = match self.manner {
            Manner::Honest | Manner::Hostile | Manner::Forgetting => u64::from(rng.chance(300)),
            Manner::Lying | Manner::Flipping => 1 + rng.below(3),
            Manner::NeverEnding => 0,
        };
        (0..copies).map(|_| (self.ends_at - now).max(0) + rng.within(0, 60 * SECOND)).collect()
    }

    /// What it answers to a cancel.
    pub fn cancel(&mut self, rng: &mut Rng) -> CancelAnswer {
        let answer = crate::script::cancel_answer(rng);
        if answer == CancelAnswer::Accepted {
            self.stopped = self.manner == Manner::Honest;
        }
        answer
    }

    /// When it wants to be asked.
    pub fn hint(&self, rng: &mut Rng) -> Hint {
        match self.manner {
            Manner::Hostile | Manner::Lying => rng.pick(&[
                Hint::Seconds(i64::MIN),
                Hint::Seconds(-1),
                Hint::Seconds(0),
                Hint::Seconds(99_999_999_999),
                Hint::Seconds(i64::MAX),
                Hint::Invalid,
            ]),
            Manner::Honest | Manner::Flipping | Manner::Forgetting | Manner::NeverEnding => {
                if rng.chance(500) { Hint::Absent } else { Hint::Seconds(rng.within(1, 60)) }
            }
        }
    }

    /// The job that it works for, and the bytes of its result.
    pub fn result(&self) -> (&JobId, &NewBody) {
        (&self.job, &self.result)
    }

    fn ended(&self, ending: Ending) -> PollAnswer {
        match ending {
            Ending::Completed => {
                PollAnswer::Completed(ResultRefs { data: Some(self.result.body), ..ResultRefs::default() })
            }
            Ending::Failed(retryable) => PollAnswer::Failed(PollFailure {
                failure_detail: "it failed".to_owned(),
                error_code: None,
                result: ResultRefs::default(),
                retryable,
            }),
            Ending::TimedOut => PollAnswer::TimedOut,
        }
    }
}
