// A line at the terminal that shows how far long work has come. Nothing is printed where standard error is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace oar::cli {

class Progress {
 public:
  // `total` 0: unknown.
  Progress(std::string what, int64_t total);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(int64_t done, const std::string& note = {});
  void clear();

 private:
  std::string what_;
  int64_t total_;
  bool visible_, drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

// "train ########........ 12/36, 0:02 left"
std::string progress_line(const std::string& what, int64_t done, int64_t total, double seconds,
                          const std::string& note, size_t width);

}  // namespace oar::cli
