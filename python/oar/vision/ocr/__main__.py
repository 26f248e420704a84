"""``python -m oar.vision.ocr fetch [language]``: what ``oar ocr --fetch`` runs."""

from __future__ import annotations

import argparse
import sys

from oar.vision.ocr._fetch import fetch_models


def main() -> int:
    """Parses the arguments; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m oar.vision.ocr", description="Models that read text.")
    parser.add_argument("command", choices=["fetch"])
    parser.add_argument("language", nargs="?", default="", help="a set of models; without it the usual one")
    arguments = parser.parse_args()
    try:
        fetch_models(arguments.language)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"oar: ocr: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
