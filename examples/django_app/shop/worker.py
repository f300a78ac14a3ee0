"""`corvo-worker shop.worker:app`: a worker sets the project up before it imports its tasks."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
django.setup()

from shop.jobs import app  # noqa: E402, F401 - models can be loaded now, and not before
