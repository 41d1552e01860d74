"""The Django admin: set up projects, people and tokens; look at the rest."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import models
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils import timezone

from sessions_app import tokens
from sessions_app.admin_bases import ModelAdmin, ReadOnlyAdmin, TabularInline
from sessions_app.admin_forms import (
    AgentForm,
    DocumentForm,
    GuardedForm,
    ProjectForm,
    TokenForm,
)
from sessions_app.models import (
    Agent,
    ApiToken,
    ApprovalRequest,
    Artifact,
    CommandSession,
    ConfigVersion,
    Membership,
    Owner,
    Project,
    QueuedMessage,
    Session,
)
from sessions_app.runtime import configs
from traces_app.figures import usd
from traces_app.spending import spending_of

admin.site.site_header = "Penguin Web"
admin.site.site_title = "Penguin Web admin"
admin.site.index_title = "Projects, people, tokens, and the rest to look at"


class MembershipInline(TabularInline):
    """Roles are given and taken, never edited: two changes cannot collide."""

    model = Membership
    extra = 0
    autocomplete_fields = ["user"]

    def has_change_permission(
        self, request: HttpRequest, obj: models.Model | None = None
    ) -> bool:
        """Refuse."""
        return False


class DocumentAdmin(ModelAdmin):
    """Edits a row together with its document."""

    def has_delete_permission(
        self, request: HttpRequest, obj: models.Model | None = None
    ) -> bool:
        """Refuse: the record and the versions name it."""
        return False

    def save_document(self, request: HttpRequest, form: DocumentForm) -> None:
        """Make a version of a changed text."""
        if form.has_new_text:
            version = configs.save(
                form.instance,
                form.cleaned_data["yaml"],
                base_version=form.number,
                reason=form.cleaned_data["reason"],
                user=author(request),
            )
            messages.info(request, f"Saved as version {version.number}.")


def author(request: HttpRequest) -> Any:
    """Return who is logged in."""
    return request.user if request.user.is_authenticated else None


@admin.register(Project)
class ProjectAdmin(DocumentAdmin):
    """Projects with their document and members."""

    form = ProjectForm
    inlines = [MembershipInline]
    list_display = ["slug", "title", "created_at"]
    search_fields = ["slug", "title"]
    fields = ["slug", "title", "yaml", "reason", "base_version", "seen"]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Project | None = None
    ) -> list[str]:
        """Keep the slug: addresses and records hold it."""
        return ["slug"] if obj else []

    def save_model(
        self, request: HttpRequest, obj: Project, form: Any, change: bool
    ) -> None:
        """Save the row and its document; a new project gets its agent too."""
        super().save_model(request, obj, form, change)
        if change:
            self.save_document(request, form)
            return
        configs.begin_project(
            obj,
            text=form.cleaned_data["yaml"],
            reason=form.cleaned_data["reason"],
            user=author(request),
        )


@admin.register(Agent)
class AgentAdmin(DocumentAdmin):
    """Agents with their document."""

    form = AgentForm
    list_display = ["name", "project", "created_at"]
    list_filter = ["project"]
    list_select_related = ["project"]
    search_fields = ["name"]
    fields = ["project", "name", "yaml", "reason", "base_version", "seen"]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Agent | None = None
    ) -> list[str]:
        """Keep the agent where it is and its name: sessions hold them."""
        return ["project", "name"] if obj else []

    def save_model(
        self, request: HttpRequest, obj: Agent, form: Any, change: bool
    ) -> None:
        """Save the row and its document."""
        super().save_model(request, obj, form, change)
        self.save_document(request, form)


@admin.register(ConfigVersion)
class ConfigVersionAdmin(ReadOnlyAdmin):
    """Every document that was ever in force."""

    list_display = ["project", "agent", "number", "author", "created_at", "reason"]
    list_filter = ["project", "agent"]
    list_select_related = ["project", "agent", "author"]
    ordering = ["-id"]


class MembershipForm(GuardedForm):
    """A role of a person in a project."""

    class Meta:
        model = Membership
        fields = ["project", "user", "role"]


@admin.register(Membership)
class MembershipAdmin(ModelAdmin):
    """Who belongs where, as what."""

    form = MembershipForm
    list_display = ["user", "role", "project", "created_at"]
    list_filter = ["project", "role"]
    list_select_related = ["user", "project"]
    search_fields = ["user__username"]
    autocomplete_fields = ["user"]


@admin.register(ApiToken)
class ApiTokenAdmin(ModelAdmin):
    """Tokens: made here, shown once, revoked; never edited."""

    form = TokenForm
    list_display = ["__str__", "project", "scope", "created_at", "last_used_at"]
    list_filter = ["project", "scope"]
    list_select_related = ["user", "project"]
    autocomplete_fields = ["user"]
    actions = ["revoke"]

    def get_fields(
        self, request: HttpRequest, obj: ApiToken | None = None
    ) -> list[Any]:
        """Show the hash to nobody."""
        times = ["last_four", "created_at", "last_used_at", "revoked_at"]
        return ["user", "project", "scope", *(times if obj else [])]

    def has_change_permission(
        self, request: HttpRequest, obj: models.Model | None = None
    ) -> bool:
        """Refuse."""
        return False

    def has_delete_permission(
        self, request: HttpRequest, obj: models.Model | None = None
    ) -> bool:
        """Refuse: a revoked token stays to tell what it was."""
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Ask for what Django calls changing."""
        return super().has_change_permission(request)

    def save_model(
        self, request: HttpRequest, obj: ApiToken, form: ModelForm[Any], change: bool
    ) -> None:
        """Make the token and show it this once."""
        text = tokens.fill(obj)
        super().save_model(request, obj, form, change)
        messages.warning(request, f"The token, shown only now: {text}")

    @admin.action(description="Revoke the selected tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, rows: QuerySet[ApiToken]) -> None:
        """Make the tokens worthless."""
        count = rows.filter(revoked_at=None).update(revoked_at=timezone.now())
        self.message_user(request, f"{count} tokens are revoked.")


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    """Sessions; they are changed in their pages, where it is recorded."""

    list_display = ["id", "project", "title", "status", "approval_mode", "created_by"]
    list_filter = ["project", "status", "approval_mode", "is_archived"]
    list_select_related = ["project", "created_by"]
    search_fields = ["=id", "title"]
    readonly_fields = ["tokens", "cost"]

    @admin.display(description="tokens, subagents included")
    def tokens(self, session: Session) -> int:
        """Return what the session and its subagents used."""
        return spending_of(session.pk).usage.total

    @admin.display(description="cost, subagents included")
    def cost(self, session: Session) -> str | None:
        """Return what that cost; None where no model had a price."""
        dollars = spending_of(session.pk).cost_usd
        return None if dollars is None else usd(dollars)


@admin.register(ApprovalRequest)
class ApprovalRequestAdmin(ReadOnlyAdmin):
    """Questions and answers; they are decided in the pages."""

    list_display = ["requested_at", "session", "name", "decision", "decided_by"]
    list_filter = ["decision", "source"]
    list_select_related = ["session"]
    search_fields = ["=session__id", "=tool_call_id"]
    ordering = ["-id"]


@admin.register(CommandSession)
class CommandSessionAdmin(ReadOnlyAdmin):
    """Commands that run or ran."""

    list_display = ["process_id", "session", "state", "exit_code", "started_at"]
    list_filter = ["state"]
    list_select_related = ["session"]
    search_fields = ["=process_id", "=session__id"]


@admin.register(Owner)
class OwnerAdmin(ReadOnlyAdmin):
    """Processes that host live sessions."""

    list_display = ["id", "host", "pid", "started_at", "heartbeat_at", "ended_at"]


@admin.register(QueuedMessage)
class QueuedMessageAdmin(ReadOnlyAdmin):
    """Messages that wait for their turn."""

    list_display = ["session", "created_by", "created_at"]
    list_select_related = ["session", "created_by"]


@admin.register(Artifact)
class ArtifactAdmin(ReadOnlyAdmin):
    """Long outputs kept as files."""

    list_display = ["session", "item", "size", "sha256", "created_at"]
    list_select_related = ["session"]
