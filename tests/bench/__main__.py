"""`make bench`: every `lines()` of a file `*_lines.py` here, as JSON on stdout."""

import importlib
import os
import sys
from pathlib import Path

import django

from tests.bench.measure import printed


def main(wanted: list[str]) -> None:
    """Run all files, or those whose names hold one of the wanted words."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    for path in sorted(Path(__file__).parent.glob("*_lines.py")):
        if wanted and not any(word in path.stem for word in wanted):
            continue
        for found in importlib.import_module(f"tests.bench.{path.stem}").lines():
            print(printed(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
