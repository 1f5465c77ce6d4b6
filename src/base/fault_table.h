/* Every fault once: FAULT(name, words, status, resource, again, remedy, arguments).  The code sent to clients
 * is the name; its first letter is the class: A functional, N not found, B
 * bug, X unexpected, D outdated build, C contention, O off, S not authorised.
 *
 * status: HTTP status from an operation (with the setting fault_status = few: see fault_few_status);
 * resource: HTTP status from a document as a resource; again: does the server retry the operation itself;
 * arguments: what `args` contains, for faults.md, which is generated from this table (make
 * update-faults), as src/web/client/remedies.js is.
 *
 * remedy: what a client does with a request that was refused so.  It is decided here only, for the forwarder,
 * stampctl, the queue manager and the JavaScript client:
 * FINAL: the request would be refused again, give it up; AGAIN: send it later; HELD: the same, when the
 * administrator has ended what holds it; SETUP: the server, or the address that is called, does not have it:
 * whoever waits for people waits, others give it up; SIGN: other credentials are needed; OVER: nothing that
 * this client sends is served any more.
 * CLASS(letter, remedy): of codes that are not in the table: exceptions of applications. */
/* clang-format off */
CLASS(A, FINAL)
CLASS(N, FINAL)
CLASS(B, AGAIN)
CLASS(X, AGAIN)
CLASS(C, AGAIN)
CLASS(O, AGAIN)
CLASS(S, SIGN)
CLASS(D, FINAL)
FAULT(AARG, "An argument is missing or is not of the expected kind.", 400, 400, false, FINAL, "its name, or that of its member; for an unknown one also the nearest known name")
FAULT(AJSON, "The text is not valid JSON.", 400, 400, false, FINAL, "the argument, or `body`; at which byte")
FAULT(AUTF8, "The text is not valid UTF-8.", 400, 400, false, FINAL, "the argument, `body` or `path`; at which byte")
FAULT(ALIMIT, "A limit is exceeded.", 400, 400, false, FINAL, "the limit, its value, that of the request; status 413 if the limit is `limit_body_bytes` or `limit_anonymous_body_bytes`")
FAULT(AVERSION, "The document is not at the expected version.", 409, 412, false, FINAL, "class, id, the present version")
FAULT(AUNIQUE, "Another document has this value of a unique property.", 409, 409, false, FINAL, "the property; class and id of the document that would get it")
FAULT(AINDEX, "No index serves this search.", 400, 400, false, FINAL, "class, class of items, the index that is missing, as it is declared")
FAULT(AFIXED, "The document would leave a collection that is not mutable.", 409, 409, false, FINAL, "the collection; class and id of the document")
FAULT(ACONTENT, "A content does not conform to the schema of its class.", 422, 422, false, FINAL, "class, id, class of items, key; JSON pointer into the content; the keyword; JSON pointer into its JSON Schema; `detail` has what is expected")
FAULT(ADHOP, "The stamp of the operation is in the future or too old.", 400, 400, false, FINAL, "the stamp, the least and the most that are accepted, the server's time")
FAULT(AKEYREUSED, "The Idempotency-Key was used for another request.", 422, 422, false, FINAL, "the key")
FAULT(AKEYOLD, "The Idempotency-Key is too old: its answer is no longer stored.", 422, 422, false, FINAL, "the stamp of the key, the least that is accepted, the server's time; the request was not done now, and may have been done before")
FAULT(AKEYAHEAD, "The Idempotency-Key is from the future.", 400, 400, false, FINAL, "the stamp of the key, the most that is accepted, the server's time")
FAULT(AMETHOD, "The method is not allowed here.", 405, 405, false, FINAL, "the method")
FAULT(ATYPE, "The content type of the request is not supported.", 415, 415, false, FINAL, "`body`")
FAULT(ABODY, "The body of the request is incomplete.", 400, 400, false, FINAL, "`body`, if it is a form")
FAULT(ADIGEST, "The body does not have the digest that its header names.", 400, 400, false, FINAL, "the digest that it has")
FAULT(AOFFSET, "The upload is at another offset.", 409, 409, false, FINAL, "the offset")
FAULT(ACLAIM, "The claim of the task has ended.", 409, 409, false, FINAL, "the name of the task")
FAULT(NPATH, "There is nothing at this path.", 404, 404, false, SETUP, "")
FAULT(NNAMESPACE, "The namespace does not exist.", 404, 404, false, SETUP, "its code")
FAULT(NOPERATION, "The operation does not exist.", 404, 404, false, SETUP, "its name")
FAULT(NDOCUMENT, "The document does not exist.", 404, 404, false, FINAL, "class, id")
FAULT(NCOLLECTION, "The collection is not declared.", 404, 404, false, FINAL, "class, name")
FAULT(NFILE, "The namespace has no such file.", 404, 404, false, FINAL, "its path, if it can be one")
FAULT(NATTACHMENT, "There is no such attachment.", 404, 404, false, FINAL, "its digest; or class, id, and its key or digest")
FAULT(NUPLOAD, "There is no such upload.", 404, 404, false, FINAL, "its name")
FAULT(NSUBSCRIPTION, "The session has no subscription.", 404, 404, false, FINAL, "")
FAULT(NFIELD, "Not exported, so it cannot be searched.", 404, 404, false, FINAL, "class, class of items, field")
FAULT(NSEARCH, "The namespace has no such search for this caller.", 404, 404, false, FINAL, "its name")
FAULT(BREADONLY, "An operation tried to change a document that it may only read.", 500, 500, false, AGAIN, "")
FAULT(BINTERNAL, "Internal error.", 500, 500, true, AGAIN, "")
FAULT(BMODULE, "Invalid call by the application module.", 500, 500, true, AGAIN, "what the module did")
FAULT(BCONTENT, "A stored content is not of the expected kind.", 500, 500, true, AGAIN, "a member's name")
FAULT(XDATABASE, "The database refused the request.", 500, 500, true, AGAIN, "")
FAULT(XAWAY, "The database cannot be reached.", 503, 503, false, AGAIN, "")
FAULT(XTIME, "The request exceeded its time limit.", 503, 503, false, AGAIN, "the limit and its value, if it is `limit_read_ms` or `limit_stream_ms`; status 504 if the process was killed for it")
FAULT(XUNKNOWN, "It is unknown whether the request was done.", 500, 500, false, AGAIN, "status 502 or 504 if the process that had begun it is gone; also from nginx")
FAULT(XCRASH, "The process that ran the request crashed or was killed.", 502, 502, false, AGAIN, "`application` if code of a module was running, else `server`")
FAULT(XFULL, "The server is out of space.", 507, 507, false, AGAIN, "")
FAULT(XSTORE, "The store of attachments cannot be used.", 503, 503, false, AGAIN, "")
FAULT(XBUSY, "Too many requests from this address or for this namespace.", 429, 429, false, AGAIN, "the limit, its value, or `issuers`: the keys of a provider are not known yet; `Retry-After` has the seconds to wait; also from nginx. 423 for uploads in parts, whose clients give up after 429")
FAULT(XLOCKED, "Another request continues the upload.", 423, 423, false, AGAIN, "its name")
FAULT(XCROWDED, "There is no room for another listener.", 503, 503, false, AGAIN, "the limit, its value")
FAULT(XINTERNAL, "Internal error in the proxy.", 500, 500, false, AGAIN, "from nginx")
FAULT(XMAIL, "The mail server did not accept the mail.", 503, 503, false, AGAIN, "")
FAULT(XPUSH, "The push service did not accept the message.", 503, 503, false, AGAIN, "")
FAULT(DBUILD, "The client was built for another release of the server.", 400, 400, false, OVER, "the client's build; the present one, in the same form")
FAULT(CONTENTION, "Other operations kept changing the same documents.", 409, 409, true, AGAIN, "")
FAULT(OSTOPPING, "The server is stopping or not running.", 503, 503, false, AGAIN, "also from nginx, if no process of the server can be reached")
FAULT(OOFF, "The namespace is closed for maintenance.", 503, 503, false, HELD, "`detail` has the text of the administrator")
FAULT(OREADONLY, "The namespace is read-only at present.", 503, 503, false, HELD, "`detail` has the text of the administrator")
FAULT(OGONE, "The namespace is gone.", 410, 410, false, OVER, "`detail` has the text of the administrator")
FAULT(ODATABASE, "The database of the namespace does not exist or is not usable.", 503, 503, false, AGAIN, "")
FAULT(OTWIN, "The database is in use by another installation.", 503, 503, false, AGAIN, "")
FAULT(OBUILDING, "Not ready: still being built.", 503, 503, false, AGAIN, "its name")
FAULT(OENCRYPTED, "Not available in an encrypted namespace.", 503, 503, false, SETUP, "")
FAULT(OMAIL, "Mails are not set up on this server.", 503, 503, false, SETUP, "")
FAULT(OPUSH, "Push is not set up on this server.", 503, 503, false, SETUP, "")
FAULT(ORECORDS, "Records are not set up on this server.", 503, 503, false, SETUP, "")
FAULT(OTHUMBNAILS, "This server makes no thumbnails: it was built without libvips, or thumbnail_program is none.", 503, 503, false, SETUP, "")
FAULT(SKEY, "The key is wrong.", 403, 403, false, SIGN, "the argument")
FAULT(SORIGIN, "A page of this origin may not change anything here.", 403, 403, false, SIGN, "the origin")
FAULT(SACCOUNT, "The account on whose behalf the task was requested is no longer served.", 403, 403, false, SIGN, "")
FAULT(SCLOSED, "Not authorised.", 403, 403, false, SIGN, "the operation; status 401 with `WWW-Authenticate` if the request has no key at all")
FAULT(SRULE, "The rules of the namespace do not allow it.", 403, 403, false, SIGN, "class, id; status 401 with `WWW-Authenticate` if the request has no key at all")
/* clang-format on */
