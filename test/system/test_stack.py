"""The test stack itself: what tests rely on and what would make them fail now and then."""
import os
import signal

STACK = {'workers': 2}


def test_a_reload_of_nginx_fails_no_request(stack):
    """Requests come while nginx reads its configuration, begins processes and ends others: fifty times, since each costs as much as fifty requests."""
    nginx = stack.pid('nginx')
    for number in range(1500):
        if number % 30 == 0:
            os.kill(nginx, signal.SIGHUP)
        stack.put('lab', {'c': 'Kept', 'id': f'{number % 7}', 'items': [{'c': 'N', 'j': number}]})
