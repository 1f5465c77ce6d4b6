/* module: loading, and the checks at start, each refusal in one line. */
#include "operation/module/module.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/schedule.h"
#include "edge/json/json.h"
#include "model/document/copies.h"
#include "model/document/item.h"
#include "model/document/mutation.h"
#include "model/schema/schema.h"
#include "model/task/cron.h"
#include "operation/attempt.h"
#include "operation/builtin.h"
#include "operation/classes.h"
#include "operation/module/module_document.h"
#include "operation/module/module_filter.h"
#include "operation/module/module_try.h"
#include "operation/registry.h"
#include "segment/counts/metrics.h"

/* An operation of an application, as the engine runs it (struct operation). */

static void module_run_run(struct stampd_call *call, enum stampd_outcome (*function)(struct stampd_call *))
{
    module_try_watch(call);
    enum stampd_outcome outcome = function(call);
    module_try_unwatch(call);
    if (outcome != STAMPD_DONE)
        module_try_fail(call, FAULT_BMODULE, "A fault was returned, but none was raised.", NULL);
}

static void check_sizes(struct stampd_call *call)
{
    int64_t most = module_try_settings(call)->limit_document_bytes,
            items = module_try_settings(call)->limit_items;
    for (const struct stampd_document *document = module_try_documents(call); document;
         document = document->next) {
        const struct draft *draft = document->draft;
        if (!draft || !draft_is_changed(draft))
            continue;
        const struct document *base = draft_base(draft); /* what is above a limit already may shrink */
        if (draft_cost(draft) > most && draft_cost(draft) > document_cost(base))
            module_try_fail_limit(call, "limit_document_bytes", most, draft_cost(draft));
        if (draft_items(draft) > items &&
            draft_items(draft) > (int64_t)base->item_count - (int64_t)base->tombstone_count)
            module_try_fail_limit(call, "limit_items", items, draft_items(draft));
    }
}

static enum fault module_run_work(struct attempt *attempt)
{
    struct stampd_call *call = module_try_begin(attempt, false);
    attempt->reply->mime = MIME_JSON; /* an earlier try may have had another */
    module_run_run(call, module_try_operation(call)->work);
    check_sizes(call);
    if (!module_try_fault(call))
        module_try_write_result(call);
    return module_try_fault(call);
}

static enum fault module_run_afterwork(struct attempt *attempt)
{
    struct stampd_call *call = module_try_begin(attempt, true);
    module_run_run(call, module_try_operation(call)->afterwork);
    if (!module_try_fault(call))
        module_try_write_result(call);
    return module_try_fault(call);
}

enum { NAME_MOST = 32, PATH_MOST = 4096, SEARCH_ARGUMENTS_MOST = 16 };

struct loaded {
    const struct stampd_module *module;
    struct loaded *next;
};
static struct loaded *first, **last = &first;

/* A class of documents of the module that is being added. */
struct added_class {
    const char *name;
    const struct item_class *items;
    size_t count;
};

/* What is being checked, and where the one line goes. */
struct judgement {
    const char *path;
    char *problem;
    size_t problem_size;
};

static bool PRINTF_LIKE(2, 3) module_refuse(const struct judgement *judgement, const char *format, ...)
{
    int size = snprintf(judgement->problem, judgement->problem_size, "module %s: ", judgement->path);
    if (size > 0 && (size_t)size < judgement->problem_size) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(judgement->problem + size, judgement->problem_size - (size_t)size, format, arguments);
        va_end(arguments);
    }
    return false;
}

/* --- what a module declares --- */

static bool module_is_name(const char *name, const char *others)
{
    size_t size = name ? strlen(name) : 0;
    if (!size || size > NAME_MOST)
        return false;
    for (size_t i = 0; i < size; i++) {
        bool is_letter = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z');
        bool is_other = (name[i] >= '0' && name[i] <= '9') || strchr(others, name[i]);
        if (!is_letter && (i == 0 || !is_other))
            return false;
    }
    return true;
}

static bool is_zero(const void *const *reserved, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (reserved[i])
            return false;
    return true;
}

static bool judge_items(const struct judgement *judgement, const struct stampd_document_class *class,
                        size_t *count_r)
{
    size_t count = 0;
    for (const struct stampd_item_class *item = class->items; item && item->name; item++, count++) {
        if (!item_is_class_name(bytes_of(item->name)))
            return module_refuse(judgement, "class %s: %s is no name of a class of items", class->name,
                                 item->name);
        if (item_is_reserved(bytes_of(item->name)))
            return module_refuse(judgement, "class %s: %s", class->name, ITEM_RESERVED);
        if (!is_zero(item->reserved, COUNT_OF(item->reserved)))
            return module_refuse(judgement, "class %s: a reserved member of %s is set", class->name,
                                 item->name);
        for (const struct stampd_item_class *other = class->items; other < item; other++)
            if (strcmp(other->name, item->name) == 0)
                return module_refuse(judgement, "class %s declares %s twice", class->name, item->name);
    }
    *count_r = count;
    return true;
}

/* The schema of a class must be valid, and have the same items. */
static bool judge_schema(const struct judgement *judgement, const struct stampd_document_class *class,
                         size_t count)
{
    struct arena *arena = arena_create("schema");
    const char *text = arena_printf(arena, "{\"classes\":{\"%s\":%s}}", class->name, class->schema);
    struct schema *schema;
    struct schema_problem problem;
    bool is_good = schema_read(arena, bytes_of(text), &schema, &problem) == FAULT_NONE;
    if (!is_good)
        module_refuse(judgement, "%s: %s", problem.path, problem.expected);
    if (is_good && schema->class_count != 1)
        is_good = module_refuse(judgement, "class %s: its schema must be that of one class", class->name);
    for (const struct stampd_item_class *item = class->items; is_good && item && item->name; item++) {
        const struct schema_item *told = schema_find_item(&schema->classes[0], bytes_of(item->name));
        is_good = told && told->is_singleton == item->is_singleton && told->is_raw == item->is_raw;
        if (!is_good)
            module_refuse(judgement, "class %s: its schema says something else of %s", class->name,
                          item->name);
    }
    if (is_good && (schema->classes[0].item_count != count || schema->classes[0].is_open))
        is_good = module_refuse(judgement, "class %s: its schema has other items", class->name);
    arena_destroy(arena);
    return is_good;
}

/* Checks the declared copies of an item; whether the classes can have them is checked when all are known. */
static bool judge_copies(const struct judgement *judgement, const struct stampd_document_class *class,
                         const struct stampd_item_class *item, const struct schema_copies **copies_r)
{
    *copies_r = NULL;
    if (!item->copied_to)
        return !item->separator || module_refuse(judgement, "class %s: %s has a separator and no copies",
                                                 class->name, item->name);
    struct schema_copies *copies = memory_zeroed(1, sizeof *copies, "adding a class");
    *copies_r = copies;
    copies->separator = bytes_of(item->separator ? item->separator : ".");
    if (!copies->separator.size || copies->separator.size > SCHEMA_SEPARATOR_MOST ||
        !bytes_is_utf8(copies->separator))
        return module_refuse(judgement, "class %s: the separator of %s has not 1 to 8 bytes of UTF-8",
                             class->name, item->name);
    for (; item->copied_to[copies->count]; copies->count++) {
        if (copies->count == SCHEMA_COPIES_MOST)
            return module_refuse(judgement, "class %s: %s is copied to more than %d classes", class->name,
                                 item->name, SCHEMA_COPIES_MOST);
        struct bytes name = bytes_of(item->copied_to[copies->count]);
        for (size_t i = 0; i < copies->count; i++)
            if (bytes_equal(copies->classes[i], name))
                return module_refuse(judgement, "class %s: %s is copied to %s twice", class->name, item->name,
                                     name.data);
        copies->classes[copies->count] = name;
    }
    return copies->count ||
           module_refuse(judgement, "class %s: %s is copied to no class", class->name, item->name);
}

static bool add_copies(const struct judgement *judgement, const struct added_class *added)
{
    for (size_t i = 0; i < added->count; i++) {
        const struct item_class *item = &added->items[i];
        for (size_t k = 0; item->copies && k < item->copies->count; k++) {
            const char *refusal = classes_refuse_copy(item->copies->classes[k], item);
            if (refusal)
                return module_refuse(judgement, "class %s: %s cannot be copied to %s: %s", added->name,
                                     item->name.data, item->copies->classes[k].data, refusal);
        }
        if (item->copies)
            copies_declare(bytes_of(added->name), item->name, item->copies);
    }
    return true;
}

static void free_items(struct item_class *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)items[i].copies);
    free(items);
}

/* What the function of a module has made must be valid for storage. */
static struct bytes mutate(void *whose, struct arena *arena, struct bytes item_class, struct bytes content)
{
    const struct stampd_document_class *class = whose;
    struct json *root;
    size_t size = 0;
    const char *item = arena_copy(arena, item_class.data, item_class.size);
    char *text = class->mutate(item, arena_copy(arena, content.data, content.size), content.size, &size);
    if (!text)
        return content;
    struct bytes made = {arena_copy(arena, text, size), size};
    free(text);
    if (json_is_tree(arena, made, 128, 1, &root))
        return made;
    log_often(LOG_LEVEL_ERROR, class->name,
              "the mutation of class %s returned invalid JSON: the content is left as it was", class->name);
    return content;
}

static bool add_class(const struct judgement *judgement, const struct stampd_document_class *class,
                      struct added_class *added_r)
{
    size_t count = 0;
    if (!item_is_class_name(bytes_of(class->name)))
        return module_refuse(judgement, "%s is no name of a class of documents", class->name);
    if (!is_zero(class->reserved, COUNT_OF(class->reserved)))
        return module_refuse(judgement, "class %s: a reserved member is set", class->name);
    if (class->mutate && !class->schema)
        return module_refuse(judgement, "class %s: a mutation needs a schema", class->name);
    if (!judge_items(judgement, class, &count) || (class->schema && !judge_schema(judgement, class, count)))
        return false;
    struct item_class *items = memory_zeroed(count + 1, sizeof *items, "adding a class");
    for (size_t i = 0; i < count; i++) {
        items[i] = (struct item_class){.name = bytes_of(class->items[i].name),
                                       .is_singleton = class->items[i].is_singleton,
                                       .is_raw = class->items[i].is_raw};
        if (!judge_copies(judgement, class, &class->items[i], &items[i].copies)) {
            free_items(items, count);
            return false;
        }
    }
    if (class->mutate)
        mutation_declare(bytes_of(class->name), mutate, (void *)(uintptr_t) class);
    *added_r = (struct added_class){class->name, items, count};
    if (classes_add(bytes_of(class->name), items, count, class->schema))
        return true;
    free_items(items, count);
    return module_refuse(judgement, "class %s is declared already", class->name);
}

/* All of a module, and then the copies between its classes. */
static bool add_classes(const struct judgement *judgement, const struct stampd_document_class *classes)
{
    size_t count = 0;
    while (classes && classes[count].name)
        count++;
    struct added_class *added = memory_zeroed(count + 1, sizeof *added, "adding classes");
    bool is_good = true;
    for (size_t i = 0; is_good && i < count; i++)
        is_good = add_class(judgement, &classes[i], &added[i]);
    for (size_t i = 0; is_good && i < count; i++)
        is_good = add_copies(judgement, &added[i]);
    free(added);
    return is_good;
}

static bool judge_task(const struct judgement *judgement, const struct stampd_operation *from)
{
    const struct stampd_task_class *task = from->task;
    if (!task)
        return true;
    if (task->queue >= SCHEDULE_QUEUES)
        return module_refuse(judgement, "operation %s: there is no queue %u", from->name, task->queue);
    if (task->batch > TASK_BATCH_MOST)
        return module_refuse(judgement, "operation %s: a batch of %u is too large", from->name, task->batch);
    if (task->period && !cron_parse(bytes_of(task->period), &(struct cron){0}))
        return module_refuse(judgement, "operation %s: %s is no period", from->name, task->period);
    if (task->retries && !schedule_is_retries(bytes_of(task->retries)))
        return module_refuse(judgement, "operation %s: %s are no delays", from->name, task->retries);
    if (!is_zero(task->reserved, COUNT_OF(task->reserved)))
        return module_refuse(judgement, "operation %s: a reserved member of its task is set", from->name);
    return true;
}

static struct task_traits traits_of(const struct stampd_module *module, const struct stampd_task_class *task)
{
    if (!task)
        return (struct task_traits){.module = module->name};
    return (struct task_traits){.queue = (int)task->queue,
                                .batch = (int)task->batch,
                                .limit_s = task->seconds,
                                .period = task->period,
                                .retries = task->retries,
                                .module = module->name,
                                .is_never_retried = task->never_retry,
                                .may_clients_schedule = task->clients_may_schedule};
}

static bool add_operation(const struct judgement *judgement, const struct stampd_module *module,
                          const struct stampd_operation *from)
{
    if (!module_is_name(from->name, "_-."))
        return module_refuse(judgement, "%s is no name of an operation", from->name);
    if (!from->work)
        return module_refuse(judgement, "operation %s has no work", from->name);
    if (from->access != STAMPD_ADMIN && from->access != STAMPD_PUBLIC)
        return module_refuse(judgement, "operation %s has an unknown access", from->name);
    if (from->flags & ~(uintptr_t)STAMPD_GRANTS_READ)
        return module_refuse(judgement, "operation %s has an unknown flag", from->name);
    if (!is_zero(from->reserved, COUNT_OF(from->reserved)))
        return module_refuse(judgement, "operation %s: a reserved member is set", from->name);
    if (!judge_task(judgement, from))
        return false;
    struct operation *operation = memory_zeroed(1, sizeof *operation, "adding an operation");
    *operation = (struct operation){.name = from->name,
                                    .right = from->access == STAMPD_PUBLIC ? RIGHT_PUBLIC : RIGHT_ADMIN,
                                    .work = module_run_work,
                                    .afterwork = from->afterwork ? module_run_afterwork : NULL,
                                    .only_reads = from->is_read_only,
                                    .is_safe = from->is_read_only,
                                    .may_grant = (from->flags & STAMPD_GRANTS_READ) != 0,
                                    .limit_s = from->seconds,
                                    .task = traits_of(module, from->task),
                                    .application = from};
    if (registry_add(operation))
        return true;
    free(operation);
    return module_refuse(judgement, "there is an operation %s already", from->name);
}

const struct stampd_search *module_find_search(const char *name)
{
    for (const struct loaded *loaded = first; loaded; loaded = loaded->next)
        for (const struct stampd_search *search = loaded->module->searches; search && search->name; search++)
            if (strcmp(search->name, name) == 0)
                return search;
    return NULL;
}

static bool judge_search(const struct judgement *judgement, const struct stampd_module *module,
                         const struct stampd_search *search)
{
    if (!module_is_name(search->name, "_-."))
        return module_refuse(judgement, "%s is no name of a search", search->name);
    if (!search->sql || strchr(search->sql, ';') || search->arguments > SEARCH_ARGUMENTS_MOST)
        return module_refuse(
            judgement, "search %s: one select without a semicolon, with up to 16 arguments, is expected",
            search->name);
    if (!is_zero(search->reserved, COUNT_OF(search->reserved)))
        return module_refuse(judgement, "search %s: a reserved member is set", search->name);
    bool is_twice = module_find_search(search->name) != NULL;
    for (const struct stampd_search *other = module->searches; other < search; other++)
        is_twice |= strcmp(other->name, search->name) == 0;
    return !is_twice || module_refuse(judgement, "there is a search %s already", search->name);
}

static bool add_filter(const struct judgement *judgement, const struct stampd_module *module,
                       const struct stampd_filter *filter)
{
    const char *why = module_filter_add(filter, module->version);
    return !why || module_refuse(judgement, "filter of %s: %s", filter->document_class, why);
}

/* The first member of every version of the struct; nothing else is read before it is checked. */
static bool judge_abi(const struct judgement *judgement, uint32_t abi)
{
    if (abi / 1000 != STAMPD_ABI_MAJOR)
        return module_refuse(judgement,
                             "built for version %u of stampd.h, this server has %d: build it again",
                             abi / 1000, STAMPD_ABI_MAJOR);
    if (abi % 1000 > STAMPD_ABI_MINOR)
        return module_refuse(judgement, "built for version %u.%u of stampd.h, this server has %d.%d: too new",
                             abi / 1000, abi % 1000, STAMPD_ABI_MAJOR, STAMPD_ABI_MINOR);
    return true;
}

bool module_add(const struct stampd_module *module, const char *path, char *problem, size_t problem_size)
{
    const struct judgement judgement = {path, problem, problem_size};
    if (!judge_abi(&judgement, module->abi))
        return false;
    if (!module_is_name(module->name, "_-"))
        return module_refuse(&judgement, "%s is no name of a module",
                             module->name ? module->name : "nothing");
    if (!is_zero(module->reserved, COUNT_OF(module->reserved)))
        return module_refuse(&judgement, "a reserved member is set");
    if (!add_classes(&judgement, module->classes))
        return false;
    for (const struct stampd_search *search = module->searches; search && search->name; search++)
        if (!judge_search(&judgement, module, search))
            return false;
    const struct stampd_operation *operation = module->operations;
    for (; operation && operation->name; operation++)
        if (!add_operation(&judgement, module, operation))
            return false;
    const struct stampd_filter *filter = module->filters;
    for (; filter && filter->document_class; filter++)
        if (!add_filter(&judgement, module, filter))
            return false;
    struct loaded *loaded = memory_zeroed(1, sizeof *loaded, "adding a module");
    loaded->module = module;
    *last = loaded;
    last = &loaded->next;
    return true;
}

/* --- shared objects --- */

/* A user that can write the file controls the server. */
static bool judge_file(const struct judgement *judgement)
{
    struct stat status;
    if (stat(judgement->path, &status))
        return module_refuse(judgement, "%m");
    if (!S_ISREG(status.st_mode))
        return module_refuse(judgement, "no regular file");
    if (status.st_mode & S_IWOTH)
        return module_refuse(judgement, "any user may write it");
    if (geteuid() == 0 && status.st_uid != 0) /* of stampctl: the server has given up root before */
        return module_refuse(judgement, "root loads only what belongs to root");
    return true;
}

static bool module_load(const char *path, char *problem, size_t problem_size)
{
    const struct judgement judgement = {path, problem, problem_size};
    if (!judge_file(&judgement))
        return false;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror(); /* "<path>: words" */
        size_t size = strlen(path);
        bool repeats = strncmp(why, path, size) == 0 && strncmp(why + size, ": ", 2) == 0;
        return module_refuse(&judgement, "%s", repeats ? why + size + 2 : why);
    }
    const struct stampd_module *module = dlsym(handle, "stampd_module");
    if (!module)
        return module_refuse(&judgement, "exports no stampd_module");
    if (!module_add(module, path, problem, problem_size))
        return false;
    log_info("module name=%s version=%s path=%s", module->name, module->version ? module->version : "", path);
    return true;
}

bool module_load_all(const struct settings *settings, char *problem, size_t problem_size)
{
    const char *rest = settings->modules;
    builtin_register();
    for (size_t size; rest += strspn(rest, " \t"), (size = strcspn(rest, " \t")) > 0; rest += size) {
        char path[PATH_MOST];
        const char *folder = *rest == '/' ? "" : STAMPD_MODULE_DIRECTORY "/";
        int length = snprintf(path, sizeof path, "%s%.*s", folder, (int)size, rest);
        if (length < 0 || length >= (int)sizeof path) {
            snprintf(problem, problem_size, "modules: a path is too long");
            return false;
        }
        if (!module_load(path, problem, problem_size))
            return false;
    }
    return true;
}

/* --- hooks --- */

bool module_start_worker(const struct settings *settings, struct segment *segment)
{
    struct pulse *pulse = metrics_pulse(segment, segment_index(segment));
    for (const struct loaded *loaded = first; loaded; loaded = loaded->next) {
        const struct stampd_module *module = loaded->module;
        if (!module->worker_start)
            continue;
        module_watch(pulse, module->name, clock_monotonic_ms() + settings->limit_operation_s * 1000);
        enum stampd_outcome outcome = module->worker_start();
        module_watch_end(pulse);
        if (outcome != STAMPD_DONE) {
            log_error("worker_start failed module=%s", module->name);
            return false;
        }
    }
    return true;
}

void module_stop_worker(void)
{
    for (const struct loaded *loaded = first; loaded; loaded = loaded->next)
        if (loaded->module->worker_stop)
            loaded->module->worker_stop();
}
