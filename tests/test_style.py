"""The colours of pictures are told apart by whoever sees them, and matplotlib takes the style."""

from __future__ import annotations

import itertools

import matplotlib
import numpy as np
import pytest

from laprasdp.style import GREY, INK, SOFT, STYLE, WARM

# How eyes see without one kind of cone: Machado, Oliveira and Fernandes, 2009, severity 1, of linear RGB.
SEES = {
    "all": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
    "none": [[0.2126, 0.7152, 0.0722]] * 3,  # luminance alone, as on a grey printer
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def lab(colour: str, eye: str) -> np.ndarray:
    """CIE Lab of a colour as an eye sees it."""
    rgb = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    scaled = XYZ @ np.clip(np.array(SEES[eye]) @ linear, 0, 1) / WHITE
    x, y, z = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def nearest(colours: tuple[str, ...], eye: str) -> float:
    """The least distance of two of the colours; 2.3 is just noticed."""
    pairs = itertools.combinations(colours, 2)
    return min(float(np.linalg.norm(lab(one, eye) - lab(other, eye))) for one, other in pairs)


@pytest.mark.parametrize("eye", SEES)
def test_lines_are_told_apart_by_any_eye(eye: str) -> None:
    assert nearest((INK, WARM, SOFT), eye) > 15
    assert nearest((INK, WARM, GREY), eye) > 10


def test_red_and_green_would_not_pass() -> None:
    assert nearest(("#c2571a", "#7a7a1f"), "deutan") < 15


def test_matplotlib_takes_the_style() -> None:
    with matplotlib.rc_context(STYLE):
        assert [one["color"] for one in matplotlib.rcParams["axes.prop_cycle"]] == [INK, WARM, SOFT, GREY]
