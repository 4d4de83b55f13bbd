"""The worker: standard library only, since it runs in the interpreter of the library under test.

It is started by path (``python -u clients/worker/main.py --adapter FILE``), loads one adapter
file and speaks JSON lines.  The messages are described in docs/reference/worker-protocol.md.
"""
