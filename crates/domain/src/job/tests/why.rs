//! Why a job is not moving, where that is not walked over HTTP.

use super::*;

fn around(executor: ExecutorHere<'static>) -> Surroundings<'static> {
    let (peer, lane) = (PeerHere::NoneAssigned, LaneHere::Free);
    Surroundings { lease_expires_at: None, executor, peer, lane, error: None, outside: None }
}

#[test]
fn job_whose_executor_is_left_alone_says_so_and_until_when_and_what_to_do() {
    let job = job(&[created_with(|new| new.spec.executor = Some("press".to_owned()))]);
    let until = NOW.plus_seconds(600);
    let told = why(&job, around(ExecutorHere::LeftAlone { until }), NOW);
    assert_eq!((told.reasons[0].code, told.reasons[0].until), ("circuit_open", Some(until)));
    assert!(told.reasons[0].detail.contains("longhaul plugin reset press"), "{}", told.reasons[0].detail);
    assert_eq!((told.reasons.len(), told.earliest_at), (1, Some(until)));
    let told = why(&job, around(ExecutorHere::Registered), NOW);
    assert_eq!((told.reasons[0].code, told.earliest_at), ("ready", Some(NOW)));
}

#[test]
fn job_whose_executor_is_left_out_says_why_and_waits_for_somebody_to_mend_it() {
    let job = job(&[created_with(|new| new.spec.executor = Some("press".to_owned()))]);
    let told = why(&job, around(ExecutorHere::LeftOut { why: "manifest.yaml:3:7: no ink" }), NOW);
    assert_eq!((told.reasons[0].code, told.reasons[0].until), ("executor_left_out", None));
    assert!(told.reasons[0].detail.contains("manifest.yaml:3:7: no ink"), "{}", told.reasons[0].detail);
    assert_eq!((told.reasons.len(), told.earliest_at), (1, None));
}
