"""Reports of finished runs: terminal, page, JUnit, Markdown, traces, and ``results.json`` itself.

Each part is a pure function of a ``RunReport`` (document.py), the page and the traces also of the
history and its context (timeline.py); nothing here opens a run's files.  All strings that come from
the outside go through escape.py first: a worker, a server or a scenario may put terminal escapes,
markup or a password into a message.
"""
