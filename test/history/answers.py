"""What a request came to, for a history."""
import json

from teams import read_stream

# What may be answered while others do harm: for certain nothing was done.
NOT_DONE = {'AREFUSED', 'OGONE', 'OOFF', 'OREADONLY', 'AUNIQUE', 'AVERSION', 'CONTENTION', 'XAWAY', 'XCRASH', 'XDATABASE', 'ODATABASE', 'OSTOPPING', 'OTWIN', 'XTIME', 'XBUSY', 'NDOCUMENT'}


class Answer:
    """What a request came to.  `result` as in a history."""

    def __init__(self, result, body=None, status=0, code='', words=''):
        self.result, self.body, self.status, self.code, self.words = result, body, status, code, words

    @property
    def trouble(self):
        """How it is counted: a refusal for lack of room with the limit that it names."""
        args = (self.body or {}).get('args') if self.code == 'XBUSY' else None
        return f'XBUSY {args[0]}' if args else self.code


def judge(status, headers, text):
    """An answer of stampd bears the number of its request; one of nginx alone says nothing of what stampd did."""
    if 'X-Request-Id' not in headers:
        return Answer('unknown' if status in (502, 503, 504) else 'wrong', status=status, code=f'NGINX{status}',
                      words=f'{status} {text[:200]!r}')
    if status == 304:
        return Answer('ok', status=status)
    if headers['Content-Type'] == 'application/x-ndjson':
        body = read_stream(text)
        return Answer('ok', body, status) if body else Answer('unknown', status=status, code='BROKEN')
    body = json.loads(text)
    if status in (200, 201):
        return Answer('ok', body, status)
    code, phase = body['code'], body.get('phase')
    if phase is None:
        return Answer('unknown', body, status, code)
    if phase >= 3:
        return Answer('ok', None, status, code)  # done; only what comes after it failed
    if code == 'XUNKNOWN':
        return Answer('unknown', body, status, code)
    return Answer('no' if code in NOT_DONE else 'wrong', body, status, code, words=f'{status} {body}')
