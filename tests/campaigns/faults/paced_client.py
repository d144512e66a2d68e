"""Honest clients, a process of their own: each sends a score request at fixed intervals over a keep-alive connection.

    python -m tests.campaigns.faults.paced_client PORT CLIENTS SECONDS INTERVAL KEY

Prints {"sent", "served", "refused", "failed", "p50", "p99", "slowest"} as JSON, times in seconds. A client whose
connection ended opens another one for its next request.
"""

import asyncio
import json
import sys
import time
from collections import Counter

from tests.campaigns.faults.load import Connection
from tests.campaigns.load_client import requests


async def run_clients(port: int, clients: int, seconds: float, interval: float, key: str = "") -> dict[str, float]:
    queries, outcomes, times = requests(port, key), Counter[str](), list[float]()
    ends_at = time.monotonic() + seconds

    async def run(number: int) -> None:
        connection, sent = None, 0
        await asyncio.sleep(interval * number / clients)  # not all at once
        while (due := time.monotonic()) < ends_at:
            try:
                if connection is None or not connection.is_open:
                    connection = Connection(*await asyncio.open_connection("127.0.0.1", port))
                status, _ = await connection.exchange(queries[(number * 37 + sent) % len(queries)])
                outcomes["served" if status == 200 else "refused"] += 1
            except (OSError, EOFError):
                connection = None
                outcomes["failed"] += 1
            times.append(time.monotonic() - due)
            sent += 1
            await asyncio.sleep(max(due + interval - time.monotonic(), 0.0))

    await asyncio.gather(*map(run, range(clients)))
    times.sort()
    return {
        "sent": len(times),
        **{name: outcomes[name] for name in ("served", "refused", "failed")},
        **{name: times[int(share * (len(times) - 1))] for name, share in (("p50", 0.5), ("p99", 0.99), ("slowest", 1))},
    }


if __name__ == "__main__":
    port, clients, seconds, interval, *key = sys.argv[1:]
    found = asyncio.run(run_clients(int(port), int(clients), float(seconds), float(interval), *key))
    sys.stdout.write(json.dumps(found))
