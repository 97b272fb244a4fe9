//! From a pipeline as it is written to its definition. All of its mistakes are told at once, and none of them touches another pipeline.

mod steps;

use config_file::Mistake;
use domain::limits::MAX_LABEL_BYTES;
use domain::run::Shape;
use serde_saphyr::Location;

use super::definition::Definition;
use super::written::{Keys, Written, Wrong};
use super::{Carry, Mode, Pipeline, Plan, Predicate, Signal, Trigger, agentic};
use steps::Ids;

/// A year.
const MAX_TIMEOUT_SECONDS: u64 = 31_536_000;
/// How long a synchronous caller waits.
const DEFAULT_TIMEOUT_SECONDS: u64 = 30;
/// Seven days: no key is remembered for longer.
const MAX_DEDUPE_WINDOW_SECONDS: u64 = 604_800;
const DEFAULT_DEDUPE_WINDOW_SECONDS: u64 = 86_400;

const KEYS: [&str; 12] = [
    "name",
    "on",
    "on-hook",
    "from_plugin",
    "if",
    "max_depth",
    "execution_mode",
    "timeout",
    "dedupe_window",
    "carry",
    "on_error",
    "steps",
];

/// A pipeline that was read: as far as it has a name, others may call it or have the same.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) file: String,
    pub(super) name: Option<(String, Location)>,
    pub(super) definition: Option<Definition>,
    pub(super) mistakes: Vec<Mistake>,
}

/// Reads one pipeline of a file that says this of all its pipelines.
pub(super) fn pipeline(file: &str, carry: Option<Carry>, written: &Written) -> Read {
    let mut reader = Reader { file, carry, mistakes: Vec::new() };
    let (name, definition) = reader.pipeline(written);
    let definition = definition.filter(|_| reader.mistakes.is_empty());
    Read { file: file.to_owned(), name, definition, mistakes: reader.mistakes }
}

struct Reader<'f> {
    file: &'f str,
    /// What its pipelines carry that do not say so themselves.
    carry: Option<Carry>,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    fn pipeline(&mut self, written: &Written) -> (Option<(String, Location)>, Option<Definition>) {
        let Some(keys) = self.keys(written, &KEYS) else { return (None, None) };
        let name = self.required(written, keys, "name").and_then(|name| {
            let told = self.note(label("a name", name))?;
            Some((told, name.at))
        });
        let trigger = self.trigger(written, keys);
        let from_plugin = self.optional(keys, "from_plugin", |from| line("the name of a plugin", from));
        let condition = self.optional(keys, "if", Predicate::read);
        let max_depth = self.optional(keys, "max_depth", |depth| depth.whole(0, u32::MAX.into()));
        let mode = self.optional(keys, "execution_mode", mode);
        let timeout = self.optional(keys, "timeout", |time| time.seconds(1, MAX_TIMEOUT_SECONDS));
        let window =
            self.optional(keys, "dedupe_window", |window| window.seconds(0, MAX_DEDUPE_WINDOW_SECONDS));
        let usual = trigger.as_ref().map_or(Carry::default(), agentic::usual_carry);
        let carry = self.optional(keys, "carry", carry).or(self.carry).unwrap_or(usual);
        let mut ids = Ids::default();
        let steps = self.required(written, keys, "steps").map(|steps| self.sequence(steps, &mut ids, 1));
        let on_error = keys.find("on_error").map(|steps| self.handlers(steps, &mut ids, 1));
        let (Some((name, at)), Some(trigger), Some(steps)) = (name.clone(), trigger, steps) else {
            return (name, None);
        };
        let pipeline = Pipeline {
            name,
            version: String::new(),
            trigger,
            from_plugin,
            condition,
            max_depth: max_depth.and_then(|depth| u32::try_from(depth).ok()),
            mode: mode.unwrap_or(Mode::Async),
            timeout_seconds: timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS),
            dedupe_window_seconds: window.unwrap_or(DEFAULT_DEDUPE_WINDOW_SECONDS),
            carry,
            shape: Shape(Vec::new()),
            plan: Plan(Vec::new()),
            written: super::Written { file: self.file.to_owned(), steps: Vec::new() },
        };
        let on_error = on_error.unwrap_or_default();
        (Some((pipeline.name.clone(), at)), Some(Definition { at, pipeline, steps, on_error }))
    }

    fn trigger(&mut self, written: &Written, keys: Keys<'_>) -> Option<Trigger> {
        match (keys.find("on"), keys.find("on-hook")) {
            (Some(event), None) => self.note(line("the type of an event", event)).map(Trigger::On),
            (None, Some(signal)) => self.note(hook(signal)).map(Trigger::OnHook),
            (Some(_), Some(second)) => self.tell(second.wrong("a pipeline has either on or on-hook")),
            (None, None) => self.tell(written.wrong("a pipeline needs on or on-hook: what starts it")),
        }
    }

    /// The keys of a mapping; those that are not known are told.
    fn keys<'w>(&mut self, written: &'w Written, known: &[&str]) -> Option<Keys<'w>> {
        let (keys, unknown) = self.note(written.keys_and_unknown(known))?;
        self.mistakes.extend(unknown.into_iter().map(|wrong| wrong.in_file(self.file)));
        Some(keys)
    }

    fn required<'w>(&mut self, written: &Written, keys: Keys<'w>, name: &str) -> Option<&'w Written> {
        keys.find(name).or_else(|| self.tell(written.wrong(format!("the key {name:?} is missing"))))
    }

    fn optional<T>(
        &mut self,
        keys: Keys<'_>,
        name: &str,
        read: impl FnOnce(&Written) -> Result<T, Wrong>,
    ) -> Option<T> {
        keys.find(name).and_then(|written| self.note(read(written)))
    }

    fn note<T>(&mut self, read: Result<T, Wrong>) -> Option<T> {
        read.map_or_else(|wrong| self.tell(wrong), Some)
    }

    fn tell<T>(&mut self, wrong: Wrong) -> Option<T> {
        self.mistakes.push(wrong.in_file(self.file));
        None
    }
}

/// A short text on one line.
fn line(what: &str, written: &Written) -> Result<String, Wrong> {
    let text = written.text()?;
    if (1..=MAX_LABEL_BYTES).contains(&text.len()) && !text.contains(char::is_control) {
        return Ok(text.to_owned());
    }
    Err(written.wrong(format!("{what} has 1 to {MAX_LABEL_BYTES} bytes on one line")))
}

/// A short text that can also stand in an address.
fn label(what: &str, written: &Written) -> Result<String, Wrong> {
    let text = written.text()?;
    let fits = (1..=MAX_LABEL_BYTES).contains(&text.len())
        && text.chars().all(|character| character.is_alphanumeric() || "-_.".contains(character));
    if fits {
        return Ok(text.to_owned());
    }
    let told = format!("{what} has 1 to {MAX_LABEL_BYTES} bytes: letters, digits, dashes, dots, underscores");
    Err(written.wrong(told))
}

fn mode(written: &Written) -> Result<Mode, Wrong> {
    written.one_of(&[("async", Mode::Async), ("synchronous", Mode::Synchronous)])
}

/// What the steps of a pipeline are given besides what they claim.
pub(super) fn carry(written: &Written) -> Result<Carry, Wrong> {
    written.one_of(&[("claimed", Carry::Claimed), ("payload", Carry::Payload)])
}

fn hook(written: &Written) -> Result<Signal, Wrong> {
    written.one_of(&Signal::ALL.map(|signal| (signal.as_str(), signal)))
}
