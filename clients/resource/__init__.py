"""The protected resource: a real server process that takes writes and remembers every one.

    python -m clients.resource --dir DIR --mode unfenced|fenced|cas [--port 0]

The lock is there to protect something; this is that something.  Workers write to it straight,
without a proxy between, so the write of a holder that was paused past its lease really arrives
late.  ``fenced`` refuses a token below the highest it accepted, ``cas`` refuses a write that does
not name the current version, ``unfenced`` takes everything.

``store`` has the rules and the durable state, ``server`` the sockets, ``process`` starts and stops
it for the harness, ``export`` reads the record of a resource, alive or dead.
"""
