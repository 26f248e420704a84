// Memory that somebody else may write at any time, without a word: a NumPy array or another library
// sees it too. Whoever puts off reading a tensor, or keeps what was made of one, must not do so with
// such memory: no version tells of a write.
#pragma once

#include <atomic>

#include "oar/base/api.h"
#include "oar/tensor/storage.h"

namespace OAR_API oar {

// By where it begins, as often as it is handed out or taken in; `conceal` takes one back.
void expose(const void* memory);
void conceal(const void* memory);
bool is_exposed(const Storage& storage);

// Exposes memory of ours. Whoever has put off reading it is told first.
void lend(const Storage& storage);
extern std::atomic<void (*)()> g_lend_hook;

}  // namespace oar
