"""Reports to render in tests: one of everything, and one full of hostile strings."""

from __future__ import annotations

import msgspec

from harness.core.protocols import FaultWindow
from harness.core.result import Anomaly, Result, Side, Valid
from harness.report.document import ClaimView, RunReport, Verdicts

SECRET = "hunter2"
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07 \r\n\t\x00 \u202eevil\u202c <script>alert(1)</script> ]]> &amp; "
    "| ` ``` @team ![x](http://x) [bold red]hi[/] ::error::x \ud800 \ufffe password=hunter2 "
    'redis://:hunter2@127.0.0.1 {"password": "hunter2"} --password hunter2 requirepass hunter2'
)


def full() -> RunReport:
    """A violation as claimed, with everything a report can show."""
    results = [
        Result(
            checker="fencing",
            valid=Valid.FALSE,
            says="1 stale write was accepted",
            anomalies=[
                Anomaly(
                    kind="stale-write-accepted",
                    side=Side.RESOURCE,
                    ops=[3, 9],
                    says="w1 wrote to k0 with token 1 after token 2 was accepted",
                    overlap_ns=1_250_999,
                    key="k0",
                    legal_if="the resource had refused token 1",
                    picture="w0 |--A--|\nw1     |--B--|",
                )
            ],
        ),
        Result(checker="lease", valid=Valid.TRUE, says="200 grants, none too early"),
        Result(checker="cas", valid=Valid.UNKNOWN, says="no cas", stats={"applies": False}),
        Result(
            checker="vacuity", valid=Valid.UNKNOWN, says="crashed", stats={"traceback": "Tr:\n  x"}
        ),
        Result(checker="liveness", valid=Valid.TRUE, says="next grant after 12 ms", safety=False),
    ]
    return RunReport(
        name="redis-holder-pause",
        run_dir="store/redis-holder-pause/20261130T120000.000Z",
        seed=7,
        runtime="process",
        backend="redis-single",
        library="redis-py",
        scenario="0123456789abcdef",
        claim=ClaimView(verdict="violation", by=("fencing",), why="nothing fences"),
        verdict="as-claimed",
        says="violation found, as claimed, by fencing",
        valid=Verdicts.of(results),
        exit_code=0,
        results=results,
        faults=[
            FaultWindow(
                id=0, kind="worker-pause", targets=["w1"], start_ns=1_000_000_000,
                end_ns=3_000_500_000, when="held", bit=True, healed=True, says="state T",
            ),
            FaultWindow(id=1, kind="sever", targets=["w0-redis"], start_ns=5),
        ],
        versions={"redis": "8.0.2", "toxiproxy": "2.12.0"},
        started="2026-11-30T12:00:00.000+00:00",
        duration_ms=12_345,
        ops=4200,
        replay=["lockhavoc", "run", "scenarios/redis/holder pause.toml", "--seed", "7"],
        failures=["logs of redis could not be copied"],
    )  # fmt: skip


def hostile() -> RunReport:
    """Every string that can come from outside is HOSTILE."""
    report = full()
    anomaly = msgspec.structs.replace(
        report.results[0].anomalies[0],
        kind=HOSTILE, says=HOSTILE, key=HOSTILE, legal_if=HOSTILE, picture=HOSTILE,
    )  # fmt: skip
    results = [
        Result(checker="fencing", valid=Valid.FALSE, says=HOSTILE, anomalies=[anomaly]),
        Result(checker=HOSTILE, valid=Valid.UNKNOWN, says=HOSTILE, stats={"traceback": HOSTILE}),
    ]
    fault = msgspec.structs.replace(
        report.faults[0], kind=HOSTILE, targets=[HOSTILE], when=HOSTILE, says=HOSTILE
    )
    return msgspec.structs.replace(
        report,
        name=HOSTILE,
        run_dir=HOSTILE,
        runtime=HOSTILE,
        backend=HOSTILE,
        library=HOSTILE,
        scenario=HOSTILE,
        claim=ClaimView(verdict="holds", by=(HOSTILE,), why=HOSTILE),
        verdict="violation",
        says=HOSTILE,
        exit_code=1,
        results=results,
        faults=[fault],
        versions={HOSTILE: HOSTILE},
        started=HOSTILE,
        replay=["lockhavoc", "run", HOSTILE, "--password", SECRET],
        failures=[HOSTILE],
    )
