//! The file part: copies that share nothing, trees that are looked through, what is renamed and what is gone.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use domain::OwnerId;
use domain::run::Left;
use rustix::fs::{CWD, FileType, Mode};

use super::*;

struct Given {
    dir: tempfile::TempDir,
    workspaces: Workspaces,
}

fn given() -> Given {
    within(TreeLimits::default())
}

fn within(limits: TreeLimits) -> Given {
    let dir = tempfile::tempdir().unwrap();
    let settings = WorkspaceSettings { limits, ..WorkspaceSettings::default() };
    let workspaces = Workspaces::in_dir(dir.path().join("workspaces"), "daemon", settings).unwrap();
    Given { dir, workspaces }
}

/// Nothing is removed before the test does it.
fn removing_later() -> (Given, std::sync::mpsc::Receiver<PathBuf>) {
    let mut given = given();
    let (removals, asked) = Removals::not_yet(given.workspaces.open.clone());
    given.workspaces.removals = removals;
    (given, asked)
}

fn run_id() -> RunId {
    RunId::new("run-1")
}

fn layer(visit: VisitIndex, attempt: &str) -> Layer {
    let left = Left { attempt_id: AttemptId::new(attempt), owner: OwnerId::new("daemon-1") };
    Layer { under: String::new(), visit, left }
}

impl Given {
    fn open(&self, attempt: &str) -> OpenWorkspace {
        self.workspaces.open(&AttemptId::new(attempt)).unwrap()
    }

    /// An attempt that has written this, sealed.
    fn left(&self, visit: VisitIndex, attempt: &str, write: impl FnOnce(&Path)) -> PathBuf {
        let open = self.open(attempt);
        write(open.path());
        let place = self.workspaces.left_at(&run_id(), &layer(visit, attempt)).unwrap();
        let tree = open.look_through().unwrap();
        open.seal(&tree, &place).unwrap();
        place
    }

    /// What is said of an attempt that has done this.
    fn refusal(&self, write: impl FnOnce(&Path)) -> String {
        let open = self.open("attempt-refused");
        write(open.path());
        match open.look_through() {
            Ok(_) => panic!("it was taken"),
            Err(
                WorkspaceError::Refused(told)
                | WorkspaceError::TooLarge { told, .. }
                | WorkspaceError::Lost(told),
            ) => told,
            Err(WorkspaceError::Io(error)) => panic!("{error}"),
        }
    }
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

fn put(path: impl AsRef<Path>, text: &str) {
    fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn append(path: impl AsRef<Path>, text: &str) {
    use std::io::Write as _;
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Waits for the thread that removes.
fn is_gone(path: &Path) {
    for _ in 0..10_000 {
        if !path.exists() {
            return;
        }
        std::thread::yield_now();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("{} is still there", path.display());
}

#[test]
fn whoever_appends_to_a_copy_changes_nothing_of_what_was_left() {
    let given = given();
    let first = given.left(0, "attempt-1", |dir| {
        put(dir.join("memory.md"), "one\n");
        put(dir.join("notes/deep.md"), "deep\n");
        fs::set_permissions(dir.join("notes/deep.md"), fs::Permissions::from_mode(0o755)).unwrap();
    });
    let second = given.open("attempt-2");
    second.fill(&[(first.clone(), String::new())]).unwrap();
    append(second.path().join("memory.md"), "two\n");
    fs::write(second.path().join("notes/deep.md"), "").unwrap();
    assert_eq!(text(second.path().join("memory.md")), "one\ntwo\n");
    assert_eq!(
        (text(first.join("memory.md")), text(first.join("notes/deep.md"))),
        ("one\n".into(), "deep\n".into())
    );
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    for name in ["memory.md", "notes/deep.md", "notes"] {
        assert_ne!(inode(&first.join(name)), inode(&second.path().join(name)), "{name}");
    }
    assert_eq!(
        fs::metadata(second.path().join("notes/deep.md")).unwrap().permissions().mode() & 0o777,
        0o755
    );
    let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let third = given.open("attempt-3");
    third.fill(&[(first.clone(), String::new())]).unwrap();
    assert_eq!(modified(&first.join("memory.md")), modified(&third.path().join("memory.md")));
}

#[test]
fn several_trees_are_put_together_each_in_its_place() {
    let given = given();
    let base = given.left(0, "attempt-1", |dir| {
        put(dir.join("plan.md"), "plan");
        put(dir.join("branches/x/stale"), "a step has put it there");
    });
    let branch = given.left(1, "attempt-2", |dir| put(dir.join("found.md"), "found"));
    let open = given.open("attempt-3");
    open.fill(&[(base, String::new()), (branch, "branches/x".to_owned())]).unwrap();
    assert_eq!(text(open.path().join("plan.md")), "plan");
    assert_eq!(text(open.path().join("branches/x/found.md")), "found");
    assert!(!open.path().join("branches/x/stale").exists());
}

#[test]
fn nothing_that_leads_out_or_is_no_file_is_kept() {
    let given = given();
    let outside = given.dir.path().join("secret");
    put(&outside, "secret");
    let told = given.refusal(|dir| symlink(&outside, dir.join("link")).unwrap());
    assert!(told.starts_with("link is a symbolic link"), "{told}");
    let told = given.refusal(|dir| symlink("missing", dir.join("dangling")).unwrap());
    assert!(told.contains("dangling is a symbolic link"), "{told}");
    let told = given.refusal(|dir| {
        fs::create_dir(dir.join("below")).unwrap();
        symlink("..", dir.join("below/up")).unwrap();
    });
    assert!(told.starts_with("below/up is a symbolic link"), "{told}");
    let told = given.refusal(|dir| fs::hard_link(&outside, dir.join("hard")).unwrap());
    assert!(told.starts_with("hard has another name elsewhere"), "{told}");
    let told = given.refusal(|dir| {
        rustix::fs::mknodat(CWD, dir.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    });
    assert!(told.contains("is a FIFO"), "{told}");
    let told = given.refusal(|dir| drop(UnixListener::bind(dir.join("socket")).unwrap()));
    assert!(told.contains("is a socket"), "{told}");
    let told = given.refusal(|dir| {
        fs::remove_dir(dir).unwrap();
        symlink("/", dir).unwrap();
    });
    assert!(told.starts_with("the directory itself is a symbolic link"), "{told}");
    assert_eq!(text(outside), "secret");
}

#[test]
fn tree_is_bounded_in_bytes_entries_and_depth() {
    let given = within(TreeLimits { bytes: 10, entries: 3, depth: 2 });
    let told = given.refusal(|dir| {
        put(dir.join("a"), "123456");
        put(dir.join("b"), "12345");
    });
    assert!(told.contains("more than 10 bytes"), "{told}");
    let told = given.refusal(|dir| {
        for name in ["a", "b", "c", "d"] {
            put(dir.join(name), "");
        }
    });
    assert!(told.contains("more than 3 files"), "{told}");
    let told = given.refusal(|dir| fs::create_dir_all(dir.join("a/b/c")).unwrap());
    assert!(told.contains("more than 2 directories"), "{told}");
    let full = given.left(0, "attempt-1", |dir| put(dir.join("a"), "1234567890"));
    let open = given.open("attempt-2");
    let twice = [(full.clone(), String::new()), (full, "branches/x".to_owned())];
    assert!(matches!(open.fill(&twice), Err(WorkspaceError::TooLarge { .. })), "nor is it filled with more");
}

#[test]
fn what_its_owner_may_not_read_is_kept_all_the_same() {
    let given = given();
    let place = given.left(0, "attempt-1", |dir| {
        put(dir.join("closed/file"), "text");
        fs::set_permissions(dir.join("closed/file"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(dir.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    });
    assert_eq!(text(place.join("closed/file")), "text");
}

#[test]
fn sealed_tree_is_renamed_and_the_directory_of_the_attempt_is_gone() {
    let given = given();
    let open = given.open("attempt-1");
    let path = open.path().to_owned();
    put(path.join("a"), "1");
    let place = given.workspaces.place(&run_id(), 3, &AttemptId::new("attempt-1")).unwrap();
    let tree = open.look_through().unwrap();
    assert!(!place.exists());
    open.seal(&tree, &place).unwrap();
    assert!(!path.exists() && place.join("a").exists());
    let parts: Vec<_> =
        place.strip_prefix(given.dir.path().canonicalize().unwrap()).unwrap().iter().collect();
    assert_eq!((parts.len(), parts[3], parts[4]), (5, "run-1".as_ref(), "3-attempt-1".as_ref()), "{parts:?}");
    // Done again by the same attempt, it replaces what is there.
    let again = given.left(3, "attempt-1", |dir| put(dir.join("b"), "2"));
    assert!(again == place && !place.join("a").exists() && place.join("b").exists());
}

#[test]
fn attempt_that_is_dropped_leaves_nothing() {
    let given = given();
    let open = given.open("attempt-1");
    let path = open.path().to_owned();
    put(path.join("closed/file"), "text");
    drop(open);
    is_gone(&path);
    let empty = given.open("attempt-2");
    let path = empty.path().to_owned();
    assert!(empty.end_if_empty().is_ok() && !path.exists());
    assert!(given.workspaces.runs().unwrap().is_empty());
}

#[test]
fn what_was_left_and_is_lost_is_told() {
    let given = given();
    let open = given.open("attempt-2");
    let place = given.workspaces.left_at(&run_id(), &layer(0, "attempt-1")).unwrap();
    let Err(WorkspaceError::Lost(told)) = open.fill(&[(place, String::new())]) else {
        panic!("it was filled")
    };
    assert!(told.contains("0-attempt-1") && !told.contains('/'), "{told}");
}

#[test]
fn attempt_that_comes_again_begins_with_nothing_and_keeps_what_it_writes_when_the_first_time_is_over() {
    let (given, asked) = removing_later();
    let first = given.open("attempt-1");
    put(first.path().join("half/done"), "text");
    let second = given.open("attempt-1");
    assert_eq!(fs::read_dir(second.path()).unwrap().count(), 0);
    put(second.path().join("notes"), "new");
    drop(first);
    let third = given.open("attempt-1");
    put(third.path().join("notes"), "new");
    for path in asked.try_iter() {
        removals::now(&path);
    }
    for open in [&second, &third] {
        assert_eq!(text(open.path().join("notes")), "new");
    }
    assert_eq!(fs::read_dir(&given.workspaces.open).unwrap().count(), 2, "the first is gone");
}

#[test]
fn run_with_the_id_of_one_that_is_retired_keeps_what_its_steps_leave() {
    let (given, asked) = removing_later();
    let old = given.left(0, "attempt-1", |dir| put(dir.join("a"), "old"));
    given.workspaces.remove(&run_id());
    assert!(!old.exists(), "it is out of the way at once");
    let new = given.left(0, "attempt-2", |dir| put(dir.join("a"), "new"));
    for path in asked.try_iter() {
        removals::now(&path);
    }
    assert_eq!(text(new.join("a")), "new");
    assert_eq!(fs::read_dir(&given.workspaces.open).unwrap().count(), 0, "what was old is gone");
}

#[test]
fn names_that_an_earlier_daemon_left_are_passed_over_until_they_are_swept() {
    let given = given();
    let name = |number: usize| given.workspaces.open.join(format!("attempt-1.{number}"));
    let earlier: Vec<PathBuf> = (0..3).map(name).collect();
    for path in &earlier {
        put(path.join("half"), "done");
    }
    let open = given.open("attempt-1");
    put(open.path().join("notes"), "new");
    assert!(!earlier.contains(&open.path().to_owned()), "{}", open.path().display());
    assert_eq!(text(earlier[0].join("half")), "done");
}

#[test]
fn runs_are_listed_and_removed_one_by_one_and_sweeping_attempts_touches_none() {
    let given = given();
    let place = given.left(0, "attempt-1", |dir| put(dir.join("a"), "1"));
    let other = given.workspaces.place(&RunId::new("run-2"), 0, &AttemptId::new("attempt-2")).unwrap();
    put(other.join("a"), "1");
    let leftover = given.open("attempt-3");
    put(leftover.path().join("half"), "done");
    given.workspaces.sweep_open().unwrap();
    is_gone(leftover.path());
    let runs = given.workspaces.runs().unwrap();
    let ids: std::collections::BTreeSet<&str> = runs.iter().map(|kept| kept.run_id.as_str()).collect();
    assert_eq!(ids, ["run-1", "run-2"].into());
    given.workspaces.remove(&RunId::new("run-2"));
    is_gone(&other);
    assert!(place.exists());
}

#[test]
fn what_a_run_leaves_after_it_was_looked_at_stays() {
    let given = given();
    let old = given.left(0, "attempt-1", |dir| put(dir.join("a"), "old"));
    let kept = given.workspaces.runs().unwrap().remove(0);
    let new = given.left(0, "attempt-2", |dir| put(dir.join("a"), "new"));
    given.workspaces.remove_kept(&kept);
    assert!(!old.exists() && new.exists());
    let kept = given.workspaces.runs().unwrap().remove(0);
    given.workspaces.remove_kept(&kept);
    assert!(given.workspaces.runs().unwrap().is_empty());
}

#[test]
fn look_is_wanted_after_so_many_attempts_and_after_more_if_it_found_more() {
    let dir = tempfile::tempdir().unwrap();
    let open = |reach, times: usize| {
        let settings = WorkspaceSettings { reach, look_after: 3, ..WorkspaceSettings::default() };
        let workspaces = Workspaces::in_dir(dir.path(), "daemon", settings).unwrap();
        workspaces.runs().unwrap();
        let looks = workspaces.looks();
        for _ in 0..times {
            workspaces.open(&AttemptId::new("attempt-1")).unwrap();
        }
        looks.has_changed().unwrap()
    };
    assert_eq!([2, 3, 7].map(|times| open(Reach::ItsNode, times)), [false, true, true]);
    assert!(!open(Reach::EveryNode, 10), "whoever retires a run has removed what it left");
    for run in 0..5 {
        fs::create_dir_all(dir.path().join(format!("ab/cd/run-{run}"))).unwrap();
    }
    assert_eq!([4, 5].map(|times| open(Reach::ItsNode, times)), [false, true]);
}

#[test]
fn only_what_was_made_or_changed_below_artifacts_is_new() {
    let given = given();
    let before = given.left(0, "attempt-1", |dir| {
        put(dir.join("artifacts/same.md"), "same");
        put(dir.join("artifacts/changed.md"), "old!");
    });
    let open = given.open("attempt-2");
    open.fill(&[(before.clone(), String::new())]).unwrap();
    put(open.path().join("artifacts/changed.md"), "new!");
    put(open.path().join("artifacts/charts/new.md"), "new");
    put(open.path().join("elsewhere.md"), "new");
    let tree = open.look_through().unwrap();
    let names = |before: Option<&Path>| {
        let new = new_files(&tree, open.path(), before).unwrap();
        new.into_iter().map(|file| file.below.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(Some(&before)), ["changed.md", "charts/new.md"]);
    assert_eq!(names(None), ["changed.md", "charts/new.md", "same.md"]);
}

#[test]
fn no_name_leads_out_of_the_directory() {
    let given = given();
    for name in ["..", "../x", "a/b", "", ".hidden", "a\0"] {
        assert!(given.workspaces.open(&AttemptId::new(name)).is_err(), "{name:?}");
        assert!(
            given.workspaces.place(&RunId::new(name), 0, &AttemptId::new("attempt-1")).is_err(),
            "{name:?}"
        );
    }
}
