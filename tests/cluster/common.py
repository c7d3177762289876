"""A cluster within this process, whose workers can be lost, altered and held up; and objectives."""

import itertools
import math
import os
import pickle
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from fmnes.evaluate.cluster._replica import Replica

DYING = threading.local()  # `.now`: an objective ends the worker whose thread this is


class Actor:
    def __init__(self, make):
        self.thread = ThreadPoolExecutor(1)
        self.replica = self.thread.submit(make).result()  # one deafens its main thread to Ctrl-C
        self.is_lost = False
        self.calls = []  # names of methods


class LocalHost:
    """Actors as threads. What they are told and answer goes through pickle, as anywhere."""

    def __init__(self, room=2, make=Replica):
        self.room, self.make = room, make
        self.actors = []
        self.sent = self.received = 0  # bytes
        self.before = lambda actor, method: None  # called before each call is made
        self.gate = threading.Event()  # closed: the actors from `room` on have to wait
        self.gate.set()
        self.ended = 0

    def count(self):
        return self.room

    def start(self):
        self.actors.append(Actor(self.make))
        return self.actors[-1]

    def call(self, actor, method, *args):
        data = pickle.dumps(args, protocol=pickle.HIGHEST_PROTOCOL)
        self.sent += len(data)
        actor.calls.append(method)
        future = Future()
        self.before(actor, method)
        late = self.actors.index(actor) >= self.room
        actor.thread.submit(self._answer, actor, method, data, late, future)
        return future

    def _answer(self, actor, method, data, late, future):
        if late:
            self.gate.wait(30)
        if actor.is_lost:
            future.set_exception(ConnectionError("the machine was taken away"))
            return
        DYING.now = False
        answer = pickle.dumps(getattr(actor.replica, method)(*pickle.loads(data)))
        if DYING.now:
            actor.is_lost = True
            future.set_exception(ConnectionError("the worker has died"))
            return
        self.received += len(answer)
        future.set_result(pickle.loads(answer))

    def end(self, actor, *, busy):
        self.ended += 1
        actor.is_lost = True
        actor.thread.shutdown(wait=False)

    def calls(self, method):
        return sum(actor.calls.count(method) for actor in self.actors)


def digest(result):
    """Everything in a Result but its seconds, to the bit."""
    history = result.history.to_array()
    names = [name for name in history.dtype.names if not name.startswith("seconds")]
    figures = (result.fun, result.sigma, result.nfev, result.nit, result.status, result.nfailed)
    vectors = (result.x, result.mean, result.shape.D, result.shape.v)
    return (
        repr(figures),
        *(np.asarray(vector).tobytes() for vector in vectors if vector is not None),
        *(np.ascontiguousarray(history[name]).tobytes() for name in names),
    )


def ellipsoid(x):
    return float(np.sum(np.logspace(0, 3, len(x)) * x * x))


def often_fails(x):
    if x[0] > 1.0:
        raise ValueError("the mesh is tangled")
    return math.nan if x[1] > 1.5 else ellipsoid(x)


class Unloadable:
    def __call__(self, x):
        return ellipsoid(x)

    def __reduce__(self):
        return int, ("not a number",)


class LoadsForEver:
    def __call__(self, x):
        return ellipsoid(x)

    def __reduce__(self):
        return _load_for_ever, ()


def _load_for_ever():
    OVER.wait(30)
    return LoadsForEver()


def dies(x, where):
    """For one candidate, every time; without a worker it has no value."""
    if x[0] == where and threading.current_thread() is not threading.main_thread():
        DYING.now = True
    return math.nan if x[0] == where else ellipsoid(x)


def hangs(x, where):
    if x[0] == where and threading.current_thread() is not threading.main_thread():
        OVER.wait(30)
    return math.nan if x[0] == where else ellipsoid(x)


OVER = threading.Event()
_calls = itertools.count()


def unhurried(x):
    """An ellipsoid that takes so long that every worker gets a part of each generation."""
    time.sleep(5e-4)
    return ellipsoid(x)


def interrupts(x):
    """Ctrl-C at the fortieth call, and no value from then on."""
    call = next(_calls)
    if call == 40:
        os.kill(os.getpid(), signal.SIGINT)  # to the main thread, which waits
    if call >= 40:
        OVER.wait(30)
    return ellipsoid(x)


class Counting:
    """Another host, with the bytes that cross it."""

    def __init__(self, host):
        self.count, self.start, self.end, self._call = host.count, host.start, host.end, host.call
        self.bytes = 0

    def call(self, actor, method, *args):
        self.bytes += len(pickle.dumps((method, args)))
        future = self._call(actor, method, *args)
        future.add_done_callback(self._count_answer)
        return future

    def _count_answer(self, future):
        if not future.cancelled() and future.exception() is None:
            self.bytes += len(pickle.dumps(future.result()))
