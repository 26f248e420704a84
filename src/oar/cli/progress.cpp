#include "oar/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "oar/base/format.h"
#include "oar/cli/terminal.h"

namespace oar::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBetween = std::chrono::milliseconds(100);
constexpr int64_t kCells = 24;

std::string time_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::lround(seconds));
  return whole < 3600 ? format("{}:{:02}", whole / 60, whole % 60)
                      : format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

std::string progress_line(const std::string& what, int64_t done, int64_t total, double seconds,
                          const std::string& note, size_t width) {
  std::string line = what + " ";
  if (total > 0) {
    const int64_t full = kCells * std::min(done, total) / total;
    for (int64_t i = 0; i < kCells; ++i) line += i < full ? "#" : ".";
    line += format(" {}/{}", done, total);
    if (done > 0 && done < total)
      line += format(", {} left", time_text(seconds / static_cast<double>(done) *
                                            static_cast<double>(total - done)));
  } else {
    line += format("{}, {}", done, time_text(seconds));
  }
  if (!note.empty()) line += "  " + note;
  if (line.size() >= width) line.resize(width - 1);
  return line;
}

Progress::Progress(std::string what, int64_t total)
    : what_(std::move(what)),
      total_(total),
      visible_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()) {}

void Progress::advance(int64_t done, const std::string& note) {
  const auto now = Clock::now();
  if (!visible_ || (drawn_ && now - last_ < kBetween && done != total_)) return;
  last_ = now;
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::cerr << '\r' << "\033[K"
            << progress_line(what_, done, total_, seconds, note, terminal_width()) << std::flush;
}

void Progress::clear() {
  if (drawn_) std::cerr << "\r\033[K" << std::flush;
  drawn_ = false;
}

}  // namespace oar::cli
