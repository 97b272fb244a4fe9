//! The log: one line per event on standard error. `LONGHAUL_LOG` says how much: `warn`, `debug`, `info,server=debug`.
//!
//! Audit lines are written at every level; only `audit=off` drops them. A setting with a mistake in it is ignored as a whole, with
//! a message: a misspelt level must not switch the log off. A line that cannot be written, because the disk behind standard error is full or its
//! reader is gone, is dropped: nothing ends for it.

use std::io::{self, Write};
use std::str::FromStr;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const VARIABLE: &str = "LONGHAUL_LOG";
const AUDIT: &str = "audit";
/// What lines may come from: our crates, and the two targets that are named by hand.
const TARGETS: [&str; 8] =
    [AUDIT, "domain", "engine", "longhaul", "plugin", "server", "slow_service", "store_sql"];
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A line on standard error; unlike `eprintln!` it does not panic if that cannot be written.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}
pub(crate) use say;

/// From now on.
pub fn to_standard_error() {
    let wanted = match std::env::var(VARIABLE) {
        Err(_) => usual(),
        Ok(text) => parse(&text).unwrap_or_else(|mistake| {
            say!("longhaul: {VARIABLE}={text:?} is ignored: {mistake}");
            usual()
        }),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| LossyStderr(io::stderr()))
        .with_ansi(false)
        .with_filter(wanted);
    tracing_subscriber::registry().with(lines).init();
}

fn usual() -> Targets {
    Targets::new().with_default(LevelFilter::INFO)
}

/// Levels and `target=level`, separated by commas. The library would take a misspelt level for a target and drop every other line.
fn parse(text: &str) -> Result<Targets, String> {
    let mut wanted = usual().with_target(AUDIT, LevelFilter::INFO);
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        wanted = match part.split_once('=') {
            None => wanted.with_default(level(part)?),
            Some((target, word)) => {
                let root = target.split("::").next().unwrap_or_default();
                if !TARGETS.contains(&root) {
                    return Err(format!("nothing is logged by {target:?}: use {}", TARGETS.join(", ")));
                }
                wanted.with_target(target, level(word)?)
            }
        };
    }
    Ok(wanted)
}

fn level(word: &str) -> Result<LevelFilter, String> {
    let known = LEVELS.contains(&word.to_ascii_lowercase().as_str());
    let level = LevelFilter::from_str(word).ok().filter(|_| known);
    level.ok_or_else(|| format!("{word:?} is not a level: use {}", LEVELS.join(", ")))
}

/// Standard error that takes every line: what cannot be written is dropped.
struct LossyStderr(io::Stderr);

impl Write for LossyStderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::parse;

    #[test]
    fn misspelt_log_setting_is_refused() {
        for text in ["json", "inof", "5x", "info,sever=debug", "server=loud", "=info"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn audit_lines_are_logged_at_every_level() {
        for text in ["off", "error", "warn", "", "server=trace"] {
            assert!(parse(text).unwrap().would_enable("audit", &Level::INFO), "{text}");
        }
        assert!(!parse("info,audit=off").unwrap().would_enable("audit", &Level::INFO));
    }

    #[test]
    fn log_level_applies_to_every_target_or_one() {
        let warn = parse("warn").unwrap();
        assert!(warn.would_enable("engine", &Level::WARN) && !warn.would_enable("engine", &Level::INFO));
        let one = parse("warn,engine::polls=debug").unwrap();
        assert!(
            one.would_enable("engine::polls", &Level::DEBUG) && !one.would_enable("engine", &Level::INFO)
        );
    }
}
