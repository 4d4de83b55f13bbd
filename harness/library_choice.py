"""Which version of the library a run takes: from the command line and the scenario to a target.

    scenario = apply(scenario, choice)             # the plan, and so a replay, carries the choice
    scenario, target = settle_for(scenario, progress=print)

What is on the command line replaces what stands in ``[client]`` of the scenario.

Trap: an adapter that is named here takes the place of another library's, whose ``[client.options]``
mean nothing to it; they are dropped.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clients.choice import LibraryChoice, Target, hello_of, settle
from harness.core.errors import UserError
from harness.library_options import NOTHING, Chosen
from harness.registries import LIBRARIES, SIM
from harness.rules import library_problems
from harness.scenario import Scenario, parse
from harness.sharing import check_served, sharing_of

Progress = Callable[[str], None]


def apply(scenario: Scenario, choice: Chosen) -> Scenario:
    """The scenario with the choice in its ``[client]``; UserError lists what does not go."""
    if choice == NOTHING:
        return scenario
    data = scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    if choice.fixed:
        _fix(data)
    client = data["client"]
    if choice.with_:
        client["with"] = list(choice.with_)
    for name in ("python", "wheel", "adapter"):
        value = getattr(choice, name)
        if value is not None:
            # A plan is repeated from anywhere.  Not resolved: a venv's python is a symlink.
            client[name] = os.path.abspath(value)
    if choice.adapter is not None:
        client["library"], client["options"] = Path(choice.adapter).stem, {}
    elif choice.python is not None and not choice.with_:
        client.pop("with", None)
    return parse(data, source=f"{scenario.name} with what the command line chose")


def _fix(data: dict[str, Any]) -> None:
    museum = data.get("museum")
    if not museum or not (museum["fixed_with"] or museum.get("fixed_library")):
        raise UserError(
            f"--fixed: scenario {data['name']!r} names no fixed version ([museum] fixed_with); "
            "leave it out, or choose one by --with"
        )
    client = data["client"]
    client["with"] = museum["fixed_with"]
    if museum.get("fixed_library"):
        client["library"] = museum["fixed_library"]
        client.pop("adapter", None)
    if museum.get("fixed_options") is not None:
        client["options"] = museum["fixed_options"]
    data["name"] += "-fixed"
    tolerates = data["claim"].get("tolerates", [])
    data["claim"] = {"verdict": "holds", "tolerates": tolerates, "why": "the fixed version"}


def settle_for(
    scenario: Scenario, runtime: str, *, progress: Progress
) -> tuple[Scenario, Target | None]:
    """Makes the environment of what a scenario's ``[client]`` chose; None in the simulator.

    The scenario comes back with the name that a user's adapter gives itself.  UserError before
    anything was started if the choice cannot be met.
    """
    client = scenario.client
    choice = LibraryChoice(
        python=client.python, with_=client.with_, wheel=client.wheel, adapter=client.adapter
    )
    sharing = sharing_of(scenario)
    if runtime == SIM:
        if choice != LibraryChoice():
            raise UserError(
                "the simulator runs no library, so no version, interpreter or adapter can be "
                "chosen; use --runtime docker or process with a real backend"
            )
        if sharing is not None:
            raise UserError(
                f"workload.kind is {scenario.workload.kind!r}, whose workers are users of one "
                "process; the simulator has none, use --runtime docker or process with a real "
                "backend"
            )
        return scenario, None
    library = None if client.adapter else LIBRARIES.load(client.library)
    target = settle(library, choice, progress=progress)
    if client.adapter:
        data = scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
        found = list(library_problems(target.library, data))
        if found:
            raise UserError(f"scenario {scenario.name!r} does not go with this adapter", found)
        data["client"]["library"] = target.library.name
        scenario = parse(data)
    if sharing is not None:
        check_served(hello_of(target.library, target.python), sharing)
    return scenario, target
