"""The record on PostgreSQL: the same tests, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import postgres

ROOT = Path(__file__).parent.parent.parent
FILES = [
    "test_append_only.py",
    "test_writer.py",
    "test_write_failures.py",
    "test_integrity.py",
    "test_witness.py",
    "test_journal.py",
    "test_erasure.py",
    "test_reader.py",
    "test_exports.py",
    "test_imports.py",
    "test_many_writers.py",
]


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_record_behaves_the_same_on_postgresql():
    try:
        running = postgres.cluster()
        socket = running.__enter__()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    try:
        tests = [str(Path(__file__).parent / name) for name in FILES]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
            + ["--ds=tests.postgres_settings", *tests],
            cwd=ROOT,
            env={**os.environ, "PENGUIN_TEST_SOCKET": str(socket)},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        running.__exit__(None, None, None)

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
