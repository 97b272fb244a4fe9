//! How an attempt is named to callers: by its id to those who may report with it, by an alias to everyone else.
//!
//! The alias is derived from the id by hash: stable, the same on every node and in every answer, and of no use in a report.

use std::borrow::Cow;

use domain::job::{Attempt, Caller, JobFact, Reporter};
use domain::operation::OperationFact;
use domain::{AttemptId, Fact, Record};
use engine::DOER;

use crate::access::authenticate::Principal;

/// How an alias begins. No attempt's id does.
pub const ALIAS_PREFIX: &str = "attempt-ref-";
/// Hex digits of the digest in an alias.
const ALIAS_DIGITS: usize = 24;

/// The name of an attempt for those who may not report with it.
pub fn attempt_alias(id: &str) -> String {
    let digest = store::sha256(id.as_bytes()).to_string();
    format!("{ALIAS_PREFIX}{}", &digest[..ALIAS_DIGITS])
}

/// The attempt's id, if this caller may report with it; else its alias.
pub(crate) fn shown_id<'a>(attempt: &'a Attempt, viewer: &Reporter) -> Cow<'a, str> {
    if attempt.shows_its_id_to(viewer) {
        Cow::Borrowed(attempt.id.as_str())
    } else {
        Cow::Owned(attempt_alias(attempt.id.as_str()))
    }
}

/// Who did something, as callers see it: the doer of an attempt by the attempt's alias.
pub(crate) fn shown_actor(actor: &str) -> Cow<'_, str> {
    match actor.strip_prefix(DOER) {
        Some(id) => Cow::Owned(format!("{DOER}{}", attempt_alias(id))),
        None => Cow::Borrowed(actor),
    }
}

/// Whether a caller means this attempt, by its id or by its alias.
pub(crate) fn is_named(attempt: &Attempt, name: &str) -> bool {
    attempt.id.as_str() == name || attempt_alias(attempt.id.as_str()) == name
}

/// A fact as this caller sees it; nothing if it is shown as it is.
pub(crate) fn shown_fact(fact: &Fact, viewer: &Reporter) -> Option<Fact> {
    let mut shown = fact.clone();
    let id = if let Fact::Job(JobFact::Dispatched { attempt_id, number, owner, trigger, holder }) = &mut shown
    {
        let attempt = Attempt {
            id: attempt_id.clone(),
            number: *number,
            owner: owner.clone(),
            holder: holder.clone(),
            trigger: *trigger,
            started_at: domain::Timestamp::default(),
            moved_micros: 0,
            delivered_at: None,
            end: None,
            release: None,
        };
        if attempt.shows_its_id_to(viewer) {
            return None;
        }
        attempt_id
    } else if let Fact::Job(JobFact::StaleReportKept(report)) = &mut shown {
        &mut report.attempt_id
    } else if let Fact::Operation(OperationFact::Dispatched(dispatched)) = &mut shown {
        &mut dispatched.link.attempt_id
    } else if let Fact::Checkpointed { checkpointed } = &mut shown
        && let Record::Operation(operation) = &mut checkpointed.state
    {
        &mut operation.link.attempt_id
    } else {
        return None;
    };
    *id = AttemptId::new(attempt_alias(id.as_str()));
    Some(shown)
}

impl Principal {
    /// Who this is when it reports on an attempt.
    pub(crate) fn reporter(&self) -> Reporter {
        match &self.only {
            Some(_) => Reporter::AttemptToken(AttemptId::new(&*self.token_id)),
            None => Reporter::Caller(self.caller(self.peer_id.as_deref())),
        }
    }

    /// The caller as an attempt's holder, for the peer that it pulls for.
    pub(crate) fn caller(&self, peer: Option<&str>) -> Caller {
        Caller { token: self.token_id.to_string(), peer: peer.map(str::to_owned) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alias_is_stable_and_does_not_tell_the_id() {
        let id = "attempt-0197a9c2f3c07d1c8f1c5f0f6f5b2f10";
        let alias = attempt_alias(id);
        assert_eq!(alias, attempt_alias(id));
        assert!(alias.starts_with(ALIAS_PREFIX) && !alias.contains(&id[8..20]), "{alias}");
        assert_ne!(alias, attempt_alias("attempt-0197a9c2f3c07d1c8f1c5f0f6f5b2f11"));
        assert_eq!(shown_actor(&format!("{DOER}{id}")), format!("{DOER}{alias}"));
        assert_eq!(shown_actor("peer:joan"), "peer:joan");
    }
}
