"""How long granted acquires waited, as bars and per worker.

    waits(view).bins      # rectangles of an SVG, on a logarithmic axis
    waits(view).workers   # grants, share and quantiles of each worker

The axis is logarithmic since waits span microseconds to the length of a pause: on a linear one
everything but the longest would be one bar.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from checkers.stats import quantiles_ms
from checkers.view import View
from harness.report.timeline import short

WIDTH, HEIGHT, BINS = 720, 190, 24
_FOOT, _HEAD = 26, 22
_FLOOR_MS = 0.01  # waits below 10 us are in the first bar: nothing crosses a socket faster


class Waits(msgspec.Struct, kw_only=True):
    """Geometry of the bars (pixels) and the table beside them."""

    bins: list[dict[str, float]] = []
    ticks: list[dict[str, Any]] = []
    workers: list[dict[str, Any]] = []
    says: str = ""
    width: int = WIDTH
    height: int = HEIGHT


def waits(view: View) -> Waits:
    """Waits of all granted acquires of a run; no bins if nothing was granted."""
    by_worker: dict[str, list[int]] = {}
    for grant in view.grants:
        worker = view.worker(grant.process)
        name = short(grant.process) if worker is None else f"w{worker}"
        by_worker.setdefault(name, []).append(grant.ret - grant.call)
    total = sum(map(len, by_worker.values()))
    if not total:
        return Waits()
    rows = []
    for name, found in sorted(by_worker.items(), key=lambda item: (len(item[0]), item[0])):
        figures = quantiles_ms(found)
        rows.append(
            {
                "name": name,
                "grants": len(found),
                "share": round(100 * len(found) / total),
                **{q: figures[q] for q in ("p50", "p99", "max")},
            }
        )
    everything = [wait / 1e6 for found in by_worker.values() for wait in found]
    bins, ticks = histogram(everything)
    says = f"{total} grants, from {min(everything):.3f} ms to {max(everything):.3f} ms"
    return Waits(bins=bins, ticks=ticks, workers=rows, says=says)


def histogram(found_ms: Sequence[float]) -> tuple[list[dict[str, float]], list[dict[str, Any]]]:
    """Bars and ticks of a logarithmic histogram over decades; values in ms."""
    low = math.floor(math.log10(max(_FLOOR_MS, min(found_ms))))
    high = max(low + 1, math.ceil(math.log10(max(_FLOOR_MS, max(found_ms)))))
    counts = [0] * BINS
    for value in found_ms:
        place = (math.log10(max(10.0**low, value)) - low) / (high - low) * BINS
        counts[min(BINS - 1, int(place))] += 1
    step, room = WIDTH / BINS, HEIGHT - _FOOT - _HEAD
    bins = []
    for place, count in enumerate(counts):
        tall = room * count / max(counts)
        bins.append(
            {
                "x": round(place * step + 1, 2),
                "y": round(HEIGHT - _FOOT - tall, 2),
                "width": round(step - 2, 2),
                "height": round(tall, 2),
                "count": count,
            }
        )
    ticks = [
        {"x": round(WIDTH * (power - low) / (high - low), 1), "label": _label(10.0**power)}
        for power in range(low, high + 1)
    ]
    return bins, ticks


def _label(value_ms: float) -> str:
    if value_ms < 1:
        return f"{value_ms * 1000:g} µs"
    return f"{value_ms:g} ms" if value_ms < 1000 else f"{value_ms / 1000:g} s"
