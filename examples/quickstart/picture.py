"""The picture of the quickstart: an SVG, which any browser shows and which needs no library."""

from __future__ import annotations

from pathlib import Path

import numpy as np

INK, RIGHT, WRONG, FAINT = "#22303c", "#2a9d8f", "#e76f51", "#d5dde3"
LEFT, CELL, PIXEL, BAR = 40, 92, 8, 6.4  # the margin; the width of a digit's column, of a pixel and of a bar
WIDTH, HEIGHT = 2 * LEFT + 10 * CELL, 620


def text(x: float, y: float, words: object, size: float = 9, extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{INK}" {extra}>{words}</text>'


def box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def digit(x: float, y: float, image: np.ndarray, label: int, found: np.ndarray) -> list[str]:
    """An image, the answer above it and a bar for the probability of each digit below."""
    answer = int(found.argmax())
    colour = RIGHT if answer == label else WRONG
    parts = [text(x + 4 * PIXEL, y, answer, 12, f'text-anchor="middle" font-weight="bold" style="fill:{colour}"')]
    for (row, column), value in np.ndenumerate(image):
        grey = f"{round(255 * (1 - float(value) / max(float(image.max()), 1e-9))):02x}"
        parts.append(box(x + column * PIXEL, y + 6 + row * PIXEL, PIXEL, PIXEL, f"#{grey * 3}"))
    base = y + 6 + 8 * PIXEL + 44
    for number, share in enumerate(found):
        shade = RIGHT if number == label else WRONG if number == answer else FAINT
        left, height = x + number * BAR, max(0.5, 38 * float(share))
        parts += [box(left, base - height, BAR - 1, height, shade),
                  text(left + (BAR - 1) / 2, base + 8, number, 6, 'text-anchor="middle"')]
    return parts


def curve(losses: list[float], top: float, bottom: float) -> list[str]:
    """The loss of each step and its running mean, on a logarithmic axis."""
    smooth = np.convolve(losses, np.ones(15) / 15, mode="valid") if len(losses) >= 15 else np.array(losses)
    low, high = np.floor(np.log10(max(min(losses), 1e-6))), np.ceil(np.log10(max(losses)))
    high = max(high, low + 1)

    def line(values: np.ndarray, first: int, colour: str, width: float) -> str:
        heights = np.log10(np.maximum(values, 10.0**low))
        points = " ".join(
            f"{LEFT + (first + step) / len(losses) * 10 * CELL:.1f},"
            f"{bottom - (height - low) / (high - low) * (bottom - top):.1f}" for step, height in enumerate(heights))
        return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'

    marks = [text(LEFT - 6, bottom - (power - low) / (high - low) * (bottom - top) + 3, f"{10.0**power:g}", 9,
                  'text-anchor="end"') for power in np.arange(low, high + 1)]
    frame = f'<path d="M{LEFT},{top}V{bottom}H{WIDTH - LEFT}" fill="none" stroke="{FAINT}"/>'
    return [frame, *marks, text(LEFT + 6, top + 8, "loss"),
            text(WIDTH - LEFT, bottom + 14, f"step {len(losses)}", 9, 'text-anchor="end"'),
            line(np.array(losses), 0, FAINT, 0.8), line(smooth, len(losses) - len(smooth), RIGHT, 1.8)]


def draw(path: Path, images: np.ndarray, labels: np.ndarray, found: np.ndarray, losses: list[float]) -> None:
    """Draw some images with the answers, the least certain ones among them, and the loss curve."""
    answers = found.argmax(axis=1)
    read = [np.flatnonzero((labels == number) & (answers == number)) for number in range(10)]
    sure = [int(places[number % len(places)]) for number, places in enumerate(read) if len(places)]
    unsure = np.argsort(found.max(axis=1))[:10].tolist()
    share = float((answers == labels).mean())
    parts = [text(LEFT, 36, f"{share:.1%} of {len(labels)} held-out digits read right", 18, 'font-weight="bold"'),
             text(LEFT, 56, "One of each digit, then the ten it was least sure of, with its probabilities", 11)]
    for y, chosen in ((86, sure), (236, unsure)):
        for column, index in enumerate(chosen):
            parts += digit(LEFT + column * CELL, y, images[index, 0], int(labels[index]), found[index])
    parts += curve(losses, 400, 580)
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            f'font-family="sans-serif">{box(0, 0, WIDTH, HEIGHT, "#ffffff")}')
    path.write_text("\n".join([head, *parts, "</svg>"]) + "\n", encoding="utf-8")
