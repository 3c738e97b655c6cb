"""Plain charts: lines over steps or places, points with their intervals. Axes have round numbers and say their unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nas.report import svg
from nas.report.words import cut

WIDTH, HEIGHT = 780.0, 220.0
_DOTTED = 8  # points of a line that are marked each
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 150.0, 10.0, 38.0


@dataclass(frozen=True)
class Scale:
    """From a number to a coordinate."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True)
class Curve:
    """A line of (x, y); classes are those of `nas.report.style`; one without a name is not named at its end."""

    name: str
    points: Sequence[tuple[float, float]]
    class_: str


def line_class(number: int) -> str:
    """Of the n-th seed or layout: a colour that no family has, dashed once the colours come round again."""
    return f"s{number % 5}" + (" other" if number // 5 % 2 else "")


def scale(values: Sequence[float], start: float, end: float, *, room: float = 0.06) -> Scale:
    """Over all values with a little room; of equal ones around them."""
    low, high = min(values), max(values)
    pad = (high - low) * room or abs(low) * 0.05 or 1.0
    return Scale(low - pad, high + pad, start, end)


def ticks(axis: Scale, most: int) -> list[float]:
    """Round numbers within a scale, at most about `most`."""
    raw = (axis.high - axis.low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    first, last = math.ceil(axis.low / step), math.floor(axis.high / step)
    return [number * step for number in range(first, last + 1)]


def frame(
    x: Scale, y: Scale, x_name: str, y_name: str, x_ticks: Sequence[tuple[float, str]] | None = None
) -> list[str]:
    """Axes of a chart with their names."""
    parts = []
    for value in ticks(y, 5):
        at = y(value)
        parts.append(svg.tag("path", d=f"M{_LEFT:g} {svg.place(at)}H{svg.place(WIDTH - _RIGHT)}", class_="rule"))
        parts.append(svg.words(_LEFT - 6, at + 4, f"{value:.6g}", "t q", "end"))
    bottom = HEIGHT - _BOTTOM
    for value, name in x_ticks or [(value, f"{value:.6g}") for value in ticks(x, 6)]:
        parts.append(svg.words(x(value), bottom + 14, name, "t q", "middle"))
    parts.append(svg.words((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 6, x_name, "t q", "middle"))
    parts.append(svg.upright(12, bottom / 2 + 5, y_name))
    return parts


def x_scale(values: Sequence[float], room: float = 0.02) -> Scale:
    return scale(values, _LEFT + 4, WIDTH - _RIGHT - 4, room=room)


def y_scale(values: Sequence[float]) -> Scale:
    return scale(values, HEIGHT - _BOTTOM, _TOP)


def lines(name: str, title: str, meaning: str, curves: Sequence[Curve], x_name: str, y_name: str) -> str:
    """Curves over one axis, each with its name at the right."""
    x = x_scale([at for curve in curves for at, _ in curve.points])
    y = y_scale([value for curve in curves for _, value in curve.points])
    parts = frame(x, y, x_name, y_name)
    for curve in curves:
        d = "".join(f"{'L' if n else 'M'}{svg.place(x(a))} {svg.place(y(b))}" for n, (a, b) in enumerate(curve.points))
        parts.append(svg.tag("path", d=d, class_=f"line {curve.class_}"))
        if len(curve.points) <= _DOTTED:
            own = curve.class_.split()[0].replace("s", "f")
            parts += [svg.tag("circle", cx=x(a), cy=y(b), r=2.2, class_=own) for a, b in curve.points]
    return svg.drawing(name, WIDTH, HEIGHT, title, meaning, [*parts, *names(curves, y)])


def names(curves: Sequence[Curve], y: Scale) -> list[str]:
    """At the right end, in the curve's colour, moved apart where they would meet; of many only as many as have room."""
    room = int((HEIGHT - _BOTTOM) // 13)
    placed: list[str] = []
    lowest = 0.0
    shown = sorted((curve for curve in curves if curve.name), key=lambda curve: y(curve.points[-1][1]))
    for number, curve in enumerate(shown[:room]):
        left_over = min(len(shown), room) - number - 1
        at = min(max(y(curve.points[-1][1]) + 4, lowest + 13), HEIGHT - _BOTTOM - 13 * left_over + 4)
        lowest = at
        own = curve.class_.split()[0].replace("s", "f")
        placed.append(svg.words(WIDTH - _RIGHT + 8, at, cut(curve.name, 22), own))
    return placed


def dots(
    name: str,
    title: str,
    meaning: str,
    points: Sequence[tuple[str, float, float, float | None, float | None]],
    x_name: str,
    y_name: str,
    joined: Sequence[tuple[float, float]] = (),
) -> str:
    """Points with the interval of their y: (name, x, y, low, high). `joined`: a dashed line through some of them."""
    x = x_scale([each[1] for each in points], 0.08)
    y = y_scale([value for each in points for value in each[2:] if value is not None])
    parts = frame(x, y, x_name, y_name)
    if joined:
        d = "".join(f"{'L' if n else 'M'}{svg.place(x(a))} {svg.place(y(b))}" for n, (a, b) in enumerate(joined))
        parts.append(svg.tag("path", d=d, class_="front"))
    taken: list[tuple[float, float]] = []
    for label, a, b, low, high in sorted(points, key=lambda each: (each[1], each[2])):
        at_x, at_y = x(a), y(b)
        if low is not None and high is not None:
            parts.append(
                svg.tag("path", d=f"M{svg.place(at_x)} {svg.place(y(low))}V{svg.place(y(high))}", class_="mark")
            )
        parts.append(svg.tag("circle", cx=at_x, cy=at_y, r=3.5, class_="dot"))
        text_y = at_y + 4
        while any(abs(text_y - other_y) < 12 and abs(at_x - other_x) < 110 for other_x, other_y in taken):
            text_y += 12
        taken.append((at_x, text_y))
        parts.append(svg.words(at_x + 7, text_y, cut(label, 20), "t"))
    return svg.drawing(name, WIDTH, HEIGHT, title, meaning, parts)
