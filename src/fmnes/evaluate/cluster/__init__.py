"""Searches with 10^5 variables and more on many machines: only numbers of O(lambda) travel.

Each worker holds the whole state of the search. It builds its own candidates from the addresses
of their draws, sends back their values, is told the values of all others, and makes the same update
as everybody else. So a generation costs kilobytes on the network, whatever d is. The way of the
data:

    Evaluator -> evaluate._driver -> _crew: all workers as one slot
                                       _member: one worker, as the driver sees it
                                       _chronicle: what one who comes late has to be told
                                       _ray, _dask: actors of these engines
                                          _replica: the worker itself, at its own place
"""

from fmnes.evaluate.cluster._cluster import Cluster, Host

__all__ = ["Cluster", "Host"]
