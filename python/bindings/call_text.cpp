#include "call_text.h"

#include <cctype>
#include <string>
#include <string_view>

#include "oar/base/string_util.h"

namespace oar::python {
namespace {

constexpr size_t kLongest = 60;  // of one argument

bool is_part_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_part_of_word(text[at - 1])) &&
        (end == text.size() || !is_part_of_word(text[end])))
      return true;
  }
  return false;
}

bool names_argument(const std::string& text, const Op& op) {
  for (size_t i = 0; i < op.schema().visible_count(); ++i)
    if (has_word(text, op.schema().parameters[i].name)) return true;
  return false;
}

std::string tensor_text(const Tensor& t) { return t.defined() ? t.describe() : "None"; }

// A number that is no size would be an error of its own.
std::string attribute_text(const Value& value) {
  try {
    return value.str();
  } catch (const Error&) {
    return value.tag == OAR_TAG_INT ? std::to_string(value.as_int()) : "...";
  }
}

std::string value_text(const Value& value) {
  if (value.is_tensor()) return tensor_text(value.as_tensor());
  std::string text;
  if (value.is_tensors()) {
    for (const Tensor& t : value.as_tensors()) text += (text.empty() ? "" : ", ") + tensor_text(t);
    text = "[" + text + "]";
  } else {
    text = attribute_text(value);
  }
  if (text.size() > kLongest) {
    text.resize(kLongest);
    text.append("...");
  }
  return text;
}

}  // namespace

void add_call(Error& error, const Op& op, Args args) {
  if (error.kind() == ErrorKind::Internal || names_argument(error.text(), op)) return;
  std::string shown;
  for (size_t i = 0; i < args.size() && i < op.schema().visible_count(); ++i) {
    if (args[i].tag == OAR_TAG_NONE) continue;
    shown +=
        (shown.empty() ? "" : ", ") + op.schema().parameters[i].name + "=" + value_text(args[i]);
  }
  if (shown.empty()) return;
  std::string hint = error.hint();
  hint += (hint.empty() ? "" : " ") + std::string("The call was ") + op.name() + "(" + shown + ").";
  error = Error(error.kind(), error.text(), std::move(hint));
}

}  // namespace oar::python
