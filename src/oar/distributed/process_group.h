// A group of processes and what they ask of each other: an ordered queue in front of an engine, tasks to wait for, and errors
// that say who is missing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/distributed/store.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace distributed {

// The numbers are Paddle's.
enum class ReduceOp : uint8_t { Sum = 0, Max = 1, Min = 2, Prod = 3, Avg = 4 };
ReduceOp reduce_op_of(std::string_view name, const char* what);
const char* name_of(ReduceOp op);

enum class Collective : uint8_t {
  Broadcast,
  Reduce,
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Gather,
  Scatter,
  Barrier,
  Send,
  Receive
};
const char* name_of(Collective what);
Collective collective_of(std::string_view name);

// Contiguous memory on the host.
struct Memory {
  void* data = nullptr;
  size_t bytes = 0;
};

// One call. `in` and `out` are whole, or have one piece for each rank where the collective has one; Broadcast and AllReduce
// work in `out`.
struct Request {
  Collective what = Collective::Barrier;
  std::vector<Memory> in, out;
  DType dtype = DType::Float32;
  ReduceOp op = ReduceOp::Sum;
  int peer = 0;               // the root, or the other process: a rank in the group
  uint32_t tag = 0;           // of Send and Receive
  std::string shape;          // of the tensor, for messages and the check
  std::vector<Tensor> keeps;  // what owns the memory
};

class Task {
 public:
  virtual ~Task() = default;
  virtual bool is_done() = 0;
  // Throws the failure, every time. After the time-out, if one is given, it throws as well, and the call goes on.
  virtual void wait(std::optional<Milliseconds> timeout = std::nullopt) = 0;
};

struct GroupOptions {
  std::string backend = "gloo";  // the name of an engine, see engines.h
  std::vector<int> ranks;        // of the members, in the world
  int rank = 0;                  // of this process, in the world
  std::string name;              // the same on all members, of no other group of the job
  std::shared_ptr<Store> store;  // of the job; may be null for MPI
  Milliseconds timeout{1800000};
};

class ProcessGroup {
 public:
  // Meets the other members; an Error that names those who have not come within the time-out.
  static std::shared_ptr<ProcessGroup> make(GroupOptions options);
  virtual ~ProcessGroup() = default;

  // The numbers of this process and of the processes, in the group.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const GroupOptions& options() const = 0;

  // Begins a call. Collectives run in the order of their calls, which must be the same on all members.
  virtual std::shared_ptr<Task> start(Request request) = 0;
  // Closes the connections. What waits, here or on other ranks, fails.
  virtual void close() = 0;
};

}  // namespace distributed
}  // namespace oar
