"""What a figure is, and the servers that it is measured on."""
import contextlib
from dataclasses import dataclass

from generators import Pairs
from servers import Server, make_anchor


@dataclass
class Row:
    """A ratio (`pairs`), or a text (`value`)."""
    figure: str
    anchor: str = ''
    target: object = None
    pairs: Pairs = None
    value: str = ''


@contextlib.contextmanager
def started(*anchors, **settings):
    """A server, and the anchors of these names."""
    with contextlib.ExitStack() as held:
        server = held.enter_context(Server(**settings))
        yield server, *(held.enter_context(make_anchor(server, name)) for name in anchors)
