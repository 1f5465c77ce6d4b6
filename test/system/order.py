"""Which files of system tests begin first, and which are quick."""

# The files that take longest begin first, so that no processor is left with one at the end.
LONGEST = ['object_places', 'plans', 'demo', 'backup_objects', 'states', 'move', 'explain', 'access', 'hostile', 'altered', 'encryption', 'rules_paths', 'quotas',
           'task_death', 'crash_points', 'bare', 'tutorials', 'tasks', 'once', 'protocol', 'export', 'attachment_files', 'import_couchdb', 'console',
           'sample', 'operate', 'restore', 'ends', 'dump', 'modules', 'stampctl', 'death', 'push', 'live', 'long_values', 'processes', 'task_losses']

# Files of `scripts/check quick`: what is used most, each in some seconds.
QUICK = ['documents', 'mutations', 'collections', 'resources', 'http', 'access', 'rules', 'tasks', 'live', 'records', 'stampctl', 'restore']

PLACES = {name: place for place, name in enumerate(LONGEST)}


def name_of(path):
    return path.stem.removeprefix('test_')


def place_of(path):
    """For sorting."""
    return PLACES.get(name_of(path), len(PLACES)), path.stem
