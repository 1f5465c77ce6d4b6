"""Stamps, keys that carry their time, and whose a token is: pure functions."""
from __future__ import annotations

import base64
import json
import random
import re
import uuid
from datetime import datetime, timezone
from typing import Optional

_RANDOM = random.SystemRandom()


def stamp_of(seconds: float) -> int:
    """The stamp of a time in seconds since 1970: yymmddhhmmssmmm, UTC."""
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return int(moment.strftime('%y%m%d%H%M%S') + f'{moment.microsecond // 1000:03}')


def time_of(stamp: int) -> float:
    """The time of a stamp, in seconds since 1970.  ValueError: it is none."""
    text = f'{int(stamp):015}'
    return datetime.strptime(f'20{text}000', '%Y%m%d%H%M%S%f').replace(tzinfo=timezone.utc).timestamp()


def key_of(seconds: float) -> str:
    """A new UUID of version 7 (RFC 9562), which carries this time."""
    return str(uuid.UUID(int=int(seconds * 1000) << 80 | 7 << 76 | _RANDOM.getrandbits(12) << 64 | 2 << 62 | _RANDOM.getrandbits(62)))


def account_of(token: Optional[str]) -> str:
    """The account of a token: of a session or service key its id, of a provider's token issuer and subject; empty: it does not tell."""
    own = re.match(r's[tk]_([^.]+)\.', token or '')
    if own:
        return own[1]
    try:
        part = (token or '').split('.')[1]
        claims = json.loads(base64.urlsafe_b64decode(part + '=' * (-len(part) % 4)))
        return f"{claims['iss']} {claims['sub']}" if claims['iss'] and claims['sub'] else ''
    except (IndexError, ValueError, KeyError, TypeError):
        return ''
