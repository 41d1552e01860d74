"""Triggers by which the database itself refuses to change the record.

Responsibilities: say which tables are append-only, put the triggers in place after
each migration (SQLite drops them silently when it rebuilds a table), tell whether
they stand unchanged, and open the one guarded way past them.

The way past, `purge_allowed`, is a switch of one connection inside one transaction:
on SQLite a function that answers 1 there alone, on PostgreSQL a local setting. A
connection of another program has no such function, so its statement fails as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

REFUSAL = "the record is append-only: this row may not be changed or removed"
SWITCH = "penguin_purge"  # the SQLite function
SETTING = "penguin.purge"  # the PostgreSQL setting

# Table -> columns that tell one row from another. SQLite's REPLACE removes a row
# without asking the DELETE trigger, so an insert over an existing row is refused.
KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "traces_app_traceevent": (("id",), ("trace_id", "seq")),
    "traces_app_eventbody": (("event_id",),),
    "traces_app_bodypart": (("id",),),
    "traces_app_blob": (("sha256",),),
    "traces_app_checkpoint": (("id",), ("number",)),
    "traces_app_journalentry": (("id",), ("seq",), ("occasion",)),
    "traces_app_trace": (("id",), ("session_id",)),
}
# Of a Trace only its identity is fixed: a title may change.
FIXED_COLUMNS = {"traces_app_trace": ("id", "session_id")}


def prepare_connection(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Give a new SQLite connection the switch, off."""
    if connection.vendor == "sqlite":
        _set_sqlite_switch(connection, is_on=False)


def after_migrate(using: str, **_: Any) -> None:
    """Create what is missing; runs after every `migrate`, also one without changes."""
    create_triggers(using)


@contextmanager
def purge_allowed(using: str = "default") -> Iterator[None]:
    """Let the block, one transaction, change append-only rows on this connection."""
    connection = connections[using]
    with transaction.atomic(using=using):
        _switch(connection, is_on=True)
        try:
            yield
        finally:
            if not connection.needs_rollback:
                _switch(connection, is_on=False)
            elif connection.vendor == "sqlite":
                _set_sqlite_switch(connection, is_on=False)


def _switch(connection: BaseDatabaseWrapper, *, is_on: bool) -> None:
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        _set_sqlite_switch(connection, is_on=is_on)
        return
    with connection.cursor() as cursor:
        value = "on" if is_on else "off"
        cursor.execute("SELECT set_config(%s, %s, true)", [SETTING, value])


def _set_sqlite_switch(connection: BaseDatabaseWrapper, *, is_on: bool) -> None:
    answer = 1 if is_on else 0
    connection.connection.create_function(SWITCH, 0, lambda: answer)


def create_triggers(using: str = "default") -> None:
    """Put every trigger in place; those that stand as they should are left alone."""
    connection = connections[using]
    tables = set(connection.introspection.table_names()) & set(KEYS)
    missing = [name for name in _missing(connection) if _table_of(name) in tables]
    if not missing:
        return
    with transaction.atomic(using=using), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(_POSTGRES_FUNCTION)
        for name in missing:
            for statement in _drop_and_create(connection.vendor, name):
                cursor.execute(statement)


def triggers_in_place(using: str = "default") -> list[str]:
    """Return the names of triggers that are missing or changed; empty is good."""
    return _missing(connections[using])


def _missing(connection: BaseDatabaseWrapper) -> list[str]:
    if connection.vendor == "sqlite":
        wanted = _sqlite_triggers()
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        with connection.cursor() as cursor:
            cursor.execute(query)
            standing = dict(cursor.fetchall())
        return [name for name, sql in wanted.items() if standing.get(name) != sql]
    wanted = _postgres_triggers()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.tgname FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
            "WHERE t.tgenabled IN ('O', 'A') AND p.proname = 'penguin_append_only' "
            "AND p.prosrc = %s",
            [_POSTGRES_BODY],
        )
        names = {row[0] for row in cursor.fetchall()}
    return [name for name in wanted if name not in names]


def _drop_and_create(vendor: str, name: str) -> tuple[str, str]:
    if vendor == "sqlite":
        return f"DROP TRIGGER IF EXISTS {name}", _sqlite_triggers()[name]
    drop = f"DROP TRIGGER IF EXISTS {name} ON {_table_of(name)}"
    return drop, _postgres_triggers()[name]


def _table_of(trigger: str) -> str:
    return trigger.rsplit("_no_", 1)[0]


def _sqlite_triggers() -> dict[str, str]:
    off = f"{SWITCH}() IS NOT 1"
    triggers = {}
    for table, keys in KEYS.items():
        columns = FIXED_COLUMNS.get(table)
        of = f" OF {', '.join(columns)}" if columns else ""
        for verb in (f"UPDATE{of}", "DELETE"):
            name = f"{table}_no_{verb.split()[0].lower()}"
            triggers[name] = _sqlite_trigger(name, verb, table, off)
        same = " OR ".join(
            f"EXISTS (SELECT 1 FROM {table} WHERE "  # noqa: S608 (names of KEYS)
            + " AND ".join(f"{column} = NEW.{column}" for column in key)
            + ")"
            for key in keys
        )
        name = f"{table}_no_replace"
        triggers[name] = _sqlite_trigger(name, "INSERT", table, same)
    return triggers


def _sqlite_trigger(name: str, verb: str, table: str, when: str) -> str:
    return (
        f"CREATE TRIGGER {name} BEFORE {verb} ON {table} WHEN {when} "
        f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
    )


_POSTGRES_BODY = f"""
BEGIN
    IF current_setting('{SETTING}', true) = 'on' THEN
        IF TG_OP = 'UPDATE' THEN RETURN NEW; END IF;
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '{REFUSAL}';
END
"""
_POSTGRES_FUNCTION = (
    "CREATE OR REPLACE FUNCTION penguin_append_only() RETURNS trigger "
    f"LANGUAGE plpgsql AS $penguin${_POSTGRES_BODY}$penguin$"
)


def _postgres_triggers() -> dict[str, str]:
    triggers = {}
    for table in KEYS:
        columns = FIXED_COLUMNS.get(table)
        of = f" OF {', '.join(columns)}" if columns else ""
        for verb, each in (
            (f"UPDATE{of}", "ROW"),
            ("DELETE", "ROW"),
            ("TRUNCATE", "STATEMENT"),
        ):
            name = f"{table}_no_{verb.split()[0].lower()}"
            triggers[name] = (
                f"CREATE TRIGGER {name} BEFORE {verb} ON {table} "
                f"FOR EACH {each} EXECUTE FUNCTION penguin_append_only()"
            )
    return triggers
