//! The log: one line per event on standard error. `LONGHAUL_LOG` says how much: `warn`, `debug`, `info,server=debug`.

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const VARIABLE: &str = "LONGHAUL_LOG";

/// From now on.
pub fn to_standard_error() {
    let usual = || Targets::new().with_default(LevelFilter::INFO);
    let wanted = match std::env::var(VARIABLE) {
        Err(_) => usual(),
        Ok(text) => text.parse().unwrap_or_else(|error| {
            eprintln!("longhaul: {VARIABLE}={text:?} is not understood: {error}");
            usual()
        }),
    };
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_filter(wanted);
    tracing_subscriber::registry().with(lines).init();
}
