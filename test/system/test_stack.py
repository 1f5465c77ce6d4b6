"""The test stack itself: what tests rely on and what would make them fail now and then."""
import os
import signal
import threading

STACK = {'workers': 2}


def test_a_reload_of_nginx_fails_no_request(stack):
    ended = threading.Event()

    def reload():
        while not ended.wait(0.05):
            os.kill(nginx, signal.SIGHUP)

    nginx = stack.pid('nginx')
    thread = threading.Thread(target=reload)
    thread.start()
    try:
        for number in range(1500):
            stack.put('lab', {'c': 'Kept', 'id': f'{number % 7}', 'items': [{'c': 'N', 'j': number}]})
    finally:
        ended.set()
        thread.join()
