"""The figures as Markdown tables: medians, spread, and the ratio to what they are to be compared with."""

from __future__ import annotations

# What a measure is compared with; the key echo by what is added to a terminal without anything between.
AGAINST = {
    "first byte, ms": "python -I -c pass",
    "`true` in total, ms": "python -I -c pass",
}
ADDED = ("key echo idle, p50 µs", "key echo beside 2 MB/s, p50 µs")


def markdown(data):
    """The whole report."""
    machine = data["machine"]
    where = f"{machine['system']}, {machine['cpus']} x {machine['cpu']}, Python {machine['python']}"
    lines = [f"{where}, load {machine['load'][0]:.1f} at the start."]
    lines += [f"Left out: {name}: {reason}." for name, reason in data["missing"].items()]
    for measure, figures in data["figures"].items():
        lines += ["", *_table(measure, figures)]
    return "\n".join(lines)


def _table(measure, figures):
    against = AGAINST.get(measure, "script")
    base = figures.get(against)
    added = measure in ADDED and base is not None and "direct" in figures
    heads = [measure, "median", "half of all within", "n"]
    if base is not None:
        heads.append(f"ratio to {against}")
    if added:
        heads.append(f"added, ratio to {against}'s")
    lines = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    for name, each in figures.items():
        cells = [
            name,
            _number(each["median"]),
            f"{_number(each['p25'])} to {_number(each['p75'])}",
            str(each["n"]),
        ]
        if base is not None:
            cells.append(_ratio(each["median"], base["median"]))
        if added:
            bare = figures["direct"]["median"]
            cells.append(_ratio(each["median"] - bare, base["median"] - bare))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _ratio(value, base):
    return f"{value / base:.2f}" if base > 0 else "-"


def _number(value):
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
