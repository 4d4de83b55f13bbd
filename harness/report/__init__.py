"""Reports of finished runs: terminal text, JUnit, Markdown, and the document ``results.json``.

Each part is a pure function of a ``RunReport`` (document.py); nothing here opens a run's files.
All strings that come from the outside go through escape.py first: a worker, a server or a
scenario may put terminal escapes, markup or a password into a message.
"""
