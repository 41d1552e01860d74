"""Lets the flush between tests past the append-only triggers, and nothing else."""

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
