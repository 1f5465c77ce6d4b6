/* stampd.h: all that an application needs of stampd, the document database server.
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
 * No error is looked for between the lines, because none can be missed: the first failure of a try is noted
 * in the call (a missing argument, a document that cannot be loaded, an exception raised).  From then on what
 * cannot be read is a default, what cannot be had seems not to exist, nothing is changed, and whatever `work`
 * still does and returns, nothing is written and the caller gets that first failure.  stampd_failed tells,
 * where going on makes no sense or takes long.
 *
 * An operation goes: work, validation, afterwork.  `work` reads and changes documents in memory; validation
 * makes sure that all it asked for at tolerance 0 are still the newest and writes what changed, in one
 * commit; `afterwork`, which most have not, completes the result with the version of the commit.  When others
 * were quicker, or a failure of the classes B, X or C was met, all of it is run again, up to 3 times, with a
 * new struct stampd_call: so `work` keeps nothing in variables of its own.
 *
 * Lifetime: everything that a function returns, and everything that is given to one "without copies", lives
 * until the request is answered; nothing is to be freed.  Texts are UTF-8 without NUL, and end with one where
 * they are `const char *`.  Sizes are bytes.  Stamps and versions are numbers of 15 digits, yymmddhhmmssmmm.
 *
 * A worker serves one request at a time in one thread.  A module must not fork, make threads, exit, change
 * signal handlers, the locale or the working folder; it may hold resources of its own, opened in
 * worker_start. C++ exceptions must not leave its functions.
 *
 * All of this is C11 and C++20 (designated initialisers; everything else is C++11). */
#ifndef STAMPD_STAMPD_H
#define STAMPD_STAMPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A module built for another major version, or for a higher minor one, is refused at start.  What a major
 * version has stays as it is; a minor one adds. */
#define STAMPD_ABI_MAJOR 1
#define STAMPD_ABI_MINOR 6
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
struct stampd_document; /* a document in the eyes of one try */
struct stampd_json;     /* a JSON value that was read */
struct stampd_writer;   /* a JSON text in the making */

/* Text or bytes with their length; no NUL is promised behind.  `data` NULL: nothing at all, not the same as
 * empty. */
struct stampd_bytes {
    const char *data;
    size_t size;
};

/* What `work` returns; functions that may be the last line of one return it too. */
enum stampd_outcome { STAMPD_DONE = 0, STAMPD_FAULT = 1 };

/* ==== What a module declares ======================================================================== */

/* Who may run an operation.  The administrator's key passes everywhere; a namespace that is off lets nobody
 * else in; in the namespace z all operations of modules need the key. */
enum stampd_access {
    STAMPD_ADMIN = 0, /* only who bears the administrator's key */
    STAMPD_PUBLIC = 1 /* everybody; the operation looks at account and key itself */
};

/* What an operation is when it is run as a task (below).  All zero: the usual. */
struct stampd_task_class {
    unsigned queue; /* 0 to 15; the setting task_queues goes before */
    unsigned
        seconds; /* time limit of an attempt, all its cycles together; 0, or more than limit_task_s: that */
    unsigned batch;            /* most tasks of it that may share a request and a commit, up to 1000; 0: 1 */
    bool never_retry;          /* after its first failure it is parked */
    bool clients_may_schedule; /* the operation `task` may be used for it without the administrator's key, by
                                  whoever may run it; it will see neither account nor key */
    /* Runs it again and again, in each namespace, with an empty param: Ymmddhhmm, Mddhhmm, Wdhhmm (1:
     * Monday), Dhhmm or Hmm, in the time zone of the server (setting zone); NULL: not.  A turn begins when
     * the one before has ended.  Administrators see, change and end it by `stampctl cron`. */
    const char *period;
    const void *reserved[3];
};

/* Flags of an operation. */
enum {
    STAMPD_GRANTS_READ = 1 /* it uses stampd_grant_read: `syncs` are taken beside it in every namespace */
};

struct stampd_operation {
    const char *name; /* in the address: a letter, then up to 31 letters, digits, '_', '-', '.'; begin with
                         a capital: the server's own operations never do */
    enum stampd_access access; /* not given: STAMPD_ADMIN */
    bool is_read_only;         /* changes no document: trying to is BREADONLY */
    unsigned seconds;          /* time limit, all tries together; 0, or more than limit_operation_s: that */
    enum stampd_outcome (*work)(struct stampd_call *call);
    /* After the commit; may be NULL.  It sees the arguments, the version and the result that work left, no
     * document: an answer that was remembered under an Idempotency-Key goes through it again.  What is raised
     * here is answered, but undoes nothing. */
    enum stampd_outcome (*afterwork)(struct stampd_call *call);
    const struct stampd_task_class *task; /* as a task; NULL: the usual */
    uintptr_t flags;                      /* 0, or STAMPD_GRANTS_READ; since 1.4 */
    const void *reserved[2];
};

/* A class of items in a class of documents. */
struct stampd_item_class {
    const char *name;  /* a capital letter, then up to 15 letters and digits */
    bool is_singleton; /* one without key; else any number, each with its key */
    bool is_raw;       /* content is text; else JSON */
    /* Classes of documents, ended by NULL, that hold copies of it; NULL: none.  When an operation changes or
     * removes the item, a task does the same, a little later, in all documents of these classes that have an
     * item of the same class under the key "<its key><separator><id of its document>"; of a singleton under
     * that id.  Each class must be declared, with the item: no singleton, of the same kind, and not copied
     * itself (doc/copies.md). */
    const char *const *copied_to;
    const char *separator; /* 1 to 8 bytes; NULL: "." */
    const void *reserved[2];
};

/* Makes a content of an older form one of the newest; as the rules of a schema do (doc/schema.md,
 * "Releases"), and behind them.  Called for every JSON content of the class that comes from the database or
 * is about to be written, and for all of them when the class has got a higher release; in workers, in the
 * server's keeper and in stampctl, so it calls no function of stampd.  Returns the new text, JSON, made by
 * malloc; NULL: the content is of the newest form.  Of a content that it has made itself it must say so. */
typedef char *stampd_mutate(const char *item_class, const char *content, size_t size, size_t *size_r);

/* A class of documents.  Those of a declared class have items of the declared classes only, whoever writes
 * them; those of other classes may have any. */
struct stampd_document_class {
    const char *name;
    const struct stampd_item_class *items; /* ended by one without a name */
    /* What a schema says of the class (doc/schema.md), a JSON object: its items, which must be those above,
     * their exported fields, collections, unique properties and so on.  `stampctl schema apply` applies it to
     * a namespace, which then must not declare the class itself.  NULL: nothing. */
    const char *schema;
    stampd_mutate *mutate; /* only with a schema; NULL: nothing but the rules of the schema */
    const void *reserved[2];
};

/* A search of the application's own, for what `find` cannot ask: one select in PostgreSQL's SQL.  It runs as
 * the workers' role in a transaction that can only read.  The schema of a namespace's tables comes first in
 * the search path: doc, item, and the side tables that doc/schema.md names. */
struct stampd_search {
    const char *name;   /* a letter, then up to 31 letters, digits, '_', '-', '.' */
    const char *sql;    /* without a semicolon; $1, $2… stand for arguments, which are texts: $1::int */
    unsigned arguments; /* how many; up to 16 */
    const void *reserved[4];
};

struct stampd_module {
    uint32_t abi;                                /* STAMPD_ABI */
    const char *name;                            /* for the log: 1 to 32 letters, digits, '_', '-' */
    const char *version;                         /* for the log */
    const struct stampd_document_class *classes; /* ended by one without a name; may be NULL */
    const struct stampd_operation *operations;   /* ended by one without a name; may be NULL */
    /* In each worker, before its first request; may be NULL.  STAMPD_FAULT: the worker ends, and is tried
     * again later; say why with stampd_log. */
    enum stampd_outcome (*worker_start)(void);
    void (*worker_stop)(void); /* in a worker that ends in good order, after its last request; may be NULL */
    const struct stampd_search *searches; /* ended by one without a name; may be NULL */
    const void *reserved[7];
};

/* The one symbol that a module exports.  Members that are not named must be zero. */
extern STAMPD_EXPORT const struct stampd_module stampd_module;

/* ==== The call ======================================================================================= */

/* Has this try failed?  What fails first is what the caller is told. */
bool stampd_failed(const struct stampd_call *call);

/* Raises an exception: fails the try with `code`.  Its first letter is its class: A the request, or what it
 * wants of these documents; N what is named does not exist (status 404); B a bug (500); X the
 * unexpected (500); D another build; C contention (409); O closed (503); S not authorised (403).  Up to 15
 * capitals and digits follow. B, X and C are tried again.  `detail` is one sentence for people, or NULL; then
 * up to 8 arguments (const char *), ended by NULL.  A code of the server itself (AARG, ALIMIT, AVERSION…) has
 * the server's meaning, words and status; XUNKNOWN is refused.  Returns STAMPD_FAULT. */
enum stampd_outcome stampd_raise(struct stampd_call *call, const char *code, const char *detail,
                                 ...) STAMPD_SENTINEL;

const char *stampd_namespace(const struct stampd_call *call);  /* its code, as in the address */
const char *stampd_request_id(const struct stampd_call *call); /* as in the log and in X-Request-Id */
/* Arguments of the request; NULL: absent. */
const char *stampd_account(const struct stampd_call *call);
const char *stampd_key(const struct stampd_call *call);
const char *stampd_lang(const struct stampd_call *call);
bool stampd_is_administrator(const struct stampd_call *call); /* bears the administrator's key */
/* dhop, the session's stamp of the operation: never in the future, not too old.  0: absent. */
int64_t stampd_dhop(const struct stampd_call *call);
/* What follows the operation's name in the address, decoded; NULL from the end on. */
size_t stampd_path_count(const struct stampd_call *call);
const char *stampd_path(const struct stampd_call *call, size_t place);
/* A file of a multipart form.  All of it is as the client says: no file name is a path to be trusted. */
struct stampd_file {
    const char *name;            /* of the form's field */
    const char *file_name;       /* may be empty */
    const char *type;            /* content type */
    struct stampd_bytes content; /* without copies */
};
/* The files in their order; NULL from the end on. */
size_t stampd_file_count(const struct stampd_call *call);
const struct stampd_file *stampd_file(const struct stampd_call *call, size_t place);
/* Milliseconds until the time limit; negative when it is over.  Calls that load documents fail with XTIME
 * then, and a second later the worker is killed. */
int64_t stampd_time_left_ms(const struct stampd_call *call);

/* In afterwork: version of the commit; 0: nothing was written, everything was as wanted.  In work: 0. */
int64_t stampd_commit_version(const struct stampd_call *call);
/* In afterwork: the version that a document has since the commit, whether the operation has changed it or
 * left it as it was; 0: it does not exist.  A client that sends it as `if` succeeds while nobody else writes.
 * Of a document that work has fetched, else BMODULE.  Since 1.6. */
int64_t stampd_version_after(struct stampd_call *call, const char *document_class, const char *id);

/* The present as a stamp; stamps as milliseconds since 1970 UTC, and back. */
int64_t stampd_now(void);
int64_t stampd_stamp_to_epoch_ms(int64_t stamp);
int64_t stampd_stamp_from_epoch_ms(int64_t epoch_ms);
/* The first time of a period (as that of struct stampd_task_class) later than the stamp `after`, for tasks
 * that schedule their successors themselves.  0: the text is no period. */
int64_t stampd_cron_next(const char *period, int64_t after);

/* In work: the caller may have this document synchronised in this request, although he may not read the
 * namespace.  Without it, a client that sends `syncs` to a namespace that is closed to him gets nothing: an
 * operation that does not declare STAMPD_GRANTS_READ is refused with SCLOSED before its work; beside one that
 * does, each document that was not granted is answered {"c","id","closed":true}, whether it exists or not.
 * Grant only what the operation has found the caller may read; any number, before or after the document
 * exists.  A grant lasts for this request and this try.  An answer that is replayed under an Idempotency-Key
 * grants nothing.  Not declared: BMODULE. */
void stampd_grant_read(struct stampd_call *call, const char *document_class, const char *id);

/* ==== Memory ========================================================================================= */

/* `size` bytes, cleared, for as long as the request lives.  Never NULL: when memory runs out, the worker
 * ends (setting memory_mb). */
void *stampd_alloc(struct stampd_call *call, size_t size);
/* A copy with a NUL behind it. */
char *stampd_copy(struct stampd_call *call, const void *data, size_t size);
/* printf into such memory. */
char *stampd_format(struct stampd_call *call, const char *format, ...) STAMPD_PRINTF_LIKE(2, 3);
/* Runs function(pointer) when the request has been answered, last given first: for what is not of this
 * memory. */
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

/* Readers.  They read the member `name` of `object`; with `name` NULL the value `object` itself: an element
 * of an array.  What is not there (also when it is null, or when `object` is NULL) or not of this kind or not
 * within the bounds, which are included, fails the try: with AARG and the member's name when it was an
 * argument, with BCONTENT when it was a stored content.  The functions ending in _or return `otherwise` for
 * what is absent or null. */
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
/* A string of at most `most` bytes, without a copy where it had no escapes. */
struct stampd_bytes stampd_read_bytes(struct stampd_call *call, const struct stampd_json *object,
                                      const char *name, size_t most);
/* A string that is one of `words`, which NULL ends: its place among them.  After a failure: 0. */
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

/* Walking.  None of these fails the try; NULL is allowed everywhere and has no members. */
const struct stampd_json *stampd_member(struct stampd_call *call, const struct stampd_json *object,
                                        const char *name); /* NULL: absent */
const struct stampd_json *stampd_first(struct stampd_call *call,
                                       const struct stampd_json *value); /* element or member; NULL: none */
const struct stampd_json *stampd_next(const struct stampd_json *value);  /* its next sibling; NULL: none */
size_t stampd_count(const struct stampd_json *value);                    /* elements or members */
enum stampd_kind stampd_kind(const struct stampd_json *value);           /* of NULL: STAMPD_NULL */
struct stampd_bytes stampd_member_name(const struct stampd_json *value); /* decoded; no data in an array */
struct stampd_bytes stampd_json_text(const struct stampd_json *value);   /* exactly as it was written */
/* Reads a JSON text from elsewhere, strictly; NULL when it is none.  The text must live as the request. */
const struct stampd_json *stampd_parse(struct stampd_call *call, struct stampd_bytes text);

/* ==== Documents ====================================================================================== */

struct stampd_name {
    const char *document_class;
    const char *id; /* 1 to 255 bytes */
};

/* The newest, to read and to change, and verified at validation: tolerance 0.  One object for the whole try,
 * however often it is asked for.  At most limit_documents (32) different ones.  Never NULL: after a failure
 * one that does not exist and does not change. */
struct stampd_document *stampd_fetch(struct stampd_call *call, const char *document_class, const char *id);
/* The same for a list, in one round trip to the database for all that are not known. */
void stampd_fetch_many(struct stampd_call *call, const struct stampd_name *names, size_t count,
                       struct stampd_document **documents_r);
/* A copy at most `tolerance_s` (1 or more) seconds old, to read: trying to change it is BREADONLY.  Fetched
 * later in the same try it is the newest and may be changed, in both variables. */
struct stampd_document *stampd_read(struct stampd_call *call, const char *document_class, const char *id,
                                    int64_t tolerance_s);

const char *stampd_document_class(const struct stampd_document *document);
const char *stampd_document_id(const struct stampd_document *document);
/* Does it exist, in the eyes of this try: with what it has changed? */
bool stampd_exists(const struct stampd_document *document);
/* As it was found: version, birth of this life, since when removals are known; 0 when it did not exist. */
int64_t stampd_version(const struct stampd_document *document);
int64_t stampd_ctime(const struct stampd_document *document);
int64_t stampd_dtime(const struct stampd_document *document);
/* Bytes of the keys and contents of its items, with what this try has changed. */
int64_t stampd_volume(const struct stampd_document *document);

/* Begins a life if there is none; setting an item does so too. */
void stampd_create(struct stampd_document *document);
/* Ends the life: all items go. */
void stampd_delete(struct stampd_document *document);

/* Runs a search that a module declares.  Its rows, true at an instant of their own: an array of objects,
 * whose members are the columns.  It is not validated with the documents of the operation, so what is to be
 * changed is fetched and looked at again.  `arguments` are texts; NULL: SQL's null.  NULL after a failure:
 * more than 1,000 rows or 16 MiB (ALIMIT), longer than statement_timeout_ms or than the operation may take
 * (XTIME), an argument that is not of the kind that the SQL makes of it (AARG), SQL that fails or wants to
 * write (XDATABASE, and the log says why). */
const struct stampd_json *stampd_run_search(struct stampd_call *call, const char *name,
                                            const char *const *arguments, size_t count);

/* ==== Items ========================================================================================== */

/* `key` is NULL (or "") for a singleton, everywhere. */
struct stampd_item {
    const char *item_class;
    const char *key; /* "": singleton */
    int64_t version; /* of the operation that changed it here; 0: this try did */
    int64_t vop;     /* of the operation that made the content; another when it was copied later */
    struct stampd_bytes content; /* JSON text, or raw text; not a copy */
    bool is_raw;
};

/* The item, in the eyes of this try; false when there is none.  `item_r` may be NULL. */
bool stampd_find_item(const struct stampd_document *document, const char *item_class, const char *key,
                      struct stampd_item *item_r);
/* Its content as a value to read, NULL when there is none or it is raw. */
const struct stampd_json *stampd_item_value(const struct stampd_document *document, const char *item_class,
                                            const char *key);
/* The next item, in the order of classes and keys as bytes; of `item_class` only, unless that is NULL.  Begin
 * with a cleared `item` (= {0}); false at the end.  Changes in between are seen. */
bool stampd_next_item(const struct stampd_document *document, const char *item_class,
                      struct stampd_item *item);

/* Setting: an item with an equal content stays as it is, version included; JSON null removes it.  Contents
 * are not copied: they must live as the request.  In a document of a declared class an item of another class
 * or kind is BMODULE. */
/* A value that was read: from an argument, from another item. */
void stampd_set_value(struct stampd_document *document, const char *item_class, const char *key,
                      const struct stampd_json *value);
/* What was written; the writer is finished by it. */
void stampd_set_written(struct stampd_document *document, const char *item_class, const char *key,
                        struct stampd_writer *writer);
/* A JSON text, which is checked. */
void stampd_set_json(struct stampd_document *document, const char *item_class, const char *key,
                     struct stampd_bytes text);
/* Raw text, which is checked to be UTF-8 without NUL. */
void stampd_set_raw(struct stampd_document *document, const char *item_class, const char *key,
                    struct stampd_bytes text);
/* The same content and kind as an item of another document (or of this one); removes it when that has none.
 * As a declared copy (copied_to) it has the stamp of that item as its `vop`, and follows it from then on. */
void stampd_copy_item(struct stampd_document *document, const char *item_class, const char *key,
                      const struct stampd_document *from, const char *from_class, const char *from_key);
/* Nothing when there is none. */
void stampd_remove_item(struct stampd_document *document, const char *item_class, const char *key);

/* ==== Writing JSON =================================================================================== */

/* A new text: an object or an array that is open.  Inside objects every member has a name, inside arrays none
 * (NULL); commas, quotes and escapes come by themselves.  Anything else is BMODULE, a text that is no UTF-8
 * too.  Names should differ: two equal ones are refused as content of an item. */
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
/* Opens an object or array inside; what follows goes in there until it is closed. */
void stampd_open_object(struct stampd_writer *writer, const char *name);
void stampd_open_array(struct stampd_writer *writer, const char *name);
void stampd_close(struct stampd_writer *writer);
/* The text; closes what is still open and finishes the writer. */
struct stampd_bytes stampd_written(struct stampd_writer *writer);

/* ==== The result ===================================================================================== */

/* An operation has one result or none; a later one replaces it.  JSON is `out` of the answer, which the
 * synchronisations join that the caller asked for; of another kind it is the whole answer, and there are no
 * synchronisations.  All return STAMPD_DONE, or STAMPD_FAULT when the try has failed: they may be the last
 * line of `work`. */
enum stampd_outcome stampd_result(struct stampd_call *call, struct stampd_writer *writer);
enum stampd_outcome stampd_result_value(struct stampd_call *call, const struct stampd_json *value);
enum stampd_outcome stampd_result_json(struct stampd_call *call, struct stampd_bytes text); /* checked */
/* Text, which is checked to be UTF-8.  `mime` NULL: "text/plain; charset=utf-8". */
enum stampd_outcome stampd_result_text(struct stampd_call *call, const char *mime, struct stampd_bytes text);
/* `mime` NULL: "application/octet-stream". */
enum stampd_outcome stampd_result_bytes(struct stampd_call *call, const char *mime,
                                        struct stampd_bytes bytes);

/* In afterwork: the JSON result that work left, to be read; NULL: none, or of another kind. */
const struct stampd_json *stampd_result_of_work(struct stampd_call *call);

/* ==== Tasks ========================================================================================== */

/* A task is an operation of the same namespace that is run later: in another request, again and again until
 * it succeeds or is given up, its effects exactly once (doc/tasks.md).  The commit of this operation creates
 * it; when this operation fails, there is none. */
enum {
    STAMPD_FIRST = -1 /* priority 0, before all others */
};

struct stampd_task {
    const char *operation;     /* any that there is, built in ones too */
    struct stampd_bytes param; /* a JSON object; no data: an empty one.  At most limit_task_param_bytes */
    int64_t start;             /* a stamp: not before.  0: `delay_s` from now */
    int64_t delay_s;
    const char *info; /* words by which administrators find it; NULL: none */
    int priority;     /* 1 to 255, smaller is sooner; 0: 20; STAMPD_FIRST */
    const char
        *resource;      /* while a task of the operation waits for the resource, no other is made: that one
                           takes the new param and info, the later start, the smaller priority; NULL: none */
    const char *domain; /* tasks of a domain run one at a time, by priority and start; NULL: none */
    /* "strict": in its domain it starts after all that were created before it with strict order, also while
     * one of those waits for its next try or is parked; NULL: as above. */
    const char *order;
    /* With a resource: later requests for it move the start at most so far behind the first one's; 0: as far
     * as they say, so that it may never start. */
    int64_t longest_wait_s;
    const void *reserved[2];
};

/* At most limit_tasks in one operation.  Texts are not copied: they must live as the request. */
void stampd_schedule(struct stampd_call *call, const struct stampd_task *task);

/* Is this call a task's?  Then it has no account and no key, nobody sees its result, and it has no afterwork.
 * The others of these give 0 or NULL when it is none. */
bool stampd_is_task(const struct stampd_call *call);
const char *stampd_task_id(const struct stampd_call *call);
const char *stampd_task_info(const struct stampd_call *call);
int64_t stampd_task_start(const struct stampd_call *call);  /* stamp of this attempt's beginning */
unsigned stampd_task_retry(const struct stampd_call *call); /* attempts that failed, or were lost, before */
unsigned stampd_task_step(const struct stampd_call *call);  /* commits that it has made, in all attempts */

/* A task that has more to do than one commit should hold leaves a checkpoint: after the commit `work` begins
 * again at once, in the same request, and is given what was left.  One that leaves none is at its end. After
 * a failure, and when the time of the request is over between two cycles, it goes on from its last
 * checkpoint. NULL: the first cycle.  Setting one without being a task is BMODULE. */
const struct stampd_json *stampd_checkpoint(struct stampd_call *call);
void stampd_set_checkpoint(struct stampd_call *call, struct stampd_writer *writer);

/* If this try fails, its task is parked at once: another attempt makes no sense. */
void stampd_never_retry(struct stampd_call *call);

#ifdef __cplusplus
}
#endif

#endif
