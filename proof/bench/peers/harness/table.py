"""The table: of several rounds the middle one, with the ratio to ours on the same kind of store."""

from harness.peers import PEERS, POSTGRES

OURS_ON_SQLITE, OURS_ON_POSTGRES = "longhaul on SQLite", "longhaul on PostgreSQL"
MORE_IS_BETTER, LESS_IS_BETTER = "more", "less"
"""Of less than this no ratio says anything."""
LEAST = 0.01
"""What a cell is made of: the figure, its heading, the number that rounds are sorted by, and what is better."""
CELLS = [
    ("enqueue", "enqueue, 32 clients, jobs/s", "jobs/s", MORE_IS_BETTER),
    ("batches", "enqueue in batches of 1,000, jobs/s", "jobs/s", MORE_IS_BETTER),
    ("drain", "drain, jobs/s", "jobs/s", MORE_IS_BETTER),
    ("end-to-end-32", "end to end, 32 clients, jobs/s", "jobs/s", MORE_IS_BETTER),
    ("end-to-end-64", "end to end, 64 clients, jobs/s", "jobs/s", MORE_IS_BETTER),
    ("latency", "start at idle, p50 / p99 ms", "p50 ms", LESS_IS_BETTER),
    ("timers", "timers late, p50 / p99 ms", "p99 ms", LESS_IS_BETTER),
    ("timers", "timers, CPU s (worker + database)", "all CPU s", LESS_IS_BETTER),
    ("idle", "idle, CPU % (worker + database)", "all CPU %", LESS_IS_BETTER),
    ("idle", "idle, MiB", "MiB", LESS_IS_BETTER),
]


def middle(results, peer, figure, number):
    rounds = [with_sums(one["numbers"]) for one in results if one["peer"] == peer and one["figure"] == figure and "numbers" in one]
    rounds = sorted((one for one in rounds if number in one), key=lambda one: one[number])
    return rounds[len(rounds) // 2] if rounds else None


def with_sums(numbers):
    sums = {f"all {unit}": numbers[unit] + numbers[f"server {unit}"] for unit in ("CPU s", "CPU %") if f"server {unit}" in numbers}
    return numbers | sums


def cell(results, peer, figure, number, better):
    found = middle(results, peer.name, figure, number)
    if not found:
        return why_not(results, peer.name, figure)
    text = shown(found, number)
    if found.get("done", 0) < found.get("of", 0):
        text += f" ({found['done']} of {found['of']} done when time was up)"
    ours = OURS_ON_POSTGRES if peer.store == POSTGRES else OURS_ON_SQLITE
    beside = middle(results, ours, figure, number)
    if peer.name == ours or not beside or beside[number] < LEAST:
        return text
    ratio = found[number] / beside[number]
    ahead = ratio > 1 if better == MORE_IS_BETTER else ratio < 1
    times = f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}"
    return f"{text} ({f'**{times}**' if ahead else times})"


def shown(found, number):
    match number:
        case "jobs/s":
            return f"{found[number]:,.0f}"
        case "p50 ms" | "p99 ms":
            return f"{digits(found['p50 ms'])} / {digits(found['p99 ms'])}"
        case "all CPU s":
            return f"{found[number]:.1f} ({found['CPU s']:.1f} + {found['server CPU s']:.1f})"
        case "all CPU %":
            return f"{found[number]:.2f} ({found['CPU %']:.2f} + {found['server CPU %']:.2f})"
        case _:
            return f"{found[number]:,.0f}"


def digits(number):
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}"


def why_not(results, peer, figure):
    said = [one for one in results if one["peer"] == peer and one["figure"] in (figure, "all")]
    if not said:
        return ""
    return "—" if "numbers" in said[-1] else "skipped"


def rows(results, peer):
    found = middle(results, peer.name, "drain", "left")
    if not found:
        return ""
    left = f"{found['left']:.1f} left"
    if "written" not in found:
        return left
    each = found["written"]
    return (
        f"{each['inserted']:.1f} inserted, {each['updated']:.1f} updated, {each['deleted']:.1f} deleted; {left}; "
        f"{each['wal'] / 1000:.1f} kB of log"
    )


def markdown(results, head):
    measured = [peer for peer in PEERS if any(one["peer"] == peer.name and "numbers" in one for one in results)]
    cells = [one for one in CELLS if any(result["figure"] == one[0] for result in results)]
    lines = [head, ""]
    lines.append("| | " + " | ".join(heading for _, heading, _, _ in cells) + " | rows per job |")
    lines.append("| --- |" + " ---: |" * len(cells) + " --- |")
    for peer in measured:
        values = [cell(results, peer, figure, number, better) for figure, _, number, better in cells]
        lines.append(f"| {peer.name} | " + " | ".join(values) + f" | {rows(results, peer)} |")
    lines += ["", "In brackets: theirs divided by ours on the same kind of store (Restate: by ours on SQLite); bold where they are ahead.", ""]
    for peer in measured:
        told = [one["told"] for one in results if one["peer"] == peer.name and one.get("told")][-1]
        versions = ", ".join(f"{name} {version}" for name, version in told["versions"].items())
        lines.append(f"- **{peer.name}**: {versions}. {told['settings']}. Durability: {told['durability']}. Rows: {told['rows']}.")
    failed = {(one["peer"], one["figure"]): one["failed"] for one in results if "failed" in one}
    for (peer, figure), why in failed.items():
        whole = figure == "all"
        if whole or not any(one["peer"] == peer and one["figure"] == figure and "numbers" in one for one in results):
            lines.append(f"- **{peer}{'' if whole else ', ' + figure}: skipped**: {why}")
    return "\n".join(lines)
