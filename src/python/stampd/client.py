"""Requests to one namespace: operations that are repeated where that is safe, changes that nobody else's are lost by."""
from __future__ import annotations

import gzip
import json
import ssl
import threading
import time
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Type, Union, cast

from .connection import Answer, Connections, lost
from .copies import Copy
from .fault import JSON, Fault, pause_of
from .stamp import key_of, time_of

Token = Union[str, Callable[[bool], Optional[str]], None]
Edit = Callable[[List[JSON]], Optional[Iterable[JSON]]]

DOCUMENTS_MOST = 200  # of one synchronisation
PACKED_LEAST, PACKED_MOST = 1024, 65536  # bytes of a body that is sent with gzip: the server accepts it, whatever is in it
SUSPECT_MOST = 2  # repetitions after a fault that the request itself may have caused
AVAILABLE_S = 0.05, 5.0  # the shortest and the longest pause before a repetition, but for what the server asks for

# Twice is as once: what reads, and the ends of tasks.
REPEATABLE = frozenset({'get', 'sync', 'list', 'find', 'search', 'collection', 'whois', 'keep', 'done', 'fail'})
KEYED = frozenset({'put', 'task'})  # and the operations of applications, which begin with a capital letter


class Client:
    """A client of the namespace `url`, https://host:port/code, for any number of threads.

    token         what is sent as `Authorization: Bearer`: the administrator's key, the token of a session, a service key, the key of a queue or a
                  token of a provider.  A function is called with False for it, and with True when it was refused, which may give another one
    context       whom to trust (ssl.create_default_context); absent: the authorities of the system
    timeout_s     for one answer
    patience_s    how long a request is repeated, when that is safe and may help
    answer_bytes  the most of one answer, unpacked
    packs         compress bodies, and accept compressed answers

    Every method raises Fault, and ssl.SSLCertVerificationError if the server is not to be trusted.
    """

    def __init__(self, url: str, token: Token = None, *, context: Optional[ssl.SSLContext] = None, timeout_s: float = 90.0,
                 patience_s: float = 30.0, answer_bytes: int = 64 << 20, packs: bool = True) -> None:
        self.connections = Connections(url, context, answer_bytes)
        self.timeout_s, self.patience_s, self.packs = timeout_s, patience_s, packs
        self.ahead_s = 0.0  # the server's clock is so far ahead of ours, as far as known
        self._token, self._bearer = token, None if callable(token) else token
        self._lock = threading.Lock()

    def close(self) -> None:
        """Closes the connections that no request uses."""
        self.connections.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    # --- one request ---

    def bearer(self, refused: Optional[str] = None) -> Optional[str]:
        """The token to send now; in place of one that was refused perhaps another one."""
        with self._lock:
            if callable(self._token) and (self._bearer is None or self._bearer == refused):
                self._bearer = self._token(self._bearer is not None)
            return self._bearer

    def headers(self, bearer: Optional[str]) -> Dict[str, str]:
        return {'Content-Type': 'application/json', **({'Authorization': f'Bearer {bearer}'} if bearer else {})}

    def _exchange(self, path: str, body: bytes, more: Dict[str, str], timeout_s: float) -> Answer:
        """An answer with status 200; a token that is refused is asked for once more."""
        bearer = self.bearer()
        answer = self.connections.exchange(path, body, {**self.headers(bearer), **more}, timeout_s)
        if answer.status != 200 and fault_of(answer).code == 'SKEY' and self.bearer(bearer) != bearer:
            answer = self.connections.exchange(path, body, {**self.headers(self.bearer()), **more}, timeout_s)
        if answer.status != 200:
            raise fault_of(answer)
        return answer

    def _ask(self, operation: str, body: bytes, key: Optional[str], timeout_s: float) -> JSON:
        more = {'Accept-Encoding': 'gzip' if self.packs else 'identity'}
        if key:
            more['Idempotency-Key'] = key
        if self.packs and PACKED_LEAST <= len(body) <= PACKED_MOST:
            body, more['Content-Encoding'] = gzip.compress(body, 1), 'gzip'
        answer = self._exchange(f'/op/{operation}', body, more, timeout_s)
        try:
            found = json.loads(answer.body)
        except ValueError:
            raise lost('it is not JSON') from None
        if not isinstance(found, dict) or not found.keys() <= {'out', 'syncs', 'subs'}:
            raise lost('it is not of the operation')
        return found

    # --- operations ---

    def operate(self, operation: str, param: Optional[JSON] = None, *, syncs: Sequence[JSON] = (), key: Optional[str] = None,
                more: Optional[JSON] = None, is_safe: bool = False, patience_s: Optional[float] = None, timeout_s: Optional[float] = None) -> JSON:
        """Runs an operation and returns its answer, {"out", "syncs", "subs"}.  `more` are further arguments of the request: dhop, session, lang.

        It is repeated after refusals that end by themselves, for `patience_s` at most, if it is known that nothing was done, or if it may be done
        twice: what reads, what has an Idempotency-Key, and what you call with `is_safe`.  `put`, `task` and operations of applications get one if there is none; under a key
        the server does a request once, also when its answer is lost.  Of others an unknown outcome is raised (a Fault that is not `is_undone`).
        """
        is_ours = key is None and (operation in KEYED or operation[:1].isupper())
        body = json.dumps({**({} if param is None else {'param': param}), **({'syncs': list(syncs)} if syncs else {}), **(more or {})}).encode()
        patience_s = self.patience_s if patience_s is None else patience_s
        end, failures, is_fresh = time.monotonic() + patience_s, 0, is_ours
        if is_ours:
            key = key_of(self.now())
        while True:
            try:
                return self._ask(operation, body, key, timeout_s or self.timeout_s)
            except Fault as fault:
                if is_fresh and fault.code in ('AKEYAHEAD', 'AKEYOLD'):  # our clock is wrong, and nothing was done
                    self._set_clock(fault)
                    key, is_fresh = key_of(self.now()), False
                    continue
                is_fresh, failures = False, failures + 1
                pause = pause_of(failures - 1, *AVAILABLE_S, fault.retry_after_s)
                if fault.kind != 'again' or not (fault.is_undone or key or is_safe or operation in REPEATABLE):
                    raise
                if time.monotonic() + pause > end or fault.is_suspect and failures > SUSPECT_MOST:
                    raise
                time.sleep(pause)

    def _set_clock(self, fault: Fault) -> None:
        try:
            self.ahead_s = time_of(int(fault.arguments[-1])) - time.time()
        except (IndexError, ValueError, TypeError):
            raise fault from None

    def now(self) -> float:
        """The server's time, in seconds since 1970, as far as known."""
        return time.time() + self.ahead_s

    def get(self, *names: Tuple[str, str]) -> List[JSON]:
        """The documents of these (class, id), of one instant, in this order; `v` is 0 where there is none."""
        return cast(List[JSON], self.operate('get', {'docs': [{'c': c, 'id': id} for c, id in names]})['out']['docs'])

    def put(self, *docs: JSON, key: Optional[str] = None) -> JSON:
        """Changes documents in one commit, {"c", "id", "if", "items", "delete"}; returns {"v", "docs": [{"c", "id", "v"}…]}.
        Fault AVERSION: a document is not at its `if`."""
        return cast(JSON, self.operate('put', {'docs': list(docs)}, key=key)['out'])

    def update(self, names: Sequence[Tuple[str, str]], edit: Edit, *, patience_s: Optional[float] = None) -> Optional[JSON]:
        """Changes documents by what they contain: reads those of these (class, id), gives them to `edit` as `get` returns them, and puts the
        documents that it returns; returns the answer of `put`, or None if `edit` returned none.

        Each is written only if it is as it was read.  If others were faster, all is read and edited again, for `patience_s` at most; then Fault
        AVERSION is raised.  So `edit` has no other effects.  What it only reads is not verified."""
        end = time.monotonic() + (self.patience_s if patience_s is None else patience_s)
        failures = 0
        while True:
            read = self.get(*names)
            versions = {(document['c'], document['id']): document['v'] for document in read}
            docs = [{'if': versions[document['c'], document['id']], **document} if (document['c'], document['id']) in versions else document
                    for document in edit(read) or ()]
            if not docs:
                return None
            try:
                return self.put(*docs)
            except Fault as fault:
                pause = pause_of(failures, *AVAILABLE_S)
                if fault.code != 'AVERSION' or time.monotonic() + pause > end:
                    raise
                failures += 1
                time.sleep(pause)

    def list(self, c: str, **more: Any) -> Iterator[JSON]:
        """The headers of all documents of a class, {"c", "id", "v", "ct", "dt"}, in the order of their ids; `more` as `list` accepts it."""
        return self._pages('list', {'c': c, **more}, 'docs')

    def find(self, c: str, i: str, *where: JSON, **more: Any) -> Iterator[Any]:
        """All ids, items or documents (`want`) of class `c` that have an item of class `i` for which all conditions hold."""
        want = more.get('want', 'ids')
        return self._pages('find', {'c': c, 'i': i, 'where': list(where), **more}, want if want in ('ids', 'docs') else 'items')

    def _pages(self, operation: str, param: JSON, member: str) -> Iterator[Any]:
        while param:
            out = self.operate(operation, param)['out']
            yield from out[member]
            param = {**param, 'cursor': out['cursor']} if 'cursor' in out else {}

    def whois(self, name: Optional[str] = None, *, address: Optional[str] = None) -> Optional[str]:
        """The id of the account with this name, or this confirmed address; None: nobody is found.  Counts as an attempt to log in."""
        return cast(Optional[str], self.operate('whois', {'name': name} if address is None else {'address': address})['out']['account'])

    def invite(self, c: str, id: str, content: Optional[JSON] = None, **more: Any) -> str:
        """An invitation by which accounts `join` the members of a document, with this content; `more`: days, uses, label, name_as."""
        return cast(str, self.operate('membership', {'invite': {'c': c, 'id': id, 'content': content or {}, **more}})['out']['invitation'])

    def join(self, invitation: str) -> JSON:
        """Makes this account a member; returns {"c", "id", "joined"}: of which document, and false if it was one before."""
        return cast(JSON, self.operate('membership', {'join': invitation})['out'])

    def sync(self, *copies: Copy) -> List[Copy]:
        """Brings copies up to date; returns those that have changed."""
        waiting, changed = list(copies), []
        while waiting:
            sent, waiting = waiting[:DOCUMENTS_MOST], waiting[DOCUMENTS_MOST:]
            headers = [copy.header() for copy in sent]
            answers = self.operate('sync', syncs=headers).get('syncs', ())
            if len(answers) != len(sent):
                raise lost('it lacks synchronisations')
            later = [copy for copy, answer in zip(sent, answers) if not copy.apply(answer)]
            if len(later) == len(sent):
                raise lost('it has room for no document')
            changed += [copy for copy, header in zip(sent, headers) if copy.header() != header]
            waiting = later + waiting
        return changed


def fault_of(answer: Answer) -> Fault:
    """The Fault of an answer with another status than 200."""
    try:
        problem = json.loads(answer.body)
        after = float(answer.headers.get('Retry-After') or 0)
        return Fault(problem['code'], problem.get('message', ''), status=answer.status, phase=problem.get('phase'), arguments=list(problem.get('args', ())),
                     at=problem.get('at', ''), retry_after_s=after)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Fault('NETWORK', f'status {answer.status}, not of the server')
