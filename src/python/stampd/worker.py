"""Workers: they take tasks of a queue, do them, and end each together with its changes of documents."""
from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence, cast

from .client import Client
from .fault import JSON, Fault, pause_of

LOG = logging.getLogger('stampd')
PAUSES_S = 0.5, 30.0  # the shortest and the longest one after a failure
REPORT_BYTES, PROGRESS_BYTES = 2000, 500


@dataclass
class Done:
    """What `work` returns: the result for whoever requested the task, and the documents, as of `put`, that change in the commit of its end."""
    result: Any = None
    docs: Sequence[JSON] = ()


class Failure(Exception):
    """What `work` raises if it cannot do the task: it comes again, after `delay_s` or by the delays of its queue, or is parked if `is_final`."""

    def __init__(self, report: str, *, code: str = 'FAILED', delay_s: Optional[int] = None, is_final: bool = False) -> None:
        super().__init__(report)
        self.code, self.delay_s, self.is_final = code, delay_s, is_final


class Task:
    """A claimed task.  `is_lost` becomes true when the claim has ended: another worker may have it, and nothing that this one does counts."""

    def __init__(self, row: JSON) -> None:
        self.row = row  # as `take` returns it
        self.id: str = row['id']
        self.op: str = row['op']
        self.param: Any = row.get('param')
        self.claim = {name: row[name] for name in ('id', 'starttime', 'retry')}
        self.progress = ''  # what administrators see, with the next extension of the claim
        self.over = threading.Event()
        self.is_lost = False


class Worker:
    """Takes the tasks of one queue, one at a time, and calls `work` for each, which returns a Done, and raises Failure or anything else if it cannot do it.
    Start several for several at the same time; they may share a client, whose token is the key of the queue.

    claim_s  a claim lasts so long, and is extended three times as often while `work` runs
    wait_s   how long a request for a task waits for one: as long `stop` may take to be noticed
    """

    def __init__(self, client: Client, queue: int, work: Callable[[Task], Done], *, claim_s: int = 60, wait_s: int = 20, name: str = '') -> None:
        self.client, self.work, self.claim_s, self.wait_s = client, work, claim_s, wait_s
        self._wanted = {'qn': queue, 'claim': claim_s, 'worker': name or f'{socket.gethostname()}-{os.getpid()}'[:64]}
        self._stopping = threading.Event()

    def stop(self) -> None:
        """`run` returns when the present task has ended; any thread, and the handler of a signal, may call it."""
        self._stopping.set()

    def stop_at_signals(self) -> None:
        """SIGTERM and SIGINT stop it; called by the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())

    def run(self) -> None:
        """Works until `stop`.  What the server refuses for good is raised: a wrong key, a queue that is not declared."""
        failures = 0
        answer: JSON = {}
        while answer.get('tasks') or not self._stopping.is_set():
            try:
                if not answer.get('tasks'):
                    answer = self._call('take', {**self._wanted, 'wait': self.wait_s})
                tasks, answer = answer['tasks'], {'pause': answer.get('pause', 0)}
                for row in tasks:
                    answer = self._do(Task(row))
                failures = 0
            except Fault as fault:
                if fault.kind != 'again':
                    raise
                LOG.warning('no task: %s', fault)
                answer = {'pause': 1000 * pause_of(failures, *PAUSES_S, fault.retry_after_s)}
                failures += 1
            if not answer.get('tasks'):
                self._stopping.wait(answer.get('pause', 0) / 1000)

    def _call(self, operation: str, param: JSON, patience_s: Optional[float] = None, timeout_s: Optional[float] = None) -> JSON:
        return cast(JSON, self.client.operate(operation, param, patience_s=patience_s, timeout_s=timeout_s)['out'])

    def _do(self, task: Task) -> JSON:
        """Works on it and ends it; returns the answer, which may have the next task."""
        if self._stopping.is_set():
            return self._end(task, 'fail', {'release': True})
        threading.Thread(target=self._keep, args=(task,), daemon=True).start()
        try:
            done = self.work(task)
            return self._end(task, 'done', {'result': done.result, 'docs': list(done.docs)})
        except Failure as failure:
            return self._end(task, 'fail', {'code': failure.code, 'report': cut(str(failure), REPORT_BYTES), **({'final': True} if failure.is_final else {}),
                                            **({} if failure.delay_s is None else {'delay': failure.delay_s})})
        except Exception as problem:
            LOG.exception('task %s', task.id)
            return self._end(task, 'fail', {'report': cut(f'{type(problem).__name__}: {problem}', REPORT_BYTES)})
        finally:
            task.over.set()

    def _end(self, task: Task, operation: str, members: JSON) -> JSON:
        """Sent again, as it may be, while its outcome is unknown and the claim may last."""
        take = {} if self._stopping.is_set() else {'take': self._wanted}
        try:
            return self._call(operation, {**task.claim, **members, **take}, patience_s=self.claim_s)
        except Fault as fault:
            LOG.warning('the end of task %s: %s', task.id, fault)
            if operation == 'done' and fault.kind != 'again' and fault.code != 'ACLAIM':  # the documents are refused
                return self._end(task, 'fail', {'report': cut(str(fault), REPORT_BYTES)})
            return {}  # the claim has ended, or ends by itself: the task comes again

    def _keep(self, task: Task) -> None:
        while not task.over.wait(self.claim_s / 3):
            progress = {'progress': cut(task.progress, PROGRESS_BYTES)} if task.progress else {}
            try:
                self._call('keep', {**task.claim, 'claim': self.claim_s, **progress}, patience_s=0, timeout_s=self.claim_s / 3)
            except Fault as fault:
                task.is_lost = fault.code == 'ACLAIM'
                if task.is_lost:
                    return


def cut(text: str, most: int) -> str:
    """The beginning of the text that has at most so many bytes."""
    return text.encode('utf-8', 'replace')[:most].decode('utf-8', 'ignore')
