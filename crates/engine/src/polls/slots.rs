//! The slots of one service: who may poll it now, and when somebody who may not should come again.
//!
//! Operations are told apart by what came of their last poll. Those that hung hold at most half of the slots, so that those that answer
//! always find the other half moving. Those that were never polled leave one slot to those that are known to answer, as soon as one of
//! them is slow itself. Where there is one slot only, they take turns: whoever held it for long leaves it to the others for as long. Each
//! kind queues behind its own kind alone.

use std::collections::VecDeque;
use std::sync::Arc;

use domain::Timestamp;
use domain::operation::PollHistory;
use tokio::sync::Notify;

/// How long a poll is thought to take until one was answered.
const FIRST_GUESS_MICROS: i64 = 20_000;
/// Nothing is put off for less: the store would be asked for nothing.
const SHORTEST_WAIT_MICROS: i64 = 20_000;
/// Nothing is put off for longer than this for want of a slot.
const LONGEST_WAIT_MICROS: i64 = 60_000_000;
/// Beside a poll that hangs, operations that answer come back this soon after each other: 50 of them within half a second. A limit
/// for each of them instead would let thousands come back at once.
const LONGEST_TURN_BESIDE_HUNG_MICROS: i64 = 10_000;
/// A poll that takes longer may be one that hangs.
const SLOW_MICROS: i64 = 300_000;
/// For how long a service is known to have operations that answer.
const KNOWN_FOR_MICROS: i64 = 60_000_000;
/// For how long after its time somebody who was put off is waited for.
const WANTED_FOR_MICROS: i64 = 2_000_000;
/// A slot that is not free by then is not waited for.
pub(super) const PATIENCE_MICROS: i64 = 100_000;
/// For each slot of a service so many may wait.
const WAITING_PER_SLOT: usize = 3;

/// What is known of one service.
pub(super) struct Service {
    queues: [Queue; 3],
    /// Until then the only slot is left to those that answer by those that hung, or might.
    rests_until: Timestamp,
    /// Until then those that hung leave their slots to those that were never polled, if there are such.
    hung_rest_until: Timestamp,
    /// When an operation that answered before was last polled.
    answered_at: Option<Timestamp>,
}

/// Those of one history.
struct Queue {
    /// When their polls under way began, the oldest first.
    under_way: Vec<Timestamp>,
    /// How long a poll of theirs took, smoothed.
    took_micros: i64,
    /// When the next of those that were put off may hope for a slot.
    next_slot_at: Timestamp,
    /// When those that were put off come again.
    come_at: VecDeque<Timestamp>,
    /// Until then one of them is expected to come for a slot.
    wanted_until: Option<Timestamp>,
    /// Those who wait for a slot right now.
    waiting: usize,
    /// Told whenever a slot has become free.
    freed: Arc<Notify>,
}

impl Service {
    pub(super) fn new(now: Timestamp) -> Self {
        let queue = || Queue {
            under_way: Vec::new(),
            took_micros: FIRST_GUESS_MICROS,
            next_slot_at: now,
            come_at: VecDeque::new(),
            wanted_until: None,
            waiting: 0,
            freed: Arc::default(),
        };
        let queues = [queue(), queue(), queue()];
        Self { queues, rests_until: now, hung_rest_until: now, answered_at: None }
    }

    /// Nothing here lies further ahead than anybody is put off, also after the clock was set back.
    pub(super) fn bound(&mut self, now: Timestamp) {
        let latest = now.plus_micros(LONGEST_WAIT_MICROS);
        self.rests_until = self.rests_until.min(latest);
        self.hung_rest_until = self.hung_rest_until.min(latest);
        self.answered_at = self.answered_at.map(|at| at.min(latest));
        for queue in &mut self.queues {
            queue.next_slot_at = queue.next_slot_at.min(latest);
            let wanted_until = queue.next_slot_at.plus_micros(WANTED_FOR_MICROS);
            queue.wanted_until = queue.wanted_until.map(|until| until.min(wanted_until));
        }
    }

    /// Takes a slot, if one is free for such an operation.
    pub(super) fn take(&mut self, history: PollHistory, limit: usize, now: Timestamp) -> bool {
        if !self.is_free(history, limit, now) {
            return false;
        }
        if history == PollHistory::Answered {
            self.answered_at = Some(now);
        }
        self.queue(history).under_way.push(now);
        true
    }

    /// Frees the slot that was taken then.
    pub(super) fn free(&mut self, history: PollHistory, taken_at: Timestamp, now: Timestamp) {
        // The clock may have been set meanwhile.
        let took = now.micros().saturating_sub(taken_at.micros()).clamp(0, LONGEST_WAIT_MICROS);
        if history != PollHistory::Answered && took > SLOW_MICROS {
            self.rests_until = now.plus_micros(took);
        }
        if history == PollHistory::Hung {
            self.hung_rest_until = now.plus_micros(took);
        }
        let queue = self.queue(history);
        if let Some(place) = queue.under_way.iter().position(|began| *began == taken_at) {
            queue.under_way.remove(place);
        }
        queue.took_micros = (queue.took_micros * 7 + took) / 8;
        if queue.under_way.is_empty() && queue.waiting == 0 && queue.next_slot_at < now {
            queue.wanted_until = None;
        }
        // Whoever may not have it goes on waiting.
        for queue in &self.queues {
            queue.freed.notify_one();
        }
    }

    /// Lets somebody wait for a slot, if it will be free soon and few wait for it.
    pub(super) fn wait(&mut self, history: PollHistory, limit: usize, now: Timestamp) -> Option<Arc<Notify>> {
        let most = limit.saturating_mul(WAITING_PER_SLOT);
        let turn = self.turn_micros(history, limit, now);
        let queue = self.queue(history);
        if turn.saturating_mul(count(queue.waiting + 1)) > PATIENCE_MICROS || queue.waiting >= most {
            return None;
        }
        queue.waiting += 1;
        Some(queue.freed.clone())
    }

    /// Somebody waits no more.
    pub(super) fn stop_waiting(&mut self, history: PollHistory) {
        self.queue(history).waiting -= 1;
    }

    /// When somebody who is put off may hope for a slot. Those of the same history queue up behind each other, each as long as a slot of
    /// theirs takes to become free: as many come back as can be polled. No poll takes longer than its time limit.
    pub(super) fn put_off(
        &mut self,
        history: PollHistory,
        limit: usize,
        time_limit_micros: i64,
        now: Timestamp,
    ) -> Timestamp {
        let mut turn = self.turn_micros(history, limit, now);
        if history == PollHistory::Answered && self.is_held_up(now) {
            // The age of a poll that hangs says nothing about when a slot is free for those that answer.
            turn = turn.min(LONGEST_TURN_BESIDE_HUNG_MICROS);
        }
        let earliest = now.plus_micros(SHORTEST_WAIT_MICROS);
        let latest = now.plus_micros(LONGEST_WAIT_MICROS);
        let mut ends: Vec<Timestamp> = self
            .queues
            .iter()
            .flat_map(|queue| &queue.under_way)
            .map(|began| began.plus_micros(time_limit_micros))
            .collect();
        ends.sort_unstable();
        let queue = self.queue(history);
        while queue.come_at.front().is_some_and(|at| *at <= now) {
            queue.come_at.pop_front();
        }
        let mut next_slot_at = queue.next_slot_at.plus_micros(turn);
        // Those that hung leave slots free on purpose; all others get the first slots whose polls run out of their time.
        if history != PollHistory::Hung
            && let Some(end) = ends.get(queue.come_at.len())
        {
            next_slot_at = next_slot_at.min(*end);
        }
        queue.next_slot_at = next_slot_at.clamp(earliest, latest);
        queue.come_at.push_back(queue.next_slot_at);
        queue.wanted_until = Some(queue.next_slot_at.plus_micros(WANTED_FOR_MICROS));
        queue.next_slot_at
    }

    fn is_free(&self, history: PollHistory, limit: usize, now: Timestamp) -> bool {
        use PollHistory::{Answered, Hung, NeverPolled};
        let under_way = |history: PollHistory| self.queues[index(history)].under_way.len();
        let wanted =
            |history: PollHistory| self.queues[index(history)].wanted_until.is_some_and(|until| now <= until);
        let others = under_way(NeverPolled) + under_way(Hung);
        if under_way(Answered) + others >= limit {
            return false;
        }
        let hung_rest = under_way(Hung) > 0 || now < self.hung_rest_until;
        if history == Hung && hung_rest && wanted(NeverPolled) {
            return false;
        }
        if limit == 1 {
            return history == Answered || !(now < self.rests_until && wanted(Answered));
        }
        match history {
            Answered => true,
            NeverPolled => others + 1 < limit || !self.keeps_one_free(now),
            Hung => under_way(Hung) < limit / 2 && (others + 1 < limit || !self.knows_answering(now)),
        }
    }

    /// Whether one slot is kept for those that are known to answer: there are such, and another poll may be hanging.
    fn keeps_one_free(&self, now: Timestamp) -> bool {
        let slow = |began: &Timestamp| now.micros() - began.micros() > SLOW_MICROS;
        let is_slow = |queue: &Queue| queue.under_way.iter().any(slow);
        let hangs = !self.queues[index(PollHistory::Hung)].under_way.is_empty();
        self.knows_answering(now) && (hangs || self.queues.iter().any(is_slow))
    }

    /// Whether a slot is held by a poll that hung last time, or takes far longer than those that answer.
    fn is_held_up(&self, now: Timestamp) -> bool {
        let typical = self.queues[index(PollHistory::Answered)].took_micros;
        let slow_after = SLOW_MICROS.max(typical.saturating_mul(2));
        let is_slow = |began: &Timestamp| now.micros() - began.micros() > slow_after;
        let hangs = !self.queues[index(PollHistory::Hung)].under_way.is_empty();
        hangs || self.queues.iter().any(|queue| queue.under_way.iter().any(is_slow))
    }

    fn knows_answering(&self, now: Timestamp) -> bool {
        self.answered_at.is_some_and(|at| now <= at.plus_micros(KNOWN_FOR_MICROS))
    }

    /// How long it takes until a slot of theirs becomes free.
    fn turn_micros(&self, history: PollHistory, limit: usize, now: Timestamp) -> i64 {
        let oldest = |queue: &Queue| queue.under_way.first().map_or(0, |began| now.micros() - began.micros());
        let of_all = self.queues.iter().map(oldest).max().unwrap_or_default();
        let own = &self.queues[index(history)];
        match history {
            PollHistory::Answered | PollHistory::NeverPolled => of_all.max(own.took_micros) / count(limit),
            PollHistory::Hung => oldest(own).max(own.took_micros) / count(limit / 2),
        }
    }

    fn queue(&mut self, history: PollHistory) -> &mut Queue {
        &mut self.queues[index(history)]
    }
}

fn index(history: PollHistory) -> usize {
    match history {
        PollHistory::Answered => 0,
        PollHistory::NeverPolled => 1,
        PollHistory::Hung => 2,
    }
}

/// Of slots, for divisions.
fn count(slots: usize) -> i64 {
    i64::try_from(slots.max(1)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HONEST: usize = 10;
    const HANGING: usize = 24;
    const STEP_MICROS: i64 = 10_000;
    const TIMEOUT_MICROS: i64 = 5_000_000;
    const ANSWER_MICROS: i64 = 20_000;
    const INTERVAL_MICROS: i64 = 2_000_000;

    struct Polled {
        hangs: bool,
        history: PollHistory,
        due_at: i64,
        /// When it may come again, if it was put off.
        comes_at: i64,
        ends_at: Option<(i64, Timestamp)>,
        polls: usize,
        first_at: i64,
        /// How late it was polled at most: at first, and after a minute.
        late: [i64; 2],
    }

    struct Outcome {
        honest_late: [i64; 2],
        honest_polls: usize,
        hanging_polls: usize,
        all_polled_after: i64,
    }

    /// Ten honest operations and 24 that hang at one service, for so many seconds. Lateness counts from the second poll of each.
    fn simulate(limit: usize, seconds: i64) -> Outcome {
        let at = |micros: i64| Timestamp::from_seconds(1_000).plus_micros(micros);
        let mut service = Service::new(at(0));
        let mut all: Vec<Polled> = (0..HONEST + HANGING)
            .map(|number| Polled {
                // One after the other, so that none of both kinds is first.
                hangs: number % 3 != 0 || number >= HONEST * 3,
                history: PollHistory::NeverPolled,
                due_at: 0,
                comes_at: 0,
                ends_at: None,
                polls: 0,
                first_at: i64::MAX,
                late: [0; 2],
            })
            .collect();
        let mut held_by_hung = 0;
        for now in (0..seconds * 1_000_000).step_by(usize::try_from(STEP_MICROS).unwrap()) {
            for one in &mut all {
                if let Some((ends_at, began)) = one.ends_at
                    && ends_at <= now
                {
                    service.free(one.history, began, at(now));
                    one.history = if one.hangs { PollHistory::Hung } else { PollHistory::Answered };
                    one.ends_at = None;
                    // What fails is asked less and less often.
                    let factor = if one.hangs { 1 << one.polls.min(5) } else { 1 };
                    one.due_at = now + INTERVAL_MICROS * factor;
                    one.comes_at = one.due_at;
                }
            }
            for one in &mut all {
                if one.ends_at.is_some() || one.comes_at > now {
                    continue;
                }
                if service.take(one.history, limit, at(now)) {
                    if one.polls > 0 {
                        let late = &mut one.late[usize::from(now > 60_000_000)];
                        *late = (*late).max(now - one.due_at);
                    }
                    one.polls += 1;
                    one.first_at = one.first_at.min(now);
                    let takes = if one.hangs { TIMEOUT_MICROS } else { ANSWER_MICROS };
                    one.ends_at = Some((now + takes, at(now)));
                } else {
                    let until = service.put_off(one.history, limit, TIMEOUT_MICROS, at(now));
                    one.comes_at = until.micros() - at(0).micros();
                }
            }
            let hung = all.iter().filter(|one| one.ends_at.is_some() && one.history == PollHistory::Hung);
            held_by_hung = held_by_hung.max(hung.count());
        }
        assert!(held_by_hung <= (limit / 2).max(1), "{held_by_hung} slots of {limit}");
        let latest = |when: usize| {
            all.iter().filter(|one| !one.hangs).map(|one| one.late[when]).max().unwrap_or_default()
        };
        let least = |hangs| {
            all.iter().filter(|one| one.hangs == hangs).map(|one| one.polls).min().unwrap_or_default()
        };
        Outcome {
            honest_late: [latest(0), latest(1)],
            honest_polls: least(false),
            hanging_polls: least(true),
            all_polled_after: all.iter().map(|one| one.first_at).max().unwrap_or_default(),
        }
    }

    #[test]
    fn polls_stay_on_time_beside_24_operations_that_hang() {
        for (limit, least) in [(2, 30), (4, 100), (8, 120)] {
            let outcome = simulate(limit, 300);
            let [first, later] = outcome.honest_late;
            // Who hangs is known only afterwards: until then all slots may be held for one time limit.
            assert!(first <= TIMEOUT_MICROS + 1_000_000, "{limit} slots: {first} µs late at first");
            assert!(later <= 1_000_000, "{limit} slots: {later} µs late");
            let (honest, hanging) = (outcome.honest_polls, outcome.hanging_polls);
            assert!(honest >= least && hanging >= 1, "{limit} slots: {honest} and {hanging} polls");
            // No faster than all that hang can be found out, one time limit each, beside the slot that is kept free.
            let found_out = TIMEOUT_MICROS * i64::try_from(2 * HANGING / (limit - 1)).unwrap_or_default();
            let after = outcome.all_polled_after;
            assert!(after <= found_out, "{limit} slots: the last first poll was after {after} µs");
        }
    }

    #[test]
    fn one_slot_is_shared_in_turns_with_those_that_hang() {
        let outcome = simulate(1, 900);
        let [first, later] = outcome.honest_late;
        assert!(first.max(later) <= TIMEOUT_MICROS + 1_000_000, "{first} and {later} µs late");
        let (honest, hanging) = (outcome.honest_polls, outcome.hanging_polls);
        assert!(honest > 90 && hanging >= 1, "{honest} and {hanging} polls");
    }

    /// What came of very many answering operations at a service with four slots and answers that take a second.
    struct Crowd {
        polls: usize,
        /// How often an operation was put off, after the first ten seconds: until then all come once, and the service is not known.
        put_offs: usize,
    }

    /// So many operations that answered before and so many that hang, all due at once, for so many seconds.
    fn crowd(answering: usize, hanging: usize, seconds: i64) -> Crowd {
        const SLOTS: usize = 4;
        const SLOW_ANSWER_MICROS: i64 = 1_000_000;
        let at = |micros: i64| Timestamp::from_seconds(1_000).plus_micros(micros);
        let mut service = Service::new(at(0));
        // When each comes for a slot, or its poll ends.
        let mut comes_at = vec![0; answering + hanging];
        let mut polled_since = vec![None; answering + hanging];
        let mut outcome = Crowd { polls: 0, put_offs: 0 };
        for now in (0..seconds * 1_000_000).step_by(usize::try_from(STEP_MICROS).unwrap()) {
            for number in 0..comes_at.len() {
                if comes_at[number] > now {
                    continue;
                }
                let (history, takes) = if number < answering {
                    (PollHistory::Answered, SLOW_ANSWER_MICROS)
                } else {
                    (PollHistory::Hung, TIMEOUT_MICROS)
                };
                if let Some(began) = polled_since[number].take() {
                    service.free(history, began, at(now));
                    comes_at[number] = now + INTERVAL_MICROS;
                } else if service.take(history, SLOTS, at(now)) {
                    polled_since[number] = Some(at(now));
                    comes_at[number] = now + takes;
                    outcome.polls += usize::from(history == PollHistory::Answered);
                } else {
                    comes_at[number] =
                        service.put_off(history, SLOTS, TIMEOUT_MICROS, at(now)).micros() - at(0).micros();
                    outcome.put_offs += usize::from(now >= 10_000_000);
                }
            }
        }
        outcome
    }

    #[test]
    fn two_thousand_due_operations_come_back_by_their_turn() {
        let seconds = 310;
        let Crowd { polls, put_offs } = crowd(2_000, 0, seconds);
        // Each comes at least once in the longest wait, and as many more as the service can answer.
        let each_minute = put_offs / 5;
        assert!(each_minute <= 2_400, "{each_minute} put off each minute");
        assert!(polls >= 1_000, "{polls} polls in {seconds} seconds, of 1,240");
    }

    #[test]
    fn two_thousand_due_operations_beside_a_hung_one_come_back_slowly() {
        let Crowd { polls, put_offs } = crowd(2_000, 1, 70);
        assert!(put_offs <= 60 * 110, "{put_offs} put off in a minute");
        assert!(polls >= 180, "{polls} polls in 70 seconds");
    }

    #[test]
    fn hung_operations_use_their_half_when_nobody_else_is_there() {
        let now = Timestamp::from_seconds(1);
        let mut service = Service::new(now);
        let taken = (0..8).filter(|_| service.take(PollHistory::Hung, 8, now)).count();
        assert_eq!(taken, 4);
        assert!(service.take(PollHistory::Answered, 8, now));
        let mut service = Service::new(now);
        let later = now.plus_micros(TIMEOUT_MICROS);
        assert!(service.take(PollHistory::Hung, 1, now));
        service.free(PollHistory::Hung, now, later);
        assert!(service.take(PollHistory::Hung, 1, later), "nobody else wants it");
        service.free(PollHistory::Hung, later, later.plus_micros(TIMEOUT_MICROS));
        let later = later.plus_micros(TIMEOUT_MICROS);
        service.put_off(PollHistory::Answered, 1, TIMEOUT_MICROS, later);
        assert!(!service.take(PollHistory::Hung, 1, later), "it is the other one's turn");
        assert!(service.take(PollHistory::Answered, 1, later));
    }
}
