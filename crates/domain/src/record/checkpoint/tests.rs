//! When a checkpoint is due, and what it holds.

use super::*;
use crate::operation::{
    Accepted, Cancelability, Ending, Operation, OperationFact, OperationLink, Polled, ReportedStatus,
};
use crate::policy::KindPolicy;
use crate::record::apply;
use crate::{AttemptId, JobId, OperationId, Timestamp};

const AFTER: NonZeroU64 = NonZeroU64::new(4).unwrap();

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

fn operation() -> Operation {
    let accepted = Accepted {
        link: OperationLink {
            job_id: JobId::new("work-1"),
            attempt_id: AttemptId::new("attempt-1"),
            kind: "render".to_owned(),
            specialist: "render-farm".to_owned(),
            circle: None,
        },
        handle: None,
        cancelability: Cancelability::Cancelable,
        interval_seconds: 5,
        progress_hint: None,
        invalid_hint: false,
        next_poll_at: at(5),
        expires_at: at(900),
        policy: KindPolicy::default(),
        bounded_by: None,
        asked_retry_after_seconds: None,
        asked_ttl_seconds: None,
        external_job_id: None,
    };
    Operation::new(OperationId::new("op-1"), &accepted, at(0))
}

fn polled(seconds: i64) -> Fact {
    Fact::Operation(OperationFact::Polled(Polled {
        status: Some(ReportedStatus::Running),
        interval_seconds: None,
        asked_retry_after_seconds: None,
        progress_hint: None,
        progress: None,
        expires_at: None,
        error: None,
        invalid_hint: false,
        next_poll_at: at(seconds + 5),
    }))
}

fn ended() -> Operation {
    let mut record = Some(operation().into());
    let end = Fact::Operation(OperationFact::Resolved(Ending::TimedOut));
    apply(&mut record, &OperationId::new("op-1").into(), &end, at(5)).expect("it fits");
    record.as_ref().and_then(Record::as_operation).cloned().expect("it is there")
}

#[test]
fn checkpoint_is_due_where_a_stream_reaches_a_multiple() {
    let open = Record::from(operation());
    for (version, facts, due) in [
        (0, 9, false),
        (1, 2, false),
        (2, 1, false),
        (2, 2, true),
        (3, 1, true),
        (3, 9, true),
        (4, 3, false),
        (7, 1, true),
        (u64::MAX, 1, false),
    ] {
        let facts: Vec<Fact> = (0..facts).map(polled).collect();
        assert_eq!(is_due(&open, version, &facts, AFTER), due, "{version} {}", facts.len());
    }
}

#[test]
fn no_checkpoint_is_due_at_an_end_a_purge_or_a_step_back() {
    let of = |record: Record, fact| is_due(&record, 3, &[Fact::Operation(fact)], AFTER);
    assert!(of(operation().into(), OperationFact::TimersMoved { by_micros: 1 }));
    assert!(!of(operation().into(), OperationFact::TimersMoved { by_micros: -1 }));
    assert!(!of(operation().into(), OperationFact::Purged { handle_kept: true }));
    assert!(!of(ended().into(), OperationFact::Resolved(Ending::TimedOut)));
}

#[test]
fn fold_takes_the_state_of_a_checkpoint_and_goes_on() {
    let id = RecordId::from(OperationId::new("op-1"));
    let state = Record::from(operation());
    let checkpoint = Checkpoint::new(1, Checksum([7; 16]), state.clone());
    let fact = Fact::Checkpointed { checkpointed: Box::new(checkpoint) };
    let (mut whole, mut cut) = (Some(state), None);
    for fact in [&fact, &polled(5)] {
        apply(&mut whole, &id, fact, at(5)).expect("it fits");
        apply(&mut cut, &id, fact, at(5)).expect("it fits");
    }
    assert_eq!(whole, cut);
    let other = apply(&mut whole, &id, &fact, at(10));
    assert!(other.is_err(), "it is not the state any more");
    let job = RecordId::from(JobId::new("work-1"));
    assert!(apply(&mut None, &job, &fact, at(10)).is_err());
}

#[test]
fn only_32_hex_digits_are_read_as_a_checksum() {
    let checksum = Checksum([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
    let text = serde_json::to_string(&checksum).expect("it is a text");
    assert_eq!(text, "\"000102030405060708090a0b0c0d0eff\"");
    assert_eq!(serde_json::from_str::<Checksum>(&text).ok(), Some(checksum));
    for other in
        ["\"\"", "\"00\"", "\"+00102030405060708090a0b0c0d0eff\"", "\"zz0102030405060708090a0b0c0d0eff\""]
    {
        assert!(serde_json::from_str::<Checksum>(other).is_err(), "{other}");
    }
}
