"""The rounds of a program that lets campaigns and a saboteur loose: each history is judged while the next round is under way; the sums."""
import gzip
import random
import shutil
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import stack
from campaign import check, count


def add_options(parser, seconds):
    """Those that all of these programs have."""
    parser.add_argument('--seconds', type=float, default=seconds, metavar='N', help=f'how long ({seconds})')
    parser.add_argument('--hours', type=float, metavar='H', help='how long, for the long mode')
    parser.add_argument('--round', type=float, default=60, metavar='N', help='seconds of a round (60)')
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randrange(10 ** 9), metavar='N', help='what dice begin with')
    parser.add_argument('--processes', type=int, default=3, metavar='N', help='of clients (3)')
    parser.add_argument('--threads', type=int, default=5, metavar='N', help='clients in each (5)')
    parser.add_argument('--documents', type=int, default=10, metavar='N', help='hot documents (10)')
    parser.add_argument('--workers', type=int, default=4, metavar='N', help='of each instance (4)')
    parser.add_argument('--calm', action='store_true', help='no harm is done')
    parser.add_argument('--kept', metavar='FOLDER', help='where histories with violations go (var/history of the sources)')
    parser.add_argument('--keep', action='store_true', help='keep every history')
    parser.add_argument('--hosts', choices=('one', 'many', 'pair'), default='one',
                        help='many: each instance has a segment of its own; pair: one of them serves, the other takes over (one)')


def read_options(parser):
    options = parser.parse_args()
    options.total = options.hours * 3600 if options.hours is not None else options.seconds
    options.kept = Path(options.kept or stack.SOURCE / 'var/history')
    return options


class Rounds:
    def __init__(self, options):
        self.options, self.begun = options, time.monotonic()
        self.operations = self.writes = self.violated = self.rounds = self.messages = 0
        self.kept, self.troubles, self.kinds, self.listened = [], {}, Counter(), Counter()

    def say(self, words):
        print(f'{time.monotonic() - self.begun:8.0f} s  {words}', flush=True)

    def judge(self, paths, troubles):
        """The histories of one round, of all namespaces.  In a thread of its own, while the next round is under way."""
        since, operations, writes = time.monotonic(), 0, 0
        for path in paths:
            kinds, acknowledged = count(path)
            operations, writes = operations + sum(kinds.values()), writes + acknowledged
            self.kinds.update(kinds)
        is_wrong, words = check(*paths)
        self.operations += operations
        self.writes += writes
        self.violated += is_wrong
        self.troubles = Counter(self.troubles) + sum(map(Counter, troubles), Counter())
        if is_wrong or self.options.keep:
            self.kept.append(' '.join(map(str, map(self.keep, paths))))
        if is_wrong:
            print(words, flush=True)
        for path in paths:
            path.unlink()
        self.rounds += 1
        self.say(f'round {paths[0].stem}: {operations:,} operations, {writes:,} writes acknowledged; '
                 f'{"VIOLATED" if is_wrong else "no violation"}, judged in {time.monotonic() - since:.0f} s')

    def keep(self, path):
        self.options.kept.mkdir(parents=True, exist_ok=True)
        kept = self.options.kept / f'{self.options.seed}-{path.parent.name}-{path.stem}.jsonl.gz'
        with open(path, 'rb') as source, gzip.open(kept, 'wb') as target:
            shutil.copyfileobj(source, target)
        return kept

    def rounds_of(self, campaigns, saboteur):
        end = time.monotonic() + self.options.total
        with ThreadPoolExecutor(1) as judges:
            verdict = None
            while time.monotonic() < end - 1 and not saboteur.is_done():
                for campaign in campaigns:
                    campaign.begin_round()
                saboteur.run(min(self.options.round, end - time.monotonic()))
                for campaign in campaigns:
                    campaign.pause.set()
                saboteur.heal()
                paths, troubles = zip(*[campaign.end_round() for campaign in campaigns], strict=True)
                if verdict:
                    verdict.result()
                verdict = judges.submit(self.judge, paths, troubles)
                if self.violated >= 5:
                    break
            verdict.result()
        for campaign in campaigns:
            for listener in campaign.listeners:
                self.listened.update(listener.counts)
            self.messages += sum(len(browser.arrived) for browser, _, _ in campaign.sleepers.browsers)

    def tell(self, saboteur):
        harms = ', '.join(f'{name} {number:,}' for name, number in sorted(saboteur.done.items()))
        self.say(f'harm done: {sum(saboteur.done.values()):,} ({harms})')
        self.say('met by clients: ' + ', '.join(f'{code} {number:,}' for code, number in sorted(self.troubles.items())))
        self.say('kinds: ' + ', '.join(f'{kind} {number:,}' for kind, number in sorted(self.kinds.items())))
        self.say(f'push messages {self.messages:,}; live: ' + ', '.join(f'{what} {number:,}' for what, number in self.listened.items()))
        self.say(f'{self.operations:,} operations, {self.writes:,} writes acknowledged, {self.rounds} rounds, '
                 f'{self.violated} with violations; seed {self.options.seed}')
        for path in self.kept:
            print(f'test/history/check {path}')
