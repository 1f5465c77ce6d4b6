"""What the programs of this folder print: to the screen and, if asked, to a file; rows of tables."""
import signal
import statistics
import sys

HEAD = '| what | median | lowest, highest |\n| --- | ---: | --- |'


def speaker(file):
    """A function that prints a line here and to the file, if there is one.  From now on SIGTERM ends the program orderly: its servers stop."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    output = open(file, 'w', encoding='utf-8') if file else None

    def say(text):
        print(text, flush=True)
        if output:
            print(text, file=output, flush=True)
    return say


def row(what, values, digits=2, more=''):
    """Of a table with HEAD."""
    median, least, most = (f'{value:,.{digits}f}' for value in (statistics.median(values), min(values), max(values)))
    return f'| {what} | {median}{more} | {least}, {most} |'
