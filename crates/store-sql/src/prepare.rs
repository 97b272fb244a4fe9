//! A commit as text: everything that can be encoded before the writer has its turn is encoded by the caller.

use std::sync::Arc;

use domain::RecordId;
use store::{
    Change, Checksum, Commit, FactText, Head, StoreError, encode_fact, encode_view, fact_kind, seal_view,
};

/// A commit, ready to be written.
pub(crate) struct Prepared {
    pub(crate) commit: Commit,
    /// One per change.
    pub(crate) texts: Vec<ChangeText>,
}

/// The encoded parts of one change.
pub(crate) struct ChangeText {
    pub(crate) facts: Vec<EncodedFact>,
    pub(crate) view: String,
    /// The head of the stream after the change.
    pub(crate) head: Head,
}

pub(crate) struct EncodedFact {
    pub(crate) kind: &'static str,
    pub(crate) payload: String,
    pub(crate) checksum: Checksum,
}

impl Prepared {
    pub(crate) fn new(commit: Commit) -> Result<Self, StoreError> {
        commit.check()?;
        let texts = commit.changes.iter().map(|change| encode(&commit, change)).collect::<Result<_, _>>()?;
        Ok(Self { commit, texts })
    }

    /// Roughly how many bytes it holds in the queue.
    pub(crate) fn weight(&self) -> usize {
        let states = self.commit.plugin_states.iter();
        let states: usize = states
            .map(|change| change.state.len() + change.facts.iter().map(|fact| fact.json.len()).sum::<usize>())
            .sum();
        let changes = self.commit.changes.iter().zip(&self.texts);
        let changes: usize = changes
            .map(|(change, text)| {
                let facts: usize = text.facts.iter().map(|fact| fact.payload.len()).sum();
                let bodies: usize = change.bodies.iter().map(|body| body.bytes.len()).sum();
                text.view.len() + facts + bodies
            })
            .sum();
        states + changes
    }

    /// The plugins whose state it changes.
    pub(crate) fn plugins(&self) -> impl Iterator<Item = &str> {
        self.commit.plugin_states.iter().map(|change| change.plugin.as_str())
    }

    /// The records that it touches.
    pub(crate) fn records(&self) -> impl Iterator<Item = &RecordId> {
        self.commit.changes.iter().map(|change| &change.id)
    }
}

fn encode(commit: &Commit, change: &Change) -> Result<ChangeText, StoreError> {
    let mut head = change.expected;
    let mut facts = Vec::with_capacity(change.facts.len());
    for new in &change.facts {
        let kind = fact_kind(&new.fact);
        let payload = encode_fact(&new.fact);
        new.check_payload(&payload)?;
        head.version += 1;
        let text = FactText {
            stream: change.id.as_str(),
            version: head.version,
            id: new.id,
            kind,
            at: commit.at,
            actor: &commit.actor,
            causation_id: commit.causation_id.as_ref().map(Arc::as_ref),
            correlation_id: commit.correlation_id.as_ref().map(Arc::as_ref),
            payload: &payload,
        };
        head.checksum = text.checksum(head.checksum);
        facts.push(EncodedFact { kind, payload, checksum: head.checksum });
    }
    let view = seal_view(&change.id, head, encode_view(&change.record));
    Ok(ChangeText { facts, view, head })
}
