//! What a node makes of a step that it sees, and of what the others see: the rules, without a clock or a store in them.
//!
//! Every case comes to an end: most see it, or as many agree with the store, or it has lasted as long as a step has to.

use std::collections::BTreeMap;

use domain::Timestamp;
use domain::planted::{Bug, planted};
use domain::timeline::FOLLOWED_MICROS;
use store::{SILENT_AFTER_SECONDS, Sight};

/// A node that disagrees for this long with as many as see what it sees has the odd clock: three heartbeats.
const ODD_AFTER_SECONDS: u64 = 30;

/// Nothing is agreed on sooner: after one heartbeat of each all who live are there, also those that were forgotten while nobody gave one.
const AGREED_AFTER_SECONDS: u64 = 10;

/// What a node does about the step that it sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on by its own boot-time clock, and looks again.
    Wait,
    /// The server's clock was set: it is corrected for all.
    Correct,
    /// This machine's clock is the odd one: it goes on with the store's.
    Follow,
    /// Everybody disagrees with everybody: the server's clock decides, and what is held keeps the time that it has left.
    Adopt,
}

/// Another node that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// The step that it sees; none if it sees none.
    pub by_micros: Option<i64>,
    /// Whether it was heard of since this node disagrees: what it does not see it does not see then.
    pub was_heard: bool,
}

/// What to do about a step that has lasted so long, among these others.
pub fn verdict(by_micros: i64, lasted: u64, adopt_after: u64, others: &[Other]) -> Verdict {
    let same = |other: &&Other| other.by_micros.is_some_and(|seen| is_same(seen, by_micros));
    let with_us = 1 + others.iter().filter(same).count();
    let most = with_us * 2 > 1 + others.len() || planted(Bug::CorrectedWithoutMajority);
    if most && lasted >= AGREED_AFTER_SECONDS {
        return Verdict::Correct;
    }
    let with_the_store = others.iter().filter(|other| other.was_heard && other.by_micros.is_none()).count();
    if lasted < ODD_AFTER_SECONDS {
        return Verdict::Wait;
    }
    let has_lasted = lasted >= adopt_after;
    match with_the_store {
        0 if has_lasted && !planted(Bug::DisagreementNotEnded) => Verdict::Adopt,
        0 => Verdict::Wait,
        _ if planted(Bug::OddClockNotFollowed) => Verdict::Wait,
        agreeing if agreeing >= with_us || has_lasted => Verdict::Follow,
        _ => Verdict::Wait,
    }
}

fn is_same(seen: i64, by_micros: i64) -> bool {
    seen.saturating_sub(by_micros).saturating_abs() <= FOLLOWED_MICROS
}

/// Which of the others live, as this node has watched it by its own boot-time clock since it disagrees: the clock that they are compared by
/// may be the one that was set. A node lives while its heartbeat changes; one that was never watched before is taken for living at first.
#[derive(Default)]
pub struct Watch(BTreeMap<String, Watched>);

struct Watched {
    heartbeat_at: Timestamp,
    changed_at_boot: i64,
    was_heard: bool,
}

impl Watch {
    /// The others that live, after this look at what all have written down.
    pub fn look(&mut self, own_id: &str, sights: &[Sight], boot: i64) -> Vec<Other> {
        self.0.retain(|id, _| sights.iter().any(|sight| sight.node_id == *id));
        let silent_after = i64::try_from(SILENT_AFTER_SECONDS * 1_000_000).unwrap_or(i64::MAX);
        let others = sights.iter().filter(|sight| sight.node_id != own_id);
        let living = others.filter_map(|Sight { node_id, heartbeat_at, by_micros }| {
            let first = Watched { heartbeat_at: *heartbeat_at, changed_at_boot: boot, was_heard: false };
            let watched = self.0.entry(node_id.clone()).or_insert(first);
            if watched.heartbeat_at != *heartbeat_at {
                *watched = Watched { heartbeat_at: *heartbeat_at, changed_at_boot: boot, was_heard: true };
            }
            let lives = boot.saturating_sub(watched.changed_at_boot) < silent_after;
            lives.then_some(Other { by_micros: *by_micros, was_heard: watched.was_heard })
        });
        living.collect()
    }

    /// It agrees again, or all have jumped.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;
    const ADOPT_AFTER: u64 = 300;

    fn other(by_micros: Option<i64>) -> Other {
        Other { by_micros, was_heard: true }
    }

    #[test]
    fn step_is_corrected_when_most_living_nodes_see_it() {
        let [hour, none] = [other(Some(HOUR)), other(None)];
        let about = other(Some(HOUR + 1_000_000));
        let back = other(Some(-HOUR));
        for (others, expected) in [
            (vec![], Verdict::Correct),
            (vec![about], Verdict::Correct),
            (vec![hour, none], Verdict::Correct),
            (vec![none], Verdict::Wait),
            (vec![back], Verdict::Wait),
            (vec![hour, none, none], Verdict::Wait),
        ] {
            assert_eq!(
                verdict(HOUR, 0, ADOPT_AFTER, &others),
                Verdict::Wait,
                "not all were heard: {others:?}"
            );
            assert_eq!(verdict(HOUR, 10, ADOPT_AFTER, &others), expected, "{others:?}");
        }
    }

    #[test]
    fn step_without_a_majority_comes_to_an_end() {
        let [hour, none, back] = [other(Some(HOUR)), other(None), other(Some(-HOUR))];
        let unheard = Other { by_micros: None, was_heard: false };
        for (others, after_half_a_minute, after_the_adoption_time) in [
            // This machine's clock is the odd one.
            (vec![none], Verdict::Follow, Verdict::Follow),
            // Halves: as many agree with the store.
            (vec![hour, none, none], Verdict::Follow, Verdict::Follow),
            // More see it than agree with the store, and not half of all do.
            (vec![hour, none, back, back], Verdict::Wait, Verdict::Follow),
            // Everybody sees something else.
            (vec![back], Verdict::Wait, Verdict::Adopt),
            (vec![hour, back, back], Verdict::Wait, Verdict::Adopt),
            // It has said nothing since.
            (vec![unheard], Verdict::Wait, Verdict::Adopt),
        ] {
            assert_eq!(verdict(HOUR, 30, ADOPT_AFTER, &others), after_half_a_minute, "{others:?}");
            assert_eq!(
                verdict(HOUR, ADOPT_AFTER, ADOPT_AFTER, &others),
                after_the_adoption_time,
                "{others:?}"
            );
        }
    }

    #[test]
    fn node_lives_while_its_heartbeat_changes_whatever_it_says() {
        let sight = |node_id: &str, seconds| Sight {
            node_id: node_id.to_owned(),
            heartbeat_at: Timestamp::from_seconds(seconds),
            by_micros: None,
        };
        let mut watch = Watch::default();
        let mut look = |lives_at: i64, boot_seconds: i64| {
            let sights = [sight("own", 0), sight("lives", lives_at), sight("dead", 1_000_000)];
            watch.look("own", &sights, boot_seconds * 1_000_000)
        };
        let unheard = Other { by_micros: None, was_heard: false };
        assert_eq!(look(5_000, 0), [unheard, unheard]);
        // The server's clock went back by more than an hour.
        assert_eq!(look(1_000, 10), [other(None), unheard]);
        assert_eq!(look(1_010, 29), [other(None), unheard]);
        assert_eq!(look(1_020, 30), [other(None)]);
        assert_eq!(look(1_020, 60), []);
    }
}
