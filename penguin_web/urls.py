"""The addresses of the site: the product, the record, the API and the accounts."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.urls import include, path

from sessions_app import health
from sessions_app.api import api

handler403 = "sessions_app.views.errors.forbidden"
handler404 = "sessions_app.views.errors.not_found"

urlpatterns: list[Any] = [
    path("admin/", admin.site.urls),
    path(
        "login/",
        auth_views.LoginView.as_view(redirect_authenticated_user=True),
        name="login",
    ),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("password/", auth_views.PasswordChangeView.as_view(), name="password_change"),
    path(
        "password/done/",
        auth_views.PasswordChangeDoneView.as_view(),
        name="password_change_done",
    ),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("api/v1/", api.urls),
    path("", include("sessions_app.urls")),
    path("", include("traces_app.urls")),
]
