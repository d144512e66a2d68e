"""Slow clients, a process of their own: every socket sends a byte of its headers each second.

    python -m tests.campaigns.faults.slow_client PORT SOCKETS SECONDS

A socket that the service closes is opened again. Prints {"opened", "closed", "most"}: sockets opened, closed by the
service, and the most that were open at once.
"""

import asyncio
import contextlib
import json
import sys
from collections import Counter

HEAD = b"POST /v1/sites/SoV/score HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
OPENED_EACH_SECOND = 500


async def run_slow(port: int, sockets: int, seconds: float) -> dict[str, int]:
    counts, loop = Counter[str](), asyncio.get_running_loop()
    ends_at = loop.time() + seconds

    async def run(number: int) -> None:
        await asyncio.sleep(number / OPENED_EACH_SECOND)
        while loop.time() < ends_at:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                counts["opened"] += 1
                counts["open"] += 1
                counts["most"] = max(counts["most"], counts["open"])
                writer.write(HEAD)
                with contextlib.suppress(OSError):
                    while loop.time() < ends_at and not reader.at_eof():
                        await asyncio.sleep(1)
                        writer.write(b"x")
                counts["open"] -= 1
                counts["closed"] += loop.time() < ends_at
                writer.close()

    await asyncio.gather(*map(run, range(sockets)))
    return {name: counts[name] for name in ("opened", "closed", "most")}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(run_slow(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))))
