"""Logs of applications as facts: who held what when, and what does not fit together.

    facts, unread = log_facts([Path("worker-1.log"), Path("worker-2.log")], Mapping())

``lines`` cuts lines into time, words and fields; ``words`` says what happened to which lock;
``trace`` keeps who holds what and notes what cannot be right.  Nothing is kept per line, so a log
may be larger than the memory.
"""

from checkers.audit.logs.facts import Report, is_log, log_facts
from checkers.audit.logs.mapping import Mapping, read_mapping

__all__ = ["Mapping", "Report", "is_log", "log_facts", "read_mapping"]
