#include "oar/backend/cpu/onednn/plan.h"

#include <cstring>
#include <list>
#include <string_view>
#include <unordered_map>

#include "oar/backend/cpu/loops/scratch.h"
#include "oar/base/fork_mutex.h"
#include "oar/base/hash.h"

namespace oar::cpu::onednn {

Desc strided(const Sizes& shape, dnnl_data_type_t dtype, const Sizes& strides) {
  dnnl_memory_desc_t made = nullptr;
  check(api().dnnl_memory_desc_create_with_strides(&made, static_cast<int>(shape.size()),
                                                   shape.data(), dtype, strides.data()),
        "a memory descriptor");
  return Desc(made);
}

Desc any_layout(const Sizes& shape, dnnl_data_type_t dtype) {
  dnnl_memory_desc_t made = nullptr;
  check(api().dnnl_memory_desc_create_with_tag(&made, static_cast<int>(shape.size()), shape.data(),
                                               dtype, dnnl_format_tag_any),
        "a memory descriptor");
  return Desc(made);
}

Desc copy_of(const_dnnl_memory_desc_t desc) {
  dnnl_memory_desc_t made = nullptr;
  check(api().dnnl_memory_desc_clone(&made, desc), "a memory descriptor");
  return Desc(made);
}

Plan::Plan(PrimitiveDesc desc, std::span<const int> arguments)
    : desc_(std::move(desc)), arguments_(arguments.begin(), arguments.end()) {
  arguments_.push_back(DNNL_ARG_SCRATCHPAD);
  scratch_bytes_ = bytes(DNNL_ARG_SCRATCHPAD);
}

// Creating it generates machine code, for a fraction of a millisecond: not under the lock, which a fork waits for. Of two threads
// that create it, the second's is discarded.
dnnl_primitive_t Plan::primitive() const {
  if (const dnnl_primitive_t ready = made_.load(std::memory_order_acquire)) return ready;
  dnnl_primitive_t made = nullptr;
  check(api().dnnl_primitive_create(&made, desc_.get()), "a primitive");
  Primitive own(made);
  const std::lock_guard lock(mutex_);
  if (!primitive_) {
    primitive_ = std::move(own);
    made_.store(primitive_.get(), std::memory_order_release);
  }
  return primitive_.get();
}

const_dnnl_memory_desc_t Plan::layout(int argument) const {
  return argument == DNNL_ARG_SCRATCHPAD
             ? api().dnnl_primitive_desc_query_md(desc_.get(), dnnl_query_scratchpad_md, 0)
             : api().dnnl_primitive_desc_query_md(desc_.get(), dnnl_query_exec_arg_md, argument);
}

size_t Plan::bytes(int argument) const { return api().dnnl_memory_desc_get_size(layout(argument)); }

const char* Plan::implementation() const {
  const char* text = "";
  api().dnnl_primitive_desc_query(desc_.get(), dnnl_query_impl_info_str, 0,
                                  static_cast<void*>(&text));
  return text;
}

bool Plan::is_reference() const {
  return std::string_view(implementation()).find("ref") != std::string_view::npos;
}

Plan::Handles Plan::take() const {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      Handles handles = std::move(free_.back());
      free_.pop_back();
      return handles;
    }
  }
  Handles handles;
  dnnl_stream_t stream = nullptr;
  check(api().dnnl_stream_create(&stream, api().engine, dnnl_stream_default_flags), "a stream");
  handles.stream.reset(stream);
  for (const int argument : arguments_) {
    dnnl_memory_t memory = nullptr;
    check(api().dnnl_memory_create(&memory, layout(argument), api().engine, DNNL_MEMORY_NONE),
          "a memory handle");
    handles.memory.push_back(Memory(memory));
    handles.arguments.push_back({argument, memory});
  }
  return handles;
}

void Plan::run(std::span<void* const> data) const {
  const OneThread one;
  const dnnl_primitive_t primitive = this->primitive();
  Handles handles = take();
  const Scratch<char, 64> scratch(static_cast<int64_t>(scratch_bytes_));
  for (size_t i = 0; i < handles.memory.size(); ++i)
    check(api().dnnl_memory_set_data_handle(handles.memory[i].get(),
                                            i < data.size() ? data[i] : scratch.data()),
          "a memory handle");
  check(api().dnnl_primitive_execute(primitive, handles.stream.get(),
                                     static_cast<int>(handles.arguments.size()),
                                     handles.arguments.data()),
        implementation());
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(handles));
}

bool same_layout(const Desc& a, const_dnnl_memory_desc_t b) {
  return api().dnnl_memory_desc_equal(a.get(), b) != 0;
}

std::unique_ptr<Plan> reorder(const Desc& from, const_dnnl_memory_desc_t to) {
  if (same_layout(from, to)) return nullptr;
  const Library& lib = api();
  dnnl_primitive_desc_t desc = nullptr;
  check(lib.dnnl_reorder_primitive_desc_create(&desc, from.get(), lib.engine, to, lib.engine,
                                               lib.attributes),
        "a reorder");
  return std::make_unique<Plan>(PrimitiveDesc(desc),
                                std::initializer_list<int>{DNNL_ARG_FROM, DNNL_ARG_TO});
}

namespace {

struct KeyHash {
  size_t operator()(const PlanKey& key) const { return hash_range(key); }
};

// The plans used last. Creating one takes longer than most calls, so it happens outside the lock;
// of two threads that create the same one, the second's is discarded.
class PlanCache {
 public:
  bool find(const PlanKey& key, std::shared_ptr<const void>& plan) {
    const std::lock_guard lock(mutex_);
    const auto found = places_.find(key);
    if (found == places_.end()) return false;
    order_.splice(order_.begin(), order_, found->second);
    plan = found->second->plan;
    return true;
  }
  void put(const PlanKey& key, std::shared_ptr<const void> plan) {
    std::shared_ptr<const void> dropped;  // destroyed after the lock is released
    const std::lock_guard lock(mutex_);
    if (places_.contains(key)) return;
    order_.push_front({key, std::move(plan)});
    places_.emplace(key, order_.begin());
    if (order_.size() <= kMostPlans) return;
    dropped = std::move(order_.back().plan);
    places_.erase(order_.back().key);
    order_.pop_back();
  }

 private:
  struct Entry {
    PlanKey key;
    std::shared_ptr<const void> plan;
  };
  ForkMutex mutex_;
  std::list<Entry> order_;
  std::unordered_map<PlanKey, std::list<Entry>::iterator, KeyHash> places_;
};

// Never destroyed: a thread may still compute while the process ends.
PlanCache& cache() {
  static auto* const made = new PlanCache;
  return *made;
}

}  // namespace

std::shared_ptr<const void> find_or_make(const PlanKey& key, PlanMaker make) {
  std::shared_ptr<const void> plan;
  if (cache().find(key, plan)) return plan;
  const OneThread one;  // what oneDNN chooses depends on it
  plan = make();
  cache().put(key, plan);
  return plan;
}

}  // namespace oar::cpu::onednn
