//! A server that speaks TLS: it is spoken to only when it has shown that it is the one that was named.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use test_postgres::{Cluster, server};

use crate::given::{Daemon, create, expect};
use crate::refused_databases::{number, on, refused, sql};

/// Runs openssl in a folder.
fn openssl(folder: &Path, arguments: &str) {
    let made = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output();
    let made = made.expect("openssl is on this machine");
    assert!(made.status.success(), "{arguments}: {}", String::from_utf8_lossy(&made.stderr));
}

const NEW_KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";

/// Someone who vouches: `NAME.pem` and `NAME.key`.
fn authority(folder: &Path, name: &str) {
    openssl(folder, &format!("req -x509 {NEW_KEY} -keyout {name}.key -out {name}.pem -subj /CN={name}"));
}

/// A server with a certificate for `localhost`, which `ca` vouches for; `stranger` vouches for nobody.
fn encrypted() -> Cluster {
    let cluster = Cluster::start();
    let folder = cluster.folder();
    authority(folder, "ca");
    authority(folder, "stranger");
    openssl(folder, &format!("req {NEW_KEY} -keyout server.key -out server.csr -subj /CN=localhost"));
    std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost").expect("there is room");
    openssl(
        folder,
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt",
    );
    for file in ["server.key", "server.crt"] {
        std::fs::set_permissions(folder.join(file), PermissionsExt::from_mode(0o600)).expect("it is ours");
        cluster.give(&folder.join(file));
    }
    for (setting, value) in [("ssl_cert_file", "server.crt"), ("ssl_key_file", "server.key")] {
        let path = folder.join(value);
        sql(&cluster.address(), &format!("ALTER SYSTEM SET {setting} = '{}'", path.display()));
    }
    sql(&cluster.address(), "ALTER SYSTEM SET ssl = on");
    sql(&cluster.address(), "SELECT pg_reload_conf()");
    cluster
}

#[test]
fn server_is_spoken_to_under_encryption_when_its_certificate_is_vouched_for_and_bears_its_name() {
    let (dir, cluster) = (tempfile::tempdir().unwrap(), encrypted());
    let named = cluster.address().replace("127.0.0.1", "localhost");
    let ca = cluster.folder().join("ca.pem").display().to_string();
    let stranger = cluster.folder().join("stranger.pem").display().to_string();
    for (database, code, told) in [
        (
            format!("{named}?sslmode=verify-full&sslrootcert={stranger}"),
            "database_encryption",
            "sslrootcert=FILE",
        ),
        (
            format!("{named}?sslmode=require&sslrootcert={stranger}"),
            "database_encryption",
            "sslrootcert=FILE",
        ),
        // Vouched for, but another name.
        (
            format!("{}?sslmode=verify-full&sslrootcert={ca}", cluster.address()),
            "database_encryption",
            "not valid for name",
        ),
        (
            format!("{named}?sslmode=verify-full&sslrootcert={ca}.missing"),
            "database_address",
            "ca.pem.missing",
        ),
        // A server that does not speak it.
        (format!("{}?sslmode=require&sslrootcert={ca}", server()), "database_encryption", "sslmode=disable"),
    ] {
        refused(&on(&database, &["verify"]), code, told);
    }
    let database = format!("{named}?sslmode=verify-full&sslrootcert={ca}");
    let _daemon = Daemon::start_with(dir.path(), &["--no-dispatch", "--database", &database]);
    create(dir.path(), &["private"]);
    let ours = "FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'longhaul'";
    assert!(number(&cluster.address(), &format!("SELECT count(*) {ours} AND ssl")) > 1);
    assert_eq!(number(&cluster.address(), &format!("SELECT count(*) {ours} AND NOT ssl")), 0);
    expect(0, &on(&format!("{named}?sslmode=require&sslrootcert={ca}"), &["verify"]));
}
