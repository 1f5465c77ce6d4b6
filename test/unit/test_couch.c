/* couch_reader: the forms in which a database of CouchDB is saved, whole and cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "control/foreign/couch/couch_reader.h"
#include "control/foreign/couch/couch_text.h"

static void an_object_has_a_list_or_is_a_document(void **state UNUSED)
{
    static const struct {
        const char *head, *rest; /* rest: behind the bracket; NULL: no list */
        bool is_rows;
    } cases[] = {
        {"{\"total_rows\":3,\"offset\":0,\"rows\":[\n{\"id\"", "{\"id\"", true},
        {"{ \"rows\" : [ ]}", "]}", true},
        {"{\"new_edits\":false,\"docs\":[{", "{", false},
        {"{\"docs\":[", "", false},
        {"{\"db_info\":{\"docs\":[1]},\"docs\":[2", "2", false},
        {"{\"docs\":{},\"rows\":[1", "1", true},
        {"{\"_id\":\"a\",\"docs\":[1]}", NULL, false},
        {"{\"id\":\"a\",\"rows\":[1]}", NULL, false},
        {"{\"n\":\"\\\",\\\"rows\\\":[\"}", NULL, false},
        {"{\"n\":[{\"rows\":[", NULL, false},
        {"{\"rows\":", NULL, false},
        {"{\"row", NULL, false},
        {"{}", NULL, false},
        {"{", NULL, false},
        {"[\"rows\":[", NULL, false},
        {"", NULL, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bytes head = bytes_of(cases[i].head);
        bool is_rows = false;
        size_t at = couch_text_list(head, &is_rows);
        if (!at != !cases[i].rest || (at && is_rows != cases[i].is_rows))
            fail_msg("%s: a list at %zu", cases[i].head, at);
        if (at)
            assert_string_equal(cases[i].head + at, cases[i].rest);
    }
}

/* How many rows does the file have?  -1: it is refused. */
static int64_t count_rows(struct bytes text)
{
    char path[] = "/tmp/stampd-couch-XXXXXX";
    int fd = mkstemp(path);
    struct couch_reader reader;
    struct bytes row;
    const char *problem;
    int64_t count = 0;
    assert_true(fd >= 0 && bytes_write(fd, text));
    close(fd);
    assert_true(couch_reader_open(&reader, path));
    enum couch_event event;
    while ((event = couch_reader_next(&reader, &row, &problem)) == COUCH_ROW) {
        assert_true(couch_text_is_whole(row));
        count++;
    }
    assert_true(event == COUCH_END || (problem && *problem));
    couch_reader_close(&reader);
    unlink(path);
    return event == COUCH_END ? count : -1;
}

#define A "{\"_id\":\"a\",\"rows\":[{\"_id\":1}]}"
#define B "{\"docs\":\"]}\",\"_id\":\"b\"}"

static void each_form_has_its_documents(void **state UNUSED)
{
    static const struct {
        const char *text;
        int64_t count;
    } cases[] = {
        {"{\"total_rows\":2,\"rows\":[\n" A ",\n" B "\n]}\n", 2},
        {"{\"rows\":[]}", 0},
        {"{\"docs\":[" A "," B "]}", 2},
        {"{\"docs\":[" A "]}\n{\"seq\":1}\n{\"docs\":[" B "," A "]}\n{\"seq\":3}\n", 5},
        {"{\"docs\":[]}", 0},
        {"[" A "," B "]\n[]\n[" A "]\n", 3},
        {A "\n" B "\r\n\n" A, 3},
        {" \n" A B, 2},
        {"[" A "]{\"docs\":[" A "]}" B, 3},
        {"", -1},
        {"[]", -1},
        {"{\"rows\":[" A "]}{\"rows\":[" B "]}", -1},
        {"{\"rows\":[" A "]} x", -1},
        {"[" A "," B, -1},
        {"[" A " " B "]", -1},
        {"[" A ",]", -1},
        {"[[" A "]]", -1},
        {A "," B, -1},
        {A "\n1\n", -1},
        {A "]", -1},
        {"\"a\"", -1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int64_t count = count_rows(bytes_of(cases[i].text));
        if (count != cases[i].count)
            fail_msg("%s: %lld", cases[i].text, (long long)count);
    }
}

static void a_file_that_is_cut_is_refused(void **state UNUSED)
{
    static const char *const texts[] = {
        "{\"total_rows\":2,\"offset\":0,\"rows\":[\n" A ",\n" B "\n]}",
        "{\"new_edits\":false,\"docs\":[" A "," B "]}",
        "[" A "," B "]",
        B,
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct bytes text = bytes_of(texts[i]);
        assert_true(count_rows(text) > 0);
        for (size_t size = 0; size < text.size; size++)
            assert_int_equal(count_rows((struct bytes){text.data, size}), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_has_a_list_or_is_a_document),
        cmocka_unit_test(each_form_has_its_documents),
        cmocka_unit_test(a_file_that_is_cut_is_refused),
    };
    return cmocka_run_group_tests_name("couch", tests, NULL, NULL);
}
