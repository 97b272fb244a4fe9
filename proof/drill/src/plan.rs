//! Everything that is left to chance, drawn from the seed: which fault comes when, and what each client asks for.
//!
//! The same seed draws the same decisions. What the machine makes of them (who is quicker, what is lost with a kill) is its own.

use std::time::Duration;

use crate::kind::{Detail, Kind, MANNERS};
use crate::random::Draw;

/// Where a process ends itself, in builds with the feature `failpoints`.
pub const FAILPOINTS: [&str; 5] =
    ["commit.before", "commit.after", "answer.before", "submit.intended", "submit.sent"];

/// The latest time that a process ends itself at a point that it comes to rarely.
const RARE: u64 = 4;

/// What is done to the nodes in one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// kill -9 of one.
    Kill,
    /// kill -9 of all of them at once.
    KillAll,
    /// kill -9 of one, and again while it starts.
    KillInStart {
        /// After its start began.
        after: Duration,
    },
    /// SIGTERM, and whatever it takes to end.
    Terminate,
    /// SIGSTOP for a while.
    Pause {
        /// How long.
        lasts: Duration,
    },
    /// SIGSTOP for longer than a lease, while the others go on.
    PausePastLease,
    /// kill -9 of one that is never seen again; another takes its place.
    Lose,
    /// The database ends all sessions of the nodes.
    EndSessions,
    /// kill -9 of the service.
    KillService,
    /// One is started such that it ends itself at a named point.
    Failpoint {
        /// Which.
        name: &'static str,
        /// The how manyth time that it comes there.
        time: u64,
    },
}

/// One round: a while under load, then a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// How long nothing is done to them first.
    pub work: Duration,
    /// What is done then.
    pub fault: Fault,
    /// To which of them.
    pub node: usize,
}

/// What there is to be done something to.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// How many nodes.
    pub nodes: usize,
    /// Whether they share a database server.
    pub shared: bool,
    /// Whether the binary has named points.
    pub failpoints: bool,
    /// Whether there is a service to be killed.
    pub service: bool,
}

/// The faults, one after the other.
#[derive(Debug)]
pub struct Faults {
    draw: Draw,
    scene: Scene,
}

impl Faults {
    pub fn new(seed: u64, scene: Scene) -> Self {
        Self { draw: Draw::of(seed, "faults"), scene }
    }

    /// The next round.
    pub fn next(&mut self) -> Round {
        let Self { draw, scene } = self;
        let several = u64::from(scene.nodes > 1);
        let shared = u64::from(scene.shared);
        let choices = [
            (50, 0),
            (16 * several, 1),
            (14, 2),
            (6, 3),
            (6, 4),
            (9 * several * shared, 5),
            (3 * several * shared, 6),
            (7 * shared, 7),
            (3 * u64::from(scene.service), 8),
            (25 * u64::from(scene.failpoints), 9),
        ];
        // Each draw is made whatever comes of it, so that decisions do not shift.
        let (choice, work) = (draw.weighted(&choices), draw.between(100, 1_000));
        let (node, millis, time) =
            (draw.below(scene.nodes as u64), draw.between(1, 120), draw.between(1, 40));
        let name = draw.one(&FAILPOINTS).copied().unwrap_or("commit.before");
        let fault = match choice {
            Some(1) => Fault::KillAll,
            Some(2) => Fault::KillInStart { after: Duration::from_millis(millis) },
            Some(3) => Fault::Terminate,
            Some(4) => Fault::Pause { lasts: Duration::from_millis(millis * 20) },
            Some(5) => Fault::PausePastLease,
            Some(6) => Fault::Lose,
            Some(7) => Fault::EndSessions,
            Some(8) => Fault::KillService,
            // Far more is committed than is given to services: what is rare is not waited for in vain.
            Some(9) if name.starts_with("commit.") => Fault::Failpoint { name, time },
            Some(9) => Fault::Failpoint { name, time: 1 + time % RARE },
            Some(_) | None => Fault::Kill,
        };
        Round { work: Duration::from_millis(work), fault, node: usize::try_from(node).unwrap_or_default() }
    }
}

/// How a client sends, and when it hangs up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Sends all and waits for the answer.
    Whole,
    /// Sends all and waits only so long.
    Impatient(Duration),
    /// Sends all and hangs up.
    Cut,
    /// Hangs up in the middle of what it sends.
    Half,
}

/// What a client does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Asks for new work.
    Create { kind: Kind, detail: Detail, sending: Sending },
    /// Asks again for what it has asked for before.
    Repeat { which: u64 },
    /// Asks for something else under a key that was used.
    OtherBody { which: u64 },
    /// Asks to stop it.
    Cancel { which: u64, sending: Sending },
    /// Asks for another attempt of what has failed.
    Retry { which: u64 },
    /// Answers what was asked.
    Answer { which: u64 },
    /// Looks how it ended.
    Look { which: u64 },
}

/// The steps of one client.
#[derive(Debug)]
pub struct Steps {
    draw: Draw,
    kinds: Vec<(u64, Kind)>,
}

impl Steps {
    /// The steps of this client, with work of these kinds.
    pub fn new(seed: u64, client: usize, kinds: &[Kind]) -> Self {
        let kinds = Kind::ALL.into_iter().filter(|(_, kind)| kinds.contains(kind)).collect();
        Self { draw: Draw::of(seed, &format!("client {client}")), kinds }
    }

    /// The next one, and how long to think before it.
    pub fn next(&mut self) -> (Duration, Step) {
        let draw = &mut self.draw;
        let think = Duration::from_millis(draw.between(0, 90));
        let which = draw.next();
        let sending = sending(draw);
        let kind = draw.weighted(&self.kinds).unwrap_or(Kind::Noop);
        let manner = draw.one(&MANNERS).copied().unwrap_or("honest");
        let detail = Detail { tenths: draw.between(0, 12), manner };
        let step = match draw.below(100) {
            0..60 => Step::Create { kind, detail, sending },
            60..68 => Step::Repeat { which },
            68..72 => Step::OtherBody { which },
            72..80 => Step::Cancel { which, sending },
            80..85 => Step::Retry { which },
            85..90 => Step::Answer { which },
            _ => Step::Look { which },
        };
        (think, step)
    }
}

fn sending(draw: &mut Draw) -> Sending {
    let impatient = Duration::from_millis(draw.between(1, 25));
    match draw.below(100) {
        0..88 => Sending::Whole,
        88..93 => Sending::Impatient(impatient),
        93..98 => Sending::Cut,
        _ => Sending::Half,
    }
}

/// What a worker does with a job that it was handed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Does it.
    Does,
    /// Is heard of, then does it.
    IsHeardOf,
    /// Says that it failed and may be tried again.
    Fails,
    /// Says nothing more.
    Vanishes,
    /// Does it, and says so when its lease is long over.
    IsLate,
}

/// The manners of one worker.
#[derive(Debug)]
pub struct Manners(Draw);

impl Manners {
    pub fn new(seed: u64, worker: usize) -> Self {
        Self(Draw::of(seed, &format!("worker {worker}")))
    }

    pub fn next(&mut self) -> Manner {
        match self.0.below(100) {
            0..70 => Manner::Does,
            70..82 => Manner::IsHeardOf,
            82..91 => Manner::Fails,
            91..95 => Manner::Vanishes,
            _ => Manner::IsLate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENE: Scene = Scene { nodes: 3, shared: true, failpoints: true, service: true };

    #[test]
    fn same_seed_draws_the_same_rounds_and_steps() {
        let rounds = |seed| {
            let mut faults = Faults::new(seed, SCENE);
            (0..200).map(|_| faults.next()).collect::<Vec<_>>()
        };
        assert_eq!(rounds(3), rounds(3));
        assert_ne!(rounds(3), rounds(4));
        let steps = |client| {
            let mut steps = Steps::new(3, client, &[Kind::Noop, Kind::Zoo]);
            (0..200).map(|_| steps.next()).collect::<Vec<_>>()
        };
        assert_eq!(steps(0), steps(0));
        assert_ne!(steps(0), steps(1));
    }

    #[test]
    fn every_fault_comes_where_there_is_something_to_break_and_none_where_there_is_not() {
        let seen = |scene| {
            let mut faults = Faults::new(1, scene);
            (0..2_000).map(|_| faults.next().fault).collect::<Vec<_>>()
        };
        let all = seen(SCENE);
        for fault in [Fault::Kill, Fault::KillAll, Fault::PausePastLease, Fault::Lose, Fault::EndSessions] {
            assert!(all.contains(&fault), "{fault:?}");
        }
        for name in FAILPOINTS {
            assert!(
                all.iter()
                    .any(|fault| matches!(fault, Fault::Failpoint { name: found, .. } if *found == name))
            );
        }
        let alone = seen(Scene { nodes: 1, shared: false, failpoints: false, service: false });
        for fault in
            [Fault::KillAll, Fault::PausePastLease, Fault::Lose, Fault::EndSessions, Fault::KillService]
        {
            assert!(!alone.contains(&fault), "{fault:?}");
        }
        assert!(!alone.iter().any(|fault| matches!(fault, Fault::Failpoint { .. })));
    }

    #[test]
    fn only_work_of_the_named_kinds_is_asked_for() {
        let mut steps = Steps::new(1, 0, &[Kind::Noop]);
        for _ in 0..500 {
            if let (_, Step::Create { kind, .. }) = steps.next() {
                assert_eq!(kind, Kind::Noop);
            }
        }
    }
}
