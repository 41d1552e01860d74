"""Who may do what: one table of roles, asked by every page, API call and socket.

A person without a membership sees no project: what is asked for does not exist
(`Http404`). A member without the needed role is refused (`PermissionDenied`).
Roles of one person add up; a superuser may do everything. Answers are cached on
the user object, so one request asks the database once; a socket, which lives
longer, calls `forget` before it asks again.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.models import User as Account
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404

from sessions_app.models import ApprovalMode, Membership, Project, Role, Session
from traces_app.models import Trace

User = Account | AnonymousUser


class Action(StrEnum):
    """What is asked for; a row of the table each."""

    READ = "read"  # sessions, chat, the project's traces
    OPERATE = "operate"  # start, write, stop, feed processes
    DECIDE = "decide"  # answer pending calls
    LOOSEN_MODE = "loosen_mode"
    TIGHTEN_MODE = "tighten_mode"
    EDIT_CONFIG = "edit_config"  # config, models, policy
    AUDIT = "audit"  # export, import, verify, config history
    ADMINISTER = "administer"  # members, credentials, retention, erasure


_V, _O, _A = Role.VIEWER, Role.OPERATOR, Role.APPROVER
_C, _U, _P = Role.CONFIG_EDITOR, Role.AUDITOR, Role.PROJECT_ADMIN

ALLOWED: dict[Action, frozenset[str]] = {
    Action.READ: frozenset({_V, _O, _A, _C, _U, _P}),
    Action.OPERATE: frozenset({_O, _A, _P}),
    Action.DECIDE: frozenset({_A, _P}),
    Action.LOOSEN_MODE: frozenset({_A, _P}),
    Action.TIGHTEN_MODE: frozenset({_O, _A, _P}),
    Action.EDIT_CONFIG: frozenset({_C, _P}),
    Action.AUDIT: frozenset({_U, _P}),
    Action.ADMINISTER: frozenset({_P}),
}

_TRACE_ACTIONS = {
    "traces_app.view_trace": Action.READ,
    "traces_app.export_trace": Action.AUDIT,
    "traces_app.verify_trace": Action.AUDIT,
    "traces_app.add_trace": Action.AUDIT,
    "traces_app.erase_trace": Action.ADMINISTER,
}


def may(user: User, action: Action, project: Project | str) -> bool:
    """Return whether `user` may do `action` in `project` (row or slug)."""
    return not ALLOWED[action].isdisjoint(roles_in(user, project))


def roles_in(user: User, project: Project | str) -> frozenset[str]:
    """Return the roles of `user` in `project`; a superuser has all of them."""
    slug = project if isinstance(project, str) else project.slug
    if not user.is_authenticated or not user.is_active:
        return frozenset()
    if getattr(user, _SCOPE, slug) != slug:
        return frozenset()
    if user.is_superuser:
        return frozenset(Role.values)
    return _roles(user).get(slug, frozenset())


def require(user: User, action: Action, project: Project | str) -> None:
    """Raise unless `user` may do `action`: `Http404` or `PermissionDenied`."""
    roles = roles_in(user, project)
    if not roles:
        raise Http404
    if ALLOWED[action].isdisjoint(roles):
        able = [role.label.lower() for role in Role if role in ALLOWED[action]]
        raise PermissionDenied(
            f"your role in {project} does not allow this; it takes {' or '.join(able)}"
        )


def projects_of(user: User) -> QuerySet[Project]:
    """Return the projects `user` may see."""
    projects = Project.objects.all()
    if not user.is_authenticated or not user.is_active:
        return projects.none()
    scope = getattr(user, _SCOPE, None)
    if scope is not None:
        projects = projects.filter(slug=scope)
    if user.is_superuser:
        return projects
    return projects.filter(slug__in=_roles(user))


def project_for(user: User, action: Action, slug: str) -> Project:
    """Return the project, if `user` may do `action` in it; raises like `require`."""
    require(user, action, slug)
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        raise Http404
    return project


def session_for(user: User, action: Action, session_id: str) -> Session:
    """Return the session with its project and agent; raises like `require`."""
    sessions = Session.objects.select_related("project", "agent", "parent")
    session = sessions.filter(id=session_id, deleted_at__isnull=True).first()
    if session is None:
        raise Http404
    require(user, action, session.project)
    return session


def trace_for(user: User, action: Action, session_id: str) -> Trace:
    """Return a session's record, also a deleted or imported one's."""
    trace = Trace.objects.filter(session_id=session_id).first()
    if trace is None:
        raise Http404
    require(user, action, trace.project)
    return trace


def mode_action(old_mode: str, new_mode: str) -> Action:
    """Return what a change of mode amounts to."""
    order = ApprovalMode.values  # from strict to permissive
    if order.index(new_mode) > order.index(old_mode):
        return Action.LOOSEN_MODE
    return Action.TIGHTEN_MODE


_SCOPE = "_project_scope"  # slug a token confines its user to
_CACHE = "_project_roles"


def confine(user: User, slug: str) -> None:
    """Let `user`, as this object, see nothing but one project."""
    setattr(user, _SCOPE, slug)


def forget(user: User) -> None:
    """Drop the cached roles: the next question asks the database."""
    if hasattr(user, _CACHE):
        delattr(user, _CACHE)


def _roles(user: Account) -> dict[str, frozenset[str]]:
    cached: dict[str, frozenset[str]] | None = getattr(user, _CACHE, None)
    if cached is None:
        cached = {}
        rows = Membership.objects.filter(user=user)
        for slug, role in rows.values_list("project__slug", "role"):
            cached[slug] = cached.get(slug, frozenset()) | {role}
        setattr(user, _CACHE, cached)
    return cached


class ProjectRoleBackend(BaseBackend):
    """Answers Django's permission questions about one Trace from memberships."""

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        """Return whether the roles of the user give `perm` on the Trace `obj`."""
        action = _TRACE_ACTIONS.get(perm)
        if action is None or not isinstance(obj, Trace):
            return False
        return may(user_obj, action, obj.project)
