"""Many writers on one record, in several processes: one chain without a gap."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from traces_app import verify

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).parent.parent.parent
PROCESSES, THREADS, APPENDS = 2, 4, 25


def test_processes_and_threads_that_append_at_once_make_one_chain(trace):
    worker = [sys.executable, str(Path(__file__).parent / "append_worker.py")]
    files = [settings.SIGNING_KEY_FILE, settings.WITNESS_FILE]
    arguments = [connection.settings_dict["NAME"], *files, trace.pk, THREADS, APPENDS]
    workers = [
        subprocess.Popen(
            [*worker, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for _ in range(PROCESSES)
    ]
    codes = [each.wait() for each in workers]

    report = verify.verify_trace(trace.session_id)
    assert codes == [0] * PROCESSES
    assert (report.intact, report.complete) == (None, None)
    assert report.events == 11 + PROCESSES * THREADS * APPENDS
