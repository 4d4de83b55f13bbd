"""One file per lock library: how the worker opens, acquires, releases, renews with it.

Each file runs in the library's own interpreter, so it may import the standard library, the
library itself, ``clients.worker.adapter`` and its neighbours here, and nothing else.
"""
