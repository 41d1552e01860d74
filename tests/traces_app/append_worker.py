"""A process that appends to one record from several threads at once; see the test."""

import sys
import threading
from pathlib import Path

import django
from django.conf import settings


def main(database: str, key: str, witness: str, *numbers: str) -> None:
    django.setup()
    from django.db import connection, connections

    from traces_app import writer
    from traces_app.omnimessage import user_text

    connections.settings["default"]["NAME"] = database
    settings.SIGNING_KEY_FILE, settings.WITNESS_FILE = Path(key), Path(witness)
    trace_id, count, appends = map(int, numbers)

    def append() -> None:
        for number in range(appends):
            signed = number % 10 == 9
            writer.append(trace_id, [user_text("x")], checkpoint=signed)
        connection.close()

    threads = [threading.Thread(target=append) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
