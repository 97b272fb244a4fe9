//! Whether a text that a service says of its work repeats the input of the job: then a sentence of ours is recorded in its place.
//!
//! Progress, summaries and reasons stand in facts, lists and logs, the input does not. Unlike a code, a text has words that stand in
//! every text: only those count that tell something of the input. A text that is replaced by mistake costs a hint; one that is shown by
//! mistake stays in the ledger. Numbers of a progress object are left as they are.

use std::collections::BTreeSet;

use domain::Json;
use domain::operation::{Cancelability, PollHints};
use serde_json::Value;

use crate::{Deferral, Output};

/// In place of a text that repeats the input.
pub(crate) const NOT_SHOWN: &str = "the text of the service repeats the job's input and is not shown";
/// A text of the input with so many words at most is a name or a label: each of its words tells something.
const WORDS_OF_A_LABEL: usize = 8;
/// So many words of a longer text in a row tell something.
const WORDS_OF_A_QUOTE: usize = 3;
/// So many characters of a word, or digits of a number, tell something.
const CHARS_OF_A_WORD: usize = 4;
/// So many characters of a whole text tell something.
const CHARS_OF_A_TEXT: usize = 3;
/// Texts and names of a progress object that are compared; one with more of them is not recorded.
const MAX_TEXTS: usize = 64;

/// The input of a job, null if it was given none. One that is not known any more may hold any text.
type Input<'a> = Option<&'a Value>;

impl Output {
    /// The same without a summary that repeats the input.
    pub fn without_echo(self, input: Input<'_>) -> Self {
        let input = InputWords::of(input);
        Self { summary: self.summary.map(|text| input.shown(text)), ..self }
    }
}

impl Deferral {
    /// The same without texts that repeat the input. The connector's own reason is no word of a service.
    pub fn without_echo(self, input: Input<'_>, own_reason: Option<&str>) -> Self {
        let input = InputWords::of(input);
        let cancelability = match self.cancelability {
            Cancelability::NotCancelable(why) if own_reason != Some(&why) => {
                Cancelability::NotCancelable(input.shown(why))
            }
            other @ (Cancelability::Cancelable | Cancelability::NotCancelable(_)) => other,
        };
        Self { cancelability, progress_hint: self.progress_hint.map(|text| input.shown(text)), ..self }
    }
}

/// What came with "not over", without texts that repeat the input.
pub(crate) fn hints_without_echo(hints: PollHints, input: Input<'_>) -> PollHints {
    let input = InputWords::of(input);
    PollHints {
        progress_hint: hints.progress_hint.map(|text| input.shown(text)),
        progress: hints.progress.and_then(|progress| input.progress_shown(&progress)),
        ..hints
    }
}

/// The words of the input, split once for all texts of an answer; none if the input is not known any more.
pub(crate) struct InputWords(Option<Texts>);

/// The texts and numbers of an input, and the telling words of its keys.
#[derive(Default)]
struct Texts {
    values: Vec<Vec<String>>,
    ids_of_keys: Vec<String>,
}

/// The words of one text of a service.
struct TextWords {
    in_order: Vec<String>,
    all: BTreeSet<String>,
    quotes: BTreeSet<Vec<String>>,
}

impl InputWords {
    pub(crate) fn of(input: Input<'_>) -> Self {
        Self(input.map(|input| {
            let mut texts = Texts::default();
            texts.collect(input);
            texts
        }))
    }

    fn shown(&self, text: String) -> String {
        if self.is_repeated_by(&text) { NOT_SHOWN.to_owned() } else { text }
    }

    fn is_repeated_by(&self, text: &str) -> bool {
        let words = TextWords::of(text);
        !words.in_order.is_empty() && self.0.as_ref().is_none_or(|input| input.is_repeated_by(&words))
    }

    /// The same of names: what has no digits is a usual name.
    pub(crate) fn is_repeated_by_name(&self, name: &str) -> bool {
        let Some(input) = &self.0 else { return true };
        let words = TextWords::of(name);
        words.in_order.iter().any(|word| is_id(word)) && input.is_repeated_by(&words)
    }

    /// The progress object with a sentence in place of each text that repeats the input, and without members so named. None if that cannot
    /// be told.
    fn progress_shown(&self, progress: &Json) -> Option<Json> {
        let mut value = serde_json::from_str::<Value>(progress.as_str()).ok()?;
        if count_texts(&value) > MAX_TEXTS {
            return None;
        }
        if self.clear(&mut value) { Json::parse(&value.to_string()).ok() } else { Some(progress.clone()) }
    }

    /// Clears a value of what repeats the input; whether there was any.
    fn clear(&self, value: &mut Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
            Value::String(text) => {
                let is_echo = self.is_repeated_by(text);
                if is_echo {
                    NOT_SHOWN.clone_into(text);
                }
                is_echo
            }
            Value::Array(items) => self.clear_all(items.iter_mut()),
            Value::Object(members) => {
                let all = members.len();
                // The names of a progress object are mostly names of the input, too: only a telling one counts.
                members.retain(|name, _| !self.is_repeated_by_name(name));
                let dropped = members.len() < all;
                self.clear_all(members.values_mut()) || dropped
            }
        }
    }

    fn clear_all<'a>(&self, values: impl Iterator<Item = &'a mut Value>) -> bool {
        // All of them: not only up to the first.
        values.filter_map(|value| self.clear(value).then_some(())).count() > 0
    }
}

impl Texts {
    fn collect(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => self.values.push(words_of(&number.to_string())),
            Value::String(text) => self.values.push(words_of(text)),
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(members) => {
                for (key, value) in members {
                    self.ids_of_keys.extend(words_of(key).into_iter().filter(|word| is_id(word)));
                    self.collect(value);
                }
            }
        }
    }

    fn is_repeated_by(&self, words: &TextWords) -> bool {
        self.ids_of_keys.iter().any(|id| words.hold(id))
            || self.values.iter().any(|value| words.repeat(value))
    }
}

impl TextWords {
    fn of(text: &str) -> Self {
        let in_order = words_of(text);
        let all = in_order.iter().cloned().collect();
        let quotes = in_order.windows(WORDS_OF_A_QUOTE).map(<[String]>::to_vec).collect();
        Self { in_order, all, quotes }
    }

    /// Whether they repeat a text of the input.
    fn repeat(&self, of_input: &[String]) -> bool {
        if of_input.iter().any(|word| is_id(word) && self.hold(word)) {
            return true;
        }
        if of_input.len() > WORDS_OF_A_LABEL {
            return of_input.windows(WORDS_OF_A_QUOTE).any(|quote| self.quotes.contains(quote));
        }
        let is_telling = |word: &&String| word.chars().count() >= CHARS_OF_A_WORD || !word.is_ascii();
        let chars: usize = of_input.iter().map(|word| word.chars().count()).sum();
        let is_number = of_input.iter().all(|word| is_number(word));
        of_input.iter().filter(is_telling).any(|word| self.hold(word))
            || (chars >= CHARS_OF_A_TEXT && !is_number && self.hold_in_a_row(of_input))
    }

    /// In scripts that put no space between words, a word stands inside another.
    fn hold(&self, word: &str) -> bool {
        self.all.contains(word) || (!word.is_ascii() && self.all.iter().any(|other| other.contains(word)))
    }

    fn hold_in_a_row(&self, row: &[String]) -> bool {
        !row.is_empty() && self.in_order.windows(row.len()).any(|window| window == row)
    }
}

fn count_texts(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Array(items) => items.iter().map(count_texts).sum(),
        Value::Object(members) => members.len() + members.values().map(count_texts).sum::<usize>(),
    }
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// A word with letters and digits names one thing among many, and so does a long number.
fn is_id(word: &str) -> bool {
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    has_digit && if is_number(word) { word.len() >= CHARS_OF_A_WORD } else { word.len() >= CHARS_OF_A_TEXT }
}

fn words_of(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_replaced(text: &str, input: &Value) -> bool {
        let output = Output { summary: Some(text.to_owned()), ..Output::default() };
        output.without_echo(Some(input)).summary.as_deref() == Some(NOT_SHOWN)
    }

    #[test]
    fn text_that_repeats_the_input_is_replaced() {
        let input = json!({
            "patient": ["PATIENT-7F3A-SSN", { "number": 123_456, "AB12": 1 }],
            "name": "Ada Bo",
            "pin": "4711",
            "city": "京都",
            "size": "a4",
            "pages": 12,
            "note": "Write one page for the whole ward about the night of the fourth and what happened to room 17b",
        });
        for text in [
            "lost PATIENT-7F3A-SSN!",
            "id:patient_7f3a_ssn",
            "the patient waits",
            "7f3a",
            "number=123456.",
            "for ada bo",
            "pin 4711",
            "今日は京都です",
            "ab12",
            "about the night",
            "in 17B",
        ] {
            assert!(is_replaced(text, &input), "{text}");
        }
        for text in
            ["page 3 of 12", "a4", "the room is next", "done", "Bo", "pages: 12", "", "it happened", "60 %"]
        {
            assert!(!is_replaced(text, &input), "{text}");
        }
        assert!(!is_replaced("rendering", &Value::Null));
    }

    #[test]
    fn texts_are_replaced_when_the_input_is_gone() {
        let output = Output { summary: Some("page 3".to_owned()), ..Output::default() };
        assert_eq!(output.without_echo(None).summary.as_deref(), Some(NOT_SHOWN));
    }

    #[test]
    fn progress_of_too_many_texts_is_not_recorded() {
        let hints = |texts: usize| PollHints {
            progress: Json::parse(&json!(vec!["tree"; texts]).to_string()).ok(),
            ..PollHints::default()
        };
        let input = json!({ "patient": "PATIENT-7F3A" });
        assert!(hints_without_echo(hints(MAX_TEXTS), Some(&input)).progress.is_some());
        assert!(hints_without_echo(hints(MAX_TEXTS + 1), Some(&input)).progress.is_none());
    }

    #[test]
    fn numbers_of_progress_stay_and_texts_are_replaced() {
        let input = json!({ "patient": "PATIENT-7F3A", "pages": 123_456 });
        let progress = |text: &str| Some(Json::parse(text).unwrap());
        for (said, kept) in [
            (r#"{"percent":40.0,"pages":123456}"#, r#"{"percent":40.0,"pages":123456}"#.to_owned()),
            (
                r#"{"n":123456,"of":["PATIENT-7F3A",{"stage":"trees"}]}"#,
                format!(r#"{{"n":123456,"of":["{NOT_SHOWN}",{{"stage":"trees"}}]}}"#),
            ),
            (r#"{"7f3a":1,"n":2}"#, r#"{"n":2}"#.to_owned()),
        ] {
            let hints = PollHints { progress: progress(said), ..PollHints::default() };
            let kept = progress(&kept);
            assert_eq!(hints_without_echo(hints, Some(&input)).progress, kept, "{said}");
        }
    }
}
