"""What a hostile client sends, as tables: each case is a request, byte for byte, and the answer that it must get.

Refused cases write to documents of the class Hostile, accepted ones to the class Kept: after all of them there is no
Hostile document.  TELLTALE stands in what is sent; no log may show it.  ADMIN stands for the administrator's key."""
import itertools
import json

LIMITS = {'limit_content_bytes': 4096, 'limit_depth': 10, 'limit_document_bytes': 16384, 'limit_documents': 5,
          'limit_name_bytes': 40, 'limit_operation_s': 5, 'limit_parts': 20, 'limit_syncs': 9}
BODY_BYTES = 16 << 20  # limit_body_bytes
TELLTALE = b'telltale-5b1d'
ADMIN = b'@' * 64
JSON, FORM = 'application/json', 'application/x-www-form-urlencoded'
# Of HTTP, where a refusal is not 400.
STATUS = {'AVERSION': 409, 'AKEYREUSED': 422, 'SKEY': 403, 'SCLOSED': 401, 'OOFF': 503}
TIMEOUT_S = 2  # of a head and of a body, in the configuration of nginx that the test makes


class Case:
    """`send` are bytes for a connection of its own, or a function that is given the entry and returns an answer.
    `status` may be several; 0: the connection is closed without an answer.  `code` of a refusal; '': none is told.
    `back`: id of a document, text of its item's key, kind and text of the content, which must come back; or a function
    that is given the answer's body."""

    def __init__(self, name, send, status, code='', back=None):
        self.name, self.send, self.code, self.back = name, send, code, back
        status = STATUS.get(code, 400) if status == 400 and isinstance(code, str) else status
        self.status = status if isinstance(status, tuple) else (status,)

    def __repr__(self):
        return self.name


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def request(method='POST', target='/lab/op/put', body=b'', type=JSON, headers=(), length=None, version='HTTP/1.1'):
    """The bytes of a request; `length` is announced in place of the true one.  A large body is a function, which is called when it is sent."""
    if callable(body):
        return lambda entry: entry.ask(request(method, target, body(), type, headers, length, version))
    body = as_bytes(body)
    head = [b'%s %s %s' % (as_bytes(method), as_bytes(target), as_bytes(version)), b'Host: localhost']
    if type and body:
        head.append(b'Content-Type: ' + as_bytes(type))
    if length is not None or body:
        head.append(b'Content-Length: ' + as_bytes(str(len(body) if length is None else length)))
    return b'\r\n'.join([*head, *map(as_bytes, headers), b'', body])


def put_text(content=b'1', class_=b'"Hostile"', id_=b'"x"', item=b'"Item"', key=None, kind=b'j', more=b'', doc=b''):
    """The body of a put, each part a JSON text; `more` are members of the whole, `doc` of the document."""
    key = b'' if key is None else b'"k":%s,' % as_bytes(key)
    return (b'{"admin":"%s","param":{"docs":[{"c":%s,"id":%s,%s"items":[{"c":"Mark","j":"%s"},{"c":%s,%s"%s":%s}]}]}%s}'
            % (ADMIN, as_bytes(class_), as_bytes(id_), as_bytes(doc), TELLTALE, as_bytes(item), key, kind,
               as_bytes(content), as_bytes(more)))


def refused(name, code, body=None, status=400, **more):
    """A request that is refused; a body alone is a put's."""
    return Case(name, request(body=b'' if body is None else body, **more), status, code)


numbers = itertools.count(1)


def kept(name, content, id_=None, kind=b'j', **more):
    """A put that is accepted, and whose content comes back as it was sent."""
    id_ = f'kept-{next(numbers)}' if id_ is None else id_
    text = as_bytes(quoted(id_))
    return Case(name, request(body=put_text(content, class_=b'"Kept"', id_=text, kind=kind, **more)), 200,
                back=(id_, more.get('key'), kind.decode(), as_bytes(content)))


def quoted(text):
    """Text as a JSON string."""
    return json.dumps(text, ensure_ascii=False)
