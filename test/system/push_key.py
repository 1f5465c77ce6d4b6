"""The key with which a server of tests signs messages to push services, in a folder of its own."""
import re
import shutil
import tempfile
from pathlib import Path

from stack import ROOM, stampctl

CONTACT = 'mailto:ops@example.net'


class PushKey:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix='stampd-push-key-', dir=ROOM))
        self.folder.chmod(0o711)
        self.file = self.folder / 'push.key'
        assert stampctl('push', 'key', self.file).out == f'push_key_file = {self.file}\n'

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    @property
    def settings(self):
        return {'push_key_file': self.file, 'push_contact': CONTACT, 'debug_push_local': 'on'}

    def enable(self, stack, service, ns='lab'):
        """The server may read the key, the service knows its public half, and commits in the namespace wake sessions."""
        for user in re.findall(r'^user = (.+)$', stack.config.read_text(), re.M):
            shutil.chown(self.file, user)
        service.key = stampctl('push', 'public', self.file).out.strip()
        stack.admin('ns', 'push', ns, 'on')
