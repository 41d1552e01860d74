"""Memory and environment of the server are closed to commands of its user."""

import os
import subprocess
import sys

SCRIPT = """
import ctypes
from penguin_web.process_protection import protect_process
warning = protect_process()
print(ctypes.CDLL(None).prctl(3), warning or "")
"""


def test_process_is_not_dumpable_and_root_is_warned_of():
    printed = subprocess.check_output([sys.executable, "-c", SCRIPT], text=True)

    dumpable, _, warning = printed.partition(" ")
    assert dumpable == "0"
    assert ("root" in warning) is (os.geteuid() == 0)
