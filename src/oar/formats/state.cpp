#include <limits>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/formats/pickle.h"

namespace oar {
namespace {

constexpr std::string_view kNameTable = "StructuredToParameterName@@";

[[noreturn]] void expected(const char* what, const StateTree& found) {
  fail(ErrorKind::InvalidArgument, "the state has {}, where {} was expected.", found.kind(), what);
}

}  // namespace

StateTree::StateTree(uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    value_ = static_cast<int64_t>(value);
  else
    value_ = value;
}

const char* StateTree::kind() const {
  static constexpr const char* names[] = {"nothing",    "a bool",   "an integer",
                                          "an integer", "a number", "text",
                                          "a tensor",   "a list",   "a dictionary"};
  return names[value_.index()];
}

bool StateTree::boolean() const {
  if (const auto* own = std::get_if<bool>(&value_)) return *own;
  expected("a bool", *this);
}

int64_t StateTree::integer() const {
  if (const auto* own = std::get_if<int64_t>(&value_)) return *own;
  if (const auto* own = std::get_if<bool>(&value_)) return *own ? 1 : 0;
  expected("an integer", *this);
}

uint64_t StateTree::word() const {
  if (const auto* own = std::get_if<uint64_t>(&value_)) return *own;
  const int64_t value = integer();
  user_check(value >= 0, ErrorKind::InvalidArgument,
             "the state has {}, which must not be negative.", value);
  return static_cast<uint64_t>(value);
}

double StateTree::number() const {
  if (const auto* own = std::get_if<double>(&value_)) return *own;
  if (const auto* own = std::get_if<int64_t>(&value_)) return static_cast<double>(*own);
  if (is_tensor() && tensor().numel() == Dim(1)) return tensor().item_double();
  expected("a number", *this);
}

const std::string& StateTree::text() const& {
  if (const auto* own = std::get_if<std::string>(&value_)) return *own;
  expected("text", *this);
}

const Tensor& StateTree::tensor() const& {
  if (const auto* own = std::get_if<Tensor>(&value_)) return *own;
  expected("a tensor", *this);
}

const StateTree::List& StateTree::list() const& {
  if (const auto* own = std::get_if<List>(&value_)) return *own;
  expected("a list", *this);
}

const StateTree::Dict& StateTree::dict() const& {
  if (const auto* own = std::get_if<Dict>(&value_)) return *own;
  expected("a dictionary", *this);
}

const StateTree* StateTree::find(std::string_view name) const {
  for (const auto& [key, value] : dict())
    if (key == name) return &value;
  return nullptr;
}

const StateTree& StateTree::at(std::string_view name) const& {
  if (const StateTree* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const auto& [key, value] : dict()) names.push_back(key);
  fail(ErrorKind::NotFound, "the state has no '{}'; it has [{}].", name, join(names, ", "));
}

void StateTree::set(std::string name, StateTree value) {
  if (is_none()) value_ = Dict();
  auto* own = std::get_if<Dict>(&value_);
  if (!own) expected("a dictionary", *this);
  for (auto& [key, old] : *own)
    if (key == name) {
      old = std::move(value);
      return;
    }
  own->emplace_back(std::move(name), std::move(value));
}

StateTree pickled_state(const NamedTensors& tensors,
                        const std::map<std::string, std::string>& names) {
  StateTree::Dict state, table;
  for (const auto& [key, tensor] : tensors) {
    state.emplace_back(key, StateTree(tensor));
    const auto name = names.find(key);
    table.emplace_back(key, StateTree(name == names.end() ? key : name->second));
  }
  state.emplace_back(kNameTable, StateTree(std::move(table)));
  return state;
}

NamedTensors tensors_in(const StateTree& state) {
  NamedTensors tensors;
  for (const auto& [key, value] : state.dict()) {
    if (key == kNameTable) continue;
    user_check(value.is_tensor(), ErrorKind::InvalidArgument,
               "'{}' in the file is {}, where a tensor was expected.", key, value.kind());
    tensors.emplace(key, value.tensor());
  }
  return tensors;
}

}  // namespace oar
