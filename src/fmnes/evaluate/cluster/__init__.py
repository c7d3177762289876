"""Searches with 10^5 variables and more on many machines: only values cross the network.

Each worker holds the whole state of the search. It builds its own candidates from the addresses
of their draws, sends back their values, receives the values of all others, and makes the same
update as every other worker. So a generation costs kilobytes on the network, independent of d. The
way of the data:

    Evaluator -> Driver -> ReplicaGroup: all workers of the cluster           _group
                             RemoteReplica: one worker, as the driver sees it  _remote
                             UpdateLog: what a late worker has to catch up on  _log
                             DaskHost, RayHost: actors of these libraries      _dask, _ray
                               Replica: the worker itself, on its machine      _replica
"""

from fmnes.evaluate.cluster._cluster import Cluster, Host

__all__ = ["Cluster", "Host"]
