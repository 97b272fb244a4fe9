//! `longhaul demo`: killed with -9 and started again, its jobs finish.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::given::{Daemon, binary, ended, expect, json, longhaul, stderr, until, until_told, verify};

/// A process that does not outlive the test, however that ends.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn demo_shows_work_outside_moving_also_where_no_line_can_move() {
    let dir = tempfile::tempdir().unwrap();
    let mut demo = Ends(
        binary(&["demo", "--data-dir", dir.path().to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs"),
    );
    let lines = BufReader::new(demo.0.stderr.take().expect("it is ours")).lines();
    let mut moving = lines.map_while(Result::ok).filter(|line| line.starts_with("awaiting_external"));
    assert!(moving.any(|line| line.contains(" %") && !line.contains("  0 %")));
}

#[test]
fn demo_that_was_killed_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::verb(dir.path(), &["demo"]);
    let job = loop {
        let list = json(dir.path(), &["jobs", "list"]);
        if let Some(job) =
            list["work"].as_array().unwrap().iter().find(|job| job["title"] == "wait for a print")
        {
            break job["job_id"].as_str().unwrap().to_owned();
        }
    };
    until(dir.path(), &job, "awaiting_external");
    until_told(dir.path(), &job, "moving", |status| status["progress"]["percent"].as_f64() > Some(0.0));
    let url = daemon.url.clone();
    daemon.kill();
    let unreachable = stderr(&longhaul(dir.path(), &["jobs", "list"]));
    assert!(
        unreachable.contains(&format!("`longhaul demo --data-dir {}`", dir.path().display())),
        "{unreachable}"
    );
    let daemon = Daemon::verb(dir.path(), &["demo"]);
    assert_eq!(daemon.url, url, "the lines that it printed no longer work");
    // The service has the work since before the crash; it is asked about it, not given it again.
    assert_eq!(ended(dir.path(), &job, "completed")["data"]["title"], "wait for a print");
    let facts = expect(0, &longhaul(dir.path(), &["jobs", "facts", &job, "--json"]));
    assert_eq!(facts.matches("job.submit_intended/1").count(), 1);
    let list = json(dir.path(), &["jobs", "list"]);
    assert_eq!(list["work"].as_array().unwrap().len(), 3, "the second start gave it new work");
    // Nor does a start that finds them all over.
    for other in list["work"].as_array().unwrap() {
        let other = other["job_id"].as_str().unwrap();
        if other != job {
            expect(0, &longhaul(dir.path(), &["jobs", "cancel", other, "--reason", "enough"]));
            until(dir.path(), other, "cancelled");
        }
    }
    daemon.kill();
    let mut third = Ends(
        binary(&["demo", "--data-dir", dir.path().to_str().unwrap()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs"),
    );
    let lines = BufReader::new(third.0.stdout.take().expect("it is ours")).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.starts_with("Still up.")));
    let list = json(dir.path(), &["jobs", "list"]);
    assert_eq!(list["work"].as_array().unwrap().len(), 3, "the third start gave it new work");
    drop(third);
    // And `serve` knows the same executors.
    let _daemon = Daemon::start(dir.path());
    expect(0, &longhaul(dir.path(), &["jobs", "list"]));
    verify(dir.path());
}
