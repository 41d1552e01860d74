"""Keeps the record's guards out of the way of the flush between tests, and only then."""

from pathlib import Path

import pytest
from django.db.backends.base.operations import BaseDatabaseOperations

from traces_app.append_only import purge_allowed


@pytest.fixture(scope="session", autouse=True)
def allow_flush():
    """Turn the purge switch on while a test database is flushed."""
    flush = BaseDatabaseOperations.execute_sql_flush

    def flush_with_purge(self, sql_list):
        with purge_allowed(self.connection.alias):
            flush(self, sql_list)

    BaseDatabaseOperations.execute_sql_flush = flush_with_purge
    yield
    BaseDatabaseOperations.execute_sql_flush = flush


@pytest.fixture(autouse=True)
def fresh_witness(settings):
    """A witness that outlives the flush would rightly report a database rolled back."""
    Path(settings.WITNESS_FILE).unlink(missing_ok=True)
