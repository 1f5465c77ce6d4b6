"""Refusals, what a client does after each, and how long it waits."""
from __future__ import annotations

import random
from typing import Any, Dict, List, Optional

from .remedies import OF_CLASS, OF_CODE

JSON = Dict[str, Any]  # an object


class Fault(Exception):
    """A request that failed: the server refused it, or (code NETWORK) gave no answer that can be used."""

    def __init__(self, code: str, message: str = '', *, status: int = 0, phase: Optional[int] = None, arguments: Optional[List[Any]] = None,
                 at: str = '', retry_after_s: float = 0.0, was_sent: bool = True) -> None:
        super().__init__(f'{code}: {message}' if message else code)
        self.code = code  # of doc/reference/faults.md, or NETWORK
        self.message = message
        self.status = status  # of HTTP; 0: there was no answer
        self.phase = phase  # how far the request came, 0 to 4; None: that is not known
        self.arguments: List[Any] = arguments or []  # names, limits and values that it is about
        self.at = at  # where in the arguments, a JSON pointer; empty: about none of them
        self.retry_after_s = retry_after_s  # the server asks to wait so long
        self.was_sent = was_sent  # false: nothing of the request has left this program

    @property
    def kind(self) -> str:
        """'again': send the same later.  'sign': other credentials are needed.  'over': this client cannot go on.  'final': the request would be
        refused again."""
        remedy = OF_CODE.get(self.code) or OF_CLASS.get(self.code[:1], 'final')
        if remedy == 'over':
            return 'over'
        if self.status == 401 or remedy == 'sign':
            return 'sign'
        return 'again' if self.code == 'NETWORK' or remedy in ('again', 'held') else 'final'

    @property
    def is_undone(self) -> bool:
        """Is it known that the request has changed nothing?"""
        if not self.was_sent or self.phase is not None and self.phase < 3:
            return True
        return self.code != 'NETWORK' and self.phase is None and self.code[:1] not in 'BCOX'

    @property
    def is_suspect(self) -> bool:
        """The request itself may be the cause: it is not to be repeated without end."""
        return self.code[:1] == 'B' or self.code in ('XCRASH', 'XINTERNAL')


def pause_of(failures: int, least_s: float, most_s: float, asked_s: float = 0.0) -> float:
    """Seconds to wait after so many failures in a row: at least what the server asks for, growing, and random so that clients do not return together."""
    longest = min(most_s, least_s * 2.0 ** min(failures, 16))
    return max(asked_s, longest / 2) + random.random() * longest / 2
