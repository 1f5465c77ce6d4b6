#include "document/delta.h"
