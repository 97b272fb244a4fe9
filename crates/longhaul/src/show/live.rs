//! The line that moves while one waits. On a pipe there is none, or a line for each change.

use std::io::{IsTerminal, Write};

use api::JobStatus;
use serde::Deserialize;

use super::plain;

const BAR_CHARS: u32 = 24;
/// What fits beside the bar on a narrow terminal.
const MAX_NOTE_CHARS: usize = 40;

/// A line on standard error that is written anew with every change, if someone can see it.
pub struct Live {
    visible: bool,
    shown: bool,
    /// The last of the lines, where each change has one of its own.
    lines: Option<String>,
}

/// The forms of progress that make a bar.
#[derive(Deserialize)]
struct Shares {
    done: Option<f64>,
    of: Option<f64>,
    percent: Option<f64>,
}

impl Live {
    pub fn new() -> Self {
        Self { visible: std::io::stderr().is_terminal(), shown: false, lines: None }
    }

    /// The same, and where no line can move a line for each change.
    pub fn or_lines() -> Self {
        let live = Self::new();
        Self { lines: (!live.visible).then(String::new), ..live }
    }

    pub fn show(&mut self, status: &JobStatus<'_>) {
        let line = line(status);
        match &mut self.lines {
            Some(last) if *last != line => {
                eprintln!("{line}");
                *last = line;
            }
            Some(_) => {}
            None if self.visible => self.write(&line),
            None => {}
        }
    }

    /// How much of something is done, and of how much, if that is known.
    pub fn show_share(&mut self, what: &str, done: u64, of: Option<u64>) {
        if !self.visible {
            return;
        }
        #[allow(clippy::cast_precision_loss, reason = "a bar has few places")]
        let share = of.filter(|of| *of > 0).map(|of| done as f64 / of as f64);
        match share {
            Some(share) => self.write(&format!("{what:<11}  {}", bar(share.clamp(0.0, 1.0)))),
            None if done > 0 => self.write(&format!("{what:<11}  {done}")),
            None => self.write(what),
        }
    }

    fn write(&mut self, line: &str) {
        self.shown = true;
        eprint!("\r\x1b[K{line}");
        let _ = std::io::stderr().flush();
    }

    /// Takes the line away, before anything else is printed.
    pub fn clear(&mut self) {
        if self.shown {
            self.write("");
            self.shown = false;
        }
    }
}

fn line(status: &JobStatus<'_>) -> String {
    let mut parts = vec![format!("{:<11}", status.state)];
    if let Some(share) = status.progress.as_deref().and_then(|progress| share(progress.get())) {
        parts.push(bar(share));
    }
    let note = status.progress_events.as_deref().and_then(<[_]>::last).map(|event| &*event.note);
    for text in [status.phase.as_deref(), note].into_iter().flatten() {
        parts.push(plain(text).chars().take(MAX_NOTE_CHARS).collect());
    }
    if !status.title.is_empty() {
        parts.push(plain(&status.title).chars().take(MAX_NOTE_CHARS).collect());
    }
    parts.join("  ")
}

/// How much is done, from 0 to 1, if the progress says so in a form that is known.
fn share(progress: &str) -> Option<f64> {
    let shares: Shares = serde_json::from_str(progress).ok()?;
    let share = match (shares.done, shares.of, shares.percent) {
        (Some(done), Some(of), _) if of > 0.0 => done / of,
        (_, _, Some(percent)) => percent / 100.0,
        _ => return None,
    };
    Some(share.clamp(0.0, 1.0))
}

fn bar(share: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is within 0 and 1")]
    let full = (share * f64::from(BAR_CHARS)) as usize;
    let empty = BAR_CHARS as usize - full;
    format!("[{}{}] {:3.0} %", "#".repeat(full), "·".repeat(empty), (share * 100.0).floor())
}

#[cfg(test)]
mod tests {
    use super::{bar, share};

    #[test]
    fn progress_in_a_known_form_is_a_share() {
        assert_eq!(share(r#"{"done":3,"of":4,"note":"x"}"#), Some(0.75));
        assert_eq!(share(r#"{"percent":40}"#), Some(0.4));
        assert_eq!(share(r#"{"done":9,"of":4}"#), Some(1.0));
        for unknown in ["{}", r#"{"done":1,"of":0}"#, r#"{"done":"x"}"#, "[]"] {
            assert_eq!(share(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn bar_is_full_and_says_a_hundred_only_at_the_end() {
        assert!(bar(0.999).contains('·') && bar(0.999).ends_with(" 99 %"));
        assert!(!bar(1.0).contains('·') && bar(1.0).ends_with("100 %"));
    }
}
