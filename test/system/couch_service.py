"""A server of CouchDB's protocol on the loopback, as far as an import reads it; it fails, cuts and repeats as a test wants."""
import base64
import hashlib
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOGIN = 'reader:open sesame+/='


class Couch(ThreadingHTTPServer):
    """`troubles`: functions of the handler, each for one request; true: it has answered.  `page_most`: rows of a page, whatever is asked
    for.  `before`: called before each page, with its number.  `stubs`: "lists" have attachments without their bytes, or "all" answers."""
    daemon_threads = True

    def __init__(self, login=None):
        super().__init__(('127.0.0.1', 0), Handler)
        self.documents, self.changes, self.login, self.made = {}, [], login, '1700000000'
        self.requests, self.troubles, self.page_most, self.before, self.lock = [], [], 1 << 30, None, threading.Lock()
        self.stubs = None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server_port}/people'

    def put(self, id_, files=(), **members):
        """A new revision, and its place in the order of changes."""
        attachments = {}
        for name, content in dict(files).items():
            mime, content, *more = content if isinstance(content, tuple) else ('application/x', content)
            digest = 'md5-' + base64.b64encode(hashlib.md5(content).digest()).decode()
            attachments[name] = {'content_type': mime, 'revpos': 1, 'digest': digest, 'data': base64.b64encode(content).decode(), **(more[0] if more else {})}
        with self.lock:
            self.documents[id_] = {'_id': id_, '_rev': '1-a', **members, **({'_attachments': attachments} if attachments else {})}
            self.note(id_, False)

    def delete(self, id_):
        with self.lock:
            self.documents.pop(id_)
            self.note(id_, True)

    def note(self, id_, is_deleted):
        number = self.changes[-1][0] + 1 if self.changes else 1
        self.changes = [change for change in self.changes if change[1] != id_] + [(number, id_, is_deleted)]

    def document(self, id_, is_in_list):
        document = self.documents[id_]
        files = document.get('_attachments')
        if not files or self.stubs not in ('all', 'lists' if is_in_list else 'all'):
            return document
        files = {name: {'content_type': one['content_type'], 'revpos': 1, 'digest': one['digest'], 'length': 1, 'stub': True} for name, one in files.items()}
        return {**document, '_attachments': files}

    def sequence(self, number):
        """Opaque, with characters that a query must escape."""
        return f'{number}-g1AAAA+/ &='

    def stop(self):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def answer(self, status, value, **headers):
        body = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header('Content-Length', headers.pop('length', len(body)))
        for name, text in headers.items():
            self.send_header(name.replace('_', '-'), text)
        self.end_headers()
        self.wfile.write(body)
        return True

    def do_GET(self):
        couch = self.server
        couch.requests.append(self.path)
        if couch.troubles and couch.troubles.pop(0)(self):
            return
        path, _, query = self.path.partition('?')
        asked = dict(urllib.parse.parse_qsl(query, strict_parsing=True)) if query else {}
        if couch.login and self.headers['Authorization'] != 'Basic ' + base64.b64encode(couch.login.encode()).decode():
            self.answer(401, {'error': 'unauthorized', 'reason': 'Name or password is incorrect.'})
            return
        if couch.before and query:
            couch.before(len(couch.requests))
        with couch.lock:
            body = self.page(path, asked)
        self.answer(200 if body else 404, body or {'error': 'not_found', 'reason': 'Database does not exist.'})

    def page(self, path, asked):
        couch = self.server
        last = couch.changes[-1][0] if couch.changes else 0
        limit = min(int(asked.get('limit', 0)), couch.page_most)
        if path == '/people':
            return {'db_name': 'people', 'update_seq': couch.sequence(last), 'doc_count': len(couch.documents), 'instance_start_time': couch.made}
        if asked.get('attachments') != 'true':
            return None
        if path not in ('/people/_all_docs', '/people/_changes'):
            id_ = urllib.parse.unquote(path.removeprefix('/people/'), errors='strict')
            return couch.document(id_, False) if '/' not in path.removeprefix('/people/') and id_ in couch.documents else None
        if asked.get('include_docs') != 'true':
            return None
        if path == '/people/_all_docs':
            start = json.loads(asked.get('startkey', '""'))
            found = sorted(id_ for id_ in couch.documents if id_ >= start)[:limit]
            return {'total_rows': len(couch.documents), 'offset': 0,
                    'rows': [{'id': id_, 'key': id_, 'value': {'rev': '1-a'}, 'doc': couch.document(id_, True)} for id_ in found]}
        since = int(asked['since'].split('-')[0])
        assert asked['since'] == couch.sequence(since)
        found = [change for change in couch.changes if change[0] > since]
        rows = [{'seq': couch.sequence(number), 'id': id_, 'changes': [{'rev': '1-a'}], **({'deleted': True} if is_deleted else {}),
                 'doc': {'_id': id_, '_rev': '2-b', '_deleted': True} if is_deleted else couch.document(id_, True)} for number, id_, is_deleted in found[:limit]]
        return {'results': rows, 'last_seq': couch.sequence(found[:limit][-1][0] if rows else since), 'pending': len(found) - len(rows)}


# --- troubles ---

def busy(handler):
    return handler.answer(503, {'error': 'busy'}, Retry_After='0')


def cut(handler):
    """The connection ends inside the body."""
    handler.close_connection = True
    return handler.answer(200, b'{"rows":[{"id":"a"', length=4000)


def half(handler):
    """A whole answer of HTTP, and half an answer of CouchDB."""
    return handler.answer(200, b'{"total_rows":3,"rows":[\n{"id":"a","doc":{"n":"}]"}}')


def broken(handler):
    handler.close_connection = True
    return True


def away(handler):
    """Everything goes through."""
    return False
