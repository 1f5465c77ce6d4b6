"""A client of live events."""
import json
import socket
import threading

from stack import Problem, wait_until


class Listener:
    """A client: events as they come, by a thread; the id of the last, to come again with."""

    def __init__(self, stack, *definitions, ns='lab', last=None, admin=False, session=None, headers=None, have=()):
        self.stack, self.definitions = stack, definitions
        self.events, self.last, self.comments, self.retry = [], last, 0, None
        self.ends_of_nothing = 0  # blank lines behind comments alone
        headers = {**(headers or {}), **({'Last-Event-ID': last} if last else {})}
        path = f'/{ns}/live'
        if admin:
            body = {'defs': list(definitions), 'admin': stack.key, **({'have': list(have)} if have else {})}
            self.response = stack.http.post(stack.url + path, json=body, headers=headers, stream=True, timeout=120)
        else:
            params = [('def', one) for one in definitions] + [('have', one) for one in have] + ([('session', session)] if session else [])
            self.response = stack.http.get(stack.url + path, params=params, headers=headers,
                                           stream=True, timeout=120)
        if self.response.status_code != 200:
            raise Problem(self.response)
        assert self.response.headers['Content-Type'] == 'text/event-stream'
        self.is_open = True
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        name, data, id_, fields = None, None, self.last, 0
        try:
            for line in self.response.iter_lines(chunk_size=1, decode_unicode=True):
                field, _, value = line.partition(': ')
                fields += line[:1] not in ('', ':')
                if line.startswith(':'):
                    self.comments += 1
                elif field == 'id':
                    id_ = value
                elif field == 'event':
                    name = value
                elif field == 'data':
                    data = json.loads(value)
                elif field == 'retry':
                    self.retry = int(value)
                elif not line:  # what was cut off before its end counts for nothing, its id too
                    if name:
                        self.hear(name, data)
                    self.ends_of_nothing += not fields
                    name, self.last, fields = None, id_, 0
        except Exception:  # however the connection ends
            pass
        self.is_open = False

    def hear(self, name, data):
        self.events.append((name, data))

    def opened(self):
        wait_until(lambda: self.events, what='the first event')
        assert self.events[0][0] == 'ready'
        return self.events[0][1]['resumed']

    def told(self):
        """Highest version told of each definition."""
        told = {}
        for name, data in list(self.events):
            for definition, version in data['changed'] if name == 'change' else ():
                told[definition] = max(told.get(definition, 0), version)
        return told

    def wait_for(self, definition, version):
        wait_until(lambda: self.told().get(definition, -1) >= version, what=f'{definition} at {version}')

    def wait_for_id(self):
        """The next id, which comes when everything before is known to have been told."""
        before = self.last
        return wait_until(lambda: self.last != before and self.last, what='an id')

    def close(self):
        try:
            self.response.raw._fp.fp.raw._sock.shutdown(socket.SHUT_RDWR)
        except (AttributeError, OSError):
            pass  # it is closed
        self.thread.join(60)
        self.response.close()
