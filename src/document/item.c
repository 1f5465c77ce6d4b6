#include "document/item.h"
