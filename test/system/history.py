"""Clients at work while a test does harm; afterwards the checker of test/history must find everything in order."""
import random
import shutil
import sys
import tempfile
from pathlib import Path

from stack import ROOM, SOURCE, wait_until

sys.path.insert(0, str(SOURCE / 'test/history'))

from campaign import Campaign, check  # noqa: E402


class History:
    """One round of a small campaign over one or more stacks (instances) that serve the same namespace, with the operations
    that need no module.  `troubles`: what clients met beside answers, when it is over."""

    def __init__(self, *stacks, threads=8):
        self.folder = Path(tempfile.mkdtemp(prefix='stampd-history-', dir=ROOM))
        self.seed = random.randrange(10 ** 9)
        self.campaign = Campaign(stacks, self.folder, self.seed, processes=1, threads=threads, documents=6, has_module=False,
                                 prefix=f's{self.seed}x')
        self.troubles = {}

    def __enter__(self):
        self.campaign.__enter__()
        self.campaign.begin_round()
        return self

    def __exit__(self, kind, *rest):
        try:
            if kind is None:
                self.judge()
        finally:
            self.campaign.__exit__(kind, *rest)
        shutil.rmtree(self.folder, ignore_errors=True)

    def judge(self):
        wait_until(lambda: self.campaign.written.value > 5 and self.campaign.noted.value > 30, what='some reads and writes')
        path, self.troubles = self.campaign.end_round()
        is_wrong, words = check(path)
        assert not is_wrong, f'seed {self.seed}, kept: {path}\n{words}'

    def run(self, times=1, harm=None, operations=100):
        """Lets the clients work, so many operations each time after `harm`: they are counted, as seconds are more work for a faster machine."""
        for _ in range(times):
            if harm:
                harm()
            since = self.campaign.noted.value
            wait_until(lambda: self.campaign.noted.value >= since + operations, what='operations of the clients')
