"""The backup of one namespace as a file of pg_dump, and its restore."""
import subprocess


def tool(stack, name, *words):
    subprocess.run([f'/usr/lib/postgresql/15/bin/{name}', '-h', stack.database, '-U', 'postgres', *words], check=True, timeout=120)


def back_up(stack, path, database='stampd_lab'):
    tool(stack, 'pg_dump', '--format=custom', f'--file={path}', database)


def fill(stack, path, *how, database='stampd_lab'):
    """Replaces the database by a new one with the content of the file."""
    tool(stack, 'dropdb', *how, database)
    tool(stack, 'createdb', '--template=template0', '--encoding=UTF8', '--locale=C.UTF-8', database)
    tool(stack, 'pg_restore', f'--dbname={database}', path)


def restore(stack, path):
    """The server stands still, the database is as it was."""
    stack.step('stampd', 'stop', 'now')
    if 'lab' in stack.connections:
        stack.connections.pop('lab').close()
    fill(stack, path)
