"""Readers of languages other than Python: one small tree for all of them, then one set of facts.

    source = parse("worker.go", text)      # None where the grammar is not installed
    code_facts(source, project)            # the same facts that the reader of Python gives

``tree`` is the common form, ``javascript``, ``golang``, ``java``, ``ruby`` and ``lua`` lower their
grammar to it, ``values`` and ``flow`` answer questions about it, ``libraries``, ``commands`` and
``sections`` find what is said about locks.  SQL is read by ``sql``.

Traps: the grammars are the extra ``audit``; without it these files are listed as not read.
"""
