"""Applications as modules, built outside the tree against what `make install` gives."""
import atexit
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from stack import BUILD, ROOM, SOURCE

HERE = Path(__file__).resolve().parent / 'modules'


class Kit:
    """Header and pkg-config file as installed, and a folder where modules are built."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix='stampd-kit-', dir=ROOM))
        atexit.register(shutil.rmtree, self.path, ignore_errors=True)
        self.path.chmod(0o755)  # the server's user must be able to read modules
        root = self.path / 'root'
        subprocess.run(['make', '-C', BUILD, 'install-includeHEADERS', 'install-pkgconfigDATA', f'DESTDIR={root}'],
                       check=True, capture_output=True)
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
