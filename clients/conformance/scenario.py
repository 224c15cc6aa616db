"""Running one scenario: its steps, and then the comparison of what was played with what the service has stored."""

import asyncio
import time
from pathlib import Path
from typing import Any

from .comparison import Comparison
from .device import Broken, Device, Drivers, Failed
from .proxy import Fault
from .stage import Stage
from .steps import Orders, Steps
from .world import LeftOut, Result, Unmet, World

Step = dict[str, Any]

OF_FAULTS = ("on", "times", "skip")


async def run(scenario: dict[str, Any], stage: Stage, drivers: Drivers, place: Path) -> Result:
    """Run a scenario with drivers of one program; the devices' stores are in `place`."""
    began = time.monotonic()
    result = Result(scenario["name"])
    world = World(result, stage, drivers, place)
    try:
        for step in scenario["steps"]:
            await _run_step(world, step)
        await world.settle()
        comparison = Comparison(world, scenario.get("extra_sessions", 0), scenario.get("sessions"))
        comparison.compare_forwarded(scenario.get("forwarded", {}))
        await comparison.make()
    except (Unmet, Broken, Failed) as error:
        result.wrong.append(str(error))
    except LeftOut as error:
        result.left_out = str(error)
    finally:
        for device in world.devices.values():
            result.faults += device.proxy.caused
            await device.end()
    result.seconds = time.monotonic() - began
    return result


async def _run_step(world: World, step: Step) -> None:
    match step:
        case {"together": parts}:
            await asyncio.gather(*(_run_step(world, part) for part in parts))
        case {"sequence": parts}:
            for part in parts:
                await _run_step(world, part)
        case {"fault": kind, "device": name, **more}:
            known = {field: more.pop(field) for field in OF_FAULTS if field in more}
            (await world.device(name)).proxy.add(Fault(kind, more=more, **known))
        case {"do": "share", "device": name, "with": other}:
            if "share" not in world.devices[other].can:
                raise LeftOut("drivers can't share a store")
            device = await world.device(name, store_of=other)
            device.account = world.devices[other].account
        case {"do": do, "device": name, **more}:
            device = await world.device(name)
            for _ in range(more.pop("times", 1)):
                await _run_order(world, device, do, **more)
        case {"do": do, **more}:
            await getattr(Steps(world), do)(**more)


async def _run_order(
    world: World,
    device: Device,
    do: str,
    *,
    allow: tuple[str, ...] = (),
    error: str | None = None,
    expect: dict[str, Any] | None = None,
    **more: Any,
) -> None:
    """Give an order, which must fail with `error` or may fail with a code of `allow`; its answer must have `expect`."""
    orders = Orders(world, device)
    order = getattr(orders, do, None)
    try:
        answer = await (orders.command(do, **more) if order is None else order(**more)) or {}
    except Failed as failure:
        if failure.code == error or failure.code in allow or "any" in allow:
            return
        raise Unmet(f"{device.name}: {do} failed with {failure.code}") from None
    if error is not None:
        raise Unmet(f"{device.name}: {do} succeeded instead of failing with {error}")
    found = {name: answer.get(name) for name in expect or {}}
    if found != (expect or {}):
        raise Unmet(f"{device.name}: {do} answered {found} instead of {expect}")
