/* history: a module whose operation reads some documents and changes others in one atomic step, and one that
 * asks for tasks which count, and one that makes copies. */
#include <stampd.h>

#include <string.h>
#include <time.h>

enum { DOCUMENTS_MOST = 16, LIST_LONGEST = 16, REST_MOST_MS = 200 };

static struct stampd_name read_name(struct stampd_call *call, const struct stampd_json *element)
{
    struct stampd_name name = {stampd_read_text(call, element, "c", 1, 16),
                               stampd_read_text(call, element, "id", 1, 64)};
    return name;
}

/* Appends to the list, keeps its end only, and counts. */
static void push(struct stampd_call *call, struct stampd_document *document, const char *operation)
{
    const struct stampd_json *list = stampd_item_value(document, "List", NULL);
    size_t surplus = stampd_count(list) >= LIST_LONGEST ? stampd_count(list) - LIST_LONGEST + 1 : 0;
    struct stampd_writer *longer = stampd_write_array(call);
    size_t place = 0;
    for (const struct stampd_json *one = stampd_first(call, list); one; one = stampd_next(one))
        if (place++ >= surplus)
            stampd_add_value(longer, NULL, one);
    stampd_add_text(longer, NULL, operation);
    const struct stampd_json *count = stampd_item_value(document, "Count", NULL);
    int64_t counted = count ? stampd_read_integer(call, count, NULL, 0, INT64_MAX - 1) : 0;
    stampd_set_written(document, "List", NULL, longer);
    const char *digits = stampd_format(call, "%lld", (long long)counted + 1);
    stampd_set_json(document, "Count", NULL, stampd_bytes(digits, strlen(digits)));
}

static void set_text(struct stampd_call *call, struct stampd_document *document, const char *item_class,
                     const char *key, const char *text)
{
    const char *quoted = stampd_format(call, "\"%s\"", text);
    stampd_set_json(document, item_class, key, stampd_bytes(quoted, strlen(quoted)));
}

static void change(struct stampd_call *call, const struct stampd_json *element,
                   struct stampd_document *document, const char *operation)
{
    static const char *const ways[] = {"push", "end", "renew", NULL};
    size_t way = stampd_read_choice(call, element, "how", ways);
    int64_t expected = stampd_read_integer_or(call, element, "if", 0, INT64_MAX, -1);
    if (expected >= 0 && expected != stampd_version(document))
        stampd_raise(call, "AVERSION", NULL, stampd_document_class(document), stampd_document_id(document),
                     stampd_format(call, "%lld", (long long)stampd_version(document)), NULL);
    if (way > 0)
        stampd_delete(document);
    if (way == 1)
        return;
    set_text(call, document, "Last", NULL, operation);
    set_text(call, document, "Line", operation, operation);
    push(call, document, operation);
}

/* As `get` gives it. */
static void tell(struct stampd_writer *result, const struct stampd_document *document)
{
    struct stampd_item item = {0};
    stampd_open_object(result, NULL);
    stampd_add_text(result, "c", stampd_document_class(document));
    stampd_add_text(result, "id", stampd_document_id(document));
    stampd_add_integer(result, "v", stampd_version(document));
    stampd_add_integer(result, "ct", stampd_ctime(document));
    stampd_open_array(result, "items");
    while (stampd_next_item(document, NULL, &item)) {
        stampd_open_object(result, NULL);
        stampd_add_text(result, "c", item.item_class);
        if (*item.key)
            stampd_add_text(result, "k", item.key);
        stampd_add_integer(result, "v", item.version);
        stampd_add_content(result, "j", &item);
        stampd_close(result);
    }
    stampd_close(result);
    stampd_close(result);
}

static void rest(int64_t ms)
{
    struct timespec left = {.tv_sec = 0, .tv_nsec = ms * 1000000};
    while (ms && nanosleep(&left, &left) < 0)
        ;
}

static void read_documents(struct stampd_call *call, bool may_write)
{
    const struct stampd_json *param = stampd_param(call);
    const struct stampd_json *reads = stampd_read_array(call, param, "reads", 0, DOCUMENTS_MOST);
    const struct stampd_json *writes =
        may_write ? stampd_read_array(call, param, "writes", 0, DOCUMENTS_MOST) : NULL;
    const char *operation = may_write ? stampd_read_text(call, param, "operation", 1, 64) : "";
    struct stampd_name names[2 * DOCUMENTS_MOST];
    struct stampd_document *documents[2 * DOCUMENTS_MOST];
    size_t count = 0;
    for (const struct stampd_json *one = stampd_first(call, reads); one; one = stampd_next(one))
        names[count++] = read_name(call, one);
    for (const struct stampd_json *one = stampd_first(call, writes); one; one = stampd_next(one))
        names[count++] = read_name(call, one);
    if (stampd_failed(call))
        return;
    stampd_fetch_many(call, names, count, documents);
    if (stampd_failed(call))
        return;
    struct stampd_writer *result = stampd_write_object(call);
    stampd_open_array(result, "docs");
    size_t read_count = stampd_count(reads), place = read_count;
    for (size_t i = 0; i < read_count; i++)
        tell(result, documents[i]);
    stampd_close(result);
    rest(stampd_read_integer_or(call, param, "rest_ms", 0, REST_MOST_MS, 0));
    for (const struct stampd_json *one = stampd_first(call, writes); one; one = stampd_next(one))
        change(call, one, documents[place++], operation);
    stampd_result(call, result);
}

static enum stampd_outcome transact(struct stampd_call *call)
{
    read_documents(call, true);
    return STAMPD_DONE;
}

static enum stampd_outcome observation(struct stampd_call *call)
{
    read_documents(call, false);
    return STAMPD_DONE;
}

/* The version of the commit, beside what was read. */
static enum stampd_outcome tell_version(struct stampd_call *call)
{
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_integer(result, "v", stampd_commit_version(call));
    stampd_add_value(result, "docs", stampd_member(call, stampd_result_of_work(call), "docs"));
    return stampd_result(call, result);
}

/* --- tasks --- */

/* One more in the item Done.<key> of the document Tally/<tally>. */
static void count(struct stampd_call *call, const struct stampd_json *param)
{
    const char *key = stampd_read_text(call, param, "key", 1, 64);
    struct stampd_document *tally =
        stampd_fetch(call, "Tally", stampd_read_text(call, param, "tally", 1, 64));
    const struct stampd_json *counted = stampd_item_value(tally, "Done", key);
    int64_t before = counted ? stampd_read_integer(call, counted, NULL, 0, INT32_MAX) : 0;
    const char *digits = stampd_format(call, "%lld", (long long)before + 1);
    stampd_set_json(tally, "Done", key, stampd_bytes(digits, strlen(digits)));
}

static void schedule(struct stampd_call *call, const struct stampd_json *order)
{
    struct stampd_task task = {
        .operation = stampd_read_text(call, order, "op", 1, 32),
        .param = stampd_json_text(stampd_member(call, order, "param")),
        .domain = stampd_read_text_or(call, order, "domain", 1, 16, NULL),
    };
    if (!stampd_failed(call))
        stampd_schedule(call, &task);
}

/* Asks for the tasks in `tasks`, all of them or, when it fails, none. */
static enum stampd_outcome ask(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    const struct stampd_json *tasks = stampd_read_array(call, param, "tasks", 0, DOCUMENTS_MOST);
    for (const struct stampd_json *one = stampd_first(call, tasks); one; one = stampd_next(one))
        schedule(call, one);
    if (stampd_read_boolean_or(call, param, "fail", false))
        return stampd_raise(call, "AREFUSED", "As told.", NULL);
    struct stampd_writer *result = stampd_write_object(call);
    stampd_open_array(result, "docs");
    stampd_close(result);
    return stampd_result(call, result);
}

/* A task: asks for its child, without any document whose version would tell of a second time; or counts, once
 * in each of `times` commits.  Fails in its first `fail` attempts, at its last commit. */
static enum stampd_outcome tally(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call), *child = stampd_member(call, param, "child");
    const struct stampd_json *checkpoint = stampd_checkpoint(call);
    int64_t done = checkpoint ? stampd_read_integer(call, checkpoint, "done", 0, INT32_MAX) : 0;
    if (child)
        schedule(call, child);
    else
        count(call, param);
    rest(stampd_read_integer_or(call, param, "rest_ms", 0, REST_MOST_MS, 0));
    if (done + 1 < stampd_read_integer_or(call, param, "times", 1, INT32_MAX, 1)) {
        struct stampd_writer *left = stampd_write_object(call);
        stampd_add_integer(left, "done", done + 1);
        stampd_set_checkpoint(call, left);
        return STAMPD_DONE;
    }
    if (stampd_task_retry(call) < stampd_read_integer_or(call, param, "fail", 0, INT32_MAX, 0))
        return stampd_raise(call, "AFAIL", "As told.", NULL);
    return STAMPD_DONE;
}

/* --- copies --- */

/* The document Foll/<follower> gets copies of the items Src of the sources, or loses those that are not
 * there. */
static enum stampd_outcome follow(struct stampd_call *call)
{
    const struct stampd_json *param = stampd_param(call);
    const struct stampd_json *sources = stampd_read_array(call, param, "sources", 1, DOCUMENTS_MOST);
    struct stampd_name names[DOCUMENTS_MOST + 1] = {
        {"Foll", stampd_read_text(call, param, "follower", 1, 64)}};
    struct stampd_document *documents[DOCUMENTS_MOST + 1];
    size_t count = 1;
    for (const struct stampd_json *one = stampd_first(call, sources); one; one = stampd_next(one))
        names[count++] = (struct stampd_name){"Hot", stampd_read_text(call, one, NULL, 1, 64)};
    if (stampd_failed(call))
        return STAMPD_DONE;
    stampd_fetch_many(call, names, count, documents);
    for (size_t i = 1; i < count && !stampd_failed(call); i++)
        stampd_copy_item(documents[0], "Src", names[i].id, documents[i], "Src", NULL);
    return STAMPD_DONE;
}

static const struct stampd_task_class together = {.batch = 8};

static const struct stampd_operation operations[] = {
    {.name = "Transact", .access = STAMPD_PUBLIC, .work = transact, .afterwork = tell_version},
    {.name = "Look", .access = STAMPD_PUBLIC, .is_read_only = true, .work = observation},
    {.name = "Ask", .access = STAMPD_PUBLIC, .work = ask},
    {.name = "Follow", .access = STAMPD_PUBLIC, .work = follow},
    {.name = "Tally", .work = tally},
    {.name = "TallyTogether", .work = tally, .task = &together},
    {.name = NULL},
};

const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI, .name = "history", .version = "1.0", .operations = operations};
