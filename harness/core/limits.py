"""Every bound of the project, with its reason.  Code refers to these names, not to numbers."""

from __future__ import annotations

WORKERS_MAX = 64  # one OS process each; more would measure the machine, not the lock
NODES_MAX = 9
KEYS_MAX = 1024
LINE_BYTES_MAX = 1 << 20  # one JSON line from a worker; larger means it prints something else
ANOMALIES_MAX = 50  # listed per checker; the count is always exact
ANOMALIES_PER_CHECKER = 3  # shown in the text report: more of the same kind hide the others
RUN_TIME_MS_MAX = 6 * 60 * 60 * 1000

WORKER_START_TIMEOUT_S = 20.0  # interpreter + import of the library on two busy cores
WORKER_STOP_TIMEOUT_S = 3.0
NODE_READY_TIMEOUT_S = 30.0
COMPOSE_TIMEOUT_S = 180.0  # image builds are separate; this is start to healthy
ENGINE_TIMEOUT_S = 20.0  # one call to the Engine; a kill or start takes 0.4 s on an idle machine
ENGINE_ANSWER_TIMEOUT_S = 3.0  # an idle Engine takes 20 ms, a hung one for ever
PLUGIN_ANSWER_TIMEOUT_S = 15.0  # local programs that always answer, late on a busy machine
DISK_FREE_BYTES_MIN = 2 << 30  # images about 0.5 GB, and a long run's history in the GB range
IMAGE_BUILD_TIMEOUT_S = 900.0
HTTP_TIMEOUT_S = 5.0  # Toxiproxy and Engine calls on loopback take milliseconds
PROBE_TIMEOUT_MS = 250  # an echo that takes longer counts as lost when proving a fault
EVIDENCE_TIMEOUT_MS = 2_000  # how long a fault may take to show that it bit
HEAL_TIMEOUT_MS = 10_000  # after undo: how long until the link or node must answer again
ORACLE_OPS_MAX = 16  # brute force: 10 take milliseconds, 16 at worst seconds, beyond is folly

EDN_DEPTH_MAX = 100  # Jepsen's ops nest about five levels; more is hostile or not a history
EDN_STRING_BYTES_MAX = 16 << 20  # a string without an end would else swallow the whole file
PROBLEMS_MAX = 20  # malformed lines listed in one message; the rest is counted
LOOK_AGAIN_MS = 5  # between two looks for proof; a signal takes effect within a millisecond

OVERLAPS_MAX = 1_000  # pairs of believed windows looked at per key; one is enough to convict
ENGINE_ENDS_MAX = 16  # dead ends and last operations kept for the report of a violation
ENGINE_BUDGET_S = 60.0  # default time of the general checker for one history
ENGINE_MEMORY_BYTES = 2 << 30
KEYS_LISTED_MAX = 64  # keys with a result of their own; beyond, only those that are not TRUE
EXPLAIN_BUDGET_S = 5.0  # minimising a violation; the verdict does not wait for it
EXPLAIN_POOL_MAX = 24  # operations among which every smaller proof is looked for
EXPLAIN_SUBSETS_MAX = 4_000  # questions to the engine for that, a fraction of a millisecond each
EXPLAIN_OPS_MAX = 2_000  # operations before the violation that are regarded at all
EXPLAIN_KEYS_MAX = 3  # keys whose first violation is explained; each takes up to seconds
ORDER_OPS_MAX = 5_000  # operations of a key for which a viewer is given an order; it draws SVG
ORDER_BUDGET_S = 2.0  # for finding that order
PICTURES_MAX = 5  # anomalies of a checker that are drawn; more of the same says no more
HOLDS_REMEMBERED_MAX = 1 << 15  # holds of unknown end of one key, judged piece by piece; 10 MB
HOLDS_UNSURE_MAX = 1 << 12  # holds of unknown end kept by online monitors; some 3 MB
HOLDS_OVER_MAX = 1 << 8  # holds kept although the service said that they are over
QUEUE_MAX = 1 << 10  # holds of one key of a kind that wait: to be judged, placed, given up
STREAM_EVENTS_MIN = 100_000  # events from which a file is judged in a stream and not loaded
REPORT_ANOMALIES_MAX = 200  # rows of the report's table; all that are listed stand in results.json
REPORT_OVERLAPS_MAX = 2_000  # overlaps painted; beyond, the page says that there are more
REPORT_DETAIL_OPS_MAX = 200_000  # beyond, only operations near anomalies keep their details
REPORT_ROWS_MAX = 200  # rows of workers on the timeline; one more pixel row each would not be seen
REPORT_STORIES_MAX = 3  # anomalies drawn as a sequence of messages
PORCUPINE_OPS_MAX = 10_000  # operations for which a run gets porcupine.json: its viewer draws SVG

RETRY_CONTEXT_BYTES_MAX = 1 << 20  # a wait-for graph of thousands of clients fits
RETRY_ANSWER_BYTES_MAX = 64 << 10  # of a decider's program; a decision has a few hundred bytes
AUDIT_FOLLOW_MAX = 8  # names followed to find what one stands for; real code needs two or three
AUDIT_CONSTANTS_BYTES_MAX = 32 << 10  # settings in code are small; longer files are something else
AUDIT_FILE_BYTES_MAX = 4 << 20  # larger source files are generated; they are listed as not read
AUDIT_LOG_LINE_BYTES_MAX = 1 << 20  # a longer "line" is no line of a log; it is counted
AUDIT_LOG_LOCKS_MAX = 100_000  # locks remembered at a time, some 50 MB; the oldest are forgotten
AUDIT_LOG_HITS_MAX = 3  # of one rule for one lock: more of the same are counted
AUDIT_LOG_HITS_OF_RULE_MAX = 100  # of one rule in all: nobody reads on, the rest is counted
AUDIT_LOG_HOLDERS_MAX = 1_000  # per lock: former holders and waiters that are remembered
