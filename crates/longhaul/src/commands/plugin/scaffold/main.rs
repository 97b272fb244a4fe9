//! One JSON object comes on standard input, one goes to standard output. Whatever else is to be said goes to standard error.
//!
//! Built by `build.sh` with rustc alone; with cargo and serde_json the request can be read properly.

use std::io::Read;

fn main() -> std::io::Result<()> {
    let mut request = String::new();
    std::io::stdin().read_to_string(&mut request)?;
    let bytes = request.len();
    println!(
        r#"{{"status": "ok", "result": "read a request of {bytes} bytes", "state_updates": {{"bytes": {bytes}}}, "events": [{{"type": "measured", "payload": {{"bytes": {bytes}}}}}]}}"#
    );
    Ok(())
}
