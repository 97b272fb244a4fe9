//! A plugin that does nothing: it reads what it is given and answers with the time at which it began, in microseconds.
//!
//! Compiled and small, because a shell that starts is noisier than what is measured with it.

use std::io::Read as _;
use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut request = Vec::new();
    let read = std::io::stdin().read_to_end(&mut request);
    match read {
        Ok(_) => println!("{{\"status\":\"ok\",\"result\":\"{}\"}}", began.as_micros()),
        Err(error) => println!("{{\"status\":\"error\",\"error\":\"{error}\"}}"),
    }
}
