// What a library of communication offers: the interface between process groups and an engine (Gloo, MPI, a vendor's).
//
// An engine is a library that is loaded when first used. It exports `oar_backend_create`, with C linkage, of the type
// BackendCreate. It needs this header and store.h, and nothing of liboar. docs/distributed.md explains how to add one.
//
// Rules for an engine:
// - Buffers are contiguous, in memory that the engine's device can reach. A length is never 0, except for the parts of all_to_all.
// - A failure is a std::exception. What it says is shown to the user behind the names of the ranks that are missing.
// - Collectives are called by one thread at a time, in the same order on all ranks. They return when the result is there.
// - `send` and `receive` may be called by any thread while a collective runs. They return at once.
// - For a fixed number of ranks, a reduction combines in a fixed order: the same input gives the same bits, on every rank.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "oar/distributed/store.h"
#include "oar/tensor/c_types.h"

namespace oar::distributed {

// How a reduction combines elements. Booleans: Sum and Max are "or", Prod and Min are "and".
enum class ReduceKind : uint8_t { Sum, Max, Min, Prod };

// out[i] = a[i] op b[i]; out may be a or b.
using Combine = void (*)(void* out, const void* a, const void* b, size_t count);

struct Reduction {
  ReduceKind kind = ReduceKind::Sum;
  oar_dtype dtype = OAR_FLOAT32;
  size_t element_size = 4;
  Combine combine = nullptr;  // for engines that have no reduction of their own for the dtype
};

// A message that is under way. Destroying it abandons the message; its buffer must live until then.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual void wait(Milliseconds timeout) = 0;
};

// The connection of one process with the others of a group. Ranks are those in the group.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual void broadcast(void* data, size_t bytes, int root, Milliseconds timeout) = 0;
  // The result is in `out` of the root; `out` of the others is scratch memory of the same size.
  virtual void reduce(const void* in, void* out, size_t count, const Reduction& how, int root,
                      Milliseconds timeout) = 0;
  virtual void all_reduce(void* data, size_t count, const Reduction& how, Milliseconds timeout) = 0;
  // `out` has one part of `bytes` for each rank.
  virtual void all_gather(const void* in, void* out, size_t bytes, Milliseconds timeout) = 0;
  // `in` has one part of `count` elements for each rank, and may be overwritten.
  virtual void reduce_scatter(void* in, void* out, size_t count, const Reduction& how,
                              Milliseconds timeout) = 0;
  // The parts lie one after another; a part may be empty.
  virtual void all_to_all(const void* in, std::span<const size_t> in_bytes, void* out,
                          std::span<const size_t> out_bytes, Milliseconds timeout) = 0;
  // `out` counts on the root only, and has one part for each rank.
  virtual void gather(const void* in, void* out, size_t bytes, int root, Milliseconds timeout) = 0;
  // `in` counts on the root only.
  virtual void scatter(const void* in, void* out, size_t bytes, int root, Milliseconds timeout) = 0;
  virtual void barrier(Milliseconds timeout) = 0;

  virtual std::unique_ptr<Transfer> send(const void* data, size_t bytes, int to, uint32_t tag) = 0;
  virtual std::unique_ptr<Transfer> receive(void* data, size_t bytes, int from, uint32_t tag) = 0;

  // Closes the connections, so that the calls that wait fail, here and on other ranks. Called once, after a failure.
  virtual void abort() = 0;
};

constexpr uint32_t kBackendVersion = 1;

struct BackendOptions {
  uint32_t version = kBackendVersion;
  int rank = 0;
  int size = 1;
  std::vector<int> world_ranks;  // of the members, in their order
  std::string name;              // of the group; the same on all ranks, of no other group
  std::string host;  // the address under which others reach this process; empty: find one
  std::shared_ptr<Store>
      store;  // for the group alone; null where the engine was asked to do without
  Milliseconds timeout{1800000};  // for connecting
};

#define OAR_BACKEND_CREATE "oar_backend_create"
// Returns a connection, or null with the reason in *why, which the caller frees with `free`.
using BackendCreate = Backend* (*)(const BackendOptions& options, char** why);

}  // namespace oar::distributed
