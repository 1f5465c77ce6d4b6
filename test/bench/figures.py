"""What a figure is, as it is measured and as it is kept; and the servers that it is measured on."""
import contextlib
import statistics
from dataclasses import dataclass, field

from servers import Server, make_anchor

MEDIANS = ('rate', 'p50', 'p99', 'p999', 'cost', 'own', 'memory', 'refused')


@dataclass
class Row:
    """Runs of several sides in turn, the first is ours; or a `value` in words, with what it should be."""
    figure: str
    runs: dict = None                            # lists of Run by the name of the side
    targets: dict = field(default_factory=dict)  # the least ratio, by the name of the side
    base: str = None                             # the side that all others are compared with; None: we are, with each other
    value: str = None
    target: str = None
    met: bool = None

    def to_dict(self):
        if self.runs is None:
            return {'figure': self.figure, 'value': self.value, 'target': self.target, 'met': self.met}
        return {'figure': self.figure, 'base': self.base, 'sides': [self.side(name) for name in self.runs]}

    def side(self, name):
        """Medians of its runs, and the ratio of neighbours."""
        found = {'name': name}
        for measure in MEDIANS:
            values = [getattr(run, measure) for run in self.runs[name]]
            found[measure] = None if None in values else statistics.median(values)
        ours = next(iter(self.runs))
        above, below = (name, self.base) if self.base else (ours, name)
        if above != below:
            found['ratio'] = self.ratio(self.runs[above], self.runs[below], self.targets.get(name))
        return found

    @staticmethod
    def ratio(above, below, target):
        ratios = [one.rate / other.rate for one, other in zip(above, below)]
        costs = [other.cost / one.cost for one, other in zip(above, below) if one.cost and other.cost]
        median = statistics.median(ratios)
        return {'median': median, 'low': min(ratios), 'high': max(ratios), 'cost': statistics.median(costs) if costs else None,
                'target': target, 'met': None if target is None else median >= target}


def sized(options, usual, moment):
    """A size: another one when all is run for a moment only."""
    return moment if options.moment else usual


@contextlib.contextmanager
def started(*anchors, **settings):
    """A server, and the anchors of these names."""
    with contextlib.ExitStack() as held:
        server = held.enter_context(Server(**settings))
        yield server, *(held.enter_context(make_anchor(server, name)) for name in anchors)
