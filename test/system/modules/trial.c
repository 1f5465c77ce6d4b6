/* trial: a module that does what modules should not, and some of what they should. */
#include <stampd.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int started, tries;
static volatile char *volatile nowhere;
static char *volatile last; /* what is here cannot be optimised away */

static enum stampd_outcome start(void)
{
    started++;
    stampd_log(STAMPD_INFO, "trial starts pid=%d", (int)getpid());
    return STAMPD_DONE;
}

static void stop(void)
{
    stampd_log(STAMPD_INFO, "trial stops pid=%d", (int)getpid());
}

static enum stampd_outcome tell_started(struct stampd_call *call)
{
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_integer(result, "started", started);
    stampd_add_integer(result, "pid", getpid());
    return stampd_result(call, result);
}

/* --- harm --- */

static enum stampd_outcome crash(struct stampd_call *call)
{
    static const char *const ways[] = {"trap", "abort", "null", "exit", NULL};
    switch (stampd_read_choice(call, stampd_param(call), "how", ways)) {
    case 0:
        __builtin_trap();
    case 1:
        abort();
    case 2:
        *nowhere = 1;
        break;
    default:
        _exit(0);
    }
    return STAMPD_DONE;
}

static enum stampd_outcome loop(struct stampd_call *call)
{
    stampd_log(STAMPD_INFO, "trial loops");
    stampd_set_json(stampd_fetch(call, "Trial", "loop"), "Count", NULL, stampd_bytes("1", 1));
    for (;;)
        *(volatile int *)&tries += 1;
    return STAMPD_DONE;
}

static enum stampd_outcome write_before(struct stampd_call *call)
{
    stampd_set_json(stampd_fetch(call, "Trial", "after"), "Count", NULL, stampd_bytes("1", 1));
    return STAMPD_DONE;
}

/* Loops too, but asks for documents in between. */
static enum stampd_outcome dawdle(struct stampd_call *call)
{
    while (!stampd_failed(call))
        stampd_read(call, "Trial", stampd_format(call, "%d", ++tries), 60);
    return STAMPD_DONE;
}

static size_t read_bytes(struct stampd_call *call)
{
    return (size_t)stampd_read_integer(call, stampd_param(call), "mb", 1, INT64_C(1) << 40) << 20;
}

/* Takes memory and gives it back. */
static enum stampd_outcome hog(struct stampd_call *call)
{
    size_t size = read_bytes(call);
    char *memory = malloc(size);
    if (!memory)
        return stampd_raise(call, "AMEMORY", "There is not so much.", NULL);
    last = memset(memory, 1, size);
    free(memory);
    return STAMPD_DONE;
}

static enum stampd_outcome hog_of_call(struct stampd_call *call)
{
    stampd_alloc(call, read_bytes(call));
    return STAMPD_DONE;
}

static enum stampd_outcome leak(struct stampd_call *call)
{
    size_t size = read_bytes(call);
    char *memory = malloc(size);
    if (!memory)
        return stampd_raise(call, "AMEMORY", "There is not so much.", NULL);
    last = memset(memory, 1, size);
    return tell_started(call);
}

/* --- exceptions --- */

static enum stampd_outcome raise(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    const char *code = stampd_read_text(call, param, "code", 1, 99);
    const char *one = stampd_read_text_or(call, param, "one", 0, 99, NULL);
    const char *two = stampd_read_text_or(call, param, "two", 0, 99, NULL);
    return stampd_raise(call, code, stampd_read_text_or(call, param, "detail", 0, 99, NULL), one, two, NULL);
}

/* Fails at all tries but each third. */
static enum stampd_outcome stumble(struct stampd_call *call)
{
    if (++tries % 3)
        return stampd_raise(call, stampd_read_text(call, stampd_param(call), "code", 1, 99), NULL, NULL);
    return stampd_result_json(call, stampd_bytes("\"up\"", 4));
}

/* --- work --- */

static enum stampd_outcome count(struct stampd_call *call)
{
    struct stampd_document *counter = stampd_fetch(call, "Trial", "counter");
    const struct stampd_json *present = stampd_item_value(counter, "Count", NULL);
    struct stampd_writer *next = stampd_write_object(call);
    stampd_add_integer(next, "n",
                       stampd_read_integer_or(call, present, present ? "n" : NULL, 0, 1 << 30, 0) + 1);
    stampd_set_written(counter, "Count", NULL, next);
    return stampd_result(call, next);
}

static enum stampd_outcome tell_version(struct stampd_call *call)
{
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_value(result, "work", stampd_result_of_work(call));
    stampd_add_integer(result, "v", stampd_commit_version(call));
    return stampd_result(call, result);
}

static enum stampd_outcome give(struct stampd_call *call)
{
    static const char *const kinds[] = {"nothing", "json", "text", "bytes", NULL};
    switch (stampd_read_choice(call, stampd_param(call), "as", kinds)) {
    case 0:
        return STAMPD_DONE;
    case 1:
        return stampd_result_value(call, stampd_param(call));
    case 2:
        return stampd_result_text(call, "text/html; charset=utf-8", stampd_bytes("<p>h\303\251", 6));
    default:
        return stampd_result_bytes(call, NULL, stampd_bytes("\0\377\r\n\r\n{", 7));
    }
}

/* Takes parts of a document elsewhere, as they are. */
static enum stampd_outcome carry(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    struct stampd_document *trial = stampd_fetch(call, "Trial", "carry");
    stampd_set_value(trial, stampd_read_text(call, param, "class", 1, 16),
                     stampd_read_text_or(call, param, "key", 0, 99, NULL),
                     stampd_member(call, param, "value"));
    return STAMPD_DONE;
}

static const struct stampd_item_class items[] = {{.name = "Count", .is_singleton = true},
                                                 {.name = "Many"},
                                                 {.name = "Raw", .is_raw = true},
                                                 {.name = NULL}};
static const struct stampd_document_class classes[] = {{.name = "Trial", .items = items}, {.name = NULL}};

static const struct stampd_operation operations[] = {
    {.name = "Started", .access = STAMPD_PUBLIC, .is_read_only = true, .work = tell_started},
    {.name = "Crash", .access = STAMPD_PUBLIC, .work = crash},
    {.name = "Loop", .access = STAMPD_PUBLIC, .seconds = 1, .work = loop},
    {.name = "LoopAfter", .access = STAMPD_PUBLIC, .seconds = 1, .work = write_before, .afterwork = loop},
    {.name = "Dawdle", .access = STAMPD_PUBLIC, .seconds = 1, .work = dawdle},
    {.name = "Hog", .access = STAMPD_PUBLIC, .work = hog},
    {.name = "HogOfCall", .access = STAMPD_PUBLIC, .work = hog_of_call},
    {.name = "Leak", .access = STAMPD_PUBLIC, .work = leak},
    {.name = "Raise", .access = STAMPD_PUBLIC, .work = raise},
    {.name = "Stumble", .access = STAMPD_PUBLIC, .work = stumble},
    {.name = "Count", .access = STAMPD_PUBLIC, .work = count, .afterwork = tell_version},
    {.name = "Give", .access = STAMPD_PUBLIC, .work = give},
    {.name = "Carry", .access = STAMPD_PUBLIC, .work = carry},
    {.name = "Rule", .work = give},
    {.name = NULL},
};

const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI,
    .name = "trial",
    .version = "1.0",
    .classes = classes,
    .operations = operations,
    .worker_start = start,
    .worker_stop = stop,
};
