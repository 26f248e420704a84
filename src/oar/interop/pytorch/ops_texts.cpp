// Texts of TorchScript, most of them for its errors.
#include <algorithm>

#include "oar/base/error.h"
#include "oar/interop/pytorch/call.h"

namespace oar::pytorch {
namespace {

constexpr auto kPlain = Converter::Plain;
constexpr size_t kLongest = size_t{1} << 20;
constexpr int kDeepest = 16;

std::string shown(const Value& value, int depth = 0) {
  switch (value.kind) {
    case Value::None:
      return "None";
    case Value::Bool:
      return value.integer != 0 ? "True" : "False";
    case Value::Int:
      return std::to_string(value.integer);
    case Value::Float: {
      std::string made = format("{}", value.number);
      if (made.find_first_not_of("-0123456789") == std::string::npos) made += ".0";
      return made;
    }
    case Value::Text:
    case Value::Name:
      return value.text;
    case Value::Tensor:
      return value.tensor.describe();
    default:
      break;
  }
  if (!value.is_list() || depth == kDeepest) return value.kind_name();
  std::string made = value.kind == Value::List ? "[" : "(";
  for (size_t i = 0; i < value.box->items.size() && made.size() < kLongest; ++i)
    made += (i == 0 ? "" : ", ") + shown(value.box->items[i], depth + 1);
  return made + (value.kind == Value::List ? "]" : ")");
}

Value limited_text(const Call& c, std::string text) {
  if (text.size() > kLongest) c.refuse("a text is too long");
  return Value::of(std::move(text));
}

// "{}" stands for the next argument.
Value formatted(const Call& c) {
  const std::string& form = c.text("self");
  const std::vector<Value>& values = c.box("values").items;
  std::string made;
  size_t next = 0;
  for (size_t i = 0; i < form.size(); ++i) {
    const size_t end = form[i] == '{' ? form.find('}', i) : std::string::npos;
    if (end == std::string::npos) {
      made += form[i];
      continue;
    }
    if (next >= values.size()) c.refuse("its text has more places than values");
    made += shown(values[next++]);
    if (made.size() > kLongest) break;
    i = end;
  }
  return limited_text(c, std::move(made));
}
Value as_text(const Call& c) { return limited_text(c, shown(c.value("a"))); }
Value texts_added(const Call& c) { return limited_text(c, c.text("a") + c.text("b")); }
Value text_repeated(const Call& c) {
  std::string made;
  for (int64_t i = 0; i < c.integer("b") && made.size() <= kLongest && !c.text("a").empty(); ++i)
    made += c.text("a");
  return limited_text(c, std::move(made));
}
Value texts_equal(const Call& c) { return Value::flag(c.text("a") == c.text("b")); }
Value texts_differ(const Call& c) { return Value::flag(c.text("a") != c.text("b")); }
Value text_contains(const Call& c) {
  return Value::flag(c.text("self").find(c.text("value")) != std::string::npos);
}
Value letter_of(const Call& c) {
  const std::string& text = c.text("self");
  const int64_t size = static_cast<int64_t>(text.size()), given = c.integer("index");
  const int64_t at = given < 0 ? given + size : given;
  if (at < 0 || at >= size) c.refuse(format("its index {} is out of range", given));
  return Value::of(text.substr(static_cast<size_t>(at), 1));
}
Value part_of_text(const Call& c) {
  const std::string& text = c.text("string");
  const auto size = static_cast<int64_t>(text.size());
  if (c.integer("step") != 1) c.refuse("its step is not one");
  const auto bound = [&](const char* name, int64_t otherwise) {
    const int64_t at = c.has(name) ? c.integer(name) : otherwise;
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const int64_t from = bound("start", 0), to = bound("end", size);
  return Value::of(
      text.substr(static_cast<size_t>(from), static_cast<size_t>(std::max<int64_t>(to - from, 0))));
}
template <int (*change)(int)>
Value each_letter(const Call& c) {
  std::string made = c.text("self");
  for (char& letter : made)
    if (static_cast<unsigned char>(letter) < 0x80) letter = static_cast<char>(change(letter));
  return Value::of(std::move(made));
}
int lower_letter(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }
int upper_letter(int c) { return c >= 'a' && c <= 'z' ? c - 32 : c; }
Value begins_with(const Call& c) {
  return Value::flag(c.text("self").starts_with(c.text("value")));
}
Value ends_in(const Call& c) { return Value::flag(c.text("self").ends_with(c.text("value"))); }
Value joined_texts(const Call& c) {
  std::string made;
  bool first = true;
  for (const Value& one : c.box("values").items) {
    if (one.kind != Value::Text) c.refuse("it joins values that are no texts");
    made += (first ? "" : c.text("self")) + one.text;
    first = false;
    if (made.size() > kLongest) break;
  }
  return limited_text(c, std::move(made));
}
Value found_at(const Call& c) {
  const size_t at = c.text("self").find(c.text("substr"));
  return Value::of(at == std::string::npos ? int64_t{-1} : static_cast<int64_t>(at));
}
Value split_text(const Call& c) {
  std::vector<Value> parts;
  std::string_view rest = c.text("self");
  const std::string between = c.has("separator") ? c.text("separator") : " ";
  if (between.empty()) c.refuse("its separator is empty");
  for (size_t at = rest.find(between); at != std::string_view::npos; at = rest.find(between)) {
    if (c.has("separator") || at > 0) parts.push_back(Value::of(std::string(rest.substr(0, at))));
    rest.remove_prefix(at + between.size());
  }
  if (c.has("separator") || !rest.empty()) parts.push_back(Value::of(std::string(rest)));
  return c.list_of(std::move(parts));
}

constexpr Converter kConverters[] = {
    {"builtins.str(a)", as_text, kPlain},
    {"str(a)", as_text, kPlain},
    {"add(a:str, b:str)", texts_added, kPlain},
    {"mul(a:str, b:int)", text_repeated, kPlain},
    {"eq(a:str, b:str)", texts_equal, kPlain},
    {"ne(a:str, b:str)", texts_differ, kPlain},
    {"__contains__(self:str, value)", text_contains, kPlain},
    {"__getitem__(self:str, index)", letter_of, kPlain},
    {"slice(string:str, start=None, end=None, step=1)", part_of_text, kPlain},
    {"lower(self)", each_letter<lower_letter>, kPlain},
    {"upper(self)", each_letter<upper_letter>, kPlain},
    {"startswith(self, value)", begins_with, kPlain},
    {"endswith(self, value)", ends_in, kPlain},
    {"join(self:str, values:list)", joined_texts, kPlain},
    {"find(self:str, substr)", found_at, kPlain},
    {"split(self:str, separator=None)", split_text, kPlain},
    {"format(self, values:list)", formatted, kPlain},
};

}  // namespace

std::span<const Converter> text_converters() { return kConverters; }

}  // namespace oar::pytorch
