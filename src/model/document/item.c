/* item: names of classes. */
#include "model/document/item.h"

#define CLASS_NAME_MOST 16

bool item_is_class_name(struct bytes name)
{
    if (name.size == 0 || name.size > CLASS_NAME_MOST || name.data[0] < 'A' || name.data[0] > 'Z')
        return false;
    for (size_t i = 1; i < name.size; i++) {
        char c = name.data[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
            return false;
    }
    return true;
}

bool item_is_reserved(struct bytes iclass)
{
    return bytes_equal(iclass, BYTES("P"));
}
