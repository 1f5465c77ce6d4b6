"""A server takes over from another, for the tests that look at it meanwhile."""
import os
import re
import signal

from stack import is_alive, process_state, wait_until


def note(stack, pid):
    """The scripts look for the server by this note."""
    boot = open('/proc/sys/kernel/random/boot_id').read()
    (stack.path / 'run/stampd.pid').write_text(f'{pid} {process_state(pid)[19]} {boot}')


def succeed(stack):
    """Starts the program again, with the present settings, and waits until it serves alone."""
    before, size = stack.pid(), len(stack.log())
    os.kill(before, signal.SIGUSR2)
    wait_until(lambda: 'the successor serves' in stack.log()[size:], what='the successor')
    note(stack, int(re.findall(r'starting a successor .*pid=(\d+)', stack.log()[size:])[-1]))
    wait_until(lambda: not is_alive(before), what='the end of the former')
