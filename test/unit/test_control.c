/* test_control: the pure parts of stampctl: configurations, map, templates, migrations, lines,
 * options. */
#include <setjmp.h>
#include <stdarg.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "base/clock.h"
#include "control/answer.h"
#include "control/documents/bookmark.h"
#include "control/control.h"
#include "control/nginx/directive.h"
#include "control/documents/input.h"
#include "control/documents/line.h"
#include "control/ns/migrations.h"
#include "control/nginx/map.h"
#include "control/ns/ns_registry.h"
#include "control/backoff.h"
#include "control/documents/progress.h"
#include "control/nginx/template.h"

static const char *text_of(struct bytes text)
{
    return arena_copy(arena, text.data, text.size);
}

/* --- namespaces --- */

static void configurations(void **state UNUSED)
{
    struct namespace_conf conf;
    assert_true(ns_registry_parse(arena, "demo", BYTES("{\"database\":\"d\"}"), &conf));
    assert_string_equal(conf.database, "d");
    assert_string_equal(conf.access, "closed");
    assert_int_equal(conf.state, NS_ON);
    assert_string_equal(conf.message, "");
    assert_true(ns_registry_parse(
        arena, "demo", BYTES("{\"state\":1,\"message\":\"a\\u00e9\",\"access\":\"open\",\"database\":\"d\"}"),
        &conf));
    assert_int_equal(conf.state, NS_READONLY);
    assert_string_equal(conf.message, "a\xC3\xA9");
    assert_string_equal(conf.access, "open");
    assert_false(ns_registry_parse(arena, "demo", BYTES("{}"), &conf));
    assert_false(ns_registry_parse(arena, "demo", BYTES("[]"), &conf));
    assert_false(ns_registry_parse(arena, "demo", BYTES("{\"database\":1}"), &conf));
    assert_false(ns_registry_parse(arena, "demo", BYTES("{\"database\":\"d\",\"access\":\"all\"}"), &conf));
    assert_false(ns_registry_parse(arena, "demo", BYTES("{\"database\":\"d;\"}"), &conf));
}

static void map_of_namespaces(void **state UNUSED)
{
    const struct namespace_conf confs[] = {{.code = "default", .database = "d0"},
                                           {.code = "demo", .database = "d1"},
                                           {.code = "z", .database = "d2"}};
    const char *text = text_of(map_compose(arena, confs, 3, NULL));
    assert_non_null(strstr(text, "\n\\default d0;\ndemo d1;\nz d2;\n"));
    text = text_of(map_compose(arena, confs, 3, "demo"));
    assert_non_null(strstr(text, "\n\\default d0;\nz d2;\n"));
    assert_ptr_equal(ns_registry_find(confs, 3, "z"), &confs[2]);
    assert_null(ns_registry_find(confs, 3, "y"));
}

/* --- texts --- */

static void templates(void **state UNUSED)
{
    const struct template_value values[] = {{"NAME", "value"}, {"TWO_WORDS", ""}};
    struct builder builder = {0};
    struct bytes name;
    int line;
    assert_true(
        template_fill(BYTES("a@b @NAME@@TWO_WORDS@ @@ @name@ @NAME @"), values, 2, &builder, &line, &name));
    assert_string_equal(text_of(builder_bytes(&builder)), "a@b value @@ @name@ @NAME @");
    assert_false(template_fill(BYTES("1\n2 @OTHER@\n"), values, 2, &builder, &line, &name));
    assert_int_equal(line, 2);
    assert_string_equal(text_of(name), "OTHER");
    builder_free(&builder);
}

static void template_lines(void **state UNUSED)
{
    const struct template_value values[] = {{"ON", "1"}, {"OFF", ""}, {"ZERO", "0"}};
    const struct bytes text = BYTES("%# a comment\n"
                                    "%if ON\na @ON@\n%if ZERO\nb\n%end\nc\n%end\n"
                                    "%if OFF\nd\n%if ON\ne\n%end\n%if OTHER\n%end\n%end\n"
                                    "@PART@f\n"
                                    "%block PART\n%if ON\ng\n%end\n@ON@\n%end\n"
                                    "%block MORE\n@PART@@LOST@\n%end\n"
                                    "%block SELF\n@SELF@\n%end\n"
                                    "h\n");
    struct builder builder = {0};
    struct bytes name;
    int line;
    assert_true(template_fill(text, values, 3, &builder, &line, &name));
    assert_string_equal(text_of(builder_bytes(&builder)), "a 1\nc\ng\n1\nf\nh\n");
    builder.size = 0;
    assert_true(template_fill_block(text, "PART", values, 3, &builder, &line, &name));
    assert_string_equal(text_of(builder_bytes(&builder)), "g\n1\n");
    assert_false(template_fill_block(text, "MORE", values, 3, &builder, &line, &name));
    assert_string_equal(text_of(name), "LOST");
    assert_int_equal(line, 25);
    assert_false(template_fill_block(text, "SELF", values, 3, &builder, &line, &name));
    assert_string_equal(text_of(name), "SELF");
    assert_false(template_fill_block(text, "NONE", values, 3, &builder, &line, &name));
    assert_string_equal(text_of(name), "NONE");
    builder.size = 0;
    assert_false(template_fill(BYTES("a\n%if OTHER\n%end\n"), values, 3, &builder, &line, &name));
    assert_int_equal(line, 2);
    builder_free(&builder);
}

static void migration_names(void **state UNUSED)
{
    assert_int_equal(migrations_number("0001_documents.sql"), 1);
    assert_int_equal(migrations_number("0123_a.sql"), 123);
    assert_int_equal(migrations_number("0000_a.sql"), 0);
    assert_int_equal(migrations_number("001_a.sql"), 0);
    assert_int_equal(migrations_number("0001_.sql"), 0);
    assert_int_equal(migrations_number("0001_a.sql~"), 0);
    assert_int_equal(migrations_number("README.md"), 0);
    assert_int_equal(migrations_number(""), 0);
}

static void migration_lines(void **state UNUSED)
{
    struct bytes text = BYTES("a\n\xC3\xA9\n\nb");
    assert_int_equal(migrations_line(text, 1), 1);
    assert_int_equal(migrations_line(text, 2), 1); /* the newline itself */
    assert_int_equal(migrations_line(text, 3), 2);
    assert_int_equal(migrations_line(text, 4), 2);
    assert_int_equal(migrations_line(text, 5), 3);
    assert_int_equal(migrations_line(text, 6), 4);
    assert_int_equal(migrations_line(text, 99), 4);
}

static void directives(void **state UNUSED)
{
    struct bytes text =
                     BYTES("# size 1;\nevents { size 2; }\nsizes 3;\nother \"size 4;\" 'size 5;';\nhttp {\n"
                           " size  16m ; server { size\n0; # size 6;\n } }\n"),
                 value;
    size_t position = 0;
    assert_true(directive_next(text, "size", &position, &value));
    assert_string_equal(text_of(value), "2");
    assert_true(directive_next(text, "size", &position, &value));
    assert_string_equal(text_of(value), "16m");
    assert_true(directive_next(text, "size", &position, &value));
    assert_string_equal(text_of(value), "0");
    assert_false(directive_next(text, "size", &position, &value));
    position = 0;
    assert_false(directive_next(BYTES("size \"never closed"), "size", &position, &value));
}

static void sizes_and_times(void **state UNUSED)
{
    int64_t number;
    assert_true(directive_bytes(BYTES("16m"), &number) && number == 16777216);
    assert_true(directive_bytes(BYTES("512K"), &number) && number == 524288);
    assert_true(directive_bytes(BYTES("1024"), &number) && number == 1024);
    assert_false(directive_bytes(BYTES("m"), &number));
    assert_false(directive_bytes(BYTES("1x"), &number));
    assert_false(directive_bytes(BYTES("9223372036854775807g"), &number));
    assert_false(directive_bytes(BYTES(""), &number));
    assert_true(directive_seconds(BYTES("80s"), &number) && number == 80);
    assert_true(directive_seconds(BYTES("2m"), &number) && number == 120);
    assert_true(directive_seconds(BYTES("90"), &number) && number == 90);
    assert_false(directive_seconds(BYTES("-5s"), &number));
}

/* --- load --- */

static void lines_become_documents(void **state UNUSED)
{
    struct line_document document, other;
    struct builder builder = {0};
    const char *problem;
    assert_true(line_read(
        arena, BYTES(" {\"v\":5,\"id\":\"a\\u0062\",\"items\":[{\"c\":\"M\",\"j\": 1e400}],\"c\":\"P\"} "),
        &builder, &document, &problem));
    assert_string_equal(text_of(builder_bytes(&builder)),
                        "{\"c\":\"P\",\"id\":\"a\\u0062\",\"items\":[{\"c\":\"M\",\"j\": 1e400}]}");
    assert_string_equal(text_of(document.id), "ab");
    builder_clear(&builder, 0);
    assert_true(line_read(arena, BYTES("{\"c\":\"P\",\"id\":\"ab\"}"), &builder, &other, &problem));
    assert_string_equal(text_of(builder_bytes(&builder)), "{\"c\":\"P\",\"id\":\"ab\"}");
    assert_true(document.name == other.name);
    builder_clear(&builder, 0);
    assert_true(line_read(arena, BYTES("{\"c\":\"Pa\",\"id\":\"b\"}"), &builder, &other, &problem));
    assert_false(document.name == other.name);
    builder_free(&builder);
}

static void lines_that_are_none(void **state UNUSED)
{
    static const char *const wrong[] = {"[]",
                                        "{\"id\":\"a\"}",
                                        "{\"c\":\"P\"}",
                                        "{\"c\":\"P\",\"id\":1}",
                                        "{\"c\":1,\"id\":\"a\"}",
                                        "{\"c\":[\"P\"],\"id\":\"a\"}",
                                        "{\"c\":\"P\",\"id\":\"a\",\"items\":{}}",
                                        "{\"c\":\"P\",\"id\":\"a\"",
                                        "{\"c\":\"P\",\"id\":\"a\"} {}",
                                        "{\"c\":\"P\",\"id\":\"\xFF\"}"};
    struct builder builder = {0};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct line_document document;
        const char *problem = NULL;
        assert_false(line_read(arena, bytes_of(wrong[i]), &builder, &document, &problem));
        assert_non_null(problem);
        assert_int_equal(builder.size, 0);
    }
    builder_free(&builder);
    assert_true(line_is_empty(BYTES("")));
    assert_true(line_is_empty(BYTES(" \t\r")));
    assert_false(line_is_empty(BYTES(" {")));
    assert_false(line_is_empty(BYTES("\0")));
}

static void bookmarks(void **state UNUSED)
{
    struct bookmark bookmark = {.line = 12, .offset = 3456, .ns = "demo", .file = "/a b/c"}, read;
    struct bytes text = bookmark_compose(arena, &bookmark);
    assert_true(bookmark_parse(arena, text, &read));
    assert_int_equal(read.line, 12);
    assert_int_equal(read.offset, 3456);
    assert_string_equal(read.ns, "demo");
    assert_string_equal(read.file, "/a b/c");
    for (size_t size = 0; size < text.size; size++)
        assert_false(bookmark_parse(arena, (struct bytes){text.data, size}, &read));
    assert_true(
        bookmark_parse(arena, BYTES("stampctl load 1\nline 0\nbyte 0\nnamespace a\nfile b\n"), &read));
    static const char *const wrong[] = {
        "stampctl load 1\nline -1\nbyte 0\nnamespace a\nfile b\n",
        "stampctl load 1\nline 0\nbyte -1\nnamespace a\nfile b\n",
        "stampctl load 1\nline 1x\nbyte 0\nnamespace a\nfile b\n",
        "stampctl load 1\nline_1\nbyte 0\nnamespace a\nfile b\n",
        "stampctl load 1\nbyte 0\nline 0\nnamespace a\nfile b\n",
        "stampctl load 1\nline 0\nbyte 0\nnamespace a\nfile b\nmore\n",
        "stampctl load 2\nline 0\nbyte 0\nnamespace a\nfile b\n",
        "stampctl load 1 \nline 0\nbyte 0\nnamespace a\nfile b\n",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(bookmark_parse(arena, bytes_of(wrong[i]), &read));
}

static void patience_waits_longer_each_time_and_ends(void **state UNUSED)
{
    struct backoff backoff = {0};
    int64_t begun_ms = clock_monotonic_ms();
    for (int64_t most_ms = 200; most_ms <= 20000; most_ms *= 2) {
        int64_t before_ms = clock_monotonic_ms(), bound_ms = most_ms < 10000 ? most_ms : 10000;
        assert_true(backoff_goes_on(&backoff, 3600));
        assert_true(backoff.due_ms >= before_ms + bound_ms / 2);
        assert_true(backoff.due_ms <= clock_monotonic_ms() + bound_ms);
    }
    assert_int_equal(backoff.tries, 7);
    assert_true(backoff.failing_ms >= begun_ms);
    backoff.failing_ms = clock_monotonic_ms() - 3601 * 1000;
    assert_false(backoff_goes_on(&backoff, 3600));
    assert_true(backoff_goes_on(&backoff, 7200));
}

static void progress_texts(void **state UNUSED)
{
    struct progress progress = {.start_ms = 1000, .start_offset = 100, .size = 1100, .unit = "lines"};
    char text[160];
    progress_compose(&progress, 3000, 500, 600, text, sizeof text);
    assert_string_equal(text, " 54 %  500 lines  250/s  0:02 left");
    progress.is_terminal = true;
    progress_compose(&progress, 3000, 500, 600, text, sizeof text);
    assert_string_equal(text, "[============            ]  54 %  500 lines  250/s  0:02 left");
    progress.size = 0;
    progress_compose(&progress, 1000, 7, 600, text, sizeof text);
    assert_string_equal(text, "7 lines  7000/s");
}

static void answers(void **state UNUSED)
{
    static const struct {
        int status;
        const char *body;
        enum answer_kind kind;
        const char *code;
    } cases[] = {
        {200, "{}", ANSWER_DONE, ""},
        {0, "", ANSWER_AGAIN, ""},
        {502, "<html>", ANSWER_AGAIN, "HTTP 502"},
        {429, "", ANSWER_AGAIN, "HTTP 429"},
        {404, "<html>", ANSWER_HOPELESS, "HTTP 404"},
        {413, "<html>", ANSWER_REFUSED, "HTTP 413"},
        {400, "{\"code\":\"XAWAY\"}", ANSWER_AGAIN, "XAWAY"},
        {400, "{\"code\":\"CONTENTION\"}", ANSWER_AGAIN, "CONTENTION"},
        {400, "{\"code\":\"AARG\"}", ANSWER_REFUSED, "AARG"},
        {400, "{\"code\":\"SKEY\"}", ANSWER_HOPELESS, "SKEY"},
        {400, "{\"code\":\"OOFF\"}", ANSWER_HOPELESS, "OOFF"},
        {503, "{\"code\":\"OSTOPPING\"}", ANSWER_AGAIN, "OSTOPPING"},
        {500, "{\"code\":\"BINTERNAL\"}", ANSWER_AGAIN, "BINTERNAL"},
        {404, "{\"code\":\"NDOCUMENT\"}", ANSWER_REFUSED, "NDOCUMENT"},
        {400, "{\"code\":\"AFAIL\"}", ANSWER_REFUSED, "AFAIL"},
        {404, "{\"code\":\"NNAMESPACE\"}", ANSWER_HOPELESS, "NNAMESPACE"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_result result = {
            .status = cases[i].status, .problem = "lost", .body = bytes_of(cases[i].body)};
        struct server_answer answer;
        assert_int_equal(answer_read(arena, &result, &answer), cases[i].kind);
        assert_string_equal(answer.code, cases[i].code);
    }
    struct http_result result = {
        .status = 400,
        .body = BYTES(
            "{\"code\":\"ALIMIT\",\"title\":\"No.\",\"message\":\"No. More.\",\"args\":[\"a\",\"2\"]}")};
    struct server_answer answer;
    assert_int_equal(answer_read(arena, &result, &answer), ANSWER_REFUSED);
    assert_string_equal(answer.words, "No. More. (a, 2)");
}

/* --- input --- */

static void write_file(char *path, struct bytes text)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.data, text.size), (ssize_t)text.size);
    close(fd);
}

static void input_gives_lines_and_places(void **state UNUSED)
{
    char path[] = "/tmp/test_control.XXXXXX";
    struct input input;
    struct bytes text;
    write_file(path, BYTES("one\n\ntwo\nlast"));
    assert_true(input_open(&input, path, -1));
    assert_int_equal(input.size, 13);
    assert_int_equal(input_next(&input, true, &text), INPUT_LINE);
    assert_string_equal(text_of(text), "one");
    assert_int_equal(input_next(&input, true, &text), INPUT_LINE);
    assert_int_equal(text.size, 0);
    assert_int_equal(input_next(&input, true, &text), INPUT_LINE);
    assert_int_equal(input.line, 3);
    assert_int_equal(input.offset, 9);
    assert_int_equal(input_next(&input, true, &text), INPUT_LINE);
    assert_string_equal(text_of(text), "last");
    assert_int_equal(input.offset, 13);
    assert_int_equal(input_next(&input, true, &text), INPUT_END);
    assert_int_equal(input.line, 4);
    input_close(&input);
    assert_true(input_open(&input, path, -1));
    assert_false(input_seek(&input, 9, 14));
    assert_false(input_seek(&input, 2, 6));
    assert_true(input_seek(&input, 4, 13));
    assert_true(input_seek(&input, 0, 0));
    assert_true(input_seek(&input, 2, 5));
    assert_int_equal(input_next(&input, true, &text), INPUT_LINE);
    assert_string_equal(text_of(text), "two");
    assert_int_equal(input.line, 3);
    input_close(&input);
    unlink(path);
}

static void input_takes_long_lines(void **state UNUSED)
{
    enum { LONG = 700000 };
    char path[] = "/tmp/test_control.XXXXXX";
    struct builder all = {0};
    struct input input;
    struct bytes text;
    for (int line = 0; line < 3; line++) {
        memset(builder_reserve(&all, LONG), 'a' + line, LONG);
        all.size += LONG;
        builder_add_text(&all, "\n");
    }
    write_file(path, builder_bytes(&all));
    assert_true(input_open(&input, path, -1));
    for (int line = 0; line < 3; line++) {
        assert_int_equal(input_next(&input, true, &text), INPUT_LINE);
        assert_int_equal(text.size, LONG);
        assert_int_equal(text.data[0], 'a' + line);
        assert_int_equal(text.data[LONG - 1], 'a' + line);
    }
    assert_int_equal(input_next(&input, true, &text), INPUT_END);
    input_close(&input);
    builder_free(&all);
    unlink(path);
}

static void input_stops_when_asked(void **state UNUSED)
{
    int pipe_fds[2], stop_fds[2], kept = dup(STDIN_FILENO);
    struct input input;
    struct bytes text;
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(pipe(stop_fds), 0);
    assert_true(dup2(pipe_fds[0], STDIN_FILENO) >= 0);
    assert_true(input_open(&input, "-", stop_fds[0]));
    assert_int_equal(write(pipe_fds[1], "one\ntw", 6), 6);
    assert_int_equal(input_next(&input, true, &text), INPUT_LINE);
    assert_int_equal(input_next(&input, false, &text), INPUT_NOT_YET);
    assert_int_equal(write(stop_fds[1], "x", 1), 1);
    assert_int_equal(input_next(&input, true, &text), INPUT_STOPPED);
    assert_int_equal(input.line, 1);
    input_close(&input);
    dup2(kept, STDIN_FILENO);
    close(kept);
    for (int i = 0; i < 2; i++) {
        close(pipe_fds[i]);
        close(stop_fds[i]);
    }
}

/* --- options --- */

/* Reads a command line, its words parted by single blanks, with three options. */
static void files_are_written_where_they_are(void **state UNUSED)
{
    char folder[] = "/tmp/stampd-test-XXXXXX", seen[16] = "";
    struct bytes text;
    struct stat status;
    assert_non_null(mkdtemp(folder));
    const char *file = arena_printf(arena, "%s/file", folder), *link = arena_printf(arena, "%s/link", folder),
               *pipe = arena_printf(arena, "%s/pipe", folder);
    assert_true(control_write_file(arena, file, BYTES("one"), 0640));
    assert_int_equal(symlink("file", link), 0);
    assert_true(control_write_file(arena, link, BYTES("two"), 0600));
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_true(control_read_file(arena, file, &text));
    assert_true(bytes_equal(text, BYTES("two")));
    assert_int_equal(stat(file, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int end = open(pipe, O_RDWR);
    assert_true(end >= 0);
    assert_true(control_write_file(arena, pipe, BYTES("three"), 0600));
    assert_int_equal(read(end, seen, sizeof seen), 5);
    assert_string_equal(seen, "three");
    assert_int_equal(stat(pipe, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    close(end);
    unlink(file);
    unlink(link);
    unlink(pipe);
    assert_int_equal(rmdir(folder), 0); /* no draft is left */
}

static struct {
    const char *text;
    int64_t number;
    bool flag;
    char **words;
    int count;
} options;

/* -1: they are read; otherwise the status with which the command ends. */
static int read_options(const char *line)
{
    static const struct command command = COMMAND("some", "A [B]", "Does.", NULL);
    const struct option_line lines[] = {
        {.name = "text", .letter = 't', .argument = "T", .text = &options.text},
        {.name = "number", .argument = "N", .number = &options.number, .least = 1, .most = 9},
        {.name = "flag", .flag = &options.flag}};
    char **words = ARENA_ARRAY(arena, char *, 16), *rest = arena_copy(arena, line, strlen(line));
    int count = 0;
    for (char *word; (word = strsep(&rest, " "));)
        words[count++] = word;
    struct control control = {.arena = arena};
    options.words = options_read(&control, &command, lines, COUNT_OF(lines), count, words);
    options.count = control.word_count;
    return options.words ? -1 : (int)control.status;
}

static void options_are_read(void **state UNUSED)
{
    assert_int_equal(read_options("some one -tx --number=9 --flag -- --two"), -1);
    assert_int_equal(options.count, 2);
    assert_string_equal(options.words[0], "one");
    assert_string_equal(options.words[1], "--two");
    assert_string_equal(options.text, "x");
    assert_int_equal(options.number, 9);
    assert_true(options.flag);
    assert_int_equal(read_options("some 1 --text y"), -1);
    assert_string_equal(options.text, "y");
}

static void wrong_options_are_refused(void **state UNUSED)
{
    assert_int_equal(read_options("some"), CONTROL_WRONG);
    assert_int_equal(read_options("some 1 2 3"), CONTROL_WRONG);
    assert_int_equal(read_options("some 1 --number 10"), CONTROL_WRONG);
    assert_int_equal(read_options("some 1 --number x"), CONTROL_WRONG);
    assert_int_equal(read_options("some 1 --odd"), CONTROL_WRONG);
    assert_int_equal(read_options("some 1 -t"), CONTROL_WRONG);
    assert_int_equal(read_options("some 1 --flag=2"), CONTROL_WRONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations),
        cmocka_unit_test(map_of_namespaces),
        cmocka_unit_test(templates),
        cmocka_unit_test(template_lines),
        cmocka_unit_test(migration_names),
        cmocka_unit_test(migration_lines),
        cmocka_unit_test(directives),
        cmocka_unit_test(sizes_and_times),
        cmocka_unit_test(lines_become_documents),
        cmocka_unit_test(lines_that_are_none),
        cmocka_unit_test(bookmarks),
        cmocka_unit_test(patience_waits_longer_each_time_and_ends),
        cmocka_unit_test(progress_texts),
        cmocka_unit_test(answers),
        cmocka_unit_test(files_are_written_where_they_are),
        cmocka_unit_test(input_gives_lines_and_places),
        cmocka_unit_test(input_takes_long_lines),
        cmocka_unit_test(input_stops_when_asked),
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
