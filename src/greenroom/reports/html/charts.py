"""Charts as inline SVG: counts as a bar, shares as a bar, values as a histogram.

They are drawn with attributes and classes only, because the page's policy refuses inline styles.
Each has its figures in words beside it or in its label, so none is needed to read the report.
"""

from collections.abc import Mapping, Sequence

from greenroom.reports.html.markup import Markup, tag

_WIDTH = 240


def counts_bar(counts: Mapping[str, int], label: str) -> Markup:
    """Parts of a whole, side by side; each part has the class `fill-<name>`."""
    total = sum(counts.values()) or 1
    parts: list[Markup] = []
    at = 0.0
    for name, count in counts.items():
        width = count / total * _WIDTH
        if count:
            parts.append(_rect(f"fill-{name}", at, 0, max(width - 1, 1), 10, f"{count} {name}"))
        at += width
    return _svg(parts, _WIDTH, 10, label, "bar")


def share_bar(share: float, level: str, label: str) -> Markup:
    """A share of 1 on a track."""
    track = _rect("track", 0, 0, _WIDTH, 8)
    return _svg([track, _rect(f"fill-{level}", 0, 0, share * _WIDTH, 8)], _WIDTH, 8, label, "bar")


def histogram(values: Sequence[float], label: str, bins: int = 10) -> Markup:
    """How values from 0 to 1 are spread; the last bin holds the 1."""
    counts = [0] * bins
    for value in values:
        counts[min(int(value * bins), bins - 1)] += 1
    top = max(counts) or 1
    wide = 9
    bars = [
        _rect(
            "fill-bin",
            n * wide,
            24 - max(count / top * 22, 1.5),
            wide - 1.5,
            max(count / top * 22, 1.5),
            f"{n / bins:.1f} to {(n + 1) / bins:.1f}: {count}",
        )
        for n, count in enumerate(counts)
        if count
    ]
    base = _rect("track", 0, 24, wide * bins, 1)
    return _svg([base, *bars], wide * bins, 25, label, "histogram")


def _rect(class_: str, x: float, y: float, width: float, height: float, title: str = "") -> Markup:
    shape = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
    if not title:
        return tag("rect", class_=class_, **shape)
    return tag("g", tag("title", title), tag("rect", class_=class_, **shape))


def _svg(parts: Sequence[Markup], width: int, height: int, label: str, class_: str) -> Markup:
    drawn = tag(
        "svg",
        parts,
        role="img",
        class_=class_,
        width=width,
        height=height,
        aria_label=label,
        preserveAspectRatio="none" if class_ == "bar" else None,
    )
    # The builder writes attributes with dashes; this one is spelt in camel case.
    return Markup(drawn.replace("<svg ", f'<svg viewBox="0 0 {width} {height}" ', 1))
