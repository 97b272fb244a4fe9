//! Databases that cannot be used: each is refused with a code and with what to do, and nothing in it is changed.

use std::path::Path;
use std::process::Output;

use test_postgres::{Cluster, client};

use crate::given::{Daemon, binary, create, expect, longhaul, show, stderr, within};

/// Carries out statements on a database.
pub fn sql(address: &str, statements: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("there is room");
    let carried_out = runtime.block_on(async { client(address).await.batch_execute(statements).await });
    carried_out.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
}

/// The first number that a statement gives.
pub fn number(address: &str, statement: &str) -> i64 {
    let runtime = tokio::runtime::Runtime::new().expect("there is room");
    let row = runtime.block_on(async { client(address).await.query_one(statement, &[]).await });
    row.unwrap_or_else(|error| panic!("{statement}: {error:?}")).get(0)
}

/// One command on a database.
pub fn on(database: &str, arguments: &[&str]) -> Output {
    binary(arguments).args(["--database", database]).output().expect("the binary runs")
}

/// A daemon that does not start.
pub fn serve(dir: &Path, database: &str) -> Output {
    let data_dir = dir.to_str().expect("it is text");
    on(database, &["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir])
}

#[track_caller]
pub fn refused(output: &Output, code: &str, told: &str) {
    expect(1, output);
    let said = stderr(output);
    assert!(said.starts_with(&format!("error[{code}]: ")), "{said}");
    assert!(said.contains(told), "{said}");
    assert!(!said.contains("secret"), "{said}");
}

/// A server that asks some users for a password.
fn guarded() -> Cluster {
    let cluster = Cluster::start();
    let rules = cluster.folder().join("data/pg_hba.conf");
    let trusting = std::fs::read_to_string(&rules).expect("it is there");
    let guarded = format!("host all ada,reader 127.0.0.1/32 scram-sha-256\n{trusting}");
    std::fs::write(&rules, guarded).expect("it is writable");
    sql(&cluster.address(), "CREATE ROLE ada LOGIN PASSWORD 'secret'");
    sql(&cluster.address(), "CREATE ROLE reader LOGIN PASSWORD 'secret'");
    sql(&cluster.address(), "CREATE ROLE guest LOGIN");
    sql(&cluster.address(), "CREATE DATABASE work OWNER ada");
    sql(&cluster.address(), "SELECT pg_reload_conf()");
    cluster
}

const TABLES: &str = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'";

#[test]
fn whatever_is_wrong_with_a_database_is_named_with_what_to_do_and_nothing_is_changed() {
    let (dir, cluster) = (tempfile::tempdir().unwrap(), guarded());
    let as_admin = cluster.address().replace("/postgres", "/work");
    let server = cluster.address().split_once('@').unwrap().1.trim_end_matches("/postgres").to_owned();
    let (_, port) = server.split_once(':').unwrap();
    let (unreachable, rights) = ("database_unreachable", "database_rights");
    for (database, code, told) in [
        (
            format!("postgres://ada:secret@nowhere.invalid:{port}/work?sslmode=disable"),
            unreachable,
            "check the address",
        ),
        ("postgres://ada:secret@127.0.0.1:9/work".to_owned(), unreachable, "that the server runs"),
        (format!("postgres://ada:secret@{server}/elsewhere"), "database_missing", "createdb elsewhere"),
        (format!("postgres://ada:secretive@{server}/work"), rights, "check user and password"),
        (format!("postgres://ada@{server}/work"), rights, "check user and password"),
        (format!("postgres://nobody_i_know@{server}/work"), rights, "check user and password"),
        (format!("postgres://guest@{server}/work"), rights, "let the user own its schema"),
    ] {
        refused(&serve(dir.path(), &database), code, told);
        assert_eq!(number(&as_admin, TABLES), 0, "{database}");
    }

    // The right one, so that the others were refused for their own reasons.
    let right = format!("postgres://ada:secret@{server}/work");
    let daemon = Daemon::start_with(dir.path(), &["--no-dispatch", "--database", &right]);
    let id = create(dir.path(), &["kept"]);
    daemon.kill();
    let counted = "SELECT (SELECT count(*) FROM facts) * 1000 + (SELECT count(*) FROM tokens)";
    let before = number(&as_admin, counted);

    // Someone who may only read.
    let reading = format!("postgres://reader:secret@{server}/work");
    sql(
        &as_admin,
        "GRANT USAGE ON SCHEMA public TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
    );
    let other = tempfile::tempdir().unwrap();
    refused(&serve(other.path(), &reading), rights, "INSERT");
    expect(0, &on(&reading, &["verify"]));

    // A database that takes no writes, for anybody.
    sql(&as_admin, "ALTER DATABASE work SET default_transaction_read_only = on");
    refused(&serve(dir.path(), &right), "database_read_only", "use the primary server");
    refused(&on(&right, &["rebuild"]), "store_unavailable", "read-only");
    expect(0, &on(&right, &["verify"]));
    expect(0, &on(&right, &["export", "facts"]));
    sql(
        &as_admin,
        "SET transaction_read_only = off; ALTER DATABASE work RESET default_transaction_read_only",
    );

    // What a newer longhaul has left.
    sql(&as_admin, "UPDATE meta SET value = value + 1 WHERE name = 'schema'");
    for command in [serve(dir.path(), &right), on(&right, &["verify"]), on(&right, &["rebuild"])] {
        refused(&command, "newer_schema", "use a newer longhaul");
    }
    sql(&as_admin, "UPDATE meta SET value = value - 1 WHERE name = 'schema'");

    assert_eq!(number(&as_admin, counted), before);
    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch", "--database", &right]);
    assert_eq!(show(dir.path(), &id)["state"], "queued");
}

const OFTEN: i64 = 6;

/// A server that was switched over, and back.
#[test]
fn database_that_becomes_read_only_refuses_work_serves_reads_and_takes_work_again_afterwards() {
    let (dir, cluster) = (tempfile::tempdir().unwrap(), Cluster::start());
    sql(&cluster.address(), "CREATE DATABASE work");
    let database = cluster.address().replace("/postgres", "/work");
    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch", "--database", &database]);
    let id = create(dir.path(), &["kept"]);
    let drop_connections = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'work' AND pid <> pg_backend_pid()";
    sql(&cluster.address(), "ALTER DATABASE work SET default_transaction_read_only = on");
    sql(&cluster.address(), drop_connections);
    // More often than the daemon has connections for writing: each has heard it.
    for _ in 0..OFTEN {
        expect(1, &longhaul(dir.path(), &["jobs", "create", "refused"]));
    }
    assert_eq!(show(dir.path(), &id)["state"], "queued");
    let newest_heartbeat = "SELECT max(heartbeat_at) FROM nodes";
    let last_heartbeat = number(&database, newest_heartbeat);
    // Nobody drops the connections this time.
    sql(&cluster.address(), "ALTER DATABASE work RESET default_transaction_read_only");
    for _ in 0..OFTEN {
        create(dir.path(), &["accepted"]);
    }
    assert_eq!(number(&database, "SELECT count(*) FROM jobs"), 1 + OFTEN);
    within("the node writes its heartbeat again", || {
        (number(&database, newest_heartbeat) > last_heartbeat).then_some(())
    });
}
