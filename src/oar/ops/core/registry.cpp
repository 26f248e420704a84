#include "oar/ops/core/registry.h"

#include "oar/base/fork_mutex.h"
#include "oar/base/string_util.h"
#include "oar/ops/core/families.h"

namespace oar {
namespace {

char category_letter(std::string_view word) {
  if (word == "bool") return 'b';
  if (word == "int") return 'i';
  if (word == "float") return 'f';
  if (word == "complex") return 'c';
  fail(ErrorKind::InvalidArgument, "'{}' is not a dtype category (bool, int, float, complex)",
       word);
}

// The schema of `name_`: first operand and result become Tensor(a!).
Schema inplace_schema(const Schema& base) {
  std::string text = base.str();
  text.insert(base.name.size(), "_");
  const size_t first = text.find("(Tensor") + 7;
  text.insert(first, "(a!)");
  return Schema::parse(text.substr(0, text.find("->")) + "-> Tensor(a!)");
}

}  // namespace

// Words of `saves`: "x", "out", "x:shape", "x>y".
void Op::read_saves() {
  const char* const saves = def_.saves;
  for (const std::string_view word : split(saves, ' ')) {
    if (word.empty()) continue;
    const size_t end = word.find_first_of(":>");
    const std::string_view what = word.substr(0, end);
    const bool by_shape = end != std::string_view::npos && word[end] == ':';
    const bool by_need = end != std::string_view::npos && word[end] == '>';
    if (const int i = schema_.index_of(what); i >= 0) {
      (by_shape ? saved_shapes_ : saved_inputs_) |= 1u << i;
      if (!by_need) continue;
      const int reader = schema_.index_of(word.substr(end + 1));
      user_check(reader >= 0, ErrorKind::InvalidArgument, "{} saves '{}', but has no operand {}",
                 name(), word, word.substr(end + 1));
      saved_for_.resize(schema_.parameters.size());
      saved_for_[static_cast<size_t>(i)] |= 1u << reader;
      continue;
    }
    bool found = false;
    for (size_t i = 0; i < schema_.results.size(); ++i)
      if (schema_.results[i].name == what) {
        saved_outputs_ |= 1u << i;
        found = true;
      }
    user_check(found, ErrorKind::InvalidArgument, "{} saves '{}', which is no operand or result",
               name(), what);
  }
}

Op::Op(OpDef def, Schema schema, std::string family, const Op* inplace_of)
    : def_(std::move(def)),
      schema_(std::move(schema)),
      family_(std::move(family)),
      inplace_of_(inplace_of) {
  internal_check(schema_.parameters.size() <= 32, "{} has more than 32 parameters", name());
  if (def_.view) def_.traits = def_.traits | Trait::View;
  if (def_.traits & Trait::Elementwise) def_.traits = def_.traits | Trait::Broadcast;
  for (const Result& r : schema_.results)
    if (r.written) def_.traits = def_.traits | Trait::Inplace;
  read_saves();
  const std::vector<std::string_view> promoted = split(def_.promotes, ' ');
  for (size_t i = 0; i < schema_.parameters.size(); ++i) {
    const Parameter& p = schema_.parameters[i];
    const bool named = std::string_view(def_.promotes).empty() ||
                       std::find(promoted.begin(), promoted.end(), p.name) != promoted.end();
    if (p.is_tensor() && named) promotes_ |= 1u << i;
  }
  if (const char* const scalar = def_.scalar) copied_ = schema_.index_of(scalar);
  if (copied_ >= 0 && !schema_.parameters[static_cast<size_t>(copied_)].is_tensor()) copied_ = -1;
  prepares_ = has(Trait::Broadcast) || has(Trait::Promote) || has(Trait::FloatMath);
  if (*def_.dtypes) accepted_dtypes_ = 0;
  // Dtypes for storage: views and what the record names. Whole bytes also where elements are moved, or where the parts
  // of a decomposition decide.
  const bool stores = has(Trait::Packed) || has(Trait::View);
  const bool moves = has(Trait::Moves) || (!*def_.dtypes && def_.decompose && !def_.scalar);
  for (int t = 0; t < kDTypeCount; ++t)
    if (const auto dtype = static_cast<DType>(t); is_stored(dtype)) {
      accepted_dtypes_ &= ~(1u << t);
      if (stores || (moves && !is_packed(dtype))) accepted_dtypes_ |= 1u << t;
    }
  for (const std::string_view word : split(def_.dtypes, ' '))
    for (int t = 0; t < kDTypeCount && !word.empty(); ++t)
      if (detail::kDTypes[t].category == category_letter(word)) accepted_dtypes_ |= 1u << t;
}

const Op::KernelTable* Op::refresh_kernels() const {
  static auto& mutex = *new ForkMutex;
  std::lock_guard lock(mutex);
  auto table = std::make_unique<KernelTable>();
  table->generation = devices::generation();
  const std::string& kernel_name = inplace_of_ ? inplace_of_->name() : name();
  for (const DeviceType* type : devices::all())
    table->by_device.push_back(type->kernels(kernel_name, schema_.version));
  kernel_tables_.push_back(std::move(table));
  kernel_table_.store(kernel_tables_.back().get(), std::memory_order_release);
  return kernel_tables_.back().get();
}

Registry& Registry::get() {
  static Registry* instance = [] {
    auto* registry = new Registry;  // never destroyed: other threads may still call ops at exit
    register_families(*registry);
    add_fork_step({[] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                   [] { get().mutex_.unlock(); }});
    return registry;
  }();
  return *instance;
}

const Op& Registry::add_locked(OpDef def, std::string family) {
  user_check(def.schema != nullptr, ErrorKind::InvalidArgument, "an op needs a schema.");
  Schema schema = Schema::parse(def.schema);
  for (const auto& op : ops_)
    user_check(op->name() != schema.name, ErrorKind::InvalidArgument,
               "an op called {} is registered already.\nhint: Choose another name, with your "
               "project's prefix.",
               schema.name);
  ops_.push_back(std::make_unique<Op>(std::move(def), std::move(schema), family, nullptr));
  Op& op = *ops_.back();
  if (op.has(Trait::HasInplace)) {
    OpDef derived = op.def();
    // A written tensor keeps its dtype anyway.
    constexpr auto kOwn = static_cast<uint32_t>(Trait::HasInplace | Trait::Arithmetic);
    derived.traits = static_cast<Trait>(static_cast<uint32_t>(derived.traits) & ~kOwn);
    derived.jvp = {};
    ops_.push_back(std::make_unique<Op>(std::move(derived), inplace_schema(op.schema()),
                                        std::move(family), &op));
    op.inplace_ = ops_.back().get();
  }
  return op;
}

void Registry::add_family(const char* name, std::span<const OpDef* const> ops) {
  std::lock_guard lock(mutex_);
  for (const OpDef* def : ops) add_locked(*def, name);
}

const Op* Registry::find(std::string_view name) const {
  std::lock_guard lock(mutex_);
  for (const auto& op : ops_)
    if (op->name() == name) return op.get();
  return nullptr;
}

const Op& Registry::at(std::string_view name) const {
  if (const Op* op = find(name)) return *op;
  std::vector<std::string> names;
  for (const Op* op : all()) names.push_back(op->name());
  const std::string nearest = nearest_name(name, names);
  fail(ErrorKind::NotFound, "there is no op called '{}'.\nhint: {}", name,
       nearest.empty() ? "`oar ops` lists them."
                       : oar::format("The nearest name is '{}'.", nearest));
}

std::vector<const Op*> Registry::all() const {
  std::lock_guard lock(mutex_);
  std::vector<const Op*> list;
  for (const auto& op : ops_) list.push_back(op.get());
  return list;
}

const Op* functional_of(const Op& op) {
  if (op.inplace_of()) return op.inplace_of();
  const std::string& name = op.name();
  if (name.back() != '_') return nullptr;
  const Op* other = Registry::get().find(std::string_view(name).substr(0, name.size() - 1));
  if (!other || other->has(Trait::Inplace)) return nullptr;
  const std::vector<Parameter>&a = op.schema().parameters, &b = other->schema().parameters;
  if (a.size() != b.size() || op.schema().results.size() != other->schema().results.size())
    return nullptr;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].type != b[i].type || a[i].list != b[i].list || a[i].name != b[i].name) return nullptr;
  return other;
}

const Op& get_op(std::string_view name) { return Registry::get().at(name); }

}  // namespace oar
