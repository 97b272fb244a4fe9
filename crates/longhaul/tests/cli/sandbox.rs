//! What commands, plugins and backends can reach of the daemon that runs them: nothing of its data, its memory, its environment, and no
//! signal. The real binary, real commands that try it in every way that a shell knows.

mod links;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use landlock::{ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr};
use serde_json::json;

use crate::given::{Daemon, binary, create, ended, expect, longhaul, plugin, within};
use crate::handed_over::ok;

const ATTACK: &str = include_str!("sandbox/attack.sh");
const WORKS: [&str; 5] = ["tmp", "own_signals", "project", "rename", "directory"];
const SECRET: &str = "in-the-environment-of-the-daemon";
const NOBODY: u32 = 65_534;
/// More rules on top of each other than Landlock takes.
const MOST_LAYERS: usize = 16;

/// A project with a data directory in it, and a daemon that was started in the project.
struct Project {
    dir: tempfile::TempDir,
    daemon: Option<Daemon>,
}

impl Project {
    fn new() -> Self {
        // Elsewhere than where commands put what is temporary.
        let dir = tempfile::tempdir_in("/var/tmp").expect("it is set up");
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("it is set up");
        let project = Self { dir, daemon: None };
        for made in project.directories() {
            std::fs::create_dir_all(made).expect("it is set up");
        }
        let anyone = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(project.path().join("out"), anyone).expect("it is set up");
        std::fs::set_permissions(project.data(), std::fs::Permissions::from_mode(0o700))
            .expect("it is set up");
        std::fs::write(project.path().join("attack.sh"), ATTACK).expect("it can be written");
        project
    }

    fn started(config: &str) -> Self {
        let mut project = Self::new();
        project.start(config, |command| command);
        project
    }

    fn start(&mut self, config: &str, change: impl FnOnce(Command) -> Command + Send) {
        std::fs::write(self.path().join("longhaul.yaml"), config).expect("it can be written");
        let command = change(binary(&["serve", "--listen", "127.0.0.1:0"]));
        self.daemon = Some(self.confined(command).expect("it is there"));
    }

    fn confined(&self, mut command: Command) -> Result<Daemon, String> {
        command.env("SECRET_OF_DAEMON", SECRET);
        Daemon::confined(&self.data(), &self.path(), command)
    }

    fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("it is there").join("project")
    }

    fn data(&self) -> PathBuf {
        self.path().join("longhaul-data")
    }

    fn directories(&self) -> [PathBuf; 4] {
        [self.path(), self.data(), self.path().join("agents"), self.path().join("out")]
    }

    fn pid(&self) -> u32 {
        self.daemon.as_ref().expect("it is there").pid()
    }

    /// The shell line that attacks, and leaves what it has to say in a file.
    fn attack(&self, who: &str) -> String {
        let (project, data) = (self.path(), self.data());
        let (project, data) = (project.display(), data.display());
        // The id of the daemon is known only after its start.
        format!(
            "cd '{project}' && bash attack.sh '{data}' \"$(cat '{project}/pid')\" \"$PPID\" > '{project}/out/{who}.new' 2>&1; \
             mv '{project}/out/{who}.new' '{project}/out/{who}'"
        )
    }

    fn write_pid(&self) {
        std::fs::write(self.path().join("pid"), self.pid().to_string()).expect("it can be written");
    }

    fn said(&self, who: &str) -> String {
        let file = self.path().join("out").join(who);
        within("the attack is over", || std::fs::read_to_string(&file).ok())
    }

    #[track_caller]
    fn assert_refused(&self, who: &str) {
        let said = self.said(who);
        let token = std::fs::read_to_string(self.data().join("admin.token")).expect("it can be read");
        assert!(!said.contains("LEAK"), "{who}: {said}");
        assert!(!said.contains(token.trim()) && !said.contains(SECRET), "{who}: {said}");
        for works in WORKS {
            assert!(said.contains(&format!("WORKS {works}")), "{works} of {who}: {said}");
        }
        let answered = longhaul(&self.data(), &["jobs", "list"]);
        expect(0, &answered);
    }

    fn run(&self, script: &str) -> String {
        let input = json!({ "argv": ["bash", "-c", script] }).to_string();
        create(&self.data(), &["attack", "--executor", "command", "--input", &input, "--max-attempts", "1"])
    }
}

impl Drop for Project {
    /// The directory is removed with all that is in it, but never while something is mounted there.
    fn drop(&mut self) {
        self.daemon = None;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok();
        let place = self.dir.path().canonicalize().ok();
        let is_free = mounts.zip(place).is_some_and(|(mounts, place)| {
            let below = format!(" {}", place.display());
            !mounts.contains(&below)
        });
        self.dir.disable_cleanup(!is_free);
    }
}

#[test]
fn command_in_sandbox_reaches_nothing_of_the_daemon() {
    let project = Project::started("");
    project.write_pid();
    let earlier = project.run("echo private output of another attempt");
    ended(&project.data(), &earlier, "completed");
    let id = project.run(&project.attack("command"));
    ended(&project.data(), &id, "completed");
    project.assert_refused("command");
    // The second one has the same supervisor.
    let id = project.run(&project.attack("again"));
    ended(&project.data(), &id, "completed");
    project.assert_refused("again");
}

#[test]
fn plugin_in_sandbox_reaches_only_its_own_workspace() {
    let mut project = Project::new();
    let script = format!(
        r#"request=$(cat)
files=$(printf '%s' "$request" | grep -o '"workspace_dir":"[^"]*"' | cut -d'"' -f4)
mine=$(ls '{data}'/workspaces/open/* | wc -l)
{attack}
cd "$files" && mkdir below && echo private > below/secret && cat below/secret > /dev/null && works=WORKS
printf '{{"status":"ok","result":"%s %s"}}' "$works" "$mine""#,
        data = project.data().display(),
        attack = project.attack("plugin"),
    );
    plugin(&project.path(), "attacker", &script);
    project.start("plugin_roots: [plugins]\nplugins: { attacker: { retry: { max_attempts: 1 } } }\n", |c| c);
    project.write_pid();
    let id = create(&project.data(), &["attack", "--executor", "attacker", "--input", "{}"]);
    let result = ended(&project.data(), &id, "completed");
    assert_eq!(result["data"]["result"], "WORKS 1", "{result}");
    project.assert_refused("plugin");
}

#[test]
fn workspaces_pass_from_step_to_step_in_the_sandbox() {
    let mut project = Project::new();
    let files = r#"files=$(grep -o '"workspace_dir":"[^"]*"' | cut -d'"' -f4); cd "$files" || exit 1"#;
    let writes = format!(
        "{files}\nmkdir -p kept && echo grain > kept/file\nmkdir artifacts && echo shown > artifacts/a.txt\n{ENDS}"
    );
    let reads =
        format!("{files}\n[ \"$(cat kept/file)\" = grain ] || exit 1\necho flour >> kept/file\n{ENDS}");
    plugin(&project.path(), "field", &writes);
    plugin(&project.path(), "mill", &reads);
    let pipeline = "pipelines:\n- name: line\n  on: sown\n  steps: [{ id: field, uses: field }, { id: mill, uses: mill }]\n";
    std::fs::write(project.path().join("line.yaml"), pipeline).unwrap();
    project.start("plugin_roots: [plugins]\npipelines: [line.yaml]\n", |command| command);
    let ran = crate::given::json(&project.data(), &["pipeline", "run", "line", "--wait", "60"]);
    assert_eq!(ran["run"]["state"], "completed", "{ran}");
}

const ENDS: &str = r#"printf '{"status":"ok","result":"done"}'"#;

#[test]
fn backend_in_sandbox_reaches_nothing_of_the_daemon() {
    let mut project = Project::new();
    let fire = format!("cat > /dev/null; {}; echo '{{}}'", project.attack("backend"));
    let stays = format!(
        "while read -r line; do id=$(printf '%s' \"$line\" | grep -o 'attempt-[0-9a-f]*' | head -n 1); {}; \
         echo \"{{\\\"attempt_id\\\": \\\"$id\\\", \\\"result\\\": 1}}\"; done",
        project.attack("resident")
    );
    std::fs::write(project.path().join("fire.sh"), fire).unwrap();
    std::fs::write(project.path().join("stays.sh"), stays).unwrap();
    let path = project.path();
    let config = format!(
        "executors:\n- {{ name: fire, kind: backend, argv: [bash, '{0}/fire.sh'], roots: ['{0}/agents'] }}\n\
         - {{ name: stays, kind: backend, argv: [bash, '{0}/stays.sh'], roots: ['{0}/agents'] }}\n",
        path.display()
    );
    project.start(&config, |command| command);
    project.write_pid();
    let agents = path.join("agents").display().to_string();
    let mut job = json!({ "backend": "fire", "path": agents, "prompt": "attack" });
    let id = ok(&project.data(), "/jobs", &job)["job_id"].as_str().unwrap().to_owned();
    ended(&project.data(), &id, "completed");
    project.assert_refused("backend");
    job["backend"] = "stays".into();
    job["process_scope"] = "persistent".into();
    let id = ok(&project.data(), "/jobs", &job)["job_id"].as_str().unwrap().to_owned();
    ended(&project.data(), &id, "completed");
    project.assert_refused("resident");
}

#[test]
fn sandbox_that_is_off_leaves_the_token_readable() {
    // The control reads one file and does nothing else.
    let project = Project::started("sandbox: off\n");
    let read = format!("cat '{}/admin.token' > out/free", project.data().display());
    let id = project.run(&read);
    ended(&project.data(), &id, "completed");
    let token = std::fs::read_to_string(project.data().join("admin.token")).unwrap();
    assert_eq!(project.said("free"), token);
    assert!(project.daemon.as_ref().unwrap().log().contains("because the sandbox is off"));
}

#[test]
fn command_of_unprivileged_daemon_reaches_no_data() {
    if !rustix::process::geteuid().is_root() {
        // Then every test here is about that.
        return;
    }
    let mut project = Project::new();
    project.start_as_nobody();
    project.write_pid();
    let id = project.run(&project.attack("unprivileged"));
    ended(&project.data(), &id, "completed");
    let said = project.said("unprivileged");
    assert!(!said.contains("LEAK"), "{said}");
    assert!(said.contains("WORKS tmp") && said.contains("WORKS rename"), "{said}");
    // What cannot be dumped belongs to root.
    let daemon = std::fs::metadata(format!("/proc/{}/environ", project.pid())).unwrap();
    assert_eq!(daemon.uid(), 0, "the daemon can be traced by its user");
}

#[test]
fn command_is_confined_where_nothing_can_be_mounted() {
    let mut project = Project::new();
    // Whoever is under any rule of Landlock cannot mount.
    project.start_under_layers("", &[], 1);
    project.write_pid();
    let id = project.run(&project.attack("beside"));
    ended(&project.data(), &id, "completed");
    let said = project.said("beside");
    assert!(!said.contains("LEAK"), "{said}");
    // What was beside the data directory before can be used; nothing new can come there.
    assert!(said.contains("WORKS tmp") && !said.contains("WORKS project"), "{said}");
    assert!(project.daemon.as_ref().unwrap().log().contains("they can create nothing beside it"));
}

#[test]
fn system_without_sandbox_is_announced_and_refused_if_required() {
    let mut project = Project::new();
    project.start_under_layers("", &[], MOST_LAYERS);
    let id = project.run("echo runs");
    ended(&project.data(), &id, "completed");
    let log = project.daemon.as_ref().unwrap().log();
    let told = "commands, plugins and backends can read and change";
    assert_eq!(log.matches(told).count(), 1, "{log}");
    project.daemon = None;
    project.start_under_layers("", &["--sandbox", "required"], MOST_LAYERS);
    let id = project.run("echo runs");
    let result = ended(&project.data(), &id, "failed");
    assert_eq!(result["error"]["code"], "sandbox_unavailable", "{result}");
    assert!(project.daemon.as_ref().unwrap().log().contains("no command, plugin or backend is started"));
}

impl Project {
    /// Starts the daemon as a user without privileges.
    fn start_as_nobody(&mut self) {
        std::fs::write(self.path().join("longhaul.yaml"), "").expect("it can be written");
        std::fs::write(self.data().join("log"), "").expect("it can be written");
        let owner = format!("{NOBODY}:{NOBODY}");
        let chown = Command::new("chown").arg("-hR").arg(owner).arg(self.path()).status();
        assert!(chown.expect("there is one").success());
        let program = self.path().join("longhaul");
        std::fs::copy(env!("CARGO_BIN_EXE_longhaul"), &program).expect("there is room");
        self.start("", |_| {
            let mut command = Command::new(&program);
            command.args(["serve", "--listen", "127.0.0.1:0"]);
            command.env_clear().env("PATH", std::env::var_os("PATH").expect("it is set"));
            command.uid(NOBODY).gid(NOBODY);
            command
        });
    }

    /// Starts the daemon under so many rules that allow everything.
    fn start_under_layers(&mut self, config: &str, arguments: &[&str], layers: usize) {
        std::fs::write(self.path().join("longhaul.yaml"), config).expect("it can be written");
        let command = binary(&[&["serve", "--listen", "127.0.0.1:0"], arguments].concat());
        let daemon = std::thread::scope(|scope| {
            let started = scope.spawn(|| {
                for _ in 0..layers {
                    allow_everything();
                }
                self.confined(command)
            });
            started.join().expect("it is there")
        });
        self.daemon = Some(daemon.expect("it is there"));
    }
}

fn allow_everything() {
    let all = AccessFs::from_all(ABI::V5);
    let rules = Ruleset::default().handle_access(all).expect("it is there").create().expect("it is there");
    let rules =
        rules.add_rule(PathBeneath::new(PathFd::new("/").expect("it is there"), all)).expect("it is there");
    rules.restrict_self().expect("it is there");
}

#[test]
fn command_after_a_failed_sandbox_has_another_one() {
    let mut project = Project::new();
    let [there, away] = ["there", "away"].map(|name| project.path().join("out").join(name));
    std::fs::create_dir(&there).unwrap();
    symlink(&there, project.data().join("linked")).unwrap();
    project.start("", |command| command);
    std::fs::rename(&there, &away).unwrap();
    let id = project.run("echo runs");
    let result = ended(&project.data(), &id, "failed");
    assert!(
        result["error"]["message"].as_str().unwrap().contains("the sandbox is not available"),
        "{result}"
    );
    std::fs::rename(&away, &there).unwrap();
    let id = project.run("echo runs");
    ended(&project.data(), &id, "completed");
}

#[test]
fn command_and_plugin_run_as_another_user() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut project = Project::new();
    let script = r#"files=$(grep -o '"workspace_dir":"[^"]*"' | cut -d'"' -f4)
echo mine > "$files/note" && printf '{"status":"ok","result":"%s %s"}' "$(id -u):$(id -g):$(id -G)" "$(stat -c %u "$files")""#;
    plugin(&project.path(), "who", script);
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(project.path().join("plugins/who"), readable).unwrap();
    let config = "plugin_roots: [plugins]\nrun_as: nobody\nexecutors:\n\
                  - { name: numbered, kind: process, argv: [sh, -c, 'id -u; id -g'], run_as: '12345:54321' }\n\
                  - { name: free, kind: process, argv: [cat, longhaul-data/admin.token], sandbox: off, retry: { max_attempts: 1 } }\n";
    project.start(config, |command| command);
    let id = project.run("echo $(id -u) $(id -G) $HOME; grep CapEff /proc/self/status; touch out/mine");
    let said = ended(&project.data(), &id, "completed")["data"]["stdout_tail"].as_str().unwrap().to_owned();
    assert!(said.starts_with(&format!("{NOBODY} {NOBODY} ")), "{said}");
    assert!(!said.contains("/root") && said.contains("CapEff:\t0000000000000000"), "{said}");
    let id = create(&project.data(), &["who", "--executor", "who", "--input", "{}"]);
    let result = ended(&project.data(), &id, "completed");
    let expected = format!("{NOBODY}:{NOBODY}:{NOBODY} {NOBODY}");
    assert_eq!(result["data"]["result"], expected.as_str(), "{result}");
    let id = create(&project.data(), &["number", "--executor", "numbered", "--input", "{}"]);
    assert_eq!(ended(&project.data(), &id, "completed")["data"]["stdout_tail"], "12345\n54321\n");
    // The permissions of files are enough for somebody else.
    let id = create(&project.data(), &["free", "--executor", "free", "--input", "{}"]);
    ended(&project.data(), &id, "failed");
}

#[test]
fn user_that_cannot_be_is_refused_with_line_and_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("longhaul.yaml");
    let check = |config: &str| {
        std::fs::write(&file, config).unwrap();
        let checked = binary(&["config", "check", file.to_str().unwrap()]).output().unwrap();
        let said = crate::given::stderr(&checked);
        (checked.status.success(), said)
    };
    let (fits, said) = check("run_as: no-such-user-anywhere\n");
    assert!(!fits && said.contains("longhaul.yaml:1:9: run_as: "), "{said}");
    let (fits, said) =
        check("executors:\n- { name: a, kind: process, argv: [a], run_as: nobody:no-such-group }\n");
    assert!(!fits && said.contains("longhaul.yaml:2:") && said.contains("run_as: "), "{said}");
    for config in ["sandbox: off\n", "sandbox: required\nplugins: {}\n"] {
        assert!(check(config).0, "{config}");
    }
    assert!(!check("sandbox: sometimes\n").0);
    if !rustix::process::geteuid().is_root() {
        return;
    }
    assert!(check("run_as: nobody\n").0);
    let program = dir.path().join("longhaul");
    std::fs::copy(env!("CARGO_BIN_EXE_longhaul"), &program).unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut other = Command::new(&program);
    let checked = other.args(["config", "check"]).arg(&file).uid(NOBODY).gid(NOBODY).output().unwrap();
    let said = crate::given::stderr(&checked);
    assert!(said.contains("1:9: run_as: only a daemon that runs as root"), "{said}");
}
