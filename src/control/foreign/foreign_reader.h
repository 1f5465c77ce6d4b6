/* foreign_reader: a program in Python that reads a file of another system and prints its documents.
 *
 * It runs as `python3 -I PROGRAM PATH`, and gets one JSON object on its standard input: the members that the
 * command gives, and the limits of the settings.  It prints a line of JSON for each thing that it finds:
 *
 *   {"size":N}, or {"refused":why}                    first: the bytes of what it will read
 *   {"class","id","items":[[class,key,content]…]}     a document; "files":[[key,type,base64]…]: attachments,
 *                                                     "deletes":[class…]: there it is not any more; without
 *                                                     a class it is nowhere else.  A content with line
 *                                                     breaks is [class,key,null,text]
 *   {"position":text,"documents":N}                   how far a source was read that goes on
 *   {"wrong":why}                                     a document that is not right; null: the notes say why
 *   {"left_out":true}                                 nothing is to be stored, and that is right
 *   {"failed":why}                                    nothing more can be read
 *   {"digest":hex,"notes":[text…]}                    last: of all that was read
 *
 * But for the first they have "line", the place in the file, where it goes on to another one "last_line", and
 * "offset", the bytes read so far. */
#ifndef STAMPD_CONTROL_FOREIGN_FOREIGN_READER_H
#define STAMPD_CONTROL_FOREIGN_FOREIGN_READER_H

#include "base/process/subprocess.h"
#include "control/archive/importer_files.h"
#include "control/documents/input.h"
#include "edge/json/json.h"

/* FOREIGN_LEFT_OUT: nothing is to be stored, and that is right.  FOREIGN_WRONG: reading may go on. */
enum foreign_event {
    FOREIGN_DOCUMENT,
    FOREIGN_LEFT_OUT,
    FOREIGN_WRONG,
    FOREIGN_POSITION,
    FOREIGN_END,
    FOREIGN_FAILED
};

struct foreign_reader {
    struct control *control;
    const char *path;
    struct subprocess child;
    struct input input;
    struct arena *arena; /* of a line */
    const struct json *root;
    struct bytes id;         /* of the document that was returned */
    int64_t line, last_line; /* of what was returned */
    int64_t offset, size;
    char digest[CRYPTO_SHA256_HEX + 1]; /* at FOREIGN_END */
};

/* Starts the program; `members` are those of the object, each with a comma behind it.  On failure reports
 * why. */
MUST_USE bool foreign_reader_open(struct foreign_reader *reader, struct control *control, const char *program,
                                  const char *path, struct bytes members);
/* Appends a document as a line of an archive, of the version `number`; its files go to `files`, if not NULL.
 * FOREIGN_WRONG and FOREIGN_FAILED: `problem_r` says why, valid until the next call; NULL: it has been
 * reported, or the notes say it. */
enum foreign_event foreign_reader_next(struct foreign_reader *reader, struct importer_files *files,
                                       int64_t number, struct builder *lines, const char **problem_r);
/* Prints the notes that came at FOREIGN_END. */
void foreign_reader_print_notes(const struct foreign_reader *reader);
void foreign_reader_close(struct foreign_reader *reader);

#endif
