"""The driver's ends of the pipes to its worker processes, which never make the driver wait."""

import contextlib
import os
import select
import struct
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

_BUFFER = 2**20  # bytes that a pipe should hold; the system may allow fewer


class WorkerPipe:
    """The driver's end of a pipe.

    A worker that is starting, computing or stopped does not read. What does not fit into the pipe
    then stays in a queue, and `ready` sends it when there is room.

    `socket` is imported inside a function: it would make `import fmnes` slower.
    """

    def __init__(self, connection: Any) -> None:
        import socket

        self.connection = connection
        self._unsent: deque[memoryview] = deque()
        self._socket: socket.socket | None = None
        if hasattr(socket, "MSG_DONTWAIT"):  # Windows has none, and waits
            self._socket = socket.socket(fileno=os.dup(connection.fileno()))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
            self._flags = socket.MSG_DONTWAIT

    @property
    def is_sending(self) -> bool:
        """Whether something waits for room in the pipe."""
        return bool(self._unsent)

    def send(self, data: bytes) -> None:
        """Send bytes, for `Connection.recv`."""
        if self._socket is None:
            with contextlib.suppress(OSError):  # the process died: reading will show it
                self.connection.send_bytes(data)
            return
        # The format of `Connection.send_bytes`, which would wait.
        size, most = len(data), 2**31 - 1
        header = struct.pack("!i", size) if size <= most else struct.pack("!iQ", -1, size)
        self._unsent.extend((memoryview(header), memoryview(data)))
        self.flush()

    def flush(self) -> None:
        """Send as much as the pipe takes now."""
        if self._socket is None:
            return
        try:
            while self._unsent:
                sent = self._socket.send(self._unsent[0], self._flags)
                self._unsent[0] = self._unsent[0][sent:]
                if not self._unsent[0]:
                    self._unsent.popleft()
        except BlockingIOError:
            pass
        except OSError:  # the process died: reading will show it
            self._unsent.clear()

    def close(self) -> None:
        """Close the pipe; the worker reads its end."""
        self._unsent.clear()
        if self._socket is not None:
            self._socket.close()
        self.connection.close()


def ready(pipes: Sequence[WorkerPipe], sentinels: Sequence[int], seconds: float) -> set[int]:
    """Wait until a pipe can be read or a sentinel shows a death; send what is queued meanwhile.

    Returns the descriptors of these pipes and sentinels.
    """
    if not hasattr(select, "poll"):  # Windows
        from multiprocessing.connection import wait

        found = wait([*(pipe.connection for pipe in pipes), *sentinels], seconds)
        return {end if isinstance(end, int) else end.fileno() for end in found}
    end, poll = time.monotonic() + seconds, select.poll()  # much quicker than `wait`
    for sentinel in sentinels:
        poll.register(sentinel, select.POLLIN)
    senders = {pipe.connection.fileno(): pipe for pipe in pipes if pipe.is_sending}
    for pipe in pipes:
        poll.register(pipe.connection, select.POLLIN)
    while True:
        for descriptor, sender in senders.items():
            wanted = select.POLLIN | (select.POLLOUT if sender.is_sending else 0)
            poll.register(descriptor, wanted)
        events = poll.poll(1000 * max(0.0, end - time.monotonic()))
        for descriptor, event in events:
            if event & select.POLLOUT:
                senders[descriptor].flush()
        seen = {descriptor for descriptor, event in events if event & ~select.POLLOUT}
        if seen or time.monotonic() >= end:
            return seen
