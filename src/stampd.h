/* stampd.h: the application interface of stampd, the document database server.
 *
 * An application is a module: a shared object, named in the setting `modules`, that the server loads before
 * it starts its workers.  It exports one symbol, `stampd_module`, which lists its classes of documents and
 * its operations.  A whole one:
 *
 *     #include <stampd.h>
 *
 *     static enum stampd_outcome enrol(struct stampd_call *call)
 *     {
 *         const struct stampd_json *param = stampd_param(call);
 *         const char *id = stampd_read_text(call, param, "asso", 1, 64);
 *         const char *number = stampd_read_text(call, param, "member", 1, 32);
 *         const char *name = stampd_read_text(call, param, "name", 1, 200);
 *
 *         struct stampd_document *asso = stampd_fetch(call, "Asso", id);
 *         if (!stampd_exists(asso))
 *             return stampd_raise(call, "NASSO", "There is no such association.", id, NULL);
 *
 *         struct stampd_writer *member = stampd_write_object(call);
 *         stampd_add_text(member, "name", name);
 *         stampd_set_written(asso, "Adh", number, member);
 *         return STAMPD_DONE;
 *     }
 *
 *     static const struct stampd_operation operations[] = {
 *         {.name = "Enrol", .access = STAMPD_PUBLIC, .work = enrol},
 *         {.name = NULL},
 *     };
 *
 *     const struct stampd_module stampd_module = {
 *         .abi = STAMPD_ABI, .name = "asso", .version = "1.0", .operations = operations};
 *
 * The code needs no error checks between the calls, because no error can be missed: the call records the
 * first failure of a try (a missing argument, a document that cannot be loaded, an exception raised).  From
 * then on, values that cannot be read have their defaults, documents that cannot be loaded appear not to
 * exist, and changes have no effect.  Whatever `work` still does and returns, nothing is written and the
 * caller gets that first failure.  Use stampd_failed where continuing makes no sense or takes long.
 *
 * An operation has three phases: work, validation, afterwork.  `work` reads and changes documents in memory.
 * Validation checks that all documents fetched at tolerance 0 are still the newest, and writes the changes in
 * one commit.  `afterwork`, which most operations do not need, completes the result with the version of the
 * commit.  After a conflict with another writer, or a failure of the classes B, X or C, all is run again, up
 * to 3 times, with a new struct stampd_call: `work` must not keep state of its own between tries.
 *
 * Lifetime: everything that a function returns, and everything passed to one "without copies", lives until
 * the request is answered; nothing needs to be freed.  Texts are UTF-8 without NUL, and NUL-terminated as
 * `const char *`.  Sizes are bytes.  Stamps and versions are numbers of 15 digits, yymmddhhmmssmmm.
 *
 * A worker serves one request at a time in one thread.  A module must not fork, create threads, exit, or
 * change signal handlers, the locale or the working directory; it may hold resources of its own, opened in
 * worker_start.  C++ exceptions must not leave its functions.  All of this is C11 and C++20 (designated
 * initialisers; everything else is C++11). */
#ifndef STAMPD_STAMPD_H
#define STAMPD_STAMPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The server refuses at start a module built for another major version, or for a higher minor one.  Within a
 * major version, the interface only grows: minor versions add. */
#define STAMPD_ABI_MAJOR 1
#define STAMPD_ABI_MINOR 18
#define STAMPD_ABI       (STAMPD_ABI_MAJOR * 1000 + STAMPD_ABI_MINOR)

#if defined(__GNUC__)
#define STAMPD_EXPORT                    __attribute__((visibility("default")))
#define STAMPD_SENTINEL                  __attribute__((sentinel))
#define STAMPD_PRINTF_LIKE(text, values) __attribute__((format(printf, text, values)))
#else
#define STAMPD_EXPORT
#define STAMPD_SENTINEL
#define STAMPD_PRINTF_LIKE(text, values)
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct stampd_call;     /* one try of one operation */
struct stampd_document; /* a document as seen by one try */
struct stampd_json;     /* a JSON value that was read */
struct stampd_writer;   /* a JSON text being written */

/* Text or bytes with their length; not necessarily NUL-terminated.  `data` NULL: absent, not empty. */
struct stampd_bytes {
    const char *data;
    size_t size;
};

/* What `work` returns; functions that may be its last line return it too. */
enum stampd_outcome { STAMPD_DONE = 0, STAMPD_FAULT = 1 };

/* ==== What a module declares ======================================================================== */

/* Who may run an operation.  The administrator's key grants access everywhere; a namespace that is off
 * requires it; in the namespace z all operations of modules require it. */
enum stampd_access {
    STAMPD_ADMIN = 0, /* requires the administrator's key */
    STAMPD_PUBLIC = 1 /* everyone; the operation decides by stampd_caller, or checks account and key itself */
};

/* Properties of an operation when it is run as a task (below).  All zero: the defaults. */
struct stampd_task_class {
    unsigned queue;   /* 0 to 15; the setting task_queues overrides it */
    unsigned seconds; /* of an attempt, all its cycles together; 0, or more than limit_task_s: that */
    unsigned batch;   /* most of its tasks that may share a request and a commit, up to 1000; 0: 1 */
    bool never_retry; /* after its first failure it is parked */
    bool clients_may_schedule; /* whoever may run it may schedule it with the operation `task`, without the
                                  administrator's key; it then has neither account nor key */
    /* Runs it again and again, in each namespace, with an empty param: Ymmddhhmm, Mddhhmm, Wdhhmm (1:
     * Monday), Dhhmm, Hmm or five fields of crontab(5), in the setting zone; NULL: not periodic.  A run
     * begins when the one before has ended.  Administrators change and stop it with `stampctl cron`. */
    const char *period;
    const char *retries; /* delays (tasks.md, "Failures"); NULL: setting task_retries; since 1.10 */
    const void *reserved[2];
};

/* Flags of an operation. */
enum {
    STAMPD_GRANTS_READ = 1 /* it uses stampd_grant_read: `syncs` are accepted with it in every namespace */
};

struct stampd_operation {
    const char *name; /* in the address: a letter, then up to 31 letters, digits, '_', '-', '.'; use a capital
                         first: the server's own operations never do */
    enum stampd_access access; /* not given: STAMPD_ADMIN */
    bool is_read_only;         /* changes no document: an attempt is BREADONLY */
    unsigned seconds;          /* time limit, all tries together; 0, or more than limit_operation_s: that */
    enum stampd_outcome (*work)(struct stampd_call *call);
    /* Runs after the commit; may be NULL.  It has access to the arguments, the version and the result of
     * work, but not to documents: it also runs again for an answer stored under an Idempotency-Key.  An
     * exception raised here is answered, but undoes nothing. */
    enum stampd_outcome (*afterwork)(struct stampd_call *call);
    const struct stampd_task_class *task; /* as a task; NULL: the defaults */
    uintptr_t flags;                      /* 0, or STAMPD_GRANTS_READ; since 1.4 */
    const void *reserved[2];
};

/* A class of items in a class of documents. */
struct stampd_item_class {
    const char *name;  /* a capital letter, then up to 15 letters and digits */
    bool is_singleton; /* true: one, without key; false: any number, each with its key */
    bool is_raw;       /* content is text; else JSON */
    /* Classes of documents, ended by NULL, that hold copies of it; NULL: none.  When an operation changes or
     * removes the item, a task does the same shortly after in all documents of these classes that have an
     * item of the same class under the key "<its key><separator><id of its document>"; for a singleton, under
     * that id.  Each class must be declared with the item class: not a singleton, of the same kind, and not
     * copied itself (copies.md). */
    const char *const *copied_to;
    const char *separator; /* 1 to 8 bytes; NULL: "." */
    const void *reserved[2];
};

/* Converts a content of an older form to the newest, like the rules of a schema (schema.md, "Releases")
 * and after them.  It is called for every JSON content of the class that is loaded from the database or about
 * to be written, and for all contents when the class gets a higher release; in workers, in the server's
 * keeper and in stampctl, so it must not call functions of stampd.  Returns the new JSON text, allocated by
 * malloc; NULL: the content already has the newest form.  For its own results it must return NULL. */
typedef char *stampd_mutate(const char *item_class, const char *content, size_t size, size_t *size_r);

/* A class of documents.  Documents of a declared class have only items of its declared classes, whoever
 * writes them; those of other classes may have any. */
struct stampd_document_class {
    const char *name;
    const struct stampd_item_class *items; /* ended by one without a name */
    /* The schema of the class (schema.md), a JSON object: its items, which must be those above, their
     * exported fields, collections, unique properties and so on.  `stampctl schema apply` applies it to a
     * namespace, which then must not declare the class itself.  NULL: none. */
    const char *schema;
    stampd_mutate *mutate; /* only with a schema; NULL: only the rules of the schema */
    const void *reserved[2];
};

/* A search defined by the application, for queries that `find` cannot express: one select in PostgreSQL's
 * SQL.  It runs as the workers' role in a read-only transaction.  The schema of the namespace's tables comes
 * first in the search path: doc, item, and the side tables that schema.md names. */
struct stampd_search {
    const char *name;   /* a letter, then up to 31 letters, digits, '_', '-', '.' */
    const char *sql;    /* without a semicolon; $1, $2… stand for arguments, which are texts: $1::int */
    unsigned arguments; /* how many; up to 16 */
    bool is_judged;     /* leaves out rows that the caller may not be shown: modules.md; since 1.9 */
    const void *reserved[4];
};

struct stampd_module {
    uint32_t abi;                                /* STAMPD_ABI */
    const char *name;                            /* for the log: 1 to 32 letters, digits, '_', '-' */
    const char *version;                         /* for the log, and for filters (stampd_filter.h) */
    const struct stampd_document_class *classes; /* ended by one without a name; may be NULL */
    const struct stampd_operation *operations;   /* ended by one without a name; may be NULL */
    /* Called in each worker before its first request; may be NULL.  STAMPD_FAULT: the worker ends, and is
     * started again later; log the reason with stampd_log. */
    enum stampd_outcome (*worker_start)(void);
    void (*worker_stop)(void); /* called in a worker that stops, after its last request; may be NULL */
    const struct stampd_search *searches; /* ended by one without a name; may be NULL */
    const struct stampd_filter *filters;  /* stampd_filter.h: ended by one without a class; may be NULL */
    const void *reserved[6];
};

/* The one symbol that a module exports.  Members that are not named must be zero. */
extern STAMPD_EXPORT const struct stampd_module stampd_module;

/* ==== The call ======================================================================================= */

/* Has this try failed?  The caller gets the first failure. */
bool stampd_failed(const struct stampd_call *call);

/* Raises an exception: fails the try with `code`.  Its first letter is its class: A the request, or what it
 * requires of these documents; N not found (status 404); B a bug (500); X unexpected (500); D another build;
 * C contention (409); O closed (503); S not authorised (403).  Up to 15 capitals and digits follow.  B, X and
 * C are retried.  `detail` is one sentence for people, or NULL; then up to 8 arguments (const char *), ended
 * by NULL.  A code of the server itself (AARG, ALIMIT, AVERSION…) has the server's meaning, words and status;
 * XUNKNOWN is refused.  Returns STAMPD_FAULT. */
enum stampd_outcome stampd_raise(struct stampd_call *call, const char *code, const char *detail,
                                 ...) STAMPD_SENTINEL;

const char *stampd_namespace(const struct stampd_call *call);  /* its code, as in the address */
const char *stampd_request_id(const struct stampd_call *call); /* as in the log and in X-Request-Id */
/* Arguments of the request; NULL: absent. */
const char *stampd_account(const struct stampd_call *call);
const char *stampd_key(const struct stampd_call *call);
const char *stampd_lang(const struct stampd_call *call);
bool stampd_is_administrator(const struct stampd_call *call); /* has the administrator's key */
/* dhop, the session's stamp of the operation: never in the future, not too old.  0: absent. */
int64_t stampd_dhop(const struct stampd_call *call);
/* The path pieces after the operation's name in the address, decoded; NULL past the end. */
size_t stampd_path_count(const struct stampd_call *call);
const char *stampd_path(const struct stampd_call *call, size_t place);
/* A file of a multipart form.  All of it is the client's text: never use a file name as a path. */
struct stampd_file {
    const char *name;            /* of the form's field */
    const char *file_name;       /* may be empty */
    const char *type;            /* content type */
    struct stampd_bytes content; /* without copies */
};
/* The files in their order; NULL past the end. */
size_t stampd_file_count(const struct stampd_call *call);
const struct stampd_file *stampd_file(const struct stampd_call *call, size_t place);
/* Milliseconds until the time limit; negative after it.  Then calls that load documents fail with XTIME, and
 * a second later the worker is killed. */
int64_t stampd_time_left_ms(const struct stampd_call *call);

/* In afterwork: version of the commit; 0: nothing was written, no change was needed.  In work: 0. */
int64_t stampd_commit_version(const struct stampd_call *call);
/* In afterwork: the version of a document after the commit, whether the operation has changed it or not; 0:
 * it does not exist.  A client that sends it as `if` succeeds unless another writer was first.  The document
 * must be one that work has fetched, else BMODULE.  Since 1.6. */
int64_t stampd_version_after(struct stampd_call *call, const char *document_class, const char *id);

/* The current time as a stamp; conversions between stamps and milliseconds since 1970 UTC. */
int64_t stampd_now(void);
int64_t stampd_stamp_to_epoch_ms(int64_t stamp);
int64_t stampd_stamp_from_epoch_ms(int64_t epoch_ms);
/* The first time of a period (as in struct stampd_task_class) after the stamp `after`, for tasks that
 * schedule their own successors. 0: invalid period. */
int64_t stampd_cron_next(const char *period, int64_t after);

/* In work: allows the caller to synchronise this document in this request, although the caller may not read
 * the namespace.  Otherwise a client that sends `syncs` to a namespace closed to it gets nothing: an
 * operation that does not declare STAMPD_GRANTS_READ is refused with SCLOSED before its work; with one that
 * does, each document not granted is answered {"c","id","closed":true}, whether it exists or not.  Grant only
 * documents that the operation has checked the caller may read; any number, before or after the document
 * exists.  A grant lasts for this request and this try.  An answer replayed under an Idempotency-Key grants
 * nothing.  Without the declaration: BMODULE. */
void stampd_grant_read(struct stampd_call *call, const char *document_class, const char *id);

/* ==== The caller and the rules ======================================================================= */

/* The account that has signed in, with a session or a service key that the server has checked: its id.  NULL:
 * none; also for the administrator's key.  In a task: the account on whose behalf it was requested, unless it
 * has ended since.  stampd_account is an argument that anybody can send.  Since 1.7, as all of this part. */
const char *stampd_caller(const struct stampd_call *call);
/* The roles of this account, sorted; NULL past the end. */
size_t stampd_role_count(const struct stampd_call *call);
const char *stampd_role(const struct stampd_call *call, size_t place);
bool stampd_has_role(const struct stampd_call *call, const char *role);

/* An operation of a module is trusted: it reads and changes every document, whatever the caller may do.
 * These functions return what the caller may do: by the rules of the namespace, where its access is rules;
 * elsewhere by its access, for all alike.  The administrator and the server's tasks may do everything.
 *
 * May the caller read the document, as it was loaded?  Learn of it from a list or a search, which includes
 * reading it?  See its items of this class?  False for a document that did not exist, and after a failure. */
bool stampd_may_read(struct stampd_document *document);
bool stampd_may_list(struct stampd_document *document);
bool stampd_may_see(struct stampd_document *document, const char *item_class);
/* May the caller leave the document as it is now, with the changes of this try?  Unchanged: true. */
bool stampd_may_change(struct stampd_document *document);

/* Counts an event of `subject` under `name`, against a rate as in quotas (quotas.md), as "5/h" or
 * "60/min, burst 10".  True: within the rate.  False: the try fails with XBUSY (429, Retry-After; `args`:
 * `name`, the rate), and the event is not counted.  Names are the application's own; events are counted for
 * each namespace, by all workers of the host.  Each try counts, whatever becomes of it. */
bool stampd_limit(struct stampd_call *call, const char *name, const char *subject, const char *rate);

/* ==== Digests and secrets ============================================================================ */

enum { STAMPD_SHA256_BYTES = 32 };
/* SHA-256; HMAC with SHA-256 (RFC 2104).  Since 1.7, as everything in this part. */
void stampd_sha256(struct stampd_bytes bytes, unsigned char digest_r[STAMPD_SHA256_BYTES]);
void stampd_hmac_sha256(struct stampd_bytes key, struct stampd_bytes bytes,
                        unsigned char digest_r[STAMPD_SHA256_BYTES]);
/* Bytes in lower-case hexadecimal digits; in base64url without padding. */
const char *stampd_hex(struct stampd_call *call, struct stampd_bytes bytes);
const char *stampd_base64url(struct stampd_call *call, struct stampd_bytes bytes);
/* Compares secrets in a time that depends on their sizes only. */
bool stampd_equal_secrets(struct stampd_bytes a, struct stampd_bytes b);
/* Fills the buffer with random bytes that nobody can predict. */
void stampd_random(void *buffer, size_t size);
/* A new random token of 256 bits: 43 letters, digits, '-' and '_'.  Each try gets another.  Store its digest,
 * never the token itself: SHA-256 is enough for a secret that is random, but not for a password. */
const char *stampd_random_token(struct stampd_call *call);

/* ==== Memory ========================================================================================= */

/* `size` zeroed bytes that live as long as the request.  Never NULL: when memory runs out, the worker ends
 * (setting memory_mb). */
void *stampd_alloc(struct stampd_call *call, size_t size);
/* A NUL-terminated copy. */
char *stampd_copy(struct stampd_call *call, const void *data, size_t size);
/* printf into such memory. */
char *stampd_format(struct stampd_call *call, const char *format, ...) STAMPD_PRINTF_LIKE(2, 3);
/* Runs function(pointer) when the request has been answered, last registered first: for resources other than
 * this memory. */
void stampd_defer(struct stampd_call *call, void (*function)(void *), void *pointer);

static inline struct stampd_bytes stampd_bytes(const char *data, size_t size)
{
    struct stampd_bytes bytes = {data, size};
    return bytes;
}

/* ==== The log ======================================================================================== */

enum stampd_level { STAMPD_ERROR, STAMPD_WARNING, STAMPD_INFO, STAMPD_DEBUG };
/* One line of the server's log, with the request's id.  No keys, no contents. */
void stampd_log(enum stampd_level level, const char *format, ...) STAMPD_PRINTF_LIKE(2, 3);

/* ==== Reading JSON =================================================================================== */

enum stampd_kind {
    STAMPD_NULL,
    STAMPD_FALSE,
    STAMPD_TRUE,
    STAMPD_NUMBER,
    STAMPD_STRING,
    STAMPD_ARRAY,
    STAMPD_OBJECT
};

/* The argument `param`: an object, empty when it was not given. */
const struct stampd_json *stampd_param(struct stampd_call *call);

/* Readers.  They read the member `name` of `object`; with `name` NULL, the value `object` itself: an element
 * of an array.  A value that is absent (also null, or `object` NULL), of another kind, or out of bounds
 * (which are inclusive) fails the try: with AARG and the member's name if it was an argument, with BCONTENT
 * if it was a stored content.  The functions ending in _or return `otherwise` for a value that is absent or
 * null. */
int64_t stampd_read_integer(struct stampd_call *call, const struct stampd_json *object, const char *name,
                            int64_t least, int64_t most);
int64_t stampd_read_integer_or(struct stampd_call *call, const struct stampd_json *object, const char *name,
                               int64_t least, int64_t most, int64_t otherwise);
double stampd_read_number(struct stampd_call *call, const struct stampd_json *object, const char *name,
                          double least, double most);
double stampd_read_number_or(struct stampd_call *call, const struct stampd_json *object, const char *name,
                             double least, double most, double otherwise);
bool stampd_read_boolean(struct stampd_call *call, const struct stampd_json *object, const char *name);
bool stampd_read_boolean_or(struct stampd_call *call, const struct stampd_json *object, const char *name,
                            bool otherwise);
/* A string of `least` to `most` bytes.  After a failure: "". */
const char *stampd_read_text(struct stampd_call *call, const struct stampd_json *object, const char *name,
                             size_t least, size_t most);
const char *stampd_read_text_or(struct stampd_call *call, const struct stampd_json *object, const char *name,
                                size_t least, size_t most, const char *otherwise);
/* A string of at most `most` bytes, not copied if it had no escapes. */
struct stampd_bytes stampd_read_bytes(struct stampd_call *call, const struct stampd_json *object,
                                      const char *name, size_t most);
/* A string that is one of `words`, an array ended by NULL: its index.  After a failure: 0. */
size_t stampd_read_choice(struct stampd_call *call, const struct stampd_json *object, const char *name,
                          const char *const *words);
size_t stampd_read_choice_or(struct stampd_call *call, const struct stampd_json *object, const char *name,
                             const char *const *words, size_t otherwise);
/* A valid stamp. */
int64_t stampd_read_stamp(struct stampd_call *call, const struct stampd_json *object, const char *name);
/* An object; after a failure an empty one. */
const struct stampd_json *stampd_read_object(struct stampd_call *call, const struct stampd_json *object,
                                             const char *name);
/* An array of `least` to `most` elements; after a failure an empty one. */
const struct stampd_json *stampd_read_array(struct stampd_call *call, const struct stampd_json *object,
                                            const char *name, size_t least, size_t most);

/* Traversal.  None of these fails the try; NULL is allowed everywhere and has no members. */
const struct stampd_json *stampd_member(struct stampd_call *call, const struct stampd_json *object,
                                        const char *name); /* NULL: absent */
const struct stampd_json *stampd_first(struct stampd_call *call,
                                       const struct stampd_json *value); /* element or member; NULL: none */
const struct stampd_json *stampd_next(const struct stampd_json *value);  /* its next sibling; NULL: none */
size_t stampd_count(const struct stampd_json *value);                    /* elements or members */
enum stampd_kind stampd_kind(const struct stampd_json *value);           /* of NULL: STAMPD_NULL */
struct stampd_bytes stampd_member_name(const struct stampd_json *value); /* decoded; no data in an array */
struct stampd_bytes stampd_json_text(const struct stampd_json *value);   /* exactly as written */
/* Parses a JSON text from elsewhere, strictly; NULL: not JSON.  The text must live as long as the request. */
const struct stampd_json *stampd_parse(struct stampd_call *call, struct stampd_bytes text);

/* ==== Documents ====================================================================================== */

struct stampd_name {
    const char *document_class;
    const char *id; /* 1 to 255 bytes */
};

/* The newest version, to read and to change, verified at validation: tolerance 0.  Repeated fetches in a try
 * return the same object.  At most limit_documents (32) different ones.  Never NULL: after a failure, a
 * document that does not exist and cannot be changed. */
struct stampd_document *stampd_fetch(struct stampd_call *call, const char *document_class, const char *id);
/* The same for a list, with one round trip to the database for all that must be loaded. */
void stampd_fetch_many(struct stampd_call *call, const struct stampd_name *names, size_t count,
                       struct stampd_document **documents_r);
/* A copy at most `tolerance_s` (1 or more) seconds old, to read: changing it is BREADONLY.  If it is fetched
 * later in the same try, it becomes the newest and may be changed, through both pointers. */
struct stampd_document *stampd_read(struct stampd_call *call, const char *document_class, const char *id,
                                    int64_t tolerance_s);

/* The same in the namespace `ns`, if both agree (protocol.md), else NNAMESPACE.  Each call reads anew. */
struct stampd_document *stampd_read_other(struct stampd_call *call, const char *ns,
                                          const char *document_class, const char *id, int64_t tolerance_s);

const char *stampd_document_class(const struct stampd_document *document);
const char *stampd_document_id(const struct stampd_document *document);
/* Does it exist, as seen by this try, including its own changes? */
bool stampd_exists(const struct stampd_document *document);
/* As it was loaded: version, creation of this incarnation, time since which removals are recorded; 0 if it
 * did not exist. */
int64_t stampd_version(const struct stampd_document *document);
int64_t stampd_ctime(const struct stampd_document *document);
int64_t stampd_dtime(const struct stampd_document *document);
/* Has this try changed something that the commit would write?  What was changed and changed back, or created
 * and deleted, is unchanged.  Since 1.18. */
bool stampd_is_changed(const struct stampd_document *document);
/* Bytes of the keys and contents of its items, including changes of this try. */
int64_t stampd_volume(const struct stampd_document *document);

/* Creates the document unless it exists; setting an item does so too. */
void stampd_create(struct stampd_document *document);
/* Deletes the document with all its items. */
void stampd_delete(struct stampd_document *document);

/* Runs a search that a module declares.  Returns its rows, from a snapshot of their own: an array of objects,
 * whose members are the columns.  They are not validated with the documents of the operation: fetch and check
 * again what you want to change.  `arguments` are texts; NULL: SQL's null.  NULL after a failure: more than
 * 1,000 rows or 16 MiB (ALIMIT), longer than statement_timeout_ms or than the operation may take (XTIME), an
 * argument of another type (AARG), SQL that fails or tries to write (XDATABASE; the reason is logged). */
const struct stampd_json *stampd_run_search(struct stampd_call *call, const char *name,
                                            const char *const *arguments, size_t count);

/* ==== Items ========================================================================================== */

/* `key` is NULL (or "") for a singleton, everywhere. */
struct stampd_item {
    const char *item_class;
    const char *key; /* "": singleton */
    int64_t version; /* of the operation that changed it here; 0: changed by this try */
    int64_t vop;     /* of the operation that made the content; differs from `version` in a copy */
    struct stampd_bytes content; /* JSON text, or raw text; not a copy */
    bool is_raw;
};

/* The item, as seen by this try; false: there is none.  `item_r` may be NULL. */
bool stampd_find_item(const struct stampd_document *document, const char *item_class, const char *key,
                      struct stampd_item *item_r);
/* The item as it was loaded, before the changes of this try, also when they have removed it or the document;
 * false: there was none.  `item_r` may be NULL.  Since 1.18. */
bool stampd_find_loaded_item(const struct stampd_document *document, const char *item_class, const char *key,
                             struct stampd_item *item_r);
/* Its content as a value to read; NULL: there is none, or it is raw. */
const struct stampd_json *stampd_item_value(const struct stampd_document *document, const char *item_class,
                                            const char *key);
/* The next item, in the order of classes and keys as bytes; of `item_class` only, unless that is NULL.  Begin
 * with a zeroed `item` (= {0}); false at the end.  Changes made in between are visible. */
bool stampd_next_item(const struct stampd_document *document, const char *item_class,
                      struct stampd_item *item);

/* Setting: an item with equal content keeps its version; JSON null removes it.  Contents are not copied: they
 * must live as long as the request.  In a document of a declared class, an item of an undeclared class or
 * kind is BMODULE. */
/* Sets a value that was read, from an argument or another item. */
void stampd_set_value(struct stampd_document *document, const char *item_class, const char *key,
                      const struct stampd_json *value);
/* Sets the text of a writer, and finishes the writer. */
void stampd_set_written(struct stampd_document *document, const char *item_class, const char *key,
                        struct stampd_writer *writer);
/* Sets a JSON text, which is checked. */
void stampd_set_json(struct stampd_document *document, const char *item_class, const char *key,
                     struct stampd_bytes text);
/* Sets raw text, which must be UTF-8 without NUL; this is checked. */
void stampd_set_raw(struct stampd_document *document, const char *item_class, const char *key,
                    struct stampd_bytes text);
/* Copies content and kind from an item of another document (or of this one); removes the item if that one
 * does not exist.  A declared copy (copied_to) has the stamp of the original as its `vop`, and follows its
 * changes. */
void stampd_copy_item(struct stampd_document *document, const char *item_class, const char *key,
                      const struct stampd_document *from, const char *from_class, const char *from_key);
/* Removes the item; no effect if there is none. */
void stampd_remove_item(struct stampd_document *document, const char *item_class, const char *key);

/* ==== Writing JSON =================================================================================== */

/* Begins a new text: an open object or array.  In objects every member has a name, in arrays none (NULL);
 * commas, quotes and escapes are added automatically.  Anything else, and text that is not UTF-8, is BMODULE.
 * Names should be unique: a text with equal names is refused as content of an item. */
struct stampd_writer *stampd_write_object(struct stampd_call *call);
struct stampd_writer *stampd_write_array(struct stampd_call *call);

void stampd_add_text(struct stampd_writer *writer, const char *name, const char *text); /* NULL: null */
void stampd_add_bytes(struct stampd_writer *writer, const char *name, struct stampd_bytes text);
void stampd_add_integer(struct stampd_writer *writer, const char *name, int64_t number);
void stampd_add_number(struct stampd_writer *writer, const char *name, double number); /* finite */
void stampd_add_boolean(struct stampd_writer *writer, const char *name, bool value);
void stampd_add_null(struct stampd_writer *writer, const char *name);
void stampd_add_value(struct stampd_writer *writer, const char *name, const struct stampd_json *value);
/* The content of an item as it is: JSON, or raw text as a string. */
void stampd_add_content(struct stampd_writer *writer, const char *name, const struct stampd_item *item);
/* Opens a nested object or array; what follows is added to it until it is closed. */
void stampd_open_object(struct stampd_writer *writer, const char *name);
void stampd_open_array(struct stampd_writer *writer, const char *name);
void stampd_close(struct stampd_writer *writer);
/* The text; closes what is still open and finishes the writer. */
struct stampd_bytes stampd_written(struct stampd_writer *writer);

/* ==== The result ===================================================================================== */

/* An operation has at most one result; a later one replaces it.  A JSON result becomes `out` in the answer,
 * beside the synchronisations that the caller requested; a result of another kind is the whole answer,
 * without synchronisations.  All return STAMPD_DONE, or STAMPD_FAULT when the try has failed: they may be the
 * last line of `work`. */
enum stampd_outcome stampd_result(struct stampd_call *call, struct stampd_writer *writer);
enum stampd_outcome stampd_result_value(struct stampd_call *call, const struct stampd_json *value);
enum stampd_outcome stampd_result_json(struct stampd_call *call, struct stampd_bytes text); /* checked */
/* Text, which must be UTF-8; this is checked.  `mime` NULL: "text/plain; charset=utf-8". */
enum stampd_outcome stampd_result_text(struct stampd_call *call, const char *mime, struct stampd_bytes text);
/* `mime` NULL: "application/octet-stream". */
enum stampd_outcome stampd_result_bytes(struct stampd_call *call, const char *mime,
                                        struct stampd_bytes bytes);

/* In afterwork: the JSON result of work, to read; NULL: none, or of another kind. */
const struct stampd_json *stampd_result_of_work(struct stampd_call *call);

#ifdef __cplusplus
}
#endif

#include "stampd_task.h"

#endif
