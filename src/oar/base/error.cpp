#include "oar/base/error.h"

#include <utility>

namespace oar {

namespace {
constexpr std::string_view kHintMark = "\nhint: ";
constexpr std::string_view kReportBug = "This is a bug in Oar; please report it.";

void append_sentence(std::string& text, std::string_view more) {
  if (!text.empty() && !more.empty()) {
    text += ' ';
  }
  text += more;
}
}  // namespace

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidArgument:
      return "InvalidArgument";
    case ErrorKind::InvalidType:
      return "InvalidType";
    case ErrorKind::OutOfRange:
      return "OutOfRange";
    case ErrorKind::NotFound:
      return "NotFound";
    case ErrorKind::Unsupported:
      return "Unsupported";
    case ErrorKind::OutOfMemory:
      return "OutOfMemory";
    case ErrorKind::Runtime:
      return "Runtime";
    case ErrorKind::Internal:
      return "Internal";
    case ErrorKind::Interrupted:
      return "Interrupted";
  }
  return "Unknown";
}

Error::Error(ErrorKind kind, std::string text, std::string hint)
    : kind_(kind),
      op_(current_op() == nullptr ? "" : current_op()),
      text_(std::move(text)),
      hint_(std::move(hint)) {
  compose();
}

Error& Error::with_op(std::string op) {
  op_ = std::move(op);
  compose();
  return *this;
}

void Error::compose() {
  what_ = op_.empty() ? "" : "[" + op_ + "]";
  append_sentence(what_, text_);
  append_sentence(what_, hint_);
}

namespace detail {

void throw_error(ErrorKind kind, std::string_view text, fmt::format_args args) {
  // Split after formatting, since "{}" counts arguments through text and hint; at the last mark,
  // since a value in the text might contain one.
  std::string message = vformat(text, args);
  std::string hint;
  if (const auto mark = message.rfind(kHintMark); mark != std::string::npos) {
    hint = message.substr(mark + kHintMark.size());
    message.resize(mark);
  }
  if (kind == ErrorKind::Internal) {
    append_sentence(hint, kReportBug);
  }
  throw Error(kind, std::move(message), std::move(hint));
}

}  // namespace detail
}  // namespace oar
