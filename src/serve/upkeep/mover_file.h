/* mover_file: the steps of one file between the directory and an object store. */
#ifndef STAMPD_SERVE_UPKEEP_MOVER_FILE_H
#define STAMPD_SERVE_UPKEEP_MOVER_FILE_H

#include "blob/blob_store.h"
#include "blob/object_store.h"
#include "seal/sealed_file.h"

enum moving {
    MOVING_DONE,
    MOVING_WRONG, /* the file: its bytes are not those of the digest, or it is missing; logged */
    MOVING_AWAY,  /* the store cannot be used; logged */
    MOVING_LOCAL, /* the directory cannot be used; logged */
};

struct moved_file {
    struct blob_store *blobs;
    struct object_store *store;
    const char *store_name; /* for the log */
    struct bytes database;
    struct blob_digest digest;
    int64_t size;
    const char *object;
    /* Of an encrypted namespace: the file is moved as it is, `digest` is its name, `size` its size there. */
    struct sealed_file_keys keys;
};

/* Its header, when it is encrypted. */
struct moved_head {
    unsigned char bytes[SEALED_FILE_HEADER];
};

/* Writes the object and reads it back. */
enum moving mover_file_send(const struct moved_file *file, struct moved_head *head_r);
/* The directory has the file afterwards, durably, if the object has its bytes. */
enum moving mover_file_bring(const struct moved_file *file);

#endif
