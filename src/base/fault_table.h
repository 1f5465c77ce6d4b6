/* Every exception once: FAULT(name, words).  The code sent to clients is the name; its first letter is the
 * class (seed 000, "Codes MAJOR / MINOR"): A functional, N not found, B bug, X unexpected, D outdated build,
 * C contention, O off, S not authorised.  Which ones the server runs again by itself: fault_is_retried.
 * scripts/check-settings holds the table of doc/protocol.md to it. */
/* clang-format off */
FAULT(AARG, "An argument is missing or is not of the expected kind.")
FAULT(AJSON, "The text is not valid JSON.")
FAULT(AUTF8, "The text is not valid UTF-8.")
FAULT(ALIMIT, "A limit is exceeded.")
FAULT(AVERSION, "The document is not at the expected version.")
FAULT(AMETHOD, "The method is not allowed here.")
FAULT(ATYPE, "The content type of the request is not supported.")
FAULT(ABODY, "The body of the request is incomplete.")
FAULT(NPATH, "Nothing is served at this address.")
FAULT(NNAMESPACE, "The namespace does not exist.")
FAULT(NOPERATION, "The operation does not exist.")
FAULT(BREADONLY, "An operation tried to change a document that it had asked for with a tolerance.")
FAULT(BINTERNAL, "The server met a state that should never be.")
FAULT(BMODULE, "The application asked the server for what cannot be.")
FAULT(BCONTENT, "A stored content is not of the kind that the application expects.")
FAULT(XDATABASE, "The database refused the request.")
FAULT(XAWAY, "The database cannot be reached at present.")
FAULT(XTIME, "The operation took longer than it may.")
FAULT(XUNKNOWN, "The connection to the database was lost during the commit: it may or may not have happened.")
FAULT(XFULL, "The database has no room left.")
FAULT(DBUILD, "The client was built for another release of the server.")
FAULT(CONTENTION, "Other operations kept changing the same documents.")
FAULT(OOFF, "The namespace is closed for maintenance.")
FAULT(ODATABASE, "The database of the namespace does not exist or is not usable.")
FAULT(OTWIN, "The database is in use by another installation.")
FAULT(SKEY, "The key is wrong.")
FAULT(SCLOSED, "This needs an authorisation that the request does not bear.")
/* clang-format on */
