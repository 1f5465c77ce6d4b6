"""A Chromium that a test drives through a pipe (the DevTools protocol), and a web server for its pages."""
import base64
import contextlib
import fcntl
import functools
import http.server
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from stack import PATIENCE_S, ROOM, process_state, wait_until

# The one without a window, which has the same engine and costs half as much; STAMPD_TEST_BROWSER names another program.
PROGRAM = shutil.which(os.environ.get('STAMPD_TEST_BROWSER', 'chromium-headless-shell')) or shutil.which('chromium')
FLAGS = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--ignore-certificate-errors',
         '--disable-background-timer-throttling', '--disable-renderer-backgrounding', '--disable-backgrounding-occluded-windows',
         '--disable-background-networking', '--disable-component-update', '--disable-sync', '--remote-debugging-pipe']


class Pages(http.server.ThreadingHTTPServer):
    """Serves a folder at an address of this host, which browsers take for secure."""

    def __init__(self, folder):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass
        super().__init__(('127.0.0.1', 0), functools.partial(Handler, directory=str(folder)))
        self.origin = f'http://127.0.0.1:{self.server_address[1]}'
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.shutdown()
        self.server_close()


def elsewhere(descriptor):
    """The same file under another number than 3 and 4, which it is to become."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


def group_lives(group):
    """Has one of the processes of this group not ended?  A zombie has closed its files when none of its other threads is left."""
    states = (process_state(path.name) for path in Path('/proc').iterdir() if path.name.isdigit())
    return any(state and int(state[2]) == group and (state[0] not in 'ZX' or int(state[17]) > 1) for state in states)


STARTS = 5


class BrowserError(Exception):
    """What the page has thrown, or the browser refused."""


class Browser:
    """One process with one profile; `kill` and `start` keep the profile."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix='stampd-browser-', dir=ROOM)
        self.numbers = itertools.count(1)
        self.events = None
        self.start()

    def start(self):
        """Chromium does not always start, above all after it was killed, on a busy machine."""
        for left in reversed(range(STARTS)):
            for name in ('SingletonLock', 'SingletonCookie', 'SingletonSocket'):  # of the process that was killed
                (Path(self.profile) / name).unlink(missing_ok=True)
            self.begin()
            try:
                self.call('Browser.getVersion')
                return
            except (BrowserError, OSError):
                if not left:
                    raise
                self.kill()

    def begin(self):
        own_read, its_write = os.pipe()
        its_read, own_write = os.pipe()
        its_read, its_write = elsewhere(its_read), elsewhere(its_write)
        self.process = subprocess.Popen(
            ['bash', '-c', f'exec "$@" 3<&{its_read} 4>&{its_write}', 'bash', PROGRAM, *FLAGS, f'--user-data-dir={self.profile}', 'about:blank'],
            pass_fds=(its_read, its_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(its_read)
        os.close(its_write)
        self.writer = os.fdopen(own_write, 'wb')
        self.answers, self.come, self.is_over = {}, threading.Condition(), False
        self.reading = threading.Thread(target=self.read, args=(os.fdopen(own_read, 'rb'),), daemon=True)
        self.reading.start()

    def read(self, reader):
        """Answers by their number; events are kept when `events` is a list, otherwise not looked at."""
        rest = b''
        with reader, contextlib.suppress(OSError, ValueError):
            while piece := reader.read1(1 << 16):
                *messages, rest = (rest + piece).split(b'\0')
                with self.come:
                    for message in map(json.loads, messages):
                        if 'id' in message:
                            self.answers[message['id']] = message
                        elif self.events is not None:
                            self.events.append(message)
                    self.come.notify_all()
        with self.come:
            self.is_over = True
            self.come.notify_all()

    def call(self, method, session=None, **parameters):
        number = next(self.numbers)
        message = {'id': number, 'method': method, 'params': parameters, **({'sessionId': session} if session else {})}
        with self.come:
            self.writer.write(json.dumps(message).encode() + b'\0')
            self.writer.flush()
            assert self.come.wait_for(lambda: number in self.answers or self.is_over, PATIENCE_S), method
            answer = self.answers.pop(number, {'error': 'the browser has ended'})
        if 'error' in answer:
            raise BrowserError(f'{method}: {answer["error"]}')
        return answer['result']

    def open(self, address, **more):
        return Tab(self, address, **more)

    def kill(self):
        """All processes at once, as when the machine is switched off: when this returns, none of them has a file of the profile any more."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        wait_until(lambda: not group_lives(self.process.pid), what='the end of the browser')
        self.process.wait()
        self.reading.join()  # else it could tell the next process, which has the same fields, that it is over
        with contextlib.suppress(OSError):  # what is still to be written
            self.writer.close()

    def close(self):
        self.kill()
        shutil.rmtree(self.profile, ignore_errors=True)


class Tab:
    def __init__(self, browser, address, **more):
        self.browser = browser
        self.target = browser.call('Target.createTarget', url='about:blank')['targetId']
        self.session = browser.call('Target.attachToTarget', targetId=self.target, flatten=True)['sessionId']
        self.call('Page.enable')
        self.call('Network.enable')
        self.go(address, **more)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def go(self, address, is_ready='window.isReady === true'):
        self.call('Page.navigate', url=address)
        self.until(f'document.readyState === "complete" && Boolean({is_ready})')

    def run(self, script):
        """The value of an expression, which may be a promise."""
        answer = self.call('Runtime.evaluate', expression=script, awaitPromise=True, returnByValue=True)
        if 'exceptionDetails' in answer:
            details = answer['exceptionDetails']
            raise BrowserError(details.get('exception', {}).get('description') or details['text'])
        return answer['result'].get('value')

    def until(self, script):
        """Waits until the expression is true in the page, which may just be loading; returns it."""
        def look():
            with contextlib.suppress(BrowserError):
                return self.run(script)
            return None
        return wait_until(look, what=script)

    def look(self, width, height, scheme='light', is_mobile=False):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=is_mobile)
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': scheme}])

    def picture(self, path):
        """What is on the screen, as a PNG."""
        self.run('document.fonts.ready.then(() => true)')
        path.write_bytes(base64.b64decode(self.call('Page.captureScreenshot', format='png')['data']))

    def network(self, is_on):
        self.call('Network.emulateNetworkConditions', offline=not is_on, latency=0, downloadThroughput=-1, uploadThroughput=-1)

    def close(self):
        """Without a word to the page."""
        self.browser.call('Target.closeTarget', targetId=self.target)
