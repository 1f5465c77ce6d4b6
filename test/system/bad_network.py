"""The package stampd of src/python, and a network for its clients that loses requests and answers."""
import sys

from stack import SOURCE

PACKAGE = SOURCE / 'src/python'
sys.path.insert(0, str(PACKAGE))
from stampd import Client  # noqa: E402, F401
from stampd.connection import Connections, lost  # noqa: E402


class BadNetwork(Connections):
    """`harm()` names what goes wrong: the request is not sent, its answer is lost or cut, or it is sent twice.  `sent` are the keys and bodies."""

    def exchange(self, path, body, headers, timeout_s):
        harm = self.harm()
        if harm == 'before':
            raise lost('harm', was_sent=False)
        self.sent.append((headers.get('Idempotency-Key'), body))
        if harm == 'twice':
            super().exchange(path, body, headers, timeout_s)
        answer = super().exchange(path, body, headers, timeout_s)
        if harm == 'after':
            raise lost('harm')
        return answer._replace(body=answer.body[:len(answer.body) // 2]) if harm == 'cut' else answer


def spoiled(client, harm):
    """The client, in such a network from now on."""
    client.connections.__class__, client.connections.harm, client.connections.sent = BadNetwork, harm, []
    return client
