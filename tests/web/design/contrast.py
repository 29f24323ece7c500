"""Contrast as WCAG defines it."""

from __future__ import annotations

TEXT_MIN = 4.5
GRAPHICS_MIN = 3.0


def channels(colour: str) -> list[float]:
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def luminance(colour: str) -> float:
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in channels(colour)
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(text: str, ground: str) -> float:
    dark, light = sorted((luminance(text), luminance(ground)))
    return (light + 0.05) / (dark + 0.05)


def mixed(colour: str, ground: str, share: float) -> str:
    parts = zip(channels(colour), channels(ground), strict=True)
    return "#" + "".join(f"{round(255 * (a * share + b * (1 - share))):02x}" for a, b in parts)


def distance(one: str, other: str) -> int:
    """How far two colours are apart, over all channels."""
    parts = zip(channels(one), channels(other), strict=True)
    return round(255 * sum(abs(a - b) for a, b in parts))
