#include "document/draft.h"
