"""The retry decision layer: a refused attempt goes in, one decision comes out.

    from clients.retry.model import read_context
    from clients.retry.rules import decide
    decide(read_context(text)).as_dict()

For locks with leases and waits of tens of milliseconds to minutes; not for mutexes within a
process, SQL row locks or waits below a millisecond.  It is never on the way of an acquisition
that succeeds, and never acquires anything itself.
"""
