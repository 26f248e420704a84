// Messages for a person at the terminal. The level is the flag "log" (environment: OAR_LOG).
#pragma once

#include <atomic>
#include <string_view>
#include <utility>

#include "oar/base/api.h"
#include "oar/base/format.h"

namespace OAR_API oar {

enum class LogLevel { Debug, Info, Warning, Error, Off };

std::string_view to_string(LogLevel level);

namespace detail {
extern std::atomic<int> log_threshold;
}  // namespace detail

inline bool log_enabled(LogLevel level) {
  return static_cast<int>(level) >= detail::log_threshold.load(std::memory_order_relaxed);
}

// Writes one whole line, whatever the level, to the sink (standard error by default).
void write_log(LogLevel level, std::string_view text);

// Sends messages elsewhere; null restores standard error. The sink may be called by any thread.
using LogSink = void (*)(LogLevel level, std::string_view text);
void set_log_sink(LogSink sink);

template <class... A>
void log_at(LogLevel level, fmt::format_string<A...> text, A&&... args) {
  if (log_enabled(level)) [[unlikely]] {
    const fmt::string_view view = text;
    write_log(level, oar::vformat({view.data(), view.size()}, fmt::make_format_args(args...)));
  }
}

template <class... A>
void log_debug(fmt::format_string<A...> text, A&&... args) {
  log_at<A...>(LogLevel::Debug, text, std::forward<A>(args)...);
}
template <class... A>
void log_info(fmt::format_string<A...> text, A&&... args) {
  log_at<A...>(LogLevel::Info, text, std::forward<A>(args)...);
}
template <class... A>
void log_warning(fmt::format_string<A...> text, A&&... args) {
  log_at<A...>(LogLevel::Warning, text, std::forward<A>(args)...);
}
template <class... A>
void log_error(fmt::format_string<A...> text, A&&... args) {
  log_at<A...>(LogLevel::Error, text, std::forward<A>(args)...);
}

}  // namespace oar
