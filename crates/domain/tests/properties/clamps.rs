//! A million hints, and none leaves the host's bounds.

use domain::policy::{
    Hint, KindPolicy, RETRY_AFTER_CEILING_SECONDS, TTL_CEILING_SECONDS, TtlHints, UnknownPolicy,
};
use domain::{Jitter, Refusal, Timestamp};

const HINTS: u32 = 1_000_000;

/// Splitmix64: quick, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From the first to the last, both included.
    fn within(&mut self, first: u64, last: u64) -> u64 {
        first + self.next() % (last - first + 1)
    }

    fn within_u32(&mut self, first: u32, last: u32) -> u32 {
        u32::try_from(self.within(u64::from(first), u64::from(last))).expect("it is between two u32")
    }

    fn jitter(&mut self) -> Jitter {
        Jitter(u16::try_from(self.within(0, u64::from(u16::MAX))).expect("it is a u16"))
    }

    fn hint(&mut self) -> Hint {
        const WORDS: [&str; 12] = [
            "NaN",
            "1e308",
            "inf",
            "-inf",
            "5.5",
            "",
            "-",
            "99999999999999999999",
            "-99999999999999999999",
            "Wed, 21 Oct 2015 07:28:00 GMT",
            "+7",
            "-0",
        ];
        match self.next() % 8 {
            0 => Hint::Absent,
            1 => Hint::Invalid,
            2 => Hint::parse(WORDS[usize::try_from(self.next() % 12).expect("it is below twelve")]),
            3 => Hint::Seconds(self.next().cast_signed()),
            4 => Hint::Seconds(-i64::from(self.within_u32(0, 1_000))),
            5 => Hint::Seconds([i64::MIN, i64::MAX, 0, 1, -1][usize::from(self.jitter().0 % 5)]),
            _ => Hint::Seconds(i64::from(self.within_u32(0, 100_000))),
        }
    }

    fn policy(&mut self) -> KindPolicy {
        let min = self.within_u32(1, RETRY_AFTER_CEILING_SECONDS);
        let max = self.within_u32(min, RETRY_AFTER_CEILING_SECONDS);
        let first_backoff = self.within_u32(1, RETRY_AFTER_CEILING_SECONDS);
        KindPolicy {
            min_retry_after_seconds: min,
            max_retry_after_seconds: max,
            default_retry_after_seconds: self.within_u32(min, max),
            max_ttl_seconds: self.within(1, TTL_CEILING_SECONDS),
            jitter_permille: u16::try_from(self.within(0, 1_000)).expect("it is at most a thousand"),
            poll_error_backoff_seconds: first_backoff,
            max_poll_error_backoff_seconds: self.within_u32(first_backoff, RETRY_AFTER_CEILING_SECONDS),
            unknown_policy: UnknownPolicy::Terminal,
            ..KindPolicy::default()
        }
    }
}

// conforms: O36 O38 O40 O41 O42
#[test]
fn a_million_hints_stay_within_the_hosts_bounds() {
    let mut random = Random(55);
    let mut policy = KindPolicy::default();
    let mut tried = 0;
    let (mut clamped, mut elapsed) = (0, 0);
    while tried < HINTS {
        if tried.is_multiple_of(16) {
            policy = if tried.is_multiple_of(64) { KindPolicy::default() } else { random.policy() };
            assert_eq!(policy.check(), Ok(()));
        }
        let now = Timestamp::from_micros(random.next().cast_signed() >> 2);
        let (retry_hint, fail_after, action_ttl) = (random.hint(), random.hint(), random.hint());
        tried += 3;

        let (min, max) = (policy.min_retry_after_seconds, policy.max_retry_after_seconds);
        let retry = policy.retry_after(retry_hint).seconds;
        assert!((min..=max).contains(&retry), "{retry_hint:?} gave {retry} under {policy:?}");
        if let Hint::Seconds(asked) = retry_hint {
            assert_eq!(i64::from(retry), asked.clamp(i64::from(min), i64::from(max)), "{policy:?}");
            clamped += u32::from(asked != i64::from(retry));
        }

        let jitter = random.jitter();
        let next = policy.next_poll_at(retry, jitter, now);
        let longest = now.plus_seconds(u64::from(max));
        assert!(next >= now.plus_seconds(u64::from(min)) && next <= longest, "{next:?} after {now:?}");
        let hint = random.hint();
        let not_before = policy.not_before(hint, jitter, now);
        assert!(
            not_before.is_none_or(|at| at >= now.plus_seconds(u64::from(min)) && at <= longest),
            "{hint:?}"
        );
        assert_eq!(not_before.is_none(), hint == Hint::Absent);
        let after_error = policy.next_poll_after_error(random.within_u32(0, u32::MAX), jitter, now);
        let longest = min.max(policy.max_poll_error_backoff_seconds);
        assert!(after_error >= now.plus_seconds(u64::from(min)), "{after_error:?} after {now:?}");
        assert!(after_error <= now.plus_seconds(u64::from(longest)), "{after_error:?} after {now:?}");

        let deadline_at = random.next().is_multiple_of(2).then(|| now.plus_micros(random.hint_micros()));
        let hints = TtlHints { fail_after, action_ttl, deadline_at };
        match policy.expires_at(hints, now) {
            Ok(expires_at) => {
                assert!(expires_at > now, "{hints:?} ends before it begins");
                assert!(
                    expires_at <= now.plus_seconds(policy.max_ttl_seconds),
                    "{hints:?} outlives the host"
                );
                assert!(deadline_at.is_none_or(|deadline| expires_at <= deadline), "{hints:?}");
                for asked in [fail_after, action_ttl] {
                    if let Hint::Seconds(seconds @ 1..) = asked {
                        assert!(expires_at <= now.plus_seconds(seconds.unsigned_abs()), "{hints:?}");
                    }
                }
            }
            Err(refusal) => {
                assert_eq!(refusal, Refusal::DeadlineElapsed);
                assert!(deadline_at.is_some_and(|deadline| deadline <= now), "{hints:?}");
                elapsed += 1;
            }
        }
    }
    assert!(tried >= HINTS && clamped > HINTS / 20 && elapsed > HINTS / 100, "{clamped} {elapsed}");
}

impl Random {
    /// Microseconds from a day before to a day after.
    fn hint_micros(&mut self) -> i64 {
        const DAY: i64 = 86_400_000_000;
        i64::try_from(self.within(0, 2 * DAY.unsigned_abs())).expect("two days fit") - DAY
    }
}
