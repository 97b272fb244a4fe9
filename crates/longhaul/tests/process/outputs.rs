//! What a command is given, and what it comes to.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use domain::job::JobStateName;
use domain::{AttemptId, BodyName};
use executors::process::Program;
use serde_json::json;

use crate::given::{Ended, Given};

const FLOOD_BYTES: u64 = 100_000_000;
const LIMIT_BYTES: u64 = 16 * 1_048_576;

fn attempt_of(ended: &Ended) -> AttemptId {
    ended.job.last_attempt().expect("it was tried").id.clone()
}

#[tokio::test]
async fn json_on_standard_output_is_the_result_and_its_file_an_artifact() {
    let given = Given::new();
    let ended = given.run(&json!({ "argv": ["cat"], "stdin": { "a": [1, "ü"] } })).await;
    ended.assert_completed();
    assert_eq!(ended.data, json!({ "a": [1, "ü"] }));
    let (job, attempt) = (&ended.job.id, attempt_of(&ended));
    let mut text = String::new();
    let file = given.artifacts.open(job, &attempt, "stdout").unwrap();
    file.expect("it is kept").read_to_string(&mut text).unwrap();
    assert_eq!(text, r#"{"a":[1,"ü"]}"#);
    let sha256 = store::body_ref(BodyName::Artifacts, text.as_bytes()).sha256;
    let expected = json!([{
        "name": "stdout",
        "path": format!("{job}/{attempt}/stdout"),
        "bytes": text.len(),
        "truncated": false,
        "sha256": sha256,
    }]);
    assert_eq!(ended.artifacts, expected);
}

#[tokio::test]
async fn other_output_is_shown_by_its_end() {
    let given = Given::new();
    let ended = given.run_script("echo one; echo two; echo aside >&2").await;
    ended.assert_completed();
    assert_eq!(ended.data, json!({ "exit_code": 0, "stdout_tail": "one\ntwo\n" }));
    assert_eq!(ended.artifact("stderr")["bytes"], 6);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_data_and_no_trouble() {
    let given = Given::new();
    let ended = given.run_script(r"printf 'a\377\000b'; exec printf '\376' >&2").await;
    ended.assert_completed();
    assert_eq!(ended.data["stdout_tail"], "a\u{fffd}\0b");
    for broken in [r#"{"a":"\ud800"}"#, "[1] [2]", "1e999999", "{"] {
        let ended = given.run(&json!({ "argv": ["printf", "%s", broken] })).await;
        ended.assert_completed();
        assert_eq!(ended.data, json!({ "exit_code": 0, "stdout_tail": broken }));
    }
    let deep = given.run_script("head -c 100000 /dev/zero | tr '\\0' '['").await;
    assert_eq!(deep.assert_completed().data["stdout_tail"].as_str().unwrap().len(), 4_096);
}

// conforms: R65
#[tokio::test]
async fn flood_on_both_outputs_is_read_to_its_end_and_kept_up_to_the_limit() {
    let given = Given::new();
    let script =
        format!("head -c {FLOOD_BYTES} /dev/zero & head -c {FLOOD_BYTES} /dev/zero >&2; wait; echo end");
    let ended = given.run_script(&script).await;
    ended.assert_completed();
    for name in ["stdout", "stderr"] {
        let artifact = ended.artifact(name);
        assert_eq!(artifact["bytes"], LIMIT_BYTES, "{name}");
        assert_eq!(artifact["truncated"], true, "{name}");
        let path = given.artifacts.dir().join(artifact["path"].as_str().unwrap());
        assert_eq!(fs::metadata(path).unwrap().len(), LIMIT_BYTES, "{name}");
    }
    assert!(ended.data["stdout_tail"].as_str().unwrap().ends_with("\0end\n"));
    assert_eq!(ended.job.result.summary.as_deref(), Some("exited with 0; output truncated"));
}

#[tokio::test]
async fn command_that_does_not_want_its_input_is_left_alone() {
    let given = Given::new();
    let much = "x".repeat(900_000);
    for script in ["true", "exec 0<&-; true", "head -c 1", "cat > /dev/null"] {
        let ended = given.run(&json!({ "argv": ["sh", "-c", script], "stdin": much })).await;
        ended.assert_completed();
    }
}

#[tokio::test]
async fn fixed_command_gets_the_input_of_the_job_and_its_end() {
    let argv = ["sh", "-c", "cat; pwd >&2"].map(str::to_owned).to_vec();
    let given = Given::with(|settings| settings.program = Program::Fixed(argv));
    let ended = given.run(&json!({ "anything": true })).await;
    assert_eq!(ended.assert_completed().data, json!({ "anything": true }));
}

#[tokio::test]
async fn working_directory_is_the_executors_unless_the_job_names_one() {
    let given = Given::new();
    fs::create_dir(given.dir().join("below")).unwrap();
    let here = given.dir().canonicalize().unwrap();
    let ended = given.run(&json!({ "argv": ["pwd"] })).await;
    assert_eq!(ended.data["stdout_tail"], format!("{}\n", here.display()));
    let ended = given.run(&json!({ "argv": ["pwd"], "cwd": "below" })).await;
    assert_eq!(ended.data["stdout_tail"], format!("{}/below\n", here.display()));
    let ended = given.run(&json!({ "argv": ["pwd"], "cwd": "nowhere" })).await;
    ended.assert_failed("working_directory_missing");
}

#[tokio::test]
async fn nothing_is_inherited_but_the_listed_variables_and_the_standard_descriptors() {
    let given = Given::with(|settings| {
        settings.environment.insert("FIXED".to_owned(), "1".to_owned());
        settings.environment.insert("LONGHAUL_JOB_ID".to_owned(), "forged".to_owned());
    });
    // Like a descriptor that the daemon itself was started with: it does not close by itself.
    let leaked = rustix::pipe::pipe().unwrap();
    let script = "env | cut -d= -f1 | sort | tr '\\n' ' '; echo; ls /proc/self/fd | tr '\\n' ' '";
    let asked = json!({ "argv": ["sh", "-c", script], "env": { "ASKED": "1" } });
    let ended = given.run(&asked).await;
    drop(leaked);
    let text = ended.assert_completed().data["stdout_tail"].as_str().unwrap().to_owned();
    let (names, descriptors) = text.split_once('\n').unwrap();
    let allowed = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"];
    let beyond: Vec<&str> = names.split_whitespace().filter(|name| !allowed.contains(name)).collect();
    let ours = [
        "ASKED",
        "FIXED",
        "LONGHAUL_ATTEMPT_ID",
        "LONGHAUL_ATTEMPT_NUMBER",
        "LONGHAUL_DAEMON_ID",
        "LONGHAUL_JOB_ID",
        "LONGHAUL_PROGRESS_FD",
    ];
    assert_eq!(beyond, ours);
    // 3 is for progress, and 4 is the listing itself.
    assert_eq!(descriptors.trim(), "0 1 2 3 4");
    let ended =
        given.run_script("echo $LONGHAUL_JOB_ID $LONGHAUL_ATTEMPT_NUMBER $LONGHAUL_PROGRESS_FD").await;
    assert_eq!(ended.data["stdout_tail"], format!("{} 1 3\n", ended.job.id));
}

#[tokio::test]
async fn failure_says_its_code_and_the_end_of_the_errors() {
    let given = Given::new();
    let ended = given.run_script("echo kept; echo 'no such thing' >&2; exit 3").await;
    ended.assert_failed("exit_nonzero");
    assert_eq!(ended.message(), "the command exited with 3: no such thing");
    assert_eq!(ended.artifact("stdout")["bytes"], 5);
    given.run_script("exit 75").await.assert_failed("temporary_failure");
    let ended = given.run_script("kill -9 $$").await;
    ended.assert_failed("killed_by_signal");
    assert_eq!(ended.message(), "the command was ended by signal 9");
}

#[tokio::test]
async fn failure_is_tried_again_as_the_job_says() {
    let given = Given::new();
    let script = "test $LONGHAUL_ATTEMPT_NUMBER = 2 || exit 1";
    let id = given.start_with_attempts(&json!({ "argv": ["sh", "-c", script] }), 2).await;
    given.until(&id, |job| job.attempt_count == 1 && job.state.name() == JobStateName::Queued).await;
    given.clock.advance_seconds(60);
    let ended = given.ended(&id).await;
    assert_eq!(ended.assert_completed().job.attempt_count, 2);
}

#[tokio::test]
async fn command_that_fails_by_itself_is_not_tried_again_unasked() {
    let given = Given::new();
    for script in ["exit 1", "exit 75", "kill -SEGV $$", "kill -ABRT $$"] {
        let id = given.start_with_default_attempts(&json!({ "argv": ["sh", "-c", script] })).await;
        let ended = given.ended(&id).await;
        assert_eq!((ended.job.state.name(), ended.job.attempt_count), (JobStateName::Failed, 1), "{script}");
    }
    // The kernel does not tell who sent a signal. These two are sent by whoever stops processes from outside, as the kernel without memory.
    for script in ["kill -KILL $$", "kill -TERM $$"] {
        let id = given.start_with_default_attempts(&json!({ "argv": ["sh", "-c", script] })).await;
        given.until(&id, |job| job.attempt_count == 1 && job.state.name() == JobStateName::Queued).await;
    }
    // What the job itself says goes before.
    let input = json!({ "argv": ["sh", "-c", "exit 1"], "final_exit": false });
    let id = given.start_with_default_attempts(&input).await;
    given.until(&id, |job| job.attempt_count == 1 && job.state.name() == JobStateName::Queued).await;
}

#[tokio::test]
async fn program_that_cannot_be_run_is_not_tried_again() {
    let given = Given::new();
    let plain = given.dir().join("plain");
    fs::write(&plain, "not a program").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    for program in ["no-such-program-anywhere", "./nowhere/program", plain.to_str().unwrap(), "/"] {
        let id = given.start_with_attempts(&json!({ "argv": [program] }), 3).await;
        let ended = given.ended(&id).await;
        ended.assert_failed("program_not_found");
        assert_eq!(ended.job.attempt_count, 1, "{program}");
    }
}

#[tokio::test]
async fn input_that_names_no_command_is_not_tried_again() {
    let given = Given::new();
    for input in [json!(null), json!({ "argv": [] }), json!({ "argv": ["ls"], "shell": true })] {
        let id = given.start_with_attempts(&input, 3).await;
        let ended = given.ended(&id).await;
        ended.assert_failed("invalid_input");
        assert_eq!(ended.job.attempt_count, 1);
    }
    let long = "x".repeat(1_000);
    let argv: Vec<&str> = std::iter::once("true").chain(std::iter::repeat_n(long.as_str(), 900)).collect();
    given.run(&json!({ "argv": argv })).await.assert_completed();
}
