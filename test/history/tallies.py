"""Tasks: who was told that tasks were made has each of them done, as often as it counts and no more; who was refused has none.

    "tasks": [[tally, key, times]…]            of an operation that asks for tasks
    "tallies": {tally: {key: counted}}         of the line that tells, at the end of the round, what was counted
"""


def judge_tallies(operations):
    """(kind, words, operations) of each violation.  A history without the counts of its end says nothing of tasks."""
    operations = list(operations)
    told = [operation for operation in operations if operation.tallies is not None]
    asked = {}
    for operation in operations:
        for tally, key, times in operation.tasks:
            asked[tally, key] = (operation, times)
    for end in told:
        if end.left:
            yield 'tasks came to no end', f'{end.left} of them: {end.words}', [end]
        for tally, counts in end.tallies.items():
            for key, counted in counts.items():
                if (tally, key) not in asked:
                    yield 'a task that nobody asked for', f'{key} was counted in {tally}', [end]
        for (tally, key), (operation, times) in asked.items():
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
