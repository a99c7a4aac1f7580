"""What this release was tried with, declared once, for `doctor` and the docs. Not a list of what is allowed."""

from __future__ import annotations

import re

# One line for each environment in which the tests have passed.
TRIED: tuple[dict[str, str], ...] = (
    {"python": "3.11.7", "torch": "2.13.0", "transformers": "5.24.0", "trl": "1.16.0", "accelerate": "1.15.0"},
    {
        "python": "3.11.7",
        "torch": "2.13.0",
        "transformers": "5.17.0",
        "trl": "1.15.0",
        "accelerate": "1.15.0",
        "unsloth": "2026.10.9",
    },
    {
        "python": "3.11.7",
        "torch": "2.13.0",
        "transformers": "4.57.6",
        "trl": "0.24.0",
        "accelerate": "1.12.0",
        "unsloth": "2026.7.1",
    },
)
PACKAGES = tuple(dict.fromkeys(name for environment in TRIED for name in environment))

# From this release on Unsloth's own config classes pickle under TRL's names.
UNSLOTH_PICKLES_AS_TRL = "2026.8"


def release(version: str) -> tuple[int, ...]:
    """The release numbers of a version, to compare by: (2, 13, 0) for "2.13.0+cpu", () where it has none."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in match[0].split(".")) if match else ()


def tried(package: str) -> tuple[str, str]:
    """The oldest and the newest version that was tried of a package of `PACKAGES` ("python" is one of them)."""
    versions = sorted((each[package] for each in TRIED if package in each), key=release)
    return versions[0], versions[-1]


def compare(package: str, version: str) -> str:
    """Where a version lies: "older" or "newer" than all that was tried, or "within". For Python only 3.x counts."""
    numbers = 2 if package == "python" else None
    oldest, newest = (release(each)[:numbers] for each in tried(package))
    this = release(version)[:numbers]
    return "older" if this < oldest else "newer" if this > newest else "within"
