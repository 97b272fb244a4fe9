"""A throw-away PostgreSQL with fsync on: a cluster of its own on a free port, run by a user without rights, ended with the run."""

import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile

from harness import usage

PATIENCE_SECONDS = "60"
MAX_CONNECTIONS = 300


class Postgres:
    def __init__(self, place):
        self.programs = programs()
        self.user = None if os.getuid() else next(name for name in ("postgres", "nobody") if known(name))
        self.folder = tempfile.mkdtemp(prefix="longhaul-peers-pg-", dir=place)
        self.data = os.path.join(self.folder, "data")
        if self.user:
            shutil.chown(self.folder, self.user)
        self.program("initdb", "-D", self.data, "-U", "peer", "-A", "trust", "-E", "UTF8", "--locale=C")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        settings = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} "
            f"-c max_connections={MAX_CONNECTIONS} -c fsync=on -c synchronous_commit=on -c full_page_writes=on"
        )
        self.control("start", "-l", os.path.join(self.folder, "log"), "-o", settings)
        self.count = 0

    def version(self):
        return self.ask("postgres", "SHOW server_version")

    def settings(self):
        names = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_connections")
        return {name: self.ask("postgres", f"SHOW {name}") for name in names}

    def fresh(self):
        """An empty database, and a server that has nothing to catch up with."""
        self.count += 1
        name = f"peer_{self.count}"
        self.ask("postgres", f"CREATE DATABASE {name}")
        self.ask("postgres", "CHECKPOINT")
        return name

    def drop(self, name):
        self.ask("postgres", f"DROP DATABASE {name} WITH (FORCE)")

    def address(self, name):
        return f"postgres://peer@127.0.0.1:{self.port}/{name}"

    def rows(self, name):
        """Rows that were written to tables so far, and rows that are there; sessions have told what they counted when they end."""
        counts = (
            "SELECT coalesce(sum(n_tup_ins),0), coalesce(sum(n_tup_upd),0), coalesce(sum(n_tup_del),0), pg_current_wal_lsn() - '0/0' "
            "FROM pg_stat_user_tables"
        )
        inserted, updated, deleted, wal = self.ask(name, counts).split("|")
        return {"inserted": int(inserted), "updated": int(updated), "deleted": int(deleted), "wal": float(wal)}

    def ask(self, name, query):
        command = [os.path.join(self.programs, "psql"), "-X", "-q", "-t", "-A", "-c", query, self.address(name)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def cpu_seconds(self):
        """Of the whole server: those of its processes that have ended are counted with the one that started them."""
        return usage.cpu_of_tree(self.pid())

    def pid(self):
        with open(os.path.join(self.data, "postmaster.pid")) as file:
            return int(file.readline())

    def stop(self):
        try:
            self.control("stop", "-m", "immediate")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def control(self, verb, *arguments):
        self.program("pg_ctl", "-D", self.data, "-w", "-t", PATIENCE_SECONDS, *arguments, verb)

    def program(self, name, *arguments):
        as_user = ["setpriv", f"--reuid={self.user}", "--clear-groups"] if self.user else []
        command = [*as_user, os.path.join(self.programs, name), *arguments]
        quiet = subprocess.DEVNULL
        # Into a file: the server that pg_ctl starts would keep a pipe open.
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(command, cwd=self.folder, stdin=quiet, stdout=quiet, stderr=said)
            if done.returncode:
                said.seek(0)
                raise RuntimeError(f"{name} failed: {said.read().strip()[-500:]}")


def programs():
    """Where the newest of them are."""
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    if found:
        return os.path.dirname(max(found, key=lambda path: int(path.split("/")[4])))
    on_path = shutil.which("initdb")
    if on_path:
        return os.path.dirname(on_path)
    raise RuntimeError("no PostgreSQL is on this machine: install its server (initdb is looked for in /usr/lib/postgresql and on the path)")


def known(name):
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False
