"""Encrypted namespaces, for the tests of them."""
import shutil

from stack import BUILD, SERVER_USER, run_program, wait_until


def new_site_key(stack, name='site.key'):
    path = stack.path / 'etc' / name
    run_program(BUILD / 'src/stampctl', 'key', 'new', '--site', path)
    if SERVER_USER:
        shutil.chown(path, SERVER_USER['user'])
    return path


def create(stack, code='vault', access='open', ids=None):
    """An encrypted namespace, with encrypted ids of these classes; the setting site_key_file is set."""
    pid = stack.path / 'nginx.pid'
    pid.write_text(f'{stack.pid("nginx")}\n')
    stack.admin('ns', 'create', code, '--encrypted', '--access', access, '--nginx-pid', pid, *(['--encrypted-ids', ids] if ids else []))
    wait_until(lambda: stack.ping(code).status_code == 200, what='the namespace')
