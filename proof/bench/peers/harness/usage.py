"""What the system has counted for processes."""

import os

TICKS = os.sysconf("SC_CLK_TCK")


def stat(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def cpu_seconds(pid):
    """Of one process, with its children that have ended."""
    fields = stat(pid)
    return sum(int(field) for field in fields[11:15]) / TICKS


def fine_cpu_seconds(pid):
    """Of the threads of one process that are alive, in nanoseconds: for idle ones."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def children(pid):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if int(stat(name)[1]) == pid:
                    found.append(int(name))
            except OSError:
                pass
    return found


def tree(pid):
    """The process and all that came of it and are there."""
    return [pid, *(below for child in children(pid) for below in tree(child))]


def cpu_of_tree(pid):
    total = cpu_seconds(pid)
    for child in children(pid):
        try:
            total += cpu_of_tree(child)
        except OSError:
            pass
    return total


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0
