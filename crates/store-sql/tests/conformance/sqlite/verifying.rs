//! Verify: finds every difference between the facts and what stands beside them, and nothing else.

use std::sync::mpsc;

use domain::{BodyName, Fact, RecordId, job::JobFact};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization, TransactionOperation};
use store::{Removal, Store};
use store_sql::{Verified, facts_after, open_for_reading, verify, verify_since};

use super::file::File;
use crate::given::*;

#[tokio::test]
async fn store_that_was_only_used_is_clean() {
    let verified = File::lived_in().await.verified();
    assert_eq!(verified.differences, []);
    assert_eq!((verified.records, verified.facts), (7, 19));
}

/// Changes the file behind the store's back; verify names the record and what differs.
async fn check_found(statement: &str, record: &str, what: &str) {
    let file = File::lived_in().await;
    file.tamper(statement, 1);
    let verified = file.verified();
    assert_eq!(verified.difference_count, verified.differences.len() as u64);
    let found: Vec<String> = verified.differences.iter().map(ToString::to_string).collect();
    assert!(
        found.iter().any(|difference| difference.starts_with(record) && difference.contains(what)),
        "{statement}: {found:?}"
    );
    assert!(found.iter().all(|difference| difference.starts_with(record)), "{statement}: {found:?}");
}

#[tokio::test]
async fn changed_column_of_a_job_is_found() {
    for column in [
        "state = 'failed'",
        "updated_at = updated_at + 1",
        "owner_peer_id = 'peer-mallory'",
        "created_by_peer_id = 'peer-mallory'",
        "session_id = 'session-1'",
        "circle = NULL",
    ] {
        check_found(&format!("UPDATE jobs SET {column} WHERE id = 'work-done'"), "work-done", "columns")
            .await;
    }
}

#[tokio::test]
async fn changed_column_of_an_operation_is_found() {
    for column in
        ["job_id = 'work-done'", "status = 'completed'", "updated_at = updated_at - 1", "orphaned_at = 1"]
    {
        check_found(&format!("UPDATE operations SET {column}"), "op-press", "columns").await;
    }
}

#[tokio::test]
async fn changed_view_is_found() {
    let replace = "UPDATE jobs SET view = replace(view, '\"begun\"', '\"ended\"') WHERE id = 'work-done'";
    check_found(replace, "work-done", "view").await;
    check_found("UPDATE operations SET view = view || ' '", "op-press", "view").await;
}

#[tokio::test]
async fn missing_view_is_found() {
    check_found("DELETE FROM jobs WHERE id = 'work-done'", "work-done", "no view").await;
    check_found("DELETE FROM operations", "op-press", "no view").await;
}

#[tokio::test]
async fn view_that_no_fact_stands_behind_is_found_wherever_it_sorts() {
    for stray in ["work-0", "work-m", "work-zzz"] {
        let copy = format!(
            "INSERT INTO jobs (id, state, updated_at, view) \
             SELECT '{stray}', state, updated_at, view FROM jobs WHERE id = 'work-done'"
        );
        check_found(&copy, stray, "no facts").await;
    }
}

#[tokio::test]
async fn missing_stray_or_changed_agenda_row_is_found() {
    check_found("DELETE FROM agenda WHERE record_id = 'work-queued'", "work-queued", "no agenda row").await;
    let stray = "UPDATE agenda SET record_id = 'work-zzz' WHERE record_id = 'work-queued'";
    let file = File::lived_in().await;
    file.tamper(stray, 1);
    let found: Vec<String> = file.verified().differences.iter().map(|found| found.record.clone()).collect();
    assert_eq!(found, ["work-queued", "work-zzz"]);

    for (change, what) in [
        ("version = version + 1", "stands at"),
        ("checksum = zeroblob(16)", "stands at"),
        ("lane = 'elsewhere'", "queues at"),
        ("priority = 9", "queues at"),
        ("sequence = 0", "queues at"),
        ("ready_at = 0", "queues at"),
        ("ready = 0", "bring it back"),
        ("limit_at = 0", "limit"),
        ("kind = 'operation'", "kind"),
        ("due_at = 1", "it is due at"),
        ("ready = 0, due_at = ready_at + 1", "it is due at"),
    ] {
        let statement = format!("UPDATE agenda SET {change} WHERE record_id = 'work-queued'");
        check_found(&statement, "work-queued", what).await;
    }
    // Polled too late, too early, never.
    for (due_at, what) in [("due_at + 1", "is due at"), ("due_at - 1", "is due at"), ("NULL", "back")] {
        let statement = format!("UPDATE agenda SET due_at = {due_at} WHERE record_id = 'op-press'");
        check_found(&statement, "op-press", what).await;
    }
    check_found("UPDATE agenda SET ready = 1 WHERE record_id = 'work-lost'", "work-lost", "queues nowhere")
        .await;
    check_found("UPDATE agenda SET due_at = NULL WHERE record_id = 'work-done'", "work-done", "back").await;
    // A held job whose lease would never end.
    check_found("UPDATE agenda SET due_at = NULL WHERE record_id = 'work-running'", "work-running", "back")
        .await;
}

#[tokio::test]
async fn flipped_bit_in_any_part_of_a_fact_is_found() {
    let one = "WHERE stream = 'work-done' AND version = 2";
    for change in [
        "fact_id = CAST(x'ff' || substr(fact_id, 2) AS BLOB)",
        "kind = 'job.delivered/1'",
        "at = at + 1",
        "actor = 'testes'",
        "causation_id = ''",
        "correlation_id = ''",
        "payload = replace(payload, 'attempt-1', 'attempt-3')",
        "checksum = CAST(x'ff' || substr(checksum, 2) AS BLOB)",
    ] {
        check_found(&format!("UPDATE facts SET {change} {one}"), "work-done", "checksum").await;
    }
}

#[tokio::test]
async fn missing_fact_is_found_at_the_beginning_in_the_middle_and_at_the_end() {
    for (version, what) in [(1, "fact 1 is missing"), (2, "fact 2 is missing"), (4, "stands at")] {
        let statement = format!("DELETE FROM facts WHERE stream = 'work-done' AND version = {version}");
        check_found(&statement, "work-done", what).await;
    }
}

#[tokio::test]
async fn fact_that_stands_before_its_predecessor_in_the_ledger_is_found() {
    let statement = "UPDATE facts SET position = -1 - position WHERE stream = 'work-done' AND version = 2";
    check_found(statement, "work-done", "a fact cannot be read").await;
    let swap = "UPDATE facts SET position = 1000 WHERE stream = 'work-done' AND version = 2";
    check_found(swap, "work-done", "stands before the one before it").await;
}

/// The walk goes in the order of streams; whoever looks by state is led by another index.
#[tokio::test]
async fn index_that_leads_elsewhere_is_found() {
    let file = File::lived_in().await;
    let raw = file.raw();
    let page: i64 = raw
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'jobs_by_state'", [], |row| row.get(0))
        .unwrap();
    drop(raw);
    let mut bytes = file.bytes();
    let page = usize::try_from(page - 1).unwrap() * 4_096;
    let state = bytes[page..page + 4_096].windows(9).position(|word| word == b"completed").unwrap();
    bytes[page + state..page + state + 9].copy_from_slice(b"cancelled");
    let damaged = File::holding(&bytes);
    let found: Vec<String> = damaged.verified().differences.iter().map(ToString::to_string).collect();
    assert!(!found.is_empty() && found.iter().all(|told| told.starts_with("the file: ")), "{found:?}");
}

#[tokio::test]
async fn fact_moved_to_another_stream_is_found() {
    let file = File::lived_in().await;
    file.tamper(
        "UPDATE facts SET stream = 'work-lost', version = 5 WHERE stream = 'work-done' AND version = 4",
        1,
    );
    let found: Vec<String> = file.verified().differences.iter().map(|found| found.record.clone()).collect();
    assert!(found.contains(&"work-lost".to_owned()), "{found:?}");
    assert!(found.contains(&"work-done".to_owned()), "{found:?}");
}

#[tokio::test]
async fn changed_body_is_found() {
    let statement = "UPDATE bodies SET bytes = x'00' WHERE record_id = 'work-done' AND name = 'result'";
    check_found(statement, "work-done", "its result is not what its digest says").await;
}

#[tokio::test]
async fn record_that_was_handed_back_is_due_from_then_on_and_no_difference() {
    let file = File::lived_in().await;
    let store = file.open();
    // In time, in time again, and after its lease has run out.
    for (id, at_seconds) in [(job("queued"), 70), (operation("press"), 70), (job("later"), 900)] {
        let taken = taken(&store, &id, "node-a", at(64)).await;
        store.hand_back(&id, taken.claim.fence(), at(at_seconds), at(at_seconds)).await.unwrap();
    }
    let running = store.load(&job("running")).await.unwrap().unwrap().claim.unwrap();
    store.hand_back(&job("running"), running.fence(), at(70), at(70)).await.unwrap();
    drop(store);
    assert_eq!(file.verified().differences, []);
    // A job under a lease is due when it was handed back, and at no time of its own.
    file.tamper("UPDATE agenda SET due_at = 1 WHERE record_id = 'work-running'", 1);
    let found = file.verified().differences;
    assert!(found.len() == 1 && found[0].to_string().contains("it is due at"), "{found:?}");
}

#[tokio::test]
async fn missing_body_and_body_of_no_record_are_found() {
    let missing = "DELETE FROM bodies WHERE record_id = 'work-done' AND name =";
    check_found(&format!("{missing} 'result'"), "work-done", "its result is missing").await;
    check_found(&format!("{missing} 'input'"), "work-done", "its input is missing").await;
    check_found("DELETE FROM bodies WHERE name = 'handle'", "op-press", "its handle is missing").await;
    for stray in ["work-0", "work-m", "work-zzz"] {
        let copy = format!("INSERT INTO bodies SELECT '{stray}', name, sha256, bytes FROM bodies LIMIT 1");
        check_found(&copy, stray, "bodies and no facts").await;
    }
}

#[tokio::test]
async fn bodies_that_were_purged_are_not_missing() {
    let file = File::lived_in().await;
    let store = file.open();
    let mut purging = next_change(&store, &job("done"), vec![Fact::Job(JobFact::Purged)], at(99)).await;
    purging.removal = Removal::Bodies;
    store.commit(commit(vec![purging], at(99))).await.unwrap();
    drop(store);
    assert_eq!(file.verified().differences, []);
}

#[tokio::test]
async fn many_large_bodies_are_compared_one_after_the_other() {
    let file = File::missing();
    let store = file.open();
    for number in 0..6_u8 {
        let body = new_body(BodyName::Input, &vec![number; 700_000]);
        let fact = created_with(|new| new.bodies = vec![body.body]);
        let mut creating = creation(&job(&format!("{number}")), fact, at(0));
        creating.bodies = vec![body];
        store.commit(commit(vec![creating], at(0))).await.unwrap();
    }
    drop(store);
    assert_eq!(file.verified().differences, []);
    file.tamper("UPDATE bodies SET bytes = x'00' WHERE record_id IN ('work-0', 'work-5')", 2);
    let found: Vec<String> = file.verified().differences.iter().map(|found| found.record.clone()).collect();
    assert_eq!(found, ["work-0", "work-5"]);
}

#[tokio::test]
async fn what_cannot_be_read_is_a_difference_and_the_walk_goes_on() {
    let no_text = "CAST(x'ff00fe' AS TEXT)";
    for (statement, record, what) in [
        (
            format!("UPDATE jobs SET view = {no_text} WHERE id = 'work-done'"),
            "work-done",
            "view cannot be read",
        ),
        (format!("UPDATE jobs SET circle = {no_text} WHERE id = 'work-done'"), "work-done", "cannot be read"),
        (format!("UPDATE operations SET job_id = {no_text}"), "op-press", "cannot be read"),
        (
            format!("UPDATE agenda SET lane = {no_text} WHERE record_id = 'work-queued'"),
            "work-queued",
            "agenda",
        ),
        ("UPDATE agenda SET version = -1 WHERE record_id = 'work-done'".to_owned(), "work-done", "agenda"),
        (
            "UPDATE agenda SET checksum = x'00' WHERE record_id = 'work-done'".to_owned(),
            "work-done",
            "agenda",
        ),
        (
            "UPDATE agenda SET heartbeat_at = NULL WHERE record_id = 'op-press'".to_owned(),
            "op-press",
            "agenda",
        ),
        (format!("UPDATE bodies SET name = {no_text} WHERE name = 'handle'"), "op-press", "cannot be read"),
        ("UPDATE bodies SET sha256 = x'00' WHERE name = 'handle'".to_owned(), "op-press", "cannot be read"),
    ] {
        check_found(&statement, record, what).await;
    }
    for change in [
        format!("actor = {no_text}"),
        format!("payload = {no_text}"),
        "fact_id = x'00'".to_owned(),
        "version = -2".to_owned(),
    ] {
        let one = "WHERE stream = 'work-done' AND version = 2";
        check_found(&format!("UPDATE facts SET {change} {one}"), "work-done", "a fact cannot be read").await;
    }
}

#[tokio::test]
async fn name_that_cannot_be_read_is_a_difference_also_at_the_end_of_a_page() {
    let file = File::missing();
    let store = file.open();
    for half in 0..2 {
        let jobs = (0..700).map(|number| creation(&job(&format!("{half}-{number:03}")), created(), at(0)));
        store.commit(commit(jobs.collect(), at(0))).await.unwrap();
    }
    drop(store);
    // The last of the first page and its neighbours.
    file.tamper(
        "UPDATE facts SET stream = CAST(CAST(stream AS BLOB) || x'ff' AS TEXT) \
         WHERE stream IN ('work-1-298', 'work-1-299', 'work-1-300')",
        3,
    );
    let verified = file.verified();
    assert_eq!((verified.facts, verified.records), (1_400, 1_397));
    let records: std::collections::BTreeSet<&str> =
        verified.differences.iter().map(|found| found.record.trim_end_matches('\u{fffd}')).collect();
    assert_eq!(records.into_iter().collect::<Vec<_>>(), ["work-1-298", "work-1-299", "work-1-300"]);
}

#[tokio::test]
async fn every_difference_is_counted_and_the_first_hundred_are_told() {
    let file = File::missing();
    let store = file.open();
    let jobs = (0..150).map(|number| creation(&job(&format!("{number:03}")), created(), at(0))).collect();
    store.commit(commit(jobs, at(0))).await.unwrap();
    drop(store);
    file.tamper("UPDATE jobs SET state = 'failed'", 150);
    let verified = file.verified();
    assert_eq!((verified.difference_count, verified.differences.len()), (150, 100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn verify_beside_a_busy_store_stays_clean() {
    let file = File::missing();
    let store = std::sync::Arc::new(file.open());
    let (path, (done, is_done)) = (file.path(), mpsc::channel::<()>());
    let verifying = std::thread::spawn(move || {
        let mut rounds = Vec::new();
        // At least one more round after the last commit.
        while is_done.try_recv() == Err(mpsc::TryRecvError::Empty) {
            rounds.push(super::file::verified(&path));
        }
        rounds.push(super::file::verified(&path));
        rounds
    });
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..6 {
        let store = store.clone();
        tasks.spawn(async move {
            for number in 0..40 {
                // Ids that fall anywhere among those that are there.
                let id = job(&format!("{:02}-{task}", number * 37 % 40));
                live_and_go(&*store, &id, number % 3 == 0).await;
            }
        });
    }
    tasks.join_all().await;
    drop(done);
    let rounds: Vec<Verified> = verifying.join().unwrap();
    assert!(rounds.len() > 1);
    for verified in &rounds {
        assert_eq!(verified.differences, []);
    }
    assert_eq!(rounds.last().unwrap().records, 6 * 26);
}

/// A job from its creation to its end, and for some also to its retirement.
async fn live_and_go(store: &dyn Store, id: &RecordId, retire: bool) {
    let body = new_body(BodyName::Result, id.as_str().as_bytes());
    write(store, id, vec![created()], at(0)).await;
    taken(store, id, "node-a", at(0)).await;
    write(store, id, vec![dispatched(1)], at(1)).await;
    let mut ending = next_change(store, id, vec![completed_with(body.body)], at(2)).await;
    ending.bodies = vec![body];
    store.commit(commit(vec![ending], at(2))).await.unwrap();
    if retire {
        store.commit(retiring(store, id).await).await.unwrap();
    }
}

async fn retiring(store: &dyn Store, id: &RecordId) -> store::Commit {
    let mut retiring = next_change(store, id, vec![Fact::Job(JobFact::Retired)], at(3)).await;
    retiring.removal = Removal::Record;
    commit(vec![retiring], at(3))
}

/// Verifies a store of more than one page, and between the first page and the second lets something happen.
async fn verified_while(happens: impl AsyncFnOnce(&dyn Store)) -> Verified {
    let file = File::missing();
    let store = file.open();
    // 64 facts each: the first page of 1,000 ends within `work-15`.
    for number in 0..20 {
        let facts = std::iter::once(created()).chain(std::iter::repeat_n(noted("x"), 63)).collect();
        write(&store, &job(&format!("{number:02}")), facts, at(0)).await;
    }
    let (first_page_is_read, mut go) = tokio::sync::oneshot::channel();
    let (resume, resumed) = mpsc::channel::<()>();
    let path = file.path();
    let verifying = tokio::task::spawn_blocking(move || {
        let mut reader = open_for_reading(&path).unwrap();
        let mut signal = Some(first_page_is_read);
        let mut pages = 0;
        let between_pages = move |context: AuthContext<'_>| {
            if context.action == (AuthAction::Transaction { operation: TransactionOperation::Begin }) {
                pages += 1;
                if pages == 2 {
                    signal.take().unwrap().send(()).unwrap();
                    resumed.recv().unwrap();
                }
            }
            Authorization::Allow
        };
        reader.authorizer(Some(between_pages)).unwrap();
        verify(&reader).unwrap()
    });
    (&mut go).await.unwrap();
    happens(&store).await;
    resume.send(()).unwrap();
    verifying.await.unwrap()
}

#[tokio::test]
async fn record_that_is_created_behind_a_verify_under_way_is_no_difference() {
    let verified = verified_while(async |store| {
        // All around the stream at which the first page ended.
        for name in ["", "00-more", "14-more", "15-more", "16-more", "zzz"] {
            write(store, &job(name), vec![created()], at(1)).await;
        }
        write(store, &operation("a"), vec![accepted(&job("00"), at(9))], at(1)).await;
    })
    .await;
    assert_eq!(verified.differences, []);
    assert_eq!(verified.records, 23);
}

#[tokio::test]
async fn record_that_changes_during_a_verify_is_no_difference() {
    let verified = verified_while(async |store| {
        for name in ["00", "14", "15", "16", "19"] {
            write(store, &job(name), vec![dispatched(1)], at(1)).await;
        }
    })
    .await;
    assert_eq!(verified.differences, []);
    assert_eq!(verified.records, 20);
}

#[tokio::test]
async fn record_that_is_retired_during_a_verify_is_no_difference() {
    let verified = verified_while(async |store| {
        for name in ["00", "14", "15", "16", "19"] {
            write(store, &job(name), vec![dispatched(1), completed()], at(1)).await;
            store.commit(retiring(store, &job(name)).await).await.unwrap();
        }
    })
    .await;
    assert_eq!(verified.differences, []);
    assert_eq!(verified.records, 17);
}

/// The positions of a record's first and last fact.
fn places(file: &File, stream: &str) -> (u64, u64) {
    let facts = facts_after(&open_for_reading(&file.path()).unwrap(), 0).unwrap();
    let places: Vec<u64> =
        facts.iter().filter(|fact| fact.stream == stream).map(|fact| fact.position).collect();
    (*places.first().unwrap(), *places.last().unwrap())
}

#[tokio::test]
async fn what_was_touched_since_a_place_is_verified_whole_and_nothing_else() {
    let file = File::lived_in().await;
    let since = |position| verify_since(&open_for_reading(&file.path()).unwrap(), position).unwrap();
    let whole = since(0);
    assert_eq!((whole.records, whole.facts, whole.differences.len()), (7, 19, 0));
    let end = whole.position;
    assert_eq!((since(end).records, since(end).position), (0, end));
    let (first, last) = places(&file, "work-done");
    // From its first fact on, also when only its last one is newer.
    let touched = since(last - 1);
    assert!(touched.records < 7 && touched.facts > end - last, "{touched:?}");
    file.tamper("UPDATE facts SET actor = 'nobody' WHERE stream = 'work-done' AND version = 1", 1);
    assert_eq!(since(last - 1).differences[0].record, "work-done");
    assert_eq!(since(last).difference_count, 0, "it was not touched after its last fact");
    assert!(first < last);
}
