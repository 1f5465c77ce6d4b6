#include "document/store.h"
