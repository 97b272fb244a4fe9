//! Progress that a command writes to its own descriptor, one JSON object per line: `{"progress": {..}, "note": "..", "phase": ".."}`.
//!
//! Nothing that comes here can harm the attempt: what is too long, too much or no progress at all is counted and dropped.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::Json;
use domain::limits::{MAX_LABEL_BYTES, MAX_NOTE_BYTES, MAX_PROGRESS_BYTES};
use serde_json::value::RawValue;
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::bounded_lines::{BoundedLines, Line};
use super::capture::OutputReader;
use engine::{Link, Progress};

/// The variable that names the descriptor.
pub const PROGRESS_DESCRIPTOR: &str = "LONGHAUL_PROGRESS_FD";
/// The longest line that is read.
pub const MAX_LINE_BYTES: usize = 8_192;
/// Lines told in one interval.
const MAX_TOLD: usize = 50;
/// The interval.
const INTERVAL: Duration = Duration::from_secs(1);
const CHUNK_BYTES: usize = 4_096;

/// Tells what comes out of the pipe until the tree is over, and says how many lines were dropped.
pub(super) async fn relay(pipe: pipe::Receiver, link: Link, over: watch::Receiver<bool>) -> u64 {
    let mut output = OutputReader::new(pipe, over, CHUNK_BYTES);
    let mut lines = Lines::default();
    let mut interval = tokio::time::interval(INTERVAL);
    let mut may_tell = MAX_TOLD;
    loop {
        tokio::select! {
            bytes = output.next() => match bytes {
                Some(bytes) => lines.tell(bytes, &link, &mut may_tell),
                None => return lines.dropped,
            },
            _ = interval.tick() => may_tell = MAX_TOLD,
        }
    }
}

/// What came of the lines so far.
struct Lines {
    lines: BoundedLines,
    dropped: u64,
}

impl Default for Lines {
    fn default() -> Self {
        Self { lines: BoundedLines::new(MAX_LINE_BYTES), dropped: 0 }
    }
}

impl Lines {
    fn tell(&mut self, bytes: &[u8], link: &Link, may_tell: &mut usize) {
        for progress in self.take(bytes) {
            if *may_tell > 0 {
                *may_tell -= 1;
                link.tell(progress);
            } else {
                self.dropped += 1;
            }
        }
    }

    /// The progress in the lines that these bytes finish.
    fn take(&mut self, bytes: &[u8]) -> Vec<Progress> {
        let mut told = Vec::new();
        for line in self.lines.take(bytes) {
            match line {
                Line::Whole(line) if line.trim_ascii().is_empty() => {}
                Line::Whole(line) => match parse(&line) {
                    Some(progress) => told.push(progress),
                    None => self.dropped += 1,
                },
                Line::TooLong => self.dropped += 1,
            }
        }
        told
    }
}

/// One line; nothing if it says nothing or says it at too great a length.
fn parse(line: &[u8]) -> Option<Progress> {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(line).ok()?;
    let text = |name: &str, limit: usize| match fields.get(name) {
        None => Some(None),
        Some(value) => {
            let text: String = serde_json::from_str(value.get()).ok()?;
            (text.len() <= limit).then_some(Some(text))
        }
    };
    let progress = match fields.get("progress") {
        None => None,
        Some(value) => {
            let json = Json::parse(value.get()).ok()?;
            let fits = json.as_str().len() <= MAX_PROGRESS_BYTES && json.as_str().starts_with('{');
            Some(fits.then_some(json)?)
        }
    };
    let told =
        Progress { progress, note: text("note", MAX_NOTE_BYTES)?, phase: text("phase", MAX_LABEL_BYTES)? };
    (told != Progress::default()).then_some(told)
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let mut lines = Lines::default();
        assert!(lines.take(b"{\"note\":\"on").is_empty());
        let told = lines.take(b"e\"}\n{\"phase\":\"two\",\"progress\":{\"done\": 1}}\n{\"no");
        let notes: Vec<_> = told.iter().map(|one| (one.note.as_deref(), one.phase.as_deref())).collect();
        assert_eq!(notes, [(Some("one"), None), (None, Some("two"))]);
        assert_eq!(told[1].progress.as_ref().unwrap().as_str(), "{\"done\":1}");
        assert_eq!(lines.dropped, 0);
    }

    #[test]
    fn what_is_no_progress_is_counted_and_dropped() {
        let mut lines = Lines::default();
        let long = format!("{{\"note\":\"{}\"}}", "x".repeat(3_000));
        for garbage in [
            &b"hello\n"[..],
            b"\xff\xfe\n",
            b"[1]\n",
            b"{}\n",
            b"{\"other\":1}\n",
            b"{\"note\":1}\n",
            b"{\"progress\":5}\n",
            format!("{long}\n").as_bytes(),
        ] {
            assert!(lines.take(garbage).is_empty(), "{garbage:?}");
        }
        assert_eq!(lines.dropped, 8);
        assert!(lines.take(b"\n  \n").is_empty());
        assert_eq!(lines.dropped, 8);
    }
}
