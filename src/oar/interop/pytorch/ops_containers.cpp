// Lists, tuples and dictionaries of TorchScript: they move values about and compute nothing.
#include <algorithm>
#include <cmath>

#include "oar/base/error.h"
#include "oar/interop/pytorch/call.h"

namespace oar::pytorch {
namespace {

constexpr int kDeepest = 64;
constexpr auto kPlain = Converter::Plain;

// Numbers, texts, and containers of them by content; tensors and objects by identity.
bool same_value(const Value& a, const Value& b, int depth = 0) {
  if (a.is_number() && b.is_number()) return a.as_number() == b.as_number();
  if (a.kind != b.kind) return false;
  if (a.kind == Value::Text || a.kind == Value::Name) return a.text == b.text;
  if (a.is_tensor()) return a.tensor.is_same(b.tensor);
  if (a.is_none() || a.box == b.box) return true;
  if (a.kind == Value::Object || a.box->items.size() != b.box->items.size() || depth > kDeepest)
    return false;
  const auto equal = [&](const std::vector<Value>& x, const std::vector<Value>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [&](const Value& i, const Value& j) { return same_value(i, j, depth + 1); });
  };
  return equal(a.box->keys, b.box->keys) && equal(a.box->items, b.box->items);
}

std::ptrdiff_t place_of(const std::vector<Value>& all, const Value& wanted) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Value& one) { return same_value(one, wanted); });
  return found == all.end() ? -1 : found - all.begin();
}
// From the end if negative.
size_t place_in(const Call& c, const Box& list, const char* parameter) {
  const int64_t at = c.integer(parameter), size = static_cast<int64_t>(list.items.size());
  const int64_t place = at < 0 ? at + size : at;
  if (place < 0 || place >= size)
    c.refuse(format("its index {} is out of range of {} entries", at, size));
  return static_cast<size_t>(place);
}

// ---- lists -------------------------------------------------------------------------------------

Value list_size(const Call& c) { return Value::of(static_cast<int64_t>(c.box("a").items.size())); }
Value text_size(const Call& c) { return Value::of(static_cast<int64_t>(c.text("a").size())); }
Value tensor_size(const Call& c) {
  if (c.tensor("a").rank() == 0) c.refuse("a tensor without axes has no length");
  return Value::of(c.tensor("a").dim(0).value());
}
Value list_entry(const Call& c) {
  const Box& list = c.box("self");
  return list.items[place_in(c, list, "index")];
}
Value set_list_entry(const Call& c) {
  Box& list = c.changed("self");
  list.items[place_in(c, list, "index")] = c.value("value");
  return c.value("self");
}
Value appended(const Call& c) {
  c.heap().grow(1);
  c.changed("self").items.push_back(c.value("value"));
  return c.value("self");
}
Value extended(const Call& c) {
  const std::vector<Value> more = c.box("values").items;
  c.heap().grow(more.size());
  Box& list = c.changed("self");
  list.items.insert(list.items.end(), more.begin(), more.end());
  return c.value("self");
}
Value inserted(const Call& c) {
  Box& list = c.changed("self");
  const auto size = static_cast<int64_t>(list.items.size());
  const int64_t at = c.integer("index");
  c.heap().grow(1);
  list.items.insert(list.items.begin() + std::clamp<int64_t>(at < 0 ? at + size : at, 0, size),
                    c.value("value"));
  return {};
}
Value popped(const Call& c) {
  Box& list = c.changed("self");
  const auto at = static_cast<std::ptrdiff_t>(place_in(c, list, "index"));
  Value taken = list.items[static_cast<size_t>(at)];
  list.items.erase(list.items.begin() + at);
  return taken;
}
Value deleted(const Call& c) {
  popped(c);
  return {};
}
Value removed(const Call& c) {
  Box& list = c.changed("self");
  const auto at = place_of(list.items, c.value("value"));
  if (at < 0) c.refuse("the list does not have the value");
  list.items.erase(list.items.begin() + at);
  return {};
}
Value cleared(const Call& c) {
  Box& box = c.changed("self");
  box.items.clear();
  box.keys.clear();
  return {};
}
Value turned_round(const Call& c) {
  Box& list = c.changed("self");
  std::reverse(list.items.begin(), list.items.end());
  return {};
}
Value copied_list(const Call& c) { return c.list_of(c.box("self").items); }
Value first_place(const Call& c) {
  const auto at = place_of(c.box("self").items, c.value("value"));
  if (at < 0) c.refuse("the list does not have the value");
  return Value::of(static_cast<int64_t>(at));
}
Value number_of_equal(const Call& c) {
  int64_t count = 0;
  for (const Value& one : c.box("self").items) count += same_value(one, c.value("value")) ? 1 : 0;
  return Value::of(count);
}
Value list_contains(const Call& c) {
  return Value::flag(place_of(c.box("self").items, c.value("value")) >= 0);
}
Value lists_joined(const Call& c) {
  std::vector<Value> all = c.box("a").items;
  const std::vector<Value>& more = c.box("b").items;
  all.insert(all.end(), more.begin(), more.end());
  return c.list_of(std::move(all));
}
Value list_repeated(const Call& c) {
  const std::vector<Value>& items = c.box("a").items;
  const int64_t times = std::max<int64_t>(c.integer("b"), 0);
  if (times > (1 << 22)) c.refuse("the list is too long");
  c.heap().grow(items.size() * static_cast<size_t>(times));
  std::vector<Value> all;
  for (int64_t i = 0; i < times; ++i) all.insert(all.end(), items.begin(), items.end());
  return c.list_of(std::move(all));
}
Value list_part(const Call& c) {
  const std::vector<Value>& items = c.box("l").items;
  const int64_t size = static_cast<int64_t>(items.size()), step = c.integer("step");
  if (step == 0) c.refuse("its step is zero");
  const auto bound = [&](const char* name, int64_t otherwise) {
    if (!c.has(name)) return otherwise;
    int64_t at = c.integer(name);
    if (at < 0) at += size;
    return std::clamp<int64_t>(at, step < 0 ? -1 : 0, step < 0 ? size - 1 : size);
  };
  const int64_t end = bound("end", step < 0 ? -1 : size);
  std::vector<Value> part;
  for (int64_t i = bound("start", step < 0 ? size - 1 : 0); step < 0 ? i > end : i < end;) {
    part.push_back(items[static_cast<size_t>(i)]);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return c.value("l").kind == Value::Tuple ? c.tuple_of(std::move(part))
                                           : c.list_of(std::move(part));
}
bool comes_before(const Call& c, const Value& a, const Value& b) {
  if (a.kind == Value::Text && b.kind == Value::Text) return a.text < b.text;
  if (!a.is_number() || !b.is_number()) c.refuse("its values have no order");
  return a.as_number() < b.as_number();
}
std::vector<Value> ordered(const Call& c) {
  std::vector<Value> items = c.box("self").items;
  const bool reverse = c.takes("reverse") && c.flag("reverse");
  std::stable_sort(items.begin(), items.end(), [&](const Value& a, const Value& b) {
    return reverse ? comes_before(c, b, a) : comes_before(c, a, b);
  });
  return items;
}
Value sorted_list(const Call& c) { return c.list_of(ordered(c)); }
Value sort_list(const Call& c) {
  Box& list = c.changed("self");
  list.items = ordered(c);
  return {};
}
Value equal_lists(const Call& c) { return Value::flag(same_value(c.value("a"), c.value("b"))); }
Value unequal_lists(const Call& c) { return Value::flag(!same_value(c.value("a"), c.value("b"))); }
Value extreme_of(const Call& c, bool largest) {
  const std::vector<Value>& items = c.box("self").items;
  if (items.empty()) c.refuse("the list is empty");
  Value found = items[0];
  for (const Value& one : items)
    if (largest ? comes_before(c, found, one) : comes_before(c, one, found)) found = one;
  return found;
}
Value largest_in_list(const Call& c) { return extreme_of(c, true); }
Value smallest_in_list(const Call& c) { return extreme_of(c, false); }
Value sum_of_list(const Call& c) {
  int64_t whole = 0;
  double real = 0;
  bool floats = false;
  for (const Value& one : c.box("self").items) {
    if (!one.is_number()) c.refuse("it adds values that are no numbers");
    floats |= one.kind == Value::Float;
    real += one.as_number();
    if (!floats && __builtin_add_overflow(whole, one.integer, &whole))
      c.refuse("an integer is too large");
  }
  return floats ? Value::of(real) : Value::of(whole);
}
template <bool every>
Value flags_of_list(const Call& c) {
  bool made = every;
  for (const Value& one : c.box("self").items) {
    if (!one.is_number()) c.refuse("its values are no flags");
    made = every ? made && one.as_number() != 0 : made || one.as_number() != 0;
  }
  return Value::flag(made);
}

// ---- dictionaries ------------------------------------------------------------------------------

Value dict_entry(const Call& c) {
  const Box& dict = c.box("self");
  const auto at = place_of(dict.keys, c.value("index"));
  if (at < 0) c.refuse("the dictionary does not have the key");
  return dict.items[static_cast<size_t>(at)];
}
Value entry_or(const Call& c) {
  const Box& dict = c.box("self");
  const auto at = place_of(dict.keys, c.value("key"));
  return at < 0 ? c.value("default_value") : dict.items[static_cast<size_t>(at)];
}
void set_in(const Call& c, Box& dict, const Value& key, const Value& value) {
  const auto at = place_of(dict.keys, key);
  if (at >= 0) {
    dict.items[static_cast<size_t>(at)] = value;
    return;
  }
  if (dict.keys.size() >= 100000) c.refuse("the dictionary is too large");
  dict.keys.push_back(key);
  dict.items.push_back(value);
}
Value set_dict_entry(const Call& c) {
  set_in(c, c.changed("self"), c.value("index"), c.value("value"));
  return {};
}
Value entry_made(const Call& c) {
  Box& dict = c.changed("self");
  if (place_of(dict.keys, c.value("key")) < 0)
    set_in(c, dict, c.value("key"), c.value("default_value"));
  return entry_or(c);
}
Value popped_entry(const Call& c) {
  Box& dict = c.changed("self");
  const auto at = place_of(dict.keys, c.value("key"));
  if (at < 0) {
    if (c.takes("default_value")) return c.value("default_value");
    c.refuse("the dictionary does not have the key");
  }
  Value taken = dict.items[static_cast<size_t>(at)];
  dict.keys.erase(dict.keys.begin() + at);
  dict.items.erase(dict.items.begin() + at);
  return taken;
}
Value deleted_entry(const Call& c) {
  popped_entry(c);
  return {};
}
Value merged(const Call& c) {
  const Box more = c.box("other");
  Box& dict = c.changed("self");
  for (size_t i = 0; i < more.keys.size(); ++i) set_in(c, dict, more.keys[i], more.items[i]);
  return {};
}
Value keys_of(const Call& c) { return c.list_of(c.box("self").keys); }
Value values_of(const Call& c) { return c.list_of(c.box("self").items); }
Value pairs_of(const Call& c) {
  const Box& dict = c.box("self");
  std::vector<Value> pairs;
  for (size_t i = 0; i < dict.keys.size(); ++i)
    pairs.push_back(c.tuple_of({dict.keys[i], dict.items[i]}));
  return c.list_of(std::move(pairs));
}
Value has_key(const Call& c) {
  return Value::flag(place_of(c.box("self").keys, c.value("key")) >= 0);
}
Value copied_dict(const Call& c) { return c.dict_of(c.box("self").keys, c.box("self").items); }
Value empty_dict(const Call& c) { return c.dict_of({}, {}); }
Value dict_of_pairs(const Call& c) {
  const Value made = c.dict_of({}, {});
  for (const Value& pair : c.box("inputs").items) {
    if (!pair.is_list() || pair.box->items.size() != 2) c.refuse("its entries are no pairs");
    set_in(c, *made.box, pair.box->items[0], pair.box->items[1]);
  }
  return made;
}

// ---- any value ---------------------------------------------------------------------------------

bool is_identical(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  if (a.is_tensor()) return a.tensor.is_same(b.tensor);
  return a.box ? a.box == b.box : same_value(a, b);
}
Value identical(const Call& c) { return Value::flag(is_identical(c.value("a"), c.value("b"))); }
Value distinct(const Call& c) { return Value::flag(!is_identical(c.value("a"), c.value("b"))); }

Value counting(const Call& c) {
  const int64_t count = c.integer("n");
  if (count > (1 << 22)) c.refuse("the list is too long");
  std::vector<Value> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(Value::of(i));
  return c.list_of(std::move(all));
}
// How often range(lo, hi, step) repeats, and its number at a place.
Value range_length(const Call& c) {
  const double from = c.number("lo"), to = c.number("hi"), step = c.number("step");
  if (step == 0) c.refuse("its step is zero");
  return Value::of(static_cast<int64_t>(std::max(0.0, std::ceil((to - from) / step))));
}
Value range_entry(const Call& c) {
  int64_t made = 0;
  if (__builtin_mul_overflow(c.integer("index"), c.integer("step"), &made) ||
      __builtin_add_overflow(made, c.integer("start"), &made))
    c.refuse("an integer is too large");
  return Value::of(made);
}

constexpr Converter kConverters[] = {
    {"len(a:list)", list_size, kPlain},
    {"len(a:dict)", list_size, kPlain},
    {"len(a:str)", text_size, kPlain},
    {"len(a:Tensor)", tensor_size, kPlain},
    {"__getitem__(self:list, index)", list_entry, kPlain},
    {"__getitem__(self:dict, index)", dict_entry, kPlain},
    {"_set_item(self:list, index, value)", set_list_entry, kPlain},
    {"_set_item(self:dict, index, value)", set_dict_entry, kPlain},
    {"append(self:list, value)", appended, kPlain},
    {"extend(self:list, values:list)", extended, kPlain},
    {"add_(self:list, values:list)", extended, kPlain},
    {"insert(self:list, index, value)", inserted, kPlain},
    {"pop(self:list, index=-1)", popped, kPlain},
    {"pop(self:dict, key)", popped_entry, kPlain},
    {"pop(self:dict, key, default_value)", popped_entry, kPlain},
    {"Delete(self:list, index)", deleted, kPlain},
    {"Delete(self:dict, key)", deleted_entry, kPlain},
    {"remove(self:list, value)", removed, kPlain},
    {"clear(self)", cleared, kPlain},
    {"reverse(self:list)", turned_round, kPlain},
    {"copy(self:list)", copied_list, kPlain},
    {"copy(self:dict)", copied_dict, kPlain},
    {"list(self:list)", copied_list, kPlain},
    {"index(self:list, value)", first_place, kPlain},
    {"count(self:list, value)", number_of_equal, kPlain},
    {"__contains__(self:list, value)", list_contains, kPlain},
    {"__contains__(self:dict, key)", has_key, kPlain},
    {"add(a:list, b:list)", lists_joined, kPlain},
    {"mul(a:list, b:int)", list_repeated, kPlain},
    {"slice(l:list, start=None, end=None, step=1)", list_part, kPlain},
    {"sorted(self:list)", sorted_list, kPlain},
    {"sort(self:list, reverse=False)", sort_list, kPlain},
    {"eq(a:list, b:list)", equal_lists, kPlain},
    {"ne(a:list, b:list)", unequal_lists, kPlain},
    {"eq(a:dict, b:dict)", equal_lists, kPlain},
    {"prim.max(self:list)", largest_in_list, kPlain},
    {"prim.min(self:list)", smallest_in_list, kPlain},
    {"sum(self:list)", sum_of_list, kPlain},
    {"any(self:list)", flags_of_list<false>, kPlain},
    {"all(self:list)", flags_of_list<true>, kPlain},
    {"get(self:dict, key, default_value=None)", entry_or, kPlain},
    {"setdefault(self:dict, key, default_value)", entry_made, kPlain},
    {"update(self:dict, other:dict)", merged, kPlain},
    {"keys(self:dict)", keys_of, kPlain},
    {"values(self:dict)", values_of, kPlain},
    {"items(self:dict)", pairs_of, kPlain},
    {"dict()", empty_dict, kPlain},
    {"dict(self:dict)", copied_dict, kPlain},
    {"dict(inputs:list)", dict_of_pairs, kPlain},
    {"__is__(a, b)", identical, kPlain},
    {"__isnot__(a, b)", distinct, kPlain},
    {"prim.rangelist(n)", counting, kPlain},
    {"__range_length(lo, hi, step)", range_length, kPlain},
    {"__derive_index(index, start, step)", range_entry, kPlain},
};

}  // namespace

std::span<const Converter> container_converters() { return kConverters; }

}  // namespace oar::pytorch
