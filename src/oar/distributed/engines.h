// The engines: libraries that are loaded when a group first needs them.
#pragma once

#include <memory>
#include <string>

#include "oar/base/api.h"
#include "oar/distributed/backend.h"

namespace OAR_API oar {
namespace distributed {

// "gloo", "mpi": liboar_<name>.so beside this library. Any other name must have been given to `add_engine`.
std::unique_ptr<Backend> connect(const std::string& engine, const BackendOptions& options);
// Makes a vendor's library known.
void add_engine(const std::string& name, const std::string& path);
// Whether the library of an engine can be loaded; loads it.
bool has_engine(const std::string& name);

}  // namespace distributed
}  // namespace oar
