"""The record: Traces, their integrity, export and import."""
