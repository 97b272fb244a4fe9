//! The steps of a pipeline, each with its id.

use std::collections::BTreeMap;

use config_file::hint;
use domain::retry::{MAX_ATTEMPTS, MAX_BACKOFF_SECONDS};
use serde_saphyr::Location;

use super::super::definition::{Answer, Step, StepKind};
use super::super::plan::Retry;
use super::super::written::{Keys, What, Written, Wrong};
use super::super::{Baggage, Detail, MAX_NESTING, Predicate, With};
use super::{MAX_TIMEOUT_SECONDS, Reader, label, line};

const KEYS: [&str; 12] = [
    "id", "uses", "call", "steps", "split", "relay", "if", "with", "baggage", "retry", "timeout", "on_error",
];
/// What only a job can have.
const KEYS_OF_USES: [&str; 4] = ["with", "baggage", "retry", "timeout"];

/// The ids of one pipeline, and where they were given.
#[derive(Default)]
pub(super) struct Ids {
    given: BTreeMap<String, Location>,
    unnamed: usize,
}

impl Reader<'_> {
    /// A list of steps, one after the other or beside each other.
    pub(super) fn sequence(&mut self, written: &Written, ids: &mut Ids, depth: usize) -> Vec<Step> {
        if !self.is_shallow(written, depth) {
            return Vec::new();
        }
        let steps = self.note(written.list()).unwrap_or_default();
        steps.iter().filter_map(|step| self.step(step, ids, depth)).collect()
    }

    /// A list of steps, or one.
    pub(super) fn handlers(&mut self, written: &Written, ids: &mut Ids, depth: usize) -> Vec<Step> {
        if !matches!(written.what, What::Keys(_)) {
            return self.sequence(written, ids, depth);
        }
        let shallow = self.is_shallow(written, depth);
        shallow.then(|| self.step(written, ids, depth)).flatten().into_iter().collect()
    }

    fn is_shallow(&mut self, written: &Written, depth: usize) -> bool {
        if depth > MAX_NESTING {
            self.tell::<()>(written.wrong(format!("steps are nested at most {MAX_NESTING} deep")));
        }
        depth <= MAX_NESTING
    }

    fn step(&mut self, written: &Written, ids: &mut Ids, depth: usize) -> Option<Step> {
        let keys = self.keys(written, &KEYS)?;
        let id = self.id(written, keys, ids);
        let condition = self.optional(keys, "if", Predicate::read);
        let mut detail = Detail { condition, ..Detail::default() };
        let kind = self.kind(written, keys, &mut detail, ids, depth);
        let on_error = keys.find("on_error").and_then(|answer| self.answer(answer, ids, depth));
        Some(Step { at: written.at, id: id?, kind: kind?, detail, on_error })
    }

    fn id(&mut self, written: &Written, keys: Keys<'_>, ids: &mut Ids) -> Option<String> {
        let (id, at) = match keys.find("id") {
            Some(id) => (self.note(label("the id of a step", id))?, id.at),
            None => {
                ids.unnamed += 1;
                (format!("step_{}", ids.unnamed), written.at)
            }
        };
        if let Some(first) = ids.given.get(&id) {
            let told = format!("two steps are named {id:?}; the other one stands in line {}", first.line());
            return self.tell(Wrong { at, told });
        }
        ids.given.insert(id.clone(), at);
        Some(id)
    }

    fn kind(
        &mut self,
        written: &Written,
        keys: Keys<'_>,
        detail: &mut Detail,
        ids: &mut Ids,
        depth: usize,
    ) -> Option<StepKind> {
        if let Some(at) = keys.place("relay") {
            let told = "relay is not known here: events go to other hosts by an executor, named with uses";
            return self.tell(Wrong { at, told: told.to_owned() });
        }
        let kinds = ["uses", "call", "steps", "split"].map(|kind| keys.find(kind));
        let [uses, call, steps, split] = kinds;
        if kinds.into_iter().flatten().count() != 1 {
            return self.tell(written.wrong("a step has exactly one of uses, call, steps and split"));
        }
        if let Some(executor) = uses {
            *detail = self.job(keys, std::mem::take(detail));
            detail.executor = Some(self.note(line("the name of an executor", executor))?);
            return Some(StepKind::Uses);
        }
        for key in KEYS_OF_USES {
            if let Some(at) = keys.place(key) {
                self.tell::<()>(Wrong { at, told: format!("only a step with uses has {key}") });
            }
        }
        let call = call.map(|name| self.note(label("the name of a pipeline", name)).map(StepKind::Call));
        let steps = steps.map(|steps| Some(StepKind::Steps(self.sequence(steps, ids, depth + 1))));
        let split = split.map(|split| Some(StepKind::Split(self.sequence(split, ids, depth + 1))));
        call.or(steps).or(split).flatten()
    }

    fn job(&mut self, keys: Keys<'_>, detail: Detail) -> Detail {
        Detail {
            with: self.optional(keys, "with", With::read),
            baggage: self.optional(keys, "baggage", Baggage::read),
            retry: self.optional(keys, "retry", retry),
            timeout_seconds: self.optional(keys, "timeout", |time| time.seconds(1, MAX_TIMEOUT_SECONDS)),
            ..detail
        }
    }

    fn answer(&mut self, written: &Written, ids: &mut Ids, depth: usize) -> Option<Answer> {
        let What::Text(word) = &written.what else {
            return Some(Answer::Steps(self.handlers(written, ids, depth + 1)));
        };
        match word.as_str() {
            "stop" => Some(Answer::Stop),
            "continue" => Some(Answer::Continue),
            other => {
                let near = hint(other, &["stop", "continue"]);
                self.tell(written.wrong(format!("{other:?} is not one of: stop, continue, or steps{near}")))
            }
        }
    }
}

fn retry(written: &Written) -> Result<Retry, Wrong> {
    let keys = written.keys(&["max_attempts", "backoff_seconds"])?;
    let whole = |name: &str, least: u64, most: u32| {
        let number = keys.find(name).map(|number| number.whole(least, most.into())).transpose()?;
        Ok(number.and_then(|number| u32::try_from(number).ok()))
    };
    Ok(Retry {
        max_attempts: whole("max_attempts", 1, MAX_ATTEMPTS)?,
        backoff_seconds: whole("backoff_seconds", 0, MAX_BACKOFF_SECONDS)?,
    })
}
