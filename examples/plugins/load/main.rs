//! Tells how busy this machine is, with nothing but the standard library: it answers without reading what it is asked.

fn main() {
    match std::fs::read_to_string("/proc/loadavg") {
        Ok(load) => {
            let minute = load.split_whitespace().next().unwrap_or("0");
            println!(
                r#"{{"status": "ok", "result": "a load of {minute}", "events": [{{"type": "load.measured", "payload": {{"one_minute": "{minute}"}}}}]}}"#
            );
        }
        Err(error) => {
            eprintln!("/proc/loadavg: {error}");
            println!(r#"{{"status": "error", "error": "the load cannot be read here", "retry": false}}"#);
        }
    }
}
