/* Every exception once: FAULT(name, words, status, resource, again, arguments).  The code sent to clients is
 * the name; its first letter is the class (seed 000, "Codes MAJOR / MINOR"): A functional, N not found, B
 * bug, X unexpected, D outdated build, C contention, O off, S not authorised.
 *
 * status: of HTTP, from an operation; resource: from a document as a resource; again: does the server run the
 * operation again by itself; arguments: what `args` bear, for doc/faults.md, which is made of this table
 * (make update-faults). */
/* clang-format off */
FAULT(AARG, "An argument is missing or is not of the expected kind.", 400, 400, false, "its name, or that of its member; of an unknown one also the nearest that is known")
FAULT(AJSON, "The text is not valid JSON.", 400, 400, false, "the argument, or `body`; at which byte")
FAULT(AUTF8, "The text is not valid UTF-8.", 400, 400, false, "the argument, `body` or `path`; at which byte")
FAULT(ALIMIT, "A limit is exceeded.", 400, 400, false, "the limit, its value, what came; status 413 where the limit is `limit_body_bytes`")
FAULT(AVERSION, "The document is not at the expected version.", 400, 412, false, "class, id, the present version")
FAULT(AUNIQUE, "Another document has this value of a unique property.", 400, 409, false, "")
FAULT(ADHOP, "The stamp of the operation is in the future, or too old.", 400, 400, false, "the stamp, the least and the most that is taken")
FAULT(AKEYREUSED, "The Idempotency-Key was used for another request.", 400, 422, false, "the key")
FAULT(AMETHOD, "The method is not allowed here.", 405, 405, false, "the method")
FAULT(ATYPE, "The content type of the request is not supported.", 415, 415, false, "`body`")
FAULT(ABODY, "The body of the request is incomplete.", 400, 400, false, "`body`, where it is a form")
FAULT(NPATH, "Nothing is served at this address.", 404, 404, false, "")
FAULT(NNAMESPACE, "The namespace does not exist.", 404, 404, false, "its code")
FAULT(NOPERATION, "The operation does not exist.", 404, 404, false, "its name")
FAULT(NDOCUMENT, "The document does not exist.", 404, 404, false, "class, id")
FAULT(NCOLLECTION, "The collection is not declared.", 404, 404, false, "class, name")
FAULT(NSUBSCRIPTION, "The session has no subscription.", 404, 404, false, "")
FAULT(NFIELD, "This is not exported, so it cannot be searched.", 404, 404, false, "class, class of items, field")
FAULT(BREADONLY, "An operation tried to change a document that it had asked for with a tolerance.", 400, 500, false, "")
FAULT(BINTERNAL, "The server met a state that should never be.", 400, 500, true, "")
FAULT(BMODULE, "The application asked the server for what cannot be.", 400, 500, true, "what it did")
FAULT(BCONTENT, "A stored content is not of the kind that the application expects.", 400, 500, true, "a member's name")
FAULT(XDATABASE, "The database refused the request.", 400, 500, true, "")
FAULT(XAWAY, "The database cannot be reached at present.", 400, 503, false, "status 502, 503 or 504 from nginx, when no worker answered")
FAULT(XTIME, "The operation took longer than it may.", 400, 503, false, "")
FAULT(XUNKNOWN, "The connection to the database was lost during the commit: it may or may not have happened.", 400, 500, false, "")
FAULT(XFULL, "The database has no room left.", 400, 507, false, "")
FAULT(XBUSY, "Too many requests come from this address or for this namespace.", 429, 429, false, "the limit, its value; `Retry-After` says when to try again; also from nginx")
FAULT(XCROWDED, "There is no room for another listener at present.", 503, 503, false, "")
FAULT(XINTERNAL, "The front of the server met a state that should never be.", 500, 500, false, "from nginx")
FAULT(XPUSH, "The push service did not take the message.", 400, 503, false, "")
FAULT(DBUILD, "The client was built for another release of the server.", 400, 400, false, "the client's build, the server's")
FAULT(CONTENTION, "Other operations kept changing the same documents.", 400, 409, true, "")
FAULT(OOFF, "The namespace is closed for maintenance.", 400, 503, false, "the words of the administrator stand in `detail`")
FAULT(ODATABASE, "The database of the namespace does not exist or is not usable.", 400, 503, false, "")
FAULT(OTWIN, "The database is in use by another installation.", 400, 503, false, "")
FAULT(OBUILDING, "What is asked for is being built.", 400, 503, false, "its name")
FAULT(OPUSH, "Push is not set up on this server.", 400, 503, false, "")
FAULT(SKEY, "The key is wrong.", 400, 403, false, "the argument")
FAULT(SCLOSED, "This needs an authorisation that the request does not bear.", 400, 403, false, "the operation")
/* clang-format on */
