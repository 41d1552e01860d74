"""Forms of the Django admin: nobody's change is overwritten unseen."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from django import forms
from django.db import models

from sessions_app.config.documents import DocumentError, default_document
from sessions_app.config.schema_check import DocumentKind
from sessions_app.config.yaml_positions import Problem
from sessions_app.models import Agent, ApiToken, Project
from sessions_app.runtime import configs
from sessions_app.tokens import METRICS_SCOPE

# Django's own class knows no type arguments when it runs.
if TYPE_CHECKING:
    ModelForm = forms.ModelForm[Any]
else:
    ModelForm = forms.ModelForm


class GuardedForm(ModelForm):
    """Refuses to save over a row that changed since the form was made.

    The refused form comes back with what was entered; saving it again is meant.
    """

    seen = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["seen"] = self._fingerprint(self.instance)

    def clean(self) -> dict[str, Any]:
        """Compare the row with what the form was made from."""
        cleaned = super().clean() or {}
        if self.instance.pk is None:
            return cleaned
        # Locked until the save: two forms must not both find it unchanged.
        rows = type(self.instance)._default_manager.select_for_update()
        newest = self._fingerprint(rows.get(pk=self.instance.pk))
        if cleaned.get("seen") != newest:
            self._put_back("seen", newest)
            message = (
                "Somebody changed this since you opened it. Nothing was saved; what you "
                "entered is still here. Look at the row in another tab, then save again."
            )
            self.add_error(None, message)
        return cleaned

    def _fingerprint(self, row: models.Model) -> str:
        names = sorted(self._meta.fields or ())
        values = [str(getattr(row, name, None)) for name in names]
        return hashlib.sha256(repr(values).encode()).hexdigest()

    def _put_back(self, name: str, value: Any) -> None:
        # Bound forms hold a QueryDict, which cannot be written to.
        self.data = dict(self.data.items()) | {self.add_prefix(name): str(value)}


class DocumentForm(GuardedForm):
    """Also edits the row's YAML document; a changed text becomes a new version."""

    yaml = forms.CharField(
        label="Document",
        strip=False,
        widget=forms.Textarea(
            attrs={"rows": 30, "cols": 100, "spellcheck": "false", "wrap": "off"}
        ),
    )
    base_version = forms.IntegerField(widget=forms.HiddenInput, required=False)
    reason = forms.CharField(max_length=500, required=False)

    kind: DocumentKind

    class Media:
        css = {"all": ["css/admin-document.css"]}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.text, self.number = default_document(self.kind), 0
        if self.instance.pk is not None:
            self.text, self.number = configs.document_text(self._target())
        self.initial.update({"yaml": self.text, "base_version": self.number})

    @property
    def has_new_text(self) -> bool:
        """Return whether saving makes a version."""
        is_new = self.instance.pk is None or not self.number
        return is_new or self.cleaned_data["yaml"] != _plain(self.text)

    def clean_yaml(self) -> str:
        """Return the text with the line ends it was written with."""
        return _plain(self.cleaned_data["yaml"])

    def clean(self) -> dict[str, Any]:
        """Check the document and that its newest version was seen."""
        cleaned = super().clean()
        if "yaml" not in cleaned:
            return cleaned
        try:
            self._check(cleaned["yaml"])
        except DocumentError as error:
            for problem in error.problems:
                self.add_error("yaml", _sentence(problem))
        base = cleaned.get("base_version") or 0
        if self.instance.pk is not None and base != self.number:
            stale = configs.StaleBase(configs.newest_version(self._target()))
            self._put_back("base_version", self.number)
            message = f"{stale}. Nothing was saved; save again to put yours on top."
            self.add_error("yaml", message[0].upper() + message[1:])
        return cleaned

    def _target(self) -> Project | Agent:
        row: Any = self.instance
        assert isinstance(row, Project | Agent)
        return row

    def _check(self, text: str) -> None:
        configs.check(self._target(), text)


class ProjectForm(DocumentForm):
    """A project and its document."""

    kind = "project"

    class Meta:
        model = Project
        fields = ["slug", "title"]

    def _check(self, text: str) -> None:
        if self.instance.pk is None:
            configs.check_project_text(text)  # its agent is made with it
        else:
            super()._check(text)


class AgentForm(DocumentForm):
    """An agent and its document."""

    kind = "agent"

    class Meta:
        model = Agent
        fields = ["project", "name"]


class TokenForm(ModelForm):
    """A new API token; without a scope it may do what its user may."""

    scope = forms.ChoiceField(
        required=False,
        choices=[("", "everything the user may do"), (METRICS_SCOPE, METRICS_SCOPE)],
    )

    class Meta:
        model = ApiToken
        fields = ["user", "project", "scope"]


def _plain(text: str) -> str:
    # A browser sends every line end as CR LF.
    return text.replace("\r\n", "\n")


def _sentence(problem: Problem) -> str:
    place = f"Line {problem.line}, column {problem.column}"
    return f"{place}: {problem.path}: {problem.message}"
