# SPDX-License-Identifier: Apache-2.0
"""A bar chart as SVG, written by hand: cejail beside its peers."""

from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT = 720, 210, 110
BAR, GAP, TITLE, MARGIN = 16, 7, 34, 14
OURS, OTHERS, INK = "#1f6feb", "#9aa4af", "#1f2328"


def text(x, y, words, anchor="start", size=13, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'font-weight="{weight}">{escape(words)}</text>')


def bar(y, name, value_ms, longest_ms, is_ours):
    width = max(1.5, (WIDTH - LEFT - RIGHT) * value_ms / longest_ms)
    color = OURS if is_ours else OTHERS
    words = f"{value_ms:.2f} ms" if value_ms >= 1 else f"{value_ms:.3f} ms"
    return [
        text(LEFT - 8, y + BAR - 4, name, "end", weight="bold" if is_ours else "normal"),
        f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2" fill="{color}"/>',
        text(LEFT + width + 6, y + BAR - 4, words),
    ]


def panel(y, title, bars):
    """Its parts and the y below it.  `bars` are (name, milliseconds, is ours), drawn shortest first."""
    parts = [text(MARGIN, y + 18, title, size=15, weight="bold")]
    y += TITLE
    longest = max((value for _, value, _ in bars), default=1)
    for name, value, is_ours in sorted(bars, key=lambda entry: entry[1]):
        parts += bar(y, name, value, longest, is_ours)
        y += BAR + GAP
    return parts, y + GAP


def draw(panels, caption):
    """The whole document.  `panels` are (title, bars)."""
    parts, y = [], MARGIN
    for title, bars in panels:
        more, y = panel(y, title, bars)
        parts += more
    parts.append(text(MARGIN, y + 12, caption, size=11))
    height = y + 12 + MARGIN
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" font-family="sans-serif" fill="{INK}">')
    back = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, back, *parts, "</svg>", ""])
