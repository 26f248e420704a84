#include "oar/base/log.h"

#include <unistd.h>

#include <string>

#include "oar/base/flags.h"

namespace oar {

namespace detail {
constinit std::atomic<int> log_threshold{static_cast<int>(LogLevel::Warning)};
}  // namespace detail

namespace {

constexpr LogLevel kLevels[] = {LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error,
                                LogLevel::Off};

constinit std::atomic<LogSink> sink{nullptr};

void apply_flag() {
  const std::string wanted = flag<std::string>("log");
  for (const LogLevel level : kLevels) {
    if (to_string(level) == wanted) {
      detail::log_threshold.store(static_cast<int>(level), std::memory_order_relaxed);
    }
  }
}

[[maybe_unused]] const bool follows_flag = [] {
  on_flag_change("log", apply_flag);
  apply_flag();
  return true;
}();

}  // namespace

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return "debug";
    case LogLevel::Info:
      return "info";
    case LogLevel::Warning:
      return "warning";
    case LogLevel::Error:
      return "error";
    case LogLevel::Off:
      return "off";
  }
  return "unknown";
}

void set_log_sink(LogSink new_sink) { sink.store(new_sink, std::memory_order_release); }

void write_log(LogLevel level, std::string_view text) {
  if (const LogSink target = sink.load(std::memory_order_acquire)) {
    target(level, text);
    return;
  }
  std::string line = "[oar ";
  line += to_string(level);
  line += "] ";
  line += text;
  line += '\n';
  // One write, so that the lines of several threads and processes do not mix.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace oar
