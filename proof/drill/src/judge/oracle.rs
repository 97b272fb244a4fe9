//! The oracle's own ledger: what was asked under which key, what was answered, and what was seen of it since.
//!
//! Pure. It believes only what came over HTTP; what the store says is compared with it in `checks.rs`.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::finding::Finding;
use crate::kind::Kind;

pub const ONE_ANSWER: &str = "one key has one answer";
pub const ANSWER_STAYS: &str = "an answered key is answered the same again";
pub const OTHER_BODY: &str = "a used key refuses another body";
pub const END_STAYS: &str = "an end stays as it is";

/// Everything that was asked.
#[derive(Debug, Default)]
pub struct Oracle {
    entries: BTreeMap<String, Entry>,
    keys: HashMap<String, String>,
    findings: Vec<Finding>,
    /// Rises with everything that was acknowledged.
    moment: u64,
    pub tally: Tally,
}

/// What was asked under one key.
#[derive(Debug)]
pub struct Entry {
    pub kind: Kind,
    /// What was sent.
    pub body: String,
    pub standing: Standing,
    pub cancel_asked: bool,
    pub retry_asked: bool,
    /// When it was acknowledged.
    pub since: u64,
    /// The attempts whose report of the end was accepted, and when.
    pub reports: Vec<(String, u64)>,
    /// The first end that was seen.
    pub end: Option<End>,
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing of it can have happened.
    Never,
    /// Nobody knows: it is under way, or was not answered.
    Unknown,
    /// It was refused: nothing happened.
    Refused,
    /// It is the record with this id, and it was answered so.
    Accepted { id: String, answer: u64 },
}

/// How a job ended, as it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub state: String,
    /// The text of its result.
    pub result: String,
}

/// How often what happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that may have been carried out and were not answered, or with an error.
    pub ambiguous: u64,
    /// Of those that were asked again by their key: it had been carried out.
    pub had_happened: u64,
    /// ... it had not.
    pub had_not: u64,
    /// Repeated requests with the same answer.
    pub repeated: u64,
    /// Another body under a used key, refused.
    pub other_bodies: u64,
    /// Looks at an end that was seen before, with the same result.
    pub looked: u64,
    /// Reports of attempts that were not current any more, refused.
    pub stale: u64,
    /// Requests that were cut in the middle.
    pub halves: u64,
    /// Cancels, retries and answers that were accepted.
    pub steered: u64,
}

impl Oracle {
    /// A key is about to be used.
    pub fn asks(&mut self, key: &str, kind: Kind, body: &str) {
        self.entries.entry(key.to_owned()).or_insert_with(|| Entry {
            kind,
            body: body.to_owned(),
            standing: Standing::Unknown,
            cancel_asked: false,
            retry_asked: false,
            since: 0,
            reports: Vec::new(),
            end: None,
        });
    }

    /// It was accepted as this record.
    pub fn accepted(&mut self, key: &str, id: &str, answer: &str) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let digest = digest(answer);
        match &entry.standing {
            Standing::Accepted { id: before, .. } if before != id => {
                self.findings.push(Finding::new(ONE_ANSWER, key, format!("it is {before}, and then {id}")));
            }
            Standing::Accepted { id, answer: before } if *before != digest => {
                let what = format!("{id} was answered in other words than before: {answer}");
                self.findings.push(Finding::new(ANSWER_STAYS, key, what));
            }
            Standing::Accepted { .. } => self.tally.repeated += 1,
            Standing::Never | Standing::Unknown | Standing::Refused => {
                self.keys.insert(id.to_owned(), key.to_owned());
                self.moment += 1;
                entry.since = self.moment;
                entry.standing = Standing::Accepted { id: id.to_owned(), answer: digest };
            }
        }
    }

    /// It may have been accepted.
    pub fn unanswered(&mut self, key: &str) {
        self.tally.ambiguous += 1;
        let Some(entry) = self.entries.get_mut(key) else { return };
        match entry.standing {
            Standing::Never | Standing::Refused => entry.standing = Standing::Unknown,
            Standing::Unknown | Standing::Accepted { .. } => {}
        }
    }

    /// It was only half sent, and will not be sent again.
    pub fn never_sent(&mut self, key: &str) {
        self.tally.halves += 1;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.standing = Standing::Never;
        }
    }

    /// The report of an attempt was accepted as the end of a job.
    pub fn reported(&mut self, key: &str, attempt: &str) {
        self.moment += 1;
        let moment = self.moment;
        if let Some(entry) = self.entries.get_mut(key)
            && entry.reports.iter().all(|(known, _)| known != attempt)
        {
            entry.reports.push((attempt.to_owned(), moment));
        }
    }

    /// Everything that was acknowledged so far has happened by now.
    pub fn moment(&self) -> u64 {
        self.moment
    }

    /// It was refused.
    pub fn refused(&mut self, key: &str, answer: &str) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        match entry.standing {
            Standing::Never | Standing::Unknown => entry.standing = Standing::Refused,
            Standing::Refused => {}
            Standing::Accepted { .. } => {
                self.findings.push(Finding::new(
                    ANSWER_STAYS,
                    key,
                    format!("it was refused afterwards: {answer}"),
                ));
            }
        }
    }

    /// Another body under its key was answered so.
    pub fn other_body(&mut self, key: &str, status: u16) {
        match status {
            409 => self.tally.other_bodies += 1,
            // Nobody knows; the same is seen the next time.
            500.. => {}
            status => {
                self.findings.push(Finding::new(OTHER_BODY, key, format!("it was answered with {status}")));
            }
        }
    }

    /// Its end was seen.
    pub fn ended(&mut self, key: &str, end: End) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some(before) = &entry.end else {
            entry.end = Some(end);
            return;
        };
        if *before == end {
            self.tally.looked += 1;
            return;
        }
        // Who asks for another attempt gets another end; a lost lease may be mended by the same attempt's late report.
        let reopened = entry.retry_asked && ["failed", "unavailable"].contains(&before.state.as_str());
        let mended = before.state == "unavailable" && ["completed", "failed"].contains(&end.state.as_str());
        if !reopened && !mended {
            let what =
                format!("it was {} {}, and is {} {}", before.state, before.result, end.state, end.result);
            self.findings.push(Finding::new(END_STAYS, key, what));
        }
        entry.end = Some(end);
    }

    /// Somebody has seen what should not be.
    pub fn found(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Takes what was found so far.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub fn entry_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.get_mut(key)
    }

    /// All of them, by key.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), entry))
    }

    /// The key of a record.
    pub fn key_of(&self, id: &str) -> Option<&str> {
        self.keys.get(id).map(String::as_str)
    }

    pub fn accepted_count(&self) -> usize {
        self.keys.len()
    }

    /// The keys of which nobody knows.
    pub fn unknown(&self) -> Vec<String> {
        let unknown = self.entries.iter().filter(|(_, entry)| entry.standing == Standing::Unknown);
        unknown.map(|(key, _)| key.clone()).collect()
    }
}

impl Entry {
    /// The record, if it was accepted.
    pub fn id(&self) -> Option<&str> {
        match &self.standing {
            Standing::Accepted { id, .. } => Some(id),
            Standing::Never | Standing::Unknown | Standing::Refused => None,
        }
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Oracle {
        let mut oracle = Oracle::default();
        oracle.asks("k", Kind::Noop, "{}");
        oracle
    }

    fn rules(oracle: &mut Oracle) -> Vec<&'static str> {
        oracle.take_findings().into_iter().map(|finding| finding.rule).collect()
    }

    fn end(state: &str, result: &str) -> End {
        End { state: state.to_owned(), result: result.to_owned() }
    }

    #[test]
    fn key_whose_answer_was_lost_is_known_once_it_is_answered() {
        let mut oracle = asked();
        oracle.unanswered("k");
        assert_eq!(oracle.unknown(), ["k"]);
        oracle.accepted("k", "work-1", "a");
        oracle.accepted("k", "work-1", "a");
        assert_eq!((oracle.unknown().len(), oracle.tally.ambiguous, oracle.tally.repeated), (0, 1, 1));
        assert_eq!(oracle.key_of("work-1"), Some("k"));
        assert_eq!(rules(&mut oracle), [""; 0]);
    }

    #[test]
    fn second_job_under_a_key_another_answer_and_a_late_refusal_are_found() {
        let mut oracle = asked();
        oracle.accepted("k", "work-1", "a");
        oracle.accepted("k", "work-2", "a");
        oracle.accepted("k", "work-1", "b");
        oracle.refused("k", "no");
        assert_eq!(rules(&mut oracle), [ONE_ANSWER, ANSWER_STAYS, ANSWER_STAYS]);
    }

    #[test]
    fn another_body_is_refused_or_found() {
        let mut oracle = asked();
        oracle.accepted("k", "work-1", "a");
        oracle.other_body("k", 409);
        oracle.other_body("k", 503);
        assert_eq!(rules(&mut oracle), [""; 0]);
        oracle.other_body("k", 200);
        assert_eq!(rules(&mut oracle), [OTHER_BODY]);
    }

    #[test]
    fn end_that_changes_is_found_unless_someone_asked_for_another_attempt() {
        let mut oracle = asked();
        oracle.ended("k", end("completed", "1"));
        oracle.ended("k", end("completed", "1"));
        assert_eq!((rules(&mut oracle), oracle.tally.looked), (vec![], 1));
        oracle.ended("k", end("completed", "2"));
        oracle.ended("k", end("cancelled", ""));
        assert_eq!(rules(&mut oracle), [END_STAYS, END_STAYS]);

        let mut oracle = asked();
        oracle.ended("k", end("failed", "1"));
        oracle.entry_mut("k").unwrap().retry_asked = true;
        oracle.ended("k", end("completed", ""));
        assert_eq!(rules(&mut oracle), [""; 0]);
        // Completed absorbs, whatever is asked.
        oracle.ended("k", end("failed", ""));
        assert_eq!(rules(&mut oracle), [END_STAYS]);
    }

    #[test]
    fn only_a_lost_lease_may_be_mended_by_a_late_report() {
        let mut oracle = asked();
        oracle.ended("k", end("unavailable", ""));
        oracle.ended("k", end("completed", "1"));
        assert_eq!(rules(&mut oracle), [""; 0]);
        let mut oracle = asked();
        oracle.ended("k", end("unavailable", ""));
        oracle.ended("k", end("expired", ""));
        assert_eq!(rules(&mut oracle), [END_STAYS]);
    }
}
