"""Which files of system tests begin first, which are quick, and which need an optional library."""

# The files that take longest begin first, so that no processor is left with one at the end.
LONGEST = ['object_places', 'plans', 'demo', 'backup_objects', 'states', 'move', 'explain', 'access', 'hostile', 'altered', 'encryption', 'rules_paths', 'quotas',
           'task_death', 'crash_points', 'bare', 'tutorials', 'tasks', 'once', 'protocol', 'export', 'attachment_files', 'import_couchdb', 'console',
           'sample', 'operate', 'restore', 'ends', 'dump', 'modules', 'stampctl', 'death', 'push', 'live', 'long_values', 'processes', 'task_losses']

# Files of `scripts/check quick`: what is used most, each in some seconds.
QUICK = ['documents', 'mutations', 'collections', 'resources', 'http', 'access', 'rules', 'tasks', 'live', 'records', 'stampctl', 'restore']

# Files that need a feature of the build, HAVE_… in its config.h: skipped without it.
NEEDS = {'ARCHIVES': ['archive_files', 'attachment_full_disk', 'backup_objects', 'configurations_checked', 'couchdb_live', 'encrypted_ids',
                      'encrypted_ids_script', 'encryption', 'export', 'import', 'import_couchdb', 'import_firestore', 'move', 'move_derived',
                      'object_moves', 'object_places', 'object_stores', 'pouchdb_server', 'sealed_files', 'sealed_move', 'sealed_objects', 'sealed_values',
                      'thumbnail_sweep', 'units', 'verify', 'volumes'],
         'PASSKEYS': ['passkeys', 'account_mails', 'isolation', 'encrypted_ids_script', 'protocol'],
         'RECORDS_ON_DISK': ['records_disk', 'crash_points'],
         'THUMBNAILS': ['thumbnails', 'thumbnail_sweep', 'move_derived', 'encrypted_ids', 'encrypted_ids_script', 'altered', 'demo']}

PLACES = {name: place for place, name in enumerate(LONGEST)}


def name_of(path):
    return path.stem.removeprefix('test_')


def place_of(path):
    """For sorting."""
    return PLACES.get(name_of(path), len(PLACES)), path.stem
