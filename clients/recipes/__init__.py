"""Lock libraries written once, as coroutines of server commands (see ``base``).

Standard library only: the live worker imports this folder in a foreign interpreter.
"""
