"""Whether the server lives, whether it is ready, and its figures for Prometheus."""

from __future__ import annotations

import ipaddress
import os
import shutil
from collections.abc import Callable, Iterator

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from sessions_app import tokens
from sessions_app.models import ApprovalRequest, CommandSession, ProcessState, Session

LEAST_FREE = 16 * 1024**2  # below it the next big output may not fit


@require_safe
async def healthz(_: HttpRequest) -> HttpResponse:
    """Answer as soon as requests are served, whatever else fails."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
async def readyz(_: HttpRequest) -> HttpResponse:
    """Say which of the things the server needs are there; 503 when one is not."""
    checks = await sync_to_async(_checks)()
    is_ready = all(answer == "ok" for answer in checks.values())
    return JsonResponse(
        {"ready": is_ready, "checks": checks}, status=200 if is_ready else 503
    )


def _checks() -> dict[str, str]:
    checks: dict[str, Callable[[], str]] = {
        "database": _database,
        "migrations": _migrations,
        "data_folder": _data_folder,
    }
    answers = {}
    for name, check in checks.items():
        try:
            answers[name] = check()
        except DatabaseError:
            answers[name] = "the database does not answer"
    return answers


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return "ok"


def _migrations() -> str:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return f"{len(plan)} migrations are not applied" if plan else "ok"


def _data_folder() -> str:
    if not os.access(settings.DATA_DIR, os.W_OK):
        return "not writable"
    free = shutil.disk_usage(settings.DATA_DIR).free
    return "ok" if free >= LEAST_FREE else f"only {free // 1024**2} MiB are free"


@require_safe
async def metrics(request: HttpRequest) -> HttpResponse:
    """Give the figures to the machine itself, or to a token with scope `metrics`."""
    if not _is_local(request) and not await sync_to_async(_has_token)(request):
        return HttpResponse("A token with scope metrics is needed.\n", status=403)
    text = await sync_to_async(generate_latest)(_registry)
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def _is_local(request: HttpRequest) -> bool:
    # Through a proxy of this machine everybody comes from the loopback address.
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def _has_token(request: HttpRequest) -> bool:
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return False
    token = tokens.find(text.strip())
    return token is not None and token.scope == tokens.METRICS_SCOPE


class _Rows(Collector):
    """Counts rows at the moment of the question: nothing to keep in step."""

    def describe(self) -> list[Metric]:
        """Name nothing in advance: that would count at registration."""
        return []

    def collect(self) -> Iterator[Metric]:
        sessions = GaugeMetricFamily(
            "penguin_sessions", "Sessions by status.", labels=["status"]
        )
        present = Session.objects.filter(deleted_at=None).order_by()
        for status, count in present.values_list("status").annotate(Count("pk")):
            sessions.add_metric([status], count)
        yield sessions
        pending = ApprovalRequest.objects.filter(decision=None).count()
        yield GaugeMetricFamily(
            "penguin_approvals_pending", "Calls that wait for a person.", value=pending
        )
        running = CommandSession.objects.filter(state=ProcessState.RUNNING).count()
        yield GaugeMetricFamily(
            "penguin_commands_running", "Commands that run.", value=running
        )


_registry = CollectorRegistry()
for _collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR, _Rows()):
    _registry.register(_collector)
