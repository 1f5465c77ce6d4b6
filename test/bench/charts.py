"""Charts of what results.json holds, drawn by gnuplot as SVG."""
import re
import subprocess

from tables import judgements

WIDTH = 980
LABELS = 66  # characters of the longest label beside an axis
MET, MISSED, OURS, OTHERS, TARGET = '#3a7d44', '#b3402a', '#1f5aa6', '#8a8f98', '#111111'
LINES = ('#1f5aa6', '#b3402a', '#3a7d44', '#c98a1b', '#6b4fa0', '#2a9d9d', '#8a8f98')
QUANTILES = (('p50', 'p50', 7), ('p99', 'p99', 5), ('p999', 'p99.9', 9))


class ChartError(Exception):
    """gnuplot's own words."""


def draw(path, height, script):
    begin = (f"set terminal svg size {WIDTH},{height} noenhanced font 'sans-serif,13' background '#ffffff'\n"
             f"set output '{path}'\nset border 3 lc rgb '#555555'\nset tics nomirror\nset grid lc rgb '#dddddd'\n")
    done = subprocess.run(['gnuplot'], input=begin + script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode or done.stdout.strip():
        raise ChartError(done.stdout.strip())


def block(name, rows):
    return f'${name} << END\n' + ''.join(' '.join(str(word) for word in row) + '\n' for row in rows) + 'END\n'


def quoted(text):
    return '"' + re.sub(r'["`$\\]', '', text) + '"'


def short(figure):
    figure = re.sub(r' \([^)]*\)|, 2 of its 5 items changed, durable|, the same of each| in one operation'
                    r'|: more namespaces .*|: commits of one document by| with [0-9,]+ items', '', figure)
    figure = re.sub(r'^(find of [0-9]+) ids of ([0-9,]+) documents(.*), 8 clients$', r'\1 of \2\3', figure)
    figure = figure.replace(', in a namespace of ', ', ').replace(', spread over ', ', ')
    return figure.replace(' chosen at random of all', ' of all').replace(' through a cache of 1 MB, 8 clients', ', hardly cached')


def beside(figure, anchor):
    return f'{short(figure)} / {anchor.replace(", the same statement", "")}'


def labels(texts):
    """Of an axis, from its top."""
    return 'set ytics (' + ', '.join(f'{quoted(text[:LABELS])} {i}' for i, text in enumerate(texts)) + ') scale 0\n'


def headline(text):
    return f"set label '{text}' at screen 0.5, graph 1 center offset 0,1.2\n"


def rows_of(results, *groups):
    return [row for group in groups for row in results['groups'].get(group, {'rows': []})['rows'] if 'sides' in row]


def ratios(results, path):
    """Ratios beside their targets."""
    found = [(figure, other, *numbers) for figure, other, *numbers in judgements(results['groups']) if numbers[2] is not None]
    if not found:
        return False
    rows = [(i, median, low, high, target, '0x' + (MET if met else MISSED)[1:])
            for i, (_, _, target, median, low, high, met) in enumerate(found)]
    edge = max(1.3, *(min(row[3], 2.5) for row in rows))
    names = labels(beside(figure, other) for figure, other, *_ in found)
    draw(path, 90 + 26 * len(rows), block('data', rows) + names + headline('ratios: median; lowest to highest; black: target') + f'''
set lmargin 60
set tmargin 3
set yrange [{len(rows) - 0.4}:-0.6]
set xrange [0:{edge:.2f}]
set style fill solid 0.85 noborder
unset key
plot $data using 2:1:(0):2:($1-0.32):($1+0.32):6 with boxxyerror lc rgb variable, \\
     $data using 3:1:($4-$3):(0) with vectors nohead lw 1.5 lc rgb '#333333', \\
     $data using 5:($1-0.42):(0):(0.84) with vectors nohead lw 3 lc rgb '{TARGET}'
''')
    return True


def latencies(results, path):
    """p50, p99 and p99.9 of stampd and of the anchor that has a target, or the first."""
    rows, names = [], []
    for row in rows_of(results, 'read', 'resource', 'read32', 'sync', 'delta', 'miss', 'find', 'commit'):
        ours, *others = row['sides']
        anchor = next((side for side in others if side['ratio']['target'] is not None), others[0])
        names.append(beside(row['figure'], anchor['name']))
        rows.append((len(rows), *(side[name] for side in (ours, anchor) for name, _, _ in QUANTILES)))
    if not rows:
        return False
    plots = []
    for first, shift, colour, whose in ((2, '-0.16', OURS, 'stampd'), (5, '+0.16', OTHERS, 'anchor')):
        plots.append(f"$data using {first}:($1{shift}):(${first + 2}-${first}):(0) with vectors nohead lc rgb '{colour}' notitle")
        plots += [f"$data using {first + i}:($1{shift}) with points pt {shape} ps 0.6 lc rgb '{colour}' title '{whose} {label}'"
                  for i, (_, label, shape) in enumerate(QUANTILES)]
    draw(path, 150 + 32 * len(rows), block('data', rows) + labels(names) + headline('latency, ms') + f'''
set lmargin 60
set tmargin 3
set bmargin 6
set yrange [{len(rows) - 0.4}:-0.6]
set logscale x
set key at screen 0.5, screen 0 center bottom horizontal maxrows 2 width 2
plot {', '.join(plots)}
''')
    return True


def size_of(name):
    power = re.match(r'10\^(\d+)', name)
    return 10 ** int(power.group(1)) if power else int(re.match(r'\d+', name).group())


def growth(results, path):
    """Speed beside the smallest, over the number of documents and over the number of namespaces."""
    panels = [('documents', 'documents in the namespace'), ('namespaces', 'namespaces')]
    panels = [(rows_of(results, group), label) for group, label in panels if rows_of(results, group)]
    if not panels:
        return False
    script = f'set multiplot layout {len(panels)},1\nset logscale x\nset yrange [0:*]\nset key at graph 1.05, graph 1 left top Left reverse\nset rmargin 60\n'
    for number, (rows, label) in enumerate(panels):
        plots = []
        for i, row in enumerate(rows):
            data = [(size_of(side['name']), side.get('ratio', {}).get('median', 1)) for side in row['sides']]
            script += block(f'p{number}r{i}', data)
            title = re.sub(r', (in a namespace of|spread over)$', '', short(row['figure']))
            plots.append(f"$p{number}r{i} using 1:2 with linespoints pt 7 ps 0.6 lw 2 lc rgb '{LINES[i % len(LINES)]}' title {quoted(title[:LABELS])}")
        places = ', '.join(f'"{size:,}" {size}' for size in sorted({size_of(side['name']) for row in rows for side in row['sides']}))
        script += f"set title 'speed beside the smallest, over {label}'\nset xtics ({places})\nplot {', '.join(plots)}\n"
    draw(path, 280 * len(panels), script + 'unset multiplot\n')
    return True


def contention(results, path):
    """Commits of one document by many clients: speed, p50 and p99, refused."""
    rows = rows_of(results, 'contend')
    if not rows:
        return False
    sides = rows[0]['sides']
    data = [(i, side['rate'], side['p50'], side['p99'], 100 * side['refused'], size_of(side['name'])) for i, side in enumerate(sides)]
    labels = ', '.join(f'"{row[5]}" {row[0]}' for row in data)
    draw(path, 400, block('data', data) + f'''
set title 'all clients change one document'
set xlabel 'clients'
set bmargin 6
set ylabel 'commits/s'
set y2label 'ms'
set ytics nomirror
set y2tics
set border 11 lc rgb '#555555'
set logscale y2
set yrange [0:*]
set xrange [-0.6:{len(data) - 0.4}]
set xtics ({labels})
set style fill solid 0.85 noborder
set key at screen 0.5, screen 0.01 center bottom horizontal
plot $data using 1:2:(0.6) with boxes lc rgb '{OURS}' title 'commits/s', \\
     $data using 1:2:(sprintf('%.1f %% refused', $5)) with labels offset 0,0.6 font ',11' notitle, \\
     $data using 1:3 axes x1y2 with linespoints pt 7 lc rgb '{LINES[3]}' title 'p50 (ms, right)', \\
     $data using 1:4 axes x1y2 with linespoints pt 5 lc rgb '{MISSED}' title 'p99 (ms, right)'
''')
    return True


CHARTS = {
    'ratios': (ratios, 'Ratios beside their targets'),
    'latency': (latencies, 'Latencies'),
    'growth': (growth, 'How speed changes with the number of documents and of namespaces'),
    'contention': (contention, 'Many clients change one document'),
}


def draw_all(results, folder):
    """Names of the charts that could be drawn."""
    return [name for name, (make, _) in CHARTS.items() if make(results, folder / f'{name}.svg')]
