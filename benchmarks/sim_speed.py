"""How fast is the simulation alone: CPU time per completed operation.

    python -m benchmarks.sim_speed [--operations 200000]

The whole pipeline (generator, interpreter, journal) has 50 µs an operation for 20,000 a second;
the simulation may take 15 of them in the plain case.  The driver here is as small as it can be,
and its own share is measured with a pool that answers at once, and taken off.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable

from clients.recipes.base import Recipe
from clients.recipes.redis_lock import FencedRedisLock, RedisLock
from clients.sim.world import SimSetup, build
from harness.core.clock import NS_PER_S
from harness.core.messages import Reply, Request

WORKERS = 8
FAR_NS = 1 << 62
CASES: dict[str, tuple[type[Recipe], list[str], int]] = {
    # recipe, operations of one section, keys (as many as workers: nobody waits)
    "acquire+release, own key": (RedisLock, ["acquire", "release"], WORKERS),
    "fenced acquire+renew+write+release, own key": (
        FencedRedisLock,
        ["acquire", "renew", "write", "release"],
        WORKERS,
    ),
    "acquire+release, one key (waiters poll)": (RedisLock, ["acquire", "release"], 1),
}


def drive(setup: SimSetup, steps: list[str], keys: int, operations: int) -> tuple[int, float]:
    """Runs sections until so many operations are done; returns them and the CPU seconds."""
    pool, clock = setup.pool, setup.clock
    at = [len(steps) - 1] * WORKERS
    sections = [0] * WORKERS
    for worker in range(WORKERS):
        pool.send(worker, Request(1, "open", options={"nodes": [], "options": {}}))
    clock.sleep_until(NS_PER_S)
    done = 0
    start_s = time.process_time()
    while done < operations:
        for event in pool.poll(FAR_NS):
            reply, worker = event.reply, event.worker
            if reply is None or reply.event:
                continue
            done += 1
            step = at[worker] = (at[worker] + 1) % len(steps)
            if reply.error is not None:
                assert reply.error == "busy", reply
                step = at[worker] = 0
            sections[worker] += step == 0
            hold = f"{worker}-{sections[worker]}"
            key = f"k{worker % keys}"
            pool.send(worker, Request(done, steps[step], key, hold, 1000, 1000, 1, done))
    return done, time.process_time() - start_s


def own_share_us(operations: int) -> float:
    """The driver's own cost per operation: requests made and replies read, nothing between."""
    start_s = time.process_time()
    for done in range(operations):
        worker = done % WORKERS
        request = Request(done, "acquire", f"k{worker}", f"{worker}-{done}", 1000, 1000, 1, done)
        reply = Reply(request.id, "ok", done, done, None, None)
        if reply.error is not None:
            raise AssertionError
    return (time.process_time() - start_s) / operations * 1e6


def measure(operations: int, build_world: Callable[[type[Recipe]], SimSetup]) -> None:
    """Prints the table."""
    gc.freeze()
    own_us = own_share_us(operations)
    print(f"{'case':48} {'ops/s':>9} {'µs/op':>7} {'driver':>7} {'sim':>7}")
    for name, (recipe, steps, keys) in CASES.items():
        done, spent_s = min(
            (drive(build_world(recipe), steps, keys, operations) for _ in range(5)),
            key=lambda result: result[1],
        )
        each_us = spent_s / done * 1e6
        print(
            f"{name:48} {done / spent_s:9.0f} {each_us:7.2f} {own_us:7.2f} {each_us - own_us:7.2f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=200_000)
    measure(
        parser.parse_args().operations,
        lambda recipe: build(recipe, workers=WORKERS, seed=1, resource_mode="unfenced"),
    )
