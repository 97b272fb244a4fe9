//! Claims: one owner at a time, an end that counts at equality, a version that only rises.

use super::*;

const NOW: Timestamp = Timestamp::from_seconds(1_000);
const LEASE: Lease = Lease::DEFAULT;

fn owner(name: &str) -> OwnerId {
    OwnerId::new(name)
}

/// A claim taken by this owner at `NOW`.
fn taken_by(name: &str) -> Claim {
    acquire(None, &owner(name), NOW, LEASE).unwrap()
}

fn after(seconds: u64) -> Timestamp {
    NOW.plus_seconds(seconds)
}

#[test]
fn a_claim_that_nobody_holds_is_taken_with_version_zero() {
    let claim = taken_by("a");
    let expected =
        Claim { owner: owner("a"), lease_expires_at: after(60), heartbeat_at: NOW, claim_version: 0 };
    assert_eq!(claim, expected);
    assert_eq!(claim.fence(), Fence { owner: owner("a"), claim_version: 0 });
}

// conforms: A24
#[test]
fn a_claim_is_taken_from_another_only_when_its_lease_has_ended_and_equality_is_ended() {
    let claim = taken_by("a");
    for too_early in [NOW, after(59), after(60).plus_micros(-1)] {
        assert!(claim.is_live(too_early));
        assert_eq!(acquire(Some(&claim), &owner("b"), too_early, LEASE), Err(Refusal::ClaimHeld));
    }
    for late_enough in [after(60), after(3_600)] {
        assert!(!claim.is_live(late_enough));
        let taken = acquire(Some(&claim), &owner("b"), late_enough, LEASE).unwrap();
        assert_eq!((taken.owner, taken.claim_version), (owner("b"), 1));
        assert_eq!(taken.heartbeat_at, late_enough);
    }
}

#[test]
fn an_owner_does_not_take_its_own_live_claim_again() {
    assert_eq!(acquire(Some(&taken_by("a")), &owner("a"), after(1), LEASE), Err(Refusal::ClaimHeld));
}

// conforms: A32
#[test]
fn after_a_crash_the_end_of_the_lease_lets_another_go_on() {
    let crashed = taken_by("a");
    let successor = acquire(Some(&crashed), &owner("b"), after(60), LEASE).unwrap();
    assert_eq!(admit(Some(&successor), &successor.fence()), Ok(()));
    assert_eq!(admit(Some(&successor), &crashed.fence()), Err(Refusal::ClaimLost));
}

// conforms: A27 A28
#[test]
fn renewing_is_a_compare_and_swap_that_keeps_long_work_claimed() {
    let mut claim = taken_by("a");
    let mut now = NOW;
    for renewals in 1..=1_000 {
        now = LEASE.renew_at(now);
        let before = claim.fence();
        claim = renew(&claim, &before, now, LEASE).unwrap();
        assert_eq!((claim.claim_version, claim.heartbeat_at), (renewals, now));
        assert_eq!(claim.lease_expires_at, now.plus_seconds(60));
        assert_eq!(renew(&claim, &before, now, LEASE), Err(Refusal::ClaimLost), "a version swaps once");
        assert_eq!(acquire(Some(&claim), &owner("b"), now.plus_seconds(59), LEASE), Err(Refusal::ClaimHeld));
    }
}

#[test]
fn an_owner_whose_lease_ended_may_renew_as_long_as_nobody_took_it() {
    let claim = taken_by("a");
    let renewed = renew(&claim, &claim.fence(), after(90), LEASE).unwrap();
    assert_eq!((renewed.claim_version, renewed.lease_expires_at), (1, after(150)));
}

#[test]
fn a_fence_needs_both_the_owner_and_the_version() {
    let claim = Claim { claim_version: 7, ..taken_by("a") };
    for (name, claim_version, admitted) in [("a", 7, true), ("a", 6, false), ("a", 8, false), ("b", 7, false)]
    {
        let fence = Fence { owner: owner(name), claim_version };
        let expected = if admitted { Ok(()) } else { Err(Refusal::ClaimLost) };
        assert_eq!(admit(Some(&claim), &fence), expected, "{fence:?}");
        assert_eq!(release(&claim, &fence, NOW).map(|_| ()), expected, "{fence:?}");
        assert_eq!(renew(&claim, &fence, NOW, LEASE).map(|_| ()), expected, "{fence:?}");
    }
    assert_eq!(admit(None, &claim.fence()), Err(Refusal::ClaimLost));
}

#[test]
fn a_released_claim_is_free_at_once_and_keeps_its_version() {
    let claim = taken_by("a");
    let released = release(&claim, &claim.fence(), after(10)).unwrap();
    assert_eq!((released.lease_expires_at, released.claim_version), (after(10), 0));
    let next = acquire(Some(&released), &owner("b"), after(10), LEASE).unwrap();
    assert_eq!(next.claim_version, 1);
}

#[test]
fn releasing_late_does_not_prolong_the_lease() {
    let claim = taken_by("a");
    let released = release(&claim, &claim.fence(), after(500)).unwrap();
    assert_eq!(released.lease_expires_at, after(60));
}

// conforms: A29
#[test]
fn an_owner_that_could_not_renew_is_refused_every_write() {
    let paused = taken_by("a");
    let current = acquire(Some(&paused), &owner("b"), after(60), LEASE).unwrap();
    assert_eq!(renew(&current, &paused.fence(), after(61), LEASE), Err(Refusal::ClaimLost));
    assert_eq!(release(&current, &paused.fence(), after(61)), Err(Refusal::ClaimLost));
    assert_eq!(admit(Some(&current), &paused.fence()), Err(Refusal::ClaimLost));
}

#[test]
fn a_record_whose_own_limit_has_passed_is_taken_from_a_live_owner() {
    let claim = taken_by("a");
    let taken = take_over(&claim, &owner("b"), after(5), LEASE);
    assert_eq!((&taken.owner, taken.claim_version), (&owner("b"), 1));
    assert_eq!(admit(Some(&taken), &claim.fence()), Err(Refusal::ClaimLost));
}

// conforms: A21
#[test]
fn over_any_sequence_versions_never_fall_and_an_old_fence_is_refused_for_ever() {
    for seed in 0..500 {
        let mut random = seed;
        let mut now = NOW;
        let mut claim: Option<Claim> = None;
        let mut old_fences: Vec<Fence> = Vec::new();
        for _ in 0..60 {
            let step = next(&mut random);
            now = now.plus_seconds(step % 45);
            let who = owner(["a", "b", "c"][index(step >> 8, 3)]);
            let known = claim.as_ref().map(Claim::fence).into_iter().chain(old_fences.iter().cloned());
            let known: Vec<Fence> = known.collect();
            let outcome = match (step >> 16) % 4 {
                0 => acquire(claim.as_ref(), &who, now, LEASE).ok(),
                1 => claim.as_ref().map(|claim| take_over(claim, &who, now, LEASE)),
                choice => claim.as_ref().and_then(|claim| {
                    let fence = &known[index(step >> 24, known.len())];
                    let decided = if choice == 2 {
                        renew(claim, fence, now, LEASE)
                    } else {
                        release(claim, fence, now)
                    };
                    assert_eq!(decided.is_ok(), *fence == claim.fence());
                    decided.ok()
                }),
            };
            if let Some(newer) = outcome {
                if let Some(older) = &claim {
                    assert!(newer.claim_version >= older.claim_version);
                    if newer.claim_version > older.claim_version {
                        old_fences.push(older.fence());
                    } else {
                        assert_eq!(newer.owner, older.owner, "a version has one owner");
                    }
                }
                claim = Some(newer);
            }
            for old in &old_fences {
                assert_eq!(admit(claim.as_ref(), old), Err(Refusal::ClaimLost));
            }
        }
        assert!(old_fences.len() > 5, "too little happened to prove anything");
    }
}

// conforms: A26
#[test]
fn leases_are_bounded_and_renewed_often_enough_to_miss_one() {
    let lease = |field| Err(Refusal::InvalidPolicy { field });
    for (seconds, renew_every) in [(30, 10), (30, 15), (60, 20), (120, 60), (120, 1)] {
        let lease = Lease::new(seconds, renew_every).unwrap();
        assert_eq!(lease.expires_at(NOW), after(u64::from(seconds)));
        assert_eq!(lease.renew_at(NOW), after(u64::from(renew_every)));
    }
    for seconds in [0, 1, 29, 121, u32::MAX] {
        assert_eq!(Lease::new(seconds, 10), lease("lease_seconds"));
    }
    for renew_every in [0, 31, 60, u32::MAX] {
        assert_eq!(Lease::new(60, renew_every), lease("renew_every_seconds"));
    }
    assert_eq!(Lease::new(60, 20), Ok(Lease::DEFAULT));
}

/// Splitmix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn index(random: u64, length: usize) -> usize {
    usize::try_from(random % length as u64).unwrap()
}
