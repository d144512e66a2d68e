"""Routers, one file per subject. An endpoint takes validated parameters, calls a service and returns its response."""
