/* stored_id: ids of documents on their way to the database and back, where those of a class are encrypted
 * (doc/explanation/encryption.md): a session sends and returns them through a table of the places that they
 * have in its statements (stored_id_table.h), so that all above it has the ids that clients have. */
#ifndef STAMPD_STORE_STORED_ID_H
#define STAMPD_STORE_STORED_ID_H

#include "edge/pg/pg_translation.h"
#include "store/data_keys.h"

enum stored_id_kind {
    /* Parameters, counted from 1: of the class, of the id. */
    STORED_ID_ONE,  /* two texts */
    STORED_ID_ALL,  /* a text, and an array of ids of the class */
    STORED_ID_EACH, /* two arrays, of classes and of their ids */
    /* Columns of rows, counted from 0. */
    STORED_ID_COLUMN,   /* the class is a parameter, counted from 1; a column */
    STORED_ID_BESIDE,   /* the class is another column; a column */
    STORED_ID_NUMBERED, /* the class is in an array, a parameter, at the place that column 0 has; a column */
};

struct stored_id {
    int statement; /* of the list of statements */
    enum stored_id_kind kind;
    int class, id;
};

/* Borrows all but its own members; stands where the connection can refer to it. */
struct stored_ids {
    const struct data_keys *keys;
    const struct pg_statement *statements;
    size_t statement_count;
    const struct stored_id *table;
    size_t count;
    struct pg_translation translation;
};

/* From now on the connection sends and returns ids so; nothing happens when no ids are encrypted. */
void stored_ids_use(struct stored_ids *ids, struct pg *pg);
/* Those of workers' statements. */
struct stored_ids stored_ids_of_store(const struct data_keys *keys);

/* The function `send` of the translation; for the test. */
const struct pg_params *stored_ids_send(const void *context, const struct pg_statement *statement,
                                        const struct pg_params *params);

/* The payload of a notification, "Class.id" (segment/notification.h), with the id of the document; one that
 * cannot be decrypted becomes "all". */
struct bytes stored_id_open_payload(const struct data_keys *keys, struct arena *arena, struct bytes payload);
/* Logs that an id of the class cannot be decrypted. */
void stored_id_report(struct bytes class);

#endif
