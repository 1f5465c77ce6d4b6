#include "document/documents.h"
