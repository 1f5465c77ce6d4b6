"""HAProxy on the host of stampd: one port for whichever node of a cluster (patroni_cluster.py) is the primary, by Patroni's REST interface."""
import contextlib
import shutil
import socket
import subprocess

from network import Unavailable
from patroni_cluster import API_PORT, PORT
from replica import POSTGRES_USER
from stack import free_port, wait_until

# What becomes of the sessions of a node that is not the primary any more.
SESSIONS = {'ended': ' on-marked-down shutdown-sessions', 'kept': ''}

CONFIGURATION = """\
global
    maxconn 500
defaults
    mode tcp
    timeout connect 2s
    timeout client 1d
    timeout server 1d
    timeout check 1s
    option clitcpka
    option srvtcpka
listen primary
    bind 127.0.0.1:{port}
    option httpchk GET /primary
    http-check expect status 200
    default-server inter 1s fall 2 rise 1{sessions}
{servers}
"""


def check_haproxy():
    """Raises Unavailable, with the package that is missing."""
    if not shutil.which('haproxy'):
        raise Unavailable('the program haproxy is missing (Debian: apt-get install haproxy)')


class Proxy:
    """`with` ends it; `sessions`: a key of SESSIONS."""

    def __init__(self, cluster, sessions):
        self.cluster, self.port = cluster, free_port()
        self.file = cluster.room / 'haproxy.cfg'
        servers = '\n'.join(f'    server {node.name} {node.address}:{PORT} check port {API_PORT}' for node in cluster.nodes)
        self.file.write_text(CONFIGURATION.format(port=self.port, sessions=SESSIONS[sessions], servers=servers))
        self.child = None

    def __enter__(self):
        with open(self.cluster.room / 'log/haproxy.log', 'w') as log:
            self.child = subprocess.Popen(['setpriv', f'--reuid={POSTGRES_USER}', f'--regid={POSTGRES_USER}', '--init-groups', 'haproxy', '-db', '-f', str(self.file)],
                                          cwd='/', stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        wait_until(self.listens, what='HAProxy')
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()

    def listens(self):
        assert self.child.poll() is None, 'HAProxy has ended: look into log/haproxy.log'
        with contextlib.suppress(OSError), socket.create_connection(('127.0.0.1', self.port), timeout=1):
            return True
        return False

    @property
    def database(self):
        """What stands behind host= in a connection string."""
        return f'127.0.0.1 port={self.port} target_session_attrs=primary connect_timeout=3'
