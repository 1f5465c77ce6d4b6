"""How violations are named and reported."""
from collections import Counter

from state import unpack


class Violation:
    def __init__(self, kind, words, operations=(), edges=()):
        self.kind, self.words = kind, words
        self.operations, self.edges = list(operations), list(edges)


def difference(expected, seen):
    """What two states differ in, in few words."""
    if not expected or not seen:
        return f': expected {expected or "nothing"}, seen {seen or "nothing"}'
    (birth, items), (seen_birth, seen_items) = unpack(expected), unpack(seen)
    words = [f': born {seen_birth}, not {birth}'] if birth != seen_birth else []
    for name in sorted(items.keys() | seen_items.keys()):
        if items.get(name) != seen_items.get(name):
            words.append(f'\n      {name}: {describe(seen_items.get(name))}, not {describe(items.get(name))}')
    return ''.join(words)


def describe(item):
    return f'{item[1]} of {item[0]}' if item else 'absent'


def name_cycle(edges):
    kinds = Counter(kind for _, kind, _ in edges)
    if kinds['rt'] or kinds['po']:
        if kinds['rw'] == 1 and len(edges) == 2:
            return 'stale read'
        return 'version went back' if kinds['ww'] and len(edges) == 2 else 'against the order of time'
    if kinds['rw'] == 1 and len(edges) == 2 and kinds['ww'] == 1 and edges[0][2] == edges[1][2]:
        return 'lost update'
    if not kinds['rw']:
        return 'G1c: cycle of what was written and read' if kinds['wr'] else 'G0: cycle of what was written'
    return 'G-single: read of two instants' if kinds['rw'] == 1 else 'G2: write skew'


def show(violation, zero):
    """Lines for people; times are seconds since `zero`."""
    lines = [f'VIOLATION: {violation.kind}' + (f': {violation.words}' if violation.words else '')]
    if violation.edges:
        for operation, kind, document in violation.edges:
            lines.append(show_operation(operation, zero))
            lines.append(f'      -{kind}-> {document or ""}'.rstrip())
        lines.append(f'    back to {violation.operations[0].name}')
    else:
        lines += [show_operation(operation, zero) for operation in violation.operations[:20]]
    return '\n'.join(lines)


def show_operation(operation, zero):
    end = 'for ever' if operation.end is None else f'{(operation.end - zero) / 1e9:.6f}'
    words = f'    {operation.name} {operation.kind} {(operation.start - zero) / 1e9:.6f} to {end}'
    if operation.version:
        words += f' at {operation.version}'
    if operation.result != 'ok':
        words += f' ({operation.result})'
    if operation.reads:
        words += ' reads ' + ' '.join(f'{document}@{version}' for document, version, _ in operation.reads)
    if operation.writes:
        words += ' writes ' + ' '.join(f'{document}:{"+".join(action[0] for action in actions)}'
                                       for document, actions in operation.writes.items())
    return words
