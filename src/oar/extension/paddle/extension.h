// What a custom operator written for Paddle includes. See docs/custom-ops.md.
#pragma once

#include "oar/extension/paddle/dispatch.h"
#include "oar/extension/paddle/op_builder.h"
#include "oar/extension/paddle/tensor.h"
