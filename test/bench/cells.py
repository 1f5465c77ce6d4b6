#!/usr/bin/env python3
"""Cells on paper: namespaces of very different sizes grow; those of a cell that is full move to another one.

    test/bench/cells.py [--cells 1000] [--namespaces 20000] [--items 1e9] [--months 24] [--seed 1]

Prints what the routing table has, and what the moves cost, by the figures of a move that doc/explanation/growth.md names.
Needs nothing but Python; with nginx in PATH it has nginx read the table, too.
"""
import argparse
import heapq
import random
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

COPIED = 24000  # documents of four items a second, exported and imported
FROZEN_S, FROZEN_OF = 0.6, 400000  # nothing can be changed for so long, and for another second per so many documents
ITEMS = 4  # of a document
FULL, ROOM = 0.8, 0.6  # of a cell's capacity: where moves begin, and how full they leave it


def draw_sizes(random_, count, items):
    """A few are large: shares as of a power law, in documents."""
    shares = [random_.paretovariate(1.1) for _ in range(count)]
    whole = sum(shares)
    return [max(10, int(items / ITEMS * share / whole)) for share in shares]


class Cells:
    def __init__(self, count, capacity):
        self.capacity, self.used = capacity, [0] * count
        self.namespaces = [set() for _ in range(count)]
        self.where, self.size = {}, {}
        self.heap = [(0, cell) for cell in range(count)]

    def emptiest(self):
        while True:
            used, cell = self.heap[0]
            if used == self.used[cell]:
                return cell
            heapq.heapreplace(self.heap, (self.used[cell], cell))

    def note(self, cell, more):
        self.used[cell] += more
        heapq.heappush(self.heap, (self.used[cell], cell))

    def put(self, namespace, size, cell):
        self.where[namespace], self.size[namespace] = cell, size
        self.namespaces[cell].add(namespace)
        self.note(cell, size)

    def take(self, namespace):
        cell = self.where.pop(namespace)
        self.namespaces[cell].remove(namespace)
        self.note(cell, -self.size[namespace])
        return self.size[namespace]

    def grow(self, namespace, size):
        self.note(self.where[namespace], size - self.size[namespace])
        self.size[namespace] = size

    def relieve(self):
        """Moves of namespaces out of full cells: the largest that fits elsewhere first; yields their sizes."""
        for cell, used in enumerate(self.used):
            if used <= FULL * self.capacity:
                continue
            for namespace in sorted(self.namespaces[cell], key=self.size.get, reverse=True):
                target, size = self.emptiest(), self.size[namespace]
                if self.used[cell] <= ROOM * self.capacity:
                    break
                if self.used[target] + size > FULL * self.capacity or len(self.namespaces[cell]) == 1:
                    continue
                self.take(namespace)
                self.put(namespace, size, target)
                yield size


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0


def show_table(cells):
    """The text that nginx reads, and the processor time for it."""
    text = ''.join(f'n{namespace} stampd_n{namespace}@c{cell};\n' for namespace, cell in cells.where.items())
    print(f'routing table: {len(cells.where):,} namespaces, {len(text) / 1e6:.2f} MB')
    nginx = shutil.which('nginx') or shutil.which('nginx', path='/usr/sbin')
    if not nginx:
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / 'map').write_text(text)
        (Path(folder) / 'conf').write_text(
            f'pid {folder}/pid; events {{}} http {{ map_hash_max_size 262144; map_hash_bucket_size 128;'
            f' map $uri $cell {{ include {folder}/map; }} access_log off; }}')
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([nginx, '-t', '-q', '-p', folder, '-e', 'stderr', '-c', f'{folder}/conf'], capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f'nginx reads it in {spent:.2f} s of a processor' if done.returncode == 0 else done.stderr.strip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, standard in (('cells', 1000), ('namespaces', 20000), ('items', 1e9), ('months', 24), ('growth', 0.06), ('seed', 1)):
        parser.add_argument(f'--{name}', type=type(standard), default=standard)
    options = parser.parse_args()
    random_ = random.Random(options.seed)
    sizes = draw_sizes(random_, options.namespaces, options.items)
    whole = sum(sizes) * (1 + options.growth) ** options.months
    cells = Cells(options.cells, whole / options.cells / ROOM)
    for namespace in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        cells.put(namespace, sizes[namespace], cells.emptiest())
    print(f'{options.cells:,} cells of {cells.capacity:,.0f} documents, {sum(sizes) * ITEMS:,.0f} items at the beginning, {whole * ITEMS:,.0f} at the end')
    too_large = sum(size > cells.capacity for size in sizes)
    print(f'larger than a cell from the beginning: {too_large} namespaces')
    moved = []
    for _ in range(options.months):
        for namespace, size in list(cells.size.items()):
            cells.grow(namespace, int(size * random_.lognormvariate(options.growth, 2 * options.growth)) + 1)
        moved += cells.relieve()
    copying = [size / COPIED for size in moved]
    frozen = [FROZEN_S + size / FROZEN_OF for size in moved]
    print(f'moves: {len(moved):,} in {options.months} months, {len(moved) / options.months / options.cells:.3f} a cell and month, '
          f'{sum(moved) * ITEMS:,} items')
    print(f'copying: {sum(copying) / 3600:.1f} h in all, median {percentile(copying, 0.5):.1f} s, largest {max(copying, default=0):.0f} s')
    print(f'writes refused: median {percentile(frozen, 0.5):.1f} s, 99 % {percentile(frozen, 0.99):.1f} s, most {max(frozen, default=0):.1f} s')
    full = sum(used > FULL * cells.capacity for used in cells.used)
    print(f'at the end: {full} cells above {FULL:.0%}, of which {sum(len(cells.namespaces[cell]) == 1 for cell, used in enumerate(cells.used) if used > FULL * cells.capacity)} have one namespace')
    show_table(cells)


if __name__ == '__main__':
    main()
