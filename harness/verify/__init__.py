"""Verification of one lock library: situations, what is claimed in each, what was seen.

    lockhavoc verify redis-py
    lockhavoc verify redis-py --only holder-pause --backend redis-single --seed 7

traits.py       what is known of a library on a backend before anything runs
situations.py   the table of situations (those of the client and the network; users.py: of several
                users; servers.py: of the servers), each a scenario made from traits, with what is
                claimed in it
toml.py         such a scenario as a file
cells.py        runs one cell of the matrix and judges it against what is claimed
side_by_side.py several cells at a time, each in its own process (cell_process.py)
document.py     all cells of a library: scorecard, JSON; page.py: Markdown, text, JUnit
compare.py      two documents: which cells got worse
command.py      the command line;  survey.py: all libraries, docs/survey.md
"""
