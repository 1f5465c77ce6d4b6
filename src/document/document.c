#include "document/document.h"
