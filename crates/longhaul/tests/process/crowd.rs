//! A command that leaves very many processes behind, each forked twice, in a session of its own and deaf to TERM: when the attempt is over
//! none of them lives, and nobody waits for burial.
//!
//! `LONGHAUL_CHILDREN` says how many there are.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use domain::job::JobStateName;

use crate::given::Given;
use crate::lifeline::Lifeline;

const CHILDREN: usize = 1_000;
const GRACE: Duration = Duration::from_millis(100);
/// From the end of the attempt's command, or of the time that it was left, to the end of the last of them.
const ENDED_WITHIN: Duration = Duration::from_secs(2);

fn children() -> usize {
    std::env::var("LONGHAUL_CHILDREN").map_or(CHILDREN, |children| children.parse().expect("it is a number"))
}

/// Says how many it has left behind, and then does this.
fn script(children: usize, then: &str) -> String {
    let perl = format!(
        r#"use POSIX; $SIG{{TERM}} = "IGNORE"; my $made = 0;
        for (1..{children}) {{
            my $child = fork; last unless defined $child;
            if (!$child) {{ POSIX::setsid(); my $own = fork; POSIX::_exit(defined $own ? 0 : 1) if $own || !defined $own; sleep 1000 while 1 }}
            waitpid $child, 0; $made++ unless $?;
        }}
        open my $line, ">&=9"; syswrite $line, "$made\n"; {then}"#
    );
    format!("exec perl -e '{perl}'")
}

/// What descends from this process, with its state and its name.
fn descendants() -> Vec<(char, String)> {
    let mut processes = BTreeMap::new();
    for entry in fs::read_dir("/proc").expect("the system has one").flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let (name, rest) = stat.rsplit_once(") ").expect("its name is in brackets");
        let mut fields = rest.split(' ');
        let state = fields.next().and_then(|state| state.chars().next()).expect("it has a state");
        let parent: u32 = fields.next().and_then(|parent| parent.parse().ok()).expect("it has a parent");
        let name = name.split_once('(').expect("its name is in brackets").1.to_owned();
        processes.insert(pid, (parent, state, name));
    }
    let (mut found, mut parents) = (Vec::new(), vec![std::process::id()]);
    while let Some(of) = parents.pop() {
        for (pid, (_, state, name)) in processes.iter().filter(|(_, (parent, ..))| *parent == of) {
            parents.push(*pid);
            found.push((*state, name.clone()));
        }
    }
    found
}

/// Supervisors wait for another command; nothing else is there, and none of it is dead.
#[track_caller]
fn nobody_is_left() {
    let left = descendants();
    let is_at_rest = |(state, name): &&(char, String)| *state != 'Z' && name == "longhaul";
    assert_eq!(left.iter().filter(is_at_rest).count(), left.len(), "{left:?}");
}

#[tokio::test]
async fn very_many_that_hide_end_with_the_command_that_left_them_and_are_buried() {
    let given = Given::new();
    let mut lifeline = Lifeline::in_dir(given.dir());
    let children = children();
    let id = given.start_script(&lifeline.script(&script(children, "exit 0"))).await;
    assert_eq!(lifeline.said().await, children.to_string(), "the system has no room for so many");
    let over = Instant::now();
    lifeline.ended().await;
    let took = over.elapsed();
    given.ended(&id).await.assert_completed();
    nobody_is_left();
    println!("{children} processes were over {took:.2?} after their command, none left, none unburied");
    assert!(took <= ENDED_WITHIN, "the last of {children} was over after {took:?}");
}

#[tokio::test]
async fn very_many_that_are_deaf_end_with_their_cancelled_command_and_are_buried() {
    let given = Given::with(|settings| settings.grace = GRACE);
    let mut lifeline = Lifeline::in_dir(given.dir());
    let children = children();
    let id = given.start_script(&lifeline.script(&script(children, "sleep 1000 while 1"))).await;
    assert_eq!(lifeline.said().await, children.to_string(), "the system has no room for so many");
    let told = Instant::now();
    given.cancel(&id).await;
    lifeline.ended().await;
    let took = told.elapsed().saturating_sub(GRACE);
    assert_eq!(given.ended(&id).await.job.state.name(), JobStateName::Cancelled);
    nobody_is_left();
    println!("{children} processes were over {took:.2?} after their grace, none left, none unburied");
    assert!(took <= ENDED_WITHIN, "the last of {children} was over after {took:?}");
}
