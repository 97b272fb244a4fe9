# Tries to reach the data of the daemon and the daemon itself. Says LEAK for each way that leads there, and WORKS for what must go on
# working. Arguments: the data directory, and the process ids of the daemon and of the supervisor.
#
# It must harm nobody where the sandbox does not hold. So it works on the data directory of a test alone, signals processes of longhaul
# alone, tries nothing that changes anything where the token can be read, mounts only in a mount namespace of its own and never anything
# that exists, and copies, moves and removes no directory that is not empty.
data=$1 daemon=$2 supervisor=$3
refuse() {
    echo "LEAK none: nothing was tried: $1"
    exit 1
}
# The one below the directory of the test, where it was started.
case "$data" in /*/project/longhaul-data) ;; *) refuse "no data directory of a test: '$data'" ;; esac
[ "$(pwd -P)/longhaul-data" = "$data" ] || refuse "started in $(pwd -P), not beside $data"
for pid in "$daemon" "$supervisor"; do
    case "$pid" in '' | 0 | 1 | *[!0-9]*) refuse "no process id: '$pid'" ;; esac
    name=''
    read -r name 2>/dev/null <"/proc/$pid/comm"
    [ "$name" = longhaul ] || refuse "process $pid is '$name'"
done
# Whoever can read the token is in no sandbox.
if head -c 1 "$data/admin.token" >/dev/null 2>&1; then refuse "admin.token is readable"; fi
scratch=$(mktemp -d) || refuse "no temporary directory"
case "$scratch" in /?*/?*) echo WORKS tmp ;; *) refuse "no temporary directory: '$scratch'" ;; esac

leak() {
    local name=$1 out
    shift
    out=$(timeout 10 "$@" 2>/dev/null | tr -d '\0' | head -c 200)
    if [ -n "$out" ]; then echo "LEAK $name: $out"; fi
}

leak variable cat "$LONGHAUL_DATA_DIR/admin.token"
for file in admin.token callback.key daemon.json longhaul.sqlite longhaul.sqlite-wal; do leak "$file" head -c 100 "$data/$file"; done
leak upwards cat "$data/../$(basename "$data")/admin.token"
leak own_cwd cat "/proc/self/cwd/longhaul-data/admin.token"
leak own_root cat "/proc/self/root$data/admin.token"
leak other_attempt sh -c "cat '$data'/artifacts/*/*/*"
leak other_workspace sh -c "cat '$data'/workspaces/*/*/*/*/secret"
for pid in "$daemon" "$supervisor"; do
    for file in environ maps auxv; do leak "proc_$file" head -c 100 "/proc/$pid/$file"; done
    leak proc_memory dd if="/proc/$pid/mem" bs=1 count=1
    leak proc_root cat "/proc/$pid/root$data/admin.token"
    leak proc_cwd ls "/proc/$pid/cwd/"
    leak proc_descriptors sh -c "ls -l /proc/$pid/fd/ | grep -- '->'"
    leak proc_namespaces sh -c "readlink /proc/$pid/ns/mnt"
    leak proc_threads sh -c "cat /proc/$pid/task/*/environ"
    leak nsenter nsenter -t "$pid" -m cat "$data/admin.token"
done
ln -s "$data/admin.token" "$scratch/link" && leak symbolic_link cat "$scratch/link"
ln "$data/admin.token" "$scratch/hard" 2>/dev/null && leak hard_link cat "$scratch/hard"
# In a mount namespace of its own, whose mounts nobody else sees.
leak uncovered_elsewhere unshare -m --propagation private sh -c "umount '$data' && cat '$data/admin.token'"
leak as_another_root unshare -rm --propagation private sh -c "umount '$data' && cat '$data/admin.token'"
leak mounted unshare -m --propagation private sh -c "mkdir '$scratch/empty' && mount -t tmpfs none '$scratch/empty' && echo mounted"
leak descendant setsid sh -c "sh -c 'sh -c \"cat $data/admin.token\"'"
leak sqlite python3 -c "import sqlite3,sys; print(sqlite3.connect('file:$data/longhaul.sqlite?mode=ro', uri=True).execute('select count(*) from sqlite_master').fetchone())"
(echo junk >> "$data/longhaul.sqlite") 2>/dev/null && echo LEAK written
(echo junk > "$data/admin.token") 2>/dev/null && echo LEAK overwritten
rm "$data/admin.token" 2>/dev/null && echo LEAK removed
# A rename and its undoing. Not mv: between two file systems it copies everything, and removes it.
python3 -c 'import os, sys; os.rename(*sys.argv[1:3]); os.rename(*sys.argv[2:0:-1])' "$data" "$data.moved" 2>/dev/null && echo LEAK moved
above=$(dirname "$data")
for directory in "$above" "$(dirname "$above")"; do
    python3 -c 'import os, sys; os.rename(*sys.argv[1:3]); os.rename(*sys.argv[2:0:-1])' "$directory" "$directory.moved" 2>/dev/null && echo LEAK moved_above
done
kill -TERM "$daemon" 2>/dev/null && echo LEAK daemon_signalled
kill -TERM "$supervisor" 2>/dev/null && echo LEAK supervisor_signalled

sleep 100 & kill $! && echo WORKS own_signals
echo made > "made.$$" && [ "$(cat "made.$$")" = made ] && rm "made.$$" && echo WORKS project
mkdir "$scratch/a" "$scratch/b" && echo x > "$scratch/a/x" && mv "$scratch/a/x" "$scratch/b/x" && echo WORKS rename
mkdir "made-dir.$$" && echo x > "made-dir.$$/x" && rm "made-dir.$$/x" && rmdir "made-dir.$$" && echo WORKS directory
# One by one: nothing is ever removed recursively here.
rm -f "$scratch/link" "$scratch/hard" "$scratch/b/x"
rmdir "$scratch/a" "$scratch/b" "$scratch/empty" "$scratch" 2>/dev/null
