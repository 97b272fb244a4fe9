//! What is shown while a proof goes on: one line that is written anew on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Where nobody sees a line move, one comes so often.
const EVERY: Duration = Duration::from_secs(10);

/// The line.
pub struct Progress {
    terminal: bool,
    last: Option<Instant>,
    shown: bool,
}

impl Default for Progress {
    fn default() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), last: None, shown: false }
    }
}

impl Progress {
    /// Shows how it goes.
    pub fn show(&mut self, line: &str) {
        if self.terminal {
            self.shown = true;
            eprint!("\r\x1b[K{line}");
            let _ = std::io::stderr().flush();
        } else if self.last.is_none_or(|last| last.elapsed() >= EVERY) {
            self.last = Some(Instant::now());
            eprintln!("{line}");
        }
    }

    /// Says that something else begins, wherever it is read.
    pub fn begin(&mut self, line: &str) {
        self.last = None;
        self.show(line);
    }

    /// Takes the line away, before anything else is printed.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            eprint!("\r\x1b[K");
            let _ = std::io::stderr().flush();
        }
    }
}
