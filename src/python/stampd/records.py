"""Records: values by key in the memory of the host."""
from __future__ import annotations

import base64
import time
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, cast

from .client import AVAILABLE_S, Client
from .fault import JSON, pause_of

ONLY: Dict[str, JSON] = {'any': {'overwrite': True}, 'absent': {}, 'present': {'only': 'present'}}


class Record(NamedTuple):
    """The result of a command: what is there now, or what was in the way."""
    state: str  # OK, NOT_FOUND, NOT_FREE, OTHER_STAMP, LOCKED, … as doc/reference/records.md has them
    key: str
    value: Any  # None, a truth value, int, float, str or bytes; None also where the result has no value
    stamp: str  # for `if_stamp`
    type: str  # void, boolean, integer, float, string, buffer; empty: there is no record
    size: int  # bytes of the value
    expires_ms: Optional[int]  # since 1970; None: it has no end

    @property
    def is_done(self) -> bool:
        return self.state == 'OK'


def record_of(result: JSON) -> Record:
    value = result.get('value')
    if isinstance(value, dict):
        text = value['buffer']
        value = base64.urlsafe_b64decode(text + '=' * (-len(text) % 4))
    return Record(result.get('state', 'OK'), result.get('key', ''), value, result.get('stamp', ''), result.get('type', ''), result.get('size', 0), result.get('expires_ms'))


def json_of(value: Any) -> Any:
    return {'buffer': base64.urlsafe_b64encode(value).decode().rstrip('=')} if isinstance(value, (bytes, bytearray)) else value


class Records:
    """The records of a namespace, by the operation `record`.  A request that may have run is not repeated, unless it only reads: Fault
    NETWORK is raised.  `if_stamp` changes a record only if it still has this stamp; `more` are further members of the command."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def run(self, *commands: JSON) -> List[JSON]:
        """Runs commands, at most 100, in their order; returns their results.  Each is whole or has changed nothing."""
        only_reads = all(command['do'] == 'get' and not command.keys() & {'work_ms', 'ttl_ms'} for command in commands)
        return cast(List[JSON], self.client.operate('record', {'commands': list(commands)}, is_safe=only_reads)['out']['results'])

    def get(self, key: str, *, probe: bool = False, **more: Any) -> Optional[Record]:
        """The record; None: there is none.  With `probe` without its value, and without being a use of it."""
        record = self._one('get', key, {'probe': True} if probe else {}, more)
        return None if record.state == 'NOT_FOUND' else record

    def set(self, key: str, value: Any, *, only: str = 'any', if_stamp: Optional[str] = None, ttl_ms: Optional[int] = None, **more: Any) -> Record:
        """Stores a value; `only`: 'any' whatever is there, 'absent' where there is none (else NOT_FREE), 'present' where there is one (else NOT_FOUND).
        After `ttl_ms` milliseconds it is gone."""
        members = ONLY[only] if if_stamp is None else {'if': if_stamp}
        return self._one('set', key, {'value': json_of(value), **members, **({} if ttl_ms is None else {'ttl_ms': ttl_ms})}, more)

    def add(self, key: str, by: float = 1, *, ttl_ms: Optional[int] = None, **more: Any) -> Record:
        """Adds to a number, or makes it, with an end after `ttl_ms`; `value` is the sum."""
        return self._one('add', key, {'by': by, 'create': True, **({} if ttl_ms is None else {'ttl_ms': ttl_ms})}, more)

    def delete(self, key: str, *, if_stamp: Optional[str] = None, **more: Any) -> Record:
        return self._one('delete', key, {} if if_stamp is None else {'if': if_stamp}, more)

    def scan(self, prefix: str = '', **more: Any) -> Iterator[Record]:
        """All records whose key begins with `prefix`, in the order of their keys; each is of a moment of its own."""
        command = {'do': 'get', 'prefix': prefix, **more}
        while True:
            result = self._until_free(command)
            yield from map(record_of, result.get('records', ()))
            if 'after' not in result:
                return
            command['after'] = result['after']

    def _one(self, do: str, key: str, members: JSON, more: JSON) -> Record:
        return record_of(self._until_free({'do': do, 'key': key, **members, **more}))

    def _until_free(self, command: JSON) -> JSON:
        """Repeats what could not get at the records, for the patience of the client."""
        end, failures = time.monotonic() + self.client.patience_s, 0
        while True:
            (result,) = self.run(command)
            pause = pause_of(failures, *AVAILABLE_S)
            if result['state'] not in ('BUSY', 'NO_ROOM') or time.monotonic() + pause > end:
                return result
            failures += 1
            time.sleep(pause)
