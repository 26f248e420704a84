// Flags: settings without a change of code. Their table is in flags.cpp.
//
// A flag starts from the environment (OAR_<NAME>, else FLAGS_<name>), else from its default.
#pragma once

#include <atomic>
#include <bit>
#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"

namespace OAR_API oar {

enum class FlagType { Bool, Int, Double, String };

std::string_view to_string(FlagType type);

// What a flag does. A deployed library has nothing that prints it, so it keeps no text.
class FlagDoc {
 public:
#if defined(OAR_DEPLOY)
  constexpr FlagDoc(const char*) {}
#else
  constexpr FlagDoc(const char* text) : text_(text) {}
#endif
  constexpr operator std::string_view() const { return text_; }

 private:
  std::string_view text_;
};

struct Flag {
  std::string_view name;
  FlagType type;
  std::string_view default_value;
  std::string_view env;  // FLAGS_<name> is read as well
  FlagDoc doc;
};

struct FlagInfo {
  Flag flag;
  std::string value;
};

template <class T>
concept FlagValue = std::same_as<T, bool> || std::same_as<T, int> || std::same_as<T, double> ||
                    std::same_as<T, std::string>;

// The value of a flag, typed. Throws if there is no such flag or it has another type.
template <FlagValue T>
T flag(std::string_view name);

template <>
bool flag<bool>(std::string_view name);
template <>
int flag<int>(std::string_view name);
template <>
double flag<double>(std::string_view name);
template <>
std::string flag<std::string>(std::string_view name);

// Parses and sets. An unknown name or a bad value throws and changes nothing.
void set_flag(std::string_view name, std::string_view value);

// The value in the form that set_flag takes.
std::string flag_text(std::string_view name);

std::vector<FlagInfo> list_flags();

// Called each time the flag is set, in the thread that sets it. If it throws, the old value
// is restored and the setter gets the exception. It must not set flags itself.
void on_flag_change(std::string_view name, std::function<void()> callback);

namespace detail {
// The storage of a flag that is not a string, valid until the process ends.
const std::atomic<std::uint64_t>& flag_bits(std::string_view name, FlagType type);
}  // namespace detail

// A flag looked up once; get() is one atomic load. For strings use flag<std::string>.
template <FlagValue T>
  requires(!std::same_as<T, std::string>)
class FlagHandle {
 public:
  explicit FlagHandle(std::string_view name) : bits_(detail::flag_bits(name, kType)) {}

  T get() const {
    const std::uint64_t bits = bits_.load(std::memory_order_relaxed);
    if constexpr (std::same_as<T, double>) {
      return std::bit_cast<double>(bits);
    } else {
      return static_cast<T>(bits);
    }
  }

 private:
  static constexpr FlagType kType = std::same_as<T, bool>  ? FlagType::Bool
                                    : std::same_as<T, int> ? FlagType::Int
                                                           : FlagType::Double;
  const std::atomic<std::uint64_t>& bits_;
};

// The words of the flag "trace", as bits, so that hot paths can test them.
enum class Trace : unsigned { Dispatch = 1, Passes = 2, Capture = 4, Fusion = 8 };

namespace detail {
extern std::atomic<unsigned> trace_bits;
}  // namespace detail

inline bool tracing(Trace what) {
  return (detail::trace_bits.load(std::memory_order_relaxed) & static_cast<unsigned>(what)) != 0;
}

}  // namespace oar
