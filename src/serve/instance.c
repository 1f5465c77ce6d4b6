#include "serve/instance.h"
