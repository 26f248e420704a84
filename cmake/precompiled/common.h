// What nearly every file of the library includes, precompiled. A file still includes what it uses.
#include <algorithm>
#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
