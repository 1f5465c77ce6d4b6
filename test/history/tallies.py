"""Tasks: those of an acknowledged operation are done, as often as they count and no more; those of a refused one are not.

    "tasks": [[tally, key, times]…]            of an operation that asks for tasks
    "tallies": {tally: {key: counted}}         of the line that records, at the end of the round, what was counted
"""


def judge_tallies(operations):
    """(kind, words, operations) of each violation.  A history without the counts of its end says nothing of tasks."""
    operations = list(operations)
    ends = [operation for operation in operations if operation.tallies is not None]
    requested = {}
    for operation in operations:
        for tally, key, times in operation.tasks:
            requested[tally, key] = (operation, times)
    for end in ends:
        if end.left:
            yield 'tasks came to no end', f'{end.left} of them: {end.words}', [end]
        for tally, counts in end.tallies.items():
            for key, counted in counts.items():
                if (tally, key) not in requested:
                    yield 'a task that nobody requested', f'{key} was counted in {tally}', [end]
        for (tally, key), (operation, times) in requested.items():
            if tally in end.tallies:
                yield from judge_task(operation, key, times, end.tallies[tally].get(key, 0), end)


def judge_task(operation, key, times, counted, end):
    words = f'{key} was counted {counted} times, not {times}'
    if counted > times:
        yield 'a task was done twice', words, [operation, end]
    elif operation.result == 'no' and counted:
        yield 'a task of what was refused', words, [operation, end]
    elif operation.result == 'ok' and counted < times:
        yield 'a task was not done', words, [operation, end]
