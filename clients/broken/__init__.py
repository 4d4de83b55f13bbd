"""Canaries: locks that are wrong on purpose, one mistake per file.

A harness that passes one of them is itself broken.  Each is right but for its one mistake.
Standard library only: the live worker imports this folder in a foreign interpreter.
"""
