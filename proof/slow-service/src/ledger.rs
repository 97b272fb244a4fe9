//! The work that the scripted service knows: in memory for speed, in its state file when it has one.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::digest::{sha256_json, short_id_of};
use crate::state::{Accepted, Record, State, StateError};
use crate::work::{Asked, Cancel, Script, Work};

const ACCEPTED: &str = "accepted";
const CANCELLED: &str = "cancelled";
const INTERRUPTED: &str = "interrupted";

/// What becomes of unfinished work when the service is started again on its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterRestart {
    /// It went on all the while, by its start time.
    #[default]
    GoesOn,
    /// It is failed as interrupted.
    Fails,
}

/// A start that the service accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The idempotency key, if there was one.
    pub key: Option<String>,
    /// The id that was given.
    pub id: String,
    /// The body of the start.
    pub input: Value,
}

/// What became of a start.
#[derive(Debug)]
pub(crate) enum Taken {
    /// Accepted; the id of the work.
    New(String),
    /// Accepted before under the same key.
    Known(String),
    /// The key belongs to another start.
    Conflict,
}

/// Everything accepted, oldest first.
#[derive(Debug)]
pub(crate) struct Ledger {
    works: Vec<Work>,
    by_id: HashMap<String, usize>,
    by_key: HashMap<String, usize>,
    refusals: HashMap<String, u32>,
    state: Option<State>,
}

impl Ledger {
    pub(crate) fn open(path: Option<&Path>, after: AfterRestart, now: i64) -> Result<Self, StateError> {
        let mut ledger = Self {
            works: Vec::new(),
            by_id: HashMap::new(),
            by_key: HashMap::new(),
            refusals: HashMap::new(),
            state: None,
        };
        let Some(path) = path else { return Ok(ledger) };
        let state = State::open(Some(path))?;
        for record in state.all()? {
            let mut work = revived(&record)?;
            if after == AfterRestart::Fails && !work.state(now).is_over() {
                work.interrupted = true;
                state.change(&record.id, ACCEPTED, INTERRUPTED, &record.body, now)?;
            }
            ledger.add(work);
        }
        ledger.state = Some(state);
        Ok(ledger)
    }

    /// Accepts a start, once per key, and gives it an id.
    pub(crate) fn take(&mut self, mut work: Work) -> Result<Taken, StateError> {
        if let Some(known) = work.key.as_ref().and_then(|key| self.by_key.get(key)) {
            let known = &self.works[*known];
            let same = known.input == work.input;
            return Ok(if same { Taken::Known(known.id.clone()) } else { Taken::Conflict });
        }
        work.id = self.new_id(&work);
        if let Some(state) = &self.state
            && state.accept(record_of(&work))? == Accepted::Conflict
        {
            return Ok(Taken::Conflict);
        }
        let id = work.id.clone();
        self.add(work);
        Ok(Taken::New(id))
    }

    pub(crate) fn by_id(&mut self, id: &str) -> Option<&mut Work> {
        let position = *self.by_id.get(id)?;
        Some(&mut self.works[position])
    }

    pub(crate) fn by_key(&mut self, key: &str) -> Option<&mut Work> {
        let position = *self.by_key.get(key)?;
        Some(&mut self.works[position])
    }

    pub(crate) fn works(&self) -> &[Work] {
        &self.works
    }

    /// Writes down that work has stopped because someone asked.
    pub(crate) fn stop(&mut self, id: &str, now: i64) -> Result<(), StateError> {
        let Some(position) = self.by_id.get(id) else { return Ok(()) };
        let work = &mut self.works[*position];
        if let Some(state) = &self.state {
            state.change(id, ACCEPTED, CANCELLED, &record_of(work).body, now)?;
        }
        work.cancel = Cancel::Stopped;
        Ok(())
    }

    /// How many starts under that key were turned away, this one not counted but noted.
    pub(crate) fn refusals(&self, key: &str) -> u32 {
        self.refusals.get(key).copied().unwrap_or(0)
    }

    pub(crate) fn note_refusal(&mut self, key: &str) {
        *self.refusals.entry(key.to_owned()).or_default() += 1;
    }

    pub(crate) fn starts(&self) -> Vec<Start> {
        let start =
            |work: &Work| Start { key: work.key.clone(), id: work.id.clone(), input: work.input.clone() };
        self.works.iter().map(start).collect()
    }

    fn add(&mut self, work: Work) {
        let position = self.works.len();
        self.by_id.insert(work.id.clone(), position);
        if let Some(key) = &work.key {
            self.by_key.insert(key.clone(), position);
        }
        self.works.push(work);
    }

    /// An id that another service, or this one without its state, has never given.
    fn new_id(&self, work: &Work) -> String {
        let key = work.key.as_deref().unwrap_or_default();
        let parts = [key, &self.works.len().to_string(), &work.started_at.to_string()];
        format!("work-{}", short_id_of(&parts))
    }
}

fn record_of(work: &Work) -> Record {
    Record {
        id: work.id.clone(),
        key: work.key.clone(),
        digest: sha256_json(&work.input),
        status: ACCEPTED.to_owned(),
        body: json!({"input": work.input, "ends_at": work.ends_at}),
        accepted_at: work.started_at,
        updated_at: work.started_at,
    }
}

fn revived(record: &Record) -> Result<Work, StateError> {
    let input = record.body["input"].clone();
    Ok(Work {
        id: record.id.clone(),
        key: record.key.clone(),
        script: serde_json::from_value::<Script>(input.clone())?,
        input,
        started_at: record.accepted_at,
        ends_at: record.body["ends_at"].as_i64().unwrap_or(record.accepted_at),
        cancel: if record.status == CANCELLED { Cancel::Stopped } else { Cancel::None },
        interrupted: record.status == INTERRUPTED,
        asked: Asked::default(),
    })
}
