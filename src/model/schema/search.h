/* search: the conditions of `find`, and the SQL text that they become: values are parameters, names come from
 * the schema.  Pure. */
#ifndef STAMPD_MODEL_SCHEMA_SEARCH_H
#define STAMPD_MODEL_SCHEMA_SEARCH_H

#include "base/arena.h"
#include "base/builder.h"
#include "edge/pg/pg.h"
#include "model/schema/schema.h"

struct json;

/* The conditions on a value (protocol.md, "find"). */
enum search_test {
    SEARCH_EQ,
    SEARCH_SW,
    SEARCH_LT,
    SEARCH_LE,
    SEARCH_GE,
    SEARCH_GT,
    SEARCH_GELE,
    SEARCH_GELT,
    SEARCH_GTLE,
    SEARCH_GTLT,
    SEARCH_NE,
    SEARCH_IN,
    SEARCH_NIN,
    SEARCH_EXISTS,
    SEARCH_MATCH, /* the words of a text */
    SEARCH_LIKE,  /* a string that is alike, at least as much as the second value says */
    SEARCH_TESTS
};
enum {
    SEARCH_FIELDS_MOST = 7,                          /* conditions on fields in one alternative */
    SEARCH_CONDITIONS_MOST = SEARCH_FIELDS_MOST + 3, /* and on the id, the version and the ctime */
    SEARCH_BRANCHES_MOST = 8, /* with all conditions they have at most PG_PARAMETERS_MAX parameters */
    SEARCH_ORDERS_MOST = SCHEMA_INDEX_FIELDS_MOST,
    SEARCH_LIKE_MOST = 128, /* bytes of the value of LIKE */
    SEARCH_LIST_MOST = 100
};

/* What is less alike is not found, by pg_trgm's own standard. */
#define SEARCH_LIKE_LEAST 0.3

/* Does the test take two values? */
static inline bool search_has_two(enum search_test test)
{
    return test >= SEARCH_GELE && test <= SEARCH_GTLT;
}

/* Does it take a list of values (NE: of one)? */
static inline bool search_has_list(enum search_test test)
{
    return test == SEARCH_NE || test == SEARCH_IN || test == SEARCH_NIN;
}

/* Is only compared whether values are equal? */
static inline bool search_is_whole(enum search_test test)
{
    return test == SEARCH_EQ || search_has_list(test);
}

/* The member in use is that of the field's type; of a hash it is the text of the value. */
struct search_value {
    struct bytes text;
    int64_t integer;
    double number;
};

struct search_condition {
    const struct schema_field *field; /* NULL: the document's id */
    const char *header; /* a column of the document: the field is only its type; NULL: of the item */
    const struct schema_item *item; /* the document has an item of this class that satisfies it, whichever
                                     * item is found; NULL: it is about the item that is found */
    enum search_test test;
    bool is_negated;                 /* what does not satisfy it does, absent values too */
    struct search_value values[2];   /* EXISTS: the integer 1, or 0: is there none? */
    const struct search_value *list; /* of a test that takes one */
    size_t list_count;
};

/* Conditions that hold together. */
struct search_branch {
    struct search_condition conditions[SEARCH_CONDITIONS_MOST];
    size_t count;
};

/* Is it a condition on the item that is found, not on its document or on other items? */
static inline bool search_is_of_item(const struct search_condition *condition)
{
    return condition->field && !condition->header && !condition->item;
}

/* Does what it finds lie together in an index? */
static inline bool search_is_driving(const struct search_condition *condition)
{
    return !condition->header && !condition->item && !condition->is_negated && condition->test != SEARCH_NE &&
           condition->test != SEARCH_NIN && condition->test != SEARCH_EXISTS;
}

/* Does it find by words, or by likeness?  Then the index returns what is found in no order, and there is a
 * rank. */
static inline bool search_is_match(const struct search_condition *condition)
{
    return (condition->test == SEARCH_MATCH || condition->test == SEARCH_LIKE) && !condition->item &&
           !condition->is_negated;
}

/* The results are in the order of a field; what has no value of it is left out. */
struct search_order {
    const struct schema_field *field; /* neither a list nor a hash */
    const struct search_condition
        *match; /* of the only branch: the order is that of its rank; NULL: of values */
    bool is_descending;
    struct bytes after; /* the page begins after this value of the field, as text */
};

struct search {
    const struct schema *schema;
    const struct schema_class *class;
    const struct schema_item *item;
    struct search_branch branches[SEARCH_BRANCHES_MOST]; /* one of them holds */
    size_t branch_count;                                 /* at least 1 */
    struct search_order orders[SEARCH_ORDERS_MOST];
    size_t order_count;  /* 0: in the order of ids and keys; else these decide in the direction of the last
                            field where all fields are equal */
    bool is_undisclosed; /* the answer must not depend on what the schema declares of an item class */
    bool wants_count;    /* of the documents, at most `limit` */
    bool wants_totals;   /* of the items, at most `limit` (search_totals_compose) */
    bool wants_items;    /* else ids of documents; in an order these are of a singleton */
    bool wants_docs;     /* whole documents; they are found by their ids */
    const struct search_condition
        *marks;                 /* of the only branch: excerpts of its words are wanted; NULL: none */
    const struct json *members; /* of the contents that are wanted, a list of names; NULL: all */
    struct search_condition seen_version; /* where rules decide: of the version that the caller sees; `header`
                                             NULL: none */
    struct bytes after_id, after_key;     /* the page begins after this; data NULL: at the start */
    int32_t limit;
    int64_t minute;      /* the present: documents that have expired are not found */
    int64_t bytes_most;  /* of the contents of a page, beyond the first item */
    int64_t looked_most; /* items that each branch may look at, else REFUSAL_LOOKED; 0: as many as it takes */
};

/* Composes the text of the statement and its parameters, in order.  Searches that differ only in values have
 * the same text. */
void search_compose(const struct search *search, struct builder *sql, struct pg_params *params);

/* The same of a statement that returns one number: how many documents are found, `limit` + 1 at most. */
void search_compose_count(const struct search *search, struct builder *sql, struct pg_params *params);

/* Columns of the result; one row more than `limit` means that there is another page.  Behind SEARCH_ID or,
 * with items, SEARCH_PAGE are the values of the fields of the order, as texts. */
enum { SEARCH_ID, SEARCH_KEY, SEARCH_VERSION, SEARCH_CONTENT, SEARCH_RAW, SEARCH_PAGE };

/* Excerpts of texts, with the words that a `match` has found in them.  PostgreSQL makes them,
 * with marks that no text has: they begin with a secret, and are taken out here.  Pure. */

enum {
    SEARCH_MARKS_MOST = 3,   /* excerpts of a text */
    SEARCH_MARKS_WORDS = 24, /* of an excerpt, at most, */
    SEARCH_MARKS_LEAST = 8,  /* and at least */
    SEARCH_MARKS_SECRET = 32 /* characters, digits and letters */
};

/* The statement that returns a row with the excerpts of each text.  `texts`: a JSON array of strings. */
void search_marks_compose(const struct search_condition *match, struct bytes texts, struct bytes secret,
                          struct builder *sql, struct pg_params *params);
/* Appends the excerpts of a row, a JSON array: each is an array of strings, of which those at odd places are
 * marked, and the last is not.  False: nothing is marked, and nothing is appended. */
bool search_marks_write(struct bytes row, struct bytes secret, struct builder *json);

/* What a search of totals wants, and its statement.  Pure. */

enum { TOTALS_MOST = 16, TOTALS_GROUPS_MOST = 2, TOTALS_ROWS_MOST = 1000 /* groups in an answer */ };

enum totals_kind { TOTALS_SUM, TOTALS_MIN, TOTALS_MAX, TOTALS_AVG, TOTALS_KINDS };

struct search_totals {
    struct totals_wish {
        enum totals_kind kind;
        const struct schema_field *field; /* of SUM and AVG a number; neither a list nor a hash */
    } wishes[TOTALS_MOST];
    size_t count;
    const struct schema_field *groups[TOTALS_GROUPS_MOST]; /* the same */
    size_t group_count;
};

/* Items that were found, and judged: the totals are of these alone, as far as they are at these versions. */
struct search_approved {
    const struct bytes *ids, *keys;
    const int64_t *versions;
    size_t count;
};

/* Composes the statement.  `approved` NULL: of all that is found, at most `limit` items. */
void search_totals_compose(const struct search *search, const struct search_totals *totals,
                           const struct search_approved *approved, struct builder *sql,
                           struct pg_params *params);

/* Columns of the result, a row for each group, in their order, up to TOTALS_ROWS_MOST + 1; behind these are
 * the values of the groups, then those of the wishes, as texts (null: there is none); of AVG the sum, a slash
 * and the number of values. */
enum { TOTALS_FOUND /* items in all groups, `limit` + 1 at most */, TOTALS_COUNT, TOTALS_VALUES };

#endif
