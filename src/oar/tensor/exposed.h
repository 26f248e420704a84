// Memory that others may write at any time without notice: a NumPy array or another library
// shares it. Code must not defer reads of such memory, or cache what was computed from it:
// no version counts the writes.
#pragma once

#include "oar/base/api.h"
#include "oar/tensor/storage.h"

namespace OAR_API oar {

// By its address, once each time it is exported or imported; `conceal` undoes one call.
void expose(const void* memory);
void conceal(const void* memory);
bool is_exposed(const Storage& storage);

// Exposes our memory. Deferred readers of it are notified first.
void lend(const Storage& storage);

}  // namespace oar
