//! A client: asks for work under keys, asks again when it is not answered, steers, looks. Whatever it learns the oracle keeps.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::finding::Finding;
use crate::kind::{Detail, Kind};
use crate::oracle::{End, Standing};
use crate::plan::{Sending, Step, Steps};
use crate::stage::{ANSWER_WITHIN, Stage};
use crate::wire::{Answer, Request, Sent};

pub const VISIBLE: &str = "what was acknowledged can be read";
/// How long a client goes on with one thing: longer than all nodes are down.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long it goes on asking for what is of no use to anybody when it fails.
const LITTLE_PATIENCE: Duration = Duration::from_secs(10);
/// Nobody asks for more while so much is open.
const MAX_OPEN: usize = 400;
/// So many of the last ones are late.
const LATE: u64 = 40;
const ENDS: [&str; 5] = ["completed", "failed", "cancelled", "expired", "unavailable"];

/// One client and the keys that it has used.
pub struct Client<'a> {
    stage: &'a Stage,
    number: usize,
    steps: Steps,
    keys: Vec<String>,
    /// Those that wait for an answer, and those that fail until they are retried.
    asks: Vec<String>,
    failing: Vec<String>,
    steers: u64,
}

impl<'a> Client<'a> {
    pub fn new(stage: &'a Stage, number: usize, kinds: &[Kind]) -> Self {
        stage.clients.fetch_add(1, Ordering::SeqCst);
        Self {
            stage,
            number,
            steps: Steps::new(stage.seed, number, kinds),
            keys: Vec::new(),
            asks: Vec::new(),
            failing: Vec::new(),
            steers: 0,
        }
    }

    /// Goes on until it is calm.
    pub fn run(mut self) {
        while !self.stage.is_calm() && !self.stage.is_over() {
            let (think, step) = self.steps.next();
            self.stage.think(think);
            match step {
                // What is open has to be over soon after the calm begins.
                Step::Create { .. } if self.stage.open.load(Ordering::SeqCst) > MAX_OPEN => {}
                Step::Create { kind, detail, sending } => self.create(kind, &detail, sending),
                Step::Repeat { which } => self.with(which, Self::repeat),
                Step::OtherBody { which } => self.with(which, Self::other_body),
                Step::Cancel { which, sending } => {
                    self.with(which, |client, key| client.cancel(key, sending));
                }
                Step::Retry { which } => self.retry(which),
                Step::Answer { which } => self.answer(which),
                Step::Look { which } => self.with(which, |client, key| look(client.stage, key)),
            }
        }
        self.stage.clients.fetch_sub(1, Ordering::SeqCst);
    }

    /// Does it with one of the keys that were used.
    fn with(&mut self, which: u64, act: impl FnOnce(&mut Self, &str)) {
        if let Some(key) = late(&self.keys, which) {
            act(self, &key);
        }
    }

    fn create(&mut self, kind: Kind, detail: &Detail, sending: Sending) {
        let key = format!("drill-{:x}-{}-{}", self.stage.seed, self.number, self.keys.len());
        let body = kind.body(&key, detail, &self.stage.effects).to_string();
        self.keys.push(key.clone());
        match kind {
            Kind::Ask => self.asks.push(key.clone()),
            Kind::Failing => self.failing.push(key.clone()),
            Kind::Noop
            | Kind::Command
            | Kind::Plugin
            | Kind::Slow
            | Kind::Service
            | Kind::Zoo
            | Kind::Pulled
            | Kind::Event => {}
        }
        self.stage.oracle().asks(&key, kind, &body);
        if sending == Sending::Half {
            let request = creation(kind, &key, &body);
            match self.stage.send(&request, sending) {
                // It is not asked for again, so that whatever is there came of half a request.
                Sent::Never => self.stage.oracle().never_sent(&key),
                Sent::Answered(_) | Sent::Unanswered => self.stage.oracle().unanswered(&key),
            }
            return;
        }
        create(self.stage, &key, sending);
    }

    fn repeat(&mut self, key: &str) {
        if self.id(key).is_some() {
            create(self.stage, key, Sending::Whole);
        }
    }

    fn other_body(&mut self, key: &str) {
        let Some((kind, body)) = self.accepted(key) else { return };
        let mut body: Value = serde_json::from_str(&body).unwrap_or_default();
        if let Some(object) = body.as_object_mut() {
            match kind {
                Kind::Event => object.insert("dedupe_key".to_owned(), json!(format!("other-{key}"))),
                Kind::Noop
                | Kind::Command
                | Kind::Plugin
                | Kind::Slow
                | Kind::Ask
                | Kind::Failing
                | Kind::Service
                | Kind::Zoo
                | Kind::Pulled => object.insert("title".to_owned(), json!("something else")),
            };
        }
        let body = body.to_string();
        if let Sent::Answered(answer) = self.stage.send(&creation(kind, key, &body), Sending::Whole) {
            self.stage.oracle().other_body(key, answer.status);
        }
    }

    fn cancel(&mut self, key: &str, sending: Sending) {
        // Only a part of what there is: the rest shall come to its own end.
        let Some((kind, _)) = self.accepted(key) else { return };
        if kind == Kind::Event || sending == Sending::Half {
            return;
        }
        if let Some(entry) = self.stage.oracle().entry_mut(key) {
            entry.cancel_asked = true;
        }
        self.steer(key, "cancel", &json!({ "reason": "drilled" }), sending);
    }

    /// Another attempt of one that fails; more than once, if chance will have it so.
    fn retry(&mut self, which: u64) {
        let Some(key) = late(&self.failing, which) else { return };
        if let Some(entry) = self.stage.oracle().entry_mut(&key) {
            entry.retry_asked = true;
        }
        self.steer(&key, "retry", &json!({}), Sending::Whole);
    }

    fn answer(&mut self, which: u64) {
        let Some(key) = late(&self.asks, which) else { return };
        self.steer(&key, "answer", &json!({ "answer": "this way" }), Sending::Whole);
    }

    /// A write to a job under a key of its own, asked again until it is answered.
    fn steer(&mut self, key: &str, verb: &str, body: &Value, sending: Sending) {
        let Some(id) = self.id(key) else { return };
        self.steers += 1;
        let steer_key = format!("{key}-{verb}-{}", self.steers);
        let (path, body) = (format!("/jobs/{id}/{verb}"), body.to_string());
        let request = Request {
            method: "POST",
            path: &path,
            key: Some(&steer_key),
            body: Some(&body),
            within: ANSWER_WITHIN,
        };
        let unanswered = || self.stage.oracle().tally.ambiguous += 1;
        let answer = self.stage.ask(&request, sending, LITTLE_PATIENCE, unanswered);
        if answer.is_some_and(|answer| answer.is_success()) {
            self.stage.oracle().tally.steered += 1;
        }
    }

    fn id(&self, key: &str) -> Option<String> {
        self.stage.oracle().entry(key)?.id().map(str::to_owned)
    }

    fn accepted(&self, key: &str) -> Option<(Kind, String)> {
        let oracle = self.stage.oracle();
        let entry = oracle.entry(key)?;
        entry.id()?;
        Some((entry.kind, entry.body.clone()))
    }
}

/// One of them: mostly a late one.
fn late(keys: &[String], which: u64) -> Option<String> {
    let count = keys.len() as u64;
    let among = if which.is_multiple_of(4) { count } else { count.min(LATE) };
    let back = which.checked_rem(among)?;
    keys.get(usize::try_from(count - 1 - back).ok()?).cloned()
}

/// Asks for what a key stands for until it is answered.
pub fn create(stage: &Stage, key: &str, sending: Sending) {
    let (kind, body, known) = {
        let oracle = stage.oracle();
        let Some(entry) = oracle.entry(key) else { return };
        (entry.kind, entry.body.clone(), matches!(entry.standing, Standing::Accepted { .. }))
    };
    let mut lost = false;
    let unanswered = || {
        lost = true;
        stage.oracle().unanswered(key);
    };
    let answer = stage.ask(&creation(kind, key, &body), sending, PATIENCE, unanswered);
    let Some(answer) = answer else { return };
    let mut oracle = stage.oracle();
    match id_of(kind, &answer) {
        Some(id) => {
            oracle.accepted(key, &id, &answer.body);
            if lost && !known {
                let tally = &mut oracle.tally;
                *(if answer.replayed { &mut tally.had_happened } else { &mut tally.had_not }) += 1;
            }
        }
        None => oracle.refused(key, &format!("{} {}", answer.status, answer.body)),
    }
}

fn creation<'a>(kind: Kind, key: &'a str, body: &'a str) -> Request<'a> {
    Request { method: "POST", path: kind.path(), key: Some(key), body: Some(body), within: ANSWER_WITHIN }
}

fn id_of(kind: Kind, answer: &Answer) -> Option<String> {
    if !answer.is_success() {
        return None;
    }
    let name = if kind == Kind::Event { "event_id" } else { "job_id" };
    answer.json()[name].as_str().map(str::to_owned)
}

/// Looks how it ended, if it has.
pub fn look(stage: &Stage, key: &str) {
    let (kind, id) = {
        let oracle = stage.oracle();
        let Some(entry) = oracle.entry(key) else { return };
        let Some(id) = entry.id() else { return };
        (entry.kind, id.to_owned())
    };
    let path = if kind == Kind::Event { format!("/events/{id}") } else { format!("/jobs/{id}/result") };
    let Some(answer) = stage.read(&path, LITTLE_PATIENCE) else { return };
    if !answer.is_success() {
        let what = format!("{path} is answered with {}: {}", answer.status, answer.body);
        stage.oracle().found(Finding::new(VISIBLE, id, what));
        return;
    }
    let result = &answer.json()["result"];
    if let Some(state) = result["state"].as_str().filter(|state| ENDS.contains(state)) {
        let told = ["summary", "data", "error", "completed_at"].map(|name| result[name].to_string());
        stage.oracle().ended(key, End { state: state.to_owned(), result: told.join(" ") });
    }
}
