//! The rules of stepping: glitches, steps both ways, suspends, restarts; and what they mean for timers.

use super::*;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;
/// The wall clock when the boot-time clock says zero.
const EPOCH: i64 = 1_000_000 * SECOND;

/// A machine whose wall clock is off by what the test says.
struct Machine {
    timeline: Timeline,
    boot: i64,
    off_by: i64,
}

impl Machine {
    fn new() -> Self {
        let timeline = Timeline::start(0, Timestamp::from_micros(EPOCH), Timestamp::default(), None);
        Self { timeline, boot: 0, off_by: 0 }
    }

    fn after(&mut self, micros: i64) -> Reading {
        self.boot += micros;
        self.timeline.observe(self.boot, Timestamp::from_micros(EPOCH + self.boot + self.off_by))
    }

    /// Store time minus what a right clock would say.
    fn ahead(&self, reading: Reading) -> i64 {
        reading.now.micros() - EPOCH - self.boot
    }
}

#[test]
fn glitch_of_days_that_goes_away_leaves_no_trace() {
    for off_by in [3 * DAY, -3 * DAY, 6 * SECOND, -6 * SECOND] {
        let mut machine = Machine::new();
        machine.off_by = off_by;
        let glitch = machine.after(SECOND);
        assert_eq!((machine.ahead(glitch), glitch.news), (0, Some(News::Departed(off_by))));
        assert_eq!(machine.after(SECOND).news, None, "it is said once");
        machine.off_by = 0;
        let back = machine.after(SECOND);
        assert_eq!((machine.ahead(back), back.news), (0, Some(News::Returned(off_by))));
        assert_eq!(machine.timeline.departure(), None);
    }
}

#[test]
fn step_is_adopted_when_it_has_lasted_and_not_before() {
    for off_by in [HOUR, -HOUR] {
        let mut machine = Machine::new();
        machine.off_by = off_by;
        machine.after(0);
        assert_eq!(machine.after(299 * SECOND).adopt, None);
        let lasted = machine.after(SECOND);
        let step = lasted.adopt.expect("it has lasted");
        assert_eq!((machine.ahead(lasted), step.by_micros()), (0, off_by));
        machine.timeline.adopt(step);
        let after = machine.after(SECOND);
        assert_eq!((machine.ahead(after), after.news, after.adopt), (off_by, None, None));
    }
}

#[test]
fn another_step_before_the_first_was_adopted_waits_anew() {
    let mut machine = Machine::new();
    machine.off_by = HOUR;
    machine.after(0);
    machine.off_by = 2 * HOUR;
    assert_eq!(machine.after(200 * SECOND).news, Some(News::Departed(2 * HOUR)));
    assert_eq!(machine.after(200 * SECOND).adopt, None);
    assert!(machine.after(100 * SECOND).adopt.is_some());
}

#[test]
fn suspend_is_time_passing_because_both_clocks_advance() {
    let mut machine = Machine::new();
    let resumed = machine.after(8 * HOUR);
    assert_eq!((machine.ahead(resumed), resumed.news, resumed.adopt), (0, None, None));
}

#[test]
fn small_differences_are_followed_and_time_never_goes_back() {
    let mut machine = Machine::new();
    machine.off_by = 4 * SECOND;
    let forward = machine.after(SECOND);
    assert_eq!((machine.ahead(forward), forward.news), (4 * SECOND, None));
    machine.off_by = 0;
    let mut last = forward.now;
    for _ in 0..9 {
        let reading = machine.after(SECOND);
        assert!(reading.now >= last && reading.news.is_none());
        last = reading.now;
    }
    assert_eq!(last.micros(), EPOCH + machine.boot, "it was slowed down until it fits");
}

#[test]
fn restart_in_the_same_boot_does_not_believe_a_glitch() {
    let mut machine = Machine::new();
    machine.after(SECOND);
    let anchor = machine.timeline.anchor(7);
    let wall = Timestamp::from_micros(EPOCH + 2 * SECOND + 3 * DAY);
    let mut restarted = Timeline::start(2 * SECOND, wall, Timestamp::default(), Some(anchor));
    let reading = restarted.observe(2 * SECOND, wall);
    assert_eq!(reading.now.micros(), EPOCH + 2 * SECOND);
    assert_eq!(reading.news, Some(News::Departed(3 * DAY)));
}

#[test]
fn store_from_the_future_goes_on_and_waits_for_an_operator() {
    let wall = Timestamp::from_micros(EPOCH);
    let newest_fact = wall.plus_micros(3 * DAY);
    let mut timeline = Timeline::start(0, wall, newest_fact, None);
    for second in 0..1_000 {
        let reading = timeline.observe(second * SECOND, wall.plus_micros(second * SECOND));
        assert_eq!((reading.now, reading.adopt), (newest_fact.plus_micros(second * SECOND), None));
    }
    assert!(timeline.is_ahead_at_start());
    // Also after a restart, which knows only the anchor.
    let anchor = timeline.anchor(7);
    let mut again = Timeline::start(1_000 * SECOND, wall, newest_fact, Some(anchor)).adopting_after(1);
    for second in 1_000..1_010 {
        assert_eq!(again.observe(second * SECOND, wall.plus_micros(second * SECOND)).adopt, None);
    }
    let step = again.step_to_wall().expect("it is off");
    again.adopt(step);
    let right = again.observe(1_010 * SECOND, wall.plus_micros(1_010 * SECOND));
    assert_eq!((right.now, right.news), (wall.plus_micros(1_010 * SECOND), None));
}

#[test]
fn timers_set_before_a_step_are_moved_and_later_ones_are_not() {
    let at = Timestamp::from_seconds;
    let step = |from, to| Step { from: at(from), to: at(to) };
    let steps = Steps::new([step(1_000, 4_600), step(5_000, 5_100)]);
    for (set_at, by) in [(500, 3_700), (1_001, 3_700), (4_600, 100), (5_099, 100), (5_100, 0), (9_000, 0)] {
        assert_eq!(steps.since(at(set_at), at(9_000)), by * SECOND, "{set_at}");
        assert_eq!(steps.carried(at(set_at), None), at(set_at + by), "{set_at}");
    }
}

#[test]
fn timers_set_before_a_step_back_are_brought_back_and_later_ones_are_not() {
    let at = Timestamp::from_seconds;
    let step = |from, to| Step { from: at(from), to: at(to) };
    let steps = Steps::new([step(1_000, 9_000), step(9_500, 1_500)]);
    for (set_at, now, by) in [
        // Between the two steps.
        (9_400, 1_500, -8_000),
        (9_505, 1_500, -8_005),
        // Before both: they cancel out.
        (900, 1_500, 0),
        // After both.
        (1_500, 1_500, 0),
        (1_600, 1_700, 0),
        (1_701, 1_700, 0),
    ] {
        assert_eq!(steps.since(at(set_at), at(now)), by * SECOND, "{set_at}");
    }
    assert_eq!(steps.carried(at(1_600), None), at(1_600));
}

#[test]
fn timer_that_is_older_than_a_step_back_is_long_is_moved_by_it() {
    let at = Timestamp::from_seconds;
    let steps = Steps::new([Step { from: at(9_500), to: at(9_300) }]);
    for (set_at, now, by) in [
        (9_000, 9_300, -200),
        (9_000, 9_900, -200),
        // Between the end of the step and its start: moved at once, while now has not come by yet.
        (9_301, 9_300, -200),
        (9_400, 9_300, -200),
        // Time has come by: it was set after the step.
        (9_400, 9_410, 0),
    ] {
        assert_eq!(steps.since(at(set_at), at(now)), by * SECOND, "{set_at} at {now}");
    }
}

#[test]
fn step_back_over_a_part_of_a_step_forward_leaves_the_rest_of_it() {
    let at = Timestamp::from_seconds;
    let step = |from, to| Step { from: at(from), to: at(to) };
    // An hour ahead and, 100 s later, 40 min back.
    let mut steps = Steps::new([step(10_000, 13_600), step(13_700, 11_300)]);
    for (set_at, by) in [(5_000, 1_200), (9_999, 1_200), (13_650, -2_400), (11_300, 0)] {
        assert_eq!(steps.since(at(set_at), at(11_300)), by * SECOND, "{set_at}");
    }
    // And further back than it had gone ahead: to where the first timers were set.
    steps.push(step(11_310, 9_000));
    for (set_at, by) in [(5_000, -1_110), (9_900, -1_110), (11_305, -2_310), (9_000, 0)] {
        assert_eq!(steps.since(at(set_at), at(9_000)), by * SECOND, "{set_at}");
    }
}

#[test]
fn time_ahead_of_now_is_never_moved_ahead() {
    let at = Timestamp::from_seconds;
    let steps = Steps::new([Step { from: at(1_000), to: at(4_600) }]);
    // Somebody knows of a step back that is not known here yet.
    assert_eq!(steps.since(at(5_000), at(4_700)), 0);
}

#[test]
fn steps_that_are_new_are_told_from_those_that_were_seen() {
    let at = Timestamp::from_seconds;
    let mut steps =
        Steps::new((1..).take(MAX_STEPS).map(|n| Step { from: at(n * 100), to: at(n * 100 + 10) }));
    let seen = steps.clone();
    assert_eq!(steps.not_in(&seen), 0);
    steps.push(Step { from: at(9_000), to: at(8_000) });
    assert_eq!(steps.as_slice().len(), MAX_STEPS);
    assert_eq!(steps.not_in(&seen), -1_000 * SECOND, "also when the oldest was forgotten");
}

#[test]
fn time_read_before_a_step_back_is_carried_over_it() {
    let at = Timestamp::from_seconds;
    let mut steps = Steps::new([Step { from: at(9_500), to: at(1_500) }]);
    for (read_at, now, carried) in [
        // Read before, and by a clock that has not heard of it for seven seconds.
        (9_490, 1_500, 1_490),
        (9_507, 1_507, 1_507),
        // Read after, also by a clock that is a little ahead.
        (1_500, 1_500, 1_500),
        (1_504, 1_500, 1_504),
        // Time has come by it once more.
        (9_490, 9_495, 9_490),
        // No clock of this store was ever there.
        (20_000, 1_500, 20_000),
    ] {
        assert_eq!(steps.carried(at(read_at), Some(at(now))), at(carried), "{read_at} at {now}");
    }
    assert_eq!(steps.carried(at(9_490), None), at(9_490), "nothing is known of now");
    // A clock that is behind and knows of a step forward.
    let forward = Steps::new([Step { from: at(1_000), to: at(4_600) }]);
    for (read_at, now, carried) in [(990, 4_600, 4_590), (2_800, 4_700, 4_700), (4_650, 4_700, 4_650)] {
        assert_eq!(forward.carried(at(read_at), Some(at(now))), at(carried), "{read_at} at {now}");
    }
    // What is said to be now was before the step: it explains nothing.
    assert_eq!(forward.carried(at(990), Some(at(900))), at(4_590));
    // Two of which it has not heard.
    steps.push(Step { from: at(1_520), to: at(520) });
    assert_eq!(steps.carried(at(9_525), Some(at(525))), at(525));
    assert_eq!(steps.carried(at(1_525), Some(at(525))), at(525));
}
