//! Killed at many moments: no backup that is not whole, no store that serves half of one, and the next try begins anew.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::given::{binary, expect, stderr};
use crate::home::{Home, Kind, backup_file, filled, text};

/// Moments from the start of a command to its end.
const MOMENTS: u32 = 16;

/// kill -9 after so long, if it has not ended by itself.
fn killed_after(home: &Home, arguments: &[&str], after: Duration) {
    killed(home, arguments, |_| std::thread::sleep(after));
}

/// kill -9 as soon as this file is there: in the middle, however fast the machine is.
fn killed_at_the_sight_of(home: &Home, arguments: &[&str], file: &Path) {
    killed(home, arguments, |command| {
        while !file.exists() && command.try_wait().expect("it is ours").is_none() {
            std::thread::yield_now();
        }
    });
}

fn killed(home: &Home, arguments: &[&str], wait: impl FnOnce(&mut Child)) {
    let arguments = home.with_store(arguments);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = binary(&arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary runs");
    wait(&mut child);
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().expect("it is ours");
}

#[test]
fn backup_that_is_killed_leaves_none_and_the_next_one_takes_its_place() {
    let home = filled(Kind::File);
    let (dir, file) = backup_file();
    let begun = Instant::now();
    home.backup(&file);
    let all = begun.elapsed();
    std::fs::remove_file(&file).unwrap();
    let (arguments, partial) = (["backup", text(&file)], dir.path().join("made.backup.partial"));
    let (mut in_the_middle, mut done) = (0, 0);
    let mut look = || {
        if file.exists() {
            done += 1;
            Home::new(Kind::File).restore(&file);
            std::fs::remove_file(&file).unwrap();
        } else if partial.exists() {
            in_the_middle += 1;
        }
    };
    // First: what a killed one has left would be seen at once.
    killed_at_the_sight_of(&home, &arguments, &partial);
    look();
    for moment in 0..=MOMENTS {
        killed_after(&home, &arguments, all * moment / (MOMENTS - 2));
        look();
    }
    println!("{in_the_middle} were killed in the middle, {done} were done");
    assert!(in_the_middle > 0, "none was killed in the middle");
    home.backup(&file);
    let names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["made.backup"]);
    Home::new(Kind::File).restore(&file);
}

#[test]
fn restore_that_is_killed_leaves_no_file_that_serves_and_can_be_repeated() {
    let home = filled(Kind::File);
    let (_dir, file) = backup_file();
    home.backup(&file);
    let begun = Instant::now();
    Home::new(Kind::File).restore(&file);
    let all = begun.elapsed();
    let arguments = ["restore", text(&file)];
    let mut in_the_middle = 0;
    let mut look = |target: &Home| {
        if target.path().join("longhaul.sqlite").exists() {
            target.verify();
            return;
        }
        if target.path().join("longhaul.sqlite.restoring").exists() {
            in_the_middle += 1;
            // An empty store in its place would be taken for the restored one.
            let served = target.run(&["serve", "--listen", "127.0.0.1:0"]);
            expect(1, &served);
            assert!(stderr(&served).contains("error[half_restored]: "), "{}", stderr(&served));
        }
        target.restore(&file);
        target.verify();
        assert_eq!(target.facts_up_to(u64::MAX), home.facts_up_to(u64::MAX));
    };
    let target = Home::new(Kind::File);
    killed_at_the_sight_of(&target, &arguments, &target.path().join("longhaul.sqlite.restoring"));
    look(&target);
    for moment in 0..=MOMENTS {
        let target = Home::new(Kind::File);
        killed_after(&target, &arguments, all * moment / (MOMENTS - 2));
        look(&target);
    }
    println!("{in_the_middle} were killed in the middle");
    assert!(in_the_middle > 0, "none was killed in the middle");
}

#[test]
fn restore_that_is_killed_leaves_nothing_in_a_database_and_can_be_repeated() {
    let home = filled(Kind::File);
    let (_dir, file) = backup_file();
    home.backup(&file);
    let begun = Instant::now();
    Home::new(Kind::Server).restore(&file);
    let all = begun.elapsed();
    let (mut absent, mut whole) = (0, 0);
    for moment in 0..=MOMENTS {
        let target = Home::new(Kind::Server);
        killed_after(&target, &["restore", text(&file)], all * moment / (MOMENTS - 2));
        // Waits for the lock of the one that was killed, if the server has not noticed yet.
        let again = target.run(&["restore", text(&file)]);
        if again.status.success() {
            absent += 1;
        } else {
            assert!(stderr(&again).starts_with("error[store_not_empty]: "), "{}", stderr(&again));
            whole += 1;
        }
        target.verify();
        assert_eq!(target.facts_up_to(u64::MAX), home.facts_up_to(u64::MAX));
    }
    println!("{absent} of {MOMENTS} had left nothing, {whole} were done");
    assert!(absent > 0, "none was killed in the middle");
}
