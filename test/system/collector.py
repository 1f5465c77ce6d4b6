"""A collector of OpenTelemetry for tests: takes spans and metrics by OTLP over HTTP, as JSON."""
import http.server
import json
import threading

from stack import PATIENCE_S


def attributes(holder):
    """Of a span, a resource or a point of a metric."""
    return {one['key']: one['value'].get('stringValue', one['value'].get('intValue')) for one in holder['attributes']}


class Collector:
    """Takes what is sent to it; `status` is its answer, and while `gate` is closed it has none."""

    def __init__(self, port):
        self.bodies, self.status, self.gate, self.port = [], 200, threading.Event(), port
        self.gate.set()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                collector.bodies.append((self.path, self.headers['Content-Type'], body.decode()))
                collector.gate.wait(PATIENCE_S)
                self.send_response(collector.status)
                self.send_header('Content-Length', '2')
                self.end_headers()
                self.wfile.write(b'{}')

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', port), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()

    def messages(self, path):
        """All that have come, each of which was sent to this path."""
        assert all(found[:2] == (path, 'application/json') for found in list(self.bodies))
        return [json.loads(body) for *_, body in list(self.bodies)]
