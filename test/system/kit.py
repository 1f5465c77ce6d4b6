"""Applications as modules, built outside the tree against what `make install` gives."""
import atexit
import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from cluster import CLUSTER_ROOM
from stack import BUILD, ROOM, SOURCE

HERE = Path(__file__).resolve().parent / 'modules'


def installed(folder):
    """The folder of the header and the pkg-config file as `make install` gives them, in this one: one for all kits of a run."""
    root = Path(folder) / f'installed-{BUILD.name}'
    with open(f'{root}.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            subprocess.run(['make', '-C', BUILD, 'install-includeHEADERS', 'install-pkgconfigDATA', f'DESTDIR={root}.new'], check=True, capture_output=True)
            Path(f'{root}.new').rename(root)
    return root


class Kit:
    """Header and pkg-config file as installed, and a folder where modules are built."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix='stampd-kit-', dir=ROOM))
        atexit.register(shutil.rmtree, self.path, ignore_errors=True)
        self.path.chmod(0o755)  # the server's user must be able to read modules
        root = installed(os.environ.get(CLUSTER_ROOM, self.path))
        (pc,) = root.rglob('stampd.pc')
        self.environment = {**os.environ, 'PKG_CONFIG_PATH': str(pc.parent), 'PKG_CONFIG_SYSROOT_DIR': str(root)}
        self.environment.pop('MAKEFLAGS', None)
        flags = subprocess.run(['pkg-config', '--cflags', 'stampd'], env=self.environment, check=True,
                               capture_output=True, text=True).stdout.split()
        self.flags = ['-fPIC', '-shared', '-O1', '-Wall', '-Werror', *flags]

    def build(self, source, name=None, *flags):
        module = self.path / f'{name or Path(source).stem}.so'
        compiler = ['c++', '-std=c++20'] if source.endswith('.cc') else ['cc', '-std=c11', '-D_GNU_SOURCE', '-Wextra']
        subprocess.run([*compiler, *self.flags, *flags, '-o', module, HERE / source], check=True)
        return module

    def build_example(self):
        """By its own Makefile, in a copy: nothing of the tree is near."""
        folder = self.path / 'asso'
        shutil.copytree(SOURCE / 'doc/examples/asso', folder, ignore=shutil.ignore_patterns('*.so'))
        subprocess.run(['make', '-C', folder, 'CFLAGS=-O2 -Wall -Wextra -Werror'], env=self.environment, check=True,
                       capture_output=True)
        return folder / 'asso.so'
