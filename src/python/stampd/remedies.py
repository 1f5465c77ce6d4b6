"""What a client does after a fault.  Made of src/base/fault_table.h by make update-faults."""

# By the first letter of a code: final, again, held, setup, sign or over.
OF_CLASS = {'A': 'final', 'N': 'final', 'B': 'again', 'X': 'again', 'C': 'again', 'O': 'again', 'S': 'sign', 'D': 'final'}
# Of the codes that differ from their class.
OF_CODE = {
    'NPATH': 'setup',
    'NNAMESPACE': 'setup',
    'NOPERATION': 'setup',
    'DBUILD': 'over',
    'OOFF': 'held',
    'OREADONLY': 'held',
    'OGONE': 'over',
    'OENCRYPTED': 'setup',
    'OMAIL': 'setup',
    'OPUSH': 'setup',
    'ORECORDS': 'setup',
    'OTHUMBNAILS': 'setup',
}
