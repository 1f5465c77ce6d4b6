/* random_stock: a private page, whose first bytes count what is left; zeros: nothing. */
#include "seal/random_stock.h"

#include <string.h>

#include "base/base.h"
#include "edge/crypto/crypto.h"
#include "edge/mapping.h"

enum { PAGE = 4096 };

struct stock {
    size_t left; /* at the end of `bytes` */
    unsigned char bytes[PAGE - sizeof(size_t)];
};
_Static_assert(sizeof(struct stock) == PAGE, "the kernel empties whole pages");

void random_stock_take(void *buffer, size_t size)
{
    static struct stock *stock;
    static bool is_tried;
    if (!is_tried)
        stock = mapping_keep(PAGE);
    is_tried = true;
    if (!stock || size > sizeof stock->bytes) {
        crypto_random(buffer, size);
        return;
    }
    if (stock->left < size) {
        crypto_random(stock->bytes, sizeof stock->bytes);
        stock->left = sizeof stock->bytes;
    }
    unsigned char *taken = stock->bytes + sizeof stock->bytes - stock->left;
    stock->left -= size;
    memcpy(buffer, taken, size);
    explicit_bzero(taken, size);
}
