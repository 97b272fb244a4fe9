//! The time of the store: where it stands and where it has jumped, what a jump does to what is held, and to whoever read the time before it.

use domain::timeline::{Anchor, Step};
use domain::{Fact, Lease, RecordId, RecordKind};
use store::{Adopted, CLOCK, DuePlace, StoreError};

use crate::given::*;
use crate::records::{event, published, run, started};
use crate::subject::on_every_store;

const ANCHOR: Anchor = Anchor { boot: 7, offset_micros: -12, ahead_at_start: true };

/// An hour.
fn forward() -> Step {
    Step { from: at(100), to: at(3_700) }
}

#[tokio::test]
async fn kept_clock_is_read_as_it_was_kept() {
    on_every_store(async |store| {
        assert_eq!(store.clock().await.unwrap().anchor, None);
        let moved = Anchor { offset_micros: 3_600_000_000, ahead_at_start: false, ..ANCHOR };
        for (anchor, step) in [(ANCHOR, None), (moved, Some(forward()))] {
            store.keep_clock(anchor, step.map(Into::into)).await.unwrap();
            let known = store.clock().await.unwrap();
            assert_eq!(known.anchor, Some(anchor));
            assert_eq!(known.steps.as_slice(), step.as_slice());
        }
    })
    .await;
}

#[tokio::test]
async fn step_is_kept_with_its_author_and_what_is_left_to_move() {
    on_every_store(async |store| {
        let by = "administrator:joan";
        let back = Step { from: at(3_800), to: at(200) };
        store.keep_clock(ANCHOR, Some(forward().into())).await.unwrap();
        store.keep_clock(ANCHOR, Some(Adopted { step: back, by: by.into() })).await.unwrap();
        let known = store.clock().await.unwrap();
        assert_eq!(known.steps.as_slice(), [forward(), back]);
        assert_eq!(known.adopted_by, [CLOCK.into(), by.into()]);
        assert_eq!(known.unmoved(), Some(Adopted { step: back, by: by.into() }));
        let revision = known.revision;
        for (step, passes_left, expected) in [(forward(), 0, 2), (back, 1, 1), (back, 0, 0)] {
            store.timers_moved(step, passes_left).await.unwrap();
            let known = store.clock().await.unwrap();
            assert_eq!((known.passes_left, known.revision), (expected, revision), "{step:?}");
        }
        assert_eq!(store.clock().await.unwrap().unmoved(), None);
        // Steps that follow push out the oldest, each with its author.
        for number in 0..16 {
            let step = Step { from: at(5_000 + number), to: at(5_100 + number) };
            store.keep_clock(ANCHOR, Some(Adopted { step, by: format!("{number}").into() })).await.unwrap();
        }
        let names: Vec<_> = (0..16).map(|number| number.to_string().into()).collect();
        assert_eq!(store.clock().await.unwrap().adopted_by, names);
    })
    .await;
}

#[tokio::test]
async fn step_moves_what_is_held_and_nothing_else() {
    for step in [forward(), Step { from: at(100), to: at(50) }] {
        on_every_store(async |store| {
            write(&*store, &job("held"), vec![created()], at(0)).await;
            write(&*store, &job("free"), vec![created_with(|new| new.due_at = Some(at(5_000)))], at(0)).await;
            let held = taken(&*store, &job("held"), "node-a", at(90)).await;
            store.keep_clock(ANCHOR, Some(step.into())).await.unwrap();
            let claim = store.load(&job("held")).await.unwrap().unwrap().claim.unwrap();
            assert_eq!(claim.lease_expires_at, held.claim.lease_expires_at.plus_micros(step.by_micros()));
            assert_eq!(claim.claim_version, held.claim.claim_version);
            assert_eq!(store.earliest_due(RecordKind::Job).await, Ok(Some(claim.lease_expires_at)));
            let early = take("node-b", claim.lease_expires_at.plus_micros(-1), 1);
            assert_eq!(store.take(&job("held"), early).await, Err(StoreError::ClaimHeld));
            let later = DuePlace { at: at(4_000), id: None };
            let due = store.due_between(RecordKind::Job, later, at(6_000), 10).await;
            assert_eq!(due, Ok(vec![(at(5_000), job("free"))]));
        })
        .await;
    }
}

/// A record of this kind, and how it begins.
fn begun(kind: RecordKind) -> (RecordId, Fact) {
    match kind {
        RecordKind::Job => (job("a"), created()),
        RecordKind::Operation => (operation("a"), accepted(&job("a"), at(5))),
        RecordKind::Event => (event("a"), published("parcel", None)),
        RecordKind::Run => (run("a"), started("line", None)),
    }
}

#[tokio::test]
async fn step_moves_what_is_held_of_every_kind() {
    on_every_store(async |store| {
        let mut held = Vec::new();
        for (id, fact) in RecordKind::ALL.map(begun) {
            write(&*store, &id, vec![fact], at(0)).await;
            held.push((id.clone(), taken(&*store, &id, "node-a", at(90)).await.claim.lease_expires_at));
        }
        store.keep_clock(ANCHOR, Some(forward().into())).await.unwrap();
        for (id, ended_at) in held {
            let claim = store.load(&id).await.unwrap().unwrap().claim.unwrap();
            assert_eq!(claim.lease_expires_at, ended_at.plus_seconds(3_600), "{id}");
        }
    })
    .await;
}

#[tokio::test]
async fn time_that_was_read_before_a_step_is_carried_over_it() {
    on_every_store(async |store| {
        for name in ["a", "b"] {
            write(&*store, &job(name), vec![created()], at(0)).await;
        }
        let held = taken(&*store, &job("a"), "node-a", at(90)).await;
        store.keep_clock(ANCHOR, Some(forward().into())).await.unwrap();
        let expected = Lease::DEFAULT.expires_at(at(3_699));
        let renewed = store.renew(&job("a"), held.claim.fence(), at(99), Lease::DEFAULT).await.unwrap();
        assert_eq!(renewed.claim.lease_expires_at, expected);
        let ready = store.take_ready(LANE.into(), take("node-b", at(99), 10)).await.unwrap();
        assert_eq!(ids(&ready), ["work-b"]);
        assert_eq!(ready[0].claim.lease_expires_at, expected);
    })
    .await;
}

#[tokio::test]
async fn what_is_due_is_listed_in_order_page_by_page() {
    on_every_store(async |store| {
        for (name, due) in [("c", 10), ("a", 5), ("d", 11), ("b", 10)] {
            let later = created_with(|new| new.due_at = Some(at(due)));
            write(&*store, &job(name), vec![later], at(0)).await;
        }
        let mut after = DuePlace { at: at(5), id: None };
        let mut listed = Vec::new();
        loop {
            let page = store.due_between(RecordKind::Job, after, at(10), 2).await.unwrap();
            let Some((last_at, last)) = page.last().cloned() else { break };
            after = DuePlace { at: last_at, id: Some(last) };
            listed.extend(page);
        }
        assert_eq!(listed, [(5, "a"), (10, "b"), (10, "c")].map(|(due, name)| (at(due), job(name))));
    })
    .await;
}
