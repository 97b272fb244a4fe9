//! The log: one line per event on standard error. `LONGHAUL_LOG` says how much: `warn`, `debug`, `info,server=debug`.
//!
//! A line that cannot be written, because the disk behind standard error is full or its reader is gone, is dropped: nothing ends for it.

use std::io::{self, Write};

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const VARIABLE: &str = "LONGHAUL_LOG";

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
    let usual = || Targets::new().with_default(LevelFilter::INFO);
    let wanted = match std::env::var(VARIABLE) {
        Err(_) => usual(),
        Ok(text) => text.parse().unwrap_or_else(|error| {
            say!("longhaul: {VARIABLE}={text:?} is not understood: {error}");
            usual()
        }),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| LossyStderr(io::stderr()))
        .with_ansi(false)
        .with_filter(wanted);
    tracing_subscriber::registry().with(lines).init();
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
