"""What the examples share: pictures as SVG, which any browser shows and which needs no library, and a progress line."""

from __future__ import annotations

import argparse
import base64
import struct
import sys
import time
import zlib
from pathlib import Path

import numpy as np

INK, FAINT = "#22303c", "#d5dde3"
COLOURS = ["#1f6feb", "#e76f51", "#2a9d8f", "#8e5bd0", "#c08a00", "#555555"]
# Dark blue through green to yellow, in equal steps of lightness.
MAP = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], dtype=float)


def arguments(text: str, seed: int = 0) -> argparse.Namespace:
    """The options that every example has."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less work: what the tests run")
    parser.add_argument("--seed", type=int, default=seed, help=f"seed of all randomness (default {seed})")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the picture (default: here)")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    return given


class Progress:
    """One line that is rewritten on a terminal; elsewhere one line per tenth."""

    WIDTH = 24

    def __init__(self, steps: int, label: str) -> None:
        self._steps, self._label, self._start = max(steps, 1), label, time.perf_counter()
        self._live = sys.stdout.isatty()
        self._shown = 0

    def update(self, step: int, words: str = "") -> None:
        tenth = 10 * step // self._steps
        if not self._live and tenth == self._shown:
            return
        self._shown = tenth
        done = min(step * self.WIDTH // self._steps, self.WIDTH)
        bar = "━" * done + "╌" * (self.WIDTH - done)
        line = f"{self._label} {bar} {step}/{self._steps}  {words}  {time.perf_counter() - self._start:.1f} s"
        print(f"\r\x1b[2K{line}" if self._live else line, end="" if self._live else "\n", flush=True)

    def finish(self) -> None:
        if self._live:
            print()


def _colours(shares: np.ndarray) -> np.ndarray:
    """A colour [..., 3] of bytes for each number from 0 to 1."""
    at = np.clip(shares, 0.0, 1.0) * (len(MAP) - 1)
    low = np.minimum(at.astype(int), len(MAP) - 2)
    return np.rint(MAP[low] + (MAP[low + 1] - MAP[low]) * (at - low)[..., None]).astype(np.uint8)


def _png(pixels: np.ndarray) -> str:
    """Bytes [rows, columns, 3] as an address that holds a PNG image."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows, columns, _ = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    image = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)) +
             chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))
    return "data:image/png;base64," + base64.b64encode(image).decode("ascii")


def _ticks(low: float, high: float) -> list[float]:
    """About five round numbers between two."""
    rough = ((high - low) or 1.0) / 5
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.99)
    return [float(v) + 0.0 for v in np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1) * step]


def _log_ticks(low: float, high: float) -> list[float]:
    """Logarithms of powers of ten between two, or of 1, 2 and 5 times these if there are few."""
    powers = np.arange(np.floor(low), np.ceil(high) + 1)
    powers = powers[:: max(1, len(powers) // 6)]
    whole = [float(p) for p in powers if low <= p <= high]
    return whole if len(whole) > 2 else [float(p + np.log10(m)) for p in powers for m in (1, 2, 5) if low <= p + np.log10(m) <= high]


class Figure:
    """Panels side by side: curves and maps.

    Args:
        title: the line above all panels.
        panels: how many there are.
        width: the width of each.
        height: the height of each.
    """

    LEFT, TOP, GAP, BOTTOM = 66, 64, 98, 46

    def __init__(self, title: str, panels: int = 1, width: int = 380, height: int = 260) -> None:
        self._width, self._height = width, height
        self._size = (self.LEFT + panels * (width + self.GAP) - self.GAP + 46, self.TOP + height + self.BOTTOM)
        self._parts = [self._text(self.LEFT - 40, 28, title, 16, 'font-weight="bold"')]

    def _text(self, x: float, y: float, words: object, size: float = 11, extra: str = "") -> str:
        plain = str(words).replace("&", "&amp;").replace("<", "&lt;")
        return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{INK}" {extra}>{plain}</text>'

    def _image(self, x: float, y: float, width: float, height: float, colours: np.ndarray) -> str:
        return (f'<image x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" preserveAspectRatio="none" '
                f'style="image-rendering:pixelated" href="{_png(colours)}"/>')

    def _frame(self, panel: int, title: str, xs: tuple[float, float], ys: tuple[float, float], x_label: str, y_label: str,
               log: bool) -> tuple[float, float]:
        left, top = self.LEFT + panel * (self._width + self.GAP), self.TOP
        bottom, right = top + self._height, left + self._width
        self._parts.append(self._text(left, top - 10, title, 12))
        self._parts.append(f'<rect x="{left}" y="{top}" width="{self._width}" height="{self._height}" fill="none" '
                           f'stroke="{FAINT}"/>')
        for x in _ticks(*xs):
            at = left + (x - xs[0]) / ((xs[1] - xs[0]) or 1.0) * self._width
            self._parts.append(f'<path d="M{at:.1f},{bottom}v4" stroke="{INK}"/>')
            self._parts.append(self._text(at, bottom + 15, f"{x:.4g}", 10, 'text-anchor="middle"'))
        for y in _log_ticks(*ys) if log else _ticks(*ys):
            at = bottom - (y - ys[0]) / ((ys[1] - ys[0]) or 1.0) * self._height
            self._parts.append(f'<path d="M{left},{at:.1f}h-4" stroke="{INK}"/>')
            words = f"{10.0**y:.0e}".replace("e-0", "e-").replace("e+0", "e") if log else f"{y:.4g}"
            self._parts.append(self._text(left - 6, at + 4, words, 10, 'text-anchor="end"'))
        self._parts.append(self._text((left + right) / 2, bottom + 32, x_label, 11, 'text-anchor="middle"'))
        x, y = left - 46, (top + bottom) / 2
        self._parts.append(self._text(x, y, y_label, 11, f'text-anchor="middle" transform="rotate(-90 {x} {y})"'))
        return left, bottom

    def curves(self, panel: int, title: str, lines: list[tuple], x_label: str, y_label: str, log: bool = False) -> None:
        """Lines (name, x, y[, "line" | "points" | "band", upper]) in one panel; ``log`` for the vertical axis."""
        def scaled(y):
            values = np.asarray(y, dtype=float)
            return np.log10(np.maximum(values, 1e-300)) if log else values

        every_x = np.concatenate([np.asarray(line[1], dtype=float) for line in lines])
        every_y = np.concatenate([scaled(y) for line in lines for y in (line[2], *line[4:5])])
        xs = (float(every_x.min()), float(every_x.max()))
        margin = 0.05 * (float(np.ptp(every_y)) or 1.0)
        ys = (float(every_y.min()) - margin, float(every_y.max()) + margin)
        left, bottom = self._frame(panel, title, xs, ys, x_label, y_label, log)

        def place(x, y) -> list[str]:
            at_x = left + (np.asarray(x, dtype=float) - xs[0]) / ((xs[1] - xs[0]) or 1.0) * self._width
            at_y = bottom - (scaled(y) - ys[0]) / (ys[1] - ys[0]) * self._height
            return [f"{a:.1f},{b:.1f}" for a, b in zip(at_x, at_y)]

        for i, (name, x, y, *rest) in enumerate(lines):
            colour, kind = COLOURS[i % len(COLOURS)], rest[0] if rest else "line"
            if kind == "points":
                self._parts += [f'<circle cx="{p.split(",")[0]}" cy="{p.split(",")[1]}" r="2.2" fill="{colour}"/>'
                                for p in place(x, y)]
            elif kind == "band":
                outline = " ".join(place(x, y) + place(x, rest[1])[::-1])
                self._parts.append(f'<polygon points="{outline}" fill="{colour}" fill-opacity="0.2"/>')
            else:
                self._parts.append(f'<polyline points="{" ".join(place(x, y))}" fill="none" stroke="{colour}" '
                                   'stroke-width="1.6"/>')
        self._legend([line[0] for line in lines], left, [p for line in lines for p in place(line[1], line[2])])

    def _legend(self, names: list[str], left: float, drawn: list[str]) -> None:
        """The names of the lines, where they cover the fewest points: at a corner if possible."""
        wide, tall = 28 + 5.6 * max(map(len, names)), 15 * len(names) + 6
        points = np.array([[float(v) for v in p.split(",")] for p in drawn])
        places = [(left + dx, self.TOP + dy) for dy in (3, self._height - tall - 3, (self._height - tall) // 2)
                  for dx in (self._width - wide - 3, 3, (self._width - wide) // 2)]
        x, y = min(places, key=lambda c: int(((points >= c) & (points <= (c[0] + wide, c[1] + tall))).all(1).sum()))
        self._parts.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{tall}" fill="#ffffff" fill-opacity="0.8"/>')
        for i, name in enumerate(names):
            row, colour = y + 14 + 15 * i, COLOURS[i % len(COLOURS)]
            self._parts.append(f'<rect x="{x + 7:.1f}" y="{row - 9}" width="10" height="10" fill="{colour}"/>')
            self._parts.append(self._text(x + 22, row, name, 10))

    def heat(self, panel: int, title: str, values: np.ndarray, xs: tuple[float, float], ys: tuple[float, float], x_label: str,
             y_label: str) -> None:
        """A map of values [rows, columns], with its scale; row 0 is at the bottom."""
        left, bottom = self._frame(panel, title, xs, ys, x_label, y_label, False)
        low, high = float(values.min()), float(values.max())
        shares = (values[::-1] - low) / ((high - low) or 1.0)
        self._parts.append(self._image(left, self.TOP, self._width, self._height, _colours(shares)))
        scale = left + self._width + 6
        self._parts.append(self._image(scale, self.TOP, 8, self._height, _colours(np.linspace(1, 0, 64)[:, None])))
        for value in _ticks(low, high):
            at = bottom - (value - low) / ((high - low) or 1.0) * self._height
            self._parts.append(self._text(scale + 10, at + 3, f"{value:.4g}", 9))

    def save(self, path: Path) -> None:
        width, height = self._size
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                f'font-family="sans-serif"><rect width="{width}" height="{height}" fill="#ffffff"/>')
        path.write_text("\n".join([head, *self._parts, "</svg>"]) + "\n", encoding="utf-8")
        print(f"Written: {path}")


def check(value: float, limit: float, what: str) -> None:
    """Ends the program with an error if a result is not as good as the example promises."""
    print(f"{what}: {value:.3g} (at most {limit:g})")
    if not value <= limit:
        sys.exit(f"{what} is {value:.3g}, more than {limit:g}.")
