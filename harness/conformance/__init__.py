"""Does a worker speak the protocol?  Asked point by point, of a program in any language.

    with Bench(argv, cluster, ...) as bench: results = examine(bench)

``talk`` is the line to one worker, ``bench`` two workers with a server and a resource, ``points``
and its neighbours ask the questions of docs/reference/worker-protocol.md, one function each, and
``examine`` puts them all.  The command is ``lockhavoc worker check`` (harness/worker_command.py).
"""
