// What nearly every C++ test includes, precompiled.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "oar/ops/core/registry.h"
