"""Addresses of the record's pages."""

from __future__ import annotations

from django.urls import path

from traces_app import views

urlpatterns = [
    path("p/<slug:project>/traces/", views.trace_list, name="trace_list"),
    path("p/<slug:project>/s/<str:session>/trace/", views.trace, name="trace"),
    path(
        "p/<slug:project>/s/<str:session>/images/<int:seq>/<int:number>/",
        views.image,
        name="image",
    ),
]
