"""django-pglock: ``pglock.advisory(id, timeout=, side_effect=)`` on Django's connection.

A session advisory lock; Django is configured here without a project.

Facts, read in 1.8.0's ``core.py``:

- With the default side effect an OperationalError while waiting is *False*, "not acquired": a wait
  that ended in time and a connection that broke read the same.  So False is a refusal without an
  observation where it was waited for; without a wait it is the server's own answer.
- ``release`` throws away what ``pg_advisory_unlock`` answers: a lock that went with its session
  releases in silence.  The adapter looks whether Django's connection is still the one that locked
  (Django makes a new one by itself after an error).
- Re-entrant in a session: each grant counts.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import django
from django.conf import settings
from django.db import close_old_connections, connection

from clients.adapters.postgres_one import address_of
from clients.worker.adapter import Definite, Grant, Lease, Refused, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class DjangoPglock:
    """Django's one connection of the thread."""

    library = "django-pglock"
    distributions = ("django-pglock", "django", "psycopg")
    lease = Lease("connection")
    ERRORS: Mapping[type[BaseException], Definite] = {}

    def open(self, nodes: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
        address = address_of(nodes, options)
        database = {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": address.host,
            "PORT": address.port,
            "NAME": address.options.database,
            "USER": address.options.user,
            "OPTIONS": {
                "application_name": address.name,
                "connect_timeout": address.options.connect_timeout_s,
                "sslmode": "disable",
            },
        }
        if settings.configured:
            connection.settings_dict.update(database)
        else:
            apps = ["django.contrib.contenttypes", "pgactivity", "pglock"]
            settings.configure(DATABASES={"default": database}, INSTALLED_APPS=apps, USE_TZ=True)
            django.setup()
        connection.ensure_connection()

    def acquire(self, key: str, ttl_ms: int | None, timeout_ms: int) -> Grant:
        import pglock  # needs Django to be set up

        connection.ensure_connection()
        session = connection.connection.info.backend_pid
        lock = pglock.advisory(key, timeout=max(timeout_ms, 0) / 1000)
        if not lock.acquire():
            if timeout_ms <= 0:
                raise Refused("busy")
            if connection.connection is None or connection.connection.closed:
                raise Unknown("not acquired; the connection was lost while it waited")
            raise Refused("not acquired in time")
        return Grant(owner=f"{os.getpid()}/{session}", handle=(lock, session))

    def release(self, grant: Grant) -> None:
        lock, session = grant.handle
        connection.ensure_connection()
        if connection.connection.info.backend_pid != session:
            raise Refused("not-held")  # the session that held it is over
        try:
            lock.release()
        finally:
            if connection.connection is not None and connection.connection.closed:
                connection.close()  # as Django does at the end of a request

    def close(self) -> None:
        close_old_connections()
        connection.close()


ADAPTER = DjangoPglock
