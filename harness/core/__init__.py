"""The leaf layer: data types and contracts that every other room may import.

Nothing here starts a process, opens a socket or knows a backend.  ``clients``, ``nemesis``,
``checkers`` and ``compose`` import only this package (and themselves), never each other; the
modules of ``harness`` tie them together through the registries.
"""
