# SPDX-License-Identifier: Apache-2.0
"""Tables as text, as JSON, and as parts of the documents."""

import json
import re

from .bench import COLUMNS

FORMATS = {
    "ms": "{:.2f} ms", "us": "{:.0f} us", "s": "{:.2f} s", "KiB": "{:.0f} KiB",
    "ratio": "{:.3g}", "rate": "{:.0f}", "count": "{:d}",
}


def text_of(value, unit):
    if value is None:
        return "-"
    if unit == "ratio" and value >= 1:
        return f"{value:.2f}"
    if unit == "ms" and value < 1:
        return f"{value:.3f} ms"
    if unit == "rate" and value < 10:
        return f"{value:.1f}"
    return FORMATS[unit].format(value)


def cells(table, keys):
    """Rows of text, the headings first; without rows that have nothing in these columns."""
    rows = [row for row in table.rows if any(row.get(key) is not None for key in keys)]
    has_who = len({row["who"] for row in rows}) > 1
    lines = [["", *(["who"] if has_who else []), *(COLUMNS[key][0] for key in keys)]]
    for row in rows:
        lines.append([row["name"], *([row["who"]] if has_who else []),
                      *(text_of(row.get(key), COLUMNS[key][1]) for key in keys)])
    return lines


def reasons(table):
    """{(name, reason): " as CALLER, CALLER"}."""
    found = {}
    for entry in table.absent:
        found.setdefault((entry["name"], entry["reason"]), []).append(entry["who"])
    return {key: f" as {', '.join(callers)}" if callers != [""] else "" for key, callers in found.items()}


def print_table(subject, table, lacks):
    """`lacks`: what each peer does not do."""
    print(f"\n{subject.name}: {subject.title}")
    lines = cells(table, table.columns())
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines if table.rows else []:
        name = line[0].ljust(widths[0])
        print("  " + name + "".join("  " + word.rjust(width) for word, width in zip(line[1:], widths[1:])))
    for (name, reason), callers in reasons(table).items():
        print(f"  {name}{callers}: not measured: {reason}")
    named = {row["name"] for row in table.rows}
    for name, text in lacks.items():
        if name in named:
            print(f"  {name} does without: {text}")


def as_json(subject, table, machine, rounds, lacks):
    return {
        "schema": "cejail.bench/1",
        "subject": subject.name,
        "title": subject.title,
        "rounds": rounds,
        "machine": machine,
        "units": {key: COLUMNS[key][1] for key in table.columns()},
        "rows": table.rows,
        "absent": table.absent,
        "does_not_do": {name: text for name, text in lacks.items() if any(r["name"] == name for r in table.rows)},
    }


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")


# --- documents ------------------------------------------------------------------------------------


# The columns of each subject in cejail-performance(7), which has 80 columns of text.
PUBLISHED = {
    "true": ("wall_ms", "over_bare", "over_bwrap", "over_root"),
    "python": ("wall_ms", "over_bare", "over_bwrap", "over_root"),
    "two-workers": ("rate", "over_bwrap"),
    "stages": ("build_us", "program_us", "end_us"),
    "options": ("more_us",),
    "network": ("wall_ms", "over_none"),
    "network-two-workers": ("rate", "over_none"),
    "request": ("first_ms", "first_p99_ms", "over_bare"),
    "refill": ("rate", "over_bare", "cpu_ms"),
    "burst": ("total_s", "first_ms"),
    "call": ("whole_ms", "whole_p99_ms", "over_service"),
    "tools": ("call_us", "call_p95_us", "wall_ms", "over_first"),
    "tool-list": ("bytes", "words", "over_first"),
    "memory": ("memory_kib", "page_tables_kib"),
}

# The column that a comparison with another cejail shows of a subject.
COMPARED = {
    "true": "wall_ms", "python": "wall_ms", "two-workers": "rate", "network": "wall_ms", "network-two-workers": "rate",
    "request": "first_ms", "refill": "rate", "burst": "total_s", "memory": "memory_kib",
}


def mdoc_cell(word):
    """One argument of mdoc(7), which is no macro."""
    return f'"{word}"'.replace("-", "\\-") if word else "\\&"


def mdoc_table(lines):
    if len(lines) == 1:
        return [".Pp", "Not measured on this machine."]
    widths = [max(len(line[i]) for line in lines) + 1 for i in range(len(lines[0]))]
    head = " ".join(f'"{"x" * width}"' for width in widths)
    return [".Pp", f".Bl -column {head} -compact", *(".It " + " Ta ".join(map(mdoc_cell, line)) for line in lines), ".El"]


def write_manual(path, tables, others):
    """Writes the tables into the manual, without the rows of `others`, cejails that took part, too."""
    for subject, keys in PUBLISHED.items():
        if subject in tables:
            lines = cells(tables[subject], keys)
            lines = [line for line in lines if line[0].replace(",", "").split(" ")[0] not in others]
            lines = [[line[0].removeprefix("cejail, "), *line[1:]] for line in lines]
            replace_part(path, f'.\\" bench: {subject}', '.\\" end', mdoc_table(lines))


def comparison(tables, other):
    """Rows of text, the headings first: what `other` and cejail needed in the same turns."""
    lines = [["", "who", other, "now", f"now over {other}"]]
    for subject, key in COMPARED.items():
        rows = tables[subject].rows if subject in tables else []
        values = {(row["name"], row["who"]): row.get(key) for row in rows}
        for (name, who), now in values.items():
            what = re.fullmatch(r"cejail\b(.*)", name)
            if what and now is not None:
                before = values.get((other + what[1], who))
                texts = [text_of(value, COLUMNS[key][1]) for value in (before, now)]
                lines.append([subject + what[1], who, *texts, text_of(before and now / before, "ratio")])
    return lines


def write_comparison(path, tables, other):
    replace_part(path, '.\\" bench: compared', '.\\" end', mdoc_table(comparison(tables, other)))


def replace_part(path, begin, end, lines):
    """Replaces the lines between the line `begin` and the next line `end`."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    pattern = re.compile(rf"(^{re.escape(begin)}$\n).*?(^{re.escape(end)}$)", re.MULTILINE | re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{path} has no line '{begin}' with '{end}' below")
    body = "".join(line + "\n" for line in lines)
    with open(path, "w", encoding="utf-8") as file:
        file.write(pattern.sub(lambda found: found.group(1) + body + found.group(2), text))
