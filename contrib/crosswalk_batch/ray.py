"""The same work on a Ray cluster: whole jobs, and Ray Data's datasets. Needs the extra ``ray``.

A worker that dies is no loss: Ray does its tasks again, and a task that is done twice gives the same part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import pyarrow as pa
import ray
from ray.exceptions import RayError, RayTaskError

from crosswalk.commands import UsageError
from crosswalk_batch.batches import Options, combined, normalize_batch
from crosswalk_batch.engines import GOES_ON, StoppedError, in_order

__all__ = ["Normalizer", "normalize_dataset", "tasks_on"]

T = TypeVar("T")
R = TypeVar("R")
_RETRIES: Final = 5


class Normalizer:
    """What ``Dataset.map_batches(…, batch_format="pyarrow")`` calls: records in, a row for each out.

    Args:
        options: how records are mapped; ``None`` for the defaults.
    """

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()

    def __call__(self, batch: pa.Table) -> pa.Table:
        """The outcome of each record, in order: see :func:`crosswalk_batch.combined`."""
        whole = batch.combine_chunks().to_batches()
        return pa.concat_tables(combined(normalize_batch(each, self._options)) for each in whole)


def normalize_dataset(dataset: Any, options: Options | None = None, **how: Any) -> Any:
    """*dataset*, with records as :func:`crosswalk_batch.normalize_batch` takes them, mapped.

    Args:
        dataset: a ``ray.data.Dataset``.
        options: how records are mapped; ``None`` for the defaults.
        how: further arguments of ``Dataset.map_batches``, such as ``batch_size`` and ``num_cpus``.
    """
    return dataset.map_batches(Normalizer(options), batch_format="pyarrow", **how)


@contextmanager
def tasks_on(address: str, perform: Callable[[T], R]) -> Iterator[Callable[[Iterable[T]], Iterator[R]]]:
    """What performs tasks on the cluster at *address*, in order; ``local`` begins one on this machine.

    Raises:
        UsageError: there is no cluster. StoppedError: while it is used: a task's workers died again and again. Whatever
            the task itself raises.
    """
    try:
        ray.init(address=address, ignore_reinit_error=True, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise UsageError(f"--ray {address}: {_line(error)}") from None
    remote = ray.remote(max_retries=_RETRIES)(perform)
    resources: Callable[[], dict[str, float]] = ray.cluster_resources
    most = 2 * int(resources().get("CPU", 1))

    def submit(task: T) -> Callable[[], R]:
        reference = remote.remote(task)
        return lambda: _taken(reference)

    try:
        yield lambda tasks: in_order(tasks, submit, most)
    finally:
        ray.shutdown()


def _taken(reference: Any) -> Any:
    try:
        return ray.get(reference)
    except RayTaskError as error:
        raise error.cause from None  # its own message is the traceback of another machine
    except RayError as error:
        raise StoppedError(f"Ray: {_line(error)}; {GOES_ON}") from None


def _line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
