// What is known of a variable before a run: its value where it depends on constants alone, its
// elements as sizes where they are made of sizes.
#pragma once

#include <optional>
#include <vector>

#include "oar/base/api.h"
#include "oar/compiler/capture/builder.h"

namespace OAR_API oar {

// The part of the program that computes t; none where that reads an input or a state, or draws
// random numbers.
std::optional<Program> constant_part(Builder& builder, const Tensor& t);
std::optional<Program> constant_part(Capture& capture, const Tensor& t);

// The elements of what such a part gives, as expressions of sizes; none where it does something
// else with them than arithmetic and rearranging.
std::optional<std::vector<Dim>> as_sizes(const Program& part);

}  // namespace oar
