//! What the kernel keeps a command to.

use executors::process::{Limits, NewPrivileges};

use crate::given::Given;

const SHOW: &str =
    "ulimit -c; ulimit -n; ulimit -v; ulimit -t; grep NoNewPrivs /proc/self/status | tr -dc '01'; echo
    awk '/^Max processes/ { print $3, $4 }' /proc/self/limits";

async fn shown(given: &Given) -> Vec<String> {
    let ended = given.run_script(SHOW).await;
    let tail = ended.assert_completed().data["stdout_tail"].as_str().expect("it is text").to_owned();
    tail.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn command_leaves_no_core_and_gains_no_privileges_whatever_was_set() {
    let shown = shown(&Given::new()).await;
    assert_eq!((shown[0].as_str(), shown[4].as_str()), ("0", "1"), "{shown:?}");
}

#[tokio::test]
async fn limits_of_the_executor_hold_for_the_command() {
    let given = Given::with(|settings| {
        settings.limits = Limits {
            memory_bytes: Some(512 * 1_048_576),
            cpu_seconds: Some(77),
            open_files: Some(100),
            processes: Some(54_321),
            new_privileges: NewPrivileges::Allowed,
        };
    });
    assert_eq!(shown(&given).await, ["0", "100", "524288", "77", "0", "54321 54321"]);
    let hungry = "perl -e '$x = \"a\" x (1024 * 1024 * 1024)'";
    given.run_script(hungry).await.assert_failed("exit_nonzero");
}
