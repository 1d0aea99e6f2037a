"""Draw a terminal's screen as SVG, from a recording (asciicast v2).

    agentwrap --record run.cast COMMAND
    python docs/picture.py run.cast picture.svg [--at SECONDS] [--title TEXT]

The screen is shown as it is SECONDS after the start, else as it is before the program leaves the alternate
screen, or at the end. Needs pyte, which is among what the tests need.

`watch.svg` is a tmux with Claude Code, Codex and pi, each wrapped, and `agentwrap watch` in the lower pane;
tmux ran with TERM=screen-256color, the sequences of which pyte knows.
"""

from __future__ import annotations

import argparse
import json
import sys
from html import escape
from pathlib import Path

import pyte
from wcwidth import wcwidth

WIDTH, HEIGHT, FONT = 8.4, 18, 14  # pixels: a cell, and the letters in it
MARGIN, BAR = 12, 28
FAMILY = "ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace"
BACKGROUND, FOREGROUND, FRAME, QUIET = "#16181d", "#d7dae0", "#23262d", "#8b92a0"
NAMED = dict(
    zip(
        ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white"),
        ("#3b3f4a", "#ef6b73", "#7ec384", "#e5b567", "#6aa1f0", "#c98be0", "#5fbfc9", "#d7dae0"),
        strict=True,
    )
)
BRIGHT = {f"bright{name}": colour for name, colour in NAMED.items()} | {"brightblack": QUIET}


class Screen(pyte.Screen):
    """pyte's, which knows no faint letters: they are remembered as a colour of their own."""

    def select_graphic_rendition(self, *attributes: int, private: bool = False) -> None:
        """Set colours and the like; private sequences of that form (`CSI > 4 m`) set none."""
        if private:
            return
        super().select_graphic_rendition(*attributes)
        if attributes == (2,):
            self.cursor.attrs = self.cursor.attrs._replace(fg="faint")


def read(lines: list[str], at: float | None) -> Screen:
    """Return the screen at that time; by default before the alternate screen is left, or at the end."""
    header = json.loads(lines[0])
    screen = Screen(header["width"], header["height"])
    stream = pyte.Stream(screen)
    for line in lines[1:]:
        t, code, data = json.loads(line)
        if at is not None and t > at:
            break
        if code == "o":
            if at is None and "\x1b[?1049l" in data:
                break
            stream.feed(data)
        elif code == "r":
            columns, rows = data.split("x")
            screen.resize(int(rows), int(columns))
    return screen


def colour(name: str, default: str) -> str:
    """Return a colour of pyte's as SVG has it."""
    if name == "default":
        return default
    if name == "faint":
        return QUIET
    return NAMED.get(name) or BRIGHT.get(name) or f"#{name}"


def draw(screen: Screen, title: str) -> str:
    """Return the screen as SVG."""
    rows = len("\n".join(screen.display).rstrip().split("\n"))
    width = screen.columns * WIDTH + 2 * MARGIN
    height = rows * HEIGHT + 2 * MARGIN + BAR
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        f'<path d="M0 {BAR}V8a8 8 0 0 1 8-8H{width - 8:g}a8 8 0 0 1 8 8V{BAR}z" fill="{FRAME}"/>',
        f'<g font-family="{FAMILY}" font-size="{FONT}" xml:space="preserve">',
        f'<text x="{width / 2:g}" y="{BAR - 9}" fill="{QUIET}" text-anchor="middle">{escape(title)}</text>',
    ]
    for y in range(rows):
        out += draw_line(screen, y)
    out.append("</g>\n</svg>\n")
    return "\n".join(out)


def draw_line(screen: Screen, y: int) -> list[str]:
    """Return one line: runs of cells that look alike, each where it stands."""
    line = screen.buffer[y]
    top = BAR + MARGIN + y * HEIGHT
    out = []
    x = 0
    while x < screen.columns:
        cell = line[x]
        look = cell._replace(data="")
        start, text = x, ""
        # a wide character stands alone: fonts disagree about how wide it is
        while x < screen.columns and line[x]._replace(data="") == look:
            wide = wcwidth(line[x].data[:1] or " ") != 1
            if wide and text:
                break
            text += line[x].data
            x += 1
            if wide:
                x += 1 if x < screen.columns and not line[x].data else 0
                break
        front, back = colour(look.fg, FOREGROUND), colour(look.bg, BACKGROUND)
        if look.reverse:
            front, back = back, front
        left = MARGIN + start * WIDTH
        if back != BACKGROUND:
            size = f'width="{(x - start) * WIDTH:g}" height="{HEIGHT}"'
            out.append(f'<rect x="{left:g}" y="{top}" {size} fill="{back}"/>')
        if not text.strip():
            continue
        begin = len(text) - len(text.lstrip())
        text = text.strip()
        style = f'fill="{front}"' + (' font-weight="bold"' if look.bold else "")
        style += ' font-style="italic"' if look.italics else ""
        style += ' text-decoration="underline"' if look.underscore else ""
        length = sum(max(0, wcwidth(char)) for char in text) * WIDTH
        place = f'x="{left + begin * WIDTH:g}" y="{top + FONT - 1}" textLength="{length:g}"'
        out.append(f"<text {place} {style}>{escape(text)}</text>")
    return out


def main(arguments: list[str]) -> int:
    """Read the recording, write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recording", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--at", type=float)
    parser.add_argument("--title", default="")
    given = parser.parse_args(arguments)
    screen = read(given.recording.read_text(encoding="utf-8").splitlines(), given.at)
    given.picture.write_text(draw(screen, given.title), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
