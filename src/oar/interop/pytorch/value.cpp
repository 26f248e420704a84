#include "oar/interop/pytorch/value.h"

#include "oar/base/error.h"

namespace oar::pytorch {
namespace {

constexpr size_t kMostBoxes = size_t{1} << 21, kMostItems = size_t{1} << 22;
constexpr int kDeepest = 64;

}  // namespace

Value Value::flag(bool value) {
  Value made;
  made.kind = Bool;
  made.integer = value ? 1 : 0;
  return made;
}
Value Value::of(int64_t value) {
  Value made;
  made.kind = Int;
  made.integer = value;
  return made;
}
Value Value::of(double value) {
  Value made;
  made.kind = Float;
  made.number = value;
  return made;
}
Value Value::of(std::string value) {
  Value made;
  made.kind = Text;
  made.text = std::move(value);
  return made;
}

const char* Value::kind_name() const {
  static constexpr const char* names[] = {"nothing",      "a bool",    "an integer", "a number",
                                          "a text",       "a tensor",  "a list",     "a tuple",
                                          "a dictionary", "an object", "a function"};
  return names[kind];
}

Value Heap::make(Value::Kind kind, std::vector<Value> items) {
  user_check(boxes_.size() < kMostBoxes, ErrorKind::Unsupported,
             "the model has more than {} lists and objects.", kMostBoxes);
  grow(items.size());
  boxes_.emplace_back();
  boxes_.back().items = std::move(items);
  Value made;
  made.kind = kind;
  made.box = &boxes_.back();
  return made;
}

void Heap::grow(size_t items) {
  items_ += items;
  user_check(items_ <= kMostItems, ErrorKind::Unsupported,
             "the lists of the model have more than {} entries.", kMostItems);
}

void Heap::check_change(const Box& box, std::string_view what) {
  if (!box.kept) return;
  user_check(may_change_kept, ErrorKind::Unsupported,
             "{} changes what the module keeps between runs.", what);
  changed_kept = true;
}

void mark_known(Value& value, int depth) {
  if (value.is_tensor()) value.known = true;
  if (!value.box || depth == kDeepest) return;
  for (Value& item : value.box->items) mark_known(item, depth + 1);
}

}  // namespace oar::pytorch
