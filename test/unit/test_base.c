/* base: UTF-8, integers, builders, arenas, settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/builder.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/secret.h"
#include "base/settings.h"

static void utf8_is_judged_by_rfc_3629(void **state UNUSED)
{
    static const struct {
        const char *text;
        size_t size;
        bool good;
    } cases[] = {
        {"", 0, true},
        {"plain ascii, longer than one word", 33, true},
        {"\xC3\xA9", 2, true},
        {"\xE2\x82\xAC", 3, true},
        {"\xF0\x9F\x98\x80", 4, true},
        {"\xF4\x8F\xBF\xBF", 4, true},
        {"12345678\xC3", 9, false},         /* truncated */
        {"\x80", 1, false},                 /* continuation alone */
        {"\xC0\x80", 2, false},             /* overlong NUL */
        {"\xE0\x9F\xBF", 3, false},         /* overlong */
        {"\xF0\x8F\xBF\xBF", 4, false},     /* overlong */
        {"\xED\xA0\x80", 3, false},         /* surrogate */
        {"\xF4\x90\x80\x80", 4, false},     /* above U+10FFFF */
        {"\xF8\x88\x80\x80\x80", 5, false}, /* five bytes */
        {"abc\xFFxyzuvwtsrq", 15, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(bytes_is_utf8((struct bytes){cases[i].text, cases[i].size}), cases[i].good);
}

static void integers_are_whole_and_fit(void **state UNUSED)
{
    int64_t n;
    assert_true(bytes_to_i64(BYTES("9223372036854775807"), &n) && n == INT64_MAX);
    assert_true(bytes_to_i64(BYTES("-9223372036854775808"), &n) && n == INT64_MIN);
    assert_true(bytes_to_i64(BYTES("0"), &n) && n == 0);
    assert_false(bytes_to_i64(BYTES("9223372036854775808"), &n));
    assert_false(bytes_to_i64(BYTES("-9223372036854775809"), &n));
    assert_false(bytes_to_i64(BYTES(""), &n));
    assert_false(bytes_to_i64(BYTES("-"), &n));
    assert_false(bytes_to_i64(BYTES("1e3"), &n));
    assert_false(bytes_to_i64(BYTES(" 1"), &n));
}

static void utf8_is_checked_at_each_place_of_a_long_text(void **state UNUSED)
{
    char text[100];
    for (size_t size = 2; size <= sizeof text; size++)
        for (size_t place = 0; place + 1 < size; place++) {
            memset(text, 'a', size);
            assert_true(bytes_is_utf8((struct bytes){text, size}));
            text[place] = (char)0xc3;
            assert_false(bytes_is_utf8((struct bytes){text, size}));
            text[place + 1] = (char)0xa9;
            assert_true(bytes_is_utf8((struct bytes){text, size}));
        }
}

static void numbers_are_written_as_printf_writes_them(void **state UNUSED)
{
    char expected[32];
    struct builder builder = {0};
    for (int64_t power = 1; power <= INT64_MAX / 10; power *= 10)
        for (int step = -11; step <= 11; step++)
            for (int sign = -1; sign <= 1; sign += 2) {
                int64_t value = sign * (power + step);
                builder.size = 0;
                builder_add_i64(&builder, value);
                int size = snprintf(expected, sizeof expected, "%lld", (long long)value);
                assert_int_equal(builder.size, size);
                assert_memory_equal(builder.data, expected, (size_t)size);
            }
    builder_free(&builder);
}

static void a_builder_grows_and_keeps(void **state UNUSED)
{
    struct builder builder = {0};
    builder_add_i64(&builder, INT64_MIN);
    builder_add_text(&builder, " ");
    builder_add_i64(&builder, 0);
    for (int i = 0; i < 1000; i++)
        builder_add_text(&builder, "0123456789");
    builder_printf(&builder, "%s", "end");
    assert_int_equal(builder.size, 20 + 2 + 10000 + 3);
    assert_memory_equal(builder.data, "-9223372036854775808 0", 22);
    builder_clear(&builder, 1 << 20);
    assert_int_equal(builder.size, 0);
    assert_true(builder.capacity > 0);
    builder_clear(&builder, 16);
    assert_int_equal(builder.capacity, 0);
    builder_free(&builder);
}

/* Whatever room is left when it is printed. */
static void a_builder_prints_texts_of_any_size(void **state UNUSED)
{
    static char text[700];
    memset(text, 'x', sizeof text);
    for (size_t before = 180; before < 260; before++)
        for (size_t size = 0; size < sizeof text; size += before % 7 + 1) {
            struct builder builder = {0};
            builder_add(&builder, text, before);
            builder_printf(&builder, "<%.*s>%d", (int)size, text, 7);
            assert_int_equal(builder.size, before + size + 3);
            assert_memory_equal(builder.data + before + size + 1, ">7", 2);
            builder_free(&builder);
        }
}

static void bytes_are_ordered_as_unsigned(void **state UNUSED)
{
    assert_true(bytes_compare(BYTES("a"), BYTES("b")) < 0);
    assert_true(bytes_compare(BYTES("a"), BYTES("aa")) < 0);
    assert_true(bytes_compare(BYTES("z"), BYTES("\xC3\xA9")) < 0);
    assert_true(bytes_compare(BYTES("a\0b"), BYTES("a\0a")) > 0);
    assert_int_equal(bytes_compare(BYTES(""), NO_BYTES), 0);
    assert_true(bytes_equal(BYTES(""), NO_BYTES));
    assert_false(bytes_equal(BYTES("a"), BYTES("b")));
    assert_int_equal(bytes_of(NULL).size, 0);
    assert_null(bytes_of(NULL).data);
}

static int freed[3], freed_count;

static void note_freed(void *pointer)
{
    freed[freed_count++] = *(int *)pointer;
}

static void an_arena_gives_back_in_reverse(void **state UNUSED)
{
    struct arena *arena = arena_create("test");
    static int one = 1, two = 2;
    arena_defer(arena, note_freed, &one);
    arena_defer(arena, note_freed, &two);
    char *big = arena_alloc(arena, 1 << 20);
    big[(1 << 20) - 1] = 'x';
    assert_string_equal(arena_printf(arena, "%d-%s", 7, "b"), "7-b");
    for (int i = 0; i < 1000; i++)
        assert_int_equal(((uintptr_t)arena_alloc(arena, 13)) % _Alignof(max_align_t), 0);
    arena_reset(arena);
    assert_int_equal(freed_count, 2);
    assert_int_equal(freed[0], 2);
    assert_int_equal(arena_used(arena), 0);
    arena_destroy(arena);
}

static void an_arena_keeps_pieces_of_every_size(void **state UNUSED)
{
    enum { ROUNDS = 3, PIECES = 400 };
    struct arena *arena = arena_create("test");
    for (int round = 0; round < ROUNDS; round++) {
        char *pieces[PIECES];
        size_t total = 0;
        for (size_t i = 0; i < PIECES; i++) { /* 1 byte to 4 blocks, so small and large ones alternate */
            size_t size = i % 7 ? i + 1 : i * 640 + 1;
            pieces[i] = arena_alloc(arena, size);
            memset(pieces[i], (int)(i % 251), size);
            total += size;
        }
        for (size_t i = 0; i < PIECES; i++) {
            size_t size = i % 7 ? i + 1 : i * 640 + 1;
            for (size_t j = 0; j < size; j++)
                assert_int_equal((unsigned char)pieces[i][j], i % 251);
        }
        assert_true(arena_used(arena) >= total);
        int *cleared = ARENA_ARRAY(arena, int, 100);
        for (int i = 0; i < 100; i++)
            assert_int_equal(cleared[i], 0);
        assert_string_equal(arena_copy(arena, "abc", 2), "ab");
        assert_string_equal(arena_copy(arena, NULL, 0), "");
        arena_reset(arena);
        assert_int_equal(arena_used(arena), 0);
    }
    arena_destroy(arena);
    arena_destroy(NULL);
}

/* Runs `crime` in a child and says how it ended: its exit status, 256 for a signal. */
static int end_of(void (*crime)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDERR_FILENO);
        crime();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256;
}

static volatile size_t too_many = SIZE_MAX;

static void take_too_much(void)
{
    arena_alloc(arena_create("test"), too_many - 40);
}

static void take_too_many(void)
{
    arena_zalloc(arena_create("test"), too_many / 2, 3);
}

static void reserve_too_much(void)
{
    struct builder builder = {0};
    builder_add_text(&builder, "x");
    builder_reserve(&builder, too_many);
}

static void sizes_that_overflow_end_the_process(void **state UNUSED)
{
    assert_int_equal(end_of(take_too_much), 1);
    assert_int_equal(end_of(take_too_many), 1);
    assert_int_equal(end_of(reserve_too_much), 1);
}

static void write_a_wild_line(void)
{
    static char id[200];
    memset(id, 'i', sizeof id - 1);
    log_open("test", LOG_LEVEL_INFO, false, LOG_FORMAT_TEXT);
    log_set_request_id(id);
    log_debug("not written");
    char *text = malloc(5000);
    memset(text, 'x', 4999);
    text[4999] = '\0';
    memcpy(text, "a\nb\tc\033d", 7);
    log_info("%s", text);
    free(text);
}

static void a_log_line_is_one_bounded_line(void **state UNUSED)
{
    int ends[2];
    char seen[8192];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        write_a_wild_line();
        _exit(0);
    }
    close(ends[1]);
    size_t size = 0;
    for (ssize_t more; (more = read(ends[0], seen + size, sizeof seen - 1 - size)) > 0;)
        size += (size_t)more;
    close(ends[0]);
    waitpid(child, NULL, 0);
    seen[size] = '\0';
    assert_in_range(size, 1000, 2048);
    assert_ptr_equal(strchr(seen, '\n'), seen + size - 1);
    assert_non_null(strstr(seen, " test["));
    assert_non_null(strstr(seen, "] info: a b c dxxx"));
    assert_null(strstr(seen, "not written"));
    const char *id = strstr(seen, " request=");
    assert_non_null(id);
    assert_int_equal(strspn(id + 9, "i"), 64);
}

static bool load_bytes(struct settings *settings, const char *text, size_t text_size, char *problem,
                       size_t size)
{
    char path[] = "/tmp/stampd-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, text_size), text_size);
    close(fd);
    bool good = settings_load(settings, path, problem, size);
    unlink(path);
    return good;
}

static bool load(struct settings *settings, const char *text, char *problem, size_t size)
{
    return load_bytes(settings, text, strlen(text), problem, size);
}

/* What the first line of a file gives; NULL: it is refused. */
static const char *read_secret(const char *line, size_t size, mode_t mode)
{
    static char text[2048];
    char path[] = "/tmp/stampd-secret-XXXXXX", problem[200] = "";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, line, size), (ssize_t)size);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    struct secret secret;
    bool is_read = secret_read(&secret, "queue_key_file", path, problem, sizeof problem);
    unlink(path);
    assert_true(is_read == (secret.text != NULL));
    if (!is_read) {
        assert_non_null(strstr(problem, "queue_key_file"));
        return NULL;
    }
    snprintf(text, sizeof text, "%s", secret.text);
    secret_erase(&secret);
    assert_null(secret.text);
    return text;
}

static void a_secret_is_the_first_line_of_a_file(void **state UNUSED)
{
    enum { MOST = 1000 };
    char line[MOST + 2];
    memset(line, 'k', sizeof line);
    line[MOST] = '\n';
    assert_string_equal(read_secret("secret\nmore\n", 12, 0600), "secret");
    assert_string_equal(read_secret("secret ", 7, 0640), "secret");
    assert_null(read_secret("", 0, 0600));
    assert_null(read_secret("\nsecret\n", 8, 0600));
    assert_null(read_secret("secret\n", 7, 0604));
    assert_null(read_secret("secret\n", 7, 0602));
    assert_int_equal(strlen(read_secret(line, MOST + 1, 0600)), MOST);
    line[MOST] = 'k';
    assert_null(read_secret(line, MOST + 1, 0600)); /* not cut: another key would be taken for it */
    assert_null(read_secret(line, MOST + 2, 0600));
}

static void settings_are_read(void **state UNUSED)
{
    struct settings settings;
    char problem[512], *text, longest[190] = "";
    assert_true(load(&settings, "workers = 3\ndatabase = host=/tmp user=x\n", problem, sizeof problem));
    assert_int_equal(settings.workers, 3);
    assert_int_equal(settings.limit_documents, 32);
    assert_string_equal(settings.database, "host=/tmp user=x");
    settings_free(&settings);
    assert_true(load(&settings, "; x\n\n# y = 1\nworkers=4 \t\r\nbuild =\ndatabase = password='a;b # c'",
                     problem, sizeof problem));
    assert_int_equal(settings.workers, 4);
    assert_string_equal(settings.build, "");
    assert_string_equal(settings.database, "password='a;b # c'");
    settings_free(&settings);
    memset(longest, 'v', sizeof longest - 1);
    assert_true(asprintf(&text, "build = %s\ndatabase = host=x\n  user=y\n\tport=7\nworkers = 5\n", longest) >
                0);
    assert_true(load(&settings, text, problem, sizeof problem));
    assert_string_equal(settings.build, longest);
    assert_string_equal(settings.database, "host=x user=y port=7");
    assert_int_equal(settings.workers, 5);
    settings_free(&settings);
    free(text);
    assert_true(load(&settings, "# x\n  build = indented\nuser = y\n", problem, sizeof problem));
    assert_string_equal(settings.build, "indented"); /* nothing came before that it could go on with */
    settings_free(&settings);
    assert_false(load(&settings, "  build = a\nbuild = b\n", problem, sizeof problem));
    assert_non_null(strstr(problem, ":2: build: given a second time"));
}

static void cells_have_connection_strings_of_their_own(void **state UNUSED)
{
    struct settings settings;
    char problem[512], many[8192] = "";
    assert_true(load(&settings,
                     "replica = host=r\nreplica.e2 = host=s\n  port=8\ndatabase = host=a\n"
                     "database.west = host=b\n  port=7\ndatabase.e2 = host=c\n",
                     problem, sizeof problem));
    assert_int_equal(settings.cell_count, 2);
    assert_string_equal(settings_conninfo(&settings, "stampd_lab"), "host=a");
    assert_string_equal(settings_conninfo(&settings, "stampd_lab@west"), "host=b port=7");
    assert_string_equal(settings_conninfo(&settings, "stampd_lab@e2"), "host=c");
    assert_null(settings_conninfo(&settings, "stampd_lab@wes"));
    assert_string_equal(settings_replica(&settings, "stampd_lab"), "host=r");
    assert_string_equal(settings_replica(&settings, "stampd_lab@e2"), "host=s port=8");
    assert_null(settings_replica(&settings, "stampd_lab@west"));
    assert_true(settings_has_replicas(&settings));
    assert_string_equal(settings_cell_of("stampd_lab@e2"), "e2");
    assert_string_equal(settings_cell_of("stampd_lab"), "");
    settings_free(&settings);
    for (int i = 0; i < SETTINGS_CELLS_MOST; i++)
        sprintf(many + strlen(many), "database.c%d =\n", i);
    assert_true(load(&settings, many, problem, sizeof problem));
    settings_free(&settings);
    strcat(many, "database.one = more\n");
    assert_false(load(&settings, many, problem, sizeof problem));
    assert_non_null(strstr(problem, ":65: database.one: expected at most 64 cells"));
}

static void wrong_settings_are_named(void **state UNUSED)
{
    static const struct {
        const char *text, *problem;
    } cases[] = {
        {"# x\nworkers = 0\n", ":2: workers = 0: expected a number of processes from 1 to 128"},
        {"workers = 129\n", ":1: workers = 129: expected a number of processes from 1 to 128"},
        {"workers = 1x\n", ":1: workers = 1x: expected"},
        {"workers =\n", ":1: workers = : expected"},
        {"worker = 1\n", ":1: worker: there is no such setting"},
        {"workers = 2\nnonsense\nworker = 1\n", ":2: expected name = value"},
        {"= 2\n", ":1: expected name = value"},
        {"workers = 2\nbuild = x\nworkers = 3\n", ":3: workers: given a second time"},
        {"workers = 5\n  6\n", ":2: workers: given a second time"},
        {"database.a = x\ndatabase.b = x\ndatabase.a = y\n", ":3: database.a: given a second time"},
        {"replica.west = x\n", ": replica.west needs database.west"},
        {"database. = x\n", ":1: database.: expected database. and the name of a cell"},
        {"database.West = x\n", ":1: database.West: expected database. and the name"},
        {"database.a2345678901234567 = x\n", ":1: database.a2345678901234567: expected database."},
        {"z_database = z@west\n", ": z_database = z@west: expected a database of the cell of"},
        {"database = host=x ; the old one\n", ":1: a blank and a semicolon in a value"},
        {"[stampd]\nworkers = 2\n", ":1: [stampd]: the file has no sections"},
        {"hosts = some\n", ": hosts = some: expected one, many or pair"},
        {"log_to = file\n", ": log_to = file: expected stderr or syslog"},
        {"log_level = loud\n", ": log_level = loud: expected"},
        {"segment_slots = 1025\n", ": segment_slots = 1025: expected a power of two"},
        {"admin_key_sha256 = abc\n", ": admin_key_sha256: expected 64 hexadecimal digits"},
        {"run_directory = run\n", ": run_directory = run: expected an absolute path"},
        {"debug_push_local = yes\n", ": debug_push_local = yes: expected off or on"},
        {"push_contact = ops@example.net\n", ": push_contact = ops@example.net: expected mailto:address"},
        {"push_contact = mailto:\n", ": push_contact = mailto:: expected mailto:address"},
        {"push_key_file = /x\n", ": push_key_file needs push_contact"},
        {"limit_document_bytes = 33554432\n", ": limit_answer_bytes = 33554432: expected more than"},
        {"segment = s\n", ": segment = s: expected an absolute path"},
        {"client_address_header = X Y\n", ": client_address_header = X Y: expected a header's name"},
        {"client_address_header =\n", ": client_address_header = : expected a header's name"},
        {"exempt_clients = 10.0.0.1 10.0.0.0/33\n", ": exempt_clients: 10.0.0.0/33 is no address"},
        {"trusted_proxies = all\n", ": trusted_proxies: all is no address"},
    };
    struct settings settings;
    char problem[512];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_false(load(&settings, cases[i].text, problem, sizeof problem));
        if (!strstr(problem, cases[i].problem))
            fail_msg("%s: got \"%s\"", cases[i].problem, problem);
    }
    assert_false(load_bytes(&settings, "workers = 3\0\n", 13, problem, sizeof problem));
    assert_non_null(strstr(problem, ":1: a NUL byte"));
    char long_line[400] = "build = ";
    memset(long_line + 8, 'v', 300);
    assert_false(load(&settings, long_line, problem, sizeof problem));
    assert_non_null(strstr(problem, ":1: a line of more than "));
    assert_false(settings_load(&settings, "/nonexistent/x.conf", problem, sizeof problem));
    assert_string_equal(problem, "/nonexistent/x.conf: No such file or directory");
    assert_false(settings_load(&settings, "/", problem, sizeof problem));
    char tiny[8];
    assert_false(load(&settings, "worker = 1\n", tiny, sizeof tiny));
    assert_int_equal(strlen(tiny), sizeof tiny - 1);
}

static struct builder described;

static void take_line(const char *line)
{
    builder_printf(&described, "%s\n", line);
}

/* The sample in doc/ is what the program says of itself, and its lines are good settings. */
static void the_sample_is_the_table(void **state UNUSED)
{
    struct settings settings, standard;
    char problem[512], sample[65536];
    settings_describe(take_line);
    FILE *file = fopen(STAMPD_SAMPLE, "r");
    assert_non_null(file);
    size_t size = fread(sample, 1, sizeof sample - 1, file);
    fclose(file);
    sample[size] = '\0';
    builder_add(&described, "", 1);
    const char *first = strstr(sample, "\n\n");
    assert_non_null(first);
    assert_string_equal(first + 1, described.data);
    for (char *hash = sample; (hash = strstr(hash, "\n#")); hash += 2)
        if (hash[2] >= 'a' && hash[2] <= 'z') /* a setting: taken out of its comment */
            hash[1] = '\n';
    assert_true(load(&settings, sample, problem, sizeof problem));
    assert_true(load(&standard, "", problem, sizeof problem));
#define TEXT(name, value, description)                      assert_string_equal(settings.name, standard.name);
#define CHOICE(name, value, words, description)             assert_int_equal(settings.name, standard.name);
#define NUMBER(name, value, least, most, unit, description) assert_int_equal(settings.name, standard.name);
#include "base/settings_table.h"
#undef TEXT
#undef CHOICE
#undef NUMBER
    settings_free(&settings);
    settings_free(&standard);
    builder_free(&described);
}

static void clocks_go_forward(void **state UNUSED)
{
    int64_t before = clock_monotonic_us();
    clock_sleep_ms(2);
    assert_true(clock_monotonic_us() - before >= 2000);
    assert_true(clock_monotonic_ms() >= before / 1000 + 2);
    assert_in_range(clock_wall_ms(), INT64_C(1600000000000), INT64_C(4102444800000));
}

static void faults_know_what_a_client_does(void **state UNUSED)
{
    static const struct {
        const char *code;
        enum fault_remedy remedy;
    } cases[] = {{"AARG", REMEDY_FINAL},       {"NDOCUMENT", REMEDY_FINAL},
                 {"NNAMESPACE", REMEDY_SETUP}, {"BINTERNAL", REMEDY_AGAIN},
                 {"BREADONLY", REMEDY_AGAIN},  {"XUNKNOWN", REMEDY_AGAIN},
                 {"CONTENTION", REMEDY_AGAIN}, {"OSTOPPING", REMEDY_AGAIN},
                 {"OOFF", REMEDY_HELD},        {"OENCRYPTED", REMEDY_SETUP},
                 {"OGONE", REMEDY_OVER},       {"DBUILD", REMEDY_OVER},
                 {"SRULE", REMEDY_SIGN},       {"AOF_A_MODULE", REMEDY_FINAL},
                 {"B7", REMEDY_AGAIN},         {"OTHER", REMEDY_AGAIN},
                 {"DX", REMEDY_FINAL},         {"SX", REMEDY_SIGN},
                 {"", REMEDY_FINAL},           {"?", REMEDY_FINAL}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(fault_remedy_of_code(cases[i].code), cases[i].remedy);
}

static void faults_know_their_class(void **state UNUSED)
{
    assert_string_equal(fault_code(FAULT_AVERSION), "AVERSION");
    assert_int_equal(fault_major(FAULT_NPATH), 1);
    assert_int_equal(fault_major(FAULT_SKEY), 7);
    assert_int_equal(fault_major(FAULT_CONTENTION), 5);
    assert_true(fault_is_retried(FAULT_STALE));
    assert_false(fault_is_retried(FAULT_XUNKNOWN));
    assert_string_equal(fault_code(FAULT_STALE), "CONTENTION");
    assert_int_equal(fault_status(FAULT_NONE, false), 200);
    assert_int_equal(fault_status(FAULT_AVERSION, false), 409);
    assert_int_equal(fault_few_status(FAULT_AVERSION), 400);
    assert_int_equal(fault_few_status(FAULT_NDOCUMENT), 404);
    assert_int_equal(fault_few_status(FAULT_ATYPE), 415);
    assert_int_equal(fault_status(FAULT_AVERSION, true), 412);
    assert_int_equal(fault_status(FAULT_STALE, true), 409);
    for (int i = 0; i < FAULT_COUNT; i++)
        assert_non_null(fault_words((enum fault)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_is_judged_by_rfc_3629),
        cmocka_unit_test(integers_are_whole_and_fit),
        cmocka_unit_test(utf8_is_checked_at_each_place_of_a_long_text),
        cmocka_unit_test(numbers_are_written_as_printf_writes_them),
        cmocka_unit_test(a_builder_grows_and_keeps),
        cmocka_unit_test(a_builder_prints_texts_of_any_size),
        cmocka_unit_test(bytes_are_ordered_as_unsigned),
        cmocka_unit_test(an_arena_gives_back_in_reverse),
        cmocka_unit_test(an_arena_keeps_pieces_of_every_size),
        cmocka_unit_test(sizes_that_overflow_end_the_process),
        cmocka_unit_test(a_log_line_is_one_bounded_line),
        cmocka_unit_test(a_secret_is_the_first_line_of_a_file),
        cmocka_unit_test(settings_are_read),
        cmocka_unit_test(cells_have_connection_strings_of_their_own),
        cmocka_unit_test(wrong_settings_are_named),
        cmocka_unit_test(the_sample_is_the_table),
        cmocka_unit_test(faults_know_their_class),
        cmocka_unit_test(faults_know_what_a_client_does),
        cmocka_unit_test(clocks_go_forward),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
