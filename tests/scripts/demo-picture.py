#!/usr/bin/env python3
"""Draws the beginning of the demo as docs/images/demo.svg. Run it after `make demo`, in the root of the repository:

    python3 tests/scripts/demo-picture.py target/debug/switchward
"""

import html
import os
import re
import subprocess
import sys

# The picture ends before this act.
END = "7. "
PICTURE = "docs/images/demo.svg"
# Pixels: a column, a line, the margin, and where the first line is.
COLUMN, LINE, MARGIN, TOP = 8.43, 19, 20, 58
TEXT, FAINT, GROUND = "#c9d1d9", "#8b949e", "#0d1117"
COLOURS = {31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#56d4dd"}
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
CODE = re.compile(r"\x1b\[([0-9;]*)m")


def printed(program):
    """The lines that the demo prints up to the end of the picture, with their codes."""
    run = subprocess.run([program, "demo"], env={**os.environ, "CLICOLOR_FORCE": "1"}, capture_output=True, check=True)
    lines = run.stdout.decode().split("\n")
    end = next(at for at, line in enumerate(lines) if CODE.sub("", line).startswith(END))
    return "\n".join(lines[:end]).rstrip("\n").split("\n")


def spans(line, style):
    """The parts of a line with their column and style. `style` goes on to the next line."""
    column, found = 0, []
    for at, part in enumerate(CODE.split(line)):
        if at % 2 == 0:
            text = part.strip(" ")
            if text:
                found.append((column + len(part) - len(part.lstrip(" ")), text, dict(style)))
            column += len(part)
            continue
        for code in (int(it or 0) for it in part.split(";")):
            if code == 0:
                style.clear()
            elif code == 1:
                style["weight"] = "bold"
            elif code == 2:
                style["fill"] = FAINT
            elif code in COLOURS:
                style["fill"] = COLOURS[code]
    return found


def span(column, text, style):
    fill = f' fill="{style["fill"]}"' if "fill" in style else ""
    weight = ' font-weight="bold"' if "weight" in style else ""
    position = f'x="{MARGIN + column * COLUMN:.1f}" textLength="{len(text) * COLUMN:.1f}"'
    return f"<tspan {position}{fill}{weight}>{html.escape(text)}</tspan>"


def picture(lines):
    columns = max(len(CODE.sub("", line)) for line in lines)
    width, height = round(columns * COLUMN + 2 * MARGIN), TOP + len(lines) * LINE + 8
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        "<title>switchward demo</title>",
        f'<rect width="{width}" height="{height}" rx="10" fill="{GROUND}"/>',
    ]
    for at, colour in enumerate(["#ff5f57", "#febc2e", "#28c840"]):
        drawn.append(f'<circle cx="{22 + 20 * at}" cy="20" r="6" fill="{colour}"/>')
    title = f'x="{width / 2:g}" y="25" fill="{FAINT}" font-family="sans-serif" font-size="13" text-anchor="middle"'
    drawn += [f"<text {title}>switchward demo</text>", f'<g font-family="{FONTS}" font-size="14" fill="{TEXT}">']
    style = {}
    for at, line in enumerate(lines):
        if found := spans(line, style):
            drawn.append(f'<text y="{TOP + at * LINE}">{"".join(span(*it) for it in found)}</text>')
    return "\n".join([*drawn, "</g>", "</svg>", ""])


with open(PICTURE, "w") as file:
    file.write(picture(printed(sys.argv[1])))
