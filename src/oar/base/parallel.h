// Threads within an op: the only way kernels run on several cores.
//
// The caller works too: it takes tasks that no thread has started, and waits only for started ones. So on a busy machine,
// where a thread may have no processor for milliseconds, a call takes no longer than on one thread. oneDNN is called from
// here as well, piece by piece with one thread each. A forked child has one thread until it calls set_num_threads.
#pragma once

#include <cstdint>

#include "oar/base/api.h"
#include "oar/base/function_ref.h"

namespace OAR_API oar {

int num_threads();
// The processors that this process may use: by its affinity and by the quota of its container.
int processors();
// Also sets the flag "num_threads". 0 chooses automatically.
void set_num_threads(int count);

// True inside a body that is running in parallel with others.
bool in_parallel();

namespace detail {
void run_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
             FunctionRef<void(std::int64_t, std::int64_t)> body);
}  // namespace detail

// Calls body on pieces that together cover [begin, end), each but the last at least grain long. How
// it is cut depends on the thread count, so a body must not carry a sum from one index to the next
// (use parallel_chunks for that). Serial within another parallel body and for n <= grain.
// The first exception of a body reaches the caller; pieces not yet started are then skipped.
inline void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                         FunctionRef<void(std::int64_t, std::int64_t)> body) {
  if (end - begin <= grain) {
    if (begin < end) {
      body(begin, end);
    }
    return;
  }
  detail::run_for(begin, end, grain, body);
}

// Calls body(0) ... body(n_chunks - 1), each once, in any order. The caller chooses the chunks, so
// results can be independent of the thread count: one partial result per chunk, combined in
// order.
void parallel_chunks(std::int64_t n_chunks, FunctionRef<void(std::int64_t chunk)> body);

}  // namespace oar
