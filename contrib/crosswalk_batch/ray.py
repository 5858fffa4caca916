"""Jobs and datasets on a Ray cluster. Needs the extra ``ray``.

If a worker dies, Ray repeats its tasks, and a repeated task gives the same part.
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
from crosswalk_batch.job import GOES_ON, JobStoppedError, in_order

T = TypeVar("T")
R = TypeVar("R")
_RETRIES: Final = 5


class Normalizer:
    """A function for ``Dataset.map_batches(…, batch_format="pyarrow")``: a row of output for each record.

    Args:
        options: how records are mapped, or ``None`` for the defaults.
    """

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Return the outcome of each record, in order. See :func:`crosswalk_batch.combined`."""
        whole = batch.combine_chunks().to_batches()
        return pa.concat_tables(combined(normalize_batch(each, self._options)) for each in whole)


def normalize_dataset(dataset: Any, options: Options | None = None, **how: Any) -> Any:
    """Map the records of *dataset*, in the form of :func:`crosswalk_batch.normalize_batch`.

    Args:
        dataset: a ``ray.data.Dataset``.
        options: how records are mapped, or ``None`` for the defaults.
        how: further arguments of ``Dataset.map_batches``, such as ``batch_size`` and ``num_cpus``.
    """
    return dataset.map_batches(Normalizer(options), batch_format="pyarrow", **how)


@contextmanager
def tasks_on(address: str, perform: Callable[[T], R]) -> Iterator[Callable[[Iterable[T]], Iterator[R]]]:
    """Return a function that performs tasks on the cluster at *address*, in order. ``local`` starts one on this machine.

    Raises:
        UsageError: there is no cluster.
        StoppedError: the workers of a task died repeatedly. Errors of the task itself are raised unchanged.
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
        raise error.cause from None  # the message of RayTaskError is a remote traceback
    except RayError as error:
        raise JobStoppedError(f"Ray: {_line(error)}; {GOES_ON}") from None


def _line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
