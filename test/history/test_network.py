"""What network.py decides without the rights of root."""
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from network import Network  # noqa: E402

TAKE = 'import sys; sys.path.insert(0, sys.argv[1]); from network import Network; print(Network.take_number()[1])'


class Numbers(unittest.TestCase):
    def test_no_two_processes_have_one_network(self):
        """No file is the lock: other roots (chroot) would not see it."""
        lock, number = Network.take_number()
        try:
            other = int(subprocess.run([sys.executable, '-B', '-c', TAKE, str(HERE)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout)
            self.assertNotEqual(other, number)
            self.assertEqual(lock.getsockname(), f'\0stampd-network-{number}'.encode())
        finally:
            lock.close()


if __name__ == '__main__':
    os.chdir('/')
    unittest.main(verbosity=0)
