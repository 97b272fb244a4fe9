//! Every fact survives being written down, and nothing else is taken for one.

use std::collections::BTreeSet;

use domain::RecordKind;
use store::{CodecError, VIEW_FORMAT, decode_fact, encode_fact, fact_kind};

use crate::samples::{KINDS, every_fact, place};

// conforms: L74
#[test]
fn every_fact_comes_back_as_it_was_written() {
    let mut seen = BTreeSet::new();
    for fact in every_fact() {
        let (kind, payload) = (fact_kind(&fact), encode_fact(&fact));
        assert_eq!(kind, KINDS[place(&fact)], "{fact:?}");
        assert_eq!(decode_fact(kind, &payload).as_ref(), Ok(&fact), "{kind} {payload}");
        assert_eq!(encode_fact(&decode_fact(kind, &payload).unwrap()), payload, "{kind}");
        seen.insert(kind);
    }
    assert_eq!(seen.len(), KINDS.len(), "a kind has no sample: {seen:?}");
}

#[test]
fn payload_under_another_kind_of_the_same_record_is_refused() {
    for fact in every_fact() {
        let (own_kind, payload) = (fact_kind(&fact), encode_fact(&fact));
        let of = RecordKind::of_fact(own_kind);
        let others = KINDS.iter().filter(|kind| **kind != own_kind && RecordKind::of_fact(kind) == of);
        for kind in others {
            let refused = decode_fact(kind, &payload).unwrap_err();
            assert!(matches!(refused, CodecError::Payload { .. }), "{kind} took {payload}: {refused}");
        }
    }
}

#[test]
fn checkpoint_of_a_newer_format_or_of_another_kind_is_refused() {
    let checkpoints = every_fact().into_iter().filter(|fact| place(fact) == 58);
    for payload in checkpoints.map(|fact| encode_fact(&fact)) {
        let newer = payload.replace(
            &format!("\"view_format\":{VIEW_FORMAT}"),
            &format!("\"view_format\":{}", VIEW_FORMAT + 1),
        );
        assert_ne!(newer, payload);
        let refused = decode_fact("operation.checkpointed/1", &newer).unwrap_err();
        assert!(refused.to_string().contains("a newer longhaul"), "{refused}");
        let refused = decode_fact("job.checkpointed/1", &payload).unwrap_err();
        assert_eq!(refused, CodecError::UnknownKind("job.checkpointed/1".to_owned()));
    }
}

#[test]
fn kind_that_nobody_knows_is_refused_by_name() {
    for kind in ["", "job", "job.created/2", "claim.taken/1", "external_production_polled/2"] {
        let refused = decode_fact(kind, "{}").unwrap_err().to_string();
        assert!(refused.contains(kind), "{kind}: {refused}");
    }
}

#[test]
fn cut_payload_is_refused_at_every_byte() {
    for fact in every_fact() {
        let payload = encode_fact(&fact);
        for end in (0..payload.len()).filter(|end| payload.is_char_boundary(*end)) {
            assert!(decode_fact(fact_kind(&fact), &payload[..end]).is_err(), "{}", &payload[..end]);
        }
    }
}
