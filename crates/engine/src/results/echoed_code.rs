//! Whether the code that a service gives its error repeats the input of the job: then the usual code is recorded instead.
//!
//! Codes stand in facts, lists, metrics and logs, the input does not. What a service says in sentences is private anyway.

use serde_json::Value;

use crate::Failure;
use crate::echoed_text::InputWords;

/// Characters of a code.
pub const fn is_code_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/')
}

impl Failure {
    /// The same without a code of its service that stands in the input. An input that is not known any more may hold any code.
    pub fn without_echo(self, input: Option<&Value>) -> Self {
        match self.usual_reason() {
            Some(usual)
                if input.is_none_or(|input| stands_in(input, &self.reason))
                    // A part with digits in it names one thing among many.
                    || InputWords::of(input).is_repeated_by_name(&self.reason) =>
            {
                Self { reason: usual.to_owned(), cause: None, ..self }
            }
            Some(_) | None => self,
        }
    }
}

/// Whether a code is one of the texts, numbers or keys of a value, or a word of one.
fn stands_in(value: &Value, code: &str) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(number) => number.to_string() == code,
        Value::String(text) => is_word_of(text, code),
        Value::Array(items) => items.iter().any(|item| stands_in(item, code)),
        Value::Object(members) => {
            members.iter().any(|(key, value)| is_word_of(key, code) || stands_in(value, code))
        }
    }
}

fn is_word_of(text: &str, code: &str) -> bool {
    let punctuation = ['.', ':', '-', '/'];
    let is_it = |word: &str| {
        word.eq_ignore_ascii_case(code)
            || word.trim_matches(punctuation).eq_ignore_ascii_case(code.trim_matches(punctuation))
    };
    text.split(|c| !is_code_character(c)).filter(|word| !word.is_empty()).any(is_it)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::FailureCause;

    fn reason(code: &str, input: Option<Value>) -> String {
        let cause = Some(Box::new(FailureCause::Service { usual_reason: "service_failed" }));
        let failure = Failure { cause, ..Failure::permanent(code, "") };
        failure.without_echo(input.as_ref()).reason
    }

    #[test]
    fn code_that_stands_in_the_input_is_replaced() {
        let input = json!({
            "patient": ["PATIENT-7F3A-SSN", { "number": 123_456 }],
            "note": "asks for AB-12. Then no_more",
            "no_paper_left": null,
        });
        for code in [
            "PATIENT-7F3A-SSN",
            "patient-7f3a-ssn",
            "CODE-7f3a",
            "7F3A",
            "123456",
            "AB-12",
            "AB-12.",
            "no_more",
            "no_paper_left",
        ] {
            assert_eq!(reason(code, Some(input.clone())), "service_failed", "{code}");
        }
        for code in ["12345", "E404", "no_paper", "out_of_ink", "AB"] {
            assert_eq!(reason(code, Some(input.clone())), code);
        }
    }

    #[test]
    fn code_is_replaced_when_the_input_is_gone() {
        assert_eq!(reason("out_of_ink", None), "service_failed");
        assert_eq!(Failure::permanent("output_too_large", "").without_echo(None).reason, "output_too_large");
    }
}
