/* fuzz_request: the whole road of a request, from FastCGI parameters and body to head and body of the answer;
 * rows are in memory (fake_store).  The first byte chooses the method, the second the namespace and its
 * access, the third what the store answers; then come lines: the address, the content type, headers as "a
 * value" (their first letters), an empty line, the body.  Every answer has a well-formed head; its JSON is
 * JSON; a fault's code is in the table, and nothing was committed. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "operation/access/configurations.h"
#include "operation/access/verified_tokens.h"
#include "operation/builtin.h"
#include "operation/worker_context.h"
#include "operation/reply.h"
#include "serve/route.h"
#include "segment/processes.h"
#include "segment/slots.h"
#include "segment/segment_open.h"
#include "http/cors.h"
#include "http/request.h"
#include "store/documents/store_commit.h"
#include "test/unit/fake_store.h"
#include "test/unit/fake_tasks.h"

const char fuzz_target[] = "request";

enum { HEADERS = 8, FLOOR_STATUS = 200 };

/* A request as nginx would hand it on. */
struct letter {
    char method, ns;
    struct bytes uri, type, body;
    struct bytes headers[HEADERS];
};

static const struct {
    char letter;
    const char *name;
} header_names[HEADERS] = {
    {'a', "HTTP_ACCEPT"},          {'b', "HTTP_X_STAMPD_BUILD"}, {'i', "STAMPD_REQUEST_ID"},
    {'k', "HTTP_IDEMPOTENCY_KEY"}, {'m', "HTTP_IF_MATCH"},       {'n', "HTTP_IF_NONE_MATCH"},
    {'o', "HTTP_ORIGIN"},          {'z', "HTTP_AUTHORIZATION"},
};

static struct settings settings;
static struct segment *segment;
static struct arena *arena;
static struct builder input, output, head;

/* --- reading the input --- */

static struct bytes take_line(struct bytes *rest)
{
    const char *end = rest->size ? memchr(rest->data, '\n', rest->size) : NULL;
    struct bytes line = {rest->data, end ? (size_t)(end - rest->data) : rest->size};
    size_t taken = line.size + (end ? 1 : 0);
    *rest = (struct bytes){taken ? rest->data + taken : rest->data, rest->size - taken};
    return line;
}

/* A parameter of FastCGI ends at its NUL. */
static struct bytes as_parameter(struct bytes line)
{
    size_t size = line.size ? strnlen(line.data, line.size) : 0;
    return bytes_of(arena_copy(arena, size ? line.data : "", size));
}

static struct letter read_letter(struct bytes text)
{
    struct letter letter = {.method = text.data[0], .ns = text.data[1]};
    fake.load_fault = text.data[2] == 'x' ? FAULT_XAWAY : FAULT_NONE;
    fake.outcome = text.data[2] == 'u' ? COMMIT_UNKNOWN : text.data[2] == 'r' ? COMMIT_REFUSED : COMMIT_DONE;
    fake.outcome_fault = text.data[2] == 'u'   ? FAULT_XUNKNOWN
                         : text.data[2] == 'r' ? FAULT_STALE
                                               : FAULT_NONE;
    text = (struct bytes){text.data + 3, text.size - 3};
    letter.uri = as_parameter(take_line(&text));
    letter.type = as_parameter(take_line(&text));
    for (struct bytes line; (line = take_line(&text)).size;)
        for (size_t i = 0; i < HEADERS; i++)
            if (line.data[0] == header_names[i].letter && line.size > 2)
                letter.headers[i] = as_parameter((struct bytes){line.data + 2, line.size - 2});
    letter.body = text;
    return letter;
}

static const char *method_of(char letter)
{
    static const char *const methods[] = {"GET",    "HEAD",    "POST", "PUT", "PATCH",
                                          "DELETE", "OPTIONS", "BREW", ""};
    return methods[(unsigned char)letter % COUNT_OF(methods)];
}

static struct bytes letter_parameter(const void *context, struct bytes name)
{
    const struct letter *letter = context;
    bool is_probe = letter->ns == 'p';
    const struct {
        const char *name;
        struct bytes value;
    } all[] = {
        {"REQUEST_METHOD", bytes_of(method_of(letter->method))},
        {"REQUEST_URI", letter->uri},
        {"CONTENT_TYPE", letter->type},
        {"STAMPD_NS", is_probe ? BYTES("") : BYTES("n")},
        {"STAMPD_DATABASE", is_probe || letter->ns == '-' ? BYTES("") : BYTES("n")},
        {"STAMPD_ENDPOINT", is_probe ? BYTES("probe") : BYTES("public")},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (bytes_equal(bytes_of(all[i].name), name))
            return all[i].value;
    for (size_t i = 0; i < HEADERS; i++)
        if (bytes_equal(bytes_of(header_names[i].name), name))
            return letter->headers[i];
    return NO_BYTES;
}

static enum fault letter_body(void *context, size_t limit, struct builder *body, int64_t *size_r)
{
    const struct letter *letter = context;
    *size_r = (int64_t)letter->body.size;
    if (letter->body.size > limit)
        return FAULT_ALIMIT;
    builder_add_bytes(body, letter->body);
    return FAULT_NONE;
}

/* --- the answer --- */

static struct bytes field(const char *name)
{
    struct bytes rest = builder_bytes(&head);
    size_t size = strlen(name);
    while (rest.size) {
        struct bytes line = take_line(&rest);
        if (line.size > size + 3 && memcmp(line.data, name, size) == 0 && line.data[size] == ':')
            return (struct bytes){line.data + size + 2, line.size - size - 3};
    }
    return NO_BYTES;
}

/* Lines "Name: value", each once, visible ASCII and blanks; then an empty one. */
static void check_head(void)
{
    struct bytes rest = builder_bytes(&head);
    const char *names = ".";
    while (rest.size > 2) {
        struct bytes line = take_line(&rest);
        assert(line.size > 4 && line.data[line.size - 1] == '\r');
        const char *colon = memchr(line.data, ':', line.size);
        assert(colon && colon > line.data && colon[1] == ' ');
        for (size_t i = 0; i + 1 < line.size; i++)
            assert(line.data[i] >= ' ' && line.data[i] <= '~');
        const char *name = arena_printf(arena, ".%.*s.", (int)(colon - line.data), line.data);
        assert(!strstr(names, name));
        names = arena_printf(arena, "%s%s", names, name + 1);
    }
    assert(bytes_equal(rest, BYTES("\r\n")));
}

static const struct json *parse(struct bytes text)
{
    static const struct json_limits limits = {.depth = 64, .tree_depth = 3};
    struct json *root;
    struct json_problem problem;
    enum fault fault = json_read(arena, text, &limits, &root, &problem);
    assert(fault == FAULT_NONE && root->kind == JSON_OBJECT);
    return root;
}

static bool is_known(struct bytes code)
{
#define FAULT(name, ...)                                                                                     \
    if (bytes_equal(code, BYTES(#name)))                                                                     \
        return true;
#define CLASS(letter, remedy)
#include "base/fault_table.h"
#undef CLASS
#undef FAULT
    return false;
}

static void check_problem(struct bytes body, int64_t status)
{
    const struct json *problem = parse(body), *args = json_member(problem, "args");
    int64_t told, major, phase;
    assert(json_is_i64(json_member(problem, "status"), &told) && told == status);
    assert(is_known(json_member(problem, "code")->value));
    assert(json_is_i64(json_member(problem, "major"), &major) && major >= 1 && major <= 7);
    assert(json_is_i64(json_member(problem, "phase"), &phase) && phase >= 0 && phase <= 5);
    assert(json_member(problem, "title")->value.size && json_member(problem, "message")->value.size);
    assert(args && args->kind == JSON_ARRAY);
}

static void check_answer(const struct response_form *form, const struct reply *reply)
{
    int64_t status = 0, length = -1;
    struct bytes body = builder_bytes(reply->body), type = field("Content-Type");
    check_head();
    bool has_status = bytes_to_i64((struct bytes){field("Status").data, 3}, &status);
    assert(has_status && status >= FLOOR_STATUS && status <= 599 &&
           (status >= 400) == (reply->fault != 0 || status == 503));
    if (status == 204 || status == 304) {
        assert(!body.size && !type.data);
        return;
    }
    assert(bytes_to_i64(field("Content-Length"), &length) && length == (int64_t)body.size);
    assert(response_body(form, reply).size == (form->is_head ? 0 : body.size));
    assert(type.data && bytes_is_utf8(body));
    if (bytes_equal(type, BYTES("application/problem+json")))
        check_problem(body, status);
    else if (bytes_equal(type, BYTES("application/json")))
        parse(body);
    else
        assert(!reply->fault || form->is_for_people);
}

/* --- one request --- */

static void run(struct worker_context *worker_context, struct request *request, struct reply *reply)
{
    switch (request->call.route) {
    case CALL_OPTIONS:
        reply->status = 204;
        break;
    case CALL_LIVE:
    case CALL_READY:
    case CALL_METRICS: /* figures of an instance, which is not there */
        reply->mime = "text/plain";
        break;
    default:
        route_run(worker_context, &request->call, reply);
    }
}

static void serve(const struct letter *letter)
{
    struct worker_context worker_context = {.settings = &settings,
                                            .segment = segment,
                                            .documents = documents_create(&settings, segment),
                                            .configurations = configurations_create(),
                                            .verified_tokens = verified_tokens_create()};
    struct request_source source = {
        .parameter = letter_parameter, .read_body = letter_body, .context = (void *)(uintptr_t)letter};
    struct reply reply = {.body = &output};
    struct request request;
    if (!request_read(&settings, arena, &source, &input, &request, &reply))
        run(&worker_context, &request, &reply);
    /* what was refused has changed nothing: the outcome of a commit decides, or what comes behind it */
    assert(!reply.fault || !fake.commits || fake.outcome != COMMIT_DONE || reply.phase > PHASE_VALIDATION);
    cors_decide(&worker_context, &request.call, request.origin, &request.form);
    response_compose(&request.form, &reply, &head);
    check_answer(&request.form, &reply);
    verified_tokens_destroy(worker_context.verified_tokens);
    configurations_destroy(worker_context.configurations);
    documents_destroy(worker_context.documents);
}

/* Limits so small that inputs reach them. */
static void start(void)
{
    builtin_register();
    static const char text[] =
        "limit_body_bytes = 1024\nlimit_content_bytes = 64\nlimit_depth = 9\n"
        "limit_document_bytes = 1024\nlimit_documents = 4\nlimit_name_bytes = 16\n"
        "limit_syncs = 5\nlimit_kept_bytes = 100\ncache_mb = 1\nz_database = z\n"
        "admin_key_sha256 = "
        "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n" /* secret */
        "queue_key_sha256 = "
        "00b109cf1123a591253cc534b17e5268eb8fc2fbb7d6772de7a55c135ef1282f\n"; /* queue */
    char path[] = "/tmp/fuzz_request.XXXXXX", problem[256];
    int index, fd = mkstemp(path);
    bool is_written = fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1;
    if (!is_written || !settings_load(&settings, path, problem, sizeof problem))
        abort();
    close(fd);
    unlink(path);
    if (!segment_open(&segment, path, 1024, 0, problem, sizeof problem))
        abort();
    unlink(path);
    if (processes_take(segment, 1, 1, 1, &index) != 1)
        abort();
    segment_join(segment, index);
    arena = arena_create("fuzz");
}

/* What searches, collections and tasks are asked of. */
static void fill_store(void)
{
    fake.schema = "{\"classes\":{\"Person\":{\"items\":{\"Main\":{\"singleton\":true,\"fields\":"
                  "{\"team\":\"string\",\"birth\":\"int\"}},\"Adr\":{\"fields\":{\"mails\":\"string[]\"}}},"
                  "\"collections\":{\"byTeam\":{\"key\":[\"Main.team\"],\"mutable\":true},\"bySkill\":"
                  "{\"key\":[\"Main.skills\"],\"list\":true,\"mutable\":true}}}}}";
    fake_add_task("t1", "put", "{\"docs\":[{\"c\":\"Note\",\"id\":\"x\"}]}");
    fake_add_task("t2", "sync", "{}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    if (!arena)
        start();
    fake_reset();
    fill_store();
    fake_change("Namespace", "n", INT64_C(261121000000000),
                data[1] == 'o'   ? "{\"database\":\"n\",\"access\":\"open\"}"
                : data[1] == 'r' ? "{\"database\":\"n\",\"access\":\"read\"}"
                : data[1] == '!' ? "{\"database\":\"n\",\"access\":\"open\",\"off\":\"at rest\"}"
                                 : "{\"database\":\"n\"}");
    fake_change("Note", "a", INT64_C(261121103000123), "{\"title\":\"a\"}");
    fake_change("Note", "b", INT64_C(261121103000124), NULL);
    slots_move_all(segment);
    struct letter letter = read_letter((struct bytes){(const char *)data, size});
    serve(&letter);
    arena_reset(arena);
    builder_clear(&input, 0);
    builder_clear(&output, 4096);
    builder_clear(&head, 4096);
    return 0;
}
