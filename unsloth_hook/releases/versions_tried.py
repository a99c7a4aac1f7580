"""What this release was tried with, declared once, for `doctor` and the docs. Not a list of what is allowed."""

from __future__ import annotations

import re

_MAIN = {"python": "3.11.7", "torch": "2.13.0", "accelerate": "1.15.0"}

# One line for each environment in which the tests have passed: the first with all of them, those with Unsloth with the
# tests in tests/unsloth, the others with the contract tests in tests/noxfile.py, which has a session for each.
TRIED: tuple[dict[str, str], ...] = (
    {**_MAIN, "trl": "1.16.0", "transformers": "5.24.0"},
    {**_MAIN, "trl": "1.15.0", "transformers": "5.17.0", "unsloth": "2026.10.9"},
    {**_MAIN, "trl": "1.8.0", "transformers": "5.5.0"},
    {**_MAIN, "trl": "1.0.0", "transformers": "5.5.0"},
    {**_MAIN, "trl": "0.29.1", "transformers": "4.57.6"},
    {**_MAIN, "trl": "0.27.2", "transformers": "4.57.6"},
    {**_MAIN, "trl": "0.24.0", "transformers": "4.57.6"},
    {**_MAIN, "trl": "0.24.0", "transformers": "4.57.6", "accelerate": "1.12.0", "unsloth": "2026.7.1"},
    {**_MAIN, "trl": "0.22.2", "transformers": "4.56.2"},
    {**_MAIN, "trl": "0.18.2", "transformers": "4.52.4"},
)
PACKAGES = tuple(dict.fromkeys(name for environment in TRIED for name in environment))

# From this release on Unsloth's own config classes pickle under TRL's names.
UNSLOTH_PICKLES_AS_TRL = "2026.8"


def cells() -> list[tuple[str, str]]:
    """The releases of TRL and transformers that were tried together without Unsloth, newest first."""
    return [(each["trl"], each["transformers"]) for each in TRIED if "unsloth" not in each]


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
