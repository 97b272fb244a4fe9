//! The test binary as its own child: the same test, told by a variable to be the process that something happens to.

use std::env;
use std::ffi::OsString;
use std::process::{Child, Command, Stdio};

const ROLE: &str = "LONGHAUL_CRASH_CHILD";

/// What the parent told this process to work on, if it is a child.
pub fn told() -> Option<OsString> {
    env::var_os(ROLE)
}

/// Starts the named test of this binary as a child.
pub fn start(test: &str, told: impl Into<OsString>) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(ROLE, told.into())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}
