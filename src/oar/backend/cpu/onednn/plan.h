// Plans: primitives of oneDNN with all that a call needs besides its data, cached by what they were
// created for.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "oar/backend/cpu/onednn/library.h"
#include "oar/base/fork_mutex.h"
#include "oar/base/function_ref.h"
#include "oar/base/small_vector.h"

namespace oar::cpu::onednn {

// Deletes an object of oneDNN by the function of the table that `kMember` names.
template <auto kMember>
struct Destroy {
  template <class T>
  void operator()(T* object) const {
    (api().*kMember)(object);
  }
};
using Desc = std::unique_ptr<dnnl_memory_desc, Destroy<&Library::dnnl_memory_desc_destroy>>;
using Memory = std::unique_ptr<dnnl_memory, Destroy<&Library::dnnl_memory_destroy>>;
using Stream = std::unique_ptr<dnnl_stream, Destroy<&Library::dnnl_stream_destroy>>;
using Primitive = std::unique_ptr<dnnl_primitive, Destroy<&Library::dnnl_primitive_destroy>>;
using PrimitiveDesc =
    std::unique_ptr<dnnl_primitive_desc, Destroy<&Library::dnnl_primitive_desc_destroy>>;

using Sizes = SmallVector<int64_t, 6>;

Desc strided(const Sizes& shape, dnnl_data_type_t dtype, const Sizes& strides);
// The layout is oneDNN's choice.
Desc any_layout(const Sizes& shape, dnnl_data_type_t dtype);
Desc copy_of(const_dnnl_memory_desc_t desc);

// A primitive, created at its first run: until then only its descriptor, which is cheap. Calls may run
// at the same time: each takes its own set of memory handles.
class Plan {
 public:
  // `arguments` are the numbers (DNNL_ARG_…) of the arguments of `run`, in that order.
  Plan(PrimitiveDesc desc, std::span<const int> arguments);
  Plan(PrimitiveDesc desc, std::initializer_list<int> arguments)
      : Plan(std::move(desc), std::span<const int>(arguments.begin(), arguments.size())) {}

  void run(std::span<void* const> data) const;
  void run(std::initializer_list<void*> data) const {
    run(std::span<void* const>(data.begin(), data.size()));
  }
  const_dnnl_memory_desc_t layout(int argument) const;
  size_t bytes(int argument) const;
  const char* implementation() const;
  // oneDNN's fallback implementation, slower than ours.
  bool is_reference() const;

 private:
  struct Handles {
    Stream stream;
    SmallVector<Memory, 4> memory;
    SmallVector<dnnl_exec_arg_t, 4> arguments;
  };
  Handles take() const;

  dnnl_primitive_t primitive() const;

  PrimitiveDesc desc_;
  mutable std::atomic<dnnl_primitive_t> made_{nullptr};
  mutable Primitive primitive_;
  SmallVector<int, 4> arguments_;
  size_t scratch_bytes_;
  mutable ForkMutex mutex_;
  mutable std::vector<Handles> free_;
};

// Reorders a tensor from one layout to another; null if they are the same.
std::unique_ptr<Plan> reorder(const Desc& from, const_dnnl_memory_desc_t to);
bool same_layout(const Desc& a, const_dnnl_memory_desc_t b);

// What calls that share an oar_plan have found out so far. Any of them replaces it by something newer; those that run keep
// what they began with.
template <class T>
class Latest {
 public:
  std::shared_ptr<const T> get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  std::shared_ptr<const T> set(T value) {
    auto made = std::make_shared<const T>(std::move(value));
    std::shared_ptr<const T> dropped = made;  // destroyed after the lock is let go
    const std::lock_guard lock(mutex_);
    value_.swap(dropped);
    return made;
  }

 private:
  mutable ForkMutex mutex_;
  std::shared_ptr<const T> value_;
};

// What a plan was made for: the op, sizes, dtypes, strides, attributes, threads, as numbers.
using PlanKey = SmallVector<int64_t, 40>;

// Null if oneDNN cannot do it; that is cached as well.
using PlanMaker = FunctionRef<std::shared_ptr<const void>()>;
std::shared_ptr<const void> find_or_make(const PlanKey& key, PlanMaker make);
template <class T>
std::shared_ptr<const T> plan_for(const PlanKey& key,
                                  FunctionRef<std::shared_ptr<const T>()> make) {
  return std::static_pointer_cast<const T>(
      find_or_make(key, [&]() -> std::shared_ptr<const void> { return make(); }));
}

inline constexpr size_t kMostPlans = 512;

}  // namespace oar::cpu::onednn
