"""Which files of system tests begin first, which are quick, and which need an optional library."""

# The files that take longest begin first, so that no processor is left with one at the end: by the seconds that scripts/check has printed
# of each file (var/check/system_tests.log) on two processors, down to some forty.
LONGEST = ['client_js', 'demo', 'failover', 'altered', 'isolated', 'object_deaths', 'object_places',
           'object_moves', 'rules_paths', 'states', 'object_stores', 'thumbnails', 'logs', 'death',
           'tutorials', 'backup_objects', 'find_order', 'encrypted_ids_paths', 'live_collections', 'find',
           'backup', 'long_reads', 'protocol', 'rules_hostile', 'openapi_types', 'accounts', 'ends',
           'crash_points', 'once', 'encrypted_ids', 'attachment_files', 'find_words', 'spool', 'console',
           'quotas', 'plans', 'schema_names', 'records_sealed', 'operate', 'stampctl', 'encryption',
           'sealed_objects', 'programs', 'rxdb', 'named_searches', 'hostile', 'live', 'tasks',
           'backup_debian', 'passkeys', 'archive_files', 'contents', 'python_client', 'task_death',
           'live_rules', 'sample', 'periodic', 'import', 'live_sight', 'processes']

# Files of `scripts/check quick`: what is used most, each in some seconds.
QUICK = ['documents', 'mutations', 'collections', 'resources', 'http', 'access', 'rules', 'tasks', 'live', 'records', 'stampctl', 'restore']

# Files that need a feature of the build, HAVE_… in its config.h: skipped without it.
NEEDS = {'ARCHIVES': ['archive_files', 'attachment_full_disk', 'backup_objects', 'cells', 'configurations_checked', 'couchdb_live', 'encrypted_ids',
                      'encrypted_ids_script', 'encryption', 'export', 'import', 'import_couchdb', 'import_firestore', 'move', 'move_cells', 'move_derived',
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
