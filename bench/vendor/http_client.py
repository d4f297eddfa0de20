#!/usr/bin/env python3
"""OmniCoreAgent's http provider, measured as measures.js measures the others. argv: the server's URL, the measure, how
many commands. Prints the result in JSON."""

import asyncio
import json
import os
import sys
import time

from omnicoreagent.sandbox.http_sandbox import HttpSandboxRuntime
from omnicoreagent.sandbox.models import SandboxExecRequest, SandboxManifest


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def cpu():
    spent = os.times()
    return (spent.user + spent.system) * 1e6


async def main(url, measure, count):
    runtime = HttpSandboxRuntime(options={"base_url": url, "token": "bench-token"})
    session = (await runtime.create(SandboxManifest())).session_id
    request = SandboxExecRequest(command=["sh", "-c", "true"], authority=None)

    async def command():
        result = await runtime.execute(session, request)
        if result.exit_code != 0:
            raise RuntimeError(f"unexpected exit code: {result.exit_code}")

    async def timed(commands):
        times, before = [], cpu()
        for _ in range(commands):
            start = time.perf_counter()
            await command()
            times.append((time.perf_counter() - start) * 1e6)
        return {"cpu": (cpu() - before) / commands, "p50": quantile(times, 0.5), "p99": quantile(times, 0.99)}

    async def lanes(commands, width):
        left = iter(range(commands))

        async def lane():
            for _ in left:
                await command()

        await asyncio.gather(*(lane() for _ in range(width)))

    if measure == "shell":
        result = {"first": await timed(round(count / 10))}
        await timed(3 * count)
        result["warm"] = await timed(count)
    else:
        await lanes(count, 64)
        start = time.perf_counter()
        await lanes(count, 64)
        result = count / (time.perf_counter() - start)
    await runtime.terminate(session)
    print(json.dumps(result))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
