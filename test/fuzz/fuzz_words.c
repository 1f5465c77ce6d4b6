/* fuzz_words: small texts that people write: stamps, periods of tasks, lists of the settings, crash points,
 * codes of namespaces, directives of nginx, templates; and addresses and keys that browsers tell of their
 * push services.  The first byte chooses. */
#include "fuzz.h"

#include "base/arena.h"
#include "base/coding/base64.h"
#include "base/crash.h"
#include "base/schedule.h"
#include "control/nginx/directive.h"
#include "control/ns/ns_registry.h"
#include "control/nginx/template.h"
#include "model/task/cron.h"
#include "model/document/stamp.h"
#include "operation/push/webpush.h"

const char fuzz_target[] = "words";

static void check_stamp(struct bytes text)
{
    int64_t stamp;
    char again[STAMP_DIGITS + 1];
    if (!stamp_from_text(text, &stamp))
        return;
    stamp_to_text(stamp, again);
    assert(stamp_is_valid(stamp) && bytes_equal(text, bytes_of(again)));
    assert(stamp_from_epoch_ms(stamp_to_epoch_ms(stamp)) == stamp);
    assert(stamp_next(stamp) > stamp || stamp == STAMP_MAX);
}

static void check_cron(struct bytes text)
{
    struct cron cron;
    int64_t at_ms = INT64_C(1763694242000);
    if (!cron_parse(text, &cron))
        return;
    for (int i = 0; i < 3; i++) {
        int64_t next_ms = cron_next_ms(&cron, at_ms);
        assert(next_ms > at_ms && next_ms - at_ms <= INT64_C(366) * 86400 * 1000 && next_ms % 60000 == 0);
        at_ms = next_ms;
    }
}

static void check_lists(const char *text)
{
    int concurrency[SCHEDULE_QUEUES];
    int64_t after_ms;
    const char *wrong;
    size_t size;
    int sum = schedule_concurrency(text, concurrency);
    assert(sum >= 0 && sum <= SCHEDULE_QUEUES * SCHEDULE_CONCURRENCY_MAX && (!sum || concurrency[0] > 0));
    struct bytes retries;
    if (schedule_is_retries_of(text))
        assert(!schedule_retries_of(text, BYTES("Report"), &retries) || schedule_is_retries(retries));
    if (schedule_is_retries(bytes_of(text))) {
        int64_t failure = 1;
        while (schedule_retry_ms(bytes_of(text), failure, 1000, &after_ms)) {
            assert(after_ms >= 0 && after_ms <= SCHEDULE_MINUTES_MAX * INT64_C(120000));
            assert(++failure <= SCHEDULE_RETRIES_MAX + 1);
        }
    }
    if (schedule_is_queues(text)) {
        int queue = schedule_queue(text, BYTES("Report"), 1);
        assert(queue >= 0 && queue < SCHEDULE_QUEUES);
    }
    if (!crash_is_list(text, &wrong, &size))
        assert(wrong >= text && size && wrong + size <= text + strlen(text));
}

static void check_codes(const char *text)
{
    if (namespace_is_code(text))
        assert(strlen(text) <= 16 && namespace_is_database(text));
    if (namespace_is_database(text))
        assert(!strpbrk(text, "\"'; {}\\$\n"));
    if (namespace_is_origin(text))
        assert(!strpbrk(text, "\"'; {}\\$\n,"));
}

static void check_directives(struct bytes text)
{
    static const char *const names[] = {"client_max_body_size", "map", "a"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct bytes value;
        int64_t number;
        size_t before, position = 0;
        while (before = position, directive_next(text, names[i], &position, &value)) {
            assert(position > before && position <= text.size);
            assert(value.data >= text.data && value.data + value.size <= text.data + text.size);
            if (directive_bytes(value, &number) || directive_seconds(value, &number))
                assert(number >= 0);
        }
    }
}

static void check_template(struct bytes text)
{
    static const struct template_value values[] = {{"A", ""}, {"BODY_BYTES", "16"}};
    struct builder filled = {0};
    struct bytes name;
    int line = 0;
    if (!template_fill(text, values, COUNT_OF(values), &filled, &line, &name))
        assert(line > 0 && name.size && name.data >= text.data &&
               name.data + name.size < text.data + text.size);
    builder_free(&filled);
}

/* A point of the curve, and any 16 bytes. */
#define P256DH "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
#define AUTH   "BTBZMqHH6r4Tts7J_aSIgg"

/* The origin begins the address, and is an address of itself. */
static void check_endpoint(struct arena *arena, struct bytes text, bool may_be_local)
{
    struct webpush_target target, again;
    if (webpush_read_target(arena, text, BYTES(P256DH), BYTES(AUTH), may_be_local, &target))
        return;
    struct bytes origin = target.origin;
    assert(origin.size && origin.size <= text.size && strncasecmp(origin.data, text.data, origin.size) == 0);
    assert(may_be_local || memcmp(origin.data, "https://", 8) == 0);
    assert(!memchr(origin.data, '@', origin.size) && !memchr(origin.data + 8, '/', origin.size - 8));
    assert(!webpush_read_target(arena, origin, BYTES(P256DH), BYTES(AUTH), may_be_local, &again));
    assert(bytes_equal(origin, again.origin));
}

/* What is read is written as the same. */
static void check_base64(struct bytes text)
{
    unsigned char bytes[64];
    struct builder again = {0};
    for (size_t size = 0; size <= sizeof bytes; size++) {
        if (!base64_read(text, bytes, size))
            continue;
        again.size = 0;
        base64_add(&again, (struct bytes){(char *)bytes, size});
        assert(again.size <= text.size && memcmp(again.data, text.data, again.size) == 0);
        for (size_t i = again.size; i < text.size; i++)
            assert(text.data[i] == '=');
    }
    builder_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct arena *arena = arena_create("fuzz");
    struct bytes text = {(const char *)data + 1, size - 1};
    switch (*data) {
    case 's':
        check_stamp(text);
        break;
    case 'c':
        check_cron(text);
        break;
    case 'd':
        check_directives(text);
        break;
    case 't':
        check_template(text);
        break;
    case 'n':
        check_codes(arena_copy(arena, text.data, text.size));
        break;
    case 'p':
    case 'P':
        check_endpoint(arena, text, *data == 'P');
        break;
    case 'b':
        check_base64(text);
        break;
    default:
        check_lists(arena_copy(arena, text.data, text.size));
    }
    arena_destroy(arena);
    return 0;
}
