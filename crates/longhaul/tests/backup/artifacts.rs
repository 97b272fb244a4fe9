//! What attempts have said comes along, or not, as is asked for; what does not fit a shared store stays a file.

use crate::given::{ended, expect, longhaul};
use crate::home::{Home, Kind, backup_file, number, text};

/// More than a shared store takes.
const LARGE: &str = "head -c 17000000 /dev/zero | tr '\\0' x";
const SMALL: &str = "seq 1 60000; echo complained >&2";

fn command(home: &Home, script: &str) -> String {
    let id = expect(0, &longhaul(home.path(), &["run", "--detach", "--", "sh", "-c", script]));
    ended(home.path(), id.trim(), "completed");
    id.trim().to_owned()
}

#[test]
fn output_is_read_from_a_restored_store_of_either_kind_whichever_it_came_from() {
    for (from, through) in [(Kind::File, Kind::Server), (Kind::Server, Kind::File)] {
        let home = Home::new(from);
        let (small, large, purged, silent, logs) = {
            let _daemon = home.daemon(&[]);
            let (small, large) = (command(&home, SMALL), command(&home, LARGE));
            let (purged, silent) = (command(&home, SMALL), command(&home, "true"));
            expect(0, &longhaul(home.path(), &["purge", &purged]));
            let logs = expect(0, &longhaul(home.path(), &["jobs", "logs", &large]));
            (small, large, purged, silent, logs)
        };
        let (_dir, file) = backup_file();
        home.backup(&file);
        let of_purged = format!("SELECT count(*) FROM backup_artifact_chunks WHERE record_id = '{purged}'");
        assert_eq!(number(&file, &of_purged), 0, "what was purged is not in a backup");
        let between = Home::new(through);
        between.restore(&file);
        let (_dir, second) = backup_file();
        between.backup(&second);
        let last = Home::new(from);
        last.restore(&second);
        for restored in [between, last] {
            let _daemon = restored.daemon(&[]);
            let said = |arguments: &[&str]| {
                expect(0, &longhaul(restored.path(), &[&["jobs", "logs"], arguments].concat()))
            };
            assert!(said(&[&small]).ends_with("\n60000\n"));
            assert_eq!(said(&["--stderr", &small]), "complained\n");
            assert!(said(&[&large]) == logs, "{} bytes", logs.len());
            assert_eq!(said(&[&silent]), "");
        }
    }
}

/// A file lies where the directory would be: what is too large for a database finds no place.
#[test]
fn restore_whose_large_artifacts_find_no_place_leaves_no_store_and_can_be_repeated() {
    let home = Home::new(Kind::File);
    let id = {
        let _daemon = home.daemon(&[]);
        command(&home, SMALL)
    };
    let name = std::path::Path::new(&id).join(attempt_of(&home, &id)).join("stdout");
    let large = vec![b'x'; usize::try_from(store::MAX_SHARED_ARTIFACT_BYTES).unwrap() + 1];
    std::fs::write(home.path().join("artifacts").join(&name), &large).unwrap();
    let (_dir, file) = backup_file();
    home.backup(&file);
    let target = Home::new(Kind::Server);
    let artifacts = target.path().join("artifacts");
    std::fs::write(&artifacts, "in the way").unwrap();
    expect(1, &target.run(&["restore", text(&file)]));
    expect(1, &target.run(&["verify"]));
    std::fs::remove_file(&artifacts).unwrap();
    target.restore(&file);
    target.verify();
    assert!(std::fs::read(artifacts.join(name)).unwrap() == large);
}

/// The directory of the only attempt of a job.
fn attempt_of(home: &Home, id: &str) -> std::ffi::OsString {
    let mut attempts = std::fs::read_dir(home.path().join("artifacts").join(id)).expect("it is there");
    attempts.next().expect("it has said something").expect("it can be read").file_name()
}

#[test]
fn backup_without_artifacts_has_none_and_restores_all_the_same() {
    for kind in [Kind::File, Kind::Server] {
        let home = Home::new(kind);
        let id = {
            let _daemon = home.daemon(&[]);
            command(&home, SMALL)
        };
        let (_dir, file) = backup_file();
        expect(0, &home.run(&["backup", text(&file), "--without-artifacts"]));
        assert_eq!(number(&file, "SELECT count(*) FROM backup_artifact_chunks"), 0);
        let restored = Home::new(Kind::File);
        restored.restore(&file);
        let _daemon = restored.daemon(&[]);
        ended(restored.path(), &id, "completed");
        // Nobody takes that for a command that has said nothing.
        assert_eq!(expect(1, &longhaul(restored.path(), &["jobs", "logs", &id])), "");
    }
}
