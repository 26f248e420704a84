// Errors: what a caller catches, and the checks that throw it.
//
//   user_check(axis < rank, ErrorKind::OutOfRange,
//              "axis {} is outside a tensor of rank {}\nhint: Pass an axis in [0, {}).", axis,
//              ...);
//
// Text after "\nhint: " becomes the error's hint: the way out for the user.
#pragma once

#include <atomic>
#include <exception>
#include <string>
#include <string_view>

#include "oar/base/api.h"
#include "oar/base/format.h"

namespace OAR_RUNTIME_API oar {

enum class ErrorKind {
  InvalidArgument,
  InvalidType,
  OutOfRange,
  NotFound,
  Unsupported,
  OutOfMemory,
  Runtime,
  Internal,
  Interrupted,
};

std::string_view to_string(ErrorKind kind);

namespace detail {
// constinit, so that an access is a plain load and not a call of an initialisation wrapper.
OAR_FAST_TLS inline constinit thread_local const char* current_op_name = nullptr;
}  // namespace detail

// The op this thread is running, or null.
inline const char* current_op() { return detail::current_op_name; }

// Names the op that errors thrown in this scope belong to. The name must outlive the scope.
struct OpScope {
  explicit OpScope(const char* op) : previous_(detail::current_op_name) {
    detail::current_op_name = op;
    // The crash handler reads it too: the compiler must not drop the store as unused.
    std::atomic_signal_fence(std::memory_order_release);
  }
  ~OpScope() { detail::current_op_name = previous_; }
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

 private:
  const char* previous_;
};

class Error : public std::exception {
 public:
  // The op is the thread's current one.
  Error(ErrorKind kind, std::string text, std::string hint = {});

  ErrorKind kind() const { return kind_; }
  const std::string& op() const { return op_; }
  const std::string& text() const { return text_; }
  const std::string& hint() const { return hint_; }
  // "[op] text hint", without the parts that are empty.
  const char* what() const noexcept override { return what_.c_str(); }

  Error& with_op(std::string op);

 private:
  void compose();

  ErrorKind kind_;
  std::string op_;
  std::string text_;
  std::string hint_;
  std::string what_;
};

namespace detail {
// Out of line and cold: a check costs its caller one predicted branch.
[[noreturn, gnu::cold, gnu::noinline]] void throw_error(ErrorKind kind, std::string_view text,
                                                        fmt::format_args args);

template <class... A>
[[noreturn, gnu::cold, gnu::noinline]] void format_and_throw(ErrorKind kind, fmt::string_view text,
                                                             const A&... args) {
  throw_error(kind, {text.data(), text.size()}, fmt::make_format_args(args...));
}
}  // namespace detail

template <class... A>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<A...> text, A&&... args) {
  detail::format_and_throw(kind, text, args...);
}

}  // namespace oar

// The checks are macros, so that the arguments of the text, which are often costly to compute, are
// evaluated on failure only: checks are on paths where nanoseconds count.

// Throws an Error of the given kind unless the condition holds.
#define user_check(condition, ...)   \
  do {                               \
    if (!(condition)) [[unlikely]] { \
      ::oar::fail(__VA_ARGS__);      \
    }                                \
  } while (false)

// For conditions that only a bug in Oar can violate; never for a user's mistake.
#define internal_check(condition, ...)                      \
  do {                                                      \
    if (!(condition)) [[unlikely]] {                        \
      ::oar::fail(::oar::ErrorKind::Internal, __VA_ARGS__); \
    }                                                       \
  } while (false)
