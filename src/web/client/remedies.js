/* remedies.js: what a client does after a fault.  Made of src/base/fault_table.h by make update-faults. */

/** @typedef {'final' | 'again' | 'held' | 'setup' | 'sign' | 'over'} Remedy */

/** By the first letter of a code. @type {Record<string, Remedy>} */
export const OF_CLASS = { A: 'final', N: 'final', B: 'again', X: 'again', C: 'again', O: 'again', S: 'sign', D: 'final' }
/** Of the codes that differ from their class. @type {Record<string, Remedy>} */
export const OF_CODE = {
  NPATH: 'setup',
  NNAMESPACE: 'setup',
  NOPERATION: 'setup',
  DBUILD: 'over',
  OOFF: 'held',
  OREADONLY: 'held',
  OGONE: 'over',
  OENCRYPTED: 'setup',
  OMAIL: 'setup',
  OPUSH: 'setup',
  ORECORDS: 'setup',
  OTHUMBNAILS: 'setup',
}
