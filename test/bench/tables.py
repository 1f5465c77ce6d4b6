"""Tables in Markdown, of what results.json holds."""

COLUMNS = ('figure', 'side', '1/s', 'p50 ms', 'p99 ms', 'p99.9 ms', 'CPU µs', 'own µs', 'MB', 'refused', 'ratio', 'of CPU', 'target')
HEAD = f'| {" | ".join(COLUMNS)} |\n| --- | --- |{" ---: |" * (len(COLUMNS) - 2)}'


def number(value):
    if value is None:
        return ''
    return f'{value:,.0f}' if value >= 100 else f'{value:.2f}'


def judged(target, met):
    return '' if target is None else f'{target} {"met" if met else "**missed**"}'


def ratio_words(ratio):
    return f'**{ratio["median"]:.2f}** ({ratio["low"]:.2f}-{ratio["high"]:.2f})'


def lines(row):
    """A line for each side of a figure."""
    if 'sides' not in row:
        yield row_of(row['figure'], '', *[''] * 8, row['value'], '', judged(row['target'], row['met']) if row['met'] is not None
                     else row['target'] or '')
        return
    figure = row['figure']
    for side in row['sides']:
        ratio = side.get('ratio')
        words = [figure, side['name'], *(number(side[name]) for name in ('rate', 'p50', 'p99', 'p999', 'cost', 'own')),
                 '' if side['memory'] is None else f'{side["memory"] / 2**20:.1f}',
                 '' if side['refused'] is None else f'{100 * side["refused"]:.1f} %']
        words += [ratio_words(ratio), number(ratio['cost']), judged(least(ratio), ratio['met'])] if ratio else [''] * 3
        yield row_of(*words)
        figure = ''


def least(ratio):
    return None if ratio['target'] is None else f'{ratio["target"]:.2f}'


def row_of(*words):
    return f'| {" | ".join(words)} |'


def table(rows):
    return '\n'.join([HEAD, *(line for row in rows for line in lines(row))])


def judgements(groups):
    """Of every figure with a target: (figure, what it is compared with, target, ratio, low, high, met), the last three
    None where it is told in words."""
    for group in groups.values():
        for row in group['rows']:
            if 'sides' not in row:
                if row['met'] is not None:
                    yield row['figure'], '', row['target'], row['value'], None, None, row['met']
                continue
            for side in row['sides']:
                ratio = side.get('ratio')
                if ratio and ratio['target'] is not None:
                    figure, other = (f'{row["figure"]} {side["name"]}', row['base']) if row['base'] else (row['figure'], side['name'])
                    yield figure, other, ratio['target'], ratio['median'], ratio['low'], ratio['high'], ratio['met']


def targets(groups):
    out = ['| figure | beside | target | is | |', '| --- | --- | ---: | ---: | --- |']
    for figure, other, target, median, low, high, met in judgements(groups):
        is_text = low is None
        out.append(row_of(figure, other, target if is_text else f'{target:.2f}',
                          median if is_text else f'**{median:.2f}** ({low:.2f}-{high:.2f})', 'met' if met else '**missed**'))
    return '\n'.join(out)


def disturbance(results):
    groups = results['groups'].values()
    rounds, disturbed, repeated = (sum(group[name] for group in groups) for name in ('rounds', 'disturbed', 'repeated'))
    return (f'{disturbed} of {rounds} rounds began while others used the machine, '
            f'{repeated} runs had to be repeated')


def kept_from_before(results):
    """Groups that were not run with the others, by the commit of theirs."""
    by_commit = {}
    for name, group in results['groups'].items():
        if group.get('commit', results['commit']) != results['commit']:
            by_commit.setdefault(group['commit'], []).append(name)
    return ''.join(f' Of {commit}, and not run again: {", ".join(names)}.' for commit, names in by_commit.items())


def origin(results):
    """What was run, where, when."""
    groups = list(results['groups'].values())
    shapes = sorted({(group['pairs'], group['seconds']) for group in groups})
    runs = ', '.join(f'{pairs} x {seconds} s' for pairs, seconds in shapes)
    return (f'Release {results["release"]} ({results["commit"]}), {results["date"]}; {results["processors"]} processors '
            f'({results["model"]}), {results["memory_gb"]} GB; {runs} for each side of a figure, '
            f'{sum(group["took_s"] for group in groups) / 60:.0f} minutes in all; {disturbance(results)}.{kept_from_before(results)}')
