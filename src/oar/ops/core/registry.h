// The registry of ops: built-in families at start, users' ops at run time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/device/device.h"
#include "oar/ops/core/op_def.h"
#include "oar/ops/core/scalar.h"

namespace OAR_API oar {

// A registered op: its record, its parsed schema, and what the dispatcher needs quickly.
class Op {
 public:
  Op(OpDef def, Schema schema, std::string family, const Op* inplace_of);

  const OpDef& def() const { return def_; }
  const Schema& schema() const { return schema_; }
  const std::string& name() const { return schema_.name; }
  const std::string& family() const { return family_; }
  // Of a family in this folder, and not registered at run time.
  bool is_built_in() const { return built_in_; }
  bool has(Trait t) const { return def_.traits & t; }
  // The op whose result this one writes into its first argument, for derived in-place ops.
  const Op* inplace_of() const { return inplace_of_; }
  // `name_`, if the record requests it.
  const Op* inplace() const { return inplace_; }
  // The parsed scalar body; null if the record has none.
  const ScalarBody* scalar() const;
  // The operand whose elements the result has, by the scalar body: x of assign and cast; -1 if there is none.
  int copied() const { return copied_; }
  // Overwrites its first operand with the elements of another, broadcast and cast.
  bool stores() const { return copied_ > 0 && has(Trait::Inplace); }
  uint32_t saved_inputs() const { return saved_inputs_; }  // bit per parameter
  uint32_t saved_shapes() const { return saved_shapes_; }
  // The parameters whose gradients read all of a saved one; 0: it is always saved whole.
  uint32_t saved_for(size_t parameter) const {
    return saved_for_.empty() ? 0 : saved_for_[parameter];
  }
  uint32_t saved_outputs() const { return saved_outputs_; }
  bool prepares() const { return prepares_; }
  uint32_t promotes() const { return promotes_; }  // bit per parameter
  // A bit per dtype that the first operands may have.
  bool accepts(DType t) const { return accepted_dtypes_ >> static_cast<int>(t) & 1; }

  // Kernel candidates on a device type, in order.
  std::span<const oar_kernel* const> kernels(uint8_t device_type) const {
    const KernelTable* table = kernel_table_.load(std::memory_order_acquire);
    if (!table || table->generation != devices::generation()) [[unlikely]]
      table = refresh_kernels();
    return table->by_device[device_type];
  }

 private:
  void read_saves();
  friend class Registry;
  struct KernelTable {
    uint32_t generation;
    std::vector<std::vector<const oar_kernel*>> by_device;
  };
  const KernelTable* refresh_kernels() const;

  OpDef def_;
  Schema schema_;
  std::string family_;
  const Op* inplace_of_;
  const Op* inplace_ = nullptr;
  uint32_t saved_inputs_ = 0, saved_shapes_ = 0, saved_outputs_ = 0, promotes_ = 0;
  std::vector<uint32_t> saved_for_;
  bool prepares_ = false;
  bool built_in_ = true;
  int copied_ = -1;
  uint32_t accepted_dtypes_ = ~0u;
  mutable std::atomic<const ScalarBody*> scalar_{nullptr};
  mutable std::atomic<const KernelTable*> kernel_table_{nullptr};
  mutable std::vector<std::unique_ptr<KernelTable>> kernel_tables_;  // old ones may be in use
};

// A derived in-place op has the rules of the op it is derived from. Ops live in the registry, never in a temporary.
// NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter)
inline const Op& rules_of(const Op& op) { return op.inplace_of() ? *op.inplace_of() : op; }

class Registry {
 public:
  // Holds the built-in families from the first call on.
  static Registry& get();

  const Op& add(OpDef def, std::string family);
  void add_family(const char* name, std::span<const OpDef* const> ops);
  const Op* find(std::string_view name) const;
  // NotFound with the nearest name.
  const Op& at(std::string_view name) const;
  std::vector<const Op*> all() const;

  // What is wrong or missing in the built-in records: one line each. A test requires it to be empty.
  std::vector<std::string> validate() const;
  // Rules marked Unsupported: "op: rule: why".
  std::vector<std::string> unsupported() const;

 private:
  const Op& add_locked(OpDef def, std::string family);
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Op>> ops_;
  std::vector<std::unique_ptr<std::string>> texts_;
};

// The op that computes what `op` writes, one result for each of its results from the same arguments, or null.
// An op that writes and is called `name_` belongs to `name`.
const Op* functional_of(const Op& op);

// Generated functions keep the reference.
const Op& get_op(std::string_view name);

// At the end of a family's file: the explicit list of its records.
#define OAR_FAMILY(name, ...)                         \
  std::span<const OpDef* const> name##_family() {     \
    static const OpDef* const list[] = {__VA_ARGS__}; \
    return list;                                      \
  }

}  // namespace oar
