/* test_sealing: the examples of the specification, that what is sealed opens at its place and nowhere else,
 * and that an altered text never opens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/coding/hex.h"
#include "seal/sealing.h"
#include "model/schema/shown.h"
#include "store/data_keys.h"
#include "store/documents/store_shown.h"

static struct arena *arena;

static int begin(void **state UNUSED)
{
    arena = arena_create("test");
    return 0;
}

static int end(void **state UNUSED)
{
    arena_destroy(arena);
    return 0;
}

/* C2SP XAES-256-GCM, "Test vectors". */
static void the_examples_of_the_specification(void **state UNUSED)
{
    static const struct {
        unsigned char key;
        struct bytes aad;
        const char *sealed;
    } examples[] = {
        {1, BYTES(""), "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
        {3, BYTES("c2sp.org/XAES-256-GCM"), "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
    };
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        unsigned char key[SEALING_KEY], sealed[12 + SEALING_TAG], text[12];
        char digits[2 * sizeof sealed + 1] = "";
        memset(key, examples[i].key, sizeof key);
        const unsigned char *nonce = (const unsigned char *)"ABCDEFGHIJKLMNOPQRSTUVWX";
        sealing_encrypt(key, nonce, examples[i].aad, BYTES("XAES-256-GCM"), sealed);
        hex_write(sealed, sizeof sealed, digits);
        assert_string_equal(digits, examples[i].sealed);
        const struct bytes whole = {(const char *)sealed, sizeof sealed};
        assert_true(sealing_decrypt(key, nonce, examples[i].aad, whole, text));
        assert_memory_equal(text, "XAES-256-GCM", sizeof text);
        assert_false(sealing_decrypt(key, nonce, BYTES("another place"), whole, text));
    }
}

static struct data_keys keys_of(size_t count)
{
    struct data_keys keys = {.keys = calloc(count, sizeof *keys.keys), .count = count};
    for (size_t i = 0; i < count; i++) {
        unsigned char secret[SEALING_KEY];
        memset(secret, (int)i + 7, sizeof secret);
        sealing_derive((int64_t)i + 1, secret, &keys.keys[i]);
    }
    return keys;
}

static const struct item_place place = {BYTES("Note"),  BYTES("n1"), BYTES("Line"),
                                        BYTES("a key"), false,       BYTES("{\"~a\":\"x\"}")};

static void an_item_opens_at_its_place_only(void **state UNUSED)
{
    struct data_keys keys = keys_of(2);
    struct bytes content = data_keys_seal_content(&keys, arena, &place, BYTES("{\"a\":1}"));
    struct item_place stored = place;
    stored.key = data_keys_seal_key(&keys, arena, &place);
    assert_null(memmem(content.data, content.size, "\"a\"", 3));
    assert_true(sealing_key_id(content) == 2);
    for (int part = 0; part <= 5; part++) {
        struct item_place moved = stored;
        struct bytes text = content, other = BYTES("X");
        struct bytes *const parts[] = {&moved.class, &moved.id, &moved.iclass, &moved.key};
        if (part < 4)
            *parts[part] = part == 3
                               ? data_keys_seal_key(&keys, arena,
                                                    &(struct item_place){place.class, place.id, place.iclass,
                                                                         other, 0, BYTES("")})
                               : other;
        moved.is_raw = part == 4;
        assert_int_equal(data_keys_open_item(&keys, arena, &moved, &text), part == 5);
        if (part == 5) {
            assert_true(bytes_equal(moved.key, place.key));
            assert_true(bytes_equal(text, BYTES("{\"a\":1}")));
        }
    }
    data_keys_free(&keys);
}

static const struct bytes task_parts[] = {{"task", 4}, {"op", 2}};
static const struct sealing_place of_task = {task_parts, COUNT_OF(task_parts)};

static void an_empty_text_is_sealed_and_none_is_not(void **state UNUSED)
{
    struct data_keys keys = keys_of(1);
    struct bytes text = data_keys_seal_text(&keys, arena, of_task, BYTES("")), none = NO_BYTES;
    assert_true(text.size && data_keys_open_text(&keys, arena, of_task, &text));
    assert_true(text.data && !text.size);
    assert_null(data_keys_seal_text(&keys, arena, of_task, none).data);
    assert_true(data_keys_open_text(&keys, arena, of_task, &none));
    data_keys_free(&keys);
}

static void an_altered_text_never_opens(void **state UNUSED)
{
    struct data_keys keys = keys_of(1);
    struct bytes sealed = data_keys_seal_text(&keys, arena, of_task, BYTES("secret"));
    for (size_t i = 0; i < sealed.size; i++) {
        char *altered = arena_copy(arena, sealed.data, sealed.size);
        altered[i] = altered[i] == 'A' ? 'B' : 'A';
        struct bytes text = {altered, sealed.size};
        assert_false(data_keys_open_text(&keys, arena, of_task, &text));
        text = (struct bytes){sealed.data, i};
        assert_false(data_keys_open_text(&keys, arena, of_task, &text));
    }
    struct bytes clear = BYTES("secret");
    assert_false(data_keys_open_text(&keys, arena, of_task, &clear));
    data_keys_free(&keys);
}

static void keys_of_items_stay_the_same_and_contents_never(void **state UNUSED)
{
    struct data_keys one = keys_of(1), two = keys_of(2);
    assert_true(
        bytes_equal(data_keys_seal_key(&one, arena, &place), data_keys_seal_key(&two, arena, &place)));
    assert_false(bytes_equal(data_keys_seal_content(&one, arena, &place, BYTES("1")),
                             data_keys_seal_content(&one, arena, &place, BYTES("1"))));
    struct bytes old = data_keys_seal_text(&one, arena, of_task, BYTES("secret"));
    struct bytes fresh = data_keys_seal_text(&two, arena, of_task, BYTES("secret"));
    assert_true(data_keys_open_text(&two, arena, of_task, &old));
    assert_true(bytes_equal(old, BYTES("secret")));
    assert_false(data_keys_open_text(&one, arena, of_task, &fresh));
    data_keys_free(&one);
    data_keys_free(&two);
}

/* More keys than are kept, some of them in the place of another: texts and names by turns. */
static void many_keys_by_turns(void **state UNUSED)
{
    enum { MANY = 40 };
    struct data_keys keys = keys_of(MANY);
    struct bytes texts[MANY], names[MANY];
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < MANY; i++) {
            texts[i] = sealing_seal(arena, &keys.keys[i], of_task, BYTES("text"), BYTES(""));
            names[i] = sealing_seal_name(arena, &keys.keys[i], of_task, BYTES(""), BYTES("name"));
            assert_int_equal(names[i].size, (SEALING_TAG + 4) / 3 * 4 + 3);
        }
        for (size_t i = 0; i < MANY; i++) {
            struct bytes text, name, other;
            assert_true(sealing_open(arena, &keys.keys[i], of_task, texts[i], &text));
            assert_true(sealing_open_name(arena, &keys.keys[i], of_task, names[i], &name));
            assert_true(bytes_equal(text, BYTES("text")) && bytes_equal(name, BYTES("name")));
            assert_false(sealing_open_name(arena, &keys.keys[(i + 1) % MANY], of_task, names[i], &other));
            assert_true(bytes_equal(
                sealing_seal_name(arena, &keys.keys[i], of_task, BYTES(""), BYTES("name")), names[i]));
        }
        sealing_forget();
    }
    data_keys_free(&keys);
}

static void without_keys_everything_stays_clear(void **state UNUSED)
{
    const struct data_keys none = {0};
    struct item_place stored = place;
    struct bytes content = data_keys_seal_content(&none, arena, &place, BYTES("1"));
    assert_true(bytes_equal(content, BYTES("1")));
    assert_true(bytes_equal(data_keys_seal_key(&none, arena, &place), place.key));
    assert_true(data_keys_open_item(&none, arena, &stored, &content));
}

static const char schema_text[] =
    "{\"classes\":{\"Note\":{\"items\":{\"Main\":{\"singleton\":true},\"Line\":{},"
    "\"Open\":{\"singleton\":true,\"clear\":true,\"fields\":{\"f\":\"string\",\"g\":\"int[]\",\"h\":\"int\"}}"
    ","
    "\"Veil\":{\"singleton\":true,\"fields\":{\"f\":\"hash\",\"g\":\"hash[]\",\"h\":\"int\"}}"
    "},"
    "\"collections\":{\"by\":{\"key\":[\"Main.a\"],\"list\":true},\"two\":{\"key\":[\"Main.b\",\"Main.a\"]}},"
    "\"unique\":{\"one\":{\"key\":[\"Main.b\"]}},\"maxLife\":\"Main.end\"}}}";

/* Writes values in brackets in place of their hashes. */
static struct bytes mark(void *context UNUSED, struct arena *into, struct bytes class, struct bytes field,
                         struct bytes value)
{
    return bytes_of(arena_printf(into, "[%.*s%s%.*s %.*s]", (int)class.size, class.data,
                                 field.size ? "/" : "", (int)field.size, field.data, (int)value.size,
                                 value.data));
}

static void declared_members_are_shown_and_nothing_else(void **state UNUSED)
{
    static const struct {
        const char *content, *shown;
    } examples[] = {
        {"{\"a\":[1,\"x\",null,{}],\"b\":true,\"c\":\"secret\",\"end\":12}",
         "{\"~a\":[\"[Note 1]\",\"[Note x]\",null,null],\"~b\":\"[Note true]\",\"end\":12}"},
        {"{\"a\":1.50,\"end\":\"12\"}", "{\"~a\":\"[Note 1.50]\"}"},
        {"{\"a\":{\"x\":1},\"b\":null,\"end\":1.5}", ""},
        {"[\"a\"]", ""},
        {"1", ""},
    };
    struct schema *schema;
    struct schema_problem problem;
    assert_int_equal(schema_read(arena, bytes_of(schema_text), &schema, &problem), FAULT_NONE);
    const struct schema_class *class = schema_find_class(schema, BYTES("Note"));
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        struct bytes content = bytes_of(examples[i].content);
        struct bytes shown = shown_write(arena, class, BYTES("Main"), BYTES(""), false, content, mark, NULL);
        assert_true(bytes_equal(shown, bytes_of(examples[i].shown)));
        assert_false(shown_write(arena, class, BYTES("Open"), BYTES(""), false, content, mark, NULL).size);
        assert_false(shown_write(arena, class, BYTES("Line"), BYTES("k"), false, content, mark, NULL).size);
        assert_false(shown_write(arena, class, BYTES("Main"), BYTES(""), true, content, mark, NULL).size);
        assert_false(shown_write(arena, NULL, BYTES("Main"), BYTES(""), false, content, mark, NULL).size);
    }
}

static void fields_that_are_declared_so_are_in_clear(void **state UNUSED)
{
    struct schema *schema;
    struct schema_problem problem;
    struct bytes content = BYTES("{\"a\":1,\"f\":\"te\\u0078t\",\"g\":[1, [2]],\"h\":null}");
    assert_int_equal(schema_read(arena, bytes_of(schema_text), &schema, &problem), FAULT_NONE);
    const struct schema_class *class = schema_find_class(schema, BYTES("Note"));
    struct bytes shown = shown_write(arena, class, BYTES("Open"), BYTES(""), false, content, mark, NULL);
    assert_true(bytes_equal(shown, BYTES("{\"f\":\"te\\u0078t\",\"g\":[1, [2]]}")));
}

static void hashed_fields_are_shown_as_hashes(void **state UNUSED)
{
    static const struct {
        const char *content, *shown;
    } examples[] = {
        {"{\"f\":\"te\\u0078t\",\"g\":[1,true,null,[2]],\"h\":7}",
         "{\"f\":\"[Note/Veil.f text]\",\"g\":[\"[Note/Veil.g 1]\",\"[Note/Veil.g true]\",null,null]}"},
        {"{\"f\":[1],\"g\":1}", ""},
        {"{\"f\":{},\"g\":null}", ""},
        {"{\"f\":-1.50}", "{\"f\":\"[Note/Veil.f -1.50]\"}"},
    };
    struct schema *schema;
    struct schema_problem problem;
    struct builder list = {0};
    assert_int_equal(schema_read(arena, bytes_of(schema_text), &schema, &problem), FAULT_NONE);
    const struct schema_class *class = schema_find_class(schema, BYTES("Note"));
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        struct bytes shown = shown_write(arena, class, BYTES("Veil"), BYTES(""), false,
                                         bytes_of(examples[i].content), mark, NULL);
        assert_true(bytes_equal(shown, bytes_of(examples[i].shown)));
    }
    for (int count = SCHEMA_ELEMENTS_MOST; count <= SCHEMA_ELEMENTS_MOST + 1; count++) {
        builder_clear(&list, 0);
        for (int i = 0; i < count; i++)
            builder_add_bytes(&list, bytes_of(i ? ",1" : "{\"g\":[1"));
        builder_add_text(&list, "]}");
        assert_int_equal(
            shown_write(arena, class, BYTES("Veil"), BYTES(""), false, builder_bytes(&list), mark, NULL)
                    .size == 0,
            count > SCHEMA_ELEMENTS_MOST);
    }
    builder_free(&list);
}

static void a_search_has_the_hashes_of_hashed_fields(void **state UNUSED)
{
    struct data_keys keys = keys_of(1);
    const struct data_keys none = {0};
    struct schema *schema;
    struct schema_problem problem;
    assert_int_equal(schema_read(arena, bytes_of(schema_text), &schema, &problem), FAULT_NONE);
    const struct schema_class *class = schema_find_class(schema, BYTES("Note"));
    const struct schema_item *item = schema_find_item(class, BYTES("Veil"));
    struct search search = {.class = class, .item = item, .branch_count = 1, .branches = {{.count = 4}}};
    struct search_condition *plain = search.branches[0].conditions;
    const struct search_value list[] = {{.text = BYTES("a")}, {.text = BYTES("b")}};
    plain[3] = (struct search_condition){
        .field = schema_find_field(item, BYTES("f")), .test = SEARCH_IN, .list = list, .list_count = 2};
    plain[0] = (struct search_condition){.values = {{.text = BYTES("a")}}};
    plain[1] = (struct search_condition){.field = schema_find_field(item, BYTES("f")),
                                         .values = {{.text = BYTES("a")}}};
    plain[2] = (struct search_condition){.field = schema_find_field(item, BYTES("g")),
                                         .values = {{.text = BYTES("a")}}};
    struct search shown = store_shown_search(&keys, arena, &search);
    const struct search_condition *hashed = shown.branches[0].conditions;
    assert_true(bytes_equal(hashed[0].values[0].text, BYTES("a")));
    assert_int_equal(hashed[1].values[0].text.size, 2 * SEALING_HASH);
    assert_true(bytes_equal(hashed[1].values[0].text,
                            data_keys_hash(&keys, arena, BYTES("Note"), BYTES("Veil.f"), BYTES("a"))));
    assert_false(bytes_equal(hashed[1].values[0].text, hashed[2].values[0].text));
    assert_false(
        bytes_equal(hashed[1].values[0].text, store_shown_value(&keys, arena, BYTES("Note"), BYTES("a"), 1)));
    assert_true(bytes_equal(hashed[3].list[0].text, hashed[1].values[0].text));
    assert_true(bytes_equal(hashed[3].list[1].text,
                            data_keys_hash(&keys, arena, BYTES("Note"), BYTES("Veil.f"), BYTES("b"))));
    shown = store_shown_search(&none, arena, &search);
    assert_true(bytes_equal(hashed[1].values[0].text, BYTES("a")));
    assert_true(bytes_equal(hashed[3].list[1].text, BYTES("b")));
    data_keys_free(&keys);
}

static void a_value_is_found_by_the_hashes_of_its_parts(void **state UNUSED)
{
    struct data_keys one = keys_of(1), two = keys_of(2);
    assert_true(
        bytes_equal(shown_value(arena, BYTES("Note"), BYTES("1:a"), 1, mark, NULL), BYTES("[Note 1:a]")));
    assert_true(bytes_equal(shown_value(arena, BYTES("Note"), BYTES("1:a2:b:"), 2, mark, NULL),
                            BYTES("8:[Note a]9:[Note b:]")));
    struct bytes hash = store_shown_value(&one, arena, BYTES("Note"), BYTES("a"), 1);
    assert_true(hash.size == (size_t)2 * SEALING_HASH);
    assert_true(bytes_equal(hash, store_shown_value(&two, arena, BYTES("Note"), BYTES("a"), 1)));
    assert_false(bytes_equal(hash, store_shown_value(&one, arena, BYTES("Other"), BYTES("a"), 1)));
    assert_false(bytes_equal(hash, store_shown_value(&one, arena, BYTES("Note"), BYTES("b"), 1)));
    data_keys_free(&one);
    data_keys_free(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_specification),
        cmocka_unit_test(an_item_opens_at_its_place_only),
        cmocka_unit_test(an_empty_text_is_sealed_and_none_is_not),
        cmocka_unit_test(an_altered_text_never_opens),
        cmocka_unit_test(keys_of_items_stay_the_same_and_contents_never),
        cmocka_unit_test(many_keys_by_turns),
        cmocka_unit_test(without_keys_everything_stays_clear),
        cmocka_unit_test(declared_members_are_shown_and_nothing_else),
        cmocka_unit_test(fields_that_are_declared_so_are_in_clear),
        cmocka_unit_test(hashed_fields_are_shown_as_hashes),
        cmocka_unit_test(a_search_has_the_hashes_of_hashed_fields),
        cmocka_unit_test(a_value_is_found_by_the_hashes_of_its_parts),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
